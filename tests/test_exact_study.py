"""Decisions of a solution against brute force, the pieces of the study, and the page that shows their results."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import BruteForce, History, State
from PIL import Image

from benchmarks import exact_figures, exact_page, exact_parts, exact_study
from cucumber_env.baselines import BASELINES
from cucumber_env.exact import Tabular, best_response, deviation, exploitability, solve
from cucumber_env.exact.decisions import Decisions, decisions, hand_values
from cucumber_env.exact.tree import build, check_rules
from cucumber_env.policies import make
from cucumber_env.rules import RANKS, Rules

ROOT = Path(__file__).parent.parent

TINY = [
    Rules(hand_size=2, ranks="9TJQKA", copies=1),
    Rules(hand_size=3, ranks="2KA", copies=3, tie="all", follow="may"),
    Rules(hand_size=3, ranks="8TJA", copies=2, order="value", points="face_10", payer="lowest"),
]

THREE = Rules(hand_size=2, ranks="8TA", copies=3)
"""Played by three."""


class Witness:
    """What brute force finds at every information state if all seats play a table."""

    def __init__(self, policy: Tabular) -> None:
        self.game = BruteForce(policy.tree.rules, policy.tree.players)
        seats = range(policy.tree.players)
        self.policy = table_of(policy)
        self.chance: dict[State, float] = defaultdict(float)
        self.weight: dict[tuple[State, int], float] = defaultdict(float)
        self.total: dict[tuple[State, int], float] = defaultdict(float)
        self.dealt: dict[tuple[int, tuple[int, ...]], list[float]] = defaultdict(lambda: [0.0, 0.0])
        for history, share in self.game.starts():
            values = self.walk(history, share, np.ones(len(seats)))
            for seat, hand in enumerate(history.hands):
                self.dealt[seat, hand][0] += share
                self.dealt[seat, hand][1] += share * values[seat]

    def walk(self, history: History, deal: float, reach: np.ndarray) -> np.ndarray:
        """The values of all seats from here; sums up what every card is worth to the seat to move."""
        if history.turn is None:
            return np.array([self.game.utility(history, seat) for seat in range(self.game.players)])
        seat, state = history.turn, history.state()
        legal = self.game.legal(history)
        shares = self.policy.get(state) or {legal[0]: 1.0}
        self.chance[state] += deal * float(np.prod(reach))
        values = np.zeros(self.game.players)
        for rank in legal:
            below = reach.copy()
            below[seat] *= shares.get(rank, 0.0)
            worth = self.walk(self.game.play(history, rank), deal, below)
            weight = deal * float(np.prod(np.delete(reach, seat)))
            self.weight[state, rank] += weight
            self.total[state, rank] += weight * worth[seat]
            values += shares.get(rank, 0.0) * worth
        return values


def states(batch: Decisions) -> list[State]:
    """The information states of decisions."""
    publics = batch.tree.publics(batch.level)[batch.nodes]
    players = batch.tree.players
    found = []
    for public, hand in zip(publics, batch.hands, strict=True):
        seats = [(int(public["leaders"][play // players]) + play) % players for play in range(batch.level.depth)]
        plays = tuple(int(public["played"][seat, play // players]) for play, seat in enumerate(seats))
        found.append((int(public["turn"]), unpacked(int(batch.level.hands.packed[hand])), plays))
    return found


def unpacked(packed: int) -> tuple[int, ...]:
    return tuple(rank for rank in range(len(RANKS)) for _ in range(packed >> 4 * rank & 15))


def table_of(policy: Tabular) -> dict[State, dict[int, float]]:
    """The probabilities of every decision by rank."""
    return {
        state: {int(rank): float(share) for rank, share in zip(ranks, sigma, strict=True) if rank >= 0}
        for batch in decisions(policy)
        for state, ranks, sigma in zip(states(batch), batch.ranks, batch.sigma, strict=True)
    }


@pytest.mark.parametrize("rules", TINY, ids=str)
def test_brute_force_finds_the_same_chances_and_worths(rules: Rules) -> None:
    policy, _ = solve(rules, iterations=7, every=7, nash_conv=0)  # far from equilibrium: much is played
    agrees_with_brute_force(policy)


def test_brute_force_finds_the_same_for_three_players() -> None:
    response, _ = best_response(THREE, "random", 1, num_players=3)
    agrees_with_brute_force(response)


def agrees_with_brute_force(policy: Tabular) -> None:
    """All facts about all decisions and hands."""
    witness = Witness(policy)
    seen = set()
    for batch in decisions(policy):
        for i, state in enumerate(states(batch)):
            seen.add(state)
            assert batch.chance[i] == pytest.approx(witness.chance[state], abs=1e-12)
            for slot, rank in enumerate(batch.ranks[i].tolist()):
                weight = witness.weight.get((state, rank), 0.0)
                assert batch.legal[i, slot] == ((state, rank) in witness.weight)
                if batch.legal[i, slot] and weight > 0:
                    assert batch.worth[i, slot] == pytest.approx(witness.total[state, rank] / weight, abs=1e-9)
                else:
                    assert math.isnan(batch.worth[i, slot])
    assert len(seen) == policy.tree.decisions
    hands = policy.tree.levels[0].hands.packed.tolist()
    for seat, values in zip(range(policy.tree.players), hand_values(policy), strict=True):
        for packed, value in zip(hands, values, strict=True):
            share, total = witness.dealt[seat, unpacked(packed)]
            assert value == pytest.approx(total / share, abs=1e-9)


def test_turns_are_what_policies_are_asked() -> None:
    policy, _ = solve(TINY[1], iterations=5)
    for batch in decisions(policy):
        np.testing.assert_allclose(batch.by_slot(policy.probabilities(batch.turns())), batch.sigma, atol=1e-6)
        some = batch.select(np.arange(len(batch)) % 2 == 0)
        np.testing.assert_array_equal(some.turns().views, batch.turns().views[::2])


def test_pieces_of_a_tree_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, _ = solve(TINY[1], iterations=5)
    whole = list(decisions(policy))
    monkeypatch.setattr("cucumber_env.exact.tree.PIECE", 10)
    monkeypatch.setattr("cucumber_env.exact.tree.Tree.split", 2)
    tree = build.__wrapped__(check_rules(TINY[1]))
    assert len(tree.pieces) > 1
    pieces = list(decisions(Tabular(tree, policy.tables)))
    assert len(pieces) > len(whole)
    for name in ("chance", "worth"):
        for depth in range(tree.last):
            one, other = (
                np.concatenate([getattr(batch, name) for batch in batches if batch.level.depth == depth])
                for batches in (whole, pieces)
            )
            np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"order": "value"}, True),  # of the ranks with face_14 no two have equal points
        ({"penalty": "own"}, True),  # the taker's card is the highest
        ({"threshold": 21}, True),
        ({"payer": "lowest"}, False),
        ({"tie": "first"}, False),
        ({"points": "face_10"}, False),
        ({"follow": "may"}, False),
        ({"ace_lead": "none"}, False),
    ],
)
def test_rules_that_are_the_same_game(changes: dict[str, Any], same: bool) -> None:
    games = [exact_parts.fingerprint(Rules(hand_size=2, **more)) for more in ({}, changes)]
    assert (games[0] == games[1]) is same


def test_policies_by_seat() -> None:
    rules = Rules(hand_size=3, ranks="2KA", copies=3)
    response, utility = best_response(rules, "highest", 1)
    seats = exact_parts.Seats(make("highest"), response)
    assert exploitability(rules, seats).values[1] == pytest.approx(utility, abs=1e-9)


@pytest.fixture
def solution(tmp_path: Path) -> Path:
    """A file with a solution of the second tiny game."""
    solve(TINY[1], nash_conv=1e-4)[0].save(tmp_path / "solution.npz")
    return tmp_path / "solution.npz"


def test_what_is_measured_against_a_solution(solution: Path) -> None:
    of_random = exact_parts.measure("random", solution)
    own = exact_parts.measure("solution", solution)
    assert own["loss"] == 0
    assert -1e-9 <= own["nash_conv"] <= 1.01e-4
    assert of_random["loss"] > 0.1
    assert of_random["nash_conv"] / 2 >= of_random["loss"] - own["nash_conv"]  # what the best responses win, and more
    pure = exact_parts.greedy(Tabular.load(solution))
    assert all(set(np.unique(table)) <= {0, 1} for table in pure.tables)


def test_what_is_said_of_every_preset(solution: Path) -> None:
    policy = Tabular.load(solution)
    found = exact_parts.survey(solution)
    assert list(found["nash_conv"]) == list(BASELINES)
    assert found["nash_conv"]["lowest"] == exploitability(TINY[1], "lowest").nash_conv
    shares = np.concatenate([batch.sigma.max(axis=1) for batch in decisions(policy)])
    chance = np.concatenate([batch.chance for batch in decisions(policy)])
    often, mixed = chance > 1e-9, shares < 0.95
    assert found["decisions"] == {
        "all": policy.tree.decisions,
        "mixed": mixed.sum(),
        "reached": often.sum(),
        "reached and mixed": (often & mixed).sum(),
    }
    assert found["per_round"] == pytest.approx({"all": chance.sum(), "mixed": chance[mixed].sum()})


def test_what_is_said_of_larger_tables() -> None:
    found = exact_parts.deviations(str(THREE), 3)
    report = deviation(THREE, "careful", 3)
    assert found["gains"]["careful"] == list(report.gains)
    assert (found["information_states"], found["decisions"]) == (report.information_states, report.decisions)


def test_where_a_policy_plays_otherwise(solution: Path) -> None:
    policy = Tabular.load(solution)
    same = exact_parts.compare(policy, policy)
    assert sum(one["loss"] for roles in same["by_trick"].values() for one in roles.values()) < 1e-3
    other = exact_parts.compare(policy, make("lowest"))
    losses = [position["loss"] for position in other["positions"]]
    assert min(losses) > 0
    for position in other["positions"]:
        best = max(card["worth"] for card in position["cards"].values())
        theirs = next(card["worth"] for card in position["cards"].values() if card["other"] == 1)
        assert position["loss"] == pytest.approx(best - theirs)
        assert sum(card["solution"] for card in position["cards"].values()) == pytest.approx(1)


def test_what_a_solution_plays(solution: Path) -> None:
    found = exact_parts.play(solution)
    policy = Tabular.load(solution)
    assert found["decisions"]["all"] == policy.tree.decisions
    shares = [sum(share) for roles in found["styles"].values() for share in roles.values()]
    assert sum(shares) == pytest.approx(found["per_round"]["all"])
    twos = found["leading"]["by_lowest_and_highest"][0]
    hands = policy.tree.levels[0].hands
    packed = [3, 2 | 1 << 44, 1 | 2 << 44, 2 | 1 << 48, 1 | 2 << 48, 1 | 1 << 44 | 1 << 48]
    gain = dict(zip(hands.packed.tolist(), np.subtract(*hand_values(policy)), strict=True))
    assert twos[0] == pytest.approx(gain[packed[0]])
    assert twos[11] == pytest.approx((9 * gain[packed[1]] + 9 * gain[packed[2]]) / 18)
    assert twos[12] == pytest.approx((9 * gain[packed[3]] + 9 * gain[packed[4]] + 27 * gain[packed[5]]) / 45)


def test_observations_that_forget_are_counted(solution: Path) -> None:
    found = exact_parts.forget(solution)
    policy = Tabular.load(solution)
    rows = np.concatenate([batch.turns().observation for batch in decisions(policy)])
    assert found["decisions"] == len(rows)
    assert found["observations"] == len(np.unique(rows, axis=0)) <= len(rows)
    if found["observations"] == len(rows):
        assert found["nash_conv"] == pytest.approx(exploitability(TINY[1], policy).nash_conv, abs=1e-6)


def test_the_study_goes_on_where_it_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = ["--out", str(tmp_path / "out"), "--solutions", str(tmp_path / "solutions")]
    asked = [*folders, "--cards", "1", "--only", "reduced"]
    assert exact_study.main(asked) == 0
    out, err = capsys.readouterr()
    assert "no page yet; still to compute: classes: presets" in out
    assert "reduced: 1" in err
    file = tmp_path / "out" / "results.json"
    results = json.loads(file.read_text())
    assert set(results) == {"reduced"}
    assert results["reduced"]["1"]["low"] == pytest.approx(ONE_CARD, abs=1e-9)
    results["reduced"]["1"]["low"] = "kept"
    file.write_text(json.dumps(results))
    assert exact_study.main(asked) == 0
    assert capsys.readouterr().err == ""
    assert json.loads(file.read_text())["reduced"]["1"]["low"] == "kept"


ONE_CARD = 4 * 3 * (7 + 8 + 9 + 10 + 11 + 12 + 13 - 14) / (32 * 31)
"""Unequal cards cancel out: of two equal ones, the follower pays, of two Aces the leader."""


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    return json.loads((ROOT / "docs" / "exact" / "results.json").read_text(encoding="utf-8"))


def test_the_page_is_current(published: dict[str, Any]) -> None:
    arguments = exact_study.Arguments(out=ROOT / "docs" / "exact")
    assert exact_study.missing(arguments, published) == []
    page = (ROOT / "docs" / "exact.md").read_text(encoding="utf-8")
    assert page == exact_page.page(published), "run python -m benchmarks.exact_study --out docs/exact"


@pytest.mark.parametrize("name", exact_figures.PICTURES)
def test_the_pictures_are_current(published: dict[str, Any], name: str) -> None:
    with Image.open(ROOT / "docs" / "exact" / f"{name}.png") as picture:
        drawn_from = picture.text[exact_figures.DIGEST]
    assert drawn_from == exact_figures.digest(published, name), "run python -m benchmarks.exact_study --out docs/exact"


def test_a_picture_is_stale_when_what_it_shows_changes(published: dict[str, Any]) -> None:
    points = [dict(point) for point in published["curves"]["dcfr 3"]]
    points[-1]["nash_conv"] *= 1.01
    changed = published | {"curves": published["curves"] | {"dcfr 3": points}}
    stale = [
        name
        for name in exact_figures.PICTURES
        if exact_figures.digest(changed, name) != exact_figures.digest(published, name)
    ]
    assert stale == ["curves"]


@pytest.mark.parametrize(
    ("value", "decimals", "shown"),
    [
        (1.69204, 4, "1.6920"),
        (-1e-16, 4, "0.0000"),
        (4e-5, 4, "< 0.0001"),
        (-4e-7, 4, "> −0.0001"),
        (-0.0123, 3, "−0.012"),
        (8.75e-5, 5, "0.00009"),
    ],
)
def test_points_show_their_sign(value: float, decimals: int, shown: str) -> None:
    assert exact_page.points(value, decimals) == shown


def test_published_values_are_the_known_ones(published: dict[str, Any]) -> None:
    for name, value in (("cucumber 2", 2.97943), ("gurka_no_ace 2", 2.73812)):
        found = published["values"][name]
        assert found["low"] - 1e-5 <= value <= found["high"] + 1e-5
    for cards, nash_conv in ((2, 0.0), (3, 0.1060), (4, 1.692)):
        assert published["policies"][f"highest {cards}"]["nash_conv"] == pytest.approx(nash_conv, abs=6e-4)
        if cards > 2:
            assert published["presets"][f"cucumber {cards}"]["nash_conv"]["highest"] == pytest.approx(
                nash_conv, abs=6e-4
            )


def test_published_rounds_of_four_are_solved(published: dict[str, Any]) -> None:
    four = [found for name, found in published["values"].items() if name.endswith(" 4")]
    assert len(four) == len(published["classes"]["presets"])
    assert max(found["nash_conv"] for found in four) <= 0.01


def test_what_was_published_is_found_again(published: dict[str, Any], tmp_path: Path) -> None:
    found = exact_parts.solve("cucumber,hand_size=3", 1e-4, tmp_path / "three.npz")
    there = published["values"]["cucumber 3"]
    assert found["low"] <= there["high"]
    assert found["high"] >= there["low"]
    assert {name: found[name] for name in SIZES} == {name: there[name] for name in SIZES}
    for name in ("highest", "careful"):
        measured = exact_parts.measure(name, tmp_path / "three.npz")
        assert measured["nash_conv"] == pytest.approx(published["policies"][f"{name} 3"]["nash_conv"], abs=1e-9)
        assert measured["loss"] == pytest.approx(published["policies"][f"{name} 3"]["loss"], abs=1e-3)


SIZES = ("nodes", "information_states", "decisions")
