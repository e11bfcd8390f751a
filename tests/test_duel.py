"""Duels: they stop when the answer is clear, for the right one, and do not depend on how deals are cut into parts."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import evaluate
from cucumber_env import arena
from cucumber_env.arena.compare import one_against
from cucumber_env.policies import FunctionPolicy
from cucumber_env.rules import Rules

SMALL: dict[str, Any] = {"rules": "three_card", "num_players": 2}


def differences(first: str, second: str, deals: int, **options: Any) -> np.ndarray:
    one, other = (one_against(*pair, deals=deals, **options) for pair in ((first, second), (second, first)))
    return (one.one + other.others - one.others - other.one) / 2


def test_a_duel_stops_for_the_better() -> None:
    test = arena.duel("careful", "random", seed=3, **SMALL)
    assert test.decided
    assert test.sign == -1
    found = differences("careful", "random", test.deals, seed=3, **SMALL)
    assert test.estimate.mean == pytest.approx(found.mean())
    assert test.estimate.low <= found.mean() <= test.estimate.high < 0
    turned = arena.duel("random", "careful", seed=3, **SMALL)
    assert (turned.sign, turned.deals) == (1, test.deals)


def test_outcomes_of_matches() -> None:
    test = arena.duel("careful", "random", num_players=3, episode="match", seed=1, most=3000)
    assert test.bound == 2
    assert test.sign == 1


def test_policies_that_play_alike_end_by_the_margin_or_the_deals() -> None:
    twins = [FunctionPolicy(lambda turns: turns.mask.argmax(axis=1), name=name) for name in "ab"]
    close = arena.duel(*twins, margin=0.5, **SMALL)
    assert (close.decided, close.sign) == (True, 0)
    assert close.deals < 5000
    far = arena.duel(*twins, most=1500, **SMALL)
    assert (far.decided, far.sign, far.deals) == (False, 0, 1500)


def test_the_bound_is_the_dearest_card() -> None:
    from cucumber_env.arena.duel import bound

    assert bound(Rules.of("cucumber"), "round") == 14
    assert bound(Rules.of("cucumber,ranks=789,hand_size=3"), "round") == 9


def test_a_policy_that_fails_ends_a_duel() -> None:
    broken = FunctionPolicy(lambda turns: np.full(len(turns), 99), name="broken")
    with pytest.raises(arena.TableError, match="policy 'broken' chose the illegal action 99"):
        arena.duel("highest", broken)
    with pytest.raises(ValueError, match="most=0 must be an integer"):
        arena.duel("highest", "lowest", most=0)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["duel", "careful", "random", "--rules", "three_card", "--players", "2", "--seed", "3"]
    assert evaluate.main(command) == 0
    out, err = capsys.readouterr()
    assert out.startswith("careful is better: mean penalty of careful less that of random at the same tables -")
    assert err == ""
    assert evaluate.main([*command, "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    test = arena.duel("careful", "random", seed=3, **SMALL)
    assert found["better"] == "careful"
    assert found["test"] == test.to_dict()
    assert evaluate.main([*command, "--confidence", "2"]) == 2
    assert "confidence=2.0 is out of range" in capsys.readouterr().err


def test_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["plan", "careful", "random", "--rules", "three_card", "--players", "2", "--pilot", "400", "--json", "-"]
    assert evaluate.main(command) == 0
    found = json.loads(capsys.readouterr().out)
    spread = differences("careful", "random", 400, seed=0, **SMALL).std(ddof=1)
    assert found["deviation"] == pytest.approx(spread)
    by_size = {row["difference"]: row["deals"] for row in found["needed"]}
    assert by_size[0.1] == pytest.approx((1.96 + 1.2816) ** 2 * spread**2 / 0.01, rel=0.01)
    assert evaluate.main([*command[:-2], "--difference", "0.5"]) == 0
    assert "  0.5: " in capsys.readouterr().out
    assert evaluate.main(["plan", "lowest", "lowest"]) == 2
    assert "scored alike on all 1000 deals" in capsys.readouterr().err
