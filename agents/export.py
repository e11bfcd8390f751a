"""Turn a trained agent into one that plays without torch.

    python -m agents.export runs/cucumber-4p-seed1 --name mine --out my-agents
    python -m agents.export runs/cucumber-4p-seed1/best --name cucumber-4p

Writes NAME.npz, the policy's weights in half precision, and NAME.json, its card, as `cucumber_env.champion` reads
them; the critic stays behind. Before that it plays random games and compares what both say in every decision.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro
from torch import nn
from tyro.conf import Positional, arg

from agents.checkpoint import CARD, Card, load_agent
from agents.policy import NetworkPolicy
from agents.report import REPORT
from cucumber_env import champion
from cucumber_env.champion import FOLDER, Champion
from cucumber_env.envs.vector import SelfPlay
from cucumber_env.policies import Turns, make
from cucumber_env.rules import Rules

SHIPPED = Path(champion.__file__).parent / FOLDER
"""Where the agents lie that ship with the package."""

TOLERANCE = 0.02
"""Largest difference in the probability of an action that rounding the weights may make."""

LARGEST = 1_000_000
"""Bytes that an exported agent may take."""

DECISIONS = 8192
"""Decisions of random games that are compared, over all tables of the agent."""

GAMES = 16
"""Random games played side by side."""

LOCAL = ("out", "resume", "specialists", "threads", "device")
"""Settings of a run that belong to the machine where it was made, and stay out of the card."""


@dataclasses.dataclass
class Config:
    """Arguments of the command."""

    agent: Annotated[Path, Positional, arg(metavar="AGENT", help_behavior_hint="")]
    """Folder of a trained agent, or of a run, which stands for its last agent and final report."""
    name: str
    """Name of the exported agent: small letters, digits, - and _."""
    out: Path = SHIPPED
    """Folder for the two files; by default that of the agents that ship with cucumber_env."""
    report: Annotated[Path | None, arg(metavar="FILE")] = None
    """The report.json of the run, to be kept in the card."""


@dataclasses.dataclass(frozen=True)
class Exported:
    """What `export` did.

    Attributes:
        card, weights: The two files.
        size: Bytes of both.
        decisions: Decisions compared.
        difference: Largest difference in the probability of an action.
    """

    card: Path
    weights: Path
    size: int
    decisions: int
    difference: float


def export(agent: Path, name: str, *, out: Path = SHIPPED, report: Path | None = None) -> Exported:
    """Write the agent in the folder `agent` to `out` under `name`, replacing one of that name.

    Args:
        agent: Folder of an agent.
        name: Name of the exported agent.
        out: Folder for the two files, made if it does not exist.
        report: The ``report.json`` of its run, for the card.

    Raises:
        ValueError: a name that cannot be one, a network that half precision changes by more than `TOLERANCE` or that
            takes more than `LARGEST` bytes; nothing is written then.
        OSError, ValueError: as `load_agent`, or a report that cannot be read.
    """
    if not re.fullmatch("[a-z][a-z0-9_-]*", name):
        raise ValueError(f"name={name!r} must be small letters, digits, - and _, beginning with a letter")
    network, card = load_agent(agent)
    fields = describe(card, name, report)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".export-", dir=out) as folder:
        weights, text = Path(folder) / f"{name}.npz", Path(folder) / f"{name}.json"
        np.savez(weights, **half_precision(network.actor))  # type: ignore[arg-type]
        text.write_text(card_text(fields), encoding="utf-8")
        size = weights.stat().st_size + text.stat().st_size
        if size > LARGEST:
            raise ValueError(f"{name} takes {size:,} bytes; allowed: at most {LARGEST:,}; train a narrower network")
        decisions, difference = compare(NetworkPolicy(network, card), Champion(name, folder=folder), card)
        if difference > TOLERANCE:
            raise ValueError(
                f"half precision changes the probability of an action by {difference:.3f}; allowed: {TOLERANCE}"
            )
        for path in (weights, text):
            path.replace(out / path.name)
    return Exported(out / text.name, out / weights.name, size, decisions, difference)


def half_precision(actor: nn.Sequential) -> dict[str, np.ndarray]:
    """Weights and biases of the linear layers as float16, by the names that `cucumber_env.champion` reads.

    Raises:
        ValueError: layers of other kinds than Linear with ReLU between them, or numbers beyond half precision.
    """
    kinds = [type(module) for module in actor]
    if len(kinds) % 2 == 0 or set(kinds[::2]) != {nn.Linear} or set(kinds[1::2]) - {nn.ReLU}:
        raise ValueError(
            f"the policy's layers are {[kind.__name__ for kind in kinds]}; allowed: Linear, ReLU, …, Linear"
        )
    arrays: dict[str, np.ndarray] = {}
    for number, layer in enumerate(module for module in actor if isinstance(module, nn.Linear)):
        for kind, values in (("weight", layer.weight), ("bias", layer.bias)):
            exact = values.detach().cpu().float().numpy()
            if not (np.abs(exact) <= np.finfo(np.float16).max).all():
                raise ValueError(f"{number}.{kind} holds numbers that half precision cannot")
            arrays[f"{number}.{kind}"] = exact.astype(np.float16)
    return arrays


def describe(card: Card, name: str, report: Path | None) -> dict[str, Any]:
    """The fields of the exported card; errors as `read_report`."""
    fields = card.to_dict()
    kept = ("tables", "episode", "seats", "width", "actions", "hidden", "rules_version", "observation_version")
    training, strength = read_report(report) if report else ({}, [])
    return {
        "format": champion.FORMAT,
        "name": name,
        **{field: fields[field] for field in kept},
        "training": card.training | training,
        "strength": strength,
    }


def read_report(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """From the report of a run, its budget and settings, and for each table and opponent how the agent fared.

    Raises:
        OSError, ValueError: the file cannot be read, or is no report of a run.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        settings = {key: value for key, value in found["config"].items() if key not in LOCAL}
        strength = []
        for table in found["tables"]:
            facts = {key: table[key] for key in ("players", "episode", "deals", "seed")}
            facts = {"rules": str(Rules.from_dict(table["rules"])), **facts}
            rows = (row for row in table["rows"] if row["policy"] == "trained")
            strength += [facts | _rounded({key: row[key] for key in row if key != "policy"}) for row in rows]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{path} is not the report of a run: {type(error).__name__}: {error}") from error
    return {**found["training"], "settings": settings}, strength


