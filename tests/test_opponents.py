"""Opponents in training: who sits where, that it stays so, what a pool remembers, and best responses."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from training import network, played, sharpen, small

import train
from agents.distributed import Group
from agents.network import ActorCritic
from agents.opponents import FADE, Lineup, Opponents, everywhere
from cucumber_env.envs.vector import SelfPlay
from cucumber_env.policies import make


class Recorder(SelfPlay):
    """Self-play that remembers every decision: game, seat, legal actions, action."""

    def reset(self, **arguments: Any) -> Any:
        self.decisions: list[tuple[int, int, list[int], int]] = []
        return super().reset(**arguments)

    def step(self, actions: np.ndarray, *, rows: np.ndarray | None = None) -> Any:
        rows = np.arange(self.num_games) if rows is None else rows
        for row, action in zip(rows.tolist(), actions.tolist(), strict=True):
            if len(legal := np.flatnonzero(self.buffers.mask[row]).tolist()) > 1:
                self.decisions.append((row, int(self.buffers.turn[row]), legal, action))
        return super().step(actions, rows=rows)


def decided(player: ActorCritic, action: int) -> ActorCritic:
    """Make a network play action `action` wherever it is legal."""
    list(player.actor.parameters())[-1].data[action] = 1e4
    return player


@pytest.mark.parametrize(("rules", "episode"), [("cucumber", "round"), ("three_card", "match")])
def test_opponents_are_constant_within_a_game(rules: str, episode: str) -> None:
    """Read off the actions: one opponent plays low, one plays high, one is a network that plays sixes."""
    table = Recorder(rules, num_games=60, num_players=4, episode=episode, autoreset=False)
    player, six = network(table), decided(network(table), 4)
    draw = np.random.default_rng(5)
    seated = np.repeat(draw.integers(0, 4, size=(60, 1)), 4, axis=1)
    seated[np.arange(60), draw.integers(4, size=60)] = 0
    lineup = Lineup((player, make("lowest"), make("highest"), six), seated)
    rollout = played(player, table, lineup=lineup)
    expected: dict[int, Callable[[list[int]], int | None]] = {
        1: min,
        2: max,
        3: lambda legal: 4 if 4 in legal else None,
    }
    counts = np.zeros(4, int)
    asked = {(game, seat) for _, games, seats, _ in rollout.steps for game, seat in zip(games, seats, strict=True)}
    for game, seat, legal, action in table.decisions:
        number = int(seated[game, seat])
        counts[number] += 1
        assert ((game, seat) in asked) == (number == 0)
        if number and (answer := expected[number](legal)) is not None:
            assert action == answer
    assert counts[0] == len(rollout.action)
    assert (counts > 50).all()


def test_the_learners_own_seats_are_not_all_low_or_high() -> None:
    """The counterpart of the test above: it could tell."""
    table = Recorder(num_games=60, num_players=4, autoreset=False)
    played(network(table), table)
    assert len({(action == min(legal), action == max(legal)) for _, _, legal, action in table.decisions}) == 3


def pool(*records: tuple[float, float], kind: str = "uniform", share: float = 0.25) -> Opponents:
    """Opponents with a member for every record (games, wins)."""
    opponents = Opponents(pool=kind, share=share)
    for games, wins in records:
        opponents.remember(network())
        opponents.games[-1], opponents.wins[-1] = games, wins
    return opponents


def test_chances_by_hand() -> None:
    records = [(0.0, 0.0), (9.0, 9.0), (99.0, 0.0)]
    np.testing.assert_allclose(pool(*records).chances(), [1 / 3, 1 / 3, 1 / 3])
    # Share of games won, with half a win in one game more: ½, .95 and .005; hardest first: (1 − share)² + .001.
    weights = np.array([0.25, 0.0025, 0.990025]) + 0.001
    np.testing.assert_allclose(pool(*records, kind="prioritised").chances(), weights / weights.sum())


def test_an_update_meets_different_members_by_their_chances() -> None:
    opponents = pool(*[(100.0, 100.0)] * 6, (100.0, 0.0), (100.0, 50.0))
    met = [opponents.meet(seed=1, update=update) for update in range(2000)]
    assert all(len(set(some)) == 4 and some == sorted(some) for some in met)
    often = np.bincount(np.concatenate(met), minlength=8) / 2000
    np.testing.assert_allclose(often, 0.5, atol=0.05)
    opponents.pool = "prioritised"
    often = np.bincount(np.concatenate([opponents.meet(seed=1, update=n) for n in range(500)]), minlength=8) / 500
    assert often[6] > 0.99
    assert often[7] > 0.99
    assert often[:6] == pytest.approx(2 / 6, abs=0.1)
    assert pool((0, 0), (0, 0)).meet(seed=1, update=1) == [0, 1]
    assert Opponents(pool="uniform").meet(seed=1, update=1) == []
    assert pool((0, 0), kind="none").meet(seed=1, update=1) == []


def test_what_is_met_depends_on_seed_and_update_alone() -> None:
    opponents = pool(*[(0.0, 0.0)] * 8)
    first = [opponents.meet(seed=1, update=update) for update in range(20)]
    opponents.meet(seed=5, update=100)
    assert [opponents.meet(seed=1, update=update) for update in reversed(range(20))][::-1] == first
    assert [opponents.meet(seed=2, update=update) for update in range(20)] != first
    assert len(set(map(tuple, first))) > 5


def test_records_fade_by_hand() -> None:
    opponents = pool((0, 0), (10, 4), (0, 0))
    opponents.record([1, 2], np.array([[5.0, 5.0], [8.0, 2.5]]))
    assert FADE == 0.9
    assert opponents.games == pytest.approx([0, 14, 8])
    assert opponents.wins == pytest.approx([0, 8.6, 2.5])
    opponents.record([0, 1], np.array([[1.0, 0.0], [0.0, 0.0]]))
    assert opponents.games == pytest.approx([1, 12.6, 8])
    assert opponents.wins == pytest.approx([0, 7.74, 2.5])


def test_scores_by_hand() -> None:
    player = network()
    seated = np.array([[0, 0, 0], [1, 0, 1], [0, 2, 2], [2, 2, 0], [1, 1, 0], [1, 0, 1]])
    returns = np.array([[9, 9, -18], [-2, 4, -2], [-6, 3, 3], [0, 0, 0], [1, 1, -2], [-3, 6, -3]], np.float32)
    lineup = Lineup((player, player, player), seated)
    np.testing.assert_array_equal(lineup.scores(returns), [[3, 2], [2, 0.5]])
    np.testing.assert_array_equal(everywhere(player, 6, 3).scores(returns), np.zeros((0, 2)))


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_the_share_of_games_and_seats(share: float) -> None:
    opponents = pool((0, 0), (0, 0), (0, 0), share=share)
    lineup = opponents.lineup(network(), [0, 2], 20_000, 5, np.random.default_rng(3))
    seated = lineup.seats
    assert lineup.players[1:] == (opponents.members[0], opponents.members[2])
    among = (seated > 0).any(axis=1)
    assert among.mean() == pytest.approx(share, abs=0.012)
    others = np.sort(seated[among], axis=1)
    assert (others[:, 0] == 0).all()
    assert (others[:, 1:] == others[:, 1:2]).all()  # one seat of the learner among four of one opponent
    if share:
        np.testing.assert_allclose((seated[among] == 0).mean(axis=0), 0.2, atol=0.02)
        assert (others[:, 1] == 1).mean() == pytest.approx(0.5, abs=0.03)


def keep_rollouts(trainer: train.Trainer) -> list[list[train.Rollout]]:
    """What the trainer plays from now on, update by update."""
    kept: list[list[train.Rollout]] = []
    play = trainer.play

    def watched() -> list[train.Rollout]:
        kept.append(play())
        return kept[-1]

    trainer.play = watched  # type: ignore[method-assign]
    return kept


def test_a_pool_is_unchanged_by_training_and_keeps_its_records() -> None:
    trainer = train.Trainer(small(updates=8, games=64, pool="prioritised", pool_size=4, pool_share=0.5, average=0.5))
    kept = keep_rollouts(trainer)
    taken: list[list[bytes]] = []
    games, wins = np.zeros(4), np.zeros(4)
    for update in range(8):
        before = content(trainer.agent)
        trainer.advance()
        members = trainer.opponents.members
        if update % 2 == 0:
            taken.append(before)
        assert [content(member) for member in members] == taken
        lineup = kept[-1][0].lineup
        assert lineup.players == (trainer.network, *members)
        for game, seats in enumerate(lineup.seats.tolist()):
            if number := max(seats):
                paid = kept[-1][0].returns()[game, seats.index(0)]
                games[number - 1] += 1
                wins[number - 1] += 1 if paid > 0 else 0.5 * (paid == 0)
        assert trainer.opponents.games == pytest.approx(games[: len(members)].tolist())
        assert trainer.opponents.wins == pytest.approx(wins[: len(members)].tolist())
        games, wins = 0.9 * games, 0.9 * wins
    assert len(members) == 4
    assert all(one != other for one, other in pairwise(taken))
    trained = {id(weight) for group in trainer.optimizer.param_groups for weight in group["params"]}
    for member in members:
        assert not any(weight.requires_grad or id(weight) in trained for weight in member.parameters())


def content(player: ActorCritic) -> list[bytes]:
    """The actor's weights, byte by byte."""
    return [weight.detach().numpy().tobytes() for weight in player.actor.parameters()]


