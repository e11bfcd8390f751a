"""The page `docs/exact.md`: its template, with tables and numbers from the results of `benchmarks.exact_study`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.exact_parts import CHECKS, HEURISTICS, MIXED, POLICIES, ROLES, SCHEMES
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
        **{
            f"{name}_first_lead_{cards}": style(results, cards, "1", "leads", name)
            for name in STYLES
            for cards in (3, 4)
        },
        **{
            f"{name}_first_follow_{cards}": style(results, cards, "1", "follows", name)
            for name in STYLES
            for cards in (3, 4)
        },
        "distilled_sampled": spread(results, "observation", "sampled"),
        "distilled_greedy": spread(results, "observation", "greedy"),
        "distilled_solution": points(results["distilled"]["observation 1"]["nash_conv"]["solution"]),
    }


STYLES = {"lowest": 0, "between": 1, "highest": 2}


def style(results: Results, cards: int, trick: str, role: str, name: str) -> str:
    """Share of the decisions of a trick in which the lowest, highest or another legal card is played."""
    shares = results["play"][str(cards)]["styles"][trick][role]
    return f"{shares[STYLES[name]] / sum(shares):.0%}"


def mixed_share(play: dict[str, Any]) -> str:
    """Share of the decisions of a round that the solution mixes, weighted by reach."""
    return f"{play['per_round']['mixed'] / play['per_round']['all']:.1%}"


def nash_conv(results: Results, name: str, cards: int) -> str:
    """NashConv of a policy by name, in points."""
    return points(results["policies"][f"{name} {cards}"]["nash_conv"])


def points(value: float) -> str:
    """A distance in points: four decimals, or what it is below."""
    return f"{max(value, 0.0):.4f}" if value >= 5e-5 or value < 1e-9 else "< 0.0001"


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
            found["seed"],
            f"{found['kl']:.4f}",
            points(found["nash_conv"]["sampled"]),
            points(found["nash_conv"]["greedy"]),
            f"{found['seconds']:.0f}",
        ]
        for found in results["distilled"].values()
    ]
    return markdown(["input", "seed", "KL (nats)", "NashConv, sampled", "greedy", "seconds"], rows)


def spread(results: Results, seen: str, how: str) -> str:
    """Median and range over seeds."""
    found = [one["nash_conv"][how] for one in results["distilled"].values() if one["input"] == seen]
    return f"{points(median(found))} ({points(min(found))} to {points(max(found))})"


TABLES = {
    "class_table": class_table,
    "value_table": value_table,
    "size_table": size_table,
    "curve_table": curve_table,
    "policy_table": policy_table,
    "mixing_table": mixing_table,
    "loss_table": loss_table,
    "position_table": position_table,
    "memory_table": memory_table,
    "distilled_table": distilled_table,
}
"""The tables of the template."""
