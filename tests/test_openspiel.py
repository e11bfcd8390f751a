"""Cucumber in OpenSpiel: its own tests, perfect recall, and its algorithms as witnesses of exact play.

Skipped where OpenSpiel is not installed (``uv sync --group peers``).
"""

from __future__ import annotations

import doctest
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from arbitrary import Arbitrary
from hypothesis import given, settings

pyspiel = pytest.importorskip("pyspiel")

from open_spiel.python.algorithms import cfr  # noqa: E402
from open_spiel.python.algorithms import exploitability as measures  # noqa: E402
from open_spiel.python.algorithms.get_all_states import get_all_states  # noqa: E402
from open_spiel.python.observation import make_observation  # noqa: E402
from strategies import tables  # noqa: E402

from cucumber_env import arena, exact, openspiel  # noqa: E402
from cucumber_env.openspiel import CucumberGame, FromOpenSpiel, ToOpenSpiel, load  # noqa: E402
from cucumber_env.policies import Policy  # noqa: E402
from cucumber_env.rules import PRESETS, Rules  # noqa: E402

TWO = [
    Rules(hand_size=1, ranks="9TJQKA", copies=2),
    Rules(hand_size=2, ranks="QKA", copies=2),
    Rules(hand_size=2, ranks="2KA", copies=2, ace_lead="none", follow="may"),
    Rules(hand_size=2, ranks="8TJA", copies=1, order="value", points="face_10", follow="may", penalty="own"),
    Rules(hand_size=2, ranks="2A", copies=3, payer="lowest", tie="first", first_leader="dealer"),
    Rules(hand_size=3, ranks="2A", copies=3, tie="all"),
]

MORE = [
    (Rules(hand_size=1, ranks="TJQKA", copies=2, tie="all"), 3),
    (Rules(hand_size=2, ranks="KA", copies=3), 3),
    (Rules(hand_size=2, ranks="28A", copies=2, ace_lead="none", payer="non_winners"), 3),
    (Rules(hand_size=2, ranks="2A", copies=4, payer="lowest", first_leader="dealer"), 4),
]


def test_the_examples_of_the_module() -> None:
    assert doctest.testmod(openspiel).failed == 0


@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_the_random_simulation_test_of_openspiel(preset: str, players: int) -> None:
    pyspiel.random_sim_test(load(preset, players), num_sims=1, serialize=True, verbose=False)


@settings(max_examples=15)
@given(tables())
def test_any_table_passes_the_random_simulation_test(table: tuple[Rules, int]) -> None:
    pyspiel.random_sim_test(load(*table), num_sims=1, serialize=True, verbose=False)


def test_games_go_to_text_and_back() -> None:
    game = load("cucumber,hand_size=2-3,ranks=234567,copies=2", 3)
    assert str(game) == "python_cucumber(players=3,rules=cucumber;hand_size:2-3;ranks:234567;copies:2)"
    again = pyspiel.load_game(str(game))
    assert isinstance(again, CucumberGame)
    assert (again.rules, again.num_players()) == (game.rules, 3)
    with_dict = pyspiel.load_game("python_cucumber", {"rules": "cucumber,hand_size=3"})
    assert (with_dict.rules, with_dict.num_players()) == (Rules.preset("three_card"), 2)
    state = game.new_initial_state()
    for action in (state.legal_actions()[-1], 0, 0, 5, 5):
        state.apply_action(action)
    _, copy = pyspiel.deserialize_game_and_state(pyspiel.serialize_game_and_state(game, state))
    assert str(copy) == str(state) == "3 cards; dealt 2277; played -"


