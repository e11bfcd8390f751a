"""Best responses to a policy: what they gain is no more than there is, and a stopped search goes on."""

from __future__ import annotations

import io
import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from responses import Responding
from rich.console import Console
from training import run, small

import train
from agents.audit import FRESH_DEALS, Audit, _Table, audit
from agents.config import SELECTION_DEALS
from cucumber_env import arena, exact
from cucumber_env.arena.statistics import Estimate
from cucumber_env.policies import make
from cucumber_env.rules import Rules

SETTINGS: dict[str, Any] = {
    "hidden": (32,),
    "minibatch": 512,
    "evaluate_every": 3,
    "evaluate_deals": 50,
    "save_every": 2,
    "precision": "fp32",
    "device": "cpu",
}


def tiny(policy: str, out: Path, **changes: Any) -> Audit:
    """An audit of a second."""
    options: dict[str, Any] = {
        "trainer": train.Trainer,
        "rules": "three_card",
        "num_players": 3,
        "updates": 6,
        "games": 128,
        "deals": 200,
        "settings": SETTINGS,
        "console": Console(file=io.StringIO()),
    }
    return audit(policy, out=out, **{**options, **changes})


def test_a_weak_policy_is_exploited(tmp_path: Path) -> None:
    found = tiny("lowest", tmp_path, rules="cucumber", num_players=4)
    assert found.at_least == found.gain.low > 3  # `highest` gains 4.5
    assert (found.kind, found.deals, found.seed) == ("trained", 200, FRESH_DEALS + 1)
    (folder,) = tmp_path.iterdir()
    last = json.loads((folder / "log.jsonl").read_text().splitlines()[-1])
    assert (last["update"], last["turns"]) == (6, found.turns)
    assert found.turns >= 6 * 128 * 4 * 7 // 2


def test_the_response_is_chosen_on_other_deals_than_it_is_measured_on(tmp_path: Path) -> None:
    """Measured here again, by hand; greedy or not, last or best: whichever was best on the deals for choosing."""
    found = tiny("random", tmp_path)
    run_folder = Path(found.response.removeprefix("checkpoint:").removesuffix(",greedy=1")).parent
    assert run_folder.parent == tmp_path

    def gains(name: str, deals: int, seed: int) -> np.ndarray:
        table = [make(name), *[make("random")] * 2]
        result = arena.play(table, rules="three_card", deals=deals, seed=seed)
        one = result.of(0, result.penalties)
        return ((result.penalties.sum(axis=2) - one) / 2 - one).mean(axis=1)

    names = [f"checkpoint:{run_folder / link}{greedy}" for link in ("best", "last") for greedy in ("", ",greedy=1")]
    chosen = {name: gains(name, 50, SELECTION_DEALS).mean() for name in names}
    assert chosen[found.response] == pytest.approx(max(chosen.values()), abs=1e-9)
    assert found.gain.mean == pytest.approx(gains(found.response, 200, found.seed).mean(), abs=1e-9)
    assert SELECTION_DEALS < FRESH_DEALS


@pytest.mark.parametrize(("episode", "name"), [("round", "random"), ("match", "careful")])
def test_staying_gains_nothing(episode: str, name: str) -> None:
    table = _Table(name, make(name), Rules(), 3, episode)
    for one in (table.policy, make(name)):
        found = table.gain(one, 20, 3, Console(quiet=True), "")
        assert (found.mean, found.half_width) == pytest.approx((0, 0), abs=1e-9)


def test_gains_of_matches_are_outcomes() -> None:
    table = _Table("highest", make("highest"), Rules(), 3, "match")
    (row,) = arena.compare_with("careful", ["highest"], num_players=3, episode="match", deals=20, seed=3)
    assert table.gain(make("careful"), 20, 3, Console(quiet=True), "") == row.difference


@pytest.mark.parametrize("policy", ["highest", "careful", "lowest"])
def test_exact_gains_are_those_of_best_responses(policy: str) -> None:
    """Said by `exact`, and played by them on sampled deals."""
    found = audit(policy, trainer=train.Trainer, rules="three_card", num_players=2)
    gains = exact.exploitability("three_card", policy).gains
    assert found.gain == Estimate(pytest.approx(sum(gains) / 2, abs=1e-12), 0.0, 0)  # type: ignore[arg-type]
    assert (found.kind, found.turns, found.deals, found.seed, found.response) == ("exact", 0, 0, 0, "")
    assert found.at_least == found.gain.mean > 0
    table = _Table(policy, make(policy), Rules.of("three_card"), 2, "round")
    played = table.gain(Responding("three_card", policy), 4000, 2, Console(quiet=True), "")
    assert abs(played.mean - found.gain.mean) < 1.5 * played.half_width < 0.3


