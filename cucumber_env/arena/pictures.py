"""The sections of a report that come with pictures: differences of pairs, the payoff matrix, distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import sqrt
from typing import Any

from cucumber_env.arena.document import (
    Block,
    Cell,
    Figure,
    Grid,
    Legend,
    Number,
    Paragraph,
    all_named,
    half,
    minus,
    named,
    number,
    percent,
    printable,
    signed,
)
from cucumber_env.arena.plots import Bars, Row, draw_distribution, draw_forest
from cucumber_env.arena.sheet import Sheet
from cucumber_env.arena.statistics import ENOUGH

FEW_PAIRS = 30
"""A forest plot of more would be a wood: then it shows policies beside the next two of the ranking alone."""


def pairs(sheet: Sheet) -> list[Block]:
    """Differences of all pairs: a forest plot and a table with the probability of improvement."""
    if not sheet.pairs:
        return [Paragraph(("No pairs were compared.",))]
    score = sheet.report["score"]
    text = (
        f"Mean {score} of one policy minus that of another at the same tables (one among the others and the other way "
        "round), on the same deals. Each interval stands for itself; the ranking compares means over all fields and "
        "decides all pairs together, so that it may leave tied what is told apart here.",
    )
    caption = (
        f"The policy in bold minus each below it. Bars are {sheet.level} intervals; one that crosses zero leaves "
        "the pair undecided."
    )
    shown = _shown(sheet)
    if len(shown) < len(sheet.pairs):
        caption += " Each beside the next two of the ranking; the table has all pairs."
    groups = [
        (f"{printable(name)} minus", [_row(sheet, pair) for pair in shown if pair["first"] == name])
        for name in dict.fromkeys(pair["first"] for pair in shown)
    ]
    label = f"difference in {score}{',' if sheet.unit else ''}{sheet.unit}"
    draw = partial(draw_forest, groups, title="Differences between policies", axis=label, lower_is_better=sheet.lower)
    return [Paragraph(text), Figure("Differences between policies", (caption,), draw), _pair_grid(sheet)]


def _shown(sheet: Sheet) -> list[dict[str, Any]]:
    if len(sheet.pairs) <= FEW_PAIRS:
        return sheet.pairs
    place = {name: number for number, name in enumerate(sheet.names)}
    return [pair for pair in sheet.pairs if place[pair["second"]] - place[pair["first"]] <= 2]


def _row(sheet: Sheet, pair: Mapping[str, Any]) -> Row:
    found = pair["difference"]
    text = f"{signed(found['mean'])} ± {(found['high'] - found['low']) / 2:.3f}"
    second, colour = printable(pair["second"]), sheet.decided(pair)
    return Row(second, found["mean"], found["low"], found["high"], colour, text)


def _pair_grid(sheet: Sheet) -> Grid:
    words = {"better": "first", "worse": "second", "even": "undecided"}
    rows: list[list[Cell]] = []
    for pair in sheet.pairs:
        found, chance = pair["difference"], pair.get("improvement")
        verdict = words[sheet.decided(pair)]
        if pair.get("differing", ENOUGH) < ENOUGH:
            verdict = f"undecided: {pair['differing']} deals differ" if pair["differing"] else "no difference seen"
        better = percent(chance) if chance else Number("–")
        rows.append([named(pair["first"]), named(pair["second"]), number(found, plus=True), better, verdict])
    heads = ["first", "second", f"difference in {sheet.report['score']}", "first better", "verdict"]
    return Grid(
        "All pairs, the one that ranks higher first",
        heads,
        rows,
        left=2,
        words=frozenset({4}),
        folded=len(rows) > FEW_PAIRS,
    )


def matrix(sheet: Sheet) -> list[Block]:
    """Scores of every policy against every field, coloured by better and worse."""
    others, score = sheet.report["num_players"] - 1, sheet.report["score"]
    largest = max([abs(row["difference"]["mean"]) for row in sheet.against.values()] or [0])
    rows: list[list[Cell]] = [
        [named(policy), *(_shaded(sheet, sheet.against.get((policy, field)), largest) for field in sheet.names)]
        for policy in sheet.names
    ]
    what = f"Mean {score} of one (row) against {others} of each (column); on the diagonal a policy among itself"
    grid = Grid(what, ["", *all_named(sheet.names)], rows, matrix=True)
    return [*([_legend(sheet, largest)] if largest else []), grid]


def _shaded(sheet: Sheet, row: Mapping[str, Any] | None, largest: float) -> Number:
    if row is None:
        return Number("–")
    found, score = row["difference"], row["score"]
    sign = {"better": 1, "worse": -1, "even": 0}[sheet.verdict(found)]
    return Number(minus(score["mean"]), half(score), sign * sqrt(abs(found["mean"]) / largest) if sign else 0.0)


def _legend(sheet: Sheet, largest: float) -> Legend:
    """Three steps of colour on either side; shades are square roots, so that small differences show."""
    shades = (-1.0, -2 / 3, -1 / 3, 1 / 3, 2 / 3, 1.0)
    side = -1 if sheet.lower else 1
    steps = [(signed(side * (1 if shade > 0 else -1) * shade * shade * largest, 2), shade) for shade in shades]
    text = (
        "Colours compare the policy of the row with what the field of the column scores among itself, in the same "
        "seats on the same deals: what changes when it takes the place of one of them. Cells without colour show no "
        f"difference at {sheet.level} confidence.",
    )
    return Legend(text, steps)


def distribution(sheet: Sheet) -> list[Block]:
    """How often every policy ended with how many points."""
    found: Mapping[str, Any] = sheet.report.get("distribution") or {}
    names = [name for name in sheet.names if name in found and found[name]["points"]]
    if not names:
        return [Paragraph(("No distribution was recorded.",))]
    rows = [_bars(sheet, name, found[name]) for name in names]
    what = "penalty of a round" if sheet.lower else "total at the end of a match"
    threshold = sheet.report["rules"].get("threshold")
    draw = partial(
        draw_distribution,
        rows,
        title="Distribution of points",
        axis=f"{what}, points",
        mark=None if sheet.lower or not threshold else (threshold, f"threshold {threshold}"),
    )
    text = ("How often one seat of the policy among the others ended with so many points.",)
    caption = f"All bars to one scale.{' Rounds that cost nothing have no bar.' if sheet.lower else ''}"
    return [Paragraph(text), Figure("Distribution of points", (caption,), draw), _shares(names, found)]


def _bars(sheet: Sheet, name: str, found: Mapping[str, Sequence[float]]) -> Bars:
    """Rounds mostly cost nothing: that bar would dwarf all others."""
    both = list(zip(found["points"], found["share"], strict=True))
    drawn = [(point, share) for point, share in both if point or not sheet.lower]
    nothing = sum(share for point, share in both if not point)
    text = f"paid nothing {100 * nothing:.1f} %" if sheet.lower else ""
    return Bars(printable(name), [point for point, _ in drawn], [share for _, share in drawn], text)


def _shares(names: Sequence[str], found: Mapping[str, Any]) -> Grid:
    shares = {name: dict(zip(found[name]["points"], found[name]["share"], strict=True)) for name in names}
    points = sorted({point for row in shares.values() for point in row})
    rows = [[f"{point:g}", *(f"{100 * shares[name].get(point, 0):.2f} %" for name in names)] for point in points]
    return Grid("Distribution of points", ["points", *all_named(names)], rows, matrix=True, folded=True)
