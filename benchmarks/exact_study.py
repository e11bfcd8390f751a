"""Exact play of rounds for two, studied: values, convergence, exploitability, what equilibria play.

    python -m benchmarks.exact_study --out docs/exact

Writes ``results.json``, the pictures, and the page from `docs/exact.template.md`. Every result is written as soon as it
is there, and results that are there already are kept, so the command goes on where it was stopped; with `--fresh`
everything is computed anew. All of it takes about an hour on two cores and at most 4 GB.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from benchmarks import exact_parts as parts

RULES = {
    "cucumber": "cucumber",
    "gurka_no_ace": "gurka_no_ace",
    "bga": "bga",
    "wikipedia": "wikipedia",
    "inverted": "inverted",
    "literal": "literal",
    "concombre": "concombre",
    "points=face_10": "cucumber,points=face_10",
    "order=value": "cucumber,order=value",
    "tie=first": "cucumber,tie=first",
}
"""Rules whose rounds are solved: one preset of each class that is a game of its own, and single changes."""

LARGEST = {name: 3 if "=" in name else 4 for name in RULES}
"""With how many cards at most."""

SMALL_DECK = "cucumber,ranks=789TJQKA"
"""Rules whose deck is small enough for five cards."""

PRECISION = {1: 1e-9, 2: 1e-6, 3: 1e-5, 4: 1e-2, 5: 1e-2}
"""NashConv to which rounds of so many cards are solved, in points."""

OTHERWISE = {("cucumber", 4): 1.5e-3, ("small_deck", 4): 1.5e-3}
"""The same for rules that are looked at more closely."""

LARGER = {
    "3 players, 2 cards": ("cucumber,hand_size=2", 3),
    "4 players, 2 cards": ("cucumber,hand_size=2", 4),
    "3 players, 3 cards": (f"{SMALL_DECK},hand_size=3", 3),
}
"""Rules and players of rounds in which one seat deviates."""

DISTILLED = {("observation", 2000): 3, ("observation", 8000): 3, ("observation", 16000): 1, ("history", 8000): 1}
"""Seeds with which a network is trained on the solution of three cards, by what it reads and its gradient steps."""

Work = Callable[[], Any]


@dataclass
class Arguments:
    """What to compute, and where it goes."""

    out: Path
    """Folder of results and pictures; the page is written beside it, with its name."""
    only: tuple[str, ...] = ()
    """Sections to compute; the others stay as they are."""
    cards: int = 5
    """Largest hands."""
    fresh: bool = False
    """Compute again what has been computed."""
    solutions: Path = Path("runs/exact")
    """Folder in which solutions are kept."""
    seconds: Annotated[float, tyro.conf.arg(metavar="S")] = float("inf")
    """Begin nothing more after so many seconds."""


def plan(arguments: Arguments) -> dict[str, dict[str, tuple[int, Work]]]:
    """By section and name, how many cards each piece of work is about and what does it, each after what it needs."""
    folder = arguments.solutions

    def solved(name: str, cards: int) -> Path:
        return folder / f"{name}-{cards}.npz"

    def solve(name: str, rules: str, cards: int) -> Work:
        nash_conv = OTHERWISE.get((name, cards), PRECISION[cards])
        return lambda: parts.solve(f"{rules},hand_size={cards}", nash_conv, solved(name, cards))

    values = {
        f"{name} {cards}": (cards, solve(name, text, cards))
        for name, text in RULES.items()
        for cards in range(1, LARGEST[name] + 1)
    }
    reduced = {str(cards): (cards, solve("small_deck", SMALL_DECK, cards)) for cards in range(1, 6)}
    own = {cards: solved("cucumber", cards) for cards in range(2, 5)}
    return {
        "classes": {"presets": (3, parts.preset_classes), "words": (2, parts.word_classes)},
        "values": values,
        "reduced": reduced,
        "curves": {
            f"{scheme} {cards}": (cards, lambda scheme=scheme, cards=cards: parts.curve(cards, scheme))
            for cards in parts.CHECKS
            for scheme in parts.SCHEMES
        },
        "policies": {
            f"{name} {cards}": (cards, lambda name=name, cards=cards: parts.measure(name, own[cards]))
            for cards in own
            for name in parts.POLICIES
        },
        "presets": {
            f"{name} {cards}": (cards, lambda name=name, cards=cards: parts.survey(solved(name, cards)))
            for name in RULES
            for cards in (3, 4)
            if "=" not in name
        },
        "larger": {
            name: (3, lambda rules=rules, players=players: parts.deviations(rules, players))
            for name, (rules, players) in LARGER.items()
        },
        "play": {str(cards): (cards, lambda cards=cards: parts.play(own[cards])) for cards in own}
        | {"small deck 5": (5, lambda: parts.play(solved("small_deck", 5)))},
        "positions": {str(cards): (cards, lambda cards=cards: parts.positions(own[cards])) for cards in (3, 4)},
        "memory": {str(cards): (cards, lambda cards=cards: parts.forget(own[cards])) for cards in own},
        "distilled": {
            f"{seen} {steps} {seed}": (
                3,
                lambda seen=seen, steps=steps, seed=seed: parts.distilled(own[3], seen == "history", steps, seed),
            )
            for (seen, steps), seeds in DISTILLED.items()
            for seed in range(1, seeds + 1)
        },
    }


def compute(arguments: Arguments, results: dict[str, dict[str, Any]]) -> None:
    """Do what is missing in `results`, and write it there and to the file."""
    started = time.perf_counter()
    for section, pieces in plan(arguments).items():
        if arguments.only and section not in arguments.only:
            continue
        for name, (cards, work) in pieces.items():
            if cards > arguments.cards or (name in results.get(section, {}) and not arguments.fresh):
                continue
            if time.perf_counter() - started > arguments.seconds:
                return
            print(f"{section}: {name}", file=sys.stderr, flush=True)
            results.setdefault(section, {})[name] = work()
            write(arguments.out / "results.json", json.dumps(results, indent=1) + "\n")
            gc.collect()


def write(path: Path, text: str) -> None:
    """Write a file, which appears whole or not at all."""
    fresh = path.with_name(f"{path.name}.new-{os.getpid()}")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)


def missing(arguments: Arguments, results: dict[str, dict[str, Any]]) -> list[str]:
    """What the page still needs."""
    return [
        f"{section}: {name}"
        for section, pieces in plan(arguments).items()
        for name in pieces
        if name not in results.get(section, {})
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute, draw and write; returns the exit status."""
    chosen = tyro.cli(Arguments, args=arguments, prog="benchmarks.exact_study", description=__doc__)
    for folder in (chosen.out, chosen.solutions):
        folder.mkdir(parents=True, exist_ok=True)
    file = chosen.out / "results.json"
    results = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    compute(chosen, results)
    if lacking := missing(chosen, results):
        print(f"no page yet; still to compute: {', '.join(lacking[:5])}{' …' if len(lacking) > 5 else ''}")
        return 0
    from benchmarks import exact_figures, exact_page

    exact_figures.draw(results, chosen.out)
    page = chosen.out.with_suffix(".md")
    write(page, exact_page.page(results))
    print(f"wrote {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
