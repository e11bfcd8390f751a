"""What a training run says: at its start, in its final report, and of how to go on with it."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from agents.display import show
from agents.policy import NetworkPolicy
from agents.runs import Clock, write_text
from agents.tables import Place, Table
from cucumber_env import arena
from cucumber_env.baselines import BASELINES
from cucumber_env.policies import Policy

REPORT = "report.json"

LEAST_DEALS = 1000
"""Deals behind each line of a report on many tables, at least."""


def opening(folder: Path, places: Sequence[Place], impossible: Iterable[str], console: Console) -> None:
    """Where the run is, at which tables it trains, and which of those asked for are impossible."""
    _say(console, str(folder), "dim")
    if len(places) == 1:
        _say(console, places[0].table.rules.describe(), "dim")
        return
    _say(console, f"{len(places)} tables: {'; '.join(str(place.table) for place in places)}", "dim")
    for reason in impossible:
        _say(console, f"skipped: {reason}", "dim")


def measure(
    policy: Policy,
    places: Sequence[Place],
    *,
    episode: str,
    against: str | None,
    specialists: Sequence[Path],
    deals: int,
    seed: int,
    console: Console,
) -> list[dict[str, Any]]:
    """Play the final tables and show them as they come.

    Every policy is measured among n−1 of each baseline (and of what it was trained against), and where a specialist
    was trained at the same table, either also among the other.

    Returns:
        For each table and policy measured at it, rules, players, policy and ``Comparison.to_dict()`` rows.
    """
    deals = deals if len(places) == 1 else max(LEAST_DEALS, deals // len(places))
    trained = load_specialists(specialists, places, episode)
    fields: list[str | Policy] = list(BASELINES)
    if against is not None and against not in BASELINES:
        fields.append(against)
    plan: list[tuple[Table, Policy, list[str | Policy]]] = []
    for place in places:
        rivals: list[Policy] = [one for one in trained if place.table in one.card.tables]
        plan.append((place.table, policy, [*fields, *rivals]))
        plan += [(place.table, rival, [*fields, policy]) for rival in rivals]
    total = sum(2 * deals * len(others) for _, _, others in plan)
    _say(console, f"Measuring on {deals:,} fresh duplicate deals …", "dim")
    rows = []
    with Progress(console=Console(stderr=True), transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("playing", total=total)
        for table, one, others in plan:
            compared = arena.compare_with(
                one,
                others,
                rules=table.rules,
                num_players=table.players,
                episode=episode,
                deals=deals,
                seed=seed,
                progress=lambda count: bar.advance(task, count),
            )
            if len(plan) > 1:
                _say(console, f"\n{table}: {one.name}")
            show(arena.comparison_table(compared), console)
            facts = {"episode": episode, "deals": deals, "seed": seed, "policy": one.name}
            rows.append({**table.to_dict(), **facts, "rows": [row.to_dict() for row in compared]})
    return rows


def load_specialists(folders: Sequence[Path], places: Sequence[Place], episode: str) -> list[NetworkPolicy]:
    """Agents to compare with.

    Raises:
        ValueError: there is none in a folder, or it was trained for none of the tables; named.
    """
    found = []
    for folder in folders:
        try:
            one = NetworkPolicy.load(folder)
        except (ValueError, OSError) as error:
            raise ValueError(f"specialists: {error}") from error
        if one.card.episode not in ("round", episode) or not any(place.table in one.card.tables for place in places):
            tables = "; ".join(map(str, one.card.tables))
            raise ValueError(
                f"specialists: {folder} was trained for {tables}, {one.card.episode} episodes; no table of this run"
            )
        found.append(one)
    return found


def closing(
    folder: Path, rows: list[dict[str, Any]], counters: dict[str, Any], clock: Clock, config: Any, console: Console
) -> None:
    """Where the time went; ``report.json`` with the final tables."""
    turns, decisions = counters["turns"], counters["decisions"]
    total = sum(clock.seconds.values())
    learned = total - clock.seconds["evaluation"]
    _say(
        console,
        f"{turns:,} turns, {decisions:,} decisions in {total:.0f} s: {turns / learned:,.0f} turns/s and "
        f"{decisions / learned:,.0f} decisions/s while training ({clock}).",
    )
    facts = {**counters, "training_seconds": learned, "seconds": dict(clock.seconds)}
    written = {"config": asdict(config), "training": facts, "tables": rows}
    write_text(folder / REPORT, json.dumps(written, indent=2, default=str) + "\n")


def going_on(folder: Path, places: Sequence[Place], episode: str, console: Console) -> None:
    """Where the agent is, and how to evaluate, play against and resume it."""
    resume = f"uv run train.py --resume {shlex.quote(str(folder))}"
    if not (folder / "last").exists():
        _say(console, f"No agent has been saved yet; begin again with {resume}")
        return
    agent, table = shlex.quote(f"checkpoint:{folder / 'last'}"), places[0].table
    where = f"--rules {shlex.quote(str(table.rules))} --players {table.players}"
    _say(console, f"The agent is in {folder / 'last'}; the best one seen on the way in {folder / 'best'}.")
    _say(console, f"  evaluate   uv run evaluate.py arena {agent} highest careful {where} --episode {episode}")
    _say(console, f"  play       uv run play.py {agent} {where} --episode {episode}")
    _say(console, f"  resume     {resume}")


def failure(error: BaseException) -> None:
    """What went wrong, in whichever process."""
    rank = os.environ.get("RANK")
    _say(Console(stderr=True), f"error: {error}" if rank is None else f"error in process {rank}: {error}", "red")
    if isinstance(error, FloatingPointError):
        _say(Console(stderr=True), "Resumed, the run would end here again; try a new one with a smaller learning rate.")


def _say(console: Console, text: str, style: str | None = None) -> None:
    """Text as it is: paths and rules may look like markup, and a pipe wants whole lines."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
