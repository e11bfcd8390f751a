"""Studies: many runs of train.py from one specification, side by side, stopped and resumed at will.

A specification is a TOML file::

    seeds = [1, 2, 3]

    [base]                        # settings of train.py that all runs share
    updates = 112

    [axes]                        # each value is tried alone, all else as in the base
    learning_rate = [1e-3, 4e-3]
    hidden = [[64, 64], [256, 256]]

    [[also]]                      # changes that are tried together
    name = "magnet"
    magnet = "average"
    average = 0.9

The base, every value of an axis and every entry of `also` is a point; a point with each seed is a run, in the folder
``OUT/POINT-seedSEED``. A run with a ``report.json`` is done; any other is resumed from its newest checkpoint.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import tyro

from agents.config import Config

TRAIN = Path(__file__).resolve().parents[1] / "train.py"

OWN = ("seed", "out", "resume")
"""Settings that a study gives to each run itself."""


@dataclass(frozen=True)
class Point:
    """Settings to try.

    Attributes:
        name: Names the folders of its runs.
        changes: Settings in which it differs from the base.
        settings: All settings given, those of the base included; one thread, if nothing else is said.
        config: The same with train.py's own settings for all else.
    """

    name: str
    changes: dict[str, Any]
    settings: dict[str, Any]
    config: Config

    @classmethod
    def of(cls, name: str, changes: dict[str, Any], base: dict[str, Any]) -> Point:
        """The point with these changes of `base`.

        Raises:
            ValueError, TypeError: a setting is unknown, out of range, or the study's own to give.
        """
        settings = {"threads": 1} | base | changes
        if strange := sorted(set(settings) - {one.name for one in fields(Config)}):
            raise ValueError(f"{name}: {', '.join(strange)} unknown; train.py --help lists the settings")
        if taken := sorted(set(settings) & set(OWN)):
            raise ValueError(f"{name}: leave out {', '.join(taken)}; the study sets {', '.join(OWN)} of each run")
        try:
            config = tyro.cli(Config, args=flags(settings))
        except SystemExit:  # tyro has said what is wrong with which value
            raise ValueError(f"{name}: train.py would refuse these settings") from None
        config.check()
        return cls(name, changes, settings, config)


@dataclass(frozen=True)
class Run:
    """A point with a seed, and the folder of that run."""

    point: Point
    seed: int
    folder: Path

    @property
    def report(self) -> Path:
        """The file that a finished run writes last."""
        return self.folder / "report.json"

    def command(self) -> list[str]:
        """What begins the run, or goes on with it."""
        if (self.folder / "config.json").exists():
            settings = ["--resume", str(self.folder)]
        else:
            settings = [*flags(self.point.settings), "--seed", str(self.seed), "--out", str(self.folder)]
        return [sys.executable, str(TRAIN), *settings]

    def start(self) -> subprocess.Popen[bytes]:
        """A process of its own session, so that a Ctrl-C at the terminal reaches it through the study alone."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "output.txt").open("ab") as output:
            return subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, "OMP_NUM_THREADS": str(self.point.config.threads)},
                start_new_session=True,
            )

    def check(self) -> None:
        """Refuse what the folder holds if it is a run with other settings.

        Raises:
            ValueError: says which settings differ.
        """
        if not (self.folder / "config.json").exists():
            return
        saved = read(self.folder / "config.json")["config"]
        if self.report.exists():  # a resumed run may have been given other final deals
            saved |= {name: value for name, value in read(self.report)["config"].items() if name != "start"}
        wanted, usual = (_plain(asdict(config)) for config in (replace(self.point.config, seed=self.seed), Config()))
        differing = [
            f"{name} is {found!r}, not {wanted.get(name)!r}"
            for name in sorted({*saved, *wanted} - {"out", "resume"})
            if (found := saved.get(name, usual.get(name))) != wanted.get(name)
        ]
        if differing:
            raise ValueError(
                f"{self.folder} holds a run with other settings: {'; '.join(differing)}; "
                "move it away, or choose another folder with --out"
            )


