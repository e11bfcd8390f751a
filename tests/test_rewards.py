"""The range of what an episode can pay."""

from __future__ import annotations

from typing import Any

import pytest
from learners import SHORT_MATCHES, any_legal, last_legal, play_episode

from cucumber_env.batch import make_options
from cucumber_env.envs.single_agent import CucumberEnv
from cucumber_env.rewards import reward_range
from cucumber_env.rules import Rules


@pytest.mark.parametrize("name", SHORT_MATCHES)
def test_returns_stay_in_the_reward_range(name: str):
    for reward in ("points", "zero_sum", "outcome"):
        table = {"rules": SHORT_MATCHES[name], "num_players": 3, "episode": "match", "reward": reward}
        env = CucumberEnv(opponents=[any_legal, last_legal], chip_cost=0.5, **table)
        options = make_options(**{**table, "rules": env.rules}, chip_cost=0.5)
        low, high = reward_range(env.rules, options)
        assert env.penalty == low
        for number in range(20):
            env.reset(seed=2 if number == 0 else None)
            total = sum(play_episode(env, last_legal if number % 2 else any_legal)["rewards"])
            assert low - 1e-9 <= total <= high + 1e-9


def test_the_reward_range_of_a_few_tables():
    def bounds(rules: Any, **table: Any) -> tuple[float, float]:
        book = Rules.of(rules)
        return reward_range(book, make_options(rules=book, **table))

    assert bounds("cucumber", num_players=4, episode="round") == (-14.0, 14 / 3)
    assert bounds("concombre", num_players=4, episode="round", reward="points") == (-11.0, 0.0)
    assert bounds("literal", num_players=3, episode="round") == (-14.0, 14.0)
    assert bounds({"ranks": "23456"}, num_players=2, episode="round", reward="points") == (-6.0, 0.0)
    assert bounds("cucumber", num_players=4, episode="match") == (-1 / 3, 1.0)
    assert bounds("concombre", num_players=4, episode="match") == (-1.0, 1.0)
    assert bounds("revival", num_players=3, episode="match", chip_cost=0.5) == (-1.0, 1.0)
    # Out at 30 with 29 points and an Ace: 43. The last of three opponents pays to one, the others to two and three.
    assert bounds("cucumber", num_players=2, episode="match", reward="points") == (-43.0, 0.0)
    low, high = bounds("cucumber", num_players=4, episode="match", reward="zero_sum")
    assert (low, high) == (-43.0, pytest.approx(43 + 43 / 2 + 43 / 3))
    assert bounds("bga", num_players=2, episode="match", reward="points") == (-44.0, 0.0)
    assert bounds("express", num_players=3, episode="match", reward="zero_sum") == (-140.0, 70.0)
    assert bounds("express", num_players=3, episode="match", reward="points", max_rounds=2) == (-28.0, 0.0)
