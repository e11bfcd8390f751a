"""How many duplicate deals a second the arena plays: one of a policy among three of another, four rotations a deal.

    python -m benchmarks.arena --workers 2 --json -

Scripted policies, the agent that ships, and with --checkpoint a network of torch; alone in one process and on workers.
The first play of each table is left out: it starts processes and loads compiled code and weights.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import tyro
from tyro.conf import arg

import agents  # noqa: F401 (registers the names of trained agents)
from benchmarks.timing import interleaved, ratio, summary
from cucumber_env import arena

PAIRS = [("careful", "highest"), ("highest", "lowest"), ("careful", "careful"), ("champion", "highest")]


@dataclass
class Config:
    """Arguments of the benchmark."""

    deals: int = 40_000
    """Duplicate deals of each table."""
    workers: int = 2
    """Processes beside the measurement in one."""
    repeats: int = 3
    """Measurements of each, of which the median counts."""
    checkpoint: Annotated[str | None, arg(metavar="FOLDER")] = None
    """A trained agent that plays with torch."""
    seed: int = 1
    """Names the deals."""
    json: Annotated[str | None, arg(metavar="FILE")] = None
    """Write the rates here, or with `-` to stdout in place of the lines."""


def plays(one: str, field: str, config: Config, workers: int) -> int:
    """Play a table of one among three of the field on `workers` processes; returns the number of deals."""
    arena.play_tables([[one, field, field, field]], deals=config.deals, seed=config.seed, workers=workers)
    return config.deals


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; returns the exit status."""
    config = tyro.cli(Config, args=arguments, description=__doc__)
    pairs = PAIRS + [(f"checkpoint:{config.checkpoint}", "highest")] * (config.checkpoint is not None)
    rows: list[dict[str, Any]] = []
    for one, field in pairs:
        loops = {str(workers): partial(plays, one, field, config, workers) for workers in (1, config.workers)}
        rates = interleaved(loops=loops, seconds=0, repeats=config.repeats)
        alone, several = rates["1"], rates[str(config.workers)]
        found = {"one_process": summary(alone), "workers": summary(several), "ratio": ratio(several, alone)}
        rows.append({"one": one, "field": field, **found})
        if config.json != "-":
            rates_text = (f"{found[name]['median']:,.0f}" for name in ("one_process", "workers"))
            print(f"{one} among {field}: {' and '.join(rates_text)} deals/s, {found['ratio']['median']:.2f} ×")
    if config.json is not None:
        facts = {"deals": config.deals, "workers": config.workers, "deals_per_second": rows}
        text = json.dumps(facts, indent=2) + "\n"
        sys.stdout.write(text) if config.json == "-" else Path(config.json).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
