"""train.py as people use it: what it refuses and how it says so, its help, and where its last lines lead."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from processes import PATIENCE, finished, flags, logged, new_run, outcome, resumed, until
from training import run, small

import evaluate
import train
from agents.checkpoint import save_agent
from cucumber_env.envs.vector import SelfPlay
from cucumber_env.policies import make

ROOT = Path(__file__).parent.parent


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Why train.py does not begin with these arguments."""
    assert train.main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    return said.err


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """The folder of a run of four updates that was stopped after two."""
    run(small(out=tmp_path / "run"), stop_after=2)
    return tmp_path / "run"


def test_a_resumed_run_keeps_its_settings(begun: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused([*resumed(begun), *flags(games=7, clip=0.3, threads=1)], capsys)
    assert f"resume={begun} goes on with the run's own settings; leave out clip, games\n" in said
    assert "leave out seed" in refused([*resumed(begun), *flags(seed=3)], capsys)
    assert "leave out out" in refused([*resumed(begun), *flags(out=begun)], capsys)
    done = train.open_run(train.Config(resume=begun, final_deals=9, threads=2), train.Trainer)
    done.folder.close()
    assert (done.trainer.config.final_deals, done.trainer.config.games) == (9, 64)
    torch.set_num_threads(1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: "", "is not a run that can be resumed: config.json: JSONDecodeError"),
        (lambda text: text[: len(text) // 2], "is not a run that can be resumed: config.json: JSONDecodeError"),
        (lambda text: "{}", "is not a run that can be resumed: config.json: KeyError: 'config'"),
        (lambda text: "[1]", "is not a run that can be resumed: config.json: TypeError"),
        (lambda text: text.replace('"games"', '"deals"'), "made by another version: settings deals, games differ"),
        (lambda text: text.replace('"games": 64', '"games": 0'), "cannot be resumed: games=0 is out of range"),
        (lambda text: text.replace('"games": 64', '"games": "x"'), "cannot be resumed: games='x'"),
        (lambda text: text.replace('"games": 64', '"games": 63'), "is not one of this run: its games is 64"),
        (lambda text: text.replace('"rules": 1', '"rules": 99'), "begun under rules version 99; this is version"),
        (lambda text: text.replace('"observation": 1', '"observation": 0'), "begun under observation version 0"),
    ],
)
def test_a_damaged_or_foreign_configuration_is_refused(
    change: Callable[[str], str], message: str, begun: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = begun / "config.json"
    text = path.read_text()
    path.write_text(change(text))
    assert path.read_text() != text
    said = refused(resumed(begun), capsys)
    assert message in said
    assert str(begun) in said


def test_a_place_that_is_taken_is_refused(begun: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"holds a run already; --resume {begun} goes on with it" in refused(flags(out=begun), capsys)
    assert "no run to resume in" in refused(resumed(tmp_path / "elsewhere"), capsys)
    (tmp_path / "file").touch()
    assert "is a file; --out takes the folder of the run" in refused(flags(out=tmp_path / "file"), capsys)
    (begun / "config.json").unlink()
    assert f"{begun}/log.jsonl is left of another run" in refused(flags(out=begun), capsys)
    assert "config.json is missing" in refused(resumed(begun), capsys)


def test_what_is_wrong_is_said_before_anything_is_trained(
    begun: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fresh = flags(out=tmp_path / "new", hidden=32, device="cpu", threads=1)
    agent = begun / "last"
    for settings, message in (
        ({"start": tmp_path / "none"}, f"start={tmp_path}/none: no agent in {tmp_path}/none: agent.json is missing"),
        ({"start": agent, "hidden": 31}, f"start={agent}: its network (hidden (32,)"),
        ({"start": agent / "weights.safetensors"}, "is a file; an agent is a folder"),
        ({"against": "hihgest"}, "unknown policy 'hihgest' (did you mean 'highest'?)"),
        ({"against": f"checkpoint:{agent}", "players": 3}, f"checkpoint:{agent} cannot play at every table"),
        ({"against": f"checkpoint:{tmp_path}/none"}, "no agent in"),
        ({"specialists": tmp_path / "none"}, "specialists: no agent in"),
        ({"specialists": agent, "players": 3}, f"specialists: {agent} was trained for cucumber, 4 players"),
        ({"players": 9}, "players=9 is out of range"),
        ({"rules": "cucmber"}, "did you mean 'cucumber'"),
        ({"device": "nonsense"}, "device='nonsense' cannot be used here"),
        ({"gae_lambda": 1.5}, "gae_lambda=1.5 is out of range; allowed: 0 to 1"),
    ):
        assert message in refused([*fresh, *flags(**settings)], capsys), settings
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("words", [["--updates", "many"], ["--pool", "all"], ["--episode", "game"], ["--gaems", "3"]])
def test_words_that_are_no_values_are_refused_by_name(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        train.main(words)
    assert stopped.value.code == 2
    said = "".join(capsys.readouterr())
    assert words[0] in said


def test_help_explains_every_setting(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as stopped:
        train.main(["--help"])
    assert stopped.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    for name in train.Config.__dataclass_fields__:
        flag = f"--{name.replace('_', '-')}"
        at = next(number for number, line in enumerate(lines) if f"{flag} " in line or f"{flag}," in line)
        explained = " ".join(lines[at : at + 2]).replace(flag, "")
        assert sum(word.isalpha() for word in explained.split()) >= 3, explained


def test_the_last_lines_are_plain_and_lead_on(tmp_path: Path) -> None:
    folder = tmp_path / ("a 'folder' whose name is long enough that a terminal of eighty columns would fold it" * 2)
    words = finished(folder, new_run(folder))
    assert "\x1b" not in words
    agent, *ways = words.splitlines()[-4:]
    assert agent == f"The agent is in {folder}/last; the best one seen on the way in {folder}/best."
    evaluate_it, play_it, resume_it = map(shlex.split, ways)
    where = ["--rules", "cucumber", "--players", "4", "--episode", "round"]
    agent = f"checkpoint:{folder}/last"
    assert evaluate_it[:2] + evaluate_it[4:7] == ["evaluate", "uv", "arena", agent, "highest"]
    assert play_it == ["play", "uv", "run", "play.py", agent, *where]
    assert resume_it == ["resume", "uv", "run", "train.py", "--resume", str(folder)]
    assert all((ROOT / way[3]).is_file() for way in (evaluate_it, play_it, resume_it))
    assert evaluate.main([*evaluate_it[4:], "--deals", "8"]) == 0


@pytest.mark.long
def test_train_py_as_a_command(tmp_path: Path) -> None:
    """In a process from nothing: killed, resumed in a pipe, and the same as without."""
    command = [sys.executable, "-W", "error", str(ROOT / "train.py")]
    settings = new_run(tmp_path / "whole", updates=12)
    subprocess.run([*command, *settings], check=True, capture_output=True, timeout=PATIENCE, cwd=ROOT)
    folder = tmp_path / "parts"
    process = subprocess.Popen([*command, *new_run(folder, updates=12)], stderr=subprocess.DEVNULL, cwd=ROOT)
    try:
        for _ in until(PATIENCE):
            if len(logged(folder)) >= 3:
                break
    finally:
        process.kill()
        process.wait(PATIENCE)
    done = subprocess.run([*command, *resumed(folder)], capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT)
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == f"  resume     uv run train.py --resume {folder}"
    assert outcome(folder) == outcome(tmp_path / "whole")
    json.loads((folder / "report.json").read_text())


def test_settings_of_the_machine_count_even_at_their_defaults(begun: Path) -> None:
    usual = train.Config()
    _, given = train.parsed([*resumed(begun), *flags(final_deals=usual.final_deals, threads=1)])
    assert given == {"final_deals": usual.final_deals}
    _, given = train.parsed([*resumed(begun), *flags(games=usual.games, updates=usual.updates)])
    with pytest.raises(ValueError, match="leave out games, updates"):
        train.open_run(train.Config(resume=begun), train.Trainer, given)


@pytest.mark.parametrize("name", ["lr=3", "a,b", "a-b=1,c", "with space"])
def test_the_printed_name_of_an_agent_is_one_that_plays(name: str, tmp_path: Path) -> None:
    trainer = train.Trainer(small(hidden=(8,), games=1))
    save_agent(tmp_path / name, trainer.network, trainer.card())
    for options in ("", ",greedy=1"):
        policy = make(f"checkpoint:{tmp_path / name}{options}")
        table = SelfPlay(num_games=2, observe=False)
        table.reset(seed=1)
        np.testing.assert_allclose(policy.probabilities(table.turns()).sum(axis=1), 1, rtol=1e-6)
    with pytest.raises(ValueError, match="greedy=7 is out of range"):
        make(f"checkpoint:{tmp_path / name},greedy=7")
