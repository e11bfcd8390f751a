"""Sweeps: what is run, what is refused, how a sweep stops and goes on, and the numbers of its tables."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest

from agents.config import Config
from benchmarks import strength, study, sweep
from cucumber_env.rules import Rules

SPEC = """
seeds = [1, 2, 3]
[base]
updates = 5
final_seed = 3
[axes]
learning_rate = [0.004]
hidden = [[64, 32]]
[[also]]
name = "mmd"
clip = "inf"
reverse_kl = 0.05
"""


def specified(folder: Path, text: str = SPEC) -> Path:
    path = folder / "spec.toml"
    path.write_text(text)
    return path


def estimate(mean: float, half: float = 0.02) -> dict[str, float]:
    return {"mean": mean, "low": mean - half, "high": mean + half, "deals": 1000}


def pretend(run: study.Run, *, highest: float, careful: float = -0.1, seconds: float = 10.0, **changes: Any) -> None:
    """Files of a finished run."""
    config = asdict(replace(run.point.config, seed=run.seed, **changes))
    description = {"config": config, "versions": {"torch": "2.0", "git": f"g{run.seed}"}, "machine": {"cpus": 2}}
    rows = [
        {"field": "highest", "score": estimate(highest), "difference": estimate(-0.5), "own": estimate(2.2)},
        {"field": "careful", "score": estimate(1.8), "difference": estimate(careful), "own": estimate(1.8)},
    ]
    rows = [row | {"share": estimate(0.2)} for row in rows]
    facts = {"rules": Rules().to_dict(), "players": 4, "deals": 1000}
    tables = [{**facts, "policy": "trained", "rows": rows}, {**facts, "policy": "rival", "rows": rows}]
    training = {"turns": 280_000 * run.seed, "decisions": 120_000, "training_seconds": seconds}
    run.folder.mkdir(parents=True)
    (run.folder / "config.json").write_text(json.dumps(description, default=str))
    report = {"config": config, "training": training, "tables": tables}
    (run.folder / "report.json").write_text(json.dumps(report, default=str))


def test_axes_vary_one_setting_and_combinations_several(tmp_path: Path) -> None:
    found = study.Study.load(specified(tmp_path), tmp_path / "out")
    usual = Config(updates=5, final_seed=3, threads=1)
    assert [(point.name, point.config) for point in found.points] == [
        ("base", usual),
        ("learning_rate-0.004", replace(usual, learning_rate=0.004)),
        ("hidden-64-32", replace(usual, hidden=(64, 32))),
        ("mmd", replace(usual, clip=float("inf"), reverse_kl=0.05)),
    ]
    assert [run.folder.name for run in found.runs[5:7]] == ["learning_rate-0.004-seed3", "hidden-64-32-seed1"]
    settings = "--threads 1 --updates 5 --final-seed 3 --hidden 64 32 --seed 1 --out"
    assert found.runs[6].command()[2:] == [*settings.split(), str(tmp_path / "out" / "hidden-64-32-seed1")]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("learning_rate = [0.004]", "learning_rat = [0.004]", "learning_rat unknown"),
        ("learning_rate = [0.004]", "learning_rate = 0.004", "give a list"),
        ("learning_rate = [0.004]", "learning_rate = [0.002]", "base and learning_rate-0.002 are the same"),
        ("learning_rate = [0.004]", "learning_rate = [-1]", "learning_rate=-1.0 is out of range"),
        ("learning_rate = [0.004]", "trunk = ['both']", "trunk-both: train.py would refuse"),
        ("updates = 5", "seed = 5", "leave out seed"),
        ("[1, 2, 3]", "[1, 1]", r"seeds=\[1, 1\]"),
        ('name = "mmd"', 'name = "../mmd"', "name='../mmd'"),
        ("[axes]", "[axis]", "axis unknown"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in SPEC
    with pytest.raises(ValueError, match=message):
        study.Study.load(specified(tmp_path, SPEC.replace(before, after)), tmp_path)


def test_choosing_and_publishing_take_different_deals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(tmp_path / "out")]
    assert strength.main([str(specified(tmp_path)), *out]) == 2
    assert "base: final_seed=3" in capsys.readouterr().err
    assert sweep.main([str(specified(tmp_path, SPEC.replace("final_seed = 3", ""))), *out]) == 2
    assert "base: final_seed=5 names the deals of published strength" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_runs_with_other_settings_are_refused(tmp_path: Path) -> None:
    run = study.Study.load(specified(tmp_path), tmp_path).runs[4]
    pretend(run, highest=1.0, epochs=7, final_deals=12)
    with pytest.raises(ValueError, match=r"4-seed2 holds .*: epochs is 7, not 2; final_deals is 12, not 40000; move"):
        study.Study.load(tmp_path / "spec.toml", tmp_path)
    (run.folder / "config.json").write_text("{")
    with pytest.raises(ValueError, match="damaged"):
        study.Study.load(tmp_path / "spec.toml", tmp_path)


def test_the_table_of_a_sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    penalties = {
        "base": (1.5, 1.4, 1.8),
        "learning_rate-0.004": (1.25, 1.75, 1.5),
        "hidden-64-32": (9.0, 1.125, 1.0),
        "mmd": (2.0, 2.0, 2.0),
    }
    for run in study.Study.load(specified(tmp_path), tmp_path / "out").runs:
        pretend(run, highest=penalties[run.point.name][run.seed - 1], careful=-0.1 * run.seed, seconds=5.0)
    files = ["--table", str(tmp_path / "docs" / "sweep.md"), "--json", str(tmp_path / "sweep.json")]
    words = [str(tmp_path / "spec.toml"), "--out", str(tmp_path / "out"), *files]
    assert sweep.main(words) == 0
    assert capsys.readouterr().out == "12 runs, 12 of them done\n"
    lines = (tmp_path / "docs" / "sweep.md").read_text().splitlines()
    assert lines[2] == f"    python -m benchmarks.sweep {' '.join(words)}"
    assert "Versions: torch 2.0, git g1, g2, g3." in lines
    assert "at most ± 0.020" in "\n".join(lines)
    rest = "-0.200 (-0.300 to -0.100) | 0.56 | 112.0 |"
    assert lines[-4:] == [
        f"| nothing: the base | 1.500 (1.400 to 1.800) | {rest}",
        f"| hidden 64×32 | 1.125 (1.000 to 9.000) | {rest}",
        f"| learning_rate 0.004 | 1.500 (1.250 to 1.750) | {rest}",
        f"| clip inf, reverse_kl 0.05 | 2.000 (2.000 to 2.000) | {rest}",
    ]
    points = json.loads((tmp_path / "sweep.json").read_text())["points"]
    assert [run["among_highest"]["mean"] for run in points[2]["runs"]] == [9.0, 1.125, 1.0]


def test_the_table_of_strength(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = specified(tmp_path, "seeds = [1, 2, 3]\n[base]\nupdates = 5\n")
    # 1000 deals, a 95 % interval of ± 0.02: at 99 % it is about ± 0.0263.
    wide = 0.02 * NormalDist().inv_cdf(0.995) / NormalDist().inv_cdf(0.975)
    for run, careful in zip(study.Study.load(path, tmp_path).runs, (-0.022, wide + 0.001, -wide - 0.001), strict=True):
        pretend(run, highest=1.0 + run.seed, careful=careful, seconds=7.0 * run.seed)
    assert strength.main([str(path), "--out", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "The base: 560,000 turns in 14 (7 to 21) s of training, 40,000 (40,000 to 40,000) turns/s." in lines
    assert "cucumber, 4 players, 1,000 deals:" in lines
    row = "| `highest` | 3.000 (2.000 to 4.000) | 2.200 | -0.500 (-0.500 to -0.500) | 3 of 3 | 0 of 3 |"
    assert lines.count(row) == 1
    (last,) = (line for line in lines if line.startswith("| `careful`"))
    assert last.endswith("| -0.022 (-0.027 to +0.027) | 1 of 3 | 1 of 3 |")


TRAINER = """
import json, pathlib, sys, time
words = sys.argv[1:]
folder = pathlib.Path(words[-1])
config = json.loads((folder.parent / "config").read_text())[folder.name]
(folder / "config.json").write_text(json.dumps({"config": config, "versions": {}, "machine": {}}))
with (folder / "calls").open("a") as calls:
    calls.write(words[-2] + "\\n")
