"""The kernel and the naive game in lock-step: the same actions, and after each the same state.

The naive game (reference.py) knows nothing of the kernel; the only thing that passes from one to the
other are the cards that the kernel deals. Compared is everything that the two have in common, that is
every field of `PUBLIC` and the hands.
"""

from __future__ import annotations

import dataclasses
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from reference import ReferenceGame, ReferenceRules, is_ace_led
from strategies import tables
from tables import Table, as_dict, members, packed

from cucumber_env.rules import CHOICES, MAX_CARDS, MAX_SEATS, PRESETS, Rules

MOST_ROUNDS = 200
"""Rounds after which a match is left: sudden death has no limit."""


class Pair:
    """One match, played by the kernel and by the naive game at once."""

    def __init__(self, rules: Rules, num_players: int, *, seed: int = 0, episode: str = "match") -> None:
        self.rules = rules
        self.kernel = Table(rules, num_players).begin(match=episode == "match", seed=seed)
        self.naive = ReferenceGame(
            ReferenceRules(**dataclasses.asdict(rules)),
            num_players,
            int(self.kernel.public["dealer"]),
            lambda _round, seats, _size: {seat: self.kernel.hand(seat) for seat in seats},
            episode,
        )
        self.actions: list[int] = []

    def compare(self) -> list[int]:
        """Assert that both are in the same state; the legal actions."""
        legal = self.kernel.legal()
        ours, theirs = kernel_state(self.kernel), naive_state(self.naive)
        ours["moves"], theirs["moves"] = int(self.kernel.public["moves"]), len(self.actions)
        ours["legal"], theirs["legal"] = legal, self.naive.legal()
        if ours != theirs:
            different = {key: (ours[key], theirs[key]) for key in ours if ours[key] != theirs[key]}
            raise AssertionError(
                f"kernel and naive game differ in (kernel, naive) {different}\nafter {self.actions} of "
                f"{self.naive.num_players} players under {self.rules.to_json()}"
            )
        return legal

    def play(self, action: int) -> None:
        """The same action in both."""
        self.actions.append(action)
        ended = self.kernel.play(action)  # first, because the naive game takes the cards of the next deal from it
        charged = self.naive.play(action)
        assert bool(ended) == (charged is not None)

    @property
    def running(self) -> bool:
        return self.naive.phase != "over" and self.naive.round < MOST_ROUNDS


def kernel_state(table: Table) -> dict[str, Any]:
    """What there is to compare, from the records of the kernel."""
    n = table.num_players
    public = as_dict(table.public)
    state: dict[str, Any] = {name: public[name] for name in SCALARS}
    state["phase"] = table.phase
    for name in SEAT_SETS:
        state[name] = set(members(public[name]))
    if state["phase"] == "over":
        state["tied"] = set()  # the kernel keeps who played the last sudden death
    for name in PER_SEAT:
        assert len(set(public[name][n:])) <= 1, f"{name} of seats that do not exist: {public[name]}"
        state[name] = public[name][:n]
    state["played"] = public["played"]
    state["leaders"] = public["leaders"]
    state["hands"] = [table.hand(seat) for seat in range(n)]
    return state


SCALARS = (
    "gone",
    "players",
    "match",
    "turn",
    "round_index",
    "dealer",
    "hand_size",
    "trick",
    "leader",
    "count",
    "reference",
    "taker",
    "ace_led",
)
SEAT_SETS = ("seats", "alive", "away", "skipping", "undecided", "revived", "tied")
PER_SEAT = ("totals", "penalties", "out_round", "placement", "low", "high")


def or_nobody(number: int | None) -> int:
    return -1 if number is None else number


def naive_state(game: ReferenceGame) -> dict[str, Any]:
    """The same from the naive game."""
    n = game.num_players
    settled = game.phase in ("revive", "over")
    played = [trick["plays"] for trick in game.tricks] + ([] if settled else [game.plays])
    on_table = played[-1]
    taker = game.tricks[-1]["taker"] if settled else game.taker
    offers = set(game._undecided) - game.used if game.phase == "revive" else set()
    return {
        "phase": game.phase,
        "turn": or_nobody(game.turn),
        "players": n,
        "match": int(game.episode == "match"),
        "round_index": game.round,
        "dealer": game.dealer,
        "hand_size": game.hand_size or 0,
        "trick": len(played) - 1,
        "leader": game.tricks[-1]["leader"] if settled else game.leader,
        "count": len(on_table),
        "reference": or_nobody(None if taker is None else dict(on_table)[taker]),
        "taker": or_nobody(taker),
        "ace_led": int(is_ace_led(game.rules, on_table)),
        "gone": packed(rank for plays in played for _, rank in plays),
        "played": played_table(played),
        "leaders": ([plays[0][0] for plays in played if plays] + [-1] * MAX_CARDS)[:MAX_CARDS],
        "hands": [game.hands[seat] for seat in range(n)],
        "seats": set(game.seats),
        "alive": game.alive,
        "away": game.away,
        "skipping": game.skipping,
        "undecided": offers,
        "revived": game.used,
        "tied": game.tied,
        "totals": game.totals if game.episode == "match" else [0] * n,
        "penalties": [game.last_penalties.get(seat, 0) for seat in range(n)],
        "out_round": [game.round if seat in game.losers else game._out_round.get(seat, -1) for seat in range(n)],
        "placement": game.placement or [0] * n,
        "low": [game.bounds[seat][0] for seat in range(n)],
        "high": [game.bounds[seat][1] for seat in range(n)],
    }


def played_table(played: list[list[tuple[int, int]]]) -> list[list[int]]:
    """Ranks by seat and trick, as `PUBLIC` holds them."""
    table = [[-1] * MAX_CARDS for _ in range(MAX_SEATS)]
    for trick, plays in enumerate(played):
        for seat, rank in plays:
            table[seat][trick] = rank
    return table


def play_out(rules: Rules, num_players: int, seed: int, episode: str = "match") -> Pair:
    """A whole episode of random legal play, compared after every action."""
    pair = Pair(rules, num_players, seed=seed, episode=episode)
    chance = Random(seed)
    legal = pair.compare()
    while pair.running:
        pair.play(chance.choice(legal))
        legal = pair.compare()
    return pair


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
