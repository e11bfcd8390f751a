"""The kernel against the naive game in lock-step, over presets, single fields and random rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from lockstep import Pair, kernel_state, naive_state, play_out
from reference import ACE, CHIP, DECLINE, SKIP, is_ace_led
from strategies import tables

from cucumber_env.rules import CHOICES, PRESETS, Rules
from cucumber_env.state import PUBLIC


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


RARE = [
    Rules(tie="all", hand_size=1, threshold=20, ranks="89TJ"),
    Rules(end="fixed_rounds", threshold=None, rounds=1, tie="all", payer="lowest", hand_size=2, ranks="89T"),
    Rules(revival="choice", payer="non_winners", threshold=12, hand_size=2),
    Rules(revival="choice", tie="all", payer="lowest", penalty="own", threshold=8, hand_size=1, ranks="2345"),
    Rules(revival="skip", tie="all", threshold=4, hand_size=1, ranks="23"),
    Rules.preset("concombre", tie="all", threshold=12),
    *(Rules(tie=tie, payer=payer, ranks="QKA", hand_size=2) for tie in CHOICES["tie"] for payer in CHOICES["payer"]),
]
"""Rules under which much happens that is seldom seen."""


RARELY_SEEN = {
    "an Ace under a led Ace in the last trick",
    "sudden death",
    "another sudden death",
    "all paid in sudden death",
    "chip",
    "skip",
    "decline",
    "return after a skip",
    "a seat that sat out wins",
    "several out at once",
    "several losers",
    "a shared place",
}


def happenings(pair: Pair, action: int) -> Iterator[str]:
    """What is rare about an action that both games have just carried out, by name."""
    game = pair.naive
    before = pair.before
    if (
        pair.charged
        and is_ace_led(pair.rules, before["table"])
        and ACE in (action, *dict(before["table"][1:]).values())
    ):
        yield "an Ace under a led Ace in the last trick"
    if game.tied:
        yield "another sudden death" if before["tied"] else "sudden death"
        if before["tied"] == game.tied and game.round > before["round"]:
            yield "all paid in sudden death"
    yield from {CHIP: ["chip"], SKIP: ["skip"], DECLINE: ["decline"]}.get(action, [])
    if before["away"] and not game.away and game.phase != "over":
        yield "return after a skip"
    if len(before["alive"] - game.alive) > 1:
        yield "several out at once"
    if len(game.losers) > 1:
        yield "several losers"
    if game.phase == "over" and len(set(game.placement)) < len(game.placement):
        yield "a shared place"
    if game.phase == "over" and before["away"] and game.placement[min(before["away"])] == 1:
        yield "a seat that sat out wins"


def test_rare_situations_are_compared() -> None:
    """Each of them several times, in both games alike."""
    seen: Counter[str] = Counter()
    for rules, num_players, seed in product(RARE, (2, 3, 4, 5), range(12)):
        pair = Pair(rules, min(num_players, rules.max_players), seed=seed)
        chance = Random(seed)
        while pair.running:
            action = chance.choice(pair.compare())
            pair.play(action)
            seen.update(happenings(pair, action))
        pair.compare()
    assert {name for name, times in seen.items() if times >= 3} == RARELY_SEEN


def test_every_field_of_the_public_record_is_compared() -> None:
    pair = Pair(Rules(), 3)
    assert pair.compare()
    assert kernel_state(pair.kernel).keys() == naive_state(pair.naive).keys()
    assert set(PUBLIC.names or ()) | {"hands"} == kernel_state(pair.kernel).keys() | {"moves"}


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