if "learning_rate" in folder.name and "--resume" not in words:
    print("no luck")
    sys.exit(1)
while not (folder.parent / "go").exists():
    time.sleep(0.02)
(folder / "report.json").write_text((folder.parent / "report").read_text())
"""


def test_a_sweep_stops_says_what_failed_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A trainer that fails at one point, and else works until it is stopped, or until there is a file `go`.
    out = tmp_path / "out"
    out.mkdir()
    path = specified(tmp_path, SPEC.replace("[1, 2, 3]", "[1]"))
    found = study.Study.load(path, out)
    configs = {run.folder.name: asdict(replace(run.point.config, seed=1)) for run in found.runs}
    (out / "config").write_text(json.dumps(configs, default=str))
    pretend(replace(found.runs[0], folder=tmp_path / "model"), highest=1.0)
    model = json.loads((tmp_path / "model" / "report.json").read_text()) | {"config": {}}
    (out / "report").write_text(json.dumps(model))
    (tmp_path / "train.py").write_text(TRAINER)
    monkeypatch.setattr(study, "TRAIN", tmp_path / "train.py")

    def interrupt() -> None:
        deadline = time.monotonic() + 30
        while not all((out / name / "calls").exists() for name in ("base-seed1", "hidden-64-32-seed1")):
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=interrupt)
    thread.start()
    words = [str(path), "--out", str(out), "--table", str(tmp_path / "sweep.md")]
    assert sweep.main(words) == 130
    thread.join()
    assert signal.getsignal(signal.SIGINT) is before
    said = capsys.readouterr().out
    assert "learning_rate-0.004-seed1 failed: no luck" in said
    assert f"stopped; to go on: python -m benchmarks.sweep {' '.join(words)}" in said
    assert not list(out.glob("*/report.json"))
    assert not (out / "mmd-seed1").exists()

    (out / "go").touch()
    assert sweep.main(words) == 0
    calls = {run.folder.name: (run.folder / "calls").read_text().split() for run in found.runs}
    assert calls.pop("mmd-seed1") == ["--out"]
    assert set(map(tuple, calls.values())) == {("--out", "--resume")}
    assert (tmp_path / "sweep.md").read_text().count("1.000 (1.000 to 1.000)") == 4


def test_a_sweep_of_real_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """
        seeds = [4]
        [base]
        updates = 1
        games = 16
        hidden = [8]
        evaluate_deals = 2
        final_deals = 4
        final_seed = 3
        [axes]
        epochs = [1]
        """
    words = [str(specified(tmp_path, text)), "--out", str(tmp_path), "--json", str(tmp_path / "sweep.json")]
    assert sweep.main(words) == 0
    results = json.loads((tmp_path / "sweep.json").read_text())
    assert [point["changes"] for point in results["points"]] == [{}, {"epochs": 1}]
    for point in results["points"]:
        report = json.loads((tmp_path / f"{point['name']}-seed4" / "report.json").read_text())
        (run,) = point["runs"]
        assert report["config"]["seed"] == 4
        assert run["turns"] == 16 * 28
        means = {row["field"]: row for row in report["tables"][0]["rows"]}
        assert run["among_highest"]["mean"] == means["highest"]["score"]["mean"]
        assert run["among_careful"]["mean"] == means["careful"]["difference"]["mean"]
        assert report["tables"][0]["seed"] == 3
    capsys.readouterr()
    assert sweep.main(words) == 0
    assert capsys.readouterr().out.startswith("2 runs, 2 of them done\n# Sweep")
