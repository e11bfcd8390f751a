"""Files of results: what is in them, that they go on where they stopped, and that they are put together rightly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cucumber_env import arena
from cucumber_env.arena import results, tables
from cucumber_env.arena.match import seatings
from cucumber_env.policies import FunctionPolicy, Policy, Turns
from cucumber_env.rules import Rules

TABLE = ["careful", "highest", "random"]
OPTIONS: dict[str, Any] = {"deals": 40, "seed": 4}


def play(file: Path, several: list[list[str]] | None = None, **changes: Any) -> list[Any]:
    return arena.play_tables(several or [TABLE], file=file, **{**OPTIONS, **changes})


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def same(one: arena.Result, other: arena.Result) -> bool:
    arrays = [(one.penalties, other.penalties), (one.decisions, other.decisions), (one.scores, other.scores)]
    return one.episode == other.episode and all(np.array_equal(*pair) for pair in arrays)


@pytest.mark.parametrize("episode", ["round", "match"])
def test_every_game_has_a_line(tmp_path: Path, episode: str) -> None:
    file = tmp_path / "games.jsonl"
    (result,) = play(file, episode=episode)
    first, *games = lines(file)
    assert first == {
        "results": 1,
        "versions": arena.VERSIONS,
        "rules": Rules.of("cucumber").to_dict(),
        "num_players": 3,
        "episode": episode,
        "seed": 4,
    }
    assert [(game["deal"], game["rotation"]) for game in games] == [(d, r) for d in range(40) for r in range(3)]
    for game in games:
        deal, rotation = game["deal"], game["rotation"]
        assert [game["seats"][(place + rotation) % 3] for place in range(3)] == TABLE
        assert game["penalties"] == result.penalties[deal, rotation].tolist()
        assert game["decisions"] == result.decisions[deal, rotation].tolist()
        assert game.get("outcomes") == (result.scores[deal, rotation].tolist() if episode == "match" else None)
    again = arena.play(TABLE, episode=episode, **OPTIONS)
    assert same(result, again)
    assert same(arena.read(file).result(TABLE), again)


def test_rotations_that_are_the_same_game_have_one_line(tmp_path: Path) -> None:
    file = tmp_path / "games.jsonl"
    table = ["highest", "lowest", "highest", "lowest"]
    (result,) = play(file, [table])
    assert [game["rotation"] for game in lines(file)[1:5]] == [0, 1, 0, 1]
    assert same(arena.read(file).result(table), result)
    assert same(result, arena.play(table, **OPTIONS)) is True


def test_one_against_the_other_is_the_same_games_either_way(tmp_path: Path) -> None:
    file = tmp_path / "games.jsonl"
    pair = ["careful", "random"]
    one, other = play(file, [pair, pair[::-1]], rules="three_card")
    assert len(lines(file)) == 1 + 40 * 2
    assert same(other, arena.play(pair[::-1], rules="three_card", **OPTIONS))
    assert same(one, arena.play(pair, rules="three_card", **OPTIONS))
    assert same(arena.read(file).result(pair[::-1]), other)


def test_rotations_of_a_table_are_the_same_games_told_otherwise() -> None:
    names = ["careful", "highest", "random"]
    several = [names[turn:] + names[:turn] for turn in range(3)]
    for table, found in zip(several, arena.play_tables(several, deals=30, seed=4), strict=True):
        assert same(found, arena.play(table, deals=30, seed=4))


ROUND = [["careful", "highest", "highest"], ["highest"] * 3, ["random", "careful", "highest"]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[Any]]:
    """A file that was written in one go, and what came of its tables."""
    file = tmp_path_factory.mktemp("whole") / "games.jsonl"
    found = play(file, ROUND)
    return file.read_bytes(), found


@pytest.mark.parametrize("part", [7, 1024])
def test_what_was_stopped_anywhere_goes_on_to_the_same_bytes(
    tmp_path: Path, whole: tuple[bytes, list[Any]], part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, expected = whole
    monkeypatch.setattr(tables, "PART", part)
    for cut in [0, 1, 200, *range(700, len(data), 1237), len(data) - 1, len(data)]:
        file = tmp_path / "games.jsonl"
        file.write_bytes(data[:cut])
        found = play(file, ROUND)
        assert file.read_bytes() == data
        assert all(same(*pair) for pair in zip(found, expected, strict=True))


def test_more_deals_and_more_tables_are_added(tmp_path: Path, whole: tuple[bytes, list[Any]]) -> None:
    file = tmp_path / "games.jsonl"
    file.write_bytes(whole[0])
    asked = 0

    def counted(turns: Turns) -> np.ndarray:
        nonlocal asked
        asked += len(turns)
        return turns.mask.argmax(axis=1)

    low = FunctionPolicy(counted, name="low")
    found = arena.play_tables([*ROUND, ["highest", "highest", low]], file=file, deals=60, seed=4)
    assert file.read_bytes().startswith(whole[0])
    for table, result in zip([*ROUND, ["highest", "highest", "lowest"]], found, strict=True):
        assert same(result, arena.play(table, deals=60, seed=4))
    assert asked > 0
    asked = 0
    arena.play_tables([["highest", "highest", low]], file=file, deals=range(10, 50), seed=4)
    assert asked == 0


def test_a_descending_range_keeps_its_order(tmp_path: Path) -> None:
    file = tmp_path / "games.jsonl"
    play(file, deals=range(5, 9))
    (found,) = play(file, deals=range(9, 2, -1))
    assert same(found, arena.play(TABLE, deals=range(9, 2, -1), seed=4))
    assert sorted({game["deal"] for game in lines(file)[1:]}) == list(range(3, 10))
    assert same(arena.read(file).result(TABLE), arena.play(TABLE, deals=range(3, 10), seed=4))


def test_files_are_merged_by_reading_or_putting_them_together(tmp_path: Path) -> None:
    for number, deals in enumerate([range(20), range(15, 40)]):
        play(tmp_path / f"{number}.jsonl", deals=deals)
    paths = [tmp_path / "0.jsonl", tmp_path / "1.jsonl"]
    joined = tmp_path / "joined.jsonl"
    joined.write_bytes(b"".join(path.read_bytes() for path in paths))
    whole = arena.play(TABLE, **OPTIONS)
    assert same(arena.read(paths).result(TABLE), whole)
    assert same(arena.read(joined).result(TABLE), whole)
    play(joined)  # nothing is missing
    assert len(lines(joined)) == 2 + 3 * 45


def test_what_does_not_belong_together_is_refused(tmp_path: Path) -> None:
    file, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    play(file)
    for change, message in (
        ({"seed": 5}, "results of seed 4 and 5"),
        ({"rules": "cucumber,hand_size=5"}, "results of hand_size 7 and 5"),
        ({"episode": "match"}, "results of episode round and match"),
    ):
        with pytest.raises(ValueError, match=rf"one.jsonl holds {message}; choose another file"):
            play(file, **change)
        other.unlink(missing_ok=True)
        play(other, **change)
        with pytest.raises(ValueError, match=rf"other.jsonl: {message} cannot be put together"):
            arena.read([file, other])


def test_the_same_game_with_another_end_is_refused(tmp_path: Path) -> None:
    file, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    play(file)
    text = file.read_text(encoding="utf-8")
    place = text.rindex('"penalties": [') + len('"penalties": [')
    other.write_text(text[:place] + "7" + text[place + 1 :], encoding="utf-8")
    with pytest.raises(ValueError, match=r"other.jsonl: deal 39 went two ways: .* with highest, random, careful"):
        arena.read([file, other])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: "", "is no file of results: it is empty"),
        (lambda text: text.replace('"results": 1', '"results": 2', 1), r"line 1: .*'results': 2.*this program has"),
        (lambda text: text.replace('"rewards": 1', '"rewards": 9', 1), r"line 1: it was written under versions .*9"),
        (lambda text: text[10:], "line 1: "),
        (lambda text: '{"deal": 0}\n' + text, "line 1: it does not begin as a file of results does"),
        (lambda text: text.replace('"deal"', '"dael"', 1), "line 2: 'deal' is missing"),
        (lambda text: text.replace('"random"]', '"random", "x"]', 1), "line 2: a game of 4 seats at a table of 3"),
        (lambda text: text.replace("[", "", 1).replace("}\n", "\n", 3), "line 1"),
    ],
)
def test_damaged_files_are_refused_by_line(tmp_path: Path, damage: Any, message: str) -> None:
    file = tmp_path / "games.jsonl"
    play(file)
    file.write_text(damage(file.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        arena.read(file)


@pytest.mark.parametrize(
    "content", [b"my only notes, one line", b'{"mine": 1}', b"\x00\x01" * 500, b"two\nlines\n", b"{}\n"]
)
def test_other_files_are_left_as_they_are(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "notes.txt"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"notes.txt"):
        play(file)
    assert file.read_bytes() == content


def test_a_contradiction_within_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "games.jsonl"
    play(file)
    whole = file.read_bytes()
    file.write_bytes(whole + whole)  # the same twice is no contradiction
    assert same(arena.read(file).result(TABLE), arena.play(TABLE, **OPTIONS))
    changed = whole.replace(b'"penalties": [0', b'"penalties": [9', 1)
    assert changed != whole
    for content in (whole + changed, changed + whole):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=r"games.jsonl: deal \d+ went two ways"):
            arena.read(file)
        with pytest.raises(ValueError, match="went two ways"):
            play(file)


def test_a_failing_policy_leaves_the_same_file_however_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "PART", 16)

    def act(turns: Turns) -> np.ndarray:
        unlucky = turns.views["hand"] % 20011 == 3  # few hands, as packed counts
        return np.where(unlucky, 99, turns.mask.argmax(axis=1))

    fragile, file = FunctionPolicy(act, name="fragile"), tmp_path / "games.jsonl"
    several = [["highest", fragile], ["highest", "lowest"]]
    failed, _ = arena.play_tables(several, file=file, deals=200, seed=4)
    assert isinstance(failed, arena.Failure)
    assert failed.deal > 32
    whole = file.read_bytes()
    for cut in range(400, len(whole), len(whole) // 40):
        file.write_bytes(whole[:cut])
        arena.play_tables(several, file=file, deals=200, seed=4)
        assert file.read_bytes() == whole


def test_a_file_is_written_by_one_program_at_a_time(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    file = tmp_path / "games.jsonl"
    setting = arena.Setting(Rules.of("cucumber"), 3, "round", 4)
    with results.ResultFile(file, setting), pytest.raises(ValueError, match="is being written by another program"):
        play(file)
    play(file)


def test_names_tell_the_policies_of_a_file(tmp_path: Path) -> None:
    twins: list[Policy] = [FunctionPolicy(lambda turns: turns.mask.argmax(axis=1), name="low") for _ in range(2)]
    with pytest.raises(ValueError, match="two policies have the name 'low'"):
        arena.play_tables([twins], file=tmp_path / "games.jsonl", deals=5)
    assert arena.play_tables([twins], deals=5)


def test_a_table_that_fails_ends_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "PART", 10)
    file = tmp_path / "games.jsonl"

    def act(turns: Turns) -> np.ndarray:
        if (turns.views["public"]["dealer"] >= 0).any() and fragile.deal >= 25:
            raise ZeroDivisionError("too late")
        return turns.mask.argmax(axis=1)

    class Fragile(FunctionPolicy):
        deal = 0

    fragile = Fragile(act, name="fragile")
    play_part = tables.Part.play

    def noting(part: tables.Part) -> Any:
        fragile.deal = int(part.deals.max())
        return play_part(part)

    monkeypatch.setattr(tables.Part, "play", noting)
    several = [["highest", fragile], ["highest", "lowest"]]
    told: list[int] = []
    failed, whole = arena.play_tables(several, file=file, progress=told.append, **OPTIONS)
    assert sum(told) == 2 * 40
    assert isinstance(failed, arena.Failure)
    assert failed.table == ("highest", "fragile")
    assert (failed.policy, failed.deal) == ("fragile", 20)
    assert failed.message.startswith("policy 'fragile' raised ZeroDivisionError: too late (deal 20, seat ")
    assert same(whole, arena.play(["highest", "lowest"], **OPTIONS))
    kept = arena.read(file)
    assert kept.failures == [failed]
    assert kept.deals(["highest", "fragile"]).tolist() == list(range(20))  # what was written so far is kept
    before = file.read_bytes()
    again = arena.play_tables(several, file=file, **OPTIONS)
    assert isinstance(again[0], arena.Failure)
    assert again[0].message == f"{failed.message}; the file says so, which was not played again (retry does)"
    assert file.read_bytes() == before
    first, _ = arena.play_tables(several, file=file, deals=range(20), seed=4)
    assert isinstance(first, arena.Result)  # for deals before it failed nothing is missing

    monkeypatch.setattr(tables.Part, "play", play_part)
    fragile.deal = 0  # it has been mended
    mended, _ = arena.play_tables(several, file=file, retry=True, **OPTIONS)
    assert same(mended, arena.play(["highest", "lowest"], **OPTIONS))
    assert file.read_bytes().startswith(before)
    assert arena.read(file).failure(["highest", "fragile"]) is None
    assert same(arena.play_tables(several, file=file, **OPTIONS)[0], mended)


def test_seatings_are_those_of_the_rotations() -> None:
    distinct, seated, seating_of = seatings(["a", "b", "a", "c"])
    for rotation in range(4):
        seats = [distinct[each] for each in seated[seating_of[rotation]]]
        assert [seats[(place + rotation) % 4] for place in range(4)] == ["a", "b", "a", "c"]
    assert seatings("aaaa")[1].tolist() == [[0] * 4]
    assert seatings("abab")[2].tolist() == [0, 1, 0, 1]


def test_tables_of_one_call_have_as_many_seats() -> None:
    with pytest.raises(ValueError, match=r"tables of \[2, 3\] seats; all have to be alike"):
        arena.play_tables([["highest"] * 2, ["highest"] * 3], deals=5)
    with pytest.raises(ValueError, match="tables of"):
        arena.play_tables([], deals=5)