@pytest.mark.parametrize(("updates", "size", "members"), [(6, 16, 6), (7, 3, 3), (5, 1, 1), (16, 5, 5)])
def test_a_pool_takes_members_evenly_over_the_run(updates: int, size: int, members: int) -> None:
    trainer = train.Trainer(small(updates=updates, games=4, hidden=(4,), pool="uniform", pool_size=size))
    counts = []
    for _ in range(updates):
        trainer.advance()
        counts.append(len(trainer.opponents.members))
    assert (counts[0], counts[-1]) == (1, members)
    taken = np.flatnonzero(np.diff(counts, prepend=0))
    assert np.ptp(np.diff([*taken, updates])) <= 1


def test_lineups_depend_on_seed_update_and_table_alone() -> None:
    settings: dict[str, Any] = {"players": "2-3", "games": 200, "pool": "uniform", "pool_share": 0.5, "pool_size": 1}
    seats: dict[str, list[np.ndarray]] = {}
    runs: dict[str, dict[str, Any]] = {
        "one": {},
        "other weights": {"learning_rate": 1e-2, "entropy": 0.1},
        "other seed": {"seed": 2},
    }
    for name, changes in runs.items():
        trainer = train.Trainer(small(**settings, **changes))
        kept = keep_rollouts(trainer)
        for _ in range(2):
            trainer.advance()
        seats[name] = [rollout.lineup.seats for rollouts in kept for rollout in rollouts]
    one = seats["one"]
    assert all(np.array_equal(mine, theirs) for mine, theirs in zip(one, seats["other weights"], strict=True))
    assert not any(np.array_equal(mine, theirs) for mine, theirs in zip(one, seats["other seed"], strict=True))
    assert not np.array_equal(one[0], one[2])  # the same table in two updates
    assert not np.array_equal(one[0].min(1) == one[0].max(1), one[1].min(1) == one[1].max(1))  # two tables