@pytest.mark.parametrize(
    ("rules", "players", "message"),
    [("cucumbr", 2, "did you mean 'cucumber'"), ("cucumber", 8, "num_players=8 is out of range")],
)
def test_bad_arguments_are_named(rules: str, players: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load(rules, players)


@pytest.mark.parametrize("leader", ["dealer", "left_of_dealer"])
def test_the_dealer_chooses_before_chance_deals_and_seat_0_leads(leader: str) -> None:
    game = load(f"concombre,ranks=9A,hand_size=1-4,first_leader={leader}", 2)
    state = game.new_initial_state()
    assert state.current_player() == (0 if leader == "dealer" else 1)
    assert [state.action_to_string(action) for action in state.legal_actions()] == [f"deal {k}" for k in range(1, 5)]
    state.apply_action(state.legal_actions()[1])
    seen = []
    while state.is_chance_node():
        outcomes = state.chance_outcomes()
        assert sum(chance for _, chance in outcomes) == pytest.approx(1)
        seen.append(dict(outcomes))
        state.apply_action(12)
    assert seen[1] == {7: pytest.approx(4 / 7), 12: pytest.approx(3 / 7)}
    assert seen[3] == {7: pytest.approx(4 / 5), 12: pytest.approx(1 / 5)}
    assert state.current_player() == 0
    while not state.is_terminal():
        state.apply_action(state.legal_actions()[0])
    assert sorted(state.returns()) == [-11, 11]


def test_states_by_hand() -> None:
    state = load("three_card", 3).new_initial_state()
    for rank in (0, 5, 9, 12, 5, 2, 3, 6, 2):  # 2A5 to seat 0, 778 to seat 1, J44 to seat 2
        state.apply_action(rank)
    assert str(state) == "3 cards; dealt 27JA74584; played -"
    for seat, rank in ((0, 3), (1, 5), (2, 9), (2, 2), (0, 12), (1, 5)):
        assert state.current_player() == seat
        state.apply_action(rank)
    assert state.information_state_string(0) == "seat 0 of 3, 3 cards; dealt 25A; played 0:57J 2:4A7"
    assert state.information_state_string(1) == "seat 1 of 3, 3 cards; dealt 778; played 0:57J 2:4A7"
    assert "hand          8" in " ".join(state.observation_string(1).split("\n")[:1])
    assert state.returns() == [0, 0, 0]
    for rank in (0, 6, 2):
        state.apply_action(rank)
    assert state.returns() == [4, -8, 4]  # the 8 takes and pays


def everywhere(game: CucumberGame) -> list[Any]:
    """All states at which somebody decides."""
    return list(get_all_states(game, include_terminals=False, include_chance_states=False).values())


@pytest.mark.parametrize(("rules", "players"), [(TWO[2], 2), (TWO[5], 2), (MORE[1][0], 3)])
def test_information_states_have_perfect_recall(rules: Rules, players: int) -> None:
    """All histories of an information state agree on what its seat saw and did before; the tensor says as much."""
    game = load(rules, players)
    pasts: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
    tensors: dict[str, set[bytes]] = defaultdict(set)
    states = everywhere(game)
    for state in states:
        seat = state.current_player()
        key = state.information_state_string()
        past = []
        before = game.new_initial_state()
        for action in state.history():
            if before.current_player() == seat:
                past.append((before.information_state_string(), action))
            before.apply_action(action)
        pasts[key].add(tuple(past))
        tensors[key].add(np.array(state.information_state_tensor(seat), np.int8).tobytes())
    assert all(len(found) == 1 for found in (*pasts.values(), *tensors.values()))
    assert len(set.union(*tensors.values())) == len(tensors) < len(states)


def test_observers() -> None:
    game = load("three_card", 2)
    state = game.new_initial_state()
    for rank in (1, 2, 3, 4, 5, 6, 1):
        state.apply_action(rank)
    kinds = pyspiel.IIGObservationType
    for recall, size in ((False, game.observation_tensor_size()), (True, game.information_state_tensor_size())):
        observation = make_observation(game, kinds(perfect_recall=recall))
        observation.set_from(state, 1)
        assert observation.tensor.shape == (size,)
        assert observation.tensor.sum() == sum(part.sum() for part in observation.dict.values())
        assert observation.dict["hand"].sum(axis=1).nonzero()[0].tolist() == [2, 4, 6]
        assert ("plays" in observation.dict) == recall
        kept = observation.tensor.copy()
        assert kept.tolist() == (state.information_state_tensor(1) if recall else state.observation_tensor(1))
    with pytest.raises(ValueError, match="is not offered"):
        make_observation(game, kinds(perfect_recall=True, private_info=pyspiel.PrivateInfoType.NONE))
    with pytest.raises(ValueError, match="take none"):
        make_observation(game, kinds(perfect_recall=True), {"size": 3})


def agrees(rules: Rules, policy: Policy | str) -> None:
    """Values, best responses and NashConv of OpenSpiel are those of `exact`."""
    game = load(rules, 2)
    report = exact.exploitability(rules, policy)
    same = ToOpenSpiel(game, policy)
    for seat in range(2):
        found = measures.best_response(game, same, seat)
        assert found["on_policy_value"] == pytest.approx(report.values[seat], abs=1e-9)
        assert found["best_response_value"] == pytest.approx(report.best_response[seat], abs=1e-9)
    assert measures.exploitability(game, same) == pytest.approx(report.nash_conv / 2, abs=1e-9)


@pytest.mark.parametrize("policy", ["careful", Arbitrary()], ids=str)
@pytest.mark.parametrize("rules", TWO, ids=str)
def test_exploitability_is_that_of_openspiel(rules: Rules, policy: Policy | str) -> None:
    agrees(rules, policy)


@pytest.mark.parametrize("rules", TWO[1:4], ids=str)
def test_solutions_are_as_exploitable_in_openspiel(rules: Rules) -> None:
    solution, report = exact.solve(rules, nash_conv=1e-4, iterations=300)
    assert report.nash_conv < 1e-3 < exact.exploitability(rules, "random").nash_conv
    agrees(rules, solution)


@pytest.mark.parametrize("solver", [cfr.CFRSolver, cfr.CFRPlusSolver])
@pytest.mark.parametrize("rules", [TWO[1], TWO[3]], ids=str)
def test_solutions_of_openspiel_are_as_exploitable_here(rules: Rules, solver: Any) -> None:
    game = load(rules, 2)
    solving = solver(game)
    for _ in range(10):
        solving.evaluate_and_update_policy()
    average = solving.average_policy()
    report = exact.exploitability(rules, FromOpenSpiel(game, average))
    assert report.nash_conv == pytest.approx(measures.nash_conv(game, average), abs=1e-9)
    _, solved = exact.solve(rules, nash_conv=1e-4, iterations=300)
    assert abs(report.value - solved.value) <= report.nash_conv + solved.nash_conv  # both near the value of the game


@pytest.mark.parametrize("policy", ["random", Arbitrary()], ids=str)
@pytest.mark.parametrize(("rules", "players"), MORE, ids=str)
def test_gains_from_deviating_are_those_of_openspiel(rules: Rules, players: int, policy: Policy | str) -> None:
    game = load(rules, players)
    report = exact.deviation(rules, policy, players)
    found = measures.nash_conv(game, ToOpenSpiel(game, policy), return_only_nash_conv=False)
    assert found.player_improvements == pytest.approx(list(report.gains), abs=1e-9)


def test_policies_of_openspiel_play_in_the_arena() -> None:
    rules = "cucumber,hand_size=2,ranks=9KA,copies=2"
    game = load(rules, 2)
    solving = cfr.CFRPlusSolver(game)
    for _ in range(10):
        solving.evaluate_and_update_policy()
    solution = FromOpenSpiel(game, solving.average_policy(), name="cfr+")
    result = arena.play([solution, "lowest"], rules=rules, deals=500, seed=2)
    assert result.of(0, result.penalties).mean() < result.of(1, result.penalties).mean()
    with pytest.raises(ValueError, match="here a round of 3 under cucumber"):
        arena.play([solution] * 3, rules=rules, deals=2)


def test_policies_that_only_sample_are_refused() -> None:
    class Sampler(Policy):
        name = "sampler"
        samples_only = True

    with pytest.raises(ValueError, match="'sampler' only samples"):
        ToOpenSpiel(load("three_card"), Sampler())