@dataclass(frozen=True)
class Study:
    """Points, of which the first is the base, and all their runs."""

    points: list[Point]
    seeds: list[int]
    runs: list[Run]

    @classmethod
    def load(cls, specification: Path, out: Path) -> Study:
        """Read a specification; nothing is run.

        Raises:
            OSError, ValueError, TypeError: it cannot be read, or what is wrong with it or with a folder in `out`.
        """
        text = tomllib.loads(specification.read_text(encoding="utf-8"))
        if strange := sorted(set(text) - {"seeds", "base", "axes", "also"}):
            raise ValueError(f"{specification}: {', '.join(strange)} unknown; allowed: seeds, base, axes, also")
        seeds = text.get("seeds", [])
        if not seeds or len(set(seeds)) < len(seeds) or not all(type(seed) is int and seed >= 0 for seed in seeds):
            raise ValueError(f"{specification}: seeds={seeds!r}; give different integers ≥ 0, above [base]")
        base = text.get("base", {})
        points = [Point.of(name, changes, base) for name, changes in _changes(text)]
        for number, point in enumerate(points):
            for other in points[:number]:
                if point.name == other.name or point.config == other.config:
                    raise ValueError(f"{specification}: {other.name} and {point.name} are the same; leave one out")
        runs = [Run(point, seed, out / f"{point.name}-seed{seed}") for point in points for seed in seeds]
        for run in runs:
            run.check()
        return cls(points, seeds, runs)


def _changes(text: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names of all points and what they change."""
    yield "base", {}
    for setting, values in text.get("axes", {}).items():
        if not isinstance(values, list):
            raise ValueError(f"axes: {setting}={values!r}; give a list of values")
        for value in values:
            words = value if isinstance(value, list) else [value]
            yield re.sub(r"[^\w.]+", "-", "-".join(map(str, [setting, *words]))), {setting: value}
    for changes in text.get("also", []):
        name = changes.get("name", "")
        if not re.fullmatch(r"\w[\w.-]*", name):
            raise ValueError(f"also: name={name!r}; give each a name of letters, digits, dots and dashes")
        yield name, {setting: value for setting, value in changes.items() if setting != "name"}


def flags(settings: dict[str, Any]) -> list[str]:
    """Settings as arguments of train.py."""
    words = []
    for name, value in settings.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        else:
            words += [f"--{option}", *map(str, value if isinstance(value, list) else [value])]
    return words


def read(path: Path) -> dict[str, Any]:
    """A JSON file of a run.

    Raises:
        ValueError: it is damaged.
    """
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}); move the run away") from error


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as they come back from a run's files."""
    return dict(json.loads(json.dumps(settings, default=str)))


def execute(runs: Sequence[Run], *, jobs: int, finished: Callable[[], object]) -> list[Run]:
    """Do all runs that are not done, `jobs` at a time, and tell of each in a line.

    Args:
        finished: Called after each run that ended well.

    Returns:
        Runs that failed; the last lines of each have been printed.

    Raises:
        KeyboardInterrupt: SIGINT or SIGTERM; the runs in progress have saved and stopped.
    """
    if jobs < 1:
        raise ValueError(f"jobs={jobs} is out of range; allowed: 1 and more")
    waiting = [run for run in runs if not run.report.exists()]
    print(f"{len(runs)} runs, {len(runs) - len(waiting)} of them done", flush=True)
    total, began, failed = len(waiting), time.monotonic(), []
    running: dict[str, tuple[Run, subprocess.Popen[bytes]]] = {}
    with _interruptible():
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    run = waiting.pop(0)
                    running[run.folder.name] = run, run.start()
                for name, (run, process) in list(running.items()):
                    if process.poll() is None:
                        continue
                    del running[name]
                    ended = total - len(waiting) - len(running)
                    left = (time.monotonic() - began) / ended * (total - ended) / 60
                    if run.report.exists():
                        print(f"[{ended}/{total}] {name} done · about {left:.0f} min left", flush=True)
                        finished()
                    else:
                        failed.append(run)
                        print(f"[{ended}/{total}] {name} failed: {_last_words(run)}", flush=True)
                time.sleep(0.1)
        except KeyboardInterrupt:
            print("stopping the runs in progress; again to kill them", flush=True)
            _stop([process for _, process in running.values()])
            raise
    return failed


@contextmanager
def _interruptible() -> Iterator[None]:
    """SIGINT and SIGTERM raise KeyboardInterrupt, even where a shell in the background had SIGINT ignored."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    try:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()
    except KeyboardInterrupt:
        for process in processes:
            process.kill()


def _last_words(run: Run) -> str:
    lines = (run.folder / "output.txt").read_text(encoding="utf-8", errors="replace").splitlines()
    return f"{' | '.join(lines[-3:])} ({shlex.join(run.command())}; output in {run.folder / 'output.txt'})"
