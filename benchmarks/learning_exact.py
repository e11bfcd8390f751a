"""How far from equilibrium training is on the way: exact NashConv of rounds for two, against turns.

    python -m benchmarks.learning_exact --rules cucumber,hand_size=4 --updates 300 --json docs/learning_exact_4.json

Sampled and greedy play of the same network, by exact best responses (`cucumber_env.exact`).
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from agents.config import Config
from agents.policy import NetworkPolicy
from agents.runs import write_text
from cucumber_env import exact
from train import Trainer


@dataclass
class Study(Config):
    """Settings of train.py, with defaults for rounds of two, and of the curve."""

    rules: str = "three_card"
    players: int | str = 2
    updates: int = 300
    games: int = 16_384
    entropy: float = 0.005
    threads: int = 1
    points: int = 6
    """Points of the curve."""
    json: Path | None = None
    """Write the curve here."""


def measured(trainer: Trainer) -> dict[str, Any]:
    """A point of the curve."""
    place = trainer.places[0]
    found = {}
    for name, greedy in (("sampled", False), ("greedy", True)):
        policy = NetworkPolicy(trainer.agent, trainer.card(), greedy=greedy, name=name)
        found[name] = exact.exploitability(place.table.rules, policy).nash_conv
    return {"updates": trainer.updates, "turns": trainer.turns, **found}


def main(arguments: list[str] | None = None) -> int:
    """Train and measure; returns the exit status."""
    study = tyro.cli(Study, args=arguments, description=__doc__)
    trainer = Trainer(study)
    curve = []
    start = time.process_time()
    for point in range(1, study.points + 1):
        while trainer.updates < study.updates * point // study.points:
            trainer.advance()
        curve.append({**measured(trainer), "cpu_seconds": round(time.process_time() - start)})
        print(json.dumps(curve[-1]), flush=True)
    if study.json is not None:
        names = ("rules", "updates", "games", "entropy", "seed", "points", "threads")
        settings = {name: getattr(study, name) for name in names}
        write_text(study.json, json.dumps({"settings": settings, "curve": curve}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
