"""The compiled rules piece by piece: bit tricks, public inference, counts of legal histories."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable, Iterable
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import ReferenceGame, ReferenceRules, legal_cards, strength
from strategies import all_rules, tables
from tables import Table, all_deals, bit_set, dealt, members, packed, ranks_of, unpacked

from cucumber_env import kernel, randomness, state
from cucumber_env.determinise import count_cards
from cucumber_env.rules import Rules
from cucumber_env.state import GAME, PUBLIC, VIEW, compile_rules

HANDS = st.lists(st.integers(0, 4), min_size=13, max_size=13)


def ranks_from(counts: Iterable[int]) -> list[int]:
    return [rank for rank, count in enumerate(counts) for _ in range(count)]


@given(HANDS)
def test_packed_hands(counts: list[int]) -> None:
    ranks = ranks_from(counts)
    hand = packed(ranks)
    assert members(kernel.held_ranks(hand)) == sorted(set(ranks))
    assert count_cards(hand) == len(ranks)
    assert [kernel.pick_card(hand, index) for index in range(len(ranks))] == ranks
    assert kernel.pick_card(hand, len(ranks)) == state.NOBODY


@settings(max_examples=300)
@given(HANDS, all_rules())
def test_lowest_of_a_hand_with_ties(counts: list[int], rules: Rules) -> None:
    ranks = set(ranks_from(counts))
    lowest = {rank for rank in ranks if strength(rules, rank) == min(strength(rules, other) for other in ranks)}
    assert set(members(kernel.lowest_ranks(compile_rules(rules)[0], bit_set(ranks)))) == lowest


def test_seats_go_round() -> None:
    for players in range(2, 9):
        for seats, seat in product(range(1, 2**players), range(players)):
            clockwise = [(seat + step) % players for step in range(1, players + 1)]
            assert kernel.next_seat(seats, seat, players) == next(s for s in clockwise if seats >> s & 1)
            assert kernel.count_bits(seats) == seats.bit_count()


def test_random_words_are_those_of_splitmix64() -> None:
    """The first words of the generator seeded with 0, as its authors' C code prints them."""
    golden, mask = 0x9E3779B97F4A7C15, 2**64 - 1
    words = [int(randomness.mix(np.uint64(step * golden & mask))) for step in range(3)]
    assert words == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_records_are_small_and_closed() -> None:
    """No gaps that could hold anything but zeros, so that equal games are equal bytes."""
    for dtype in (PUBLIC, VIEW, GAME):
        used = sum(dtype[name].itemsize for name in dtype.names or ())
        assert dtype.itemsize - used < 8
    assert GAME.itemsize < 512


def test_a_copied_record_goes_on_as_the_same_game() -> None:
    chance = Random(2)
    for rules, n in ((Rules(), 4), (Rules.preset("concombre"), 8), (Rules.preset("revival", threshold=5), 5)):
        table = Table(rules, n).begin(seed=9)
        for _ in range(40):
            table.play(chance.choice(table.legal()))
        other = Table(rules, n)
        other.games[:] = table.games
        while table.phase != "over":
            action = chance.choice(table.legal())
            table.play(action)
            assert other.games.tobytes() != table.games.tobytes()
            other.play(action)
            assert other.games.tobytes() == table.games.tobytes()


def possible_ranks(rules: Rules, plays: list[list[tuple[int, int]]], seat: int) -> set[int]:
    """Ranks that a seat can have held all round: with one in hand, each of its plays would have been legal."""

    def was_legal(rank: int) -> bool:
        for trick in plays:
            own = dict(trick).get(seat)
            if own is not None:
                before = trick[: trick.index((seat, own))]
                if own not in legal_cards(rules, [own, rank], before):
                    return False
        return True

    return {rank for rank in range(13) if was_legal(rank)}


@settings(max_examples=60)
@given(tables(), st.integers(0, 2**32))
def test_bounds_are_what_the_plays_prove(table: tuple[Rules, int], seed: int) -> None:
    """From the plays alone, card by card: no rank is excluded that can be held, none kept that cannot."""
    rules, num_players = table
    chance = Random(seed)
    game = Table(rules, num_players).begin(match=False, seed=seed)
    plays: list[list[tuple[int, int]]] = [[]]
    while game.phase != "over":
        for seat in range(num_players):
            low, high = game.public["low"][seat], game.public["high"][seat]
            allowed = {rank for rank in range(13) if low <= strength(rules, rank) <= high}
            assert allowed == possible_ranks(rules, plays, seat)
            assert set(game.hand(seat)) <= allowed
        seat, action = game.turn, chance.choice(game.legal())
        if game.phase == "play":
            plays[-1].append((seat, action))
        game.play(action)
        if len(plays[-1]) == num_players:
            plays.append([])


