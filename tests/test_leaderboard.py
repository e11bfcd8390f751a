"""The leaderboard: entries say how they were measured, are reproduced, and go stale visibly."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import evaluate
from agents import leaderboard
from agents.commands import leaderboard as command
from agents.config import Config
from agents.leaderboard import FOLDER, Entry, boards, entries, find_board, measure, stale
from agents.leaderboard_page import document
from cucumber_env import arena
from cucumber_env.arena.document import Grid
from cucumber_env.arena.markdown import as_markdown
from cucumber_env.arena.page import as_page
from cucumber_env.baselines import BASELINES

BOARDS = """
[small]
title = "Two players, three cards"
rules = "three_card"
players = 2
episode = "round"
deals = 60
seed = 3

[matches]
title = "Three players"
rules = "cucumber"
players = 3
episode = "match"
deals = 6
seed = 3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "boards.toml").write_text(BOARDS, encoding="utf-8")
    for name in ("highest", "careful", "champion:three-card-2p"):
        measure(find_board("small", tmp_path), name).write(tmp_path)
    return tmp_path


def table(folder: Path, board: str, start: str) -> Grid:
    """The table of a board whose title begins so."""
    _, parts = document(folder)
    (section,) = (part for part in parts if part.name == board)
    return next(block for block in section.blocks if isinstance(block, Grid) and block.title.startswith(start))


@pytest.mark.parametrize("name", ["small", "matches"])
def test_an_entry_holds_what_the_arena_says(folder: Path, name: str) -> None:
    board = find_board(name, folder)
    entry = Entry.read(measure(board, "control").write(folder))
    rows = arena.compare_with(
        "control",
        BASELINES,
        rules=board.rules,
        num_players=board.players,
        deals=board.deals,
        seed=3,
        episode=board.episode,
    )
    assert entry.against == [row.to_dict() for row in rows]
    assert entry.scores.mean(axis=1) == pytest.approx([row.score.mean for row in rows])
    assert entry.versions == arena.VERSIONS
    assert (entry.kind, entry.commands, entry.remade) == ("scripted", [], None)
    assert (entry.exact is None) == (name == "matches")


def test_entries_are_reproduced_from_their_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(map(str, (folder / "entries" / "small").glob("*.json")))
    assert evaluate.main(["leaderboard", "reproduce", *files, "--folder", str(folder)]) == 0
    out = capsys.readouterr().out
    assert out.count("The same on every deal.") == 3
    assert out.count("NashConv: was 0.105") == 1
    assert evaluate.main(["leaderboard", "reproduce", files[0], "--deals", "20", "--folder", str(folder)]) == 0
    assert "careful, 20 deals" in capsys.readouterr().out


def test_an_entry_that_comes_out_otherwise_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    board = find_board("small", folder)
    entry = measure(board, "highest")
    replace(entry, policy="lowest").write(folder)  # lowest does not play so
    file = str(folder / "entries" / "small" / "lowest.json")
    assert evaluate.main(["leaderboard", "reproduce", file, "--folder", str(folder)]) == 1
    out, err = capsys.readouterr()
    assert "was not reproduced" in err
    assert "among careful: was" in out
    assert "The same" not in out


def test_the_page_ranks_by_paired_deals(folder: Path) -> None:
    grid = table(folder, "small", "Entries, best first")
    assert grid.heads[:4] == ["rank", "policy", "penalty", "NashConv"]
    board = find_board("small", folder)
    scores = {entry.policy: entry.scores.mean() for entry in entries(board, folder)}
    assert [str(row[1]) for row in grid.rows] == sorted(scores, key=scores.__getitem__)
    assert {str(row[0]) for row in grid.rows} <= {"1", "2", "3", "1–2", "2–3", "1–3"}
    trained = next(row for row in grid.rows if str(row[1]).startswith("champion"))
    assert trained[3:5] == ["0.0014", "trained"]
    assert str(trained[5]).startswith("29.5 million turns")
    text = as_markdown(*document(folder))
    assert "No entry stands." in text  # of the other board
    assert as_page(*document(folder)) == as_page(*document(folder))


