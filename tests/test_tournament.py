"""Tournaments: what they play, who ranks where, and that files say the same as the games themselves."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cucumber_env import arena
from cucumber_env.arena.compare import Pair
from cucumber_env.arena.ranking import surely_better
from cucumber_env.arena.tournament import MOST_MIXED, distribution, mixed_tables
from cucumber_env.policies import FunctionPolicy, Policy, Turns
from cucumber_env.rules import Rules

NAMES = ["lowest", "careful", "random", "highest"]
OPTIONS: dict[str, Any] = {"deals": 60, "seed": 2, "seer_deals": 30, "mixed_deals": 25}


def lowest(turns: Turns) -> np.ndarray:
    return turns.mask.argmax(axis=1)


def alike(one: arena.Tournament, other: arena.Tournament) -> None:
    assert json.dumps(one.report()) == json.dumps(other.report())


@pytest.fixture(scope="module")
def cup(tmp_path_factory: pytest.TempPathFactory) -> tuple[arena.Tournament, Path]:
    file = tmp_path_factory.mktemp("cup") / "games.jsonl"
    return arena.tournament(NAMES, file=file, num_players=3, **OPTIONS), file


def test_the_round_robin_is_that_of_the_arena(cup: tuple[arena.Tournament, Path]) -> None:
    plain = arena.round_robin(NAMES, num_players=3, deals=60, seed=2)
    assert cup[0].round_robin.to_dict() == plain.to_dict()
    seer = arena.compare_with(arena.Seer(), NAMES, num_players=3, deals=30, seed=2)
    assert cup[0].seer == seer
    assert cup[0].mixed.keys() == {tuple(table) for table in combinations(NAMES, 3)}
    for table, result in cup[0].mixed.items():
        np.testing.assert_array_equal(result.penalties, arena.play(table, deals=25, seed=2).penalties)


def test_files_say_the_same(cup: tuple[arena.Tournament, Path], tmp_path: Path) -> None:
    alike(arena.analyse(arena.read(cup[1])), cup[0])
    cut = tmp_path / "games.jsonl"
    data = cup[1].read_bytes()
    for size in (len(data) // 5, len(data) // 2, 9 * len(data) // 10):
        cut.write_bytes(data[:size])
        alike(arena.tournament(NAMES, file=cut, num_players=3, **OPTIONS), cup[0])
        assert cut.read_bytes() == data


@pytest.mark.parametrize("episode", ["round", "match"])
def test_two_players(tmp_path: Path, episode: str) -> None:
    file = tmp_path / "games.jsonl"
    options: dict[str, Any] = {
        "rules": "three_card",
        "num_players": 2,
        "episode": episode,
        "deals": 60,
        "seer_deals": 30,
    }
    small = arena.tournament(["careful", "random"], file=file, **options)
    alike(arena.analyse(arena.read(file)), small)
    assert not small.mixed
    report = small.report()
    assert [row["policy"] for row in report["ranking"]] == ["careful", "random"]
    assert report["score"] == ("penalty" if episode == "round" else "outcome")
    for row in report["distribution"].values():
        assert sum(row["share"]) == pytest.approx(1)
        assert row["points"] == sorted(row["points"])


def test_results_that_are_merged_are_reported_on_what_they_share(tmp_path: Path) -> None:
    options: dict[str, Any] = {"num_players": 3, "seed": 2, "seer_deals": 0}
    files = [tmp_path / f"{number}.jsonl" for number in range(3)]
    arena.tournament(["lowest", "highest"], file=files[0], deals=50, **options)
    arena.tournament(["lowest", "random"], file=files[1], deals=40, **options)
    arena.tournament(["random", "highest"], file=files[2], deals=45, **options)
    whole = arena.tournament(["lowest", "highest", "random"], deals=40, **options)
    alike(arena.analyse(arena.read(files)), whole)
    part = arena.analyse(arena.read(files[:2]))  # highest and random never met
    assert part.round_robin.against[1][2] is None
    assert [(pair.first, pair.second) for pair in part.round_robin.pairs] == [
        ("lowest", "highest"),
        ("lowest", "random"),
    ]


def test_scores_are_means_over_fields(cup: tuple[arena.Tournament, Path]) -> None:
    report = cup[0].report()
    means = {
        name: np.mean([row["score"]["mean"] for row in report["against"] if row["policy"] == name]) for name in NAMES
    }
    assert [row["policy"] for row in report["ranking"]] == sorted(NAMES, key=lambda name: means[name])
    for row in report["ranking"]:
        assert row["score"]["mean"] == pytest.approx(means[row["policy"]])
        assert row["score"]["deals"] == 60
    mixed = {row["policy"]: row for row in report["mixed"]}
    for place, name in enumerate(NAMES):
        among = [
            arena.play(table, deals=25, seed=2).of(table.index(name), arena.play(table, deals=25, seed=2).penalties)
            for table in combinations(NAMES, 3)
            if name in table
        ]
        assert mixed[name]["score"]["mean"] == pytest.approx(np.mean(among))
        assert mixed[name]["tables"] == 3
        paid = distribution(cup[0].round_robin, place)
        mean = sum(points * share for points, share in zip(paid["points"], paid["share"], strict=True))
        others = [row["score"]["mean"] for row in report["against"] if row["policy"] == name != row["field"]]
        assert mean == pytest.approx(np.mean(others))


def test_policies_that_play_alike_are_tied_and_told_so() -> None:
    twins: list[Policy] = [FunctionPolicy(lowest, name=name) for name in ("low", "minimum")]
    report = arena.tournament(["highest", *twins], num_players=3, **OPTIONS).report()
    assert [(row["policy"], row["rank"]) for row in report["ranking"]] == [
        ("highest", [1, 1]),
        ("low", [2, 3]),
        ("minimum", [2, 3]),
    ]
    pair = report["pairs"][2]
    assert {pair["difference"][end] for end in ("mean", "low", "high")} == {0.0}
    assert pair["improvement"]["mean"] == 0.5
    assert report["cycles"] == []
    assert report["failures"] == []


def test_cycles_of_real_games_are_pointed_out() -> None:
    """Scripts over hands of one: whoever is to move has no choice, so that tables are made up to form a cycle."""
    names = ["a", "b", "c"]
    beats = {("a", "b"), ("b", "c"), ("c", "a")}
    shape = (50, 2, 2)
    noise = np.random.default_rng(0).integers(0, 3, shape)

    def result(one: str, other: str) -> arena.Result:
        edge = ((one, other) in beats) - ((other, one) in beats)
        penalties = np.zeros(shape)
        penalties[:, 0, 0] = penalties[:, 1, 1] = 7 - 3 * edge
        penalties[:, 0, 1] = penalties[:, 1, 0] = 7 + 3 * edge
        return arena.Result("round", penalties + noise, None, np.zeros(shape, np.int64))

    found = arena.RoundRobin.of(names, [[result(one, other) for other in names] for one in names])
    setting = arena.Setting(Rules.of("cucumber"), 2, "round", 0)
    report = arena.Tournament(setting, 50, found, [], {}).report()
    assert report["cycles"] == [["a", "b", "c"]]
    assert [row["rank"] for row in report["ranking"]] == [[1, 3]] * 3


def circle(edge: float) -> arena.Tournament:
    """Three policies, each better than the next by so many points, give or take a point on each of 100 deals."""
    names = ["a", "b", "c"]
    wobble = np.resize([1.0, -1.0], 100)

    def result(one: str, other: str) -> arena.Result:
        turns = (names.index(other) - names.index(one)) % 3  # 1: the one is better
        half = {0: np.zeros(100), 1: (wobble - edge) / 2, 2: -(wobble - edge) / 2}[turns]
        penalties = np.empty((100, 2, 2))
        penalties[:, 0, 0] = penalties[:, 1, 1] = 7 + half
        penalties[:, 0, 1] = penalties[:, 1, 0] = 7 - half
        return arena.Result("round", penalties, None, np.zeros((100, 2, 2), np.int64))

    found = arena.RoundRobin.of(names, [[result(one, other) for other in names] for one in names])
    return arena.Tournament(arena.Setting(Rules.of("cucumber"), 2, "round", 0), 100, found, [], {})


def test_a_cycle_is_sure_as_a_whole() -> None:
    """t = 2.2 decides a pair at 95 %, but not three pairs together; t = 3 does."""
    weak, strong = circle(0.22), circle(0.3)
    assert [pair.sign for pair in weak.round_robin.pairs] == [-1, 1, -1]
    assert weak.report()["cycles"] == []
    assert strong.report()["cycles"] == [["a", "b", "c"]]


def test_few_deals_that_differ_decide_nothing() -> None:
    for deals, sign in ((39, 0), (40, -1)):
        differ = np.zeros(1000)
        differ[:deals] = 5.0
        one = arena.Sample(np.full(1000, 3.0), np.full(1000, 3.0) + differ, np.zeros(1000))
        other = arena.Sample(np.full(1000, 3.0) + differ, np.full(1000, 3.0), np.zeros(1000))
        pair = Pair.of(("one", "other"), one, other, lower_is_better=True)
        assert pair.difference.sign == -1
        assert (pair.differing, pair.sign) == (deals, sign)
        scores = np.stack([one.one, other.one], axis=1)
        assert surely_better(scores, lower_is_better=True)[0, 1] == -sign


def test_a_policy_that_fails_has_no_rank(tmp_path: Path) -> None:
    broken = FunctionPolicy(lambda turns: np.full(len(turns), 99), name="broken")
    file = tmp_path / "games.jsonl"
    cup = arena.tournament(["highest", broken, "lowest"], num_players=3, file=file, **OPTIONS)
    report = cup.report()
    assert [row["policy"] for row in report["ranking"]] == ["highest", "lowest"]
    assert {tuple(row["table"]) for row in report["failures"]} == {
        ("highest", "broken", "broken"),
        ("broken", "highest", "highest"),
        ("broken", "broken", "broken"),
        ("broken", "lowest", "lowest"),
        ("lowest", "broken", "broken"),
        ("seer", "broken", "broken"),
        ("highest", "broken", "lowest"),
    }
    assert {row["policy"] for row in report["failures"]} == {"broken"}
    plain = arena.tournament(["highest", "lowest"], num_players=3, **{**OPTIONS, "mixed_deals": 0}).report()
    assert [row["score"] for row in report["ranking"]] == [row["score"] for row in plain["ranking"]]
    alike(arena.analyse(arena.read(file)), cup)


def test_a_failure_of_two_players_is_one_either_way(tmp_path: Path) -> None:
    def act(turns: Turns) -> np.ndarray:
        return np.where(turns.views["hand"] % 7 == 3, 99, turns.mask.argmax(axis=1))

    fragile = FunctionPolicy(act, name="fragile")
    file = tmp_path / "games.jsonl"
    options: dict[str, Any] = {"num_players": 2, "deals": 3000, "seer_deals": 0, "file": file}
    cup = arena.tournament(["highest", "lowest", fragile], **options)
    assert {failure.policy for failure in cup.round_robin.failures} == {"fragile"}
    assert cup.round_robin.against[0][2] is cup.round_robin.against[2][0] is None
    alike(arena.analyse(arena.read(file)), cup)


def test_mixed_tables_are_all_or_evenly_some() -> None:
    assert mixed_tables("abcd", 3) == [list("abc"), list("abd"), list("acd"), list("bcd")]
    assert mixed_tables("abcd", 2) == mixed_tables("ab", 3) == []
    some = mixed_tables(range(9), 4)
    assert len(some) == MOST_MIXED
    assert {policy for table in some for policy in table} == set(range(9))
    assert arena.size(4, 3, 60, 30, 25) == 16 * 60 + 4 * 30 + 4 * 25


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ([], "takes two or more policies; names: .*careful"),
        (["highest"], "takes two or more policies"),
        (["highest", "highest"], r"different names; given twice or reserved: \['highest'\]"),
        (["highest", FunctionPolicy(lowest, name="seer")], "twice or reserved: seer"),
        (["highest", "careless"], "unknown policy 'careless'.*did you mean 'careful'"),
        (["highest", "champion:cucumber-4p"], "policy 'champion:cucumber-4p' cannot sit at this table: agent"),
    ],
)
def test_bad_policies_are_named(policies: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        arena.tournament(policies, rules="three_card", num_players=2, deals=5)


def test_nothing_to_report() -> None:
    broken = [FunctionPolicy(lambda turns: np.full(len(turns), 99), name=name) for name in ("one", "other")]
    with pytest.raises(arena.TableError, match="policy 'one' chose the illegal action 99"):
        arena.tournament(broken, deals=5)


def test_results_without_a_tournament(tmp_path: Path) -> None:
    file = tmp_path / "games.jsonl"
    arena.play_tables([["highest"] * 3], file=file, deals=5)
    with pytest.raises(ValueError, match="results of 1 policies; a tournament takes those of two or more"):
        arena.analyse(arena.read(file))


def test_the_seer_is_measured_on_fewer_deals() -> None:
    cup = arena.tournament(["lowest", "highest"], num_players=2, deals=120, episode="match")
    assert [row.score.deals for row in cup.seer] == [100, 100]
    assert [row.score.deals for row in arena.tournament(["lowest", "highest"], num_players=2, deals=120).seer] == [
        120
    ] * 2
    with pytest.raises(ValueError, match="episode='game' is not one of its values"):
        arena.tournament(["lowest", "highest"], episode="game")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seer_deals": 1}, "seer_deals=1 is out of range; allowed: 0 .* or 2 and more"),
        ({"mixed_deals": 1}, "mixed_deals=1 is out of range"),
        ({"mixed_deals": -3}, "mixed_deals=-3 is out of range"),
        (
            {"mixed_deals": 9, "num_players": 2},
            "three seats or more, and as many policies as seats; here 2 seats and 3",
        ),
        ({"mixed_deals": 9, "num_players": 4}, "here 4 seats and 3 policies"),
    ],
)
def test_further_deals_that_make_nothing_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        arena.tournament(["highest", "lowest", "random"], deals=5, **change)


@pytest.mark.parametrize("players", [3, 7])
def test_ties_are_counted_as_whole_numbers_have_it(players: int) -> None:
    """Means over three or seven rotations are rounded numbers; equal scores have to come out equal."""
    pair = ("careful", "highest")
    tables = [[one, *[other] * (players - 1)] for one, other in (pair, pair[::-1])]
    sums = []
    for table in tables:
        result = arena.play(table, deals=400, seed=6)
        own = result.of(0, result.penalties).sum(axis=1).astype(int)
        sums.append((own, result.penalties.sum(axis=(1, 2)).astype(int) - own))
    (one, others), (other_one, other_others) = sums
    first = one * (players - 1) + other_others
    second = others + other_one * (players - 1)
    (row,) = arena.round_robin(pair, num_players=players, deals=400, seed=6).pairs
    assert row.differing == np.count_nonzero(first != second)
    won, tied = np.count_nonzero(first < second), np.count_nonzero(first == second)
    assert row.improvement.mean == (won + tied / 2) / 400


def test_a_pair_that_hardly_differs_is_not_decided() -> None:
    """Intervals on a few deals that differ miss too often: such pairs are said to be undecided."""
    options: dict[str, Any] = {"rules": "three_card", "num_players": 2, "deals": 600, "seed": 1, "seer_deals": 0}
    cup = arena.tournament(["careful", "control"], **options)
    (pair,) = cup.round_robin.pairs
    assert 0 < pair.differing < 40
    assert pair.sign == 0
    assert f"undecided: {pair.differing} deals differ" in str(arena.pair_table(cup.round_robin))
    assert [row["rank"] for row in cup.report()["ranking"]] == [[1, 2]] * 2


def test_unfinished_tournaments_say_what_is_missing(tmp_path: Path) -> None:
    file = tmp_path / "games.jsonl"
    options: dict[str, Any] = {"num_players": 3, "deals": 40, "seer_deals": 0, "file": file}
    arena.tournament(["highest", "lowest", "random"], **options)
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    last = next(n for n, line in enumerate(lines) if json.loads(line).get("seats") == ["random", "lowest", "lowest"])
    file.write_text("".join(lines[: last + 9]), encoding="utf-8")  # of its 40 deals 3
    cup = arena.analyse(arena.read(file))
    assert cup.deals == 40
    report = cup.report()
    assert [row["policy"] for row in report["ranking"]] == ["highest", "lowest"]
    assert report["unranked"] == ["random"]
    cells = str(arena.matrix_table(cup.round_robin)).splitlines()[2:]
    assert [line.count("not played") for line in cells] == [1, 1, 2]
    text = arena.markdown(report)
    assert "Without a rank, since not all of their tables were played: `random`." in text
    assert "`random among lowest`" in text
    assert arena.page(report)
