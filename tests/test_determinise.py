"""Determinised worlds: they agree with what is known, and are uniform over deals of distinct cards."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, islice
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import strength
from scipy.stats import chisquare
from strategies import tables
from tables import Table, as_dict, members, packed, ranks_of, unpacked

from cucumber_env import state
from cucumber_env.determinise import determinise, worlds
from cucumber_env.rules import Rules
from cucumber_env.state import GAME, VIEW, as_records, compile_rules


def keys(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.uint64)


def positions(rules: Rules, num_players: int, seed: int, *, match: bool = True) -> Iterator[Table]:
    """The table at every decision of a random match of at most 8 rounds."""
    chance = Random(seed)
    table = Table(rules, num_players).begin(match=match, seed=seed)
    while table.phase != "over" and table.public["round_index"] < 8:
        yield table
        table.play(chance.choice(table.legal()))


def check_world(table: Table, seat: int, world: Any) -> None:
    """A world has the public record, the own hand, as many cards for all others, and keeps deck and bounds."""
    public = as_dict(table.public)
    assert as_dict(world["public"]) == public
    hands = [unpacked(hand) for hand in world["hands"]]
    assert hands[seat] == table.hand(seat)
    assert [len(hand) for hand in hands[: table.num_players]] == [
        len(table.hand(other)) for other in range(table.num_players)
    ]
    assert not any(hands[table.num_players :])
    seen = Counter(unpacked(public["gone"])) + Counter(rank for hand in hands for rank in hand)
    assert set(seen) <= set(ranks_of(table.rules.ranks))
    assert max(seen.values(), default=0) <= table.rules.copies
    for other in range(table.num_players):
        if other != seat:
            low, high = public["low"][other], public["high"][other]
            assert all(low <= strength(table.rules, rank) <= high for rank in hands[other])


@settings(max_examples=25)
@given(tables(most_points=30), st.integers(0, 2**32), st.integers(0, 7))
def test_worlds_agree_with_what_is_known(table: tuple[Rules, int], seed: int, seat: int) -> None:
    rules, num_players = table
    seat %= num_players
    for position in positions(rules, num_players, seed):
        for world in worlds(rules, position.view(seat), count=2, keys=keys(seed))[0]:
            check_world(position, seat, world)


@settings(max_examples=40)
@given(tables(), st.integers(0, 2**32))
def test_a_world_plays_on_to_the_end(table: tuple[Rules, int], seed: int) -> None:
    """From any position a world is a game like any other: somebody can move until the round is over."""
    rules, num_players = table
    chance = Random(seed)
    for position in positions(rules, num_players, seed, match=False):
        world = Table(rules, num_players)
        world.games[:] = worlds(rules, position.view(position.turn), count=1, keys=keys(seed))[0]
        while world.phase != "over":
            seat, hand = world.turn, world.hand(world.turn)
            action = chance.choice(world.legal())
            assert world.phase == "choose" or action in hand
            world.play(action)
            assert len(world.hand(seat)) == len(hand) - 1 or not hand
        assert not any(world.record["hands"])


SMALL = [
    (Rules(ranks="3456789", copies=2, hand_size=3), 4, True),
    (Rules(ranks="23456789A", copies=1, hand_size=2), 4, True),
    (Rules(ranks="56789T", copies=2, hand_size=3), 4, True),
    (Rules(ranks="TJQKA", copies=3, hand_size=3, order="value", points="face_10"), 4, False),
    (Rules(ranks="456789A", copies=2, hand_size=4, follow="may"), 3, False),
]
"""Rules, players, and whether positions are wanted in which the bounds of two seats cross."""


def unseen_cards(position: Table, seat: int) -> list[int]:
    """Rank ids of the cards that a seat has not seen."""
    deck = Counter(ranks_of(position.rules.ranks * position.rules.copies))
    deck.subtract(unpacked(position.public["gone"]))
    deck.subtract(position.hand(seat))
    return sorted(deck.elements())


def every_deal(position: Table, seat: int) -> dict[tuple[int, ...], int]:
    """All hands of the other seats that the view allows, by brute force, each with its number of deals of cards.

    Hands are packed as in the kernel, by seat; that of `seat` is left empty.
    """
    rules, public = position.rules, as_dict(position.public)
    needs = [0 if other == seat else len(position.hand(other)) for other in range(position.num_players)]
    found: Counter[tuple[int, ...]] = Counter()

    def give(other: int, pile: list[int], hands: tuple[int, ...]) -> None:
        if other == position.num_players:
            found[hands] += 1
            return
        low, high = public["low"][other], public["high"][other]
        for chosen in combinations(range(len(pile)), needs[other]):
            hand = [pile[card] for card in chosen]
            if all(low <= strength(rules, rank) <= high for rank in hand):
                give(other + 1, [rank for card, rank in enumerate(pile) if card not in chosen], (*hands, packed(hand)))

    give(0, unseen_cards(position, seat), ())
    return dict(found)


def bounded_positions(rules: Rules, num_players: int, crossing: bool) -> Iterator[Table]:
    """Positions in which something is known of the other hands.

    Where bounds cross, drawing seat by seat is not uniform by itself.
    """
    for seed in range(2000):
        for position in positions(rules, num_players, seed, match=False):
            allowed = [cards for cards in allowed_cards(position) if cards]
            known = len(set(allowed)) > 1
            crosses = any(a & b and a - b and b - a for a, b in combinations(allowed, 2))
            if known and crosses == crossing and 10 < unbounded_deals(position) < 10_000:
                yield position


def allowed_cards(position: Table) -> list[frozenset[int]]:
    """By seat other than the one to move: the ranks that it may hold of the unseen cards, as far as it holds cards."""
    public = as_dict(position.public)
    unseen = unseen_cards(position, position.turn)
    return [
        frozenset(
            rank for rank in unseen if public["low"][seat] <= strength(position.rules, rank) <= public["high"][seat]
        )
        for seat in range(position.num_players)
        if seat != position.turn and position.hand(seat)
    ]


def unbounded_deals(position: Table) -> int:
    """In how many ways the other seats can be dealt cards that the seat to move has not seen, whatever the bounds."""
    unseen = len(unseen_cards(position, position.turn))
    ways = 1
    for seat in range(position.num_players):
        if seat != position.turn:
            ways *= math.comb(unseen, len(position.hand(seat)))
            unseen -= len(position.hand(seat))
    return ways


def mean_attempts(rules: Rules, view: np.ndarray) -> float:
    """How often hands have to be drawn for one world."""
    game = as_records(np.zeros(1, GAME))
    return sum(determinise(compile_rules(rules)[0], view[0], np.uint64(1), world, game[0]) for world in range(8)) / 8


@pytest.mark.parametrize(("rules", "num_players", "crossing"), SMALL)
def test_worlds_are_uniform_over_deals_of_cards(rules: Rules, num_players: int, crossing: bool) -> None:
    """χ² against the enumeration of all deals, in which a hand counts once for every choice of its cards."""
    found = 0
    for position in islice(bounded_positions(rules, num_players, crossing), 5):
        seat = position.turn
        deals = every_deal(position, seat)
        samples = 100 * len(deals) + 20_000
        hands = worlds(rules, position.view(seat), count=samples, keys=keys(found))[0]["hands"][:, :num_players].copy()
        hands[:, seat] = 0
        kinds, counts = np.unique(hands, axis=0, return_counts=True)
        drawn = Counter(dict(zip(map(tuple, kinds.tolist()), counts.tolist(), strict=True)))
        assert set(drawn) <= set(deals)
        total = sum(deals.values())
        expected = [samples * weight / total for weight in deals.values()]
        assert chisquare([drawn[deal] for deal in deals], expected).pvalue > 1e-4
        found += 1
    assert found == 5


@pytest.mark.parametrize(("ranks", "num_players"), [("23456789TJQKA", 7), ("3456789TJQKA", 8), ("2345678", 4)])
def test_few_attempts_are_enough(ranks: str, num_players: int) -> None:
    """Also where nearly all cards are dealt and many bounds cross: the worst that 40 rounds hold."""
    hand_size = len(ranks) * 4 // num_players
    rules = Rules(players=(2, 8), ranks=ranks, hand_size=hand_size)
    worst = max(
        mean_attempts(rules, position.view(position.turn))
        for seed in range(40)
        for position in positions(rules, num_players, seed, match=False)
    )
    assert worst < 300


def test_a_world_depends_on_its_key_and_view_alone() -> None:
    rules = Rules()
    views = as_records(np.concatenate([p.view(p.turn) for p in positions(rules, 4, 3, match=False)]))
    assert len(views) == 28
    together = worlds(rules, views, count=5, keys=np.arange(28, dtype=np.uint64))
    for row in (0, 9, 20):
        alone = worlds(rules, views[row : row + 1], count=2, keys=keys(row))
        assert alone[0].tobytes() == together[row, :2].tobytes()
    hands = {world.tobytes() for world in worlds(rules, views[:1], count=50, keys=keys(1))["hands"][0]}
    hands |= {world.tobytes() for world in worlds(rules, views[:1], count=50, keys=keys(2))["hands"][0]}
    assert len(hands) == 100


def test_a_world_knows_nothing_of_the_key_of_its_game() -> None:
    """Games of other seeds with the same view have the same worlds, and their next rounds are dealt anew."""
    rules = Rules.preset("three_card")
    table = Table(rules, 3).begin(seed=11)
    made = [worlds(rules, table.view(table.turn), count=20, keys=keys(11))[0]]
    for name in ("seed", "game", "episode"):
        table.record[name] += 5
        made.append(worlds(rules, table.view(table.turn), count=20, keys=keys(11))[0])
        table.record[name] -= 5
    assert len({games.tobytes() for games in made}) == 1
    assert len({tuple(game) for game in made[0][["seed", "game", "episode"]].tolist()}) == 20
    next_deals = {next_round(table, table.games)}
    next_deals |= {next_round(table, made[0][world : world + 1]) for world in range(20)}
    assert len(next_deals) == 21


def next_round(table: Table, games: np.ndarray) -> bytes:
    """The deal of the next round, with the cards of this one played lowest first."""
    copy = Table(table.rules, table.num_players)
    copy.games[:] = games
    while copy.public["round_index"] == 0:
        copy.play(copy.legal()[0])
    return copy.record["hands"].tobytes()


def test_what_nobody_can_hold_is_refused() -> None:
    table = Table(Rules(), 3).begin(match=False)
    table.public["low"][:3] = 12
    with pytest.raises(ValueError, match="view 0 contradicts itself"):
        worlds(table.rules, table.view(0), count=1, keys=keys(0))


def test_arguments_are_checked() -> None:
    view = Table(Rules(), 3).begin().view(0)
    wrong_counts: list[Any] = [0, -1, True, 2.0]
    for count in wrong_counts:
        with pytest.raises(ValueError, match=f"count={count} must be an integer ≥ 1"):
            worlds(Rules(), view, count=count, keys=keys(0))
    view["seat"] = -1
    with pytest.raises(ValueError, match="view 0 is that of no seat"):
        worlds(Rules(), view, count=1, keys=keys(0))
    for wrong in (keys(0, 1), np.zeros(1, np.int64)):
        with pytest.raises(ValueError, match=r"keys must be uint64 of shape \(1,\)"):
            worlds(Rules(), view, count=1, keys=wrong)


def test_the_view_of_a_seat_without_cards() -> None:
    """A seat that is out, or asks before the dealer has chosen, sees a world too."""
    rules = Rules(revival="skip", threshold=5, hand_size=2, players=(2, 4))
    away = [position for position in positions(rules, 4, 1) if position.seats("away") and position.phase == "play"]
    assert away
    for position in positions(rules, 4, 1):
        for seat in members(15 & ~int(position.public["seats"])):
            check_world(position, seat, worlds(rules, position.view(seat), count=1, keys=keys(3))[0, 0])
    table = Table(Rules.preset("concombre"), 4).begin()
    assert table.phase == "choose"
    world = worlds(table.rules, table.view(table.turn), count=1, keys=keys(3))
    assert not world["hands"].any()
    assert state.PHASES[world["public"]["phase"][0, 0]] == "choose"
    assert VIEW["public"] == GAME["public"]
    assert math.isclose(mean_attempts(table.rules, table.view(table.turn)), 1)
