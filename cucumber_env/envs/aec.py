"""The PettingZoo face without the checks of the stock wrappers: `CucumberAEC`, what ``cucumber_v0.raw_env`` makes.

How the environment is used is said in `cucumber_env.cucumber_v0`; here is how it is made. All of a table lies in one
block of memory (`cucumber_env.one_table`), a turn is one compiled call, and of the dictionaries that PettingZoo
wants only those entries are written that a turn has changed.
"""

from __future__ import annotations

import operator
import secrets
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from gymnasium import logger
from gymnasium.spaces import Box, Dict, Discrete
from pettingzoo import AECEnv
from pettingzoo.utils.env import AECIterable
from pettingzoo.utils.env_logger import EnvLogger

from cucumber_env import batch, one_table
from cucumber_env.batch import REWARDS
from cucumber_env.cards import ACTIONS
from cucumber_env.envs import RENDER_MODES
from cucumber_env.observation import Layout
from cucumber_env.one_table import CUT, ENDED, ILLEGAL, LEFT, PAID, SETTINGS_WORDS, TABLE_WORDS
from cucumber_env.policies import Turns
from cucumber_env.rewards import reward_range
from cucumber_env.rules import Rules
from cucumber_env.state import OVER, VIEW, as_records, compile_rules

Observation = dict[str, np.ndarray]

ELIMINATIONS = ("wait", "remove")

_VIEWS = ("_table", "_rows", "_mask", "_earned", "_returns")


class Snapshot(NamedTuple):
    """What `CucumberAEC.clone_state` returns and `restore_state` takes; it can be pickled, and is opaque otherwise."""

    memory: np.ndarray
    agents: list[str]
    selected: str
    skipped: str | None
    mover: str | None
    final: bool
    paid: bool
    rewards: dict[str, float]
    cumulative: dict[str, float]
    terminations: dict[str, bool]
    truncations: dict[str, bool]
    infos: dict[str, dict[str, Any]]
    idle: dict[str, dict[str, Any]]


class _AgentIter(AECIterable[str, Observation, int]):
    """What `agent_iter` returns; its iterator is a generator, which is quicker than PettingZoo's and does the same."""

    def __iter__(self) -> Iterator[str]:
        env, left = self.env, self.max_iter
        while env._agents and left > 0:
            left -= 1
            yield env._agent_selection


def _after_reset(name: str, doc: str) -> Any:
    """A property that exists after the first reset alone; the class itself uses the attribute behind it."""
    private = f"_{name}"

    def get(env: CucumberAEC) -> Any:
        try:
            return getattr(env, private)
        except AttributeError:
            raise AttributeError(f"{name} cannot be accessed before reset") from None

    return property(get, lambda env, value: setattr(env, private, value), doc=doc)


