"""Cucumber and its cousin Concombre: one card game from solved to unsolved, as an exact and fast RL benchmark."""

from __future__ import annotations

import gymnasium
import pettingzoo

_GYMNASIUM_ID = "cucumber_env/Cucumber-v0"
if _GYMNASIUM_ID not in gymnasium.registry:  # a second registration, as on a reload, would warn
    gymnasium.register(
        id=_GYMNASIUM_ID,
        entry_point="cucumber_env.envs.single_agent:CucumberEnv",
        vector_entry_point="cucumber_env.envs.vector_env:CucumberVectorEnv",
    )

_PETTINGZOO_ID = "cucumber_env/cucumber-v0"
if _PETTINGZOO_ID not in pettingzoo.aec_registry:
    pettingzoo.register("aec", _PETTINGZOO_ID, "cucumber_env.cucumber_v0:env")
