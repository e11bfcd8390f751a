"""A policy with other probabilities at every information state, for this package and for brute force alike."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from brute_force import BruteForce, State, Strategy

from cucumber_env.exact.reports import Measured
from cucumber_env.policies import Policy, Turns
from cucumber_env.rules import Rules
from cucumber_env.state import NUM_RANKS


def state_of(view: Any) -> State:
    """What a view stands for in brute force."""
    public = view["public"]
    players = int(public["players"])
    places = (divmod(play, players) for play in range(players * public["trick"] + public["count"]))
    plays = tuple(int(public["played"][(public["leaders"][trick] + place) % players, trick]) for trick, place in places)
    hand = tuple(rank for rank in range(NUM_RANKS) for _ in range(int(view["hand"]) >> 4 * rank & 15))
    return int(view["seat"]), hand, plays


def arbitrary(state: State, legal: list[int]) -> dict[int, float]:
    """Some distribution over the legal ranks, another at every information state; many probabilities are zero."""
    weights = [max(0, zlib.crc32(repr((state, rank)).encode()) % 10 - 4) for rank in legal]
    total = sum(weights)
    return {rank: weight / total if total else 1 / len(legal) for rank, weight in zip(legal, weights, strict=True)}


class Arbitrary(Policy):
    """Plays `arbitrary`, notes what it was asked."""

    name = "arbitrary"

    def __init__(self) -> None:
        self.asked: list[State] = []

    def probabilities(self, turns: Turns) -> np.ndarray:
        out = np.zeros(turns.mask.shape)
        for row, view in enumerate(turns.views):
            state = state_of(view)
            self.asked.append(state)
            for rank, share in arbitrary(state, np.flatnonzero(turns.mask[row]).tolist()).items():
                out[row, rank] = share
        return out


SCRIPTED: dict[str, Strategy] = {
    "random": lambda state, legal: dict.fromkeys(legal, 1 / len(legal)),
    "lowest": lambda state, legal: {min(legal): 1.0},
    "highest": lambda state, legal: {max(legal): 1.0},
}
"""Baselines that need no plan, for brute force."""


def agrees_with_brute_force(measure: Callable[[Policy], Measured], rules: Rules, players: int) -> None:
    """Values, best responses, baselines, size of the game and what is asked, all against brute force."""
    witness = BruteForce(rules, players)
    policy = Arbitrary()
    report = measure(policy)
    for seat in range(players):
        assert report.values[seat] == pytest.approx(witness.value([arbitrary] * players, seat), abs=1e-9)
        assert report.best_response[seat] == pytest.approx(witness.best_response(seat, arbitrary), abs=1e-9)
    for seat, (name, strategy) in enumerate(SCRIPTED.items()):
        played = [strategy if seat % players == other else arbitrary for other in range(players)]
        value = witness.value(played, seat % players)
        assert report.baselines[name][seat % players] == pytest.approx(value, abs=1e-9)
    choices = {state for state, legal in witness.states.items() if len(legal) > 1}
    assert (report.information_states, report.decisions) == (len(witness.states), len(choices))
    assert len(policy.asked) == len(set(policy.asked))
    assert set(policy.asked) == choices & witness.reached(arbitrary)
