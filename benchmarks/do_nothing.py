"""An AEC environment without a game in it: the floor under any environment in plain Python.

Its shapes are those of one Cucumber round with four players and seven cards: the same spaces, 28
turns, agents in a cycle, a reward on the last turn. It is written as PettingZoo's documentation
advises, on the helpers of the base class. Every action is legal. Observations are constant; each
turn hands out fresh copies, as an environment must whose caller may keep what it was given, or with
``copy=False`` always the same arrays, so that nothing but the API itself takes time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from pettingzoo import AECEnv
from pettingzoo.utils import wrappers

NUM_AGENTS = 4
NUM_ACTIONS = 13
EPISODE_TURNS = 28


def env(*, width: int) -> AECEnv:
    """The environment inside the three stock wrappers, in the order PettingZoo's environments use."""
    wrapped: AECEnv = raw_env(width=width)
    wrapped = wrappers.TerminateIllegalWrapper(wrapped, illegal_reward=-1)
    wrapped = wrappers.AssertOutOfBoundsWrapper(wrapped)
    return wrappers.OrderEnforcingWrapper(wrapped)


def raw_env(*, width: int, copy: bool = True) -> AECEnv:
    """The bare environment; `width` is the length of its observation, `copy` whether it hands out fresh arrays."""
    return DoNothing(width=width, copy=copy)


class DoNothing(AECEnv):
    """Four agents take 28 turns; the first one pays a point at the end."""

    metadata = {"name": "do_nothing_v0", "render_modes": [], "is_parallelizable": False}  # noqa: RUF012

    def __init__(self, *, width: int, copy: bool = True):
        self.copy = copy
        self.possible_agents = [f"player_{i}" for i in range(NUM_AGENTS)]
        self.render_mode = None
        self.observation_spaces = {
            agent: Dict(
                {
                    "observation": Box(0, 1, (width,), np.int8),
                    "action_mask": Box(0, 1, (NUM_ACTIONS,), np.int8),
                },
                sort_keys=False,
            )
            for agent in self.possible_agents
        }
        self.action_spaces = {agent: Discrete(NUM_ACTIONS) for agent in self.possible_agents}
        self._observation = {
            "observation": np.ones(width, np.int8),
            "action_mask": np.ones(NUM_ACTIONS, np.int8),
        }

    def observation_space(self, agent: str) -> Dict:
        """The space of `agent`, the same object on every call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Discrete:
        """The space of `agent`, the same object on every call."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start an episode."""
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {} for agent in self.agents}
        self.agent_selection = self.agents[0]
        self._skip_agent_selection = None
        self._turns = 0

    def observe(self, agent: str) -> dict[str, np.ndarray]:
        """The constant observation."""
        if not self.copy:
            return self._observation
        return {
            "observation": self._observation["observation"].copy(),
            "action_mask": self._observation["action_mask"].copy(),
        }

    def step(self, action: int | None) -> None:
        """Count a turn and pass it on."""
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        self._turns += 1
        if self._turns == EPISODE_TURNS:
            self.rewards[self.agents[0]] = -1.0
            self.terminations = dict.fromkeys(self.agents, True)
        self.agent_selection = self.agents[self._turns % NUM_AGENTS]
        self._accumulate_rewards()

    def render(self) -> None:
        """Nothing to see."""

    def close(self) -> None:
        """Nothing to release."""