@pytest.mark.parametrize(
    ("version", "words"),
    [("rules", "rules version"), ("rewards", "rewards version"), ("observation", "observation version")],
)
def test_another_version_makes_entries_stale_visibly(
    folder: Path, version: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    board = find_board("small", folder)
    assert [stale(entry, board) for entry in entries(board, folder)] == [[], [], []]
    monkeypatch.setattr(leaderboard, "VERSIONS", {**arena.VERSIONS, version: 99})
    fresh = measure(board, "random")
    fresh.write(folder)
    grid = table(folder, "small", "Stale entries")
    assert [str(row[0]) for row in grid.rows] == ["careful", "champion:three-card-2p", "highest"]
    assert {str(row[2]) for row in grid.rows} == {f"{words}: 1 → 99"}
    ranked = table(folder, "small", "Entries, best first")
    assert [str(row[1]) for row in ranked.rows] == ["random"]
    assert "stale" in as_markdown(*document(folder))
    file = str(folder / "entries" / "small" / "careful.json")
    assert evaluate.main(["leaderboard", "reproduce", file, "--folder", str(folder)]) == 0
    assert f"careful.json is stale: {words}: 1 → 99" in capsys.readouterr().out


def test_another_board_makes_entries_stale(folder: Path) -> None:
    (folder / "boards.toml").write_text(BOARDS.replace("three_card", "three_card,tie=first"), encoding="utf-8")
    board = find_board("small", folder)
    assert {reason for entry in entries(board, folder) for reason in stale(entry, board)} == {"rules: tie last → first"}
    (folder / "boards.toml").write_text(BOARDS.replace("seed = 3", "seed = 4"), encoding="utf-8")
    assert stale(entries(board, folder)[0], find_board("small", folder)) == ["seed: 3 → 4"]


def test_another_agent_under_an_old_name_makes_its_entry_stale(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    board = find_board("small", folder)
    entry = next(entry for entry in entries(board, folder) if entry.kind == "trained")
    assert stale(entry, board) == []
    assert stale(replace(entry, agent="0" * 64), board) == ["the agent's file"]
    assert "cannot be made: unknown policy 'gone'" in stale(replace(entry, policy="gone"), board)[0]


def test_entries_that_cannot_be_reproduced_do_not_stop_the_others(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good = str(folder / "entries" / "small" / "careful.json")
    gone = folder / "entries" / "small" / "gone.json"
    gone.write_text("{}", encoding="utf-8")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert evaluate.main(["leaderboard", "reproduce", str(gone), good, "--deals", "10", "--folder", str(folder)]) == 2
    out, err = capsys.readouterr()
    assert "gone.json is no entry of the leaderboard" in err
    assert "careful, 10 deals" in out


def test_damaged_entries_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "entries" / "small" / "highest.json"
    good = file.read_text(encoding="utf-8")
    shutil.copy(folder / "entries" / "small" / "careful.npz", folder / "entries" / "small" / "highest.npz")
    with pytest.raises(
        ValueError, match=r"highest.json is no entry of the leaderboard: its scores, highest.npz, are not"
    ):
        Entry.read(file)
    for bad, message in (
        (good.replace('"format": 1', '"format": 7'), "format 7; this program reads 1"),
        ("{}", "'format' is missing"),
        ("[", "Expecting value"),
    ):
        file.write_text(bad, encoding="utf-8")
        assert evaluate.main(["leaderboard", "reproduce", str(file), "--folder", str(folder)]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add", "careful"], "board: which? one of small, matches"),
        (["add", "careful", "--board", "smal"], "board='smal' is not one of its values; allowed: small, matches"),
        (["add"], "add what? name policies"),
        (["reproduce"], "reproduce what? name files of entries"),
        (["reproduce", "no.json"], "no.json"),
        (["add", "champion:cucumber-4p", "--board", "small"], "'champion:cucumber-4p' cannot sit at this table"),
        (["reproduce", "x.json", "--deals", "1"], "deals=1 is out of range"),
        (
            ["add", "careful", "--board", "small", "--deals", "10"],
            "deals: an entry is measured on all deals of its board",
        ),
        (
            ["add", "highest:", "--board", "small"],
            "highest.json is the entry of 'highest'; give 'highest:' another name",
        ),
    ],
)
def test_bad_arguments_are_named(
    folder: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate.main(["leaderboard", *arguments, "--folder", str(folder)]) == 2
    assert message in capsys.readouterr().err


def test_an_entry_says_how_its_policy_was_made() -> None:
    settings = {
        **json.loads(json.dumps(vars(Config()), default=str)),
        "rivals": ["highest", "careful"],
        "entropy": 0.002,
    }
    settings |= {"compile": True, "updates": 7}
    text = leaderboard.command_of(settings, Path("runs/again"))
    words = "uv run train.py --updates 7 --entropy 0.002 --rivals highest careful --compile --out runs/again"
    assert sorted(text.split()) == sorted(words.split())


def test_a_policy_is_made_again_by_its_commands(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = replace(
        measure(find_board("small", folder), "highest"), commands=["true --one", "true two"], remade="careful"
    )
    file = str(entry.write(folder))
    ran: list[list[str]] = []

    class Done:
        returncode = 0

    monkeypatch.setattr(command.subprocess, "run", lambda words, **_: ran.append(words) or Done())
    assert evaluate.main(["leaderboard", "reproduce", file, "--retrain", "--folder", str(folder)]) == 0
    assert ran == [["true", "--one"], ["true", "two"]]
    again = measure(find_board("small", folder), "careful")
    difference = float((again.scores - entry.scores)[0].mean())
    assert f"difference {difference:+.4f}" in capsys.readouterr().out
    Done.returncode = 3
    assert evaluate.main(["leaderboard", "reproduce", file, "--retrain", "--folder", str(folder)]) == 2
    assert "true --one ended with exit code 3" in capsys.readouterr().err


def every_entry() -> list[Path]:
    return sorted((FOLDER / "entries").glob("*/*.json"))


def test_the_page_in_the_repository_is_up_to_date() -> None:
    assert (FOLDER / "README.md").read_text(encoding="utf-8") == as_markdown(*document())
    assert (FOLDER / "index.html").read_text(encoding="utf-8") == as_page(*document())


@pytest.mark.parametrize("path", every_entry(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_entries_of_the_repository_stand(path: Path) -> None:
    """Read, fresh, and with the same scores on the first of their deals."""
    entry = Entry.read(path)
    board = find_board(entry.board)
    assert stale(entry, board) == []
    again = measure(replace_board(board), entry.policy, deals=3 if board.episode == "match" else 20)
    assert np.array_equal(again.sums, entry.sums[:, : again.sums.shape[1]])


def replace_board(board: leaderboard.Board) -> leaderboard.Board:
    """The same board, whose policies are not measured exactly, which takes its time."""

    class Quick(leaderboard.Board):
        solvable = False  # type: ignore[assignment]

    return Quick(**vars(board))


def test_every_board_has_its_first_entries() -> None:
    for board in boards().values():
        found = {entry.policy for entry in entries(board)}
        assert found >= set(BASELINES)
        assert any(name.startswith("champion:") for name in found)