class Part(Group):
    """One of several processes, without the others."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__(torch.device("cpu"))
        self.rank, self.size = rank, size

    def sum(self, numbers: torch.Tensor) -> torch.Tensor:
        return numbers


@pytest.mark.parametrize("processes", [2, 3])
def test_processes_share_the_games_and_lineups_of_one(processes: int) -> None:
    config = small(players="2-3", games=31, pool="uniform", pool_share=0.5)
    parts = []
    for rank, count in [(0, 1), *((rank, processes) for rank in range(processes))]:
        trainer = train.Trainer(config, Part(rank, count))
        for _ in range(8):  # of which an update meets four
            sharpen(trainer.network, 1.5)
            trainer.opponents.remember(trainer.network)
        parts.append(trainer.play())
    rollouts = parts.pop(0)
    for number, rollout in enumerate(rollouts):
        mine = [part[number] for part in parts]
        np.testing.assert_array_equal(rollout.lineup.seats, np.concatenate([part.lineup.seats for part in mine]))
        np.testing.assert_array_equal(rollout.returns(), np.concatenate([part.returns() for part in mine]))
        assert rollout.turns == sum(part.turns for part in mine)
        for part in mine:
            assert [*map(content, rollout.lineup.players)] == [*map(content, part.lineup.players)]  # type: ignore


def test_against_a_policy_the_learner_has_one_seat() -> None:
    trainer = train.Trainer(small(against="lowest", games=300))
    kept = keep_rollouts(trainer)
    trainer.advance()
    ((rollout,),) = kept
    assert [getattr(one, "name", None) for one in rollout.lineup.players] == [None, "lowest"]
    assert (np.sort(rollout.lineup.seats, axis=1) == [0, 1, 1, 1]).all()
    assert ((rollout.lineup.seats == 0).sum(axis=0) > 40).all()
    for _, games, seats, _ in rollout.steps:
        assert (rollout.lineup.seats[games, seats] == 0).all()
    assert trainer.opponents.games == []


def test_rivals_are_met_beside_past_selves() -> None:
    trainer = train.Trainer(small(rivals=("lowest", "highest"), pool="uniform", pool_share=0.5, games=600))
    kept = keep_rollouts(trainer)
    trainer.advance()
    ((rollout,),) = kept
    assert [getattr(one, "name", None) for one in rollout.lineup.players] == [None, None, "lowest", "highest"]
    met = np.bincount(rollout.lineup.seats.max(axis=1), minlength=4)
    assert met[0] == pytest.approx(300, abs=50)
    assert (np.abs(met[1:] - 100) < 35).all()
    assert len(trainer.opponents.games) == 1
    assert trainer.opponents.games[0] == met[1]


@pytest.mark.parametrize(("against", "at_most"), [("lowest", 0.25), ("highest", 2.3)])
def test_a_best_response_learns(against: str, at_most: float) -> None:
    """Random play pays about 0.6 points a round among three `lowest` and 3.7 among three `highest`."""
    settings: dict[str, Any] = {"updates": 12, "games": 512, "minibatch": 512, "evaluate_deals": 500}
    trainer = train.Trainer(small(against=against, hidden=(64,), learning_rate=5e-3, **settings))
    untrained = trainer.measure()
    for _ in range(12):
        trainer.advance()
    trained = trainer.measure()
    assert trained["eval/penalty"] + trained["eval/half_width"] < at_most
    assert untrained["eval/penalty"] - untrained["eval/half_width"] > at_most
    assert trained["eval/gain"] > untrained["eval/gain"]
