"""PettingZoo's own tests of the AEC face, and its stock wrappers beside the checks that `env` makes itself."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pettingzoo.test
import pytest
from aec_tables import TABLES, name_of, returns_of, stock_env
from pettingzoo import AECEnv
from pettingzoo.utils.env_logger import EnvLogger

from cucumber_env import cucumber_v0

# The function of this name hides the module, whose parts do not need a parallel environment.
state_test: Any = importlib.import_module("pettingzoo.test.state_test")

pytestmark = [
    # What any dictionary of observations brings about, here and in PettingZoo's own environments.
    pytest.mark.filterwarnings("ignore:Observation space for each agent probably should be:UserWarning"),
    pytest.mark.filterwarnings("ignore:Observation is not a NumPy array:UserWarning"),
]

FEW = [table for table in TABLES if table["num_players"] in (2, 5) or table["rules"] in ("concombre", "revival")]
UNUSUAL: list[dict[str, Any]] = [
    {"seats": 8, "elimination": "remove"},
    {"max_rounds": 2, "elimination": "remove", "reward": "points"},
    {"rules": {"hand_size": 1, "tie": "all", "threshold": 5}, "num_players": 7, "elimination": "remove"},
    {"rules": {"hand_size": 2, "threshold": 3, "revival": "skip"}, "num_players": 6, "elimination": "remove"},
    {"rules": {"ranks": "9TJQKA", "copies": 1, "hand_size": 2}, "num_players": 3},
]


def all_tests(table: dict[str, Any], cycles: int) -> None:
    """Every test of PettingZoo that applies to an environment without a parallel version."""
    for make in (cucumber_v0.env, cucumber_v0.raw_env):
        pettingzoo.test.api_test(make(**table), num_cycles=cycles)
    pettingzoo.test.seed_test(lambda: cucumber_v0.env(**table), num_cycles=cycles)
    pettingzoo.test.render_test(lambda render_mode=None: cucumber_v0.env(render_mode=render_mode, **table))
    state_test.test_state_space(cucumber_v0.env(**table))
    state_test.test_state(cucumber_v0.env(**table), cycles, seed=0)


@pytest.mark.parametrize("table", TABLES, ids=name_of)
def test_api(table: dict[str, Any]) -> None:
    pettingzoo.test.api_test(cucumber_v0.env(**table), num_cycles=25)


@pytest.mark.parametrize("table", FEW[::5] + UNUSUAL, ids=name_of)
def test_all_of_pettingzoo(table: dict[str, Any]) -> None:
    all_tests(table, cycles=40)


@pytest.mark.long
@pytest.mark.parametrize("table", TABLES + UNUSUAL, ids=name_of)
def test_all_of_pettingzoo_for_longer(table: dict[str, Any]) -> None:
    all_tests(table, cycles=1000)


def test_it_runs_through_the_stock_wrappers() -> None:
    pettingzoo.test.api_test(stock_env(rules="revival", elimination="remove"), num_cycles=200)


class Both:
    """One table twice, with its own checks and in the stock wrappers; what is done to both is compared."""

    def __init__(self, **table: Any) -> None:
        self.own: AECEnv = cucumber_v0.env(**table)
        self.stock: AECEnv = stock_env(**table)

    def do(self, what: Callable[[AECEnv], Any]) -> Any:
        """Do it to both; assert the same result, the same exception with the same words, the same log."""
        (own, own_log), (stock, stock_log) = (self.attempt(env, what) for env in (self.own, self.stock))
        assert comparable(own) == comparable(stock)
        assert own_log == stock_log
        return own

    @staticmethod
    def attempt(env: AECEnv, what: Callable[[AECEnv], Any]) -> tuple[Any, list[str]]:
        EnvLogger.flush()
        try:
            result = what(env)
        except (AssertionError, AttributeError, ValueError, KeyError) as error:
            result = (type(error), str(error))
        log = list(EnvLogger.mqueue)
        EnvLogger.flush()
        return result, log

    def compare(self) -> None:
        """All that there is to see."""
        for name in ("agents", "agent_selection", "num_agents", "max_num_agents", "possible_agents"):
            self.do(lambda env, name=name: getattr(env, name))
        for name in ("rewards", "_cumulative_rewards", "terminations", "truncations", "infos"):
            self.do(lambda env, name=name: dict(getattr(env, name)))
        for agent in self.own.possible_agents:
            self.do(lambda env, agent=agent: env.observe(agent))
        self.do(lambda env: env.last())
        self.do(lambda env: env.state())


def comparable(value: Any) -> Any:
    """Arrays inside of it as something that compares to a bool."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.tolist()
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [comparable(item) for item in value]
    return value


