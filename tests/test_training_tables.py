"""Every table: all rules, player counts and episodes, alone and together in one run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from training import equal, network, played, sharpen, small, weights

import train
from agents import report
from agents.checkpoint import save_agent
from agents.policy import NetworkPolicy, widened
from agents.tables import Table, find_places, find_tables
from cucumber_env.cards import ACTIONS
from cucumber_env.envs.vector import SelfPlay
from cucumber_env.observation import Layout
from cucumber_env.policies import decide, make
from cucumber_env.rules import MAX_SEATS, PRESETS, RANKS, Rules


@pytest.mark.parametrize("preset", list(PRESETS))
def test_rewards_of_a_round_sum_to_zero(preset: str) -> None:
    rules = Rules.preset(preset)
    for players in {2, 3, rules.max_players}:
        table = SelfPlay(rules, num_games=50, num_players=players, autoreset=False)
        returns = played(network(table), table).returns()
        np.testing.assert_allclose(returns.sum(axis=1), 0, atol=1e-4)
        assert (returns.std(axis=1) > 0).any()


BESIDE_CARDS = {
    ("concombre", "round"): {f"deal {cards}" for cards in range(1, 6)},
    ("concombre", "match"): {f"deal {cards}" for cards in range(1, 6)},
    ("revival", "match"): {"decline", "chip", "skip"},
}
"""Decisions that are not about a card, by preset and episode."""


@pytest.mark.parametrize("preset", list(PRESETS))
def test_every_preset_trains(preset: str) -> None:
    """One update with two to eight players, rounds and matches; what is decided there besides cards is learned too."""
    rules = Rules.preset(preset)
    for episode, games in (("round", 40), ("match", 12)):
        stored: set[int] = set()
        for players in (2, 3, 5, rules.max_players):
            trainer = train.Trainer(
                small(rules=preset, players=players, episode=episode, games=games, hidden=(8,), updates=1, epochs=1)
            )
            before = weights(trainer.network)
            (rollout,) = trainer.play()
            metrics = trainer.advance()  # plays the same again
            assert all(np.isfinite(value) for value in metrics.values()), metrics
            assert trainer.decisions == len(rollout.action) > 0
            assert not equal(weights(trainer.network), before)
            np.testing.assert_allclose(rollout.returns().sum(axis=1), 0, atol=1e-4)
            stored |= set(rollout.action.tolist())
        assert max(stored) < rules.num_actions
        beside_cards = {ACTIONS[action] for action in stored if action >= len(RANKS)}
        assert beside_cards == BESIDE_CARDS.get((preset, episode), set())


def test_dealers_choices_and_returns_to_the_match_have_advantages() -> None:
    """A dealer's choice pays by what its round costs; its chain goes on with the cards."""
    trainer = train.Trainer(small(rules="concombre", players=3, episode="match", games=8, gae_lambda=1.0))
    (rollout,) = trainer.play()
    values = np.zeros(len(rollout.action), np.float32)
    advantage, _ = train.advantages(rollout, values, scale=1.0, gae_lambda=1.0)
    choices = np.flatnonzero(rollout.action >= len(RANKS))
    seats = np.concatenate([seats for _, _, seats, _ in rollout.steps])
    games = np.concatenate([games for _, games, *_ in rollout.steps])
    np.testing.assert_allclose(advantage[choices], rollout.returns()[games[choices], seats[choices]], atol=1e-5)
    assert len(choices) > 8


def test_tables_of_many_rules_and_player_counts() -> None:
    tables, impossible = find_tables("cucumber,agurk,concombre", "2-8")
    assert [(str(table.rules), table.players) for table in tables] == [
        *(("cucumber", players) for players in range(2, 8)),
        *(("agurk", players) for players in range(2, 8)),
        *(("concombre", players) for players in range(2, 9)),
    ]
    assert len(impossible) == 2
    for preset, reason in zip(("cucumber", "agurk"), impossible, strict=True):
        assert reason.startswith(f"{preset}: players=8 is out of range; allowed: 2 to 7")


@pytest.mark.parametrize(
    ("rules", "players", "expected"),
    [
        ("cucumber", 4, [(Rules(), 4)]),
        ("cucumber", "4", [(Rules(), 4)]),
        (" cucumber , hand_size=3 ", "2", [(Rules(hand_size=3), 2)]),
        (
            "cucumber,hand_size=3,threshold=21,agurk",
            "2,5-6",
            [
                *((Rules(hand_size=3, threshold=21), players) for players in (2, 5, 6)),
                *((Rules(threshold=21), players) for players in (2, 5, 6)),
            ],
        ),
        ("cucumber,gurka", "3,2-4,3", [(Rules(), 3), (Rules(), 2), (Rules(), 4)]),  # the same rules under two names
        ("concombre,hand_size=1-3", 8, [(Rules.preset("concombre", hand_size=(1, 3)), 8)]),
    ],
)
def test_tables_by_name(rules: str, players: int | str, expected: list[tuple[Rules, int]]) -> None:
    tables, impossible = find_tables(rules, players)
    assert tables == [Table(one, count) for one, count in expected]
    assert impossible == []


