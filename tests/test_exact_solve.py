"""Solutions: brute force finds the same distance from equilibrium, play the same value; files are checked."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import BruteForce, State

import evaluate
from cucumber_env import exact
from cucumber_env.envs.vector import SelfPlay
from cucumber_env.exact import Tabular, exploitability, solve
from cucumber_env.exact.tree import build
from cucumber_env.policies import decide, make
from cucumber_env.rules import Rules
from cucumber_env.state import NUM_RANKS

TINY = [
    Rules(hand_size=2, ranks="9TJQKA", copies=1),
    Rules(hand_size=3, ranks="2KA", copies=3, tie="all", follow="may"),
    Rules(hand_size=3, ranks="8TJA", copies=2, order="value", points="face_10", follow="may", penalty="own"),
]


@pytest.fixture(scope="module")
def three_cards() -> tuple[Tabular, exact.Report]:
    return solve("three_card", scheme="dcfr", nash_conv=1e-3)


def table_of(policy: Tabular) -> dict[State, dict[int, float]]:
    """What a table says at every information state, by the plays that lead there."""
    found: dict[State, dict[int, float]] = {}
    plays: list[tuple[int, ...]] = [()]
    for level, table in zip(policy.tree.levels[:-1], policy.tables, strict=True):
        for node, hand in zip(*np.nonzero(level.legal), strict=True):
            packed = int(level.hands.packed[hand])
            ranks = tuple(rank for rank in range(NUM_RANKS) for _ in range(packed >> 4 * rank & 15))
            shares = dict(zip(level.hands.ranks[hand].tolist(), table[node, hand].astype(float), strict=True))
            shares.pop(-1, None)
            total = sum(shares.values())
            state = int(level.turn[node]), ranks, plays[node]
            found[state] = {rank: share / total for rank, share in shares.items()}
        below = policy.tree.levels[level.depth + 1]
        plays = [(*plays[parent], int(rank)) for parent, rank in zip(below.parent, below.rank, strict=True)]
    return found


@pytest.mark.parametrize("scheme", sorted(exact.SCHEMES))
@pytest.mark.parametrize("rules", TINY, ids=str)
def test_brute_force_finds_solutions_as_close(rules: Rules, scheme: str) -> None:
    policy, report = solve(rules, scheme=scheme, nash_conv=1e-3)
    assert -1e-9 <= report.nash_conv <= 1.001e-3  # the table is rounded to float32
    table = table_of(policy)

    def strategy(state: State, legal: list[int]) -> dict[int, float]:
        return table.get(state) or {legal[0]: 1.0}  # the last trick

    witness = BruteForce(rules)
    assert report.value == pytest.approx(witness.value([strategy, strategy]), abs=1e-9)
    for seat in range(2):
        assert report.best_response[seat] == pytest.approx(witness.best_response(seat, strategy), abs=1e-9)


def test_two_cards_have_the_value_of_their_known_equilibrium() -> None:
    policy, report = solve("cucumber,hand_size=2", nash_conv=1e-5, every=50)
    assert report.value == pytest.approx(2.97943, abs=1e-4)
    assert report.nash_conv < 2e-5
    assert policy.facts["iterations"] == len(policy.facts["curve"]) * 50


def test_a_solution_wins_its_value_in_play(three_cards: tuple[Tabular, exact.Report]) -> None:
    policy, report = three_cards
    games = SelfPlay("three_card", num_games=40_000, num_players=2, autoreset=False, observe=False)
    at = games.reset(seed=11)
    while len(rows := np.flatnonzero(at.done == 0)):
        at = games.step(decide(policy, games.turns(rows)), rows=rows)
    public = games.games["public"]
    leader = public["leaders"][:, 0].astype(int)
    penalties = public["penalties"].astype(float)
    each = np.arange(len(leader))
    won = penalties[each, 1 - leader] - penalties[each, leader]
    assert abs(won.mean() - report.value) < 4 * won.std() / math.sqrt(len(won))
    assert 4 * won.std() / math.sqrt(len(won)) < 0.25


@pytest.mark.long
def test_four_cards_are_solved() -> None:
    policy, report = solve("cucumber,hand_size=4", nash_conv=1e-2)
    assert report.nash_conv <= 1e-2
    assert report.value == pytest.approx(0.858, abs=0.01)
    assert exploitability("cucumber,hand_size=4", policy).best_response == report.best_response


def test_threads_do_not_change_a_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cucumber_env.exact.tree.PIECE", 40)
    build.cache_clear()
    (one, report), (other, again) = (solve(TINY[2], nash_conv=0, iterations=20, threads=threads) for threads in (1, 3))
    assert len(one.tree.pieces) > 3
    build.cache_clear()
    assert [table.tobytes() for table in one.tables] == [table.tobytes() for table in other.tables]
    assert one.facts == other.facts
    assert replace(again, seconds=report.seconds) == report
    for name, policy in (("one", one), ("other", other)):
        policy.save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_limits_of_iterations_and_time() -> None:
    shown: list[tuple[int, float, float]] = []
    policy, _ = solve(TINY[0], nash_conv=0, iterations=7, every=3, progress=lambda *found: shown.append(found))
    assert [done for done, *_ in shown] == [3, 6, 7]
    assert policy.facts["curve"] == [[done, found] for done, found, _ in shown]
    assert shown[0][2] < shown[1][2] < shown[2][2]
    policy, _ = solve(TINY[0], nash_conv=0, seconds=1e-9, every=2)
    assert policy.facts["iterations"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scheme": "cfr"}, "scheme='cfr' is not one of its values; allowed: cfr"),
        ({"nash_conv": -1.0}, "nash_conv=-1.0 must be a number ≥ 0"),
        ({"nash_conv": math.nan}, "nash_conv=nan must be"),
        ({"iterations": 0}, "iterations=0 must be an integer ≥ 1"),
        ({"every": 1.5}, "every=1.5 must be an integer ≥ 1"),
        ({"seconds": "1"}, "seconds='1' must be a number ≥ 0"),
        ({"threads": 0}, "threads=0 must be an integer ≥ 1"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        solve(TINY[0], **arguments)


def test_a_file_is_the_same_policy(three_cards: tuple[Tabular, exact.Report], tmp_path: Path) -> None:
    policy, report = three_cards
    policy.save(tmp_path / "three.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["three.npz"]
    loaded = make(f"exact:{tmp_path}/three.npz")
    assert isinstance(loaded, Tabular)
    again = exploitability("three_card,threshold=21", loaded)
    assert (again.values, again.best_response) == (report.values, report.best_response)
    assert loaded.facts == json.loads(json.dumps(policy.facts))


def test_a_best_response_can_be_saved(tmp_path: Path) -> None:
    response, utility = exact.best_response("three_card", "highest", 0)
    response.save(tmp_path / "response.npz")
    report = exploitability("three_card", f"exact:{tmp_path}/response.npz")
    assert report.value == pytest.approx(utility, abs=1e-9)


def test_tables_play_only_what_they_are_for(three_cards: tuple[Tabular, exact.Report]) -> None:
    policy, _ = three_cards
    with pytest.raises(ValueError, match=r"solution is for other rounds: follow='must' \(here 'may'\)$"):
        exploitability("three_card,follow=may", policy)
    table = SelfPlay("three_card", num_games=8, num_players=3)
    table.reset(seed=1)
    with pytest.raises(ValueError, match=r"for other rounds: num_players=2 \(here 3\)$"):
        policy.probabilities(table.turns())


def test_tables_refuse_views_that_no_play_leads_to(three_cards: tuple[Tabular, exact.Report]) -> None:
    policy, _ = three_cards
    table = SelfPlay("three_card", num_games=4, num_players=2, observe=False)
    at = table.reset(seed=1)
    turns = table.turns()
    turns.views["hand"][:] = 4 << 4 * 5  # four cards instead of three
    with pytest.raises(ValueError, match="no play leads to"):
        policy.probabilities(turns)
    table.step(at.mask.argmax(axis=1))
    turns = table.turns()
    turns.views["public"]["played"][:, :, 0] = 3
    turns.views["hand"][:] = 3 << 4 * 3  # both led and held: more than four of a rank
    turns.views["public"]["trick"][:] = 1
    turns.views["public"]["count"][:] = 0
    with pytest.raises(ValueError, match="no play leads to"):
        policy.probabilities(turns)


def damaged(path: Path, **changes: Any) -> Path:
    """A copy of a file with some arrays replaced, or dropped where None; a header may change in part."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(str(arrays["header"])) | changes.pop("header", {})
    arrays = {**arrays, "header": np.array(json.dumps(header)), **changes}
    other = path.with_name("damaged.npz")
    np.savez(other, **{name: array for name, array in arrays.items() if array is not None})
    return other


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"header": {"version": 2}}, "is a solution of version 2; this program reads 1"),
        ({"header": {"version": "1"}}, "is a solution of version '1'; this program reads 1"),
        ({"header": {"rules": {"rules_version": 0}}}, "rules_version=0 was written by another version"),
        ({"header": {"rules": {"rules_version": 1, "hand_size": 3}}}, "is damaged"),
        ({"header": {"players": "2"}}, "no solution of a game that this program plays: num_players='2' must be"),
        ({"header": {"facts": None}}, "is no solution file"),
        ({"level_0": None}, "is damaged: probabilities are missing"),
        ({"level_1": np.zeros((5, 2), np.float32)}, "is damaged: probabilities are missing or not float32 of shape"),
        ({"level_0": "scaled"}, "is damaged: its numbers are no probabilities"),
        ({"level_0": "objects"}, "is no solution file"),
    ],
)
def test_damaged_files_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    policy, _ = solve(TINY[0], iterations=3)
    policy.save(tmp_path / "good.npz")
    with np.load(tmp_path / "good.npz") as file:
        first = file["level_0"]
    special = {"scaled": first * np.float32(1.5), "objects": first.astype(object)}
    changes = {
        name: special.get(change, change) if isinstance(change, str) else change for name, change in changes.items()
    }
    with pytest.raises(ValueError, match=message):
        Tabular.load(damaged(tmp_path / "good.npz", **changes))