def test_before_the_first_reset() -> None:
    both = Both(num_players=3, render_mode="ansi")
    for name in ("rewards", "terminations", "truncations", "infos", "agent_selection", "num_agents", "agents"):
        error, text = both.do(lambda env, name=name: getattr(env, name))
        assert (error, text) == (AttributeError, f"{name} cannot be accessed before reset")
    assert both.do(lambda env: env.step(0))[1] == "reset() needs to be called before step."
    assert both.do(lambda env: env.observe("player_0"))[1] == "reset() needs to be called before observe."
    assert both.do(lambda env: env.render())[1] == "reset() needs to be called before render."
    assert both.do(lambda env: env.state())[1] == "reset() needs to be called before state."
    assert both.do(lambda env: env.agent_iter())[1] == "reset() needs to be called before agent_iter()."
    both.do(lambda env: env.last())
    for name in ("possible_agents", "max_num_agents", "metadata", "render_mode", "close"):
        both.do(lambda env, name=name: hasattr(env, name))
    assert both.do(str) == "cucumber_v0"
    both.do(lambda env: env.close())


def test_every_agent_of_the_loop_must_step() -> None:
    both = Both(num_players=3)
    both.do(lambda env: env.reset(seed=1))

    def without_a_step(env: AECEnv) -> list[str]:
        return list(env.agent_iter())

    message = "need to call step() or reset() in a loop over `agent_iter`"
    assert both.do(without_a_step) == (AssertionError, message)
    assert both.do(without_a_step) == (AssertionError, message)  # still none since the last agent

    def with_failed_steps(env: AECEnv) -> list[str]:
        agents = []
        for agent in env.agent_iter(5):
            agents.append(agent)
            with pytest.raises(AssertionError, match="not in action space"):
                env.step(99)
        return agents

    both.do(lambda env: env.reset(seed=1))
    assert len(both.do(with_failed_steps)) == 5

    def twice_over(env: AECEnv) -> list[str]:
        loop = env.agent_iter(2)
        agents = []
        for _ in range(2):
            for agent in loop:
                agents.append(agent)
                env.step(int(env.last()[0]["action_mask"].argmax()))
        return agents

    both.do(lambda env: env.reset(seed=1))
    assert len(both.do(twice_over)) == 4


OUTSIDE = [None, -1, 13, 22, 2**70, 3.0, "3", np.float64(3), np.array([3]), np.bool_(True), np.uint64(3)]


@pytest.mark.parametrize("action", OUTSIDE, ids=repr)
def test_actions_outside_of_the_space(action: Any) -> None:
    both = Both(num_players=3)
    both.do(lambda env: env.reset(seed=1))
    assert both.do(lambda env: env.step(action)) == (AssertionError, "action is not in action space")
    both.compare()


@pytest.mark.parametrize(
    "kind", [int, np.int8, np.int64, np.uint8, np.uint32, np.array], ids=lambda kind: kind.__name__
)
def test_kinds_of_integers(kind: Callable[[int], Any]) -> None:
    both = Both(num_players=3)
    both.do(lambda env: env.reset(seed=1))
    action = kind(int(both.own.last()[0]["action_mask"].argmax()))
    both.do(lambda env: env.step(action))
    both.compare()


