"""Cucumber and its cousin Concombre: one card game from solved to unsolved, as an exact and fast RL benchmark."""

from __future__ import annotations

import gymnasium

_GYMNASIUM_ID = "cucumber_env/Cucumber-v0"
if _GYMNASIUM_ID not in gymnasium.registry:  # a second registration, as on a reload, would warn
    gymnasium.register(
        id=_GYMNASIUM_ID,
        entry_point="cucumber_env.envs.single_agent:CucumberEnv",
        vector_entry_point="cucumber_env.envs.vector_env:CucumberVectorEnv",
    )
