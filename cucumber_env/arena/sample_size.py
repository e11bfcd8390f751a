"""How many deals a comparison takes, before it is played.

All of it is about the two-sided paired t test of `cucumber_env.arena.statistics.paired_difference`: whether
its interval leaves zero out. What has to be known beforehand is the standard deviation of the difference from deal
to deal, from a few hundred deals. For the difference of two policies at the same tables of four it is about
1.5 points, for two players 4 to 5. Powers and differences need scipy.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from cucumber_env.arena.optional import optional
from cucumber_env.arena.statistics import check_confidence, student_t

MOST = 1 << 40
"""More deals than that are not an answer."""


def power_of(difference: float, deviation: float, deals: int, *, confidence: float = 0.95) -> float:
    """Chance that the interval of so many deals leaves zero out when the true difference is `difference`.

    Exact for normal numbers: T² has the noncentral F distribution with 1 and deals − 1 degrees of freedom and
    noncentrality deals (difference / deviation)², the square of the noncentral t (Cohen, "Statistical power analysis
    for the behavioral sciences", 1988).

    Args:
        difference: Of the means, in the unit of the score; its sign does not matter.
        deviation: Standard deviation of the difference from deal to deal, in the same unit.
        deals: How many, at least 2.
        confidence: Of the interval.

    Raises:
        ImportError: scipy is not installed.
        ValueError: an argument out of range.
    """
    if not math.isfinite(difference):
        raise ValueError(f"difference={difference!r} is out of range; allowed: finite numbers")
    _check_positive("deviation", deviation)
    _check_deals(deals)
    check_confidence(confidence)
    if difference == 0:
        return 1 - confidence
    stats = optional("scipy.stats")
    critical = stats.t.ppf((1 + confidence) / 2, deals - 1)
    return float(stats.ncf.sf(critical**2, 1, deals - 1, deals * (difference / deviation) ** 2))


def deals_needed(difference: float, deviation: float, *, confidence: float = 0.95, power: float = 0.9) -> int:
    """Fewest deals that show a true difference of that size with chance `power`.

    >>> deals_needed(0.1, 1.5)
    2367

    Args:
        difference, deviation, confidence: As in `power_of`; the difference not 0.
        power: Chance that the interval leaves zero out, above 1 − confidence.

    Raises:
        ImportError: scipy is not installed.
        ValueError: an argument out of range, or more deals than `MOST`.
    """
    if difference == 0:
        raise ValueError(f"difference={difference!r} is out of range; no number of deals shows that there is none")
    _check_power(power, confidence)
    return _fewest(lambda deals: power_of(difference, deviation, deals, confidence=confidence) >= power)


def detectable(deals: int, deviation: float, *, confidence: float = 0.95, power: float = 0.9) -> float:
    """Smallest true difference that so many deals show with chance `power`; the counterpart of `deals_needed`.

    Raises:
        ImportError: scipy is not installed.
        ValueError: an argument out of range, as in `deals_needed`.
    """
    _check_positive("deviation", deviation)
    _check_power(power, confidence)

    def lacking(effect: float) -> float:
        return power_of(effect, 1.0, deals, confidence=confidence) - power

    enough = 1.0
    while lacking(enough) < 0:
        enough *= 2
    return deviation * float(optional("scipy.optimize").brentq(lacking, 0.0, enough, xtol=1e-12))


def deals_for(half_width: float, deviation: float, *, confidence: float = 0.95) -> int:
    """Fewest deals whose interval of a mean is at most ± `half_width`, at that standard deviation from deal to deal.

    >>> deals_for(0.05, 1.5)
    3460

    Raises:
        ValueError: an argument out of range, or more deals than `MOST`.
    """
    _check_positive("half_width", half_width)
    _check_positive("deviation", deviation)
    return _fewest(
        lambda deals: student_t(deals - 1, confidence=confidence) * deviation <= half_width * math.sqrt(deals)
    )


def _fewest(enough: Callable[[int], bool]) -> int:
    """The least number of deals, from 2 on, that is enough; once enough, more are enough as well."""
    low, high = 1, 2
    while not enough(high):
        low, high = high, 2 * high
        if high > MOST:
            raise ValueError(f"more than {MOST} deals: the difference or half_width asked for is too small")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _check_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name}={value!r} is out of range; allowed: finite numbers above 0")


def _check_deals(deals: int) -> None:
    if isinstance(deals, bool) or not isinstance(deals, int | np.integer) or deals < 2:
        raise ValueError(f"deals={deals!r} must be an integer ≥ 2")


def _check_power(power: float, confidence: float) -> None:
    least = 1 - check_confidence(confidence)
    if not least < power < 1:
        raise ValueError(
            f"power={power!r} is out of range; allowed: above {least:.6g} (what no difference at all gives) and below 1"
        )