def test_with_more_players_exact_gains_are_the_mean_over_seats() -> None:
    rules = "cucumber,hand_size=2"
    found = audit("random", trainer=train.Trainer, rules=rules, num_players=3, kind="exact")
    gains = exact.deviation(rules, "random", 3).gains
    assert found.gain.mean == pytest.approx(sum(gains) / 3, abs=1e-12)


def test_a_trained_response_gains_no_more_than_the_best(tmp_path: Path) -> None:
    best = audit("lowest", trainer=train.Trainer, rules="three_card", num_players=2)
    found = tiny("lowest", tmp_path, num_players=2, kind="trained")
    assert 0.5 * best.gain.mean < found.at_least < best.gain.mean


class Stopping(train.Trainer):
    """Is sent Ctrl-C in its third update."""

    def advance(self) -> dict[str, float]:
        if self.updates == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return super().advance()


def test_a_stopped_audit_goes_on_and_ends_alike(tmp_path: Path) -> None:
    whole = tiny("highest", tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        tiny("highest", tmp_path / "parts", trainer=Stopping)
    (folder,) = (tmp_path / "parts").iterdir()
    assert (folder / "checkpoint-000003").is_dir()
    resumed = tiny("highest", tmp_path / "parts")
    assert [one.name for one in (tmp_path / "parts").iterdir()] == [folder.name]
    assert resumed.response == whole.response.replace("whole", "parts")
    assert {**resumed.to_dict(), "response": ""} == {**whole.to_dict(), "response": ""}
    log = [json.loads(line)["update"] for line in (folder / "log.jsonl").read_text().splitlines()]
    assert log == [1, 2, 3, 4, 5, 6]
    assert tiny("highest", tmp_path / "parts") == resumed  # finished, it is only measured


def test_an_agent_is_answered_from_its_own_weights(tmp_path: Path) -> None:
    """And one that has changed since in another run; one of another table from new weights."""
    agent = tmp_path / "agent"
    run(small(out=agent, rules="three_card", players=3, updates=2, hidden=(24,), critic="own"))
    settings = {name: value for name, value in SETTINGS.items() if name != "hidden"}
    name = f"checkpoint:{agent}/last,greedy=1"
    tiny(name, tmp_path / "out", settings=settings, updates=1)
    (first,) = (tmp_path / "out").iterdir()
    config = json.loads((first / "config.json").read_text())["config"]
    assert (config["start"], config["against"]) == (f"{agent}/last", name)
    assert (config["hidden"], config["critic"]) == ([24], "own")
    (agent / "last").unlink()
    (agent / "last").symlink_to("checkpoint-000001")
    tiny(name, tmp_path / "out", settings=settings, updates=1)
    assert len(list((tmp_path / "out").iterdir())) == 2
    table = _Table(name, make(f"checkpoint:{agent}/best"), Rules.of("three_card"), 3, "match")
    assert table.start() == {}


@pytest.mark.parametrize(
    ("policy", "changes", "message"),
    [
        ("lowst", {}, "unknown policy 'lowst' (did you mean 'lowest'?); names: "),
        ("checkpoint:no/such/run", {}, "no agent in no/such/run"),
        ("champion", {}, "policy 'champion' cannot sit at this table: "),
        ("lowest", {"num_players": 9}, "num_players=9 is out of range"),
        ("lowest", {"rules": "cucumbr"}, "unknown preset 'cucumbr'"),
        ("lowest", {"kind": "best"}, "kind='best' is not one of its values; allowed: auto, trained, exact"),
        ("lowest", {"kind": "exact", "episode": "match"}, "kind='exact' looks at rounds; with episode='match'"),
        ("lowest", {"deals": 1}, "deals=1 is out of range; allowed: 2 and more"),
        ("lowest", {"seed": -1}, "seed=-1 is out of range"),
        ("lowest", {"updates": 0}, "updates=0 is out of range"),
        ("lowest", {"settings": {"games": 7, "out": "x"}}, "settings hold games, out, which follow from"),
        (7, {}, "policy must be a name, got int"),
        ("lowest", {"deals": range(9)}, "deals=range(0, 9) must be an integer"),
        ("lowest", {"settings": {"gamess": 7}}, "gamess"),
    ],
)
def test_what_makes_no_audit_is_refused_by_name(policy: Any, changes: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises((ValueError, TypeError, OSError)) as caught:
        tiny(policy, tmp_path / "out", **changes)
    assert message in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_row_is_finite_json_and_staying_bounds_it() -> None:
    found = Audit("highest", "cucumber", 4, "round", "trained", 9, 50, 7, Estimate(-0.25, 0.5, 50), "checkpoint:x")
    row = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert row["gain"] == {"mean": -0.25, "low": -0.75, "high": 0.25, "deals": 50}
    assert row["at_least"] == 0
    assert {"policy", "kind", "turns", "deals", "seed", "gain", "at_least"} <= row.keys()
