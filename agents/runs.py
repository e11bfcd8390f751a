"""What a training run is outside of learning: its folder, its description, and how it is stopped."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import platform
import signal
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from cucumber_env.observation import OBSERVATION_VERSION
from cucumber_env.rules import RULES_VERSION, Rules


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
        print("\nstopping after this update; Ctrl-C again stops at once", file=sys.stderr)

    def restore(self) -> None:
        """Signals do again what they did before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)


def describe(config: Any, rules: Rules) -> dict[str, Any]:
    """Everything that names a run: settings (a dataclass), rules in full, versions, machine."""
    return {
        "config": dataclasses.asdict(config),
        "rules": rules.to_dict(),
        "versions": {
            "rules": RULES_VERSION,
            "observation": OBSERVATION_VERSION,
            **{name: metadata.version(name) for name in ("cucumber-env", "numpy", "numba", "torch")},
        },
        "machine": {"platform": platform.platform(), "cpus": os.cpu_count(), "python": platform.python_version()},
    }


def forget_after(log: Path, updates: int) -> None:
    """Cut a JSON-lines log to the lines of the first `updates`: what a resumed run does again is not told twice."""
    if not log.exists():
        return
    kept = []
    for line in log.read_text(encoding="utf-8").splitlines():
        try:
            if json.loads(line)["update"] <= updates:
                kept.append(line)
        except (json.JSONDecodeError, KeyError):
            continue  # a line that a killed run left unfinished
    fresh = log.with_suffix(".new")
    fresh.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
    fresh.replace(log)


def free_folder(name: str) -> Path:
    """``runs/NAME``, or with a number behind it the first that does not exist."""
    folders = (Path("runs") / (name if number == 1 else f"{name}-{number}") for number in itertools.count(1))
    return next(folder for folder in folders if not folder.exists())
