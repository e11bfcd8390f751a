"""Ranks, ratings and cycles: against naive loops, direct calls and brute force over all cycles."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations, permutations

import numpy as np
import pytest
from openskill.models import PlackettLuce
from scipy import stats

from cucumber_env.arena.ranking import cycles, openskill, ranks, surely_better

NAMES = ["ada", "ben", "cleo", "dan", "eve", "finn"]


def naive_ranks(samples: np.ndarray, sign: int, confidence: float) -> list[list[int]]:
    """Best and worst place of every column, with the t test of scipy for every ordered pair."""
    count = samples.shape[1]
    pairs = count * (count - 1) / 2
    found = []
    for one in range(count):
        above, below = 0, 0
        for other in range(count):
            if one != other:
                test = stats.ttest_rel(samples[:, one], samples[:, other])
                sure = test.pvalue < (1 - confidence) / pairs
                above += bool(sure and sign * test.statistic < 0)
                below += bool(sure and sign * test.statistic > 0)
        found.append([1 + above, count - below])
    return found


@pytest.mark.parametrize("lower_is_better", [True, False])
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_ranks_are_those_of_a_double_loop(lower_is_better: bool, confidence: float) -> None:
    generator = np.random.default_rng(0)
    distinct = set()
    for _ in range(10):
        means = generator.integers(0, 4, 5) / 4
        samples = generator.normal(means, 1, (80, 5)) + generator.normal(size=(80, 1))
        table = ranks(NAMES[:5], samples, lower_is_better=lower_is_better, confidence=confidence)
        expected = naive_ranks(samples, -1 if lower_is_better else 1, confidence)
        assert {rank.policy: [rank.best, rank.worst] for rank in table} == dict(zip(NAMES, expected, strict=False))
        scores = [rank.score.mean for rank in table]
        assert scores == pytest.approx(sorted(samples.mean(axis=0), reverse=not lower_is_better))
        distinct |= {(rank.best, rank.worst) for rank in table}
    assert len(distinct) > 6


def test_a_clear_order_and_a_tie() -> None:
    noise = np.random.default_rng(1).normal(size=(100, 1))
    samples = noise + np.array([3.0, 1.0, 1.0, 7.0])
    table = ranks(NAMES[:4], samples, lower_is_better=True)
    assert [(rank.policy, rank.best, rank.worst) for rank in table] == [
        ("ben", 1, 2),
        ("cleo", 1, 2),
        ("ada", 3, 3),
        ("dan", 4, 4),
    ]
    assert table[0].to_dict() == {"policy": "ben", "rank": [1, 2], "score": table[0].score.to_dict()}
    signs = surely_better(samples, lower_is_better=True)
    assert signs.tolist() == [[0, -1, -1, 1], [1, 0, 0, 1], [1, 0, 0, 1], [-1, -1, -1, 0]]
    assert (surely_better(samples, lower_is_better=False) == -signs).all()
    alone = ranks(["ada"], samples[:, :1], lower_is_better=True)
    assert [(rank.best, rank.worst) for rank in alone] == [(1, 1)]


def test_true_ranks_lie_in_their_ranges() -> None:
    generator = np.random.default_rng(2)
    wrong = 0
    for _ in range(400):
        samples = np.where(
            generator.random((100, 5)) < [0.3, 0.3, 0.3, 0.4, 0.6], generator.integers(2, 15, (100, 5)), 0
        )
        table = {rank.policy: rank for rank in ranks(NAMES[:5], samples, lower_is_better=True)}
        wrong += any(table[name].best > 1 for name in NAMES[:3]) or any(
            not table[name].best <= place <= table[name].worst for name, place in (("dan", 4), ("eve", 5))
        )
    assert wrong / 400 <= 0.05


@pytest.mark.parametrize("lower_is_better", [True, False])
def test_ratings_are_those_of_direct_calls(lower_is_better: bool) -> None:
    generator = np.random.default_rng(3)
    tables = [
        {0: generator.integers(0, 4, 40), 2: generator.integers(0, 4, 40)},
        {1: generator.integers(0, 9, 5), 0: generator.integers(0, 9, 5), 2: generator.integers(0, 9, 5)},
    ]
    model = PlackettLuce(tau=0)
    expected = [model.rating() for _ in range(4)]
    for deal in range(10):
        for table in tables:
            scores = [float(values[deal]) for values in table.values() if deal < len(values)]
            if scores:
                teams = [[expected[policy]] for policy in table]
                rated = model.rate(teams, scores=[-score if lower_is_better else score for score in scores])
                for policy, team in zip(table, rated, strict=True):
                    expected[policy] = team[0]
    found, games = openskill(NAMES[:4], tables, lower_is_better=lower_is_better, most=21)
    assert games == 15
    assert [rating.games for rating in found] == [15, 5, 15, 0]
    for rating, other in zip(found, expected, strict=True):
        assert (rating.mu, rating.sigma) == pytest.approx((other.mu, other.sigma))
        assert rating.ordinal == pytest.approx(other.mu - 3 * other.sigma)
        assert rating.to_dict().keys() == {"mu", "sigma", "ordinal", "games"}
    assert (found, games) == openskill(NAMES[:4], tables, lower_is_better=lower_is_better, most=21)


def test_ratings_follow_strength_and_ties_count() -> None:
    generator = np.random.default_rng(4)
    luck = generator.random((1000, 3)) < [0.2, 0.5, 0.5]
    points = luck * generator.integers(2, 15, (1000, 1))
    tables = [{one: points[:, one], other: points[:, other]} for one, other in combinations(range(3), 2)]
    (strong, weak, alike), games = openskill(NAMES[:3], tables, lower_is_better=True)
    assert (games, strong.games) == (3000, 2000)
    assert strong.ordinal > max(weak.ordinal, alike.ordinal) + 2
    assert abs(weak.mu - alike.mu) < 3 * weak.sigma < 3
    tied, _ = openskill(NAMES[:2], [{0: np.zeros(50), 1: np.zeros(50)}], lower_is_better=True)
    assert (tied[0].mu, tied[1].mu) == pytest.approx((25, 25))
    assert tied[0].sigma < 25 / 3


def all_cycles(signs: np.ndarray) -> list[tuple[int, ...]]:
    """Every cycle there is, starting with its smallest index, shortest first."""
    count = len(signs)
    return [
        order
        for length in range(3, count + 1)
        for order in permutations(range(count), length)
        if order[0] == min(order) and all(signs[i, j] > 0 for i, j in zip(order, (*order[1:], order[0]), strict=True))
    ]


def test_cycles_are_those_of_brute_force() -> None:
    """Of random answers, some open: one of the shortest cycles in each group of policies that reach each other."""
    generator = np.random.default_rng(5)
    lengths = set()
    for open_share in (0.0, 0.3, 0.6):
        for _ in range(60):
            upper = np.triu(generator.choice([-1, 1], (6, 6)) * (generator.random((6, 6)) >= open_share), 1)
            signs = upper - upper.T
            existing = all_cycles(signs)
            groups: list[set[int]] = []  # policies on common cycles belong together
            for cycle in existing:
                joined = [group for group in groups if group & set(cycle)]
                groups = [group for group in groups if group not in joined] + [set(cycle).union(*joined)]
            found = [tuple(NAMES.index(name) for name in cycle) for cycle in cycles(NAMES, signs)]
            assert len(found) == len(groups)
            for group in groups:
                within = [cycle for cycle in existing if set(cycle) <= group]
                shortest = [cycle for cycle in within if len(cycle) == len(within[0])]
                (chosen,) = [cycle for cycle in found if set(cycle) <= group]
                assert chosen in shortest
                assert chosen[0] == min(cycle[0] for cycle in shortest)
                lengths.add(len(chosen))
    assert lengths >= {3, 4}


def test_no_cycles_and_two() -> None:
    assert cycles([], np.zeros((0, 0))) == []
    assert cycles(NAMES[:2], [[0, 1], [-1, 0]]) == []
    ring = np.zeros((6, 6), int)
    for one, other in ((0, 4), (4, 2), (2, 0), (1, 3), (3, 5), (5, 1), (0, 1), (2, 5)):
        ring[one, other], ring[other, one] = 1, -1
    assert cycles(NAMES, ring) == [["ada", "eve", "cleo"], ["ben", "dan", "finn"]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ranks(NAMES, np.zeros((5, 2)), lower_is_better=True), "6 names for 2 policies"),
        (lambda: ranks(["ada"], np.zeros(5), lower_is_better=True), r"samples of shape \(5,\)"),
        (lambda: ranks(NAMES[:2], [[0.0, 1.0]], lower_is_better=True), "two or more deals"),
        (lambda: ranks(NAMES[:2], [[0.0, 1.0], [math.nan, 0.0]], lower_is_better=True), "not finite"),
        (lambda: ranks(NAMES[:2], np.zeros((5, 2)), lower_is_better=True, confidence=2), "confidence=2"),
        (lambda: openskill(NAMES, [{0: [1.0]}], lower_is_better=True), r"tables\[0\] seats \[0\]"),
        (lambda: openskill(NAMES, [{0: [1.0], 6: [1.0]}], lower_is_better=True), r"tables\[0\] seats \[0, 6\]"),
        (lambda: openskill(NAMES, [{0: [1.0], 1: [1.0, 2.0]}], lower_is_better=True), "shapes"),
        (lambda: openskill(NAMES, [{0: [], 1: []}], lower_is_better=True), "shapes"),
        (lambda: openskill(NAMES, [{0: [1.0], 1: [np.inf]}], lower_is_better=True), "1 scores that are not finite"),
        (lambda: openskill(NAMES, [{0: [1.0], 1: [2.0]}], lower_is_better=True, most=0), "most=0"),
        (lambda: cycles(NAMES, np.zeros((2, 2))), "6 names for 2 policies"),
        (lambda: cycles(NAMES[:2], np.zeros((2, 3))), r"signs of shape \(2, 3\)"),
        (lambda: cycles(NAMES[:2], [[0, 1], [1, 0]]), r"signs\[i, j\] = -signs\[j, i\]"),
        (lambda: cycles(NAMES[:2], [[0, 2], [-2, 0]]), "of -1, 0 and 1"),
        (lambda: cycles(["ada"], [[1]]), "of -1, 0 and 1"),
    ],
)
def test_nonsense_is_refused_by_name(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
