"""The PettingZoo face with the checks of the stock wrappers built in: what ``cucumber_v0.env`` makes."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
from pettingzoo.utils.env import AECIterable
from pettingzoo.utils.env_logger import EnvLogger

from cucumber_env.envs.aec import CucumberAEC, Observation, Snapshot


class _AgentIter(AECIterable[str, Observation, int]):
    """What `agent_iter` returns: every agent that it yields must step, or reset, before the next."""

    def __iter__(self) -> Iterator[str]:
        env, left = self.env, self.max_iter
        while env._agents and left > 0:
            left -= 1
            if not env._has_updated:
                raise AssertionError("need to call step() or reset() in a loop over `agent_iter`")
            env._has_updated = False
            yield env._agent_selection


class CheckedCucumberAEC(CucumberAEC):
    """`CucumberAEC` with the checks of PettingZoo's three stock wrappers, in the same words, at a fraction of the cost.

    Checked as `OrderEnforcingWrapper`, `AssertOutOfBoundsWrapper` and `TerminateIllegalWrapper` do it: nothing before
    `reset`, one step for every turn of `agent_iter`, actions in the action space; and an illegal action ends the
    episode with a warning. What differs:

    * An illegal action terminates; the stock wrapper sets truncations as well.
    * It brings the offender's *return of the episode* down to the least of `reward_range`. The stock wrapper
      drops what the agent has not collected yet and pays a fixed number on top of what it has.
    * The others share what makes the episode sum to zero (chip costs apart), nothing under ``points``. The stock
      wrapper pays them nothing.
    * ``True`` and ``False`` are not in the action space. The stock wrappers fail on them with a ValueError.
    * All masks are zeros after an illegal end.

    Arguments and attributes are those of `CucumberAEC`.
    """

    _has_updated = False

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """As `CucumberAEC.reset`."""
        self._has_updated = True
        super().reset(seed, options)

    def restore_state(self, state: Snapshot) -> None:
        """As `CucumberAEC.restore_state`; counts as a step for `agent_iter`."""
        super().restore_state(state)
        self._has_updated = True

    def agent_iter(self, max_iter: int = 2**63) -> AECIterable[str, Observation, int]:
        """Agents in the order in which they are to call `step`, until all have left or `max_iter` turns are over.

        Raises:
            AssertionError: before `reset`, or in the loop if there was neither a step nor a reset since the last agent.
        """
        if not self._begun:
            EnvLogger.error_agent_iter_before_reset()
        return _AgentIter(self, max_iter)

    def step(self, action: int | None) -> None:
        """Play `action` for the selected agent; an agent that is dead takes None and leaves.

        An illegal action ends the episode with the worst return for its agent. A step after all agents have left
        does nothing but warn.

        Raises:
            AssertionError: before `reset`, or an action outside the action space.
            ValueError: an action of a dead agent.
        """
        if not self._begun:
            EnvLogger.error_step_before_reset()
        self._has_updated = True
        if not self._agents:
            EnvLogger.warn_step_after_terminated_truncated()
            return
        if type(action) is not int or not 0 <= action < self._num_actions:
            action = self._in_space(action)
        CucumberAEC.step(self, action)  # super() costs more than the checks

    def _in_space(self, action: Any) -> int | None:
        """`action` as an int, or None for a dead agent. Raises AssertionError: it is not in the action space."""
        if type(action) is np.int64 and 0 <= action < self._num_actions:  # what spaces sample, so it should be quick
            return int(action)
        agent = self._agent_selection
        if action is None and (self._terminations[agent] or self._truncations[agent]):
            return None
        if isinstance(action, bool) or not self.action_spaces[agent].contains(action):
            raise AssertionError("action is not in action space")
        return operator.index(action)

    def _refuse(self, action: int) -> None:
        """End the episode: the offender's return is the least there is, the others share what it loses."""
        EnvLogger.warn_on_illegal_move()
        offender = self._agent_selection
        others = [agent for agent in self._agents if agent != offender]
        penalty = self.reward_range[0] - float(self._returns[self._seat[offender]])
        rewards = dict.fromkeys(others, self._share(penalty, len(others)))
        rewards[offender] = penalty
        self._cumulative_rewards[offender] = 0.0
        self._clear_rewards()
        self._pay([rewards.get(agent, 0.0) for agent in self.possible_agents])
        self._terminations = dict.fromkeys(self._agents, True)
        self._infos[offender] = self._idle[offender]
        self._mover = None
        self._agent_selection = self._agents[0]
        if self._prints:
            self.render()

    def _share(self, penalty: float, others: int) -> float:
        """What each of `others` gets when an offender is paid `penalty`."""
        if self.reward == "points":
            return 0.0
        if self.reward == "outcome":  # seats that have left were paid their part of the losers' −1
            penalty -= (len(self.possible_agents) - len(self._agents)) / (len(self.possible_agents) - 1)
        return -penalty / others
