"""Training runs in processes of their own, to be killed, starved or joined. Nothing here waits for ever.

They are forked from a process that has imported everything, and start at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import json
import multiprocessing
import os
import signal
import socket
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import train

PATIENCE = 120.0
"""Seconds after which a process hangs, as these tests see it."""

SETTINGS: dict[str, Any] = {
    "updates": 6,
    "games": 32,
    "hidden": 16,
    "minibatch": 256,
    "evaluate_every": 2,
    "evaluate_deals": 4,
    "final_deals": 4,
    "save_every": 1,
    "threads": 1,
    "precision": "fp32",
    "device": "cpu",
    "average": 0.5,
    "pool": "prioritised",
    "pool_size": 6,
    "pool_share": 0.5,
    "magnet": "snapshot",
    "magnet_every": 3,
}
"""A run of a second with everything that a checkpoint has to keep."""

FORKS = multiprocessing.get_context("forkserver")


def flags(**settings: Any) -> list[str]:
    """Command-line arguments of settings."""
    return [word for name, value in settings.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def new_run(folder: Path, **changes: Any) -> list[str]:
    """Arguments that begin a run in `folder`."""
    return flags(**{**SETTINGS, **changes}, out=folder)


def resumed(folder: Path) -> list[str]:
    """Arguments that go on with the run in `folder`."""
    return flags(resume=folder)


class Started:
    """A process that calls ``function(*arguments)`` and ends with the status that this returns; its words are kept.

    Args:
        spoken: File for what it writes to stdout and stderr.
        environment: Variables that it has besides.
    """

    def __init__(
        self, spoken: Path, function: Callable[..., int], *arguments: Any, environment: dict[str, str] | None = None
    ) -> None:
        self.spoken = spoken
        _serve()
        self.process: BaseProcess = FORKS.Process(
            target=_call, args=(spoken, environment or {}, function, arguments), daemon=True
        )
        self.process.start()

    def words(self) -> str:
        """What it has said so far."""
        return self.spoken.read_text() if self.spoken.exists() else ""

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self.process.pid is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, number)

    def wait_for(self, what: Callable[[], Any]) -> None:
        """Until something has happened, or the process is over."""
        for _ in until(PATIENCE):
            if what() or not self.process.is_alive():
                return

    def status(self, patience: float = PATIENCE) -> int:
        """Its exit status, negative for the signal that killed it."""
        self.process.join(patience)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
            raise TimeoutError(f"a process was still at work after {patience} s; it said: {self.words()}")
        return self.process.exitcode


@functools.cache
def _serve() -> None:
    """Start the process that others are forked from; it finds the modules of the tests."""
    FORKS.set_forkserver_preload(["warm"])
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(Path(__file__).parent), before)))
    try:
        forkserver.ensure_running()
    finally:
        del os.environ["PYTHONPATH"]
        if before is not None:
            os.environ["PYTHONPATH"] = before


def _call(spoken: Path, environment: dict[str, str], function: Callable[..., int], arguments: tuple[Any, ...]) -> None:
    with spoken.open("ab", buffering=0) as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    os.environ.update(environment)
    warnings.simplefilter("error")
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.exit(function(*arguments))


def until(seconds: float) -> Iterator[None]:
    """Comes back a hundred times a second until the time is up, which is an error."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.01)
    raise TimeoutError(f"nothing happened in {seconds} s")


def finished(folder: Path, arguments: list[str], **environment: str) -> str:
    """Train with `arguments` in a process beside `folder`, which has to end well; what it said."""
    started = Started(folder.with_suffix(".txt"), train.main, arguments, environment=environment)
    status = started.status()
    assert status == 0, f"exit status {status}: {started.words()}"
    return started.words()


EVENTS = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.symlink", "os.truncate", "shutil.rmtree")
"""What Python tells an audit hook before it does it: all ways in which a run touches its folder."""


def die_at(number: int, folder: Path, arguments: list[str]) -> int:
    """Train, and die by SIGKILL right before file operation `number` on the run; prints how many there were."""
    count = 0

    def hook(event: str, facts: tuple[Any, ...]) -> None:
        nonlocal count
        if event in EVENTS and any(str(folder) in str(fact) for fact in facts[:2]):
            count += 1
            if count == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    status = train.main(arguments)
    print(f"operations: {count}")
    return status


def without_privileges() -> None:
    """Give up what root may do beyond others, of which reading and writing everything is a part (Linux)."""
    if os.geteuid() == 0:
        version, nothing = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
        assert ctypes.CDLL(None).capset(version, nothing) == 0


def replace(owner: Any, name: str, value: Any) -> None:
    """Put something in the place of a function, in a process that ends with it."""
    setattr(owner, name, value)


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def outcome(folder: Path) -> dict[str, Any]:
    """All that is the same whenever a run is finished with the same settings, however often it was stopped.

    Also asserts what holds for any finished run: nothing is left half done, TensorBoard tells what the log tells.
    """
    names = {path.name for path in folder.iterdir() if not path.name.startswith("events.")}
    assert not [name for name in names if name.startswith(".")], names
    log = logged(folder)
    assert board(folder) == {line["turns"]: _metrics(line) for line in log}
    checkpoints = [path for path in sorted(folder.iterdir()) if path.is_dir() and not path.is_symlink()]
    return {
        "names": names,
        "last": os.readlink(folder / "last"),
        "best": os.readlink(folder / "best"),
        "files": {path: digest(folder / path) for path in _safetensors(checkpoints)},
        "counters": {path.name: _counters(path / "state.json") for path in checkpoints},
        "log": [{name: value for name, value in line.items() if name != "charts/SPS"} for line in log],
        "tables": json.loads((folder / "report.json").read_text())["tables"],
    }


def _safetensors(checkpoints: list[Path]) -> Iterator[str]:
    for folder in checkpoints:
        for name in ("weights.safetensors", "state.safetensors"):
            yield f"{folder.name}/{name}"


def _counters(path: Path) -> dict[str, Any]:
    return {name: value for name, value in json.loads(path.read_text()).items() if name != "seconds"}


def logged(folder: Path) -> list[dict[str, float]]:
    """The lines of a run's log."""
    log = folder / "log.jsonl"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def _metrics(line: dict[str, float]) -> dict[str, float]:
    return {name: float(np.float32(value)) for name, value in line.items() if "/" in name}


def board(folder: Path) -> dict[int, dict[str, float]]:
    """What TensorBoard shows for a run, by step."""
    reader = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    shown: dict[int, dict[str, float]] = {}
    for name in reader.Tags()["scalars"]:
        for point in reader.Scalars(name):
            at = shown.setdefault(point.step, {})
            assert name not in at, f"{name} is told twice at step {point.step}"
            at[name] = point.value
    return shown


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])