COUNTED_BY_HAND: list[tuple[dict[str, Any], list[str], int]] = [
    # The leader (seat 1) plays 2: the other follows with 2 or 3, and the last trick is forced: 2 ways. He plays 3:
    # only a 3 reaches it: 1 way.
    ({"ranks": "23"}, ["23", "23"], 3),
    # Under `may` the 2 may go under the 3 as well.
    ({"ranks": "23", "follow": "may"}, ["23", "23"], 4),
    ({"ranks": "23"}, ["22", "33"], 1),
    # K led: K or A follow. A led: only the lowest, K, follows.
    ({"ranks": "KA"}, ["KA", "KA"], 3),
    ({"ranks": "KA", "follow": "may"}, ["KA", "KA"], 3),
    # Without the Ace rule: A led, an Ace must follow; under `may` the K may as well.
    ({"ranks": "KA", "ace_lead": "none"}, ["KA", "KA"], 3),
    ({"ranks": "KA", "ace_lead": "none", "follow": "may"}, ["KA", "KA"], 4),
    # All cards are equal in strength: each seat plays its two in either order.
    ({"ranks": "TJ", "order": "value", "points": "face_10"}, ["TJ", "TJ"], 4),
    ({"ranks": "TJ"}, ["TJ", "TJ"], 3),
    # 9 led: only the T reaches it: 1 way. 2 led: the T takes it, or the equal 2 does: 2 ways. One card each is left.
    ({"ranks": "29T"}, ["2T", "29"], 3),
]
"""Fields on top of ``cucumber``, the hands of seats 0 and 1 with seat 1 to lead, and the number of histories."""


PERFT: list[tuple[dict[str, Any], int, int, int]] = [
    ({"ranks": "23", "copies": 2, "hand_size": 2}, 2, 3, 5),
    ({"ranks": "QKA", "copies": 2, "hand_size": 2}, 2, 21, 42),
    ({"ranks": "QKA", "copies": 2, "hand_size": 2, "ace_lead": "none"}, 2, 21, 42),
    ({"ranks": "QKA", "copies": 2, "hand_size": 2, "follow": "may"}, 2, 21, 47),
    ({"ranks": "QKA", "copies": 2, "hand_size": 2, "follow": "may", "ace_lead": "none"}, 2, 21, 51),
    ({"ranks": "9TJQKA", "copies": 1, "hand_size": 3}, 2, 20, 282),
    ({"ranks": "9TJQKA", "copies": 1, "hand_size": 3, "follow": "may"}, 2, 20, 456),
    ({"ranks": "9TJQKA", "copies": 1, "hand_size": 3, "order": "value", "points": "face_10"}, 2, 20, 480),
    ({"ranks": "TJ2", "copies": 2, "hand_size": 3, "order": "value", "points": "face_10"}, 2, 7, 54),
    ({"ranks": "9TJQKA", "copies": 1, "hand_size": 2}, 3, 90, 276),
    (
        {
            "ranks": "9TJQKA",
            "copies": 1,
            "hand_size": 2,
            "order": "value",
            "points": "face_10",
            "follow": "may",
            "ace_lead": "none",
        },
        3,
        90,
        648,
    ),
]
"""Fields on top of ``cucumber``, players, number of different deals, number of legal histories of all of them."""


def kernel_histories(rules: Rules, deal: Iterable[str]) -> int:
    """Number of ways to play a deal, walked with copies of the kernel's record."""

    def walk(table: Table) -> int:
        if table.phase == "over":
            return 1
        ways = 0
        for action in table.legal():
            after = Table(rules, table.num_players)
            after.games[:] = table.games
            after.play(action)
            ways += walk(after)
        return ways

    return walk(dealt(rules, list(deal), dealer=0, match=False))


def naive_histories(rules: Rules, deal: Iterable[str]) -> int:
    """The same with copies of the naive game."""
    hands = dict(enumerate(map(ranks_of, deal)))

    def walk(game: ReferenceGame) -> int:
        if game.phase == "over":
            return 1
        ways = 0
        for action in game.legal():
            after = copy.deepcopy(game)
            after.play(action)
            ways += walk(after)
        return ways

    fields = ReferenceRules(**dataclasses.asdict(rules))
    return walk(ReferenceGame(fields, len(hands), 0, lambda *_: hands, "round"))


WALKS: list[Callable[[Rules, Iterable[str]], int]] = [kernel_histories, naive_histories]


@pytest.mark.parametrize("walk", WALKS)
def test_histories_counted_by_hand(walk: Callable[[Rules, Iterable[str]], int]) -> None:
    for fields, hands, expected in COUNTED_BY_HAND:
        rules = Rules(copies=2, hand_size=2, **fields)
        assert walk(rules, hands) == expected, (fields, hands)


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize(("fields", "num_players", "deals", "histories"), PERFT)
def test_number_of_legal_histories(
    fields: dict[str, Any], num_players: int, deals: int, histories: int, walk: Callable[[Rules, Iterable[str]], int]
) -> None:
    rules = Rules(**fields)
    every = list(all_deals(rules, num_players))
    assert (len(every), sum(walk(rules, deal) for deal in every)) == (deals, histories)


@pytest.mark.parametrize(("num_players", "hand_size"), [(2, 2), (2, 1), (4, 1), (3, 1)])
def test_histories_where_all_cards_are_equal(num_players: int, hand_size: int) -> None:
    """Every order of every hand is legal: deals × (hand size)! for each player."""
    rules = Rules(ranks="TJQK", copies=1, hand_size=hand_size, order="value", points="face_10")
    deals = math.factorial(4) // math.factorial(4 - num_players * hand_size) // math.factorial(hand_size) ** num_players
    every = list(all_deals(rules, num_players))
    assert len(every) == deals
    expected = deals * math.factorial(hand_size) ** num_players
    assert sum(kernel_histories(rules, deal) for deal in every) == expected


def test_unpacking_is_the_inverse_of_packing() -> None:
    assert unpacked(packed([0, 0, 5, 12, 12, 12, 12])) == [0, 0, 5, 12, 12, 12, 12]
