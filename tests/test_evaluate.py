"""The command line: what it prints, writes and refuses, and with which exit code."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import evaluate
from agents.display import show
from cucumber_env import arena, policies
from cucumber_env.rules import Rules

SCRIPT = Path(evaluate.__file__)


def test_tables_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate.main(["arena", "lowest", "highest", "--deals", "60", "--seed", "3", "--players", "3"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    first, ranking, matrix, pairs, seer, rest = out.split("\n\n")
    assert first == "cucumber, 3 players, rounds; 60 duplicate deals (seed 3), 95 % intervals"
    result = arena.round_robin(["lowest", "highest"], num_players=3, deals=60, seed=3)
    assert [matrix, pairs] == [str(arena.matrix_table(result)), str(arena.pair_table(result))]
    assert [line.split()[:2] for line in ranking.splitlines()[2:]] == [["1", "highest"], ["2", "lowest"]]
    (row,) = arena.compare_with(arena.Seer(), ["highest"], num_players=3, deals=60, seed=3)
    assert seer.splitlines()[3].split()[:2] == ["highest", f"{row.score.mean:.3f}"]
    assert rest == ""


def test_tables_fit_a_terminal() -> None:
    names = ["random", "lowest", "highest", "lowest_sufficient", "control", "careful"]
    result = arena.round_robin(names, deals=10)
    result.names[0] = "checkpoint:runs/a-long-name/[bold]best"
    for width, broken in ((80, True), (160, False)):
        drawn = io.StringIO()
        show(arena.matrix_table(result), Console(file=drawn, force_terminal=True, width=width, color_system=None))
        lines = drawn.getvalue().splitlines()
        assert max(map(len, lines)) <= width
        score = result.against[5][0].score
        whole = f"{score.mean:.3f} ± {score.half_width:.3f}"
        assert (whole in drawn.getvalue()) != broken
        assert "[bold]" in drawn.getvalue()  # names are no markup


def test_json_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "result.json"
    command = ["arena", "lowest", "highest", "--rules", "cucumber,hand_size=3,threshold=21", "--episode", "match"]
    assert evaluate.main([*command, "--players", "2", "--deals", "50", "--seed", "8", "--json", str(file)]) == 0
    assert "matches; 50 duplicate deals" in capsys.readouterr().out
    found = json.loads(file.read_text(encoding="utf-8"))
    assert Rules.from_dict(found["rules"]) == Rules(hand_size=3, threshold=21)
    assert {key: found[key] for key in ("command", "num_players", "episode", "deals", "seed", "score")} == {
        "command": "arena",
        "num_players": 2,
        "episode": "match",
        "deals": 50,
        "seed": 8,
        "score": "outcome",
    }
    assert found["versions"].keys() == {"cucumber_env", "rules", "rewards", "observation"}
    result = arena.round_robin(
        ["lowest", "highest"], rules=found["rules"], num_players=2, episode="match", deals=50, seed=8
    )
    assert [(row["policy"], row["field"]) for row in found["against"]] == [
        (one, field) for one in ("lowest", "highest") for field in ("lowest", "highest")
    ]
    assert found["against"][1] == result.against[0][1].to_dict()
    assert found["pairs"] == [result.pairs[0].to_dict()]
    assert list(tmp_path.iterdir()) == [file]


def test_same_command_same_bytes_from_anywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["arena", "random", "highest", "--deals", "40", "--json", "-"]
    run = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert json.loads(run.stdout)["policies"] == ["random", "highest"]
    assert evaluate.main(arguments) == 0
    assert capsys.readouterr().out == run.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lowest"], "takes two or more policies; names: "),
        (["lowest", "higest"], "unknown policy 'higest' (did you mean 'highest'?); names: "),
        (["lowest", "highest", "--players", "8"], "players=8 is out of range; allowed: 2 to 7"),
        (["lowest", "highest", "--deals", "1"], "deals=1 is out of range; allowed: 2 and more"),
        (["lowest", "highest", "--seed", "-1"], "seed=-1 is out of range"),
        (["lowest", "highest", "--rules", "cucumbr"], "unknown preset 'cucumbr' (did you mean 'cucumber'"),
        (["lowest", "highest", "--rules", "cucumber,hand_size=x"], "hand_size='x' must be an integer"),
        (
            ["lowest", "highest", "--json", "/no/such/folder/file"],
            "json='/no/such/folder/file' must be a file in a folder",
        ),
        (["lowest", "checkpoint:no/such/run"], "no agent in no/such/run"),
    ],
)
def test_bad_arguments_are_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate.main(["arena", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("evaluate.py: error: ")
    assert message in err


@pytest.mark.parametrize("arguments", [[], ["arna"], ["arena", "lowest", "highest", "--episode", "game"]])
def test_a_command_that_does_not_exist(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        evaluate.main(arguments)
    assert stop.value.code == 2
    assert "help" in capsys.readouterr().err


def test_help_says_what_every_argument_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        evaluate.main(["arena", "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for argument in ("POLICY ...", "--rules", "--players", "--episode", "--deals", "--seed", "--json"):
        assert argument in text


def test_a_policy_that_fails_ends_with_its_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Broken(policies.Policy):
        def act(self, turns: policies.Turns) -> np.ndarray:
            return np.full(len(turns), 99)

    monkeypatch.setitem(policies._FACTORIES, "broken", Broken)
    assert evaluate.main(["arena", "lowest", "broken", "highest", "--deals", "5"]) == 1
    out, err = capsys.readouterr()
    assert "error: policy 'broken' chose the illegal action 99; legal: " in err
    matrix = next(part for part in out.split("\n\n") if part.startswith("Mean penalty of one"))
    assert [line.count("failed") for line in matrix.splitlines()[2:]] == [1, 3, 1]  # the rest goes on
    assert "highest  lowest" not in out
    assert any(line.split()[:2] == ["lowest", "highest"] for line in out.splitlines())


def test_an_interrupt_ends_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(arena, "tournament", interrupted)
    assert evaluate.main(["arena", "lowest", "highest", "--json", str(tmp_path / "result.json")]) == 130
    assert capsys.readouterr() == ("", "evaluate.py: interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_an_audit_goes_into_the_report_of_its_own_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    audit, page = tmp_path / "audit.json", tmp_path / "page.html"
    table = ["--rules", "three_card", "--players", "2"]
    assert evaluate.main(["audit", "highest", *table, "--json", str(audit)]) == 0
    assert "highest: a best response gains 0.05299 points a round, mean over seats; exact." in capsys.readouterr().out
    command = ["arena", "highest", "careful", "--deals", "50", "--audit", str(audit)]
    assert evaluate.main([*command, *table, "--html", str(page), "--json", "-"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["audit"]
    assert (row["policy"], row["kind"], round(row["at_least"], 5)) == ("highest", "exact", 0.05299)
    assert "0.053" in page.read_text(encoding="utf-8")
    assert evaluate.main(command) == 2
    assert (
        "audit.json is of three_card with 2 players, round episodes; this tournament of cucumber"
        in capsys.readouterr().err
    )
    audit.write_text("{}", encoding="utf-8")
    assert evaluate.main([*command, *table]) == 2
    assert "audit.json is no audit: 'policy' is missing" in capsys.readouterr().err


def test_reports_from_files_of_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    games, page, text = (tmp_path / name for name in ("games.jsonl", "page.html", "page.md"))
    command = ["arena", "highest", "careful", "random", "--players", "3", "--deals", "40", "--mixed-deals", "10"]
    assert evaluate.main([*command, "--results", str(games), "--json", "-"]) == 0
    played = json.loads(capsys.readouterr().out)
    assert evaluate.main(["report", str(games), "--json", "-"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert {**again, "command_line": ""} == {**played, "command_line": ""}
    assert again["command_line"] == f"uv run evaluate.py report {games} --json -"
    assert evaluate.main(["report", str(games), "--html", str(page), "--markdown", str(text)]) == 0
    assert capsys.readouterr().out.startswith(
        "cucumber, 3 players, rounds; 40 duplicate deals (seed 0), 95 % intervals\n\nRanking"
    )
    assert "<h1>" in page.read_text(encoding="utf-8")
    assert text.read_text(encoding="utf-8").startswith("# Tournament: cucumber, 3 players, rounds")
    assert evaluate.main(["report"]) == 2
    assert "no file of results was named" in capsys.readouterr().err


def test_policies_of_a_module_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my_policies.py").write_text(
        "from cucumber_env.policies import FunctionPolicy, register\n"
        "def lowest(turns):\n    return turns.mask.argmax(axis=1)\n"
        "def mine():\n    return FunctionPolicy(lowest)\n"
        "register('mine', mine)\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(policies, "_FACTORIES", dict(policies._FACTORIES))
    command = ["arena", "mine", "lowest", "--deals", "20", "--seer-deals", "0"]
    assert evaluate.main(command) == 2
    assert "unknown policy 'mine'" in capsys.readouterr().err
    assert evaluate.main([*command, "--imports", "my_policies"]) == 0
    assert "no difference seen" in capsys.readouterr().out
    assert evaluate.main([*command, "--imports", "no_policies"]) == 2
    assert "imports: no_policies cannot be imported: ModuleNotFoundError" in capsys.readouterr().err


def test_a_policy_that_raises_while_it_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Lost(policies.Policy):
        def probabilities(self, turns: policies.Turns) -> np.ndarray:
            raise KeyError("lost")

    monkeypatch.setitem(policies._FACTORIES, "lost", Lost)
    assert evaluate.main(["exploitability", "lost", "--hand-size", "2"]) == 1
    assert capsys.readouterr().err == "evaluate.py: error: policy 'lost' raised KeyError: 'lost'\n"


def test_files_that_cannot_be_written_are_refused_before_anything_is_computed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "touch", denied)
    for command in (["solve", "--out", "x.npz"], ["arena", "lowest", "highest", "--html", "x.html"]):
        assert evaluate.main(command) == 2
        out, err = capsys.readouterr()
        assert (out, err) == (
            "",
            f"evaluate.py: error: {command[-2][2:]}='{command[-1]}' cannot be written: Permission denied\n",
        )
