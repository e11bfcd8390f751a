"""How fast the environment is, and how fast its peers are on the same machine.

Prints one JSON object on standard output (the machine, then one entry per section) and progress on
standard error. Rates are per second: the median of several measurements with the least and the
most. Whatever else runs on the machine shows in them; ratios are taken between measurements made
side by side and suffer less. A section that could not be measured says why, and the exit status is 1.

    python -m benchmarks.throughput > throughput.json
    python -m benchmarks.throughput --only aec game --seconds 0.5 --repeats 9
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from pettingzoo import AECEnv

from benchmarks import do_nothing, peers, timing

PLAYERS = 4
GAME = {"rules": "cucumber", "num_players": PLAYERS, "episode": "round"}
"""What every section plays: rounds of Cucumber, four players with seven cards."""

DISTRIBUTIONS = ("numpy", "numba", "gymnasium", "pettingzoo", "cucumber-env")


def main(argv: list[str] | None = None) -> int:
    """Measure what the command line asks for and print it as JSON."""
    arguments = _parser().parse_args(argv)
    report: dict[str, Any] = {"machine": machine(), "settings": vars(arguments)}
    for name in arguments.only:
        print(f"{name} ...", file=sys.stderr)
        try:
            report[name] = SECTIONS[name](arguments)
        except Exception as error:  # the other sections are still worth printing
            traceback.print_exc()
            report[name] = {"error": f"{type(error).__name__}: {error}"}
    if {"kernel", "peers"} <= set(arguments.only):
        report["kernel / peers"] = against_peers(report)
    print(json.dumps(report, indent=2))
    return int(any("error" in report[name] for name in arguments.only))


def against_peers(report: dict[str, Any]) -> dict[str, float]:
    """How many times as fast as each peer: random legal play with mask and observation, medians of this run."""
    ours = report["kernel"].get("mask_and_observation", {}).get("median", math.nan)
    rates = {name: rate["median"] for name, rate in report["peers"].items() if "median" in rate}
    return {name: float(f"{ours / rate:.3g}") for name, rate in rates.items()}


def _parser() -> argparse.ArgumentParser:
    description, _, details = str(__doc__).partition("\n\n")
    parser = argparse.ArgumentParser(
        description=description, epilog=details, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="SECTION",
        choices=list(SECTIONS),
        default=list(SECTIONS),
        help=f"sections to measure, of: {', '.join(SECTIONS)} (default: all)",
    )
    parser.add_argument("--games", type=int, default=4096, help="games in a kernel batch (default: 4096)")
    parser.add_argument("--seconds", type=float, default=1.0, help="least time of a measurement (default: 1)")
    parser.add_argument("--repeats", type=int, default=5, help="measurements behind a median (default: 5)")
    return parser


def machine() -> dict[str, Any]:
    """Processor, cores, load when the run began, and the versions that matter."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load_average": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "versions": {name: peers.version(name) for name in DISTRIBUTIONS},
    }


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def kernel(arguments: argparse.Namespace) -> dict[str, Any]:
    """Turns per second of many games in lock-step on one thread, for each kind of output."""
    return kernel_rates(games=arguments.games, seconds=arguments.seconds, repeats=arguments.repeats)


KERNEL_OUTPUTS: dict[str, dict[str, bool]] = {
    "mask": {"observe": False, "skip_forced": False},
    "mask_and_observation": {"observe": True, "skip_forced": False},
    "mask, skip_forced": {"observe": False, "skip_forced": True},
    "mask_and_observation, skip_forced": {"observe": True, "skip_forced": True},
}


def kernel_rates(*, games: int, seconds: float, repeats: int) -> dict[str, Any]:
    """Random play of `games` rounds at once, the uniform policy and the check of its actions included.

    With forced turns skipped, the kernel plays them and they count as turns all the same.
    """
    tables = {name: _self_play(games, **outputs) for name, outputs in KERNEL_OUTPUTS.items()}
    rates = timing.interleaved(
        loops={name: _kernel_loop(table) for name, table in tables.items()},
        seconds=seconds,
        repeats=repeats,
    )
    return {
        "unit": "turns per second",
        "games": games,
        "observation_width": tables["mask_and_observation"].layout.size,
        **{name: timing.summary(values) for name, values in rates.items()},
    }


def _self_play(games: int, **outputs: bool) -> Any:
    from cucumber_env.envs.vector import SelfPlay

    return SelfPlay(num_games=games, **GAME, **outputs)


def _kernel_loop(table: Any, steps: int = 16) -> timing.Loop:
    from cucumber_env.batch import pick_uniform

    at = table.reset(seed=0)
    rng = np.random.default_rng(0)
    u, actions = np.empty(table.num_games), np.zeros(table.num_games, np.int64)

    def play() -> int:
        before = table.turns_played
        for _ in range(steps):
            rng.random(out=u)
            pick_uniform(at.mask, u, actions)
            table.step(actions)
        return int(table.turns_played - before)

    return play


