"""Published strength: train with several seeds, and take medians of the runs' final tables.

    python -m benchmarks.strength benchmarks/strength.toml --out runs/strength --table docs/strength.md

The specification is that of a sweep (`benchmarks/study.py`), whose points are the budgets or agents to publish. The
deals are those of train.py's own final table, on which no setting has been chosen.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from statistics import median
from typing import Any

from agents.tables import Table
from benchmarks import sweep
from benchmarks.study import Point, Run, Study, read
from cucumber_env.arena.statistics import student_t

CONFIDENCE = 0.99
"""Of the interval that must exclude 0 before a policy counts as beaten."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Train and measure; returns the exit status as `benchmarks.sweep` does."""
    return sweep.conduct(
        "benchmarks.strength", str(__doc__), arguments, check=check, summary=summary, markdown=markdown
    )


def check(study: Study) -> None:
    """Refuse deals on which settings may have been chosen."""
    for point in study.points:
        if point.config.final_seed != sweep.PUBLISHED:
            raise ValueError(
                f"{point.name}: final_seed={point.config.final_seed}; strength is published on the deals of "
                f"final_seed={sweep.PUBLISHED}: leave it out"
            )


def summary(point: Point, runs: list[Run]) -> dict[str, Any]:
    """Every line of the final tables over the seeds, and what training cost."""
    reports = [read(run.report) for run in runs]
    training = [report["training"] for report in reports]
    lines = []
    for tables in zip(*(own_tables(report) for report in reports), strict=True):
        for rows in zip(*(table["rows"] for table in tables), strict=True):
            table = {"table": str(Table.from_dict(tables[0])), "deals": tables[0]["deals"]}
            lines.append(table | over_seeds(rows))
    return {
        "turns": median(one["turns"] for one in training),
        "training_seconds": sweep.spread([one["training_seconds"] for one in training]),
        "turns_per_second": sweep.spread([one["turns"] / one["training_seconds"] for one in training]),
        "lines": lines,
    }


def own_tables(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The tables at which the trained agent itself was measured."""
    return [table for table in report["tables"] if table["policy"] == "trained"]


def over_seeds(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One line of the final table over the seeds, whose runs all met the same policy on the same deals."""
    assert len({row["field"] for row in rows}) == 1
    return {
        "field": rows[0]["field"],
        **{name: sweep.spread([row[name]["mean"] for row in rows]) for name in ("score", "difference", "share")},
        "own": rows[0]["own"]["mean"],
        "better": sum(sign(row["difference"]) < 0 for row in rows),
        "worse": sum(sign(row["difference"]) > 0 for row in rows),
        "runs": [{name: row[name] for name in ("score", "difference", "share")} for row in rows],
    }


def sign(difference: dict[str, float]) -> int:
    """1 or −1 if the 99 % interval lies above or below 0, else 0; from the 95 % interval of the same t distribution."""
    freedom = int(difference["deals"]) - 1
    wider = student_t(freedom, confidence=CONFIDENCE) / student_t(freedom)
    half = (difference["high"] - difference["low"]) / 2 * wider
    return (difference["mean"] - half > 0) - (difference["mean"] + half < 0)


def markdown(results: dict[str, Any]) -> str:
    """A section for each point."""
    score = "outcome" if results["episode"] == "match" else "penalty"
    lower, higher = ("better", "worse") if score == "penalty" else ("worse", "better")
    lines = ["# Strength", "", *sweep.preamble(results), ""]
    lines += [
        f"One trained agent among policies of one kind: its mean {score}, theirs among themselves, and the difference, "
        f"on the same duplicate deals. Last columns: seeds whose {CONFIDENCE:.0%} interval of that difference lies "
        f"below 0 ({lower} than the field) or above ({higher}). Trained {results['jobs']} at a time on this machine.",
    ]
    for point in results["points"]:
        lines += ["", f"## {point['name']}", "", *section(point, results, score)]
    return "\n".join(lines) + "\n"


def section(point: dict[str, Any], results: dict[str, Any], score: str) -> list[str]:
    """What training cost, and a table for each kind of table."""
    changes = ", ".join(f"{name} {sweep.text(value)}" for name, value in point["changes"].items())
    seconds = sweep.ranged(point["training_seconds"], ".0f")
    rate = sweep.ranged(point["turns_per_second"], ",.0f")
    lines = [f"{changes or 'The base'}: {point['turns']:,.0f} turns in {seconds} s of training, {rate} turns/s."]
    seeds = len(results["seeds"])
    for table, deals in dict.fromkeys((line["table"], line["deals"]) for line in point["lines"]):
        lines += ["", f"{table}, {deals:,} deals:", ""]
        lines += [f"| among | {score} | theirs | difference | below 0 | above 0 |", "|---|---|---|---|---|---|"]
        for line in point["lines"]:
            if line["table"] == table:
                cells = [
                    f"`{line['field']}`",
                    sweep.ranged(line["score"], ".3f"),
                    f"{line['own']:.3f}",
                    sweep.ranged(line["difference"], "+.3f"),
                    f"{line['better']} of {seeds}",
                    f"{line['worse']} of {seeds}",
                ]
                lines.append(f"| {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
