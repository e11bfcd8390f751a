"""A trainer at work in its folder: begun or resumed, evaluated and saved on the way, stopped."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from agents.checkpoint import Card, VersionError, load_state, save_agent
from agents.config import HERE, Config
from agents.display import Progress
from agents.distributed import Group
from agents.network import ActorCritic
from agents.runs import Clock, RunFolder, StopSignal, describe, free_folder
from agents.tables import Place


class Learner(Protocol):
    """What a run asks of a trainer.

    Attributes:
        config: Its settings.
        group: The processes that train together.
        places: The tables and games of this process.
        clock: Where the time went.
        updates, turns, decisions: Done so far.
    """

    config: Config
    group: Group
    places: Sequence[Place]
    clock: Clock
    updates: int
    turns: int
    decisions: int

    @property
    def agent(self) -> ActorCritic:
        """The network that is saved and measured."""

    def advance(self) -> dict[str, float]:
        """One update; returns metrics."""

    def measure(self) -> dict[str, float]:
        """Strength, as metrics; ``eval/gain`` is what the best agent is chosen by."""

    def card(self) -> Card:
        """What the agent is."""

    def state(self) -> dict[str, Tensor]:
        """All tensors that a resumed run goes on from."""

    def counters(self) -> dict[str, Any]:
        """What a resumed run needs beside tensors."""

    def restore(self, tensors: dict[str, Tensor], counters: dict[str, Any]) -> None:
        """Go on from `state` and `counters`."""


class Run:
    """A trainer with its folder: trains, evaluates and saves until the end or a stop."""

    def __init__(self, trainer: Learner, folder: RunFolder) -> None:
        self.trainer, self.folder = trainer, folder
        self.best, self.gain = 0, -float("inf")

    def load(self, checkpoint: Path) -> None:
        """Go on from a checkpoint.

        Raises:
            ValueError, VersionError: it cannot be read, is damaged or of another run.
        """
        tensors, counters = load_state(checkpoint)
        try:
            self.trainer.restore(tensors, counters)
            self.best, self.gain = int(counters["best"]), float(counters["gain"])
        except (RuntimeError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"{checkpoint} is not one of this run: {' '.join(str(error).split())}") from error
        if not 0 <= self.best <= self.trainer.updates <= self.trainer.config.updates:
            raise ValueError(f"{checkpoint} is not one of this run: it counts {self.trainer.updates} updates")

    def begin(self) -> None:
        """Go on from the newest checkpoint, or without any from the beginning, and keep others out of the folder.

        Raises:
            BlockingIOError: another process is at work there.
            OSError, ValueError: as `load`, and says what can be done; or the folder may not be written.
        """
        leads = self.trainer.group.leads
        try:
            if leads:
                self.folder.lock()
            self.load_newest()
            if leads:
                self.folder.open(self.trainer.updates, self.trainer.turns, self.best)
        except BaseException:
            self.folder.close()
            raise

    def load_newest(self) -> None:
        """Go on from the newest checkpoint, if there is one; says what can be done when it cannot be loaded."""
        *older, newest = [None, *self.folder.checkpoints()]
        if newest is None:
            return
        try:
            self.load(newest)
        except VersionError:
            raise
        except (ValueError, FileNotFoundError) as error:
            before = f"from {older[-1].name}" if older[-1] else "from the beginning"
            raise ValueError(f"{error}; delete {newest} to go on {before}") from error

    def train(self, progress: Progress, stop: StopSignal) -> None:
        """The updates that are left, or up to a `stop`, with evaluations and checkpoints in between."""
        trainer, config = self.trainer, self.trainer.config
        while trainer.updates < config.updates:
            metrics = trainer.advance()
            stopped = bool(trainer.group.total(stop.asked)[0])  # all processes stop after the same update
            last = trainer.updates == config.updates
            if trainer.group.leads:
                better = False
                if last or trainer.updates % config.evaluate_every == 0:  # not for a stop, which must change nothing
                    metrics |= trainer.measure()
                    better = self.is_better(metrics["eval/gain"])
                metrics["charts/SPS"] = trainer.turns / sum(trainer.clock.seconds.values())
                counts = {"update": trainer.updates, "turns": trainer.turns, "decisions": trainer.decisions}
                self.folder.write(counts, metrics)
                progress.show(trainer.updates, metrics)
                if last or better or stopped or trainer.updates % config.save_every == 0:
                    self.save()
            if stopped:
                stop.asked = True
                trainer.group.wait()  # torchrun ends all as soon as one has ended, and the first has yet to save
                return

    def is_better(self, gain: float) -> bool:
        """Whether the agent is the best so far, which is remembered then."""
        if not gain > self.gain:
            return False
        self.best, self.gain = self.trainer.updates, gain
        return True

    def save(self) -> None:
        """A checkpoint: the agent, and all that the run goes on from."""
        trainer = self.trainer
        counters = {**trainer.counters(), "best": self.best, "gain": self.gain}
        self.folder.save(
            trainer.updates,
            self.best or trainer.updates,
            lambda path: save_agent(path, trainer.agent, trainer.card(), state=trainer.state(), counters=counters),
        )


def open_run(config: Config, make: Callable[[Config], Learner], given: Mapping[str, Any] | None = None) -> Run:
    """A new run in its folder, or with ``config.resume`` the one to go on with.

    Args:
        config: Settings.
        make: The trainer of some settings.
        given: Beside ``config.resume``, the settings that were given; by default those that are not at their defaults.

    Raises:
        FileNotFoundError, FileExistsError, ValueError: there is nothing to resume, the folder is taken, or a
            setting is out of range; or as `Run.begin`.
    """
    if config.resume is not None:
        default = Config()
        changed = {one.name: getattr(config, one.name) for one in fields(Config) if one.name != "resume"}
        changed = {name: value for name, value in changed.items() if value != getattr(default, name)}
        return resumed(config.resume, make, changed if given is None else given)
    if config.out is not None:
        RunFolder(config.out).check_new()
    trainer = make(config)
    if config.out is None:
        name = re.sub(r"[^\w.-]+", "-", f"{config.rules}-{config.players}p-seed{config.seed}")
        config.out = free_folder(name, make=trainer.group.leads)
    run = Run(trainer, RunFolder(config.out))
    if trainer.group.leads:
        run.folder.create(describe(config, [place.table for place in trainer.places]))
        run.begin()
    return run


def resumed(path: Path, make: Callable[[Config], Learner], given: Mapping[str, Any]) -> Run:
    """The run in a folder, at its newest checkpoint; killed before its first, it begins again.

    Raises:
        FileNotFoundError: there is no run.
        ValueError: settings were given that are not the machine's, or what the folder holds is damaged.
    """
    folder = RunFolder(path)
    config = saved_config(folder)
    if refused := sorted(name for name in given if name not in HERE):
        raise ValueError(f"resume={path} goes on with the run's own settings; leave out {', '.join(refused)}")
    try:
        config = replace(config, **given)
        config.start = None if folder.checkpoints() else config.start
        run = Run(make(config), folder)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} cannot be resumed: {error}") from error
    run.begin()
    return run


def saved_config(folder: RunFolder) -> Config:
    """The settings of the run in a folder; its own place is ``out``.

    Raises:
        FileNotFoundError, ValueError: there is no run, or one that cannot be read.
    """
    saved = folder.config()
    if strange := sorted(set(saved) ^ {one.name for one in fields(Config)}):
        raise ValueError(f"{folder.path} was made by another version: settings {', '.join(strange)} differ")
    try:
        for name in ("hidden", "rivals"):
            saved[name] = tuple(saved[name])
        saved["specialists"] = tuple(map(Path, saved["specialists"]))
        saved["start"] = saved["start"] and Path(saved["start"])
    except TypeError as error:
        raise ValueError(f"{folder.path} cannot be resumed: {error}") from error
    return Config(**{**saved, "out": folder.path, "resume": None})
