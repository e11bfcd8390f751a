"""Opponents, and the slow way to see a game as one seat lives it, for the tests of the Gymnasium faces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cucumber_env.batch import RUNNING, TERMINATED, TRUNCATED
from cucumber_env.envs.single_agent import CucumberEnv
from cucumber_env.envs.vector import SelfPlay
from cucumber_env.policies import Turns

Choice = Callable[[Turns], np.ndarray]

SHORT_MATCHES: dict[str, Any] = {
    "cucumber": {"preset": "cucumber", "threshold": 9},
    "three_card": {"preset": "three_card", "threshold": 15},
    "revival": {"preset": "revival", "hand_size": 2, "threshold": 12},
    "revival by chip": {"preset": "revival", "revival": "chip", "hand_size": 1, "threshold": 10},
    "revival by skip": {"preset": "revival", "revival": "skip", "hand_size": 1, "threshold": 10},
    "sudden death": {"preset": "express", "rounds": 2, "hand_size": 2},
    "several out": {"preset": "wikipedia", "ranks": "TJA", "hand_size": 2, "threshold": 10, "players": [2, 4]},
    "literal": {"preset": "literal", "hand_size": 2, "threshold": 20},
    "concombre": {"preset": "concombre", "threshold": 12},
    "inverted": {"preset": "inverted", "hand_size": 2, "threshold": 11},
}
"""Matches in which much happens soon: elimination, revival, sudden death, dealer's choice."""


def any_legal(turns: Turns) -> np.ndarray:
    """A legal action drawn uniformly with the number of the decision."""
    legal = [np.flatnonzero(row) for row in turns.mask]
    return np.array([actions[int(u * len(actions))] for actions, u in zip(legal, turns.u, strict=True)], np.int64)


def first_legal(turns: Turns) -> np.ndarray:
    """The legal action with the lowest id."""
    return turns.mask.argmax(axis=1)


def last_legal(turns: Turns) -> np.ndarray:
    """The legal action with the highest id."""
    return turns.mask.shape[1] - 1 - turns.mask[:, ::-1].argmax(axis=1)


@dataclass
class Life:
    """What one seat met in one episode: its turns (observation, mask), what it earned, how the episode ended."""

    turns: list[tuple[bytes, bytes]] = field(default_factory=list)
    earned: float = 0.0
    done: int = RUNNING
    totals: list[int] = field(default_factory=list)


def life_at(
    seat: int, *, seed: int, game: int = 0, number: int = 0, learner: Choice, opponents: Sequence[Choice], **table: Any
) -> Life:
    """Play episode `number` of game `game` to its very end, one turn at a time, every seat asked in its turn.

    Args:
        seat: The seat whose life is told.
        learner: What it plays.
        opponents: What each seat plays (that of `seat` is not used).
        table: Arguments of `SelfPlay`.
    """
    play = SelfPlay(num_games=1, skip_forced=False, autoreset=False, **table)
    at = play.reset(seed=seed, games=np.array([game]), episodes=number)
    life = Life()
    while not at.done[0]:
        turn = int(at.turn[0])
        if turn == seat:
            life.turns.append((at.observation[0].tobytes(), at.mask[0].tobytes()))
        at = play.step((learner if turn == seat else opponents[turn])(play.turns()))
        life.earned += float(at.rewards[0, seat])
    life.done = int(at.done[0])
    life.totals = play.games["public"]["totals"][0].tolist()
    return life


def play_episode(env: CucumberEnv, choose: Choice = any_legal) -> dict[str, Any]:
    """Play the episode that has begun; what the learner met and earned."""
    turns, rewards = [], []
    while True:
        turn = env.turns()
        turns.append((turn.observation[0].tobytes(), turn.mask[0].tobytes()))
        _, reward, terminated, truncated, info = env.step(int(choose(turn)[0]))
        rewards.append(reward)
        if terminated or truncated:
            return {"turns": turns, "rewards": rewards, "done": TERMINATED if terminated else TRUNCATED, "info": info}
