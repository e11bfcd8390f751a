"""Two policies, until it is clear which is better."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cucumber_env.arena.compare import Sample, one_table, same_tables
from cucumber_env.arena.sequential import ConfidenceSequence
from cucumber_env.arena.tables import PART, play_tables, sound
from cucumber_env.policies import Policy, make
from cucumber_env.rules import Rules

MOST = 1_000_000
"""Deals after which a duel ends undecided."""


def duel(
    first: str | Policy,
    second: str | Policy,
    *,
    rules: Rules | str | Mapping[str, Any] = "cucumber",
    num_players: int = 4,
    seed: int = 0,
    episode: str = "round",
    confidence: float = 0.95,
    margin: float | None = None,
    most: int = MOST,
    progress: Callable[[ConfidenceSequence], object] | None = None,
) -> ConfidenceSequence:
    """The mean score of the first minus the second's at the same tables, to be looked at after every part of deals.

    One first among seconds and one second among firsts, in all rotations, deal after deal until the sign of the
    difference is clear, or that it is not larger than `margin`, or `most` deals are played.

    Args:
        first, second: Policies, or names of them.
        rules, num_players, seed, episode: As `match.play`.
        confidence: How often an answer is right, however often one looks.
        margin: Differences up to this do not matter, in the unit of the score; None: wait for a sign.
        most: Deals, at most.
        progress: Shown the test after every part.

    Raises:
        ValueError, TypeError: as `play_tables` and `ConfidenceSequence`.
        TableError: a policy failed.

    Example:
        >>> duel("lowest", "highest", rules="three_card", num_players=2).sign
        1
    """
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise ValueError(f"most={most!r} must be an integer ≥ 1")
    rules = Rules.of(rules)
    test = ConfidenceSequence(bound(rules, episode), confidence=confidence, margin=margin)
    one, other = make(first), make(second)
    tables = [one_table(one, other, num_players), one_table(other, one, num_players)]
    while not test.decided and test.deals < most:
        deals = range(test.deals, min(test.deals + PART, most))
        played = sound(play_tables(tables, rules=rules, deals=deals, seed=seed, episode=episode))
        mine, theirs = same_tables(*map(Sample.of, played))
        test.add(mine - theirs)
        if progress is not None:
            progress(test)
    return test


def bound(rules: Rules, episode: str) -> float:
    """Largest difference of two scores on a deal: of penalties in points, or of outcomes."""
    return 2.0 if episode == "match" else float(max(rules.points_of(rank) for rank in rules.ranks))
