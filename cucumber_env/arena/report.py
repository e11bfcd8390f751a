"""Results as tables of text, for a terminal, a log or a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from cucumber_env.arena.compare import Comparison, Pair, RoundRobin
from cucumber_env.arena.document import place
from cucumber_env.arena.statistics import ENOUGH, Estimate, Interval

SCORES = {"round": "penalty", "match": "outcome"}
SHARES = {"round": "paid", "match": "won"}


@dataclass(frozen=True)
class Table:
    """A title, the heads of the columns and the rows of text; the first `left` columns hold words."""

    title: str
    heads: list[str]
    rows: list[list[str]]
    left: int = 1

    def __str__(self) -> str:
        lines = [self.heads, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join([self.title, *(self._line(cells, widths) for cells in lines)])

    def _line(self, cells: list[str], widths: list[int]) -> str:
        aligned = (
            cell.ljust(width) if column < self.left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "  ".join(aligned).rstrip()


def format_table(comparisons: Sequence[Comparison]) -> str:
    """What `compare_with` returns, as lines of text."""
    return str(comparison_table(comparisons))


def comparison_table(comparisons: Sequence[Comparison]) -> Table:
    """One policy against tables of others, a row each.

    Raises:
        ValueError: there are none, or they are not of one policy and one kind of table.
    """
    kinds = {(row.policy, row.num_players, row.episode) for row in comparisons}
    if len(kinds) != 1:
        raise ValueError(f"{len(comparisons)} comparisons of {len(kinds)} kinds; a table takes those of one policy")
    policy, players, episode = kinds.pop()
    score = SCORES[episode]
    rows = [
        [row.field, interval(row.score), interval(row.own), interval(row.difference, signed=True), percent(row.share)]
        for row in comparisons
    ]
    title = f"{policy}: mean {score} of one against {players - 1} of each ({better(episode)}; {_deals(comparisons[0])})"
    return Table(title, [f"{players - 1} ×", score, "theirs in its place", "difference", SHARES[episode]], rows)


def matrix_table(result: RoundRobin) -> Table:
    """Scores of every policy (row) against n−1 of every other (column); columns carry the numbers of the rows."""
    score = SCORES[result.episode]
    others = result.num_players - 1
    title = f"Mean {score} of one (row) against {others} of each (column), {better(result.episode)}"
    numbers = [f"#{number}" for number in range(1, len(result.names) + 1)]
    failed = {failure.table for failure in result.failures}

    def cell(name: str, field: str, comparison: Comparison | None) -> str:
        if comparison is not None:
            return interval(comparison.score)
        return "failed" if {(name, *[field] * others), (field,) * (others + 1)} & failed else "not played"

    rows = [
        [f"{number} {name}", *map(partial(cell, name), result.names, row)]
        for number, name, row in zip(numbers, result.names, result.against, strict=True)
    ]
    return Table(title, ["", *numbers], rows)


def pair_table(result: RoundRobin) -> Table:
    """Who scores better of every pair at the same tables."""
    score = SCORES[result.episode]
    rows = [
        [
            pair.first,
            pair.second,
            interval(pair.difference, signed=True),
            percent(pair.improvement),
            _verdict(pair, result.episode),
        ]
        for pair in result.pairs
    ]
    title = f"Mean {score} at the same tables, first minus second"
    return Table(title, ["first", "second", "difference", "better on", "better"], rows, left=2)


def report_tables(report: Mapping[str, Any], result: RoundRobin) -> list[Table]:
    """A tournament's report in tables, the ranking first; see `Tournament.report`."""
    score = SCORES[result.episode]
    heads = ["rank", "policy", f"mean {score}", "OpenSkill"]
    rows = [
        [place(row["rank"]), row["policy"], between(row["score"]), rating(row["openskill"])]
        for row in report["ranking"]
    ]
    title = f"Ranking by mean {score} among all, equal weights ({better(result.episode)}); a rank such as 1–2 is a tie"
    tables = [Table(title, heads, rows, left=2), matrix_table(result), pair_table(result)]
    if report["mixed"]:
        rows = [[row["policy"], str(row["tables"]), between(row["score"])] for row in report["mixed"]]
        tables.append(Table("At tables of different policies", ["", "tables", f"mean {score}"], rows))
    if report["seer"]:
        rows = [
            [row["field"], between(row["score"]), between(row["difference"], signed=True)] for row in report["seer"]
        ]
        title = "An agent that sees all cards, among the others of each field"
        tables.append(Table(title, ["field", score, "less one of the field"], rows))
    if report["suspects"]:
        rows = [[row["policy"], row["field"], row["text"]] for row in report["suspects"]]
        tables.append(Table("Suspiciously near to an agent that sees all cards", ["policy", "field", ""], rows, left=3))
    if report["audit"]:
        rows = [
            [row["policy"], row["kind"], between(row["gain"], signed=True), f"{row['at_least']:.3f}"]
            for row in report["audit"]
        ]
        tables.append(Table("Gain from deviating", ["policy", "responder", "gain", "at least"], rows, left=2))
    if report["cycles"]:
        rows = [[" beats ".join([*cycle, cycle[0]])] for cycle in report["cycles"]]
        tables.append(Table("Cycles, which no ranking can show", [""], rows))
    return tables


def between(estimate: Mapping[str, float], *, signed: bool = False) -> str:
    """An estimate of a report as text; see `interval`."""
    half_width = (estimate["high"] - estimate["low"]) / 2
    return interval(Estimate(estimate["mean"], half_width, int(estimate["deals"])), signed=signed)


def rating(openskill: Mapping[str, float] | None) -> str:
    """A rating as text, such as ``27.1 ± 0.8``."""
    return "–" if openskill is None else f"{openskill['mu']:.1f} ± {openskill['sigma']:.1f}"


def better(episode: str) -> str:
    """Which way the score of an episode is good."""
    return "lower is better" if episode == "round" else "higher is better"


def interval(estimate: Estimate, *, signed: bool = False) -> str:
    """An estimate as text with three decimals, such as ``1.360 ± 0.015``."""
    mean = round(estimate.mean, 3) + 0.0  # never -0.000
    return f"{mean:{'+' if signed and mean else ''}.3f} ± {estimate.half_width:.3f}"


def percent(estimate: Estimate | Interval) -> str:
    """The mean of shares, in per cent."""
    return f"{100 * estimate.mean:.1f} %"


def _verdict(pair: Pair, episode: str) -> str:
    if not pair.differing:
        return "no difference seen"
    if pair.sign == 0:
        return "undecided" if pair.differing >= ENOUGH else f"undecided: {pair.differing} deals differ"
    return "first" if (pair.sign < 0) == (episode == "round") else "second"


def _deals(comparison: Comparison) -> str:
    return f"{comparison.score.deals:,} deals, 95 % intervals"
