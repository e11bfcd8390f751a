"""Helpers for tests of the AEC face: episodes played out, cards put into hands, the stock wrappers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
from pettingzoo import AECEnv
from pettingzoo.utils.wrappers import AssertOutOfBoundsWrapper, OrderEnforcingWrapper, TerminateIllegalWrapper
from tables import packed, ranks_of

from cucumber_env import cucumber_v0, one_table
from cucumber_env.envs.aec import CucumberAEC
from cucumber_env.rules import PRESETS, Rules

Policy = Callable[[np.ndarray], int]
"""From the indices of the legal actions to one of them."""

TABLES: list[dict[str, Any]] = [
    {"rules": name, "num_players": players, "episode": episode, "elimination": elimination}
    for name in PRESETS
    for players in range(2, Rules.preset(name).max_players + 1)
    for episode, elimination in (("round", "wait"), ("match", "wait"), ("match", "remove"))
]
"""Every preset, number of players, episode and mode of elimination."""


def name_of(table: dict[str, Any]) -> str:
    return "-".join(map(str, table.values()))


def stock_env(**arguments: Any) -> OrderEnforcingWrapper:
    """`raw_env` in PettingZoo's own wrappers, in the order in which its environments use them."""
    raw = cucumber_v0.raw_env(**arguments)
    return OrderEnforcingWrapper(AssertOutOfBoundsWrapper(TerminateIllegalWrapper(raw, raw.reward_range[0])))


def random_policy(seed: int) -> Policy:
    chance = Random(seed)
    return lambda legal: int(chance.choice(legal))


def walk(env: AECEnv, policy: Policy) -> Iterator[tuple[str, int | None]]:
    """Play what has begun to its end; after every step the agent and what it did."""
    for agent in env.agent_iter():
        observation, _, terminated, truncated, _ = env.last()
        dead = terminated or truncated
        action = None if dead else policy(np.flatnonzero(observation["action_mask"]))
        env.step(action)
        yield agent, action


def returns_of(env: AECEnv, policy: Policy) -> dict[str, float]:
    """Play what has begun to its end; what every agent has then collected from `last`."""
    total = dict.fromkeys(env.agents, 0.0)
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, _ = env.last()
        total[agent] += reward
        dead = terminated or truncated
        env.step(None if dead else policy(np.flatnonzero(observation["action_mask"])))
    return total


def begun(kind: type[CucumberAEC] = cucumber_v0.env, *, leader: int = 0, **arguments: Any) -> CucumberAEC:
    """An environment after a reset with a seed that makes seat `leader` lead the first round."""
    env = kind(**arguments)
    for seed in range(100):
        env.reset(seed=seed)
        if env.agent_selection == f"player_{leader}":
            return env
    raise AssertionError("no seed found")


def put(env: CucumberAEC, *, hands: str, totals: list[int] | None = None) -> None:
    """Put these cards into the hands of a round that nobody has played to yet, and these totals on the slate.

    Args:
        env: A table where all is dealt.
        hands: Text of each seat's hand, apart by spaces; ``-`` for a seat that sits out.
        totals: Points of every seat.
    """
    game = env._table["game"][0]
    for seat, hand in enumerate(hands.split()):
        game["hands"][seat] = packed(ranks_of(hand.replace("-", "")))
        if totals is not None:
            game["public"]["totals"][seat] = totals[seat]
    refresh(env)


def refresh(env: CucumberAEC) -> None:
    """Write anew what the seat to move sees, after a hand was laid on the table's memory."""
    one_table.write_turn(env._memory)
    env._give_turn(env.agent_selection)


def play(env: CucumberAEC, ranks: str) -> list[dict[str, float]]:
    """Play these cards in turn; the rewards after each."""
    rewards = []
    for rank in ranks_of(ranks):
        env.step(rank)
        rewards.append(dict(env.rewards))
    return rewards


def leave(env: CucumberAEC) -> dict[str, tuple[float, bool, bool]]:
    """Step the dead agents that are selected; in their order, what each found: reward, terminated, truncated."""
    found = {}
    while env.agents and (env.terminations[env.agent_selection] or env.truncations[env.agent_selection]):
        agent = env.agent_selection
        _, reward, terminated, truncated, info = env.last()
        assert not info["action_mask"].any()
        found[agent] = (reward, terminated, truncated)
        env.step(None)
    return found
