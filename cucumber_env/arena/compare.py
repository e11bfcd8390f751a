"""Comparisons: one policy against tables of others, and all of several against each other.

The score is the mean penalty of rounds (in points, lower is better) or the mean outcome of matches (−1 to 1,
higher is better).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from cucumber_env.arena.match import Progress, Result, play
from cucumber_env.arena.results import Failure
from cucumber_env.arena.statistics import (
    ENOUGH,
    Estimate,
    Interval,
    mean_interval,
    paired_difference,
    probability_of_improvement,
)
from cucumber_env.arena.tables import play_tables, sound
from cucumber_env.policies import Policy, make
from cucumber_env.rules import Rules


@dataclass(frozen=True)
class Sample:
    """What one policy against n−1 of another scored, each the mean over the rotations of a deal.

    Attributes:
        one: float64 ``[deals]``, score of the one.
        others: float64 ``[deals]``, mean score of the n−1 at the same tables.
        share: float64 ``[deals]``, how often the one paid (rounds), or its share in winning (matches).
    """

    one: np.ndarray
    others: np.ndarray
    share: np.ndarray

    @classmethod
    def of(cls, result: Result) -> Sample:
        """What came of a table whose first position the one has, and all others the field."""
        players = result.scores.shape[2]
        one, shares = result.of(0, result.scores), result.of(0, result.shares)
        others = (result.scores.sum(axis=(1, 2)) - one.sum(axis=1)) / (players * (players - 1))
        # Thirds leave rounding errors that depend on the order of sums; what is equal shall be equal.
        return cls(*(np.round(values, 12) for values in (one.mean(axis=1), others, shares.mean(axis=1))))


@dataclass(frozen=True)
class Comparison:
    """One policy at a table whose other seats all play another, the `field`.

    Attributes:
        policy, field: Names.
        num_players: Seats at the table.
        episode: ``"round"`` (the score is the penalty) or ``"match"`` (the outcome).
        score: Of the policy against n−1 of the field.
        own: Score of the field among itself, on the same deals and in the same seats.
        difference: `score` minus `own`, paired by deal: what changes when the policy takes the place of one of
            the field. Exactly 0 for policies that play alike.
        share: How often the policy paid, or its share in winning matches.
    """

    policy: str
    field: str
    num_players: int
    episode: str
    score: Estimate
    own: Estimate
    difference: Estimate
    share: Estimate

    @classmethod
    def of(cls, names: tuple[str, str], sample: Sample, own: Sample, kind: tuple[int, str]) -> Comparison:
        """From one policy among the other, and the other among itself, at tables of so many seats and such episodes."""
        return cls(
            *names,
            *kind,
            score=mean_interval(sample.one),
            own=mean_interval(own.one),
            difference=paired_difference(sample.one, own.one),
            share=mean_interval(sample.share),
        )

    @property
    def gain(self) -> float:
        """`difference` turned so that more is better, whatever the score."""
        return -self.difference.mean if self.episode == "round" else self.difference.mean

    def to_dict(self) -> dict[str, Any]:
        """Names and estimates, for JSON."""
        estimates = {name: getattr(self, name).to_dict() for name in ("score", "own", "difference", "share")}
        return {"policy": self.policy, "field": self.field, **estimates}


@dataclass(frozen=True)
class Pair:
    """Two policies at the same tables.

    Attributes:
        first, second: Names.
        difference: Mean score of the first minus the second's, over the tables of one first among seconds and of one
            second among firsts, half each, in all rotations. Exactly 0 for policies that play alike.
        improvement: Probability that the first scores better than the second on a deal; equal scores count half.
        differing: Deals on which the two scored differently.
    """

    first: str
    second: str
    difference: Estimate
    improvement: Interval
    differing: int

    @classmethod
    def of(cls, names: tuple[str, str], first: Sample, second: Sample, *, lower_is_better: bool) -> Pair:
        """From the first among the second, and the second among the first."""
        scores = same_tables(first, second)
        improvement = probability_of_improvement(*scores, lower_is_better=lower_is_better)
        return cls(*names, paired_difference(*scores), improvement, int(np.count_nonzero(scores[0] != scores[1])))

    @property
    def sign(self) -> int:
        """1 or -1 if it is told which mean score is higher, by an interval on enough deals that differ; else 0."""
        return self.difference.sign if self.differing >= ENOUGH else 0

    def to_dict(self) -> dict[str, Any]:
        """Names and estimates, for JSON."""
        estimates = {name: getattr(self, name).to_dict() for name in ("difference", "improvement")}
        return {"first": self.first, "second": self.second, **estimates, "differing": self.differing}


def same_tables(first: Sample, second: Sample) -> tuple[np.ndarray, np.ndarray]:
    """Scores of two policies at the same tables, float64 ``[deals]`` each, half of them the one's and half the other's.

    Args:
        first: The first among the second.
        second: The second among the first.
    """
    scores = (first.one + second.others) / 2, (first.others + second.one) / 2
    # Sums of thirds and sevenths, which have to come out equal where they are.
    return np.round(scores[0], 9), np.round(scores[1], 9)


@dataclass(frozen=True)
class RoundRobin:
    """Every policy against a table of every other.

    Attributes:
        names: Of the policies, in the order given.
        num_players: Seats at each table.
        episode: ``"round"`` or ``"match"``.
        against: ``against[i][j]`` is policy `i` against n−1 of policy `j`; on the diagonal, a policy among itself.
            None where one of the tables that it takes ended early.
        pairs: All pairs of different positions ``i < j`` whose tables did not end early.
        failures: Tables that a policy's error ended.
        results: ``results[i][j]``, the games behind ``against[i][j]``, or None.
    """

    names: list[str]
    num_players: int
    episode: str
    against: list[list[Comparison | None]]
    pairs: list[Pair]
    failures: list[Failure] = field(default_factory=list)
    results: list[list[Result | None]] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, names: Sequence[str], results: Sequence[Sequence[Result | Failure | None]]) -> RoundRobin:
        """From what came of every table of one ``names[i]`` among ``names[j]``, at ``results[i][j]``.

        Raises:
            TableError: every table failed.
            ValueError: there is no table.
        """
        failures = [result for row in results for result in row if isinstance(result, Failure)]
        played = [[None if isinstance(result, Failure) else result for result in row] for row in results]
        if not any(result for row in played for result in row):
            raise failures[0].error() if failures else ValueError("no table was played")
        samples = [[None if result is None else Sample.of(result) for result in row] for row in played]
        some = next(result for row in played for result in row if result is not None)
        kind = (some.scores.shape[2], some.episode)
        places = range(len(names))

        def compare(i: int, j: int) -> Comparison | None:
            sample, own = samples[i][j], samples[j][j]
            if sample is None or own is None:
                return None
            return Comparison.of((names[i], names[j]), sample, own, kind)

        pairs = [
            Pair.of((names[i], names[j]), first, second, lower_is_better=some.episode == "round")
            for i, j in combinations(places, 2)
            if (first := samples[i][j]) and (second := samples[j][i])
        ]
        against = [[compare(i, j) for j in places] for i in places]
        return cls(list(names), *kind, against, pairs, failures, played)

    def to_dict(self) -> dict[str, Any]:
        """All but the games, for JSON; `against` as one list, row by row."""
        return {
            "policies": self.names,
            "against": [comparison.to_dict() for row in self.against for comparison in row if comparison],
            "pairs": [pair.to_dict() for pair in self.pairs],
            "failures": [failure.to_dict() for failure in self.failures],
        }


def one_against(policy: str | Policy, field: str | Policy, *, num_players: int = 4, **options: Any) -> Sample:
    """`policy` at one seat against `field` at all others, in all rotations; `options` are those of `play`.

    If both are the same object, the table is played once a deal instead of n times.
    """
    return Sample.of(play(one_table(policy, make(field), num_players), **options))


def one_table(policy: str | Policy, field: str | Policy, num_players: int) -> list[str | Policy]:
    """One policy at the first position of a table, another at all others."""
    return [policy, *[field] * (num_players - 1)]


def compare_with(
    policy: str | Policy,
    fields: Sequence[str | Policy],
    *,
    rules: Rules | str | Mapping[str, Any] = "cucumber",
    num_players: int = 4,
    deals: int | range = 1000,
    seed: int = 0,
    episode: str = "round",
    progress: Progress | None = None,
) -> list[Comparison]:
    """How `policy` fares against n−1 of each of `fields`, and beside each of them in its own place.

    Takes two plays of every deal for each field, and reports ``2 * len(fields) * deals`` to `progress`.

    Args:
        policy: A policy, or the name of one.
        fields: The same for the other seats, one table each.
        rules: Rules, a preset with changes, or a mapping of fields.
        num_players: Seats at the table.
        deals: Duplicate deals of each table, at least 2, or the numbers that name them.
        seed: Any integer ≥ 0. Choose and measure with different seeds: the best of several is flattered
            by the deals that chose it.
        episode: ``"round"`` or ``"match"``.
        progress: Told of finished deals.

    Raises:
        ValueError, TypeError: as `play`, or fewer than two deals.
        TableError: a policy failed.
    """
    one, others = make(policy), [make(field) for field in fields]
    options: dict[str, Any] = {"rules": rules, "deals": check_deals(deals), "seed": seed, "episode": episode}
    samples = samples_among(one, others, num_players=num_players, progress=progress, **options)
    return [
        Comparison.of((one.name, field.name), sample, own, (num_players, episode))
        for field, (sample, own) in zip(others, samples, strict=True)
    ]


def samples_among(
    policy: Policy, fields: Sequence[Policy], *, num_players: int, **options: Any
) -> list[tuple[Sample, Sample]]:
    """What `policy` among n−1 of each of `fields` scored, and each field among itself on the same deals.

    Other options are those of `tables.play_tables`.

    Raises:
        ValueError, TypeError: as `play_tables`.
        TableError: a policy failed.
    """
    tables = [one_table(guest, field, num_players) for field in fields for guest in (policy, field)]
    samples = [Sample.of(result) for result in sound(play_tables(tables, **options))]
    return list(zip(samples[::2], samples[1::2], strict=True))


def round_robin(
    policies: Sequence[str | Policy],
    *,
    rules: Rules | str | Mapping[str, Any] = "cucumber",
    num_players: int = 4,
    deals: int | range = 1000,
    seed: int = 0,
    episode: str = "round",
    file: str | Path | None = None,
    workers: int | None = 1,
    progress: Progress | None = None,
) -> RoundRobin:
    """Every policy against n−1 of every other, all on the same deals.

    Reports ``len(policies) ** 2 * deals`` to `progress`. Other arguments are those of `compare_with`; `file` and
    `workers` those of `tables.play_tables`, by which a tournament is continued and played on many cores.

    Raises:
        ValueError, TypeError, OSError: as `play_tables`, fewer than two deals, or no table that could be played.
    """
    made = [make(policy) for policy in policies]
    tables = [one_table(one, field, num_players) for one in made for field in made]
    played = play_tables(
        tables,
        rules=rules,
        deals=check_deals(deals),
        seed=seed,
        episode=episode,
        file=file,
        workers=workers,
        progress=progress,
    )
    names, size = [policy.name for policy in made], len(made)
    return RoundRobin.of(names, [played[row * size : (row + 1) * size] for row in range(size)])


def check_deals(deals: int | range) -> int | range:
    """`deals`, refused unless there are enough for an interval."""
    count = len(deals) if isinstance(deals, range) else deals
    if isinstance(count, int | np.integer) and count < 2:
        raise ValueError(f"deals={deals!r} is out of range; allowed: 2 and more (one has no interval)")
    return deals