def _rounded(value: Any) -> Any:
    """JSON values with all floats to five digits."""
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return float(f"{value:.5g}") if isinstance(value, float) else value


def card_text(fields: dict[str, Any]) -> str:
    """JSON with a line for each field, and for each entry of a list of objects."""
    lines = []
    for field, value in fields.items():
        text = json.dumps(value, ensure_ascii=False)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            rows = ",\n    ".join(json.dumps(row, ensure_ascii=False) for row in value)
            text = f"[\n    {rows}\n  ]"
        lines.append(f"  {json.dumps(field)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def compare(ours: NetworkPolicy, theirs: Champion, card: Card) -> tuple[int, float]:
    """Decisions compared in random games at all tables of `card`, and the largest difference of a probability."""
    count, largest = 0, 0.0
    for table in card.tables:
        wanted = -(-DECISIONS // len(card.tables))
        for turns in random_turns(table.rules, table.players, card.episode):
            largest = max(largest, float(np.abs(ours.probabilities(turns) - theirs.probabilities(turns)).max()))
            count += len(turns)
            wanted -= len(turns)
            if wanted <= 0:
                break
    return count, largest


def random_turns(rules: Rules, num_players: int, episode: str) -> Iterator[Turns]:
    """Batches of decisions in games played at random, without end."""
    games = SelfPlay(rules, num_games=GAMES, num_players=num_players, episode=episode, observe=False)
    games.reset(seed=0)
    policy = make("random")
    while True:
        turns = games.turns()
        yield turns
        games.step(policy.act(turns))


def find_agent(folder: Path, report: Path | None) -> tuple[Path, Path | None]:
    """The agent and the report that the arguments name: of a run, its last agent and by default its own report."""
    if (folder / CARD).exists() or not (folder / "last").is_dir():
        return folder, report
    own = folder / REPORT
    return folder / "last", report or (own if own.is_file() else None)


def usage(name: str, out: Path) -> str:
    """How to play the agent `name` in the folder `out`, at its first table."""
    card = champion.read_card(out, name)
    rules, players = card.tables[0]
    policy = f"champion:{name}" + ("" if out.resolve() == SHIPPED.resolve() else f",folder={out}")
    table = f"--rules {rules} --players {players} --episode {card.episode}"
    keywords = f'rules="{rules}", num_players={players}, episode="{card.episode}"'
    return (
        f"  uv run evaluate.py arena {shlex.quote(policy)} careful highest {table}\n"
        f'  gymnasium.make("cucumber_env/Cucumber-v0", {keywords}, opponents="{policy}")'
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (by default those of the process) and return the exit code."""
    config = tyro.cli(Config, args=arguments, prog="python -m agents.export", description=__doc__)
    torch.set_num_threads(1)
    agent, report = find_agent(config.agent, config.report)
    try:
        done = export(agent, config.name, out=config.out, report=report)
    except (ValueError, OSError) as error:
        print(f"agents.export: error: {error}", file=sys.stderr)
        return 2
    print(
        f"{agent} is exported: {done.size / 1000:.0f} kB in {done.weights} and {done.card.name}\n"
        f"Action probabilities differ by at most {done.difference:.4f} in {done.decisions:,} random decisions.\n"
        f"\n{usage(config.name, config.out)}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
