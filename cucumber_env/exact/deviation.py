"""Tables of any size: what a policy is worth when it plays in all seats, and what one seat alone gains by deviating.

Nothing here speaks of equilibria, see `CLAIM`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cucumber_env.exact.measure import BATCH, Evaluation, Progress, ask, check_utilities
from cucumber_env.exact.tree import build, check_rules
from cucumber_env.policies import Policy, make
from cucumber_env.rules import Rules

CLAIM = (
    "Each gain is that of one seat that deviates alone, all others fixed. No equilibrium is claimed: with more than "
    "two players even a policy that no seat gains by leaving may lose to others who play otherwise."
)
"""What the numbers of a `Deviation` do not say; part of every report."""


@dataclass(frozen=True)
class Deviation:
    """Exact facts about a policy in all seats of a table; they claim no equilibrium, see `CLAIM`.

    The utility of a seat is the reward ``zero_sum``: the mean penalty of the others minus its own, in points. Seat 0
    leads the first trick.

    Attributes:
        values: Utility of each seat when the policy plays all of them.
        best_response: Utility of each seat when it plays a best response and the policy all others.
        information_states: Size of the game: information states that play can reach by the rules, but for those of
            the last trick, which is forced.
        decisions: Those with more than one legal card.
        seconds: Time it took.

    Raises:
        ArithmeticError: the values contradict each other; never by a policy, only by a defect here.
    """

    values: tuple[float, ...]
    best_response: tuple[float, ...]
    information_states: int
    decisions: int
    seconds: float

    def __post_init__(self) -> None:
        check_utilities(self.values, self.best_response)

    @property
    def gains(self) -> tuple[float, ...]:
        """What each seat gains by its best response, all others fixed, in points."""
        return tuple(best - value for best, value in zip(self.best_response, self.values, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """As JSON-friendly values."""
        return {
            "values": list(self.values),
            "best_response": list(self.best_response),
            "gains": list(self.gains),
            "claim": CLAIM,
            "information_states": self.information_states,
            "decisions": self.decisions,
            "seconds": self.seconds,
        }


def deviation(
    rules: Rules | str | Mapping[str, Any],
    policy: Policy | str,
    num_players: int,
    *,
    batch: int = BATCH,
    progress: Progress | None = None,
) -> Deviation:
    """What `policy` is worth in each seat when it plays all of them, and what each seat gains by deviating alone.

    All deals and all plays are covered, none is sampled. No equilibrium is claimed, see `CLAIM`.

    Args:
        rules: Rules with a fixed hand size, a preset with changes such as ``"cucumber,hand_size=2"``, or a mapping.
        policy: A policy or the name of one, asked as in `cucumber_env.exact.exploitability`.
        num_players: Seats at the table.
        batch: Decisions asked at a time.
        progress: Told of the share of the work that is done.

    Raises:
        ValueError, TypeError: an argument out of range (see `check_rules`), a policy that only samples, or one that
            answers what is no distribution over the legal actions.

    Example:
        >>> report = deviation("cucumber,hand_size=2", "lowest", num_players=3)
        >>> [f"{gain:.5f}" for gain in report.gains]
        ['6.01825', '3.59154', '1.86840']
    """
    started = time.perf_counter()
    tree = build(check_rules(rules, num_players), num_players)
    best, values = Evaluation(tree, ask(tree, make(policy), batch), progress).run()
    return Deviation(values, best, tree.information_states, tree.decisions, time.perf_counter() - started)
