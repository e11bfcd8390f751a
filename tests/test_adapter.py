"""Policies of other libraries at a table play as the project's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from cucumber_env import arena
from cucumber_env.arena.adapter import Logits, Predictor, SingleAgent
from cucumber_env.envs.single_agent import CucumberEnv
from cucumber_env.observation import Layout
from cucumber_env.policies import Policy
from cucumber_env.rules import Rules

OPTIONS: dict[str, Any] = {"deals": 60, "seed": 8}


def last_of(masks: np.ndarray) -> np.ndarray:
    return np.array([np.flatnonzero(mask)[-1] for mask in masks])


class Model:
    """What Stable-Baselines3 and sb3-contrib hand out, playing the highest legal action."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.asked: list[bool] = []

    def predict(
        self,
        observation: np.ndarray,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_masks: np.ndarray | None = None,
    ) -> tuple[np.ndarray, Any]:
        assert action_masks is not None
        assert observation.shape == (len(action_masks), self.width)
        assert (observation.dtype, action_masks.dtype) == (np.int8, bool)
        self.asked.append(deterministic)
        return last_of(action_masks), state


def scores(policy: str | Policy, **changes: Any) -> np.ndarray:
    return arena.play([policy, "random", "careful"], **{**OPTIONS, **changes}).penalties


def test_a_predictor() -> None:
    width = Layout.of(Rules.of("cucumber"), 3, "round").size
    model = Model(width)
    np.testing.assert_array_equal(scores(Predictor(model, name="mine", deterministic=False)), scores("highest"))
    assert set(model.asked) == {False}
    wide = Model(Layout.of(Rules.of("cucumber"), 3, "round", 8).size)
    np.testing.assert_array_equal(scores(Predictor(wide, name="mine", seats=8)), scores("highest"))
    env = CucumberEnv(num_players=3)
    assert env.observation_space.shape == (width,)


def test_an_agent_without_masks() -> None:
    class Plain:
        def predict(self, observation: np.ndarray, deterministic: bool = False) -> tuple[np.ndarray, None]:
            return np.zeros(len(observation), np.int64), None

    with pytest.raises(arena.TableError, match="policy 'plain' chose the illegal action 0"):
        scores(Predictor(Plain(), name="plain", masked=False))


def test_logits_are_a_policy() -> None:
    values = np.random.default_rng(0).normal(size=13)

    def network(observation: np.ndarray, mask: np.ndarray) -> torch.Tensor:
        assert observation.shape[0] == mask.shape[0]
        return torch.tensor(values).expand(len(mask), 13)

    class Mine(Policy):
        name = "mine"

        def probabilities(self, turns: Any) -> np.ndarray:
            likely = turns.mask * np.exp(values)
            return likely / likely.sum(axis=1, keepdims=True)

    np.testing.assert_array_equal(scores(Logits(network, name="mine")), scores(Mine()))
    rising = Logits(lambda observation, mask: np.tile(np.arange(13), (len(mask), 1)), name="q", greedy=True)
    np.testing.assert_array_equal(scores(rising), scores("highest"))
    even = Logits(lambda observation, mask: np.zeros(mask.shape), name="even")
    np.testing.assert_array_equal(scores(even), scores("random"))


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_logits_that_are_not_finite_are_refused(greedy: bool, value: float) -> None:
    policy = Logits(lambda observation, mask: np.full(mask.shape, value), name="broken", greedy=greedy)
    with pytest.raises(arena.TableError, match=r"policy 'broken' gave probabilities .*nan.*\(deal"):
        scores(policy)


def test_logits_of_another_shape_are_refused() -> None:
    policy = Logits(lambda observation, mask: np.zeros((len(mask), 5)), name="narrow")
    with pytest.raises(arena.TableError, match=r"'narrow' raised ValueError: logits of shape \(\d+, 5\); expected"):
        scores(policy)


def test_one_decision_at_a_time() -> None:
    policy = SingleAgent(lambda observation, mask: int(np.flatnonzero(mask)[-1]), name="mine")
    np.testing.assert_array_equal(scores(policy, episode="match", deals=5), scores("highest", episode="match", deals=5))
