"""What exact measures say of a policy. A report whose numbers contradict each other is never made.

Every value is exact (up to rounding): all deals and all plays are covered, none is sampled. Seat 0 leads the first
trick. Only one round is looked at. Sudden death, like the rest of a match, is no part of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TOLERANCE = 1e-9
"""Points by which exact values may differ through rounding."""

CLAIM = (
    "Each gain is that of one seat that deviates alone, all others fixed. No equilibrium is claimed: with more than "
    "two players even a policy that no seat gains by leaving may lose to others who play otherwise."
)
"""What the numbers of a `Deviation` do not say; part of every report."""


@dataclass(frozen=True)
class Measured:
    """Exact facts about a policy in all seats of a table.

    The utility of a seat is the mean penalty of the others minus its own, in points (for two players: the opponent's
    penalty minus its own), so all seats together have none.

    Attributes:
        values: Utility of each seat when the policy plays all of them; seat 0 leads.
        best_response: Utility of each seat when it plays a best response and the policy all others.
        baselines: By name, the utility of each seat when it plays a scripted policy and the policy all others.
        information_states: Size of the game: information states that play can reach by the rules, but for those of
            the last trick, which is forced.
        decisions: Those with more than one legal card.
        seconds: Time it took.

    Raises:
        ArithmeticError: the values contradict each other, says which; never by a policy, only by a defect here. All
            must be finite, `values` sum to zero, and each best response be at least what the policy itself and every
            baseline win in that seat.
    """

    values: tuple[float, ...]
    best_response: tuple[float, ...]
    baselines: Mapping[str, tuple[float, ...]]
    information_states: int
    decisions: int
    seconds: float

    def __post_init__(self) -> None:
        played = {"the policy itself": self.values, **self.baselines}
        for name, values in {"best responses": self.best_response, **played}.items():
            if not all(map(math.isfinite, values)):
                raise ArithmeticError(f"values {values} of {name} are not finite")
        if not abs(sum(self.values)) <= TOLERANCE:
            raise ArithmeticError(f"values {self.values} of a zero-sum game do not sum to zero")
        for name, values in played.items():
            for seat, (best, value) in enumerate(zip(self.best_response, values, strict=True)):
                if not best >= value - TOLERANCE:
                    raise ArithmeticError(f"best response of seat {seat}, {best}, is worse than {name}, {value}")

    @property
    def gains(self) -> tuple[float, ...]:
        """What each seat gains by its best response, all others fixed, in points."""
        return tuple(best - value for best, value in zip(self.best_response, self.values, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """As JSON-friendly values."""
        return {
            "best_response": list(self.best_response),
            "baselines": {name: list(values) for name, values in self.baselines.items()},
            "information_states": self.information_states,
            "decisions": self.decisions,
            "seconds": self.seconds,
        }


@dataclass(frozen=True)
class Report(Measured):
    """Exact facts about a policy in both seats of a table of two; see `Measured`.

    NashConv is the sum of the best responses. The values of the seats, each found by itself, sum to zero (within
    `TOLERANCE`), so it is the sum of the gains as well.

    Raises:
        ArithmeticError: as `Measured`, or a NashConv below zero.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.nash_conv >= -TOLERANCE:
            raise ArithmeticError(f"NashConv {self.nash_conv} is below zero")

    @property
    def value(self) -> float:
        """Utility of the seat that leads first when the policy plays both seats, in points."""
        return self.values[0]

    @property
    def nash_conv(self) -> float:
        """What both best responses win together, in points: 0 for an equilibrium."""
        return sum(self.best_response)

    def to_dict(self) -> dict[str, Any]:
        """As JSON-friendly values."""
        return {"value": self.value, "nash_conv": self.nash_conv, **super().to_dict()}


@dataclass(frozen=True)
class Deviation(Measured):
    """Exact facts about a policy in all seats of a table, see `Measured`; they claim no equilibrium, see `CLAIM`."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON-friendly values."""
        return {"values": list(self.values), "gains": list(self.gains), "claim": CLAIM, **super().to_dict()}
