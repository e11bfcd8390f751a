"""The sequential test: its bounds step by step, its error when somebody looks after every deal, and its power."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cucumber_env import arena
from cucumber_env.arena.sample_size import deals_needed
from cucumber_env.arena.sequential import ConfidenceSequence
from cucumber_env.arena.statistics import mean_interval


def skewed(generator: np.random.Generator, *shape: int) -> np.ndarray:
    """Bounded by 14 with mean 0: 13 points in one deal of fourteen, else -1."""
    return np.where(generator.random(shape) < 1 / 14, 13.0, -1.0)


def by_the_book(values: list[float], bound: float, alpha: float) -> list[tuple[float, float]]:
    """Theorem 2 with equations (15) and (16), number by number, and what all intervals up to each have in common."""
    numbers = [(value + bound) / (2 * bound) for value in values]
    low, high, common = 0.0, 1.0, []
    weights, products, spent = [], [], []
    for t, x in enumerate(numbers, start=1):
        estimates = [(0.5 + sum(numbers[:i])) / (i + 1) for i in range(t)]  # before numbers 1, 2, ..., t
        variance = (0.25 + sum((numbers[i - 1] - estimates[i]) ** 2 for i in range(1, t))) / t
        weight = min(math.sqrt(2 * math.log(2 / alpha) / (variance * t * math.log(t + 1))), 0.5)
        weights.append(weight)
        products.append(weight * x)
        spent.append(4 * (x - estimates[-1]) ** 2 * (-math.log(1 - weight) - weight) / 4)
        radius = (math.log(2 / alpha) + sum(spent)) / sum(weights)
        low = max(low, sum(products) / sum(weights) - radius)
        high = min(high, sum(products) / sum(weights) + radius)
        common.append(((2 * low - 1) * bound, (2 * high - 1) * bound))
    return common


def deals_to_decide(differences: np.ndarray, sequence: ConfidenceSequence, step: int = 10) -> int:
    """How many deals it took, looking every `step`; all of them if it did not decide."""
    for first in range(0, len(differences), step):
        if sequence.add(differences[first : first + step]).decided:
            break
    return sequence.deals


@pytest.mark.parametrize("bound", [1.0, 14.0])
def test_every_step_is_that_of_the_theorem(bound: float) -> None:
    generator = np.random.default_rng(0)
    values = (generator.beta(0.3, 0.2, 120) * 2 - 1) * bound
    sequence = ConfidenceSequence(bound, confidence=0.9)
    for value, (low, high) in zip(values, by_the_book(values.tolist(), bound, 0.1), strict=True):
        estimate = sequence.add([value]).estimate
        assert (estimate.low, estimate.high) == pytest.approx((low, high), abs=1e-9 * bound)
    assert estimate.mean == pytest.approx(values.mean())
    assert estimate.deals == 120


@given(st.lists(st.integers(0, 60), max_size=8), st.integers(0, 2**32 - 1))
def test_chunks_and_stops_change_nothing(cuts: list[int], seed: int) -> None:
    generator = np.random.default_rng(seed)
    values = np.clip(generator.standard_t(2, 60) + generator.normal(), -14, 14)
    whole = ConfidenceSequence(14, margin=0.5).add(values)
    parts = ConfidenceSequence(14, margin=0.5)
    for first, last in zip([0, *sorted(cuts)], [*sorted(cuts), 60], strict=True):
        parts = ConfidenceSequence.from_dict(json.loads(json.dumps(parts.to_dict(), allow_nan=False)))
        assert parts.add(values[first:last]) is parts
    assert parts == whole


def test_before_the_first_deal_nothing_is_known() -> None:
    sequence = ConfidenceSequence(2)
    assert sequence.estimate.to_dict() == {"mean": 0.0, "low": -2.0, "high": 2.0, "deals": 0}
    assert sequence.add([]) == ConfidenceSequence(2)
    assert (sequence.sign, sequence.alike, sequence.decided) == (0, False, False)


def test_a_clear_difference_is_seen_with_its_sign() -> None:
    assert ConfidenceSequence(14).add([3.0, 4.0] * 100).sign == 1
    assert ConfidenceSequence(14).add([-3.0, -4.0] * 100).sign == -1
    one = ConfidenceSequence(14).add([3.0, 4.0] * 100)
    assert one.decided
    assert not one.alike


def test_policies_that_play_alike_end_by_the_margin() -> None:
    waiting = ConfidenceSequence(14).add(np.zeros(100_000))
    assert (waiting.sign, waiting.decided, waiting.estimate.mean) == (0, False, 0.0)
    assert waiting.estimate.low == pytest.approx(-waiting.estimate.high)
    sequence = ConfidenceSequence(14, margin=0.2)
    deals = deals_to_decide(np.zeros(5000), sequence, step=1)
    assert sequence.alike
    assert sequence.sign == 0
    # The weights are all 1/2 and nothing deviates: the radius in points is 28 · log(40) / (deals / 2).
    assert deals == math.ceil(28 * math.log(40) * 2 / 0.2)


def test_a_small_difference_is_told_from_none_and_from_a_large_one() -> None:
    generator = np.random.default_rng(1)
    sequence = ConfidenceSequence(14, margin=0.5).add(np.clip(generator.normal(0.1, 1, 100_000), -14, 14))
    assert sequence.sign == 1
    assert sequence.alike


def test_the_error_is_kept_when_looking_after_every_deal() -> None:
    """Mean 0: in how many of 2000 runs of 1000 deals is there ever a sign? A fixed interval goes wrong in a third."""
    values = skewed(np.random.default_rng(2), 2000, 1000)
    signs = [ConfidenceSequence(14).add(run).sign for run in values]
    assert np.count_nonzero(signs) / len(signs) <= 0.05
    narrow = [ConfidenceSequence(14, confidence=0.5).add(run).sign for run in values]
    assert 0.02 < np.count_nonzero(narrow) / len(narrow) <= 0.5, "the test could find errors"
    looks = range(50, 1001, 10)
    naive = np.mean([any(mean_interval(run[:deals]).sign for deals in looks) for run in values[:200]])
    assert naive > 0.25


def test_the_true_mean_never_leaves_the_intervals() -> None:
    """As often as promised, for a mean other than 0 and for the margin as well."""
    values = skewed(np.random.default_rng(3), 2000, 1000) + 1
    estimates = [ConfidenceSequence(14).add(run).estimate for run in values]
    assert np.mean([each.low <= 1 <= each.high for each in estimates]) >= 0.95
    wrong = [ConfidenceSequence(14, margin=0.9).add(run).alike for run in values]
    assert np.mean(wrong) <= 0.05


def test_an_empty_intersection_is_a_gap_and_not_an_error() -> None:
    """Deals whose mean changes break the promise: all that is known is where the intervals contradict each other."""
    sequence = ConfidenceSequence(1).add([1.0] * 200 + [-1.0] * 2000)
    estimate = sequence.estimate
    assert -1 <= estimate.low <= estimate.mean <= estimate.high <= 1
    assert sequence.sign == 0


@pytest.mark.parametrize(
    ("table", "rules", "sign", "most"),
    [(("careful", "control", "control", "control"), "cucumber", -1, 5), (("lowest", "highest"), "three_card", 1, 9)],
)
def test_deals_that_were_played_are_decided(table: tuple[str, ...], rules: str, sign: int, most: float) -> None:
    """Every run finds the right sign, in fewer than `most` times the deals of a test whose number is fixed."""
    result = arena.play(list(table), rules=rules, deals=20_000, seed=4)
    one = result.of(0, result.scores).mean(axis=1)
    differences = one - (result.scores.sum(axis=(1, 2)) / len(table) - one) / (len(table) - 1)
    fixed = deals_needed(float(differences.mean()), float(differences.std()))
    took = []
    for run in differences.reshape(20, 1000):
        sequence = ConfidenceSequence(14)
        took.append(deals_to_decide(run, sequence))
        assert sequence.sign == sign
    print(table, rules, fixed, np.mean(took))
    assert fixed < np.mean(took) < most * fixed


@pytest.mark.long
@pytest.mark.parametrize(("effect", "most"), [(0.3, 5.0), (0.1, 2.2), (0.03, 2.0)])
def test_how_many_deals_it_takes(effect: float, most: float) -> None:
    """Differences as careful and control have them, moved to a mean of `effect` standard deviations."""
    result = arena.play(["careful", "control", "control", "control"], deals=20_000, seed=5)
    one = result.of(0, result.scores).mean(axis=1)
    differences = one - (result.scores.sum(axis=(1, 2)) / 4 - one) / 3
    differences += effect * differences.std() - differences.mean()
    assert np.abs(differences).max() < 14
    fixed = deals_needed(effect, 1.0)
    generator = np.random.default_rng(6)
    took = [
        deals_to_decide(generator.choice(differences, 12 * fixed), ConfidenceSequence(14), step=max(1, fixed // 50))
        for _ in range(200)
    ]
    print(effect, fixed, np.mean(took) / fixed, np.quantile(took, 0.9) / fixed)
    assert np.mean(took) < most * fixed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bound": 0}, "bound=0"),
        ({"bound": math.inf}, "bound=inf"),
        ({"bound": 14, "confidence": 1}, "confidence=1"),
        ({"bound": 14, "margin": 0}, "margin=0"),
        ({"bound": 14, "margin": 14}, "margin=14"),
        ({"bound": 14, "margin": math.nan}, "margin=nan"),
    ],
)
def test_settings_are_refused_by_name(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ConfidenceSequence(**options)  # type: ignore[arg-type]


def test_values_are_refused_by_name_and_none_is_taken() -> None:
    sequence = ConfidenceSequence(14).add([1.0])
    for values, message in (
        ([0, 15], r"values\[1\]=15.0 is out of range; allowed: -14…14"),
        ([math.nan], r"values\[0\]=nan"),
        ([1, -math.inf], r"values\[1\]=-inf"),
        (3.0, r"shape \(\)"),
        ([[1.0]], r"shape \(1, 1\)"),
    ):
        with pytest.raises(ValueError, match=message):
            sequence.add(values)
    assert sequence == ConfidenceSequence(14).add([1.0])
    state = sequence.to_dict()
    del state["weight"]
    with pytest.raises(ValueError, match="state has the fields"):
        ConfidenceSequence.from_dict(state)
