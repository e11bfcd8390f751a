"""Comparisons: one policy against tables of others, and all of several against each other.

The score is the mean penalty of rounds (in points, lower is better) or the mean outcome of matches (−1 to 1,
higher is better).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cucumber_env.arena.match import Progress, play
from cucumber_env.arena.statistics import Estimate, mean_interval, paired_difference
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
    """

    first: str
    second: str
    difference: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Names and difference, for JSON."""
        return {"first": self.first, "second": self.second, "difference": self.difference.to_dict()}


@dataclass(frozen=True)
class RoundRobin:
    """Every policy against a table of every other.

    Attributes:
        names: Of the policies, in the order given.
        episode: ``"round"`` or ``"match"``.
        against: ``against[i][j]`` is policy `i` against n−1 of policy `j`; on the diagonal, a policy among itself.
        pairs: All pairs of different positions ``i < j``.
    """

    names: list[str]
    episode: str
    against: list[list[Comparison]]
    pairs: list[Pair]

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON; `against` as one list, row by row."""
        return {
            "policies": self.names,
            "against": [comparison.to_dict() for row in self.against for comparison in row],
            "pairs": [pair.to_dict() for pair in self.pairs],
        }


def one_against(policy: str | Policy, field: str | Policy, *, num_players: int = 4, **options: Any) -> Sample:
    """`policy` at one seat against `field` at all others, in all rotations; `options` are those of `play`.

    If both are the same object, the table is played once a deal instead of n times.
    """
    other = make(field)
    result = play([policy, *[other] * (num_players - 1)], **options)
    scores = result.scores
    one, shares = result.of(0, scores), result.of(0, result.shares)
    others = (scores.sum(axis=(1, 2)) - one.sum(axis=1)) / (num_players * (num_players - 1))
    # Thirds leave rounding errors that depend on the order of sums; what is equal shall be equal.
    return Sample(*(np.round(values, 12) for values in (one.mean(axis=1), others, shares.mean(axis=1))))


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
    """
    options = _options(rules, num_players, deals, seed, episode, progress)
    one = make(policy)
    others = [make(field) for field in fields]
    return [
        _compare(one, field, one_against(one, field, **options), one_against(field, field, **options), options)
        for field in others
    ]


def round_robin(
    policies: Sequence[str | Policy],
    *,
    rules: Rules | str | Mapping[str, Any] = "cucumber",
    num_players: int = 4,
    deals: int | range = 1000,
    seed: int = 0,
    episode: str = "round",
    progress: Progress | None = None,
) -> RoundRobin:
    """Every policy against n−1 of every other, all on the same deals.

    Reports ``len(policies) ** 2 * deals`` to `progress`. Arguments and errors are those of `compare_with`.
    """
    options = _options(rules, num_players, deals, seed, episode, progress)
    made = [make(policy) for policy in policies]
    samples = [[one_against(one, field, **options) for field in made] for one in made]
    against = [
        [_compare(one, field, samples[i][j], samples[j][j], options) for j, field in enumerate(made)]
        for i, one in enumerate(made)
    ]
    pairs = [
        Pair(made[i].name, made[j].name, _same_tables(samples[i][j], samples[j][i]))
        for i in range(len(made))
        for j in range(i + 1, len(made))
    ]
    return RoundRobin([policy.name for policy in made], episode, against, pairs)


def check_deals(deals: int | range) -> int | range:
    """`deals`, refused unless there are enough for an interval."""
    count = len(deals) if isinstance(deals, range) else deals
    if isinstance(count, int | np.integer) and count < 2:
        raise ValueError(f"deals={deals!r} is out of range; allowed: 2 and more (one has no interval)")
    return deals


def _options(
    rules: Rules | str | Mapping[str, Any],
    num_players: int,
    deals: int | range,
    seed: int,
    episode: str,
    progress: Progress | None,
) -> dict[str, Any]:
    """The arguments of `one_against`, with what all tables share checked once."""
    rules = Rules.of(rules)
    return {
        "rules": rules,
        "num_players": rules.check_players(num_players),
        "deals": check_deals(deals),
        "seed": seed,
        "episode": episode,
        "progress": progress,
    }


def _compare(one: Policy, field: Policy, sample: Sample, own: Sample, options: dict[str, Any]) -> Comparison:
    return Comparison(
        policy=one.name,
        field=field.name,
        num_players=options["num_players"],
        episode=options["episode"],
        score=mean_interval(sample.one),
        own=mean_interval(own.one),
        difference=paired_difference(sample.one, own.one),
        share=mean_interval(sample.share),
    )


def _same_tables(first: Sample, second: Sample) -> Estimate:
    """Difference of two policies from the one's table among the other's and the other's among the one's."""
    return mean_interval((first.one - first.others + second.others - second.one) / 2)
