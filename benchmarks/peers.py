"""Random play on other environments, measured in the same run as ours.

Games differ, so the numbers say what order of magnitude an API allows, not which project is better.
A step is one decision of one player, chosen uniformly among the legal actions; deals and other
chance events are not counted. `+ tensor` asks OpenSpiel for the observation tensor of every
decision (a list, the form its bindings offer for every game), which the other libraries always
compute. Pgx runs on the CPU, on all cores.

Install the group `peers` (`uv sync --group peers`); what is missing is reported as not installed.
Run alone with `python -m benchmarks.peers`.
"""

from __future__ import annotations

import functools
import json
import os
import random
import sys
from collections.abc import Callable
from importlib import metadata
from typing import Any

from benchmarks import timing

NOT_INSTALLED = "not installed"

DISTRIBUTIONS = ("pettingzoo", "rlcard", "open-spiel", "pgx", "jax")


def pettingzoo_loop(*, game: str) -> timing.Loop:
    """An episode of a PettingZoo `classic` environment, through the AEC loop."""
    import pettingzoo

    env = pettingzoo.make("aec", f"classic/{game}")
    env.reset(seed=0)
    choice = random.Random(0).choice

    def episode() -> int:
        steps = 0
        env.reset()
        for _ in env.agent_iter():
            observation, _, terminated, truncated, _ = env.last()
            action = None
            if not (terminated or truncated):
                action = choice(observation["action_mask"].nonzero()[0].tolist())
                steps += 1
            env.step(action)
        return steps

    return episode


def rlcard_loop(*, game: str) -> timing.Loop:
    """An episode of an RLCard environment."""
    import rlcard

    env = rlcard.make(game, config={"seed": 0})
    choice = random.Random(0).choice

    def episode() -> int:
        steps = 0
        state, _ = env.reset()
        while not env.is_over():
            state, _ = env.step(choice(list(state["legal_actions"])))
            steps += 1
        return steps

    return episode


def open_spiel_loop(*, game: str, tensor: bool) -> timing.Loop:
    """A game of OpenSpiel through its Python bindings; `tensor`: observe before every decision."""
    import pyspiel

    loaded = pyspiel.load_game(game)
    observes = loaded.get_type().provides_observation_tensor
    rng = random.Random(0)

    def episode() -> int:
        steps = 0
        state = loaded.new_initial_state()
        while not state.is_terminal():
            if state.is_chance_node():
                outcomes, chances = zip(*state.chance_outcomes(), strict=True)
                state.apply_action(rng.choices(outcomes, chances)[0])
                continue
            if tensor:
                state.observation_tensor() if observes else state.information_state_tensor()
            state.apply_action(rng.choice(state.legal_actions()))
            steps += 1
        return steps

    return episode


def pgx_loop(*, game: str, batch: int, length: int = 100) -> timing.Loop:
    """`length` steps of `batch` games of Pgx with automatic reset, compiled as one program."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax
    import jax.numpy as jnp
    import pgx
    from pgx.experimental import auto_reset

    env = pgx.make(game)
    step = jax.vmap(auto_reset(env.step, env.init))

    def turn(carry: tuple[Any, Any], _: None) -> tuple[tuple[Any, Any], None]:
        states, key = carry
        key, act_key, step_key = jax.random.split(key, 3)
        logits = jnp.where(states.legal_action_mask, 0.0, -jnp.inf)
        actions = jax.random.categorical(act_key, logits, axis=-1)
        return (step(states, actions, jax.random.split(step_key, batch)), key), None

    rollout = jax.jit(lambda carry: jax.lax.scan(turn, carry, None, length=length)[0])
    start_key, play_key = jax.random.split(jax.random.PRNGKey(0))
    carry = (jax.jit(jax.vmap(env.init))(jax.random.split(start_key, batch)), play_key)

    def play() -> int:
        nonlocal carry
        carry = jax.block_until_ready(rollout(carry))
        return batch * length

    return play


def _peers() -> dict[str, Callable[[], timing.Loop]]:
    loops: dict[str, Callable[[], timing.Loop]] = {}
    for game in ("tictactoe_v3", "connect_four_v3", "leduc_holdem_v4"):
        loops[f"pettingzoo {game}"] = functools.partial(pettingzoo_loop, game=game)
    for game in ("leduc-holdem", "uno", "doudizhu"):
        loops[f"rlcard {game}"] = functools.partial(rlcard_loop, game=game)
    for game in ("tic_tac_toe", "leduc_poker", "hearts", "oh_hell(players=4)", "euchre"):
        loops[f"open_spiel {game}"] = functools.partial(open_spiel_loop, game=game, tensor=False)
        loops[f"open_spiel {game} + tensor"] = functools.partial(open_spiel_loop, game=game, tensor=True)
    for game in ("tic_tac_toe", "leduc_holdem"):
        loops[f"pgx {game}, batch 4096"] = functools.partial(pgx_loop, game=game, batch=4096)
    return loops


PEERS = _peers()
"""Name of a measurement -> a call that builds its loop."""


def rates(*, seconds: float, repeats: int) -> dict[str, Any]:
    """Steps per second of every peer (median, min, max), or why there is no number."""
    result: dict[str, Any] = {"versions": {name: version(name) for name in DISTRIBUTIONS}}
    for name, build in PEERS.items():
        print(f"  {name}", file=sys.stderr)
        result[name] = _rate(build, seconds=seconds, repeats=repeats)
    return result


def _rate(build: Callable[[], timing.Loop], *, seconds: float, repeats: int) -> dict[str, float] | str:
    try:
        loop = build()
        measured = timing.interleaved(loops={"peer": loop}, seconds=seconds, repeats=repeats)
    except Exception as error:  # a peer that breaks must not cost the other numbers
        missing = isinstance(error, ImportError) or isinstance(error.__cause__, ImportError)
        return NOT_INSTALLED if missing else f"failed: {type(error).__name__}: {error}"
    return timing.summary(measured["peer"])


def version(distribution: str) -> str | None:
    """Installed version of `distribution`; None where it is missing."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    print(json.dumps(rates(seconds=1.0, repeats=3), indent=2))
