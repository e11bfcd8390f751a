"""Exact play against brute force, known values, hand-made distributions and play in the arena."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from arbitrary import Arbitrary, agrees_with_brute_force
from hypothesis import given, settings
from hypothesis import strategies as st

from cucumber_env import arena, exact
from cucumber_env.baselines import BASELINES
from cucumber_env.exact import Report, best_response, exploitability
from cucumber_env.exact import tree as trees
from cucumber_env.policies import Policy, Turns, make
from cucumber_env.rules import CHOICES, Rules

TINY = [
    Rules(hand_size=1, ranks="9TJQKA", copies=2),
    Rules(hand_size=2, ranks="9TJQKA", copies=1),
    Rules(hand_size=2, ranks="QKA", copies=3),
    Rules(hand_size=2, ranks="QKA", copies=3, ace_lead="none", follow="may"),
    Rules(hand_size=3, ranks="QKA", copies=3, tie="first"),
    Rules(hand_size=3, ranks="2KA", copies=3, tie="all", follow="may"),
    Rules(hand_size=3, ranks="28A", copies=2, payer="lowest"),
    Rules(hand_size=3, ranks="8TJA", copies=2, order="value", points="face_10", follow="may", penalty="own"),
    Rules(hand_size=3, ranks="8TJQ", copies=2, order="value", points="face_10", payer="lowest", tie="first"),
    Rules(hand_size=2, ranks="89TJQK", copies=1, order="value", points="face_10", tie="all", first_leader="dealer"),
    Rules(hand_size=2, ranks="TJQKA", copies=2, payer="non_winners", first_leader="dealer"),
    Rules(hand_size=4, ranks="9KA", copies=3, tie="all"),
    Rules(hand_size=4, ranks="2A", copies=4, tie="all"),
    Rules(hand_size=3, ranks="234567", copies=1, penalty="own", payer="lowest"),
]


@pytest.mark.parametrize("rules", TINY, ids=str)
def test_tiny_games_agree_with_brute_force(rules: Rules) -> None:
    agrees_with_brute_force(partial(exploitability, rules), rules, 2)


@st.composite
def tiny_rules(draw: st.DrawFn, *, most_cards: int = 8) -> Rules:
    """Any rules of a round for two with few cards in the deck."""
    fields: dict[str, Any] = {
        name: draw(st.sampled_from(CHOICES[name])) for name in exact.ROUND_FIELDS if name in CHOICES
    }
    deck = draw(st.sampled_from(("TJQKA", "9TA", "8TJ", "2A", "KA", "2468A", "QKA", "29TJQA")))
    fields["ranks"], fields["copies"] = deck, draw(st.integers(1, min(4, most_cards // len(deck))))
    fields["hand_size"] = draw(st.integers(1, min(3, len(deck) * fields["copies"] // 2)))
    fields["first_leader"] = draw(st.sampled_from(CHOICES["first_leader"]))
    return Rules(**fields)


@settings(max_examples=40)
@given(tiny_rules())
def test_any_tiny_rules_agree_with_brute_force(rules: Rules) -> None:
    agrees_with_brute_force(partial(exploitability, rules), rules, 2)


@pytest.mark.long
@settings(max_examples=300)
@given(tiny_rules(most_cards=10))
def test_many_tiny_rules_agree_with_brute_force(rules: Rules) -> None:
    agrees_with_brute_force(partial(exploitability, rules), rules, 2)


@pytest.mark.parametrize(
    ("rules", "value", "nash_conv"),
    [
        ("cucumber,hand_size=2", 2.97943, 0.0),
        ("cucumber,hand_size=2,ace_lead=none", 2.73812, 0.0),
        ("three_card", 1.74965, 0.10599),
    ],
)
def test_known_values_of_the_policy_that_plays_high(rules: str, value: float, nash_conv: float) -> None:
    report = exploitability(rules, "highest")
    assert report.value == pytest.approx(value, abs=1e-5)
    assert report.nash_conv == pytest.approx(nash_conv, abs=1e-5)


@pytest.mark.long
def test_known_values_with_four_cards() -> None:
    report = exploitability("cucumber,hand_size=4", "highest")
    assert report.nash_conv == pytest.approx(1.692, abs=1e-3)


class Seats(Policy):
    """One policy for the seat that leads the first trick, another for the other seat."""

    name = "seats"

    def __init__(self, leader: Policy, follower: Policy) -> None:
        self.policies = (leader, follower)

    def probabilities(self, turns: Turns) -> np.ndarray:
        leader = turns.views["public"]["leaders"][:, 0]  # -1 before the first play
        follows = (leader >= 0) & (leader != turns.views["seat"])
        return np.where(follows[:, None], *(policy.probabilities(turns) for policy in reversed(self.policies)))


SMALL = "three_card,ranks=479TJQKA"


@pytest.mark.parametrize("name", ["random", "careful"])
def test_baselines_are_worth_in_each_seat_what_is_said(name: str) -> None:
    policy = make(name)
    report = exploitability(SMALL, policy)
    assert list(report.baselines) == list(BASELINES)
    assert report.baselines[name] == pytest.approx(report.values, abs=1e-9)
    for other in BASELINES:
        measured = [exploitability(SMALL, Seats(*pair)) for pair in permutations((make(other), policy))]
        expected = measured[0].values[0], measured[1].values[1]
        assert report.baselines[other] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("rules", [Rules(hand_size=3), Rules(hand_size=2, order="value", follow="may", tie="all")])
@pytest.mark.parametrize("seat", [0, 1])
def test_a_best_response_is_worth_what_is_said(rules: Rules, seat: int) -> None:
    response, utility = best_response(rules, "highest", seat)
    report = exploitability(rules, response)
    assert utility == pytest.approx(exploitability(rules, "highest").best_response[seat], abs=1e-9)
    assert report.values[seat] == pytest.approx(utility, abs=1e-9)
    assert report.gains[seat] == pytest.approx(0, abs=1e-9)


def test_a_best_response_wins_its_value_in_the_arena() -> None:
    report = exploitability("three_card", "lowest_sufficient")
    responses = [best_response("three_card", "lowest_sufficient", seat)[0] for seat in range(2)]
    result = arena.play([Seats(*responses), make("lowest_sufficient")], rules="three_card", deals=20_000, seed=5)
    won = result.of(1, result.penalties) - result.of(0, result.penalties)  # each deal once from either seat
    estimate = arena.mean_interval(won.mean(axis=1), confidence=0.999)
    assert abs(estimate.mean - report.nash_conv / 2) <= estimate.half_width
    assert estimate.half_width < 0.15 * report.nash_conv


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("rules", ["wikipedia,hand_size=4,ranks=79KA", "three_card,ranks=456TJQKA,follow=may"])
def test_neither_batches_nor_pieces_nor_threads_change_a_bit(
    rules: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = exploitability(rules, Arbitrary(), threads=1)
    shares: list[float] = []
    monkeypatch.setattr(trees, "PIECE", 40)
    trees.build.cache_clear()
    parts = exploitability(rules, Arbitrary(), batch=7, threads=threads, progress=shares.append)
    trees.build.cache_clear()
    assert replace(parts, seconds=whole.seconds) == whole
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) > 10


class Single(Arbitrary):
    """Asked from other threads than its maker's, it fails."""

    def __init__(self) -> None:
        super().__init__()
        self.thread = threading.get_ident()

    def probabilities(self, turns: Turns) -> np.ndarray:
        assert threading.get_ident() == self.thread
        return super().probabilities(turns)