def test_dead_agents_take_none_and_steps_after_the_end_are_logged() -> None:
    both = Both(num_players=3, episode="round")
    both.do(lambda env: env.reset(seed=1))
    while not both.own.terminations[both.own.agent_selection]:
        action = int(both.own.last()[0]["action_mask"].argmax())
        both.do(lambda env, action=action: env.step(action))
    dead = (ValueError, "when an agent is dead, the only valid action is None")
    assert both.do(lambda env: env.step(3)) == dead
    assert both.do(lambda env: env.step(np.int64(3))) == dead
    assert both.do(lambda env: env.step(99)) == (AssertionError, "action is not in action space")
    for _ in range(3):
        both.compare()
        both.do(lambda env: env.step(None))
    assert both.own.agents == []
    for action in (None, 3, 99, "x"):
        both.do(lambda env, action=action: env.step(action))
        _, log = both.attempt(both.own, lambda env, action=action: env.step(action))
        assert log == ["[WARNING]: step() called after all agents are terminated or truncated. Should reset() first."]
    both.do(lambda env: env.last())


@pytest.mark.parametrize(
    "table",
    [
        {"rules": "cucumber", "num_players": 4, "episode": "round"},
        {"rules": "revival", "num_players": 5, "elimination": "remove", "chip_cost": 0.5},
        {"rules": {"hand_size": 1, "tie": "all"}, "num_players": 6, "elimination": "remove"},
        {"rules": "concombre", "num_players": 3, "reward": "zero_sum"},
        {"rules": "wikipedia", "num_players": 4, "max_rounds": 2, "reward": "points"},
    ],
    ids=name_of,
)
def test_whole_episodes_are_the_same(table: dict[str, Any]) -> None:
    """Legal play, with wrong actions in between that are refused."""
    both = Both(**table)
    chance = Random(3)
    for seed in (2, None):
        both.do(lambda env, seed=seed: env.reset(seed=seed))
        while both.own.agents:
            agent = both.own.agent_selection
            if chance.random() < 0.1:
                wrong = chance.choice([99, "x", 2.0])
                both.do(lambda env, wrong=wrong: env.step(wrong))
            mask = both.own.observe(agent)["action_mask"]
            dead = both.own.terminations[agent] or both.own.truncations[agent]
            action = None if dead else int(chance.choice(np.flatnonzero(mask)))
            both.do(lambda env, action=action: env.step(action))
            if both.own.agents:
                both.compare()


def test_illegal_actions_end_the_episode_and_where_that_differs() -> None:
    both = Both(num_players=3, episode="round")
    both.do(lambda env: env.reset(seed=1))
    offender = both.own.agent_selection
    action = int((both.own.last()[0]["action_mask"] == 0).argmax())
    both.do(lambda env: env.step(action))  # the same warning in the log
    assert both.own.terminations == both.stock.terminations == dict.fromkeys(both.own.agents, True)
    assert not any(both.own.truncations.values())
    assert all(both.stock.truncations.values())
    assert both.own.rewards == {agent: -14.0 if agent == offender else 7.0 for agent in both.own.agents}
    assert both.stock.rewards == {agent: -14.0 if agent == offender else 0 for agent in both.own.agents}
    assert not both.own.observe(offender)["action_mask"].any()
    assert both.stock.observe(offender)["action_mask"].any()
    while both.own.agents:
        both.do(lambda env: env.agent_selection)
        both.do(lambda env: env.step(None))
    both.do(lambda env: env.reset(seed=1))
    both.compare()


def test_a_bool_is_no_action() -> None:
    both = Both(num_players=3)
    both.do(lambda env: env.reset(seed=1))
    with pytest.raises(AssertionError, match="action is not in action space"):
        both.own.step(True)
    with pytest.raises(ValueError, match="truth value"):
        both.stock.step(True)


def test_an_illegal_action_late_in_a_match_pays_what_is_missing() -> None:
    """The stock wrapper adds its number to what has been collected; here the return is the least there is."""
    totals = {}
    for name, env in (("own", cucumber_v0.env), ("stock", stock_env)):
        table = env(num_players=4, rules={"hand_size": 1}, reward="points")
        table.reset(seed=4)
        steps = 0

        def policy(legal: np.ndarray) -> int:
            nonlocal steps
            steps += 1
            return int(legal[0]) if steps <= 10 else next(a for a in range(13) if a not in legal)

        totals[name] = returns_of(table, policy)
    assert min(totals["own"].values()) == -43
    assert min(totals["stock"].values()) <= -43
    assert sum(total < 0 for total in totals["own"].values()) >= 2
