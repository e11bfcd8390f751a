"""What a training run is outside of learning: its folder, its checkpoints and log, its clock, and how it is stopped."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import itertools
import json
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import IO, Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from agents.checkpoint import flush
from agents.tables import Table
from cucumber_env.observation import OBSERVATION_VERSION
from cucumber_env.rules import RULES_VERSION

CONFIG, LOG = "config.json", "log.jsonl"

VERSIONS = {"rules": RULES_VERSION, "observation": OBSERVATION_VERSION}
"""What a run must agree on with this program to be resumed."""

KEPT = 2
"""Checkpoints kept beside the best one."""


class StopSignal:
    """Ctrl-C and SIGTERM ask for a stop after the update; a second Ctrl-C stops at once.

    Attributes:
        asked: Whether a stop has been asked for.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before = {number: signal.signal(number, self._ask) for number in (signal.SIGINT, signal.SIGTERM)}

    def _ask(self, number: int, frame: object) -> None:
        self.asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with contextlib.suppress(OSError):  # by itself, as the signal may have come while a stream was at work
            os.write(2, b"\nstopping after this update; Ctrl-C again stops at once\n")

    def at_once(self) -> None:
        """From now on both signals interrupt, as there is nothing more to save."""
        for number in self._before:
            signal.signal(number, signal.default_int_handler)

    def restore(self) -> None:
        """Signals do again what they did before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)


class Clock:
    """Adds up where the time goes.

    Attributes:
        seconds: Wall-clock seconds by phase.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    @contextlib.contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """A context whose time counts for `phase`, and for no other phase that it stands in."""
        before = sum(self.seconds.values())
        start = time.perf_counter()
        yield
        inner = sum(self.seconds.values()) - before
        self.seconds[phase] += time.perf_counter() - start - inner

    def __str__(self) -> str:
        total = sum(self.seconds.values()) or 1.0
        return ", ".join(f"{phase} {seconds / total:.0%}" for phase, seconds in self.seconds.items())


def describe(config: Any, tables: Sequence[Table]) -> dict[str, Any]:
    """Everything that names a run: settings (a dataclass), rules in full, versions, machine."""
    return {
        "config": dataclasses.asdict(config),
        "tables": [table.to_dict() for table in tables],
        "versions": {
            **VERSIONS,
            **{name: metadata.version(name) for name in ("cucumber-env", "numpy", "numba", "torch")},
            "git": _git_revision(),
        },
        "machine": {"platform": platform.platform(), "cpus": os.cpu_count(), "python": platform.python_version()},
    }


def _git_revision() -> str | None:
    """The commit of the source tree, with ``+`` if files differ from it; None where git cannot say."""
    command = [
        "git",
        "-C",
        str(Path(__file__).parent),
        "describe",
        "--always",
        "--dirty=+",
        "--exclude=*",
        "--abbrev=40",
    ]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


class Board:
    """Metrics as TensorBoard reads them, in a file of their own for each start of a run.

    Written at once and in this thread, so that a killed run leaves what its log tells, and a full disk is an OSError.

    Args:
        folder: Where the file begins.
        first: Steps before this one belong to earlier files; what those say of later ones is void.
    """

    def __init__(self, folder: Path, first: int) -> None:
        name = f"events.out.tfevents.{time.time():.6f}.{socket.gethostname()}.{os.getpid()}"  # read in order of names
        self.file = (folder / name).open("ab")
        self._records = RecordWriter(self.file)
        self._write(file_version="brain.Event:2")
        self._write(step=first, session_log=SessionLog(status=SessionLog.START))

    def add(self, step: int, metrics: Mapping[str, float]) -> None:
        """Metrics at a step."""
        values = [Summary.Value(tag=name, simple_value=value) for name, value in metrics.items()]
        self._write(step=step, summary=Summary(value=values))

    def _write(self, **fields: Any) -> None:
        self._records.write(Event(wall_time=time.time(), **fields).SerializeToString())
        self.file.flush()