def test_policies_are_asked_from_the_thread_of_the_caller() -> None:
    exploitability(Rules(hand_size=3, ranks="2KA", copies=3), Single(), threads=2)


def report(**changes: Any) -> Report:
    """A report in order, but for the changes."""
    facts = {"values": (1.0, -1.0), "best_response": (1.5, -0.5), "baselines": {"highest": (1.5, -1.0)}}
    return Report(**{**facts, "information_states": 1, "decisions": 1, "seconds": 0.0, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"values": (1.0, -0.9)}, "do not sum to zero"),
        ({"values": (1.6, -1.6)}, "best response of seat 0, 1.5, is worse than the policy itself, 1.6"),
        ({"baselines": {"highest": (0, -1), "careful": (1, -0.4)}}, "of seat 1, -0.5, is worse than careful, -0.4"),
        ({"values": (0.0, 0.0), "best_response": (-6e-10, -6e-10), "baselines": {}}, "NashConv -1.2e-09 is below zero"),
        ({"values": (math.nan, -1.0)}, r"values \(nan, -1.0\) of the policy itself are not finite"),
        ({"values": (math.inf, -math.inf)}, "of the policy itself are not finite"),
        ({"best_response": (math.inf, -0.5)}, "of best responses are not finite"),
        ({"best_response": (1.5, math.nan)}, "of best responses are not finite"),
        ({"baselines": {"highest": (-math.inf, -1.0)}}, "of highest are not finite"),
        ({"baselines": {"highest": (1.0, math.nan)}}, "of highest are not finite"),
    ],
)
def test_reports_that_contradict_themselves(changes: dict[str, Any], message: str) -> None:
    assert report().gains == (0.5, 0.5)
    with pytest.raises(ArithmeticError, match=message):
        report(**changes)


