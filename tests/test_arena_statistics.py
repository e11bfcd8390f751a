"""Intervals over deals: against scipy, by hand, and by how often they cover a truth that is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from brute_force import BruteForce
from scipy import integrate, stats

from cucumber_env import arena
from cucumber_env.arena.resampling import CORRECTED, bootstrap, interquartile_mean
from cucumber_env.arena.sample_size import deals_for, deals_needed, detectable, power_of
from cucumber_env.arena.statistics import (
    Estimate,
    Interval,
    mean_interval,
    paired_difference,
    probability_of_improvement,
    simultaneous,
    stratified,
    student_t,
)
from cucumber_env.rules import Rules

SMALL = "cucumber,hand_size=2,ranks=9TJQKA,copies=2"
"""Rules under which every deal can be listed."""


def cards(generator: np.random.Generator, *shape: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores like those of the game: 2 to 14 points in 30 % and 20 % of deals, the same deals as far as they go."""
    luck, points = generator.random(shape), generator.integers(2, 15, shape).astype(np.float64)
    return (luck < 0.3) * points, (luck < 0.2) * points


@cache
def listed() -> tuple[np.ndarray, np.ndarray]:
    """All deals of `SMALL` for two: lowest's penalty minus highest's, mean of both seatings, and its probability."""
    rules = Rules.of(SMALL)
    game = BruteForce(rules)
    differences: dict[float, float] = {}
    for start, chance in game.starts():
        both = []
        for seat, choices in ((0, (min, max)), (1, (max, min))):
            history = start
            while history.turn is not None:
                history = game.play(history, choices[history.turn](game.legal(history)))
            both.append(-game.utility(history, seat))
        difference = sum(both) / 2
        differences[difference] = differences.get(difference, 0.0) + chance
    values, chances = zip(*sorted(differences.items()), strict=True)
    return np.array(values), np.array(chances)


def middle_half(values: np.ndarray, chances: np.ndarray) -> float:
    """Mean of a discrete distribution between its quartiles."""
    ends = np.cumsum(chances)
    inside = np.clip(np.minimum(ends, 0.75) - np.maximum(ends - chances, 0.25), 0, None)
    return float(values @ inside) / 0.5