class RunFolder:
    """A run's files: ``config.json``, ``log.jsonl``, TensorBoard events, ``checkpoint-*/``; ``last`` and ``best``.

    ``last`` and ``best`` are links to checkpoints. The log goes before, a checkpoint appears by one rename, links
    follow it: a run that is killed at any moment goes on from its newest checkpoint, and its log knows what led there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log: IO[str] | None = None
        self.board: Board | None = None
        self._locked: int | None = None

    def create(self, description: Mapping[str, Any]) -> None:
        """Make the folder, with what names the run; others are kept out of it from now on."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.lock()
        self.check_new()
        write_text(self.path / CONFIG, json.dumps(description, indent=2, default=str) + "\n")

    def check_new(self) -> None:
        """Refuse a place for a new run that is taken.

        Raises:
            FileExistsError: it is a file, or holds a run or remains of one.
        """
        if self.path.exists() and not self.path.is_dir():
            raise FileExistsError(f"{self.path} is a file; --out takes the folder of the run")
        if (self.path / CONFIG).exists():
            raise FileExistsError(f"{self.path} holds a run already; --resume {self.path} goes on with it")
        for pattern in (LOG, "checkpoint-*", "last", "best"):
            if remains := sorted(self.path.glob(pattern)):
                raise FileExistsError(f"{remains[0]} is left of another run; move it away, or choose another --out")

    def config(self) -> dict[str, Any]:
        """The settings of the run.

        Raises:
            FileNotFoundError, ValueError: there is no run here, its file is damaged, or from other versions.
        """
        if not (self.path / CONFIG).is_file():
            raise FileNotFoundError(f"no run to resume in {self.path}: {CONFIG} is missing")
        try:
            description = json.loads((self.path / CONFIG).read_text(encoding="utf-8"))
            config, versions = dict(description["config"]), dict(description["versions"])
        except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{self.path} is not a run that can be resumed: {CONFIG}: {type(error).__name__}: {error}"
            ) from error
        for name, ours in VERSIONS.items():
            if (theirs := versions.get(name)) != ours:
                raise ValueError(f"{self.path} was begun under {name} version {theirs}; this is version {ours}")
        return config

    def checkpoints(self) -> list[Path]:
        """All checkpoints, oldest first."""
        if not self.path.is_dir():
            return []
        found = {int(name[1]): path for path in self.path.iterdir() if (name := _CHECKPOINT.fullmatch(path.name))}
        return [found[updates] for updates in sorted(found)]

    def checkpoint(self, updates: int) -> Path:
        """Where the checkpoint after so many updates is or will be."""
        return self.path / f"checkpoint-{updates:06d}"

    def lock(self) -> None:
        """Keep other processes from training here, for as long as this one lives.

        Raises:
            BlockingIOError: another one does.
        """
        if self._locked is not None:
            return
        self._locked = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(self._locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise BlockingIOError(f"another process is training in {self.path}; wait for it, or end it") from None
        except OSError:  # a file system without locks
            pass

    def open(self, updates: int, turns: int, best: int) -> None:
        """Begin to write, after so many updates and turns; what a killed run did after them, or halfway, goes."""
        for leftover in self.path.iterdir():
            if _LEFTOVER.fullmatch(leftover.name):
                remove(leftover)
        self.arrange(best)
        forget_after(self.path / LOG, updates)
        self.log = (self.path / LOG).open("a", encoding="utf-8")
        self.board = Board(self.path, turns + 1)

    def write(self, line: Mapping[str, float], metrics: Mapping[str, float]) -> None:
        """One line of the log, and the metrics for TensorBoard at ``line["turns"]``."""
        assert self.log is not None
        assert self.board is not None
        self.log.write(json.dumps({**line, **metrics}) + "\n")
        self.log.flush()
        self.board.add(int(line["turns"]), metrics)

    def save(self, updates: int, best: int, write: Callable[[Path], None]) -> None:
        """Have `write` make the checkpoint after so many updates, the log being safe; then `arrange` all."""
        assert self.log is not None
        assert self.board is not None
        for file in (self.log, self.board.file):
            os.fsync(file.fileno())
        write(self.checkpoint(updates))
        self.arrange(best)

    def arrange(self, best: int) -> None:
        """Point ``last`` at the newest checkpoint, ``best`` at that after so many updates; forget older ones."""
        checkpoints = self.checkpoints()
        if not checkpoints:
            return
        newest, chosen = checkpoints[-1], self.checkpoint(best)
        for name, target in (("last", newest), ("best", chosen if chosen in checkpoints else newest)):
            fresh = self.path / f".{name}.link"
            fresh.unlink(missing_ok=True)
            fresh.symlink_to(target.name, target_is_directory=True)
            fresh.replace(self.path / name)
        for folder in checkpoints[:-KEPT]:
            if folder != chosen:
                forgotten = folder.with_name(f".{folder.name}.old")
                folder.rename(forgotten)
                remove(forgotten)

    def close(self) -> None:
        """Close all files; others may train here then."""
        files: list[IO[Any] | None] = [self.log, self.board.file if self.board else None]
        for file in files:
            if file is not None:
                with contextlib.suppress(OSError):  # a full disk has been reported by the write that failed
                    file.close()
        if self._locked is not None:
            os.close(self._locked)
            self._locked = None


_CHECKPOINT = re.compile(r"checkpoint-(\d{6,})")
_LEFTOVER = re.compile(r"\.checkpoint-.*\.(new-\d+|old)|\.(last|best)\.link|\..*\.new")
"""Names of files and folders that a killed run leaves half done."""


def remove(path: Path) -> None:
    """Remove a file, link or folder as far as that is possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a file, which appears whole or not at all.

    Raises:
        OSError: the disk is full or may not be written; nothing is left behind.
    """
    fresh = path.with_name(f".{path.name}.new")
    try:
        fresh.write_text(text, encoding="utf-8")
        flush(fresh)
        fresh.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise


def forget_after(log: Path, updates: int) -> None:
    """Cut a JSON-lines log to the lines of the first `updates`: what a resumed run does again is not told twice."""
    if not log.exists():
        return
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    kept = [line for line in lines if line.endswith("\n") and _is_of(line, updates)]
    if kept != lines:
        write_text(log, "".join(kept))


def _is_of(line: str, updates: int) -> bool:
    """Whether a line of a log is whole and of one of the first `updates`."""
    try:
        return bool(json.loads(line)["update"] <= updates)
    except (json.JSONDecodeError, KeyError, TypeError):
        return False  # a killed run left it unfinished


def free_folder(name: str, *, make: bool = True) -> Path:
    """``runs/NAME``, or with a number behind it the first that does not exist, which is made."""
    for number in itertools.count(1):
        folder = Path("runs") / (name if number == 1 else f"{name}-{number}")
        if not make:
            break
        with contextlib.suppress(FileExistsError):
            folder.mkdir(parents=True)
            break
    return folder
