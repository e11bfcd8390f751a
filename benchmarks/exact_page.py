"""The page `docs/exact.md`: its template, with tables and numbers from the results of `benchmarks.exact_study`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.exact_parts import CHECKS, HEURISTICS, MIXED, POLICIES, ROLES, SCHEMES, STYLES
from cucumber_env import exact
from cucumber_env.baselines import BASELINES
from cucumber_env.exact.reports import TOLERANCE
from cucumber_env.rules import PRESETS

Results = dict[str, dict[str, Any]]

TEMPLATE = Path(__file__).resolve().parents[1] / "docs" / "exact.template.md"

HANDS = (2, 3, 4)
"""Numbers of cards at which policies and play are looked at."""


def page(results: Results) -> str:
    """The page."""
    parts = {name: table(results) for name, table in TABLES.items()}
    return TEMPLATE.read_text(encoding="utf-8").format_map(parts | numbers(results))


def markdown(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table, numbers to the right."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def numbers(results: Results) -> dict[str, str]:
    """Numbers that the text of the page names."""
    words, three = results["classes"]["words"], results["values"]["cucumber 3"]
    return {
        "games": str(len(results["classes"]["presets"])),
        "presets": str(len(PRESETS)),
        "combinations": str(words["combinations"]),
        "word_games": str(words["games"]),
        "two_cards": interval(results["values"]["cucumber 2"]),
        "two_cards_no_ace": interval(results["values"]["gurka_no_ace 2"]),
        "three_cards": interval(three),
        "four_cards": interval(results["values"]["cucumber 4"]),
        "five_cards": interval(results["reduced"]["5"]),
        "greedy_3": points(results["policies"]["solution, greedy 3"]["nash_conv"]),
        "greedy_4": points(results["policies"]["solution, greedy 4"]["nash_conv"]),
        "solution_4": points(results["policies"]["solution 4"]["nash_conv"]),
        "mixed": f"{MIXED:.0%}",
        "ace_led_4": f"{results['play']['4']['ace_led']:.0%}",
        **{f"mixed_{cards}": mixed_share(results["play"][str(cards)]) for cards in HANDS},
        **{f"{name}_{cards}": nash_conv(results, name, cards) for name in HEURISTICS for cards in HANDS},
        **styles(results),
        **{f"distilled_{steps}": spread(results, steps, "sampled") for steps in (2000, 8000)},
        "distilled_solution": f"{results['values']['cucumber 3']['nash_conv']:.1e}",
        "distilled_16000": sampled(results, "observation", 16000),
        "distilled_history": sampled(results, "history", 8000),
        "claim": exact.CLAIM,
    }


def styles(results: Results) -> dict[str, str]:
    """Shares of decisions in which the lowest, highest or another legal card is played, as `between_first_lead_4`."""
    return {
        f"{style}_{ORDINALS[trick]}_{role.removesuffix('s')}_{cards[-1]}": rounded(share / sum(shares))
        for cards, play in results["play"].items()
        for trick, roles in play["styles"].items()
        for role, shares in roles.items()
        for style, share in zip(STYLES, shares, strict=True)
    }


ORDINALS = {"1": "first", "2": "second", "3": "third", "4": "fourth"}


def rounded(share: float) -> str:
    """A share in per cent, small ones with a decimal."""
    return f"{share:.1%}" if 5e-4 <= share < 0.05 else f"{round(share, 4) + 0.0:.0%}"  # no negative zero


def mixed_share(play: dict[str, Any]) -> str:
    """Share of the decisions of a round that the solution mixes, weighted by reach."""
    return f"{play['per_round']['mixed'] / play['per_round']['all']:.1%}"


def nash_conv(results: Results, name: str, cards: int) -> str:
    """NashConv of a policy by name, in points."""
    return points(results["policies"][f"{name} {cards}"]["nash_conv"])


def points(value: float, decimals: int = 4) -> str:
    """Points, rounded; what would round to zero without being zero (up to `TOLERANCE`) says on which side it lies."""
    if abs(value) <= TOLERANCE:
        return f"{0:.{decimals}f}"
    least = f"{10**-decimals:.{decimals}f}"
    if abs(value) < 0.5 * 10**-decimals:
        return f"< {least}" if value > 0 else f"> −{least}"
    return f"{value:.{decimals}f}".replace("-", "−")


def interval(found: dict[str, Any]) -> str:
    """A value that lies between two bounds: as many decimals as they allow, and how far off it can be."""
    middle, half = (found["low"] + found["high"]) / 2, (found["high"] - found["low"]) / 2
    if half < 5e-7:
        return f"{middle:.5f}".replace("-0.00000", "0.00000")
    return f"{middle:.5f} ± {half:.0e}".replace("e-0", "e-") if half < 1e-4 else f"{middle:.4f} ± {half:.4f}"


def class_table(results: Results) -> str:
    """Presets by the game that two play."""
    rows = []
    for names in results["classes"]["presets"]:
        fields = {
            field: value
            for field, value in PRESETS[names[0]].items()
            if field in ("follow", "ace_lead", "order", "points", "payer", "penalty", "tie")
        }
        changes = ", ".join(f"`{field}={value}`" for field, value in fields.items())
        rows.append([", ".join(f"`{name}`" for name in names), changes or "–"])
    return markdown(["presets", "rules of the round that differ from `cucumber`"], rows).replace("---:", "---")


def value_table(results: Results) -> str:
    """Values by rules and hand size."""
    rows: dict[str, dict[int, str]] = {}
    for key, found in results["values"].items():
        name, cards = key.rsplit(" ", 1)
        rows.setdefault(name, {})[int(cards)] = interval(found)
    heads = ["rules", *(f"{cards} card{'s' * (cards > 1)}" for cards in range(1, 5))]
    return markdown(
        heads, [[f"`{name}`", *(row.get(cards, "") for cards in range(1, 5))] for name, row in rows.items()]
    )


def size_table(results: Results) -> str:
    """Size of the game and what solving took."""
    named = [(f"13 ranks, {cards} cards", results["values"][f"cucumber {cards}"]) for cards in range(2, 5)]
    named += [(f"8 ranks, {cards} cards", results["reduced"][str(cards)]) for cards in (4, 5)]
    heads = ["deck and hands", "public nodes", "information states", "decisions", "iterations", "NashConv", "seconds"]
    rows = [
        [
            name,
            *(f"{found[fact]:,}" for fact in ("nodes", "information_states", "decisions", "iterations")),
            f"{found['nash_conv']:.1e}",
            f"{found['seconds']:.{0 if found['seconds'] >= 10 else 1}f}",
        ]
        for name, found in named
    ]
    return markdown(heads, rows)


def curve_table(results: Results) -> str:
    """NashConv after some iterations, by scheme."""
    rows = []
    for cards, checks in CHECKS.items():
        for scheme in SCHEMES:
            found = {point["iterations"]: point for point in results["curves"][f"{scheme} {cards}"]}
            each = found[checks[-1]]["seconds"] / checks[-1]
            shown = [f"{found[check]['nash_conv']:.2g}" if check in found else "" for check in SHOWN]
            rows.append([f"{scheme}, {cards} cards", *shown, f"{each:.2g}"])
    return markdown(["scheme", *(f"after {check}" for check in SHOWN), "seconds each"], rows)


SHOWN = (8, 16, 32, 128, 512)
"""Iterations in the table of curves."""


def policy_table(results: Results) -> str:
    """NashConv of every policy and what it loses to the solution."""
    heads = ["policy", *(f"NashConv, {cards}" for cards in HANDS), *(f"loss, {cards}" for cards in HANDS)]
    rows = []
    for name in POLICIES:
        found = [results["policies"][f"{name} {cards}"] for cards in HANDS]
        shown = [points(one["nash_conv"]) for one in found] + [points(one["loss"]) for one in found]
        rows.append([name if "solution" in name else f"`{name}`", *shown])
    return markdown(heads, rows)


def preset_table(results: Results, cards: int) -> str:
    """By preset: size of the game, mixed decisions, and NashConv of every baseline."""
    rows = []
    for key, found in results["presets"].items():
        name, size = key.rsplit(" ", 1)
        if size == str(cards):
            states = results["values"][key]["information_states"]
            count = found["decisions"]
            shares = [f"{count['mixed'] / count['all']:.0%}", mixed_share(found)]
            distances = [points(found["nash_conv"][one], 3) for one in BASELINES]
            rows.append([f"`{name}`", f"{states:,}", f"{count['all']:,}", *shares, *distances])
    heads = ["rules", "information states", "decisions", "mixed", "mixed in play", *(f"`{name}`" for name in BASELINES)]
    return markdown(heads, rows)


def larger_table(results: Results) -> str:
    """At larger tables: what each seat gains by deviating alone from every baseline."""
    tables = results["larger"]
    rows = [
        [f"`{name}`", *(", ".join(points(gain, 3) for gain in found["gains"][name]) for found in tables.values())]
        for name in BASELINES
    ]
    sizes = [
        [fact.replace("_", " "), *(f"{found[fact]:,}" for found in tables.values())]
        for fact in ("information_states", "decisions")
    ]
    return markdown(["policy", *tables], [*rows, *sizes])


def mixing_table(results: Results) -> str:
    """Decisions, and how many of them are mixed."""
    rows = []
    for cards in HANDS:
        found = results["play"][str(cards)]
        count, chance = found["decisions"], found["per_round"]
        rows.append(
            [
                cards,
                f"{count['all']:,}",
                f"{count['mixed'] / count['all']:.1%}",
                f"{count['reached']:,}",
                f"{count['reached and mixed'] / max(count['reached'], 1):.1%}",
                f"{chance['all']:.2f}",
                mixed_share(found),
            ]
        )
    heads = ["cards", "decisions", "mixed", "reached", "of these mixed", "decisions a round", "of these mixed"]
    return markdown(heads, rows)


def loss_table(results: Results) -> str:
    """Where scripted policies differ from the solution, by trick."""
    rows = []
    for cards in ("3", "4"):
        for name in HEURISTICS:
            for trick, roles in sorted(results["positions"][cards][name]["by_trick"].items()):
                for role in (role for role in ROLES if role in roles):
                    found = roles[role]
                    rows.append(
                        [
                            f"`{name}`, {cards} cards, trick {trick}, {role}",
                            f"{found['chance']:.2f}",
                            f"{found['differs'] / found['chance']:.1%}",
                            f"{found['loss']:.3f}",
                        ]
                    )
    return markdown(["decision", "comes up a round", "of these played otherwise", "points lost a round"], rows)


def position_table(results: Results) -> str:
    """Concrete positions, the costliest of each kind."""
    rows = []
    for cards in ("3", "4"):
        for name in HEURISTICS:
            shown: dict[int, set[str]] = {}
            for position in results["positions"][cards][name]["positions"]:
                alike = shown.setdefault(len(cards_of(position["plays"])), set())
                row = described(position, name)
                choice = f"{position['plays'][-1:]} {row[1:3]}"
                if len(alike) < MOST and choice not in alike and position["loss"] > CLEAR:
                    alike.add(choice)
                    rows.append(row)
    return markdown(["position", "the solution", "plays instead", "loses"], rows)


MOST, CLEAR = 2, 0.5
"""Positions shown of each kind, with different choices, and points that must be lost there."""


def cards_of(plays: str) -> str:
    """The cards in a text of plays, without seats and tricks."""
    return "".join(letter for letter in plays if letter not in "01: ")


def described(position: dict[str, Any], name: str) -> list[str]:
    """One position in words."""
    tricks = [part.split(":")[1] for part in position["plays"].split()]
    done = [f"{trick[0]}–{trick[1]}" for trick in tricks if len(trick) == 2]
    facing = [f"facing {trick}" for trick in tricks if len(trick) == 1] or ["leading"]
    where = ", ".join([*(f"after {one}" for one in done), *facing])
    cards = position["cards"]
    theirs = max(cards, key=lambda rank: cards[rank]["other"])
    solution = ", ".join(f"{rank} {card['solution']:.0%}" for rank, card in cards.items() if card["solution"] >= 0.005)
    return [f"holds {' '.join(position['hand'])}, {where}", solution, f"`{name}`: {theirs}", f"{position['loss']:.1f}"]


def memory_table(results: Results) -> str:
    """What observations forget."""
    rows = [
        [
            cards,
            f"{found['decisions']:,}",
            f"{found['observations']:,}",
            points(results["policies"][f"solution {cards}"]["nash_conv"]),
            points(found["nash_conv"]),
        ]
        for cards, found in ((cards, results["memory"][str(cards)]) for cards in HANDS)
    ]
    return markdown(
        ["cards", "decisions", "observations", "NashConv of the solution", "seen through observations"], rows
    )


def distilled_table(results: Results) -> str:
    """NashConv of distilled networks."""
    rows = [
        [
            f"{found['input']}, {found['width']} numbers",
            f"{found['steps']:,}",
            found["seed"],
            f"{found['kl']:.5f}",
            points(found["nash_conv"]["sampled"], 5),
            points(found["nash_conv"]["greedy"], 5),
            f"{found['cpu_seconds']:.0f}",
        ]
        for found in results["distilled"].values()
    ]
    return markdown(["input", "steps", "seed", "KL (nats)", "NashConv, sampled", "greedy", "CPU seconds"], rows)


def sampled(results: Results, seen: str, steps: int) -> str:
    """NashConv of the network of the first seed, sampled."""
    return points(results["distilled"][f"{seen} {steps} 1"]["nash_conv"]["sampled"], 5)


def spread(results: Results, steps: int, how: str) -> str:
    """Median and range over seeds of networks that read observations."""
    runs = [one for one in results["distilled"].values() if (one["input"], one["steps"]) == ("observation", steps)]
    found = [one["nash_conv"][how] for one in runs]
    return f"{points(median(found), 5)} ({points(min(found), 5)} to {points(max(found), 5)})"


TABLES = {
    "class_table": class_table,
    "value_table": value_table,
    "size_table": size_table,
    "curve_table": curve_table,
    "policy_table": policy_table,
    "preset_table_3": partial(preset_table, cards=3),
    "preset_table_4": partial(preset_table, cards=4),
    "larger_table": larger_table,
    "mixing_table": mixing_table,
    "loss_table": loss_table,
    "position_table": position_table,
    "memory_table": memory_table,
    "distilled_table": distilled_table,
}
"""The tables of the template."""