class Wrong(Policy):
    """Answers what it is told to."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def probabilities(self, turns: Turns) -> np.ndarray:
        return np.asarray(self.answer(turns.mask.astype(float)))


@pytest.mark.parametrize(
    "answer",
    [
        lambda mask: mask,
        lambda mask: mask / mask.sum(axis=1, keepdims=True) * 0.9,
        lambda mask: np.full(mask.shape, 1 / mask.shape[1]),
        lambda mask: np.full(mask.shape, np.nan),
        lambda mask: mask * np.where(np.cumsum(mask, axis=1) == 1, 2.0, -1.0),
        lambda mask: mask[:, :5],
    ],
)
def test_answers_that_are_no_distributions(answer: Any) -> None:
    with pytest.raises(ValueError, match="policy 'unnamed' gave probabilities"):
        exploitability("cucumber,hand_size=2,ranks=TJQKA", Wrong(answer))


class Sampler(Policy):
    """Draws, and cannot say how."""

    name = "sampler"
    samples_only = True

    def act(self, turns: Turns) -> np.ndarray:
        return turns.mask.argmax(axis=1)


@pytest.mark.parametrize(
    ("rules", "policy", "message"),
    [
        ("three_card", Sampler(), "policy 'sampler' only samples .* estimate instead"),
        ("three_card", "higest", "did you mean 'highest'"),
        ("concombre", "highest", "leaves the dealer a choice"),
        ("cucumber", "highest", "up to 23,298,085,122,481 leaves"),
        ("three_card,players=3-7", "highest", "num_players=2 is out of range"),
    ],
)
def test_what_cannot_be_measured_is_refused(rules: str, policy: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        exploitability(rules, policy)


@pytest.mark.parametrize("batch", [0, -3, 2.5, True])
def test_batches_are_checked(batch: Any) -> None:
    with pytest.raises(ValueError, match="batch="):
        exploitability("three_card", "highest", batch=batch)


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_threads_are_checked(threads: Any) -> None:
    with pytest.raises(ValueError, match="threads="):
        exploitability("three_card", "highest", threads=threads)


@pytest.mark.parametrize("seat", [2, -1, True, "0"])
def test_seats_are_checked(seat: Any) -> None:
    with pytest.raises(ValueError, match="seat="):
        best_response("three_card", "highest", seat)
