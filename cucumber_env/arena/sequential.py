"""A test that may look after every deal and stop when the answer is clear.

An interval of `mean_interval` promises its confidence for a number of deals fixed beforehand. Who looks after
every deal and stops at the first interval without zero is wrong far more often. A confidence sequence covers the
true mean at all times at once, so that one may look whenever and stop for any reason.

>>> sequence = ConfidenceSequence(14, margin=0.5)
>>> sequence.add([2.0, -1.0, 3.0]).sign
0
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cucumber_env.arena.statistics import Interval, check_confidence

LARGEST_BET = 0.5
"""Upper limit of the weights, any number below 1; the one that Waudby-Smith and Ramdas recommend."""


@dataclass
class ConfidenceSequence:
    """Intervals for the mean of bounded numbers, such as the difference of two policies by deal, valid at all times.

    The predictable plug-in empirical Bernstein confidence sequence of Waudby-Smith and Ramdas, "Estimating means of
    bounded random variables by betting" (Journal of the Royal Statistical Society B, 2024), Theorem 2. Of the
    sequences there it is the one in closed form: eight numbers say all about the deals so far, a deal costs the same
    early and late, and the interval adapts to the variance that is found. Betting with a hedged capital is
    tighter for few deals (about half of them for differences above a quarter of a standard deviation), but keeps its
    capital for each of many possible means.

    The only assumption is that every number lies within the bound and has, given those before, the same mean:
    deals one after the other, as they are numbered. The chance that the mean ever leaves the intervals is at
    most 1 − confidence. The price is deals. Compared with `cucumber_env.arena.sample_size.deals_needed` at a power
    of 0.9, differences of 0.03, 0.1 and 0.3 standard deviations took 1.4, 1.8 and 4.3 times as many on average, and
    every run ended (differences by deal as careful and control have them at tables of four, bound 14, 200 runs
    each). The larger the difference, the more it is the bound that counts and not the variance.

    `estimate` is what all intervals so far have in common. Should they have nothing in common, which happens less
    often than the true mean leaves one, it is the gap between them.

    Args:
        bound: Largest absolute value a number can have, above 0: 14 for differences of penalties of a round
            in which an Ace costs 14, 2 for differences of outcomes.
        confidence: How often all intervals together cover the true mean.
        margin: Differences not larger than this do not matter: `decided` is also true once the mean lies within ±
            `margin`. None to wait for a sign, which never comes for policies that play alike.

    The other fields are the state, not meant to be given: see `from_dict`.

    Raises:
        ValueError: an argument out of range.
    """

    bound: float
    confidence: float = 0.95
    margin: float | None = None
    deals: int = 0
    total: float = 0.0
    """Sum of the numbers, brought to 0…1 like all that follows."""
    squares: float = 0.0
    """Sum of squared deviations, each from the mean estimated with its deal."""
    weight: float = 0.0
    """Sum of the weights λ."""
    weighted: float = 0.0
    """Sum of the numbers times their weights."""
    spent: float = 0.0
    """Sum of the squared deviations from the mean estimated before their deal, times ψ(λ) = −log(1 − λ) − λ."""
    low: float = 0.0
    """Highest lower end so far."""
    high: float = 1.0
    """Lowest upper end so far."""

    def __post_init__(self) -> None:
        check_confidence(self.confidence)
        if not (math.isfinite(self.bound) and self.bound > 0):
            raise ValueError(f"bound={self.bound!r} is out of range; allowed: finite numbers above 0")
        if self.margin is not None and not 0 < self.margin < self.bound:
            raise ValueError(
                f"margin={self.margin!r} is out of range; allowed: above 0 and below bound={self.bound}, or None"
            )

    def add(self, values: ArrayLike) -> ConfidenceSequence:
        """Take the numbers of further deals, float ``[deals]`` in the order of the deals; returns itself.

        It does not matter how they are divided over calls, to the last bit.

        Raises:
            ValueError: another shape, or a number that is not finite or outside ± `bound`; nothing is taken then.
        """
        numbers = self._scaled(values)
        count = self.deals + np.arange(len(numbers) + 1)  # before each deal, and after the last
        totals = _running(self.total, numbers)
        means = (totals + 1 / 2) / (count + 1)
        squares = _running(self.squares, (numbers - means[1:]) ** 2)
        variances = (squares + 1 / 4) / (count + 1)
        stake = math.log(2 / (1 - self.confidence))
        bets = np.sqrt(2 * stake / (variances[:-1] * count[1:] * np.log1p(count[1:])))
        bets = np.minimum(bets, LARGEST_BET)
        weights = _running(self.weight, bets)
        weighted = _running(self.weighted, bets * numbers)
        spent = _running(self.spent, (numbers - means[:-1]) ** 2 * (-np.log1p(-bets) - bets))
        centres, radii = weighted[1:] / weights[1:], (stake + spent[1:]) / weights[1:]
        self.low = float((centres - radii).max(initial=self.low))
        self.high = float((centres + radii).min(initial=self.high))
        self.deals += len(numbers)
        self.total, self.squares = float(totals[-1]), float(squares[-1])
        self.weight, self.weighted, self.spent = float(weights[-1]), float(weighted[-1]), float(spent[-1])
        return self

    @property
    def estimate(self) -> Interval:
        """Mean of the deals so far (0 before the first), with the interval; the mean is moved into it if need be."""
        low, high = sorted((2 * end - 1) * self.bound for end in (self.low, self.high))
        mean = (2 * self.total / self.deals - 1) * self.bound if self.deals else 0.0
        return Interval(min(max(mean, low), high), low, high, self.deals)

    @property
    def sign(self) -> int:
        """1 or -1 once it is clear that the mean is above or below zero, else 0."""
        return self.estimate.sign

    @property
    def alike(self) -> bool:
        """Whether it is clear that the mean is not farther from zero than `margin`."""
        estimate = self.estimate
        return self.margin is not None and max(-estimate.low, estimate.high) <= self.margin

    @property
    def decided(self) -> bool:
        """Whether the answer is clear: a sign, or no difference that matters."""
        return self.sign != 0 or self.alike

    def to_dict(self) -> dict[str, Any]:
        """Settings and state, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> ConfidenceSequence:
        """A sequence that goes on where `to_dict` was called.

        Raises:
            ValueError: `state` lacks a field or has others, by name, or as the class.
        """
        names = {field.name for field in fields(cls)}
        if names != set(state):
            raise ValueError(f"state has the fields {sorted(state)}; expected {sorted(names)}")
        return cls(**state)

    def _scaled(self, values: ArrayLike) -> np.ndarray:
        """`values` brought from −bound…bound to 0…1, float64 ``[deals]``, checked."""
        numbers = np.asarray(values, np.float64)
        if numbers.ndim != 1:
            raise ValueError(f"values of shape {numbers.shape}; expected one number per deal")
        wrong = ~(np.abs(numbers) <= self.bound)
        if wrong.any():
            place = int(np.argmax(wrong))
            raise ValueError(f"values[{place}]={numbers[place]} is out of range; allowed: -{self.bound}…{self.bound}")
        return (1 + numbers / self.bound) / 2


def _running(start: float, steps: np.ndarray) -> np.ndarray:
    """`start` and the sums after each step, added one by one, ``[len(steps) + 1]``."""
    return np.cumsum(np.concatenate([[start], steps]))
