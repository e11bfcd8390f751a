"""Which settings of train.py make the strongest agent: one table of many runs.

    python -m benchmarks.sweep benchmarks/sweep.toml --out runs/sweep --table docs/sweep.md --json docs/sweep.json

`benchmarks/study.py` describes the specification. Strength is read from the runs' own final tables, as medians over
seeds, on deals other than those of published strength (`benchmarks/strength.py`): the best of several is flattered by
the deals that chose it. The tables are written again after every run; the same command goes on after a stop.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import tyro

from agents.config import Config
from benchmarks.study import Point, Run, Study, execute, read
from benchmarks.throughput import machine

PUBLISHED = Config().final_seed
"""Seed of the deals on which published strength is measured."""


@dataclass
class Arguments:
    """The command line."""

    spec: tyro.conf.Positional[Path]
    """What to run (TOML, see benchmarks/study.py)."""
    out: Path
    """Folder of the runs."""
    jobs: int = 2
    """Runs at a time."""
    table: Path | None = None
    """Markdown file to write; by default the table is printed."""
    json: Path | None = None
    """JSON file to write, with the numbers of every run."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sweep; returns the exit status: 0, 1 if runs failed, 2 for misuse, 130 after a stop."""
    return conduct("benchmarks.sweep", str(__doc__), arguments, check=check, summary=summary, markdown=markdown)


def check(study: Study) -> None:
    """Refuse to choose settings on the deals of published strength."""
    for point in study.points:
        if point.config.final_seed == PUBLISHED:
            raise ValueError(
                f"{point.name}: final_seed={PUBLISHED} names the deals of published strength; "
                "choose settings on others, such as final_seed = 3 in [base]"
            )