def test_files_with_a_wrong_byte_are_refused_or_the_same(tmp_path: Path) -> None:
    policy, _ = solve(TINY[0], iterations=3)
    policy.save(tmp_path / "good.npz")
    content = (tmp_path / "good.npz").read_bytes()
    refused: list[str] = []
    for place in range(0, len(content), 7):
        (tmp_path / "bad.npz").write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        try:
            loaded = Tabular.load(tmp_path / "bad.npz")
        except ValueError as error:
            refused.append(str(error))
        else:
            assert all((one == other).all() for one, other in zip(loaded.tables, policy.tables, strict=True))
    assert all("bad.npz is " in message and "pickle" not in message for message in refused)
    assert len(refused) > len(content) / 7 / 2


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 cut off", b"\x80\x04N."])
def test_other_files_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match=r"is no solution file, .* `evaluate\.py solve --out FILE`") as refused:
        Tabular.load(tmp_path / "file")
    assert "pickle" not in str(refused.value)


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "tiny.npz"
    rules = ["--hand-size", "2", "--ranks", "9TJQKA", "--copies", "1", "--players", "2"]
    assert evaluate.main(["solve", *rules, "--out", str(out), "--nash-conv", "0.0001", "--json", "-"]) == 0
    solved = json.loads(capsys.readouterr().out)
    assert solved["nash_conv"] < 0.00011
    assert solved["curve"][-1][0] == solved["iterations"]
    assert evaluate.main(["exploitability", f"exact:{out}", *rules, "--rules", "agurk", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    for name in ("value", "best_response", "nash_conv", "information_states", "decisions"):
        assert found[name] == solved[name]
    assert found["seconds"] >= 0
    assert (found["command"], found["policy"]) == ("exploitability", f"exact:{out}")
    assert (found["rules"]["hand_size"], found["rules"]["threshold"], found["num_players"]) == (2, 21, 2)
    assert found["nash_conv"] == pytest.approx(sum(found["best_response"]), abs=1e-12)


def test_the_table_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate.main(["exploitability", "highest", "--hand-size", "2"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert lines[0].startswith("cucumber,hand_size=2, a round of 2 players")
    assert lines[2].startswith("NashConv 0.00000 (442 decisions among 1,274 information states")
    assert lines[4].split() == ["seat", "0", "+2.97943", "+2.97943", "0.00000", "lowest_sufficient", "+2.97943"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["solve", "--players", "3"], "players=3 is out of range; allowed: 2"),
        (["exploitability", "highest", "--players", "4"], "deal fewer cards or set fewer ranks"),
        (["exploitability", "highest", "--rules", "cucumber"], "deal fewer cards or set fewer ranks"),
        (["exploitability", "highest", "--follow", "maybe"], "follow='maybe'"),
        (["exploitability", "higest"], "did you mean 'highest'"),
        (["exploitability", "exact:/no/file"], "/no/file"),
        (["solve", "--out", "/no/such/folder/file"], "out='/no/such/folder/file' must be a file in a folder"),
        (["solve", "--iterations", "0"], "iterations=0 must be"),
    ],
)
def test_commands_name_bad_arguments(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
