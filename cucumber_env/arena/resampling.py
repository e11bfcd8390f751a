"""Intervals by resampling deals: for numbers whose distribution has no formula.

A bootstrap draws as many deals as there are, with replacement, again and again, and looks at how the number
varies. For plain means `cucumber_env.arena.statistics.mean_interval` says the same in less time. Needs scipy.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cucumber_env.arena.optional import optional
from cucumber_env.arena.statistics import Interval, by_deal, check_confidence

CORRECTED = 2000
"""Up to so many deals intervals are corrected (BCa). The work for that grows with their square, and what it
corrects shrinks with 1 / deals."""

_TOGETHER = 1 << 21
"""Numbers drawn at a time."""


def bootstrap(
    values: ArrayLike,
    statistic: Callable[..., Any],
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Interval of any statistic, by resampling deals.

    Bias-corrected and accelerated (Efron 1987, by `scipy.stats.bootstrap`) up to `CORRECTED` deals; beyond, and where
    the correction is not defined, the plain percentiles. If all deals are alike it is exactly their value.

    Args:
        values: float ``[deals]``, or ``[deals, k]`` for k numbers of each deal, which stay together.
        statistic: Called with k arrays and the axis of the deals, as in ``numpy.mean(values, axis=-1)``.
        confidence: How often such an interval covers the true value, given enough deals.
        resamples: How many times the deals are drawn, at least 100.
        seed: Of the draws; the same seed gives the same interval.

    Raises:
        ImportError: scipy is not installed.
        ValueError: fewer than two deals, another shape, a number that is not finite (in the values, or of the
            statistic), or an argument out of range.
    """
    numbers = _rows(values)
    check_confidence(confidence)
    _check_integer("resamples", resamples, 100)
    _check_integer("seed", seed, 0)
    columns = tuple(np.ascontiguousarray(numbers.T))
    measured = float(statistic(*columns, axis=-1))
    if not np.isfinite(measured):
        raise ValueError(f"the statistic of all deals is {measured}, which has no interval")
    if (numbers == numbers[0]).all():
        return Interval(measured, measured, measured, len(numbers))
    with warnings.catch_warnings():
        # Where the correction is not defined scipy warns and answers NaN; that is dealt with below.
        warnings.simplefilter("ignore", RuntimeWarning)
        result = optional("scipy.stats").bootstrap(
            columns,
            statistic,
            paired=True,
            vectorized=True,
            axis=-1,
            n_resamples=resamples,
            batch=max(1, _TOGETHER // len(numbers)),
            confidence_level=confidence,
            method="BCa" if len(numbers) <= CORRECTED else "percentile",
            rng=np.random.default_rng(seed),
        )
    drawn = result.bootstrap_distribution
    if not np.isfinite(drawn).all():
        raise ValueError(f"the statistic is not finite on {np.count_nonzero(~np.isfinite(drawn))} of {resamples} draws")
    ends = np.array(result.confidence_interval)
    if not np.isfinite(ends).all():
        ends = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(measured, float(ends[0]), float(ends[1]), len(numbers))


def interquartile_mean(
    values: ArrayLike, *, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Interval:
    """Mean of the middle half of the deals, with an interval by `bootstrap`.

    The lowest and the highest quarter are left out, so that rare extremes do not count (Agarwal and others, "Deep
    reinforcement learning at the edge of the statistical precipice", 2021). It answers another question than the
    mean: in this game points are rare and large, and the rare deals decide who wins. The scores of somebody who
    pays in less than a quarter of all deals have the interquartile mean 0. Use it beside the mean, for differences
    or outcomes, to see whether a few deals make up all of it.

    Args:
        values: float ``[deals]``, at least two.
        confidence, resamples, seed: As in `bootstrap`.

    Raises:
        ImportError, ValueError: as `bootstrap`.
    """
    trim_mean = optional("scipy.stats").trim_mean
    return bootstrap(
        by_deal(values),
        lambda numbers, axis: trim_mean(numbers, 0.25, axis=axis),
        confidence=confidence,
        resamples=resamples,
        seed=seed,
    )


def _rows(values: ArrayLike) -> np.ndarray:
    """`values` as float64 ``[deals, k]``, checked."""
    numbers = np.asarray(values, np.float64)
    if numbers.ndim != 2:
        return by_deal(numbers)[:, None]
    if len(numbers) < 2 or not numbers.shape[1]:
        raise ValueError(f"values of shape {numbers.shape}; expected [deals, k] with two or more deals and k ≥ 1")
    if not np.isfinite(numbers).all():
        raise ValueError(f"values hold {np.count_nonzero(~np.isfinite(numbers))} numbers that are not finite")
    return numbers


def _check_integer(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name}={value!r} must be an integer ≥ {least}")