class CucumberAEC(AECEnv[str, Observation, int]):
    """A table of Cucumber as a PettingZoo AEC environment, without checks of how it is used but for illegal actions.

    See `cucumber_env.cucumber_v0` for observations, actions, rewards and endings.

    Args:
        rules: Rules, a preset with changes such as ``"cucumber,hand_size=3"``, or a mapping of fields.
        num_players: Seats at the table.
        episode: ``"match"`` or ``"round"``.
        elimination: What becomes of a player who is out of the match for good. ``"wait"``: stays in `agents`, is never
            selected again and terminates with everybody else. ``"remove"``: terminates at once and leaves.
        reward: ``"points"``, ``"zero_sum"`` (default for rounds) or ``"outcome"`` (default for matches).
        max_rounds: Rounds after which a match is truncated, or None.
        seats: None for the table's own layout of observations, 8 for the one that is the same for every table.
        chip_cost: What coming back by a chip costs, in units of reward.
        render_mode: ``"human"`` prints the table at every reset and step, ``"ansi"`` makes `render` return it as text.

    Raises:
        ValueError, TypeError: an argument out of range, named.

    Attributes:
        rules: Rules in force.
        layout: Layout of ``observation``, with named views and `explain`.
        reward_range: Least and most that a seat's rewards of one episode can add up to.
        state_space: Space of `state`.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (PettingZoo's own way)
        "name": "cucumber_v0",
        "render_modes": list(RENDER_MODES),
        "is_parallelizable": False,
        "render_fps": 1,
    }

    agents = _after_reset("agents", "Agents that have not left the episode.")
    agent_selection = _after_reset("agent_selection", "The agent that is to step.")
    rewards = _after_reset("rewards", "What every agent was paid by the last step.")
    terminations = _after_reset("terminations", "Whether the rules have ended the episode for an agent.")
    truncations = _after_reset("truncations", "Whether the limit of rounds has ended the episode for an agent.")
    infos = _after_reset("infos", '``{"action_mask": int8 [A]}`` of every agent, all zeros unless it is to move.')

    _mover: str | None
    """Agent to move, None when the episode is over."""
    _skip_agent_selection: str | None

    @property
    def num_agents(self) -> int:
        """How many agents have not left the episode."""
        if not self._begun:
            raise AttributeError("num_agents cannot be accessed before reset")
        return len(self._agents)

    def __init__(
        self,
        *,
        rules: Rules | str | Mapping[str, Any] = "cucumber",
        num_players: int = 4,
        episode: str = "match",
        elimination: str = "wait",
        reward: str | None = None,
        max_rounds: int | None = None,
        seats: int | None = None,
        chip_cost: float = 0.0,
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        self.rules = Rules.of(rules)
        players = self.rules.check_players(num_players)
        options = batch.make_options(
            rules=self.rules,
            num_players=players,
            episode=episode,
            reward=reward,
            max_rounds=max_rounds,
            chip_cost=chip_cost,
        )
        self.episode = episode
        self.elimination = _one_of("elimination", elimination, ELIMINATIONS)
        self.render_mode = None if render_mode is None else _one_of("render_mode", render_mode, RENDER_MODES)
        self._prints = render_mode == "human"
        self.reward = REWARDS[options["reward"][0]]
        self.layout = Layout.of(self.rules, players, episode, seats)
        self.reward_range = reward_range(self.rules, options)
        self.possible_agents = [f"player_{seat}" for seat in range(players)]
        self._make_spaces()
        self._seat = {agent: seat for seat, agent in enumerate(self.possible_agents)}
        self._nothing = dict.fromkeys(self.possible_agents, 0.0)
        self._nobody = dict.fromkeys(self.possible_agents, False)
        self._no_action = np.zeros(self.rules.num_actions, np.int8)
        self._memory = one_table.new_memory(
            rules=compile_rules(self.rules),
            layout=self.layout.compiled,
            options=options,
            remove=elimination == "remove",
        )
        self._seeded = False
        self._begun = False
        self._attach()

    def _make_spaces(self) -> None:
        actions = self._num_actions = self.rules.num_actions
        self.observation_spaces = {
            agent: Dict(
                {
                    "observation": Box(0, 1, (self.layout.size,), np.int8),
                    "action_mask": Box(0, 1, (actions,), np.int8),
                },
                sort_keys=False,
            )
            for agent in self.possible_agents
        }
        self.action_spaces = {agent: Discrete(actions) for agent in self.possible_agents}
        self.state_space = Box(0, 1, (one_table.state_size(self.layout),), np.int8)

    def _attach(self) -> None:
        """Name the parts of the memory that Python reads."""
        size = self.layout.size
        rows = self._memory[TABLE_WORDS:].view(np.int8)
        self._rows = {agent: rows[seat * size : (seat + 1) * size] for agent, seat in self._seat.items()}
        self._mask = rows[len(self._seat) * size :][: self.rules.num_actions]
        self._table = one_table.table_in(self._memory)
        self._earned = self._table["rewards"][0]
        self._returns = self._table["returns"][0]

    def observation_space(self, agent: str) -> Dict:
        """The space of an agent's observations, the same object on every call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Discrete:
        """The space of an agent's actions, the same object on every call."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin episode 0 of game 0 under `seed`, or without one the next episode.

        Args:
            seed: Any integer ≥ 0. If no seed was ever given, the first episode takes one from the operating system.
            options: Nothing is read from it.

        Raises:
            ValueError, TypeError: `seed` is no integer ≥ 0.
        """
        if seed is not None or not self._seeded:
            self._table["game"]["seed"] = batch.seed_word(secrets.randbits(64) if seed is None else seed)
            self._table["game"]["episode"] = -1
            self._seeded = True
        seat = one_table.begin_episode(self._memory)
        agents = self._agents = self.possible_agents[:]
        self._rewards = self._nothing.copy()
        self._cumulative_rewards = self._nothing.copy()
        self._terminations = self._nobody.copy()
        self._truncations = self._nobody.copy()
        self._idle = {agent: {"action_mask": self._no_action.copy()} for agent in agents}
        self._infos = self._idle.copy()
        self._skip_agent_selection = None
        self._paid = False  # whether some reward is not zero
        self._final = False  # whether the rows of all seats are those of the end
        self._begun = True
        self._give_turn(agents[seat])
        if self._prints:
            self.render()

    def _give_turn(self, agent: str) -> None:
        self._mover = self._agent_selection = agent
        self._infos[agent] = {"action_mask": self._mask.copy()}

    def step(self, action: int | None) -> None:
        """Play `action` for the selected agent; an agent that is dead takes None and leaves.

        Raises:
            ValueError, TypeError: an action that is illegal, or that is no integer; names agent and legal actions.
        """
        try:
            agent = self._agent_selection
        except AttributeError:
            EnvLogger.error_step_before_reset()
        if agent is not self._mover or type(action) is not int:
            if self._terminations[agent] or self._truncations[agent]:
                self._was_dead_step(action)
                return
            action = self._as_action(action)
        try:
            news = one_table.turn(self._memory, action)
        except OverflowError:  # beyond 64 bits
            news = ILLEGAL
        if news == ILLEGAL:
            self._refuse(action)
            return
        self._cumulative_rewards[agent] = 0.0
        if self._paid:
            self._clear_rewards()
        self._infos[agent] = self._idle[agent]
        if news < PAID:
            self._mover = self._agent_selection = agent = self.possible_agents[news]
            self._infos[agent] = {"action_mask": self._mask.copy()}
        else:
            self._settle(news)
        if self._prints:
            self.render()

    def _settle(self, news: int) -> None:
        """Take in what a turn brought beside the next turn: rewards, the end, seats that leave."""
        if news & PAID:
            self._pay(self._earned.tolist())
        if news & (ENDED | CUT):
            self._mover = None
            self._final = True
            self._agent_selection = self._agents[0]
        else:
            self._give_turn(self.possible_agents[news % PAID])
        for agent in self._agents:
            if news & ENDED or news // LEFT >> self._seat[agent] & 1:
                self._terminations[agent] = True
            elif news & CUT:
                self._truncations[agent] = True
        if self._mover is not None:
            self._deads_step_first()

    def _pay(self, rewards: list[float]) -> None:
        """Hand out rewards, one a seat, to the agents that are left."""
        for agent in self._agents:
            reward = rewards[self._seat[agent]]
            self._rewards[agent] = reward
            self._cumulative_rewards[agent] += reward
        self._paid = True

    def _clear_rewards(self) -> None:
        for agent in self._rewards:
            self._rewards[agent] = 0.0  # the base class writes integers
        self._paid = False

    def _was_dead_step(self, action: int | None) -> None:
        """As in the base class, in a third of the time."""
        if action is not None:
            raise ValueError("when an agent is dead, the only valid action is None")
        agent = self._agent_selection
        terminations, truncations = self._terminations, self._truncations
        assert terminations[agent] or truncations[agent], "an agent that was not dead as attempted to be removed"
        for table in (terminations, truncations, self._rewards, self._cumulative_rewards, self._infos):
            del table[agent]
        self._agents.remove(agent)
        for other in self._agents:
            if terminations[other] or truncations[other]:
                if self._skip_agent_selection is None:
                    self._skip_agent_selection = agent
                self._agent_selection = other
                break
        else:
            if self._skip_agent_selection is not None:
                self._agent_selection = self._skip_agent_selection
            self._skip_agent_selection = None
        self._clear_rewards()

    def _as_action(self, action: Any) -> int:
        """`action` as an int. Raises TypeError unless it is an integer, which a bool is not."""
        if self._agent_selection != self._mover:
            raise ValueError(f"{self._agent_selection} is selected, but {self._mover} is to move")
        if not isinstance(action, bool | np.bool_):
            try:
                return operator.index(action)
            except TypeError:
                pass
        raise TypeError(self._illegal(action))

    def _refuse(self, action: int) -> None:
        """What an illegal action leads to."""
        raise ValueError(self._illegal(action))

    def _illegal(self, action: Any) -> str:
        legal = ", ".join(f"{index} ({ACTIONS[index]})" for index in np.flatnonzero(self._mask))
        return f"action {action!r} of {self._mover} is illegal; legal: {legal}"

    def observe(self, agent: str) -> Observation:
        """What any of `possible_agents` observes now, as new arrays.

        Returns:
            ``observation``, int8 ``[W]``, and ``action_mask``, int8 ``[A]``, all zeros unless the agent is to move.
        """
        if not self._begun:
            EnvLogger.error_observe_before_reset()
        if agent != self._mover and not self._final:
            one_table.observe(self._memory, self._seat[agent])
        mask = self._mask if agent == self._mover else self._no_action
        return {"observation": self._rows[agent].copy(), "action_mask": mask.copy()}

    def last(self, observe: bool = True) -> tuple[Observation | None, float, bool, bool, dict[str, Any]]:
        """What the selected agent is to know: observation, reward since its last turn, terminated, truncated, info.

        Without `observe` the observation is None. The masks of observation and info are one array, new in every turn.
        Subclasses: the method `observe` is not called.
        """
        try:
            agent = self._agent_selection
        except AttributeError:
            agent = self.agent_selection  # says that there was no reset
        info = self._infos[agent]
        observation = None
        if observe:
            if agent is not self._mover and not self._final:
                one_table.observe(self._memory, self._seat[agent])
            observation = {"observation": self._rows[agent].copy(), "action_mask": info["action_mask"]}
        return observation, self._cumulative_rewards[agent], self._terminations[agent], self._truncations[agent], info

    def agent_iter(self, max_iter: int = 2**63) -> AECIterable[str, Observation, int]:
        """Agents in the order in which they are to call `step`, until all have left or `max_iter` turns are over."""
        if not self._begun:
            EnvLogger.error_agent_iter_before_reset()
        return _AgentIter(self, max_iter)

    def state(self) -> np.ndarray:
        """Everything about the table, for central critics: int8 ``[S]``, new, the same for every seat.

        What seat 0 observes, then for every seat (up to `layout.seats`) its hand as 13 × 4 thermometers, then the seat
        to move as one of `layout.seats`, zeros up to a multiple of 8 last.
        """
        if not self._begun:
            EnvLogger.error_state_before_reset()
        row = np.empty(self.state_space.shape[0], np.int8)
        one_table.write_state(self._memory, row.view(np.int64))
        return row

    def information_state(self, agent: str) -> np.ndarray:
        """The observation of any of `possible_agents` with its deal and the history of the round: perfect recall.

        Returns:
            int8 ``[information_layout.size]``, a new array.
        """
        if not self._begun:
            EnvLogger.error_observe_before_reset()
        layout = self.information_layout
        row = np.empty(layout.size, np.int8)
        one_table.inform(self._memory, layout.compiled, self._seat[agent], row.view(np.int64))
        return row

    @property
    def information_layout(self) -> Layout:
        """Layout of `information_state`."""
        return Layout.of(self.rules, len(self.possible_agents), self.episode, self.layout.seats, history=True)

    def turns(self) -> Turns:
        """The decision that the table waits for, a batch of one, as policies take it: ``policy.act(env.turns())[0]``.

        It is that of the seat to move, although dead agents may be selected before it in mode ``remove``.

        Raises:
            ValueError: the episode is over, or none has begun.
        """
        if not self._begun or self._mover is None:
            raise ValueError("nobody is to move; call reset()")
        games, row = as_records(self._table["game"].copy()), np.zeros(1, np.int64)
        views, u = as_records(np.empty(1, VIEW)), np.empty(1)
        batch.views(games, row, views)
        batch.draws(games, row, u)
        return Turns(self.rules, len(self.possible_agents), self.episode, views, self._mask[None].copy(), u)

    @property
    def key(self) -> tuple[int, int, int]:
        """What names the cards in every face: the seed as a 64-bit word, game 0 and the number of the episode."""
        game = self._table["game"][0]
        return int(game["seed"]), int(game["game"]), int(game["episode"])

    def clone_state(self) -> Snapshot:
        """A copy of everything that a game in progress is, cheap enough for search."""
        return Snapshot(
            self._memory.copy(),
            self._agents[:],
            self._agent_selection,
            self._skip_agent_selection,
            self._mover,
            self._final,
            self._paid,
            self._rewards.copy(),
            self._cumulative_rewards.copy(),
            self._terminations.copy(),
            self._truncations.copy(),
            self._infos.copy(),
            self._idle.copy(),
        )

    def restore_state(self, state: Snapshot) -> None:
        """Go on from what `clone_state` of this environment, or of one made with the same arguments, returned.

        Raises:
            TypeError: `state` is no `Snapshot`.
            ValueError: it was taken at a table with other rules, players or options.
        """
        if not isinstance(state, Snapshot):
            raise TypeError(f"state must come from clone_state, got {type(state).__name__}")
        if not np.array_equal(state.memory[:SETTINGS_WORDS], self._memory[:SETTINGS_WORDS]):
            raise ValueError("state was taken from an environment made with other arguments")
        self._memory[:] = state.memory
        self._agents = state.agents[:]
        self._agent_selection = state.selected
        self._skip_agent_selection = state.skipped
        self._mover = state.mover
        self._final = state.final
        self._paid = state.paid
        self._rewards = state.rewards.copy()
        self._cumulative_rewards = state.cumulative.copy()
        self._terminations = state.terminations.copy()
        self._truncations = state.truncations.copy()
        self._infos = state.infos.copy()
        self._idle = state.idle.copy()
        self._seeded = self._begun = True

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _VIEWS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():  # by way of __dict__, every attribute would be slower ever after
            setattr(self, name, value)
        self._attach()

    def render(self) -> str | None:
        """The table as the seat to move sees it: text in mode ``ansi``, printed in mode ``human``, else nothing."""
        if not self._begun:
            EnvLogger.error_render_before_reset()
        if self.render_mode is None:
            logger.warn("render() was called without a render_mode; give one of: " + ", ".join(RENDER_MODES))
            return None
        from cucumber_env.render import table_text  # loaded only when asked for

        game = self._table["game"][0]
        public = game["public"]
        seat = -1 if self._mover is None else int(public["turn"])
        text = table_text(self.rules, public, {} if seat < 0 else {seat: int(game["hands"][seat])})
        if self._mover is None and public["phase"] != OVER:
            text += "\nThe episode is over."
        if self.render_mode == "ansi":
            return text
        print(text)
        return None

    def close(self) -> None:
        """Nothing to release."""


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise ValueError(f"{name}={value!r} is not one of its values; allowed: {', '.join(allowed)}")
    return str(value)