def played(table: tuple[str, ...], deals: int, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """Scores of the first policy of a table and the mean of the others, by deal."""
    result = arena.play(list(table), deals=deals, **options)
    one = result.of(0, result.scores).mean(axis=1)
    others = (result.scores.sum(axis=(1, 2)) / len(table) - one) / (len(table) - 1)
    return np.round(one, 12), np.round(others, 12)


def coverage(intervals: list[Estimate] | list[Interval], truth: float) -> float:
    """Share of the intervals that the truth lies in, up to rounding."""
    return float(np.mean([each.low - 1e-9 <= truth <= each.high + 1e-9 for each in intervals]))


# By hand and against other libraries


def test_stratified_by_hand() -> None:
    estimate = stratified([[1, 2, 3], [10, 14]], [0.75, 0.25])
    # Means 2 and 12, variances of the means 1/3 and 8/2; weighted 0.1875 and 0.25.
    freedom = 0.4375**2 / (0.1875**2 / 2 + 0.25**2 / 1)
    assert (estimate.mean, estimate.deals) == (4.5, 5)
    assert 2 < freedom < 3, "then that of two degrees"
    assert estimate.half_width == pytest.approx(stats.t.ppf(0.975, 2) * math.sqrt(0.4375))
    assert stratified([[1, 2, 3], [10, 14]]).mean == 7
    assert stratified([[5, 5], [7, 7, 7]]) == Estimate(6.0, 0.0, 5)
    assert stratified([[1, 2, 4]], [1]).half_width == pytest.approx(mean_interval([1, 2, 4]).half_width)


def test_a_difference_of_two_strata_is_welchs_test() -> None:
    generator = np.random.default_rng(1)
    first, second = generator.normal(1, 3, 17), generator.normal(0, 1, 40)
    for confidence in (0.8, 0.95, 0.99):
        expected = stats.ttest_ind(first, second, equal_var=False).confidence_interval(confidence)
        estimate = stratified([first, second], [1, -1], confidence=confidence)
        assert (estimate.low, estimate.high) == pytest.approx(tuple(expected), rel=1e-4)


def test_students_t_between_whole_degrees() -> None:
    assert student_t(1.9) == student_t(1) == pytest.approx(stats.t.ppf(0.975, 1))
    assert student_t(2.9) == student_t(2) == pytest.approx(stats.t.ppf(0.975, 2))
    assert student_t(17.3) == pytest.approx(stats.t.ppf(0.975, 17.3), rel=1e-5)


def test_probability_of_improvement_by_hand() -> None:
    first, second = [0, 3, 5, 2], [4, 3, 2, 9]  # better, tied, worse, better
    interval = probability_of_improvement(first, second, lower_is_better=True)
    assert (interval.mean, interval.deals) == (0.625, 4)
    # With one more won and one more lost, 3 of 6 deals are won and 2 lost.
    half = 1.959964 * math.sqrt((5 / 6 - (1 / 6) ** 2) / 6)
    assert (interval.low, interval.high) == pytest.approx(((1 + 1 / 6 - half) / 2, (1 + 1 / 6 + half) / 2))
    turned = probability_of_improvement(first, second, lower_is_better=False)
    assert (turned.mean, turned.low, turned.high) == pytest.approx((0.375, 1 - interval.high, 1 - interval.low))
    swapped = probability_of_improvement(second, first, lower_is_better=True)
    assert swapped == turned


def test_deals_that_all_end_alike_do_not_make_sure() -> None:
    for scores, mean, low, high in (
        ([1.0] * 20, 1.0, 0.8, 1.0),
        ([-1.0] * 20, 0.0, 0.0, 0.2),
        ([0] * 20, 0.5, 0.4, 0.6),
    ):
        interval = probability_of_improvement(scores, [0] * 20, lower_is_better=False)
        assert interval.mean == mean
        assert low <= interval.low < interval.high <= high


@pytest.mark.parametrize("shape", [(60,), (60, 2), (CORRECTED + 1,)])
def test_bootstrap_is_that_of_scipy(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(2).exponential(size=shape)

    def statistic(*columns: np.ndarray, axis: int) -> np.ndarray:
        return columns[0].mean(axis=axis) / columns[-1].std(axis=axis)

    expected = stats.bootstrap(
        tuple(values.reshape(len(values), -1).T),
        statistic,
        paired=True,
        n_resamples=300,
        confidence_level=0.9,
        method="BCa" if len(values) <= CORRECTED else "percentile",
        rng=np.random.default_rng(7),
    ).confidence_interval
    interval = bootstrap(values, statistic, confidence=0.9, resamples=300, seed=7)
    assert (interval.low, interval.high) == pytest.approx(tuple(expected), rel=1e-12)
    assert interval.mean == statistic(*values.reshape(len(values), -1).T, axis=0)


def test_interquartile_mean_leaves_out_a_quarter_on_both_sides() -> None:
    values = [100, 1, 2, 3, 4, -50, 0, 9]
    assert interquartile_mean(values, resamples=100).mean == stats.trim_mean(values, 0.25) == 2.5
    interval = interquartile_mean(np.arange(101.0))
    assert interval.low < 50 < interval.high
    assert interval == interquartile_mean(np.arange(101.0)), "the seed is fixed"


def test_what_hardly_varies_has_an_interval() -> None:
    """Few resamples move the statistic, or none: no warning, no NaN."""
    for values in ([0.0] * 39 + [7.0], [0.0] * 20 + [1.0] * 20, [0.0] * 29 + [3.0] * 11):
        interval = interquartile_mean(values, resamples=200)
        assert interval.low <= interval.mean <= interval.high
    assert interquartile_mean([0.0] * 39 + [7.0]).to_dict() == {"mean": 0, "low": 0, "high": 0, "deals": 40}


# Identical policies


def test_policies_that_play_alike_differ_by_exactly_nothing() -> None:
    scores, others = played(("careful", "careful"), 50, rules="cucumber", seed=3)
    exactly = (0.0, 0.0, 0.0)
    for estimate in (
        paired_difference(scores, others),
        stratified([scores - others, others - scores], [0.5, 0.5]),
        bootstrap(scores - others, np.mean),
        bootstrap(np.stack([scores, others], axis=1), lambda a, b, axis: np.mean(a - b, axis=axis)),
        interquartile_mean(scores - others),
    ):
        assert (estimate.mean, estimate.low, estimate.high) == exactly
        assert estimate.sign == 0
    for lower_is_better in (True, False):
        interval = probability_of_improvement(scores, others, lower_is_better=lower_is_better)
        assert interval.mean == 0.5
        assert 0.5 - interval.low == pytest.approx(interval.high - 0.5)
        assert interval.high < 0.53


# Coverage


def test_intervals_cover_the_truth_of_card_like_scores() -> None:
    """The two policies of `cards`: 2.4 points and 1.6 on average, and the first is worse in a tenth of deals."""
    generator = np.random.default_rng(0)
    trials = 4000
    first, second = cards(generator, trials, 800)
    apart, _ = cards(generator, trials, 250)
    found = {
        "paired": coverage([paired_difference(*pair) for pair in zip(first, second, strict=True)], 0.8),
        "stratified": coverage(
            [stratified(kinds, [0.3, 0.7]) for kinds in zip(apart, second, strict=True)], 0.3 * 2.4 + 0.7 * 1.6
        ),
        "improvement": coverage(
            [probability_of_improvement(*pair, lower_is_better=True) for pair in zip(first, second, strict=True)], 0.45
        ),
    }
    assert found == pytest.approx(dict.fromkeys(found, 0.95), abs=0.015)


def test_intervals_cover_the_truth_of_deals_that_can_all_be_listed() -> None:
    """Deals of the arena, 200 at a time, against the sum over all deals there are by the naive rules."""
    values, chances = listed()
    lowest, highest = played(("lowest", "highest"), 400_000, rules=SMALL, seed=4)
    parts = np.stack([lowest, highest], axis=1).reshape(2000, 200, 2)
    truths = {
        "mean": float(values @ chances),
        "improvement": float(chances[values < 0].sum() + chances[values == 0].sum() / 2),
        "middle": middle_half(values, chances),
    }
    assert len(values) > 10
    assert 0.01 < truths["improvement"] < 0.5
    intervals: dict[str, list[Any]] = {
        "mean": [paired_difference(part[:, 0], part[:, 1]) for part in parts],
        "improvement": [probability_of_improvement(part[:, 0], part[:, 1], lower_is_better=True) for part in parts],
        "middle": [interquartile_mean(part, resamples=1000) for part in (lowest - highest)[:50_000].reshape(1000, 50)],
    }
    found = {name: coverage(each, truths[name]) for name, each in intervals.items()}
    assert found.pop("improvement") > 0.935, "the interval of a share close to 0 is wider than it needs to be"
    assert found == pytest.approx(dict.fromkeys(found, 0.95), abs=0.015)


@pytest.mark.long
@pytest.mark.parametrize(
    ("table", "rules"),
    [
        (("lowest", "highest"), "cucumber,hand_size=3"),
        (("careful", "control", "control", "control"), "cucumber"),
        (("random", "careful", "careful", "careful"), "cucumber"),
    ],
)
def test_intervals_cover_the_truth_of_real_play(table: tuple[str, ...], rules: str) -> None:
    """Deals drawn from many that were played, whose mean is known to the last digit."""
    one, others = played(table, 40_000, rules=rules, seed=5)
    differences = one - others
    generator = np.random.default_rng(6)
    rows = generator.integers(0, len(one), (2000, 100))
    values, counts = np.unique(differences, return_counts=True)
    half = len(one) // 2
    truths = {
        "mean": float(differences.mean()),
        "stratified": float(differences[:half].mean() + differences[half:].mean()) / 2,
        "improvement": float(np.mean(one < others) + np.mean(one == others) / 2),
        "middle": middle_half(values, counts / len(one)),
        "bootstrap": float(differences.mean()),
    }
    kinds: dict[str, Callable[[np.ndarray], Any]] = {
        "mean": lambda drawn: mean_interval(differences[drawn]),
        "stratified": lambda drawn: stratified([differences[drawn % half], differences[half + drawn[::-1] % half]]),
        "improvement": lambda drawn: probability_of_improvement(one[drawn], others[drawn], lower_is_better=True),
        "middle": lambda drawn: interquartile_mean(differences[drawn], resamples=500),
        "bootstrap": lambda drawn: bootstrap(differences[drawn], np.mean, resamples=500),
    }
    found = {name: coverage([kind(drawn) for drawn in rows], truths[name]) for name, kind in kinds.items()}
    print(table, rules, truths, found)
    if not 0.1 < truths["improvement"] < 0.9:
        assert found.pop("improvement") > 0.935, "the interval of a share close to 0 is wider than it needs to be"
    assert found == pytest.approx(dict.fromkeys(found, 0.95), abs=0.015)


def test_intervals_of_rare_points_need_some_deals_with_points() -> None:
    """What the docstring promises: 20 deals other than 0 are enough, 5 are not."""
    generator = np.random.default_rng(8)
    found = {}
    for share in (0.02, 0.1, 0.3):
        for nonzero in (5, 20, 40):
            deals = round(nonzero / share)
            scores = (generator.random((2000, deals)) < share) * generator.integers(2, 15, (2000, deals))
            found[share, nonzero] = coverage([mean_interval(row) for row in scores], share * 8)
    for (_, nonzero), covered in found.items():
        assert covered < 0.92 if nonzero == 5 else covered > 0.925 if nonzero == 20 else covered > 0.935, found


def test_simultaneous_intervals_hold_together() -> None:
    assert simultaneous(1) == 0.95
    assert simultaneous(10) == pytest.approx(0.995)
    generator = np.random.default_rng(9)
    means = generator.normal(size=(2000, 10, 30))
    each = simultaneous(10)
    missed = sum(any(mean_interval(row, confidence=each).sign for row in trial) for trial in means)
    assert missed / len(means) == pytest.approx(1 - 0.995**10, abs=0.015)


# Sample sizes


@pytest.mark.parametrize(
    ("difference", "deviation", "deals"), [(0.5, 1.0, 12), (-0.1, 1.5, 500), (2.0, 1.0, 3), (0, 1, 9)]
)
def test_power_is_that_of_the_noncentral_t(difference: float, deviation: float, deals: int) -> None:
    critical, shift = stats.t.ppf(0.975, deals - 1), difference / deviation * math.sqrt(deals)

    def density(spread: float) -> float:
        """Chance to reject at that sample deviation, times how likely it is."""
        side = stats.norm.sf(critical * spread - shift) + stats.norm.cdf(-critical * spread - shift)
        return side * stats.chi2.pdf(spread**2 * (deals - 1), deals - 1) * 2 * spread * (deals - 1)

    expected, _ = integrate.quad(density, 0, 4, limit=200)
    assert power_of(difference, deviation, deals) == pytest.approx(expected, abs=1e-6)


def test_sample_sizes_of_textbooks() -> None:
    """Paired t tests at 5 %, two-sided: effect sizes of Cohen, as printed in tables of G*Power."""
    assert deals_needed(0.5, 1.0, power=0.8) == 34
    assert deals_needed(0.2, 1.0, power=0.8) == 199
    assert deals_needed(-0.8, 1.0, power=0.8) == 15
    assert deals_needed(1, 2, power=0.95) == 54


@pytest.mark.parametrize(("difference", "deviation"), [(0.1, 1.5), (3.0, 2.0), (-0.02, 1.0), (60.0, 1.0)])
def test_needed_deals_are_the_fewest(difference: float, deviation: float) -> None:
    deals = deals_needed(difference, deviation)
    assert power_of(difference, deviation, deals) >= 0.9
    assert deals == 2 or power_of(difference, deviation, deals - 1) < 0.9
    assert detectable(deals, deviation) <= abs(difference)
    assert deals_needed(detectable(100, deviation), deviation) == pytest.approx(100, abs=1)
    assert power_of(detectable(100, deviation), deviation, 100) == pytest.approx(0.9)


def test_the_stated_power_is_reached() -> None:
    """On normal numbers, and on deals that were played."""
    generator = np.random.default_rng(10)
    deals = deals_needed(0.3, 1.0)
    normal = generator.normal(0.3, 1.0, (4000, deals))
    assert np.mean([mean_interval(row).sign == 1 for row in normal]) == pytest.approx(0.9, abs=0.015)
    one, others = played(("careful", "control", "control", "control"), 10_000, rules="cucumber", seed=11)
    differences = one - others
    deals = deals_needed(float(differences.mean()), float(differences.std()))
    found = [mean_interval(row).sign == -1 for row in generator.choice(differences, (4000, deals))]
    assert np.mean(found) == pytest.approx(0.9, abs=0.02)


def test_deals_for_a_width() -> None:
    for half_width, deviation in ((0.05, 1.5), (1.0, 3.0), (100.0, 1.0)):
        deals = deals_for(half_width, deviation)
        widths = [student_t(count - 1) * deviation / math.sqrt(count) for count in (deals, max(2, deals - 1))]
        assert widths[0] <= half_width
        assert deals == 2 or widths[1] > half_width


# Bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stratified([]), "strata are empty"),
        (lambda: stratified([[1, 2], [3]]), r"strata\[1\] of shape \(1,\)"),
        (lambda: stratified([[1, 2], [np.nan, 3]]), r"strata\[1\] hold 1 numbers that are not finite"),
        (lambda: stratified([[1, 2], [3, 4]], [1]), r"weights=\[1\] must be one finite number"),
        (lambda: stratified([[1, 2]], [np.inf]), r"weights=\[inf\]"),
        (lambda: stratified([[1, 2]], confidence=95), "confidence=95"),
        (lambda: probability_of_improvement([1, 2], [1, 2, 3], lower_is_better=True), "same deals"),
        (lambda: probability_of_improvement([1, 2], [1, np.nan], lower_is_better=True), "second hold 1"),
        (lambda: simultaneous(0), "comparisons=0"),
        (lambda: simultaneous(3, confidence=0), "confidence=0"),
        (lambda: bootstrap([1.0], np.mean), r"shape \(1,\)"),
        (lambda: bootstrap(np.zeros((5, 0)), np.mean), r"shape \(5, 0\)"),
        (lambda: bootstrap([[1.0], [np.inf]], np.mean), "not finite"),
        (lambda: bootstrap([1, 2, 3], np.mean, resamples=10), "resamples=10"),
        (lambda: bootstrap([1, 2, 3], np.mean, seed=-1), "seed=-1"),
        (lambda: bootstrap([1, 2, 3], np.mean, confidence=1), "confidence=1"),
        (lambda: bootstrap([0, 0, 1], lambda x, axis: 1 / x.sum(axis=axis)), r"not finite on \d+ of 2000"),
        (lambda: bootstrap([0, 0, 1], lambda x, axis: x.sum(axis=axis) * np.nan), "statistic of all deals is nan"),
        (lambda: interquartile_mean([[1, 2], [3, 4]]), r"shape \(2, 2\)"),
        (lambda: deals_needed(0, 1), "difference=0"),
        (lambda: deals_needed(np.nan, 1), "difference=nan"),
        (lambda: deals_needed(1, 0), "deviation=0"),
        (lambda: deals_needed(1, -1.0), "deviation=-1.0"),
        (lambda: deals_needed(1, 1, power=1), "power=1"),
        (lambda: deals_needed(1, 1, power=0.05), "power=0.05"),
        (lambda: deals_needed(1, 1, confidence=1), "confidence=1"),
        (lambda: deals_needed(1e-9, 1), "more than"),
        (lambda: power_of(1, 1, 1), "deals=1 "),
        (lambda: power_of(1, 1, True), "deals=True"),
        (lambda: detectable(1, 1), "deals=1 "),
        (lambda: detectable(10, np.inf), "deviation=inf"),
        (lambda: deals_for(0, 1), "half_width=0"),
        (lambda: deals_for(1e-9, 1), "more than"),
    ],
)
def test_nonsense_is_refused_by_name(call: Callable[[], object], message: str) -> None:
    with np.errstate(divide="ignore"), pytest.raises(ValueError, match=message):
        call()