def aec(arguments: argparse.Namespace) -> dict[str, Any]:
    """Turns per second of an AEC loop: ours, and an environment that does nothing.

    ``random``: random legal play with ``action_space(agent).sample(mask)``, as people write it. ``first``: the
    first legal action, so that next to nothing but the environments takes time. The do-nothing environment hands
    out fresh arrays each turn, the ``constant`` one always the same.
    """
    from cucumber_env import cucumber_v0

    raw_env = cucumber_v0.raw_env(**GAME)
    space: Any = raw_env.observation_space(raw_env.possible_agents[0])
    width = space["observation"].shape[0]
    environments = {
        "raw_env": raw_env,
        "env": cucumber_v0.env(**GAME),
        "do_nothing": do_nothing.raw_env(width=width),
        "do_nothing_constant": do_nothing.raw_env(width=width, copy=False),
        "do_nothing_in_stock_wrappers": do_nothing.env(width=width),
    }
    found: dict[str, Any] = {"unit": "turns per second", "observation_width": width}
    for policy in (random_legal, first_legal):
        rates = timing.interleaved(
            loops={name: _aec_loop(environment, policy) for name, environment in environments.items()},
            seconds=arguments.seconds,
            repeats=arguments.repeats,
        )
        found[policy.__name__] = {
            **{name: timing.summary(values) for name, values in rates.items()},
            **{
                f"{ours} / {theirs}": timing.ratio(rates[ours], rates[theirs])
                for ours in ("raw_env", "env")
                for theirs in list(environments)[2:]
            },
        }
    return found


Chooser = Callable[[AECEnv, str, Any], int]


def random_legal(environment: AECEnv, agent: str, mask: Any) -> int:
    """A legal action drawn by the action space."""
    return int(environment.action_space(agent).sample(mask))


def first_legal(environment: AECEnv, agent: str, mask: Any) -> int:
    """The legal action with the lowest number."""
    return int(mask.argmax())


def _aec_loop(environment: AECEnv, policy: Chooser) -> timing.Loop:
    environment.reset(seed=0)
    return lambda: aec_episode(environment, policy)


def aec_episode(environment: AECEnv, policy: Chooser) -> int:
    """Turns of one episode; the steps of finished agents take time, too."""
    turns = 0
    environment.reset()
    for agent in environment.agent_iter():
        observation, _, terminated, truncated, _ = environment.last()
        if terminated or truncated:
            environment.step(None)
        else:
            environment.step(policy(environment, agent, observation["action_mask"]))
            turns += 1
    return turns


def game(arguments: argparse.Namespace) -> dict[str, Any]:
    """Plays per second of whole matches in `Game`: `play` alone, and with `legal` before each."""
    from cucumber_env.game import Game

    def start() -> Any:
        return Game.new(rules="cucumber", players=PLAYERS, seed=0)

    def match() -> list[Any]:
        table, plays = start(), []
        while legal := table.legal():
            plays.append(legal[0])
            table.play(legal[0])
        return plays

    def replay() -> int:
        table = start()
        for play in recorded:
            table.play(play)
        return len(recorded)

    recorded = match()
    rates = timing.interleaved(
        loops={"play": replay, "legal_and_play": lambda: len(match())},
        seconds=arguments.seconds,
        repeats=arguments.repeats,
    )
    return {
        "unit": "plays per second",
        "plays_in_the_match": len(recorded),
        **{name: timing.summary(values) for name, values in rates.items()},
    }


DEPENDENCIES = "import numpy, numba, gymnasium, pettingzoo"

FIRST_RESET = f"cucumber_v0.env(**{GAME!r}).reset(seed=0)"

SNIPPETS = {
    "import_dependencies": ("", DEPENDENCIES),
    "import_cucumber_env": ("", "import cucumber_env"),
    "import_cucumber_env_after_dependencies": (DEPENDENCIES, "import cucumber_env"),
    "first_reset": ("from cucumber_env import cucumber_v0", FIRST_RESET),
}
"""Name -> what a fresh interpreter runs first, what it runs on the clock."""


def startup(arguments: argparse.Namespace) -> dict[str, Any]:
    """Seconds of imports and of the first reset in fresh interpreters, compiled code on disk.

    `first_reset_compiling` is one measurement with an empty cache: what a new installation pays once.
    """
    for setup, timed in SNIPPETS.values():
        _seconds_in_new_process(setup, timed)
    seconds: dict[str, list[float]] = {name: [] for name in SNIPPETS}
    for _ in range(arguments.repeats):
        for name, (setup, timed) in SNIPPETS.items():
            seconds[name].append(_seconds_in_new_process(setup, timed))
    with tempfile.TemporaryDirectory() as folder:
        compiling = _seconds_in_new_process(*SNIPPETS["first_reset"], NUMBA_CACHE_DIR=folder)
    return {
        "unit": "seconds",
        **{name: timing.summary(values) for name, values in seconds.items()},
        "import_cucumber_env / import_dependencies": timing.ratio(
            seconds["import_cucumber_env"], seconds["import_dependencies"]
        ),
        "first_reset_compiling": round(compiling, 2),
    }


def _seconds_in_new_process(setup: str, timed: str, **environment: str) -> float:
    code = "\n".join((setup, "import time", "start = time.perf_counter()", timed, "print(time.perf_counter() - start)"))
    finished = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(finished.stdout.split()[-1])


def peer_rates(arguments: argparse.Namespace) -> dict[str, Any]:
    """Steps per second of random play elsewhere; see `benchmarks/peers.py`."""
    return peers.rates(seconds=arguments.seconds, repeats=arguments.repeats)


SECTIONS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "kernel": kernel,
    "aec": aec,
    "game": game,
    "startup": startup,
    "peers": peer_rates,
}


if __name__ == "__main__":
    sys.exit(main())