def conduct(
    module: str,
    description: str,
    arguments: Sequence[str] | None,
    *,
    check: Callable[[Study], None],
    summary: Callable[[Point, list[Run]], dict[str, Any]],
    markdown: Callable[[dict[str, Any]], str],
) -> int:
    """Do all runs of a study and write its tables after each; returns the exit status.

    Args:
        module: What ``python -m`` runs.
        description: For ``--help``.
        arguments: Of the command line; by default those of this process.
        check: Refuses studies with a ValueError.
        summary: The numbers of a point, whose runs are all done.
        markdown: The document made of everything that goes to JSON.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    given = tyro.cli(Arguments, args=words, prog=f"python -m {module}", description=description)
    command = shlex.join(["python", "-m", module, *words])
    try:
        study = Study.load(given.spec, given.out)
        check(study)
        write = partial(write_tables, study, given, command, summary, markdown)
        failed = execute(study.runs, jobs=given.jobs, finished=write)
        document = write()
    except (ValueError, TypeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"stopped; to go on: {command}", flush=True)
        return 130
    if given.table is None:
        print(document)
    if failed:
        print(f"{len(failed)} runs failed; the same command tries them again", file=sys.stderr)
    return 1 if failed else 0


def write_tables(
    study: Study,
    given: Arguments,
    command: str,
    summary: Callable[[Point, list[Run]], dict[str, Any]],
    markdown: Callable[[dict[str, Any]], str],
) -> str:
    """Write the files asked for, as far as the study has come; returns the Markdown."""
    results = facts(study, command, given.jobs, summary)
    document = markdown(results)
    for path, content in ((given.table, document), (given.json, json.dumps(results, indent=2) + "\n")):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
    return document


def facts(
    study: Study, command: str, jobs: int, summary: Callable[[Point, list[Run]], dict[str, Any]]
) -> dict[str, Any]:
    """All that is known so far: how it was made, and the numbers of the points whose runs are all done."""
    done = [run for run in study.runs if run.report.exists()]
    described = [read(run.folder / "config.json") for run in done]
    points = []
    for point in study.points:
        runs = [run for run in done if run.point is point]
        if len(runs) == len(study.seeds):
            points.append({"name": point.name, "changes": point.changes, **summary(point, runs)})
    return {
        "command": command,
        "jobs": jobs,
        "seeds": study.seeds,
        "base": study.points[0].settings,
        "episode": study.points[0].config.episode,
        "versions": merged(one["versions"] for one in described),
        "machine": {"cpu": machine()["cpu"], **merged(one["machine"] for one in described)},
        "points": points,
        "missing": [run.folder.name for run in study.runs if run not in done],
    }


def merged(records: Iterable[dict[str, Any]]) -> dict[str, str]:
    """For each key, every value that occurs in `records`."""
    values: dict[str, dict[str, None]] = {}
    for record in records:
        for key, value in record.items():
            values.setdefault(key, {})[str(value)] = None
    return {key: ", ".join(found) for key, found in values.items()}


def preamble(results: dict[str, Any]) -> list[str]:
    """How the numbers were made, in Markdown."""
    base = ", ".join(f"{name} {text(value)}" for name, value in results["base"].items())
    lines = [
        f"    {results['command']}",
        "",
        f"Base: train.py's own settings, with {base}. Seeds {', '.join(map(str, results['seeds']))}: "
        "medians over seeds, the least and the most in brackets.",
    ]
    for name in ("versions", "machine"):
        named = ", ".join(f"{key} {value}" for key, value in results[name].items())
        lines += ["", f"{name.capitalize()}: {named or 'none yet'}."]
    if results["missing"]:
        lines += ["", f"Not done, and their points not shown: {', '.join(results['missing'])}."]
    return lines


def summary(point: Point, runs: list[Run]) -> dict[str, Any]:
    """The numbers of a point: every run, and the spread of each over the seeds."""
    rows = []
    for run in runs:
        report = read(run.report)
        trained = report["training"]
        rows.append(
            {
                "seed": run.seed,
                "among_highest": measured(report, "highest", "score"),
                "among_careful": measured(report, "careful", "difference"),
                "turns": trained["turns"],
                "decisions": trained["decisions"],
                "training_seconds": trained["training_seconds"],
                "turns_per_second": trained["turns"] / trained["training_seconds"],
            }
        )
    numbers = {
        **{name: [row[name]["mean"] for row in rows] for name in ("among_highest", "among_careful")},
        **{name: [row[name] for row in rows] for name in ("turns", "turns_per_second")},
    }
    return {"spread": {name: spread(values) for name, values in numbers.items()}, "runs": rows}


def measured(report: dict[str, Any], field: str, quantity: str) -> dict[str, float]:
    """A quantity of the trained agent at tables of `field`: its mean over all tables of the run, with 95 % interval."""
    found = [
        row[quantity]
        for table in report["tables"]
        if table["policy"] == "trained"
        for row in table["rows"]
        if row["field"] == field
    ]
    mean = sum(one["mean"] for one in found) / len(found)
    half = sum(((one["high"] - one["low"]) / 2) ** 2 for one in found) ** 0.5 / len(found)
    return {"mean": mean, "low": mean - half, "high": mean + half, "deals": sum(one["deals"] for one in found)}


def spread(values: list[float]) -> dict[str, float]:
    """Median, least and most."""
    return {"median": median(values), "min": min(values), "max": max(values)}


def markdown(results: dict[str, Any]) -> str:
    """The table: the base, then all points by their median among `highest`, best first."""
    order = -1 if results["episode"] == "match" else 1
    points = sorted(
        results["points"],
        key=lambda point: (point["name"] != "base", order * point["spread"]["among_highest"]["median"]),
    )
    score = "outcome" if results["episode"] == "match" else "penalty"
    runs = [run for point in points for run in point["runs"]]
    lines = ["# Sweep of settings", "", *preamble(results), ""]
    if runs:
        widest = max((run["among_highest"]["high"] - run["among_highest"]["low"]) / 2 for run in runs)
        lines += [
            f"One agent among `highest`: its mean {score}; among `careful`: the same, less that of a `careful` in its "
            f"place on the same deals. A single run's 95 % interval among `highest` is at most ± {widest:.3f}. "
            f"Published strength is measured on other deals (seed {PUBLISHED}). Turns per second of training, without "
            f"evaluation, are those of {results['jobs']} runs at a time on this machine: indicative.",
            "",
        ]
    lines += [
        "| changed | among `highest` | among `careful`, difference | million turns | thousand turns/s |",
        "|---|---|---|---|---|",
    ]
    lines += [row(point) for point in points]
    return "\n".join(lines) + "\n"


def row(point: dict[str, Any]) -> str:
    """A line of the table."""
    changes = ", ".join(f"{name} {text(value)}" for name, value in point["changes"].items()) or "nothing: the base"
    numbers = point["spread"]
    cells = [
        changes,
        ranged(numbers["among_highest"], ".3f"),
        ranged(numbers["among_careful"], "+.3f"),
        f"{numbers['turns']['median'] / 1e6:.2f}",
        f"{numbers['turns_per_second']['median'] / 1e3:.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def ranged(numbers: dict[str, float], style: str) -> str:
    """Median, least and most, as ``1.372 (1.365 to 1.380)``."""
    middle, low, high = (format(numbers[name], style) for name in ("median", "min", "max"))
    return f"{middle} ({low} to {high})"


def text(value: Any) -> str:
    """A setting's value as a reader writes it."""
    return "×".join(map(str, value)) if isinstance(value, list) else str(value)


if __name__ == "__main__":
    sys.exit(main())