@pytest.mark.parametrize("players", ["", "four", "8-2", "1-4", "2-9", "2,,4", "2-3-4", "-2", "4.0", 0, 9, None, True])
def test_players_that_name_no_number_are_refused(players: int | str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"players={players!r} is out of range; allowed: 2 to 8, such as")):
        find_tables("cucumber", players)


@pytest.mark.parametrize(
    ("rules", "players", "message"),
    [
        ("cucmber,agurk", "2-4", "unknown preset 'cucmber' (did you mean 'cucumber'"),
        ("cucumber,,agurk", "2", "unknown preset ''"),
        ("cucumber,hand_siz=3", "2", "hand_siz"),
        ("cucumber,hand_size=x,agurk", "2", "hand_size='x' must be an integer"),
        ("cucumber", 8, "players=8 is out of range; allowed: 2 to 7"),
        ("cucumber,agurk", "8", "no table can be made of rules='cucumber,agurk' and players='8': cucumber: players=8"),
    ],
)
def test_tables_that_cannot_be_are_refused(rules: str, players: int | str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        find_tables(rules, players)


@pytest.mark.parametrize("processes", [1, 3])
def test_games_are_dealt_to_tables_and_processes_without_overlap(processes: int) -> None:
    tables, _ = find_tables("cucumber,agurk,concombre", "2-8")
    parts = [
        find_places(tables, games=1000, episode="round", rank=rank, processes=processes) for rank in range(processes)
    ]
    numbers = [place.numbers for part in zip(*parts, strict=True) for place in part]
    np.testing.assert_array_equal(np.concatenate(numbers), np.arange(1000))
    counts = [place.games for place in parts[0]]
    assert sum(counts) == 1000
    assert max(counts) - min(counts) <= 1
    own = [len(place.numbers) for part in parts for place in part]
    assert max(own) - min(own) <= 1
    for part in parts:
        for place, table in zip(part, tables, strict=True):
            assert place.table == table
            assert place.face.num_games == len(place.numbers)
            assert place.face.layout.size == Layout.of(tables[0].rules, 2, "round", MAX_SEATS).size
            assert place.scale == (11 if table.rules.points == "face_10" else 14)
    (alone,) = find_places(tables[:1], games=1000, episode="match", rank=0, processes=1)
    assert alone.face.layout.size == Layout.of(tables[0].rules, 2, "match").size
    assert alone.scale == 1
    with pytest.raises(ValueError, match=rf"games=18 is out of range; allowed: {19 * processes} and more, for 19"):
        find_places(tables, games=18, episode="round", rank=0, processes=processes)


def test_no_two_games_of_a_run_share_a_deal() -> None:
    trainer = train.Trainer(small(rules="cucumber,agurk", players="2", games=40))
    openings = []
    for rollout in trainer.play():
        made = rollout.steps[0][0]
        openings += [rollout.observation[row].tobytes() for row in range(made.start, made.stop)]
    assert len(set(openings)) > 0.95 * len(openings) > 30


def test_one_agent_plays_at_all_its_tables(tmp_path: Path) -> None:
    """Saved, loaded and asked through the policy, it plays as it did in training, where masks had one width."""
    config = small(rules="cucumber,concombre,revival", players="2,8", episode="match", games=40, updates=1)
    trainer = train.Trainer(config)
    tables = [("cucumber", 2), ("concombre", 2), ("concombre", 8), ("revival", 2)]
    assert [place.table for place in trainer.places] == [Table(Rules.of(rules), count) for rules, count in tables]
    assert len(trainer.impossible) == 2
    metrics = trainer.advance()
    assert all(np.isfinite(value) for value in metrics.values())
    save_agent(tmp_path / "agent", trainer.agent, trainer.card())
    policy = NetworkPolicy.load(tmp_path / "agent")
    assert policy.card.tables == tuple(place.table for place in trainer.places)
    widths = set()
    for place in trainer.places:
        face = place.face
        at = face.reset(seed=9)
        for _ in range(30):
            rows = np.flatnonzero(at.mask.sum(axis=1) > 1)
            if len(rows):
                turns = face.turns(rows)
                found = policy.probabilities(turns)
                chosen = train.choose(trainer.agent, face, rows)
                width = place.table.rules.num_actions
                widths.add(width)
                assert found.shape == (len(rows), width)
                np.testing.assert_allclose(found, np.exp(chosen["log_probabilities"][:, :width]), atol=1e-5)
                assert (chosen["log_probabilities"][:, width:] < -1e8).all()
                assert (found[turns.mask == 0] == 0).all()
                np.testing.assert_array_equal(decide(policy, turns), chosen["action"])
            moving = np.flatnonzero(at.done == 0)
            actions = decide(policy, face.turns(moving)) if len(moving) else moving
            at = face.step(actions, rows=moving)
    assert widths == {13, 23}
    assert trainer.network.actions == 23


def test_an_agent_of_many_tables_plays_at_others_that_it_has_actions_for(tmp_path: Path) -> None:
    trainer = train.Trainer(small(rules="cucumber", players="2-3", games=4))
    save_agent(tmp_path / "agent", trainer.agent, trainer.card())
    policy = NetworkPolicy.load(tmp_path / "agent")
    for rules, players, episode in (("three_card", 5, "round"), ("agurk", 7, "match")):
        table = SelfPlay(rules, num_games=4, num_players=players, episode=episode)
        table.reset(seed=1)
        np.testing.assert_allclose(policy.probabilities(table.turns()).sum(axis=1), 1, rtol=1e-5)
    dealer = SelfPlay("concombre", num_games=4, num_players=3)
    dealer.reset(seed=1)
    with pytest.raises(ValueError, match=r"was trained for cucumber, 2 players; cucumber, 3 players, round episodes"):
        policy.probabilities(dealer.turns())


def test_a_saved_agent_plays_by_its_name(tmp_path: Path) -> None:
    """Sampled or greedy, at rounds and whole matches of its own kind of table, and nowhere else."""
    trainer = train.Trainer(small(games=4))
    sharpen(trainer.network, 100)
    save_agent(tmp_path / "agent", trainer.agent, trainer.card())
    name = f"checkpoint:{tmp_path / 'agent'}"
    for episode in ("round", "match"):
        table = SelfPlay(num_games=32, num_players=4, episode=episode, observe=False)
        table.reset(seed=9)
        found = make(name).probabilities(table.turns())
        np.testing.assert_allclose(found, trainer.policy().probabilities(table.turns()), rtol=1e-6)
        assert 0.3 < found.max(axis=1).mean() < 0.99
        greedy = make(f"{name},greedy=1").probabilities(table.turns())
        np.testing.assert_array_equal(greedy, found == found.max(axis=1, keepdims=True))
    other = SelfPlay("three_card", num_games=2, num_players=4, observe=False)
    other.reset(seed=9)
    message = r"trained for cucumber, 4 players, round episodes; .* 4 players .* hand_size=3 \(trained: 7\)"
    with pytest.raises(ValueError, match=message):
        make(name).probabilities(other.turns())
    of_matches = train.Trainer(small(games=4, episode="match")).policy()
    rounds = SelfPlay(num_games=2, num_players=4, observe=False)
    rounds.reset(seed=9)
    with pytest.raises(ValueError, match="match episodes; it was asked to play with 4 players and round episodes"):
        of_matches.probabilities(rounds.turns())
    response = train.Trainer(small(games=8, hidden=(8,), against=name))
    response.advance()
    assert response.measure().keys() == {"eval/penalty", "eval/half_width", "eval/gain"}


def test_masks_are_widened_with_illegal_actions() -> None:
    mask = np.array([[1, 0, 1]], np.int8)
    assert widened(mask, 5).tolist() == [[True, False, True, False, False]]
    assert widened(mask, 3).tolist() == [[True, False, True]]


def test_the_command_line_lists_and_skips_what_is_impossible(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole way: 19 tables and two impossible ones."""
    monkeypatch.setattr(report, "LEAST_DEALS", 2)
    words = "--rules cucumber,agurk,concombre --players 2-8 --updates 1 --games 38 --hidden 8 --threads 1 --device cpu"
    deals = "--evaluate-deals 2 --final-deals 2"
    arguments = [*words.split(), *deals.split(), "--out", str(tmp_path / "run")]
    assert train.main(arguments) == 0
    said = capsys.readouterr().err
    assert "19 tables: cucumber, 2 players; cucumber, 3 players;" in said
    for preset in ("cucumber", "agurk"):
        assert f"skipped: {preset}: players=8 is out of range; allowed: 2 to 7" in said
    assert said.count("skipped:") == 2
    measured = json.loads((tmp_path / "run" / report.REPORT).read_text())["tables"]
    assert [(str(Rules.from_dict(table["rules"])), table["players"]) for table in measured] == [
        (str(table.rules), table.players) for table in find_tables("cucumber,agurk,concombre", "2-8")[0]
    ]


def test_a_table_without_decisions_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--players", "2", "--rules", "cucumber,hand_size=1", "--games", "4", "--out", str(tmp_path / "run")]
    assert train.main(arguments) == 1
    assert "there is nothing to learn at this table" in capsys.readouterr().err
