"""The kernel against the naive game in lock-step, over presets, single fields and random rules."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from lockstep import play_out
from strategies import tables

from cucumber_env.rules import CHOICES, PRESETS, Rules


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_presets_at_every_table_size(name: str) -> None:
    rules = Rules.preset(name)
    for num_players in range(rules.players[0], rules.max_players + 1):
        play_out(rules, num_players, seed=num_players)
    play_out(rules, 3, seed=1, episode="round")


SINGLE_FIELDS = [
    *({name: word} for name, words in CHOICES.items() for word in words if name not in ("end", "revival")),
    {"end": "first_out_loses"},
    {"end": "fixed_rounds", "threshold": None, "rounds": 3},
    *({"revival": word} for word in CHOICES["revival"]),
    *({"hand_size": size} for size in (1, 2, 4, 6, (1, 7), (3, 4))),
    *({"threshold": points} for points in (1, 15, 100)),
    *({"ranks": ranks, "hand_size": 3} for ranks in ("9TJQKA", "TJQKA", "234567", "2QA")),
    *({"copies": copies, "hand_size": 3} for copies in (1, 2, 3)),
    {"players": (2, 8), "hand_size": 6},
    {"order": "value", "points": "face_10"},
]


@pytest.mark.parametrize("fields", SINGLE_FIELDS, ids=lambda fields: ",".join(f"{k}={v}" for k, v in fields.items()))
@pytest.mark.parametrize("base", ["cucumber", "concombre"])
def test_every_field_on_its_own(base: str, fields: dict[str, Any]) -> None:
    if base == "concombre" and "revival" in fields:
        fields = {"end": "last_survivor", **fields}
    rules = Rules.preset(base, **fields)
    for seed in range(3):
        play_out(rules, min(rules.max_players, 2 + 2 * seed), seed)


def some_episode(table: tuple[Rules, int], seed: int, episode: str) -> int:
    """Play one; the number of decisions compared."""
    pair = play_out(*table, seed, episode)
    event(f"end={pair.rules.end}")
    return len(pair.actions)


EPISODES = st.sampled_from(["match", "match", "match", "round"])


@settings(max_examples=150)
@given(tables(), st.integers(0, 2**64), EPISODES)
def test_random_rules(table: tuple[Rules, int], seed: int, episode: str) -> None:
    some_episode(table, seed, episode)


@settings(max_examples=60)
@given(tables(most_points=20), st.integers(0, 2**64), st.sampled_from(CHOICES["revival"][1:]))
def test_random_revivals(table: tuple[Rules, int], seed: int, revival: str) -> None:
    rules, num_players = table
    fields = {"end": "last_survivor", "revival": revival, "threshold": rules.threshold or 12, "rounds": None}
    play_out(rules.replace(**fields), num_players, seed)


@pytest.mark.long
def test_a_million_decisions() -> None:
    """Random rules until a million decisions have been compared; Hypothesis shrinks what fails."""
    decisions = 0
    batch = 0

    while decisions < 1_000_000:

        @settings(max_examples=1000, derandomize=False, suppress_health_check=list(HealthCheck), database=None)
        @given(tables(), st.integers(0, 2**64), EPISODES)
        def play(table: tuple[Rules, int], seed: int, episode: str) -> None:
            nonlocal decisions
            decisions += some_episode(table, seed, episode)

        play()
        batch += 1
    print(f"{decisions} decisions in {batch} batches of 1000 episodes")
