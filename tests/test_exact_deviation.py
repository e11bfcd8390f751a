"""What one seat gains by deviating at tables of any size: against brute force, play, and the exact measures for two."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arbitrary import Arbitrary, agrees_with_brute_force
from hypothesis import given, settings
from hypothesis import strategies as st

import evaluate
from cucumber_env import arena, exact
from cucumber_env.envs.vector import SelfPlay
from cucumber_env.exact import CLAIM, Deviation, Tabular, best_response, deviation, exploitability
from cucumber_env.exact import tree as trees
from cucumber_env.policies import Policy, Turns, decide, make
from cucumber_env.rules import CHOICES, Rules

TINY = [
    (Rules(hand_size=1, ranks="9TJQKA", copies=2), 3),
    (Rules(hand_size=2, ranks="QKA", copies=3), 3),
    (Rules(hand_size=2, ranks="8TJ", copies=2, order="value", points="face_10", follow="may", penalty="own"), 3),
    (Rules(hand_size=2, ranks="28QA", copies=2, tie="all", ace_lead="none"), 4),
    (Rules(hand_size=2, ranks="2A", copies=4, payer="lowest", tie="first"), 4),
    (Rules(hand_size=3, ranks="2KA", copies=3, follow="may"), 3),
    (Rules(hand_size=3, ranks="2K", copies=4, ace_lead="none", payer="non_winners"), 2),
    (Rules(hand_size=2, ranks="KA", copies=4, payer="non_winners", first_leader="dealer"), 4),
    (Rules(hand_size=1, ranks="TJQKA", copies=1, order="value", points="face_10", tie="all"), 5),
]


@pytest.mark.parametrize(("rules", "players"), TINY, ids=str)
def test_tiny_games_agree_with_brute_force(rules: Rules, players: int) -> None:
    agrees_with_brute_force(partial(deviation, rules, num_players=players), rules, players)


@st.composite
def tiny_tables(draw: st.DrawFn, *, most_cards: int = 8) -> tuple[Rules, int]:
    """Any rules of a round with few cards in the deck, and three or four players."""
    fields: dict[str, Any] = {
        name: draw(st.sampled_from(CHOICES[name])) for name in exact.ROUND_FIELDS if name in CHOICES
    }
    players = draw(st.integers(3, 4))
    deck = draw(st.sampled_from(("TJQA", "9TA", "8TJ", "2A", "KA", "2468A", "QKA")))
    fewest = -(-players // len(deck))
    fields["ranks"], fields["copies"] = deck, draw(st.integers(fewest, max(fewest, most_cards // len(deck))))
    cards = len(deck) * fields["copies"]
    fields["hand_size"] = draw(st.integers(1, min(3, cards // players)))
    return Rules(**fields, first_leader=draw(st.sampled_from(CHOICES["first_leader"]))), players


@settings(max_examples=30)
@given(tiny_tables())
def test_any_tiny_tables_agree_with_brute_force(table: tuple[Rules, int]) -> None:
    rules, players = table
    agrees_with_brute_force(partial(deviation, rules, num_players=players), rules, players)


@pytest.mark.long
@settings(max_examples=200)
@given(tiny_tables(most_cards=9))
def test_many_tiny_tables_agree_with_brute_force(table: tuple[Rules, int]) -> None:
    rules, players = table
    agrees_with_brute_force(partial(deviation, rules, num_players=players), rules, players)


def test_for_two_it_is_exploitability() -> None:
    report, measured = deviation("three_card", "careful", 2), exploitability("three_card", "careful")
    for name in ("values", "best_response", "baselines", "information_states", "decisions", "gains"):
        assert getattr(report, name) == getattr(measured, name)
    assert sum(report.gains) == pytest.approx(measured.nash_conv, abs=1e-12)


PIECES = [("cucumber,hand_size=3,ranks=9KA,copies=3", 3), ("wikipedia,hand_size=2,ranks=29QA", 4)]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("rules", "players"), PIECES)
def test_neither_batches_nor_pieces_nor_threads_change_a_bit(
    rules: str, players: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = deviation(rules, Arbitrary(), players, threads=1)
    shares: list[float] = []
    monkeypatch.setattr(trees, "PIECE", 40)
    trees.build.cache_clear()
    parts = deviation(rules, Arbitrary(), players, batch=7, threads=threads, progress=shares.append)
    trees.build.cache_clear()
    assert replace(parts, seconds=whole.seconds) == whole
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) > 5


def place(turns: Turns) -> np.ndarray:
    """How many seats clockwise from the leader of the first trick the seats to move are, int64 ``[B]``."""
    public = turns.views["public"]
    first = np.where(public["leaders"][:, 0] >= 0, public["leaders"][:, 0], public["leader"])
    return (turns.views["seat"] - first) % turns.num_players


class Places(Policy):
    """One policy for each place, counted from the leader of the first trick."""

    name = "places"

    def __init__(self, policies: list[Tabular]) -> None:
        self.policies = policies

    def probabilities(self, turns: Turns) -> np.ndarray:
        answers = np.stack([policy.probabilities(turns) for policy in self.policies])
        return answers[place(turns), np.arange(len(turns))]


PLAYED = [("cucumber,hand_size=2", 3), ("concombre,hand_size=2,payer=non_winners,ranks=9TJQKA", 4)]


@pytest.mark.parametrize(("rules", "players"), PLAYED)
def test_values_by_place_are_what_play_comes_to(rules: str, players: int) -> None:
    policy = make("random")
    games = SelfPlay(rules, num_games=20_000, num_players=players, autoreset=False, observe=False)
    at = games.reset(seed=3)
    leader = games.turns().views["public"]["leader"].copy()
    earned = np.zeros(at.rewards.shape)
    while (rows := np.flatnonzero(at.done == 0)).size:
        earned += games.step(decide(policy, games.turns(rows)), rows=rows).rewards
    report = deviation(rules, policy, players)
    for seat in range(players):
        won = earned[np.arange(len(leader)), (leader + seat) % players]
        estimate = arena.mean_interval(won, confidence=0.999)
        assert abs(estimate.mean - report.values[seat]) <= estimate.half_width


@pytest.mark.parametrize(("rules", "players"), PLAYED)
def test_best_responses_win_their_gains_in_the_arena(rules: str, players: int) -> None:
    report = deviation(rules, "lowest", players)
    responses = [best_response(rules, "lowest", seat, num_players=players)[0] for seat in range(players)]
    table = [Places(responses), *[make("lowest")] * (players - 1)]
    result = arena.play(table, rules=rules, deals=5_000, seed=5)
    others = (result.penalties.sum(axis=2, keepdims=True) - result.penalties) / (players - 1)
    won = result.of(0, others - result.penalties).mean(axis=1)  # each deal once from every place
    estimate = arena.mean_interval(won, confidence=0.999)
    assert abs(estimate.mean - sum(report.gains) / players) <= estimate.half_width
    assert estimate.half_width < 0.25 * sum(report.gains) / players


@pytest.mark.parametrize("seat", [0, 1, 2])
def test_a_best_response_is_worth_what_is_said(seat: int, tmp_path: Path) -> None:
    rules = "three_card,ranks=29KA,copies=3,follow=may"
    response, utility = best_response(rules, "highest", seat, num_players=3)
    assert utility == pytest.approx(deviation(rules, "highest", 3).best_response[seat], abs=1e-9)
    response.save(tmp_path / "response.npz")
    for policy in (response, f"exact:{tmp_path}/response.npz"):
        report = deviation(rules, policy, 3)
        assert report.values[seat] == pytest.approx(utility, abs=1e-9)
        assert report.gains[seat] == pytest.approx(0, abs=1e-9)


def test_tables_play_at_full_tables_of_their_size_alone() -> None:
    response, _ = best_response("cucumber,hand_size=2", "highest", 0, num_players=3)
    with pytest.raises(ValueError, match=r"is for other rounds: num_players=3 \(here 2\)$"):
        exploitability("cucumber,hand_size=2", response)
    games = SelfPlay("cucumber,hand_size=2", num_games=2, num_players=3, episode="match")
    games.reset(seed=1)
    turns = games.turns()
    turns.views["public"]["seats"][1] = 0b101
    with pytest.raises(ValueError, match="rounds of all 3 seats; here one sits out"):
        response.probabilities(turns)


def test_reports_that_contradict_themselves() -> None:
    facts: dict[str, Any] = {"baselines": {}, "information_states": 1, "decisions": 1, "seconds": 0.0}
    with pytest.raises(ArithmeticError, match="do not sum to zero"):
        Deviation(values=(1.0, -0.5, -0.4), best_response=(1.0, 0.0, 0.0), **facts)
    with pytest.raises(ArithmeticError, match="of the policy itself are not finite"):
        Deviation(values=(1.0, math.nan, -0.5), best_response=(1.0, 0.0, 0.0), **facts)
    with pytest.raises(ArithmeticError, match=r"best response of seat 2, -0\.6, is worse than the policy itself, -0.5"):
        Deviation(values=(1.0, -0.5, -0.5), best_response=(1.0, 0.0, -0.6), **facts)


@pytest.mark.parametrize(
    ("rules", "policy", "players", "message"),
    [
        ("cucumber,hand_size=2", "higest", 3, "did you mean 'highest'"),
        ("cucumber,hand_size=2", "highest", 8, "num_players=8 is out of range; allowed: 2 to 7"),
        ("cucumber,hand_size=2", "highest", 5, "with 371,293 last tricks; allowed: 100,000,000 and 100,000"),
        ("three_card", "highest", 4, "up to 815,730,721 leaves"),
        ("concombre", "highest", 3, "leaves the dealer a choice"),
    ],
)
def test_what_cannot_be_measured_is_refused(rules: str, policy: str, players: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        deviation(rules, policy, players)


@pytest.mark.parametrize("seat", [3, -1, True, "0"])
def test_seats_are_checked(seat: Any) -> None:
    with pytest.raises(ValueError, match=r"seat=.* to 2"):
        best_response("cucumber,hand_size=2", "highest", seat, num_players=3)


def test_the_command_claims_no_equilibrium(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    command = ["exploitability", "lowest", "--hand-size", "2", "--ranks", "9KA", "--players", "3"]
    assert evaluate.main([*command, "--json", str(tmp_path / "found.json")]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert "a round of 3 players" in lines[0]
    assert lines[2].startswith("One seat deviates (")
    assert lines[-1] == CLAIM
    assert "No equilibrium is claimed" in CLAIM
    assert "NashConv" not in out
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    report = deviation("cucumber,hand_size=2,ranks=9KA", "lowest", 3)
    assert found["gains"] == list(report.gains)
    assert (found["claim"], found["num_players"]) == (CLAIM, 3)
    assert not {"value", "nash_conv"} & found.keys()
