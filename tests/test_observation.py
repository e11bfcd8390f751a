"""What a seat observes: against a second encoder, against what is hidden from it, and as a layout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pytest
from encoder import NaiveEncoder, highest_total, names
from hypothesis import given, settings
from hypothesis import strategies as st
from lockstep import Pair
from strategies import all_rules, tables
from tables import Table, all_deals, dealt, packed, ranks_of, unpacked

from cucumber_env import batch
from cucumber_env.batch import Buffers, new_games
from cucumber_env.observation import EPISODES, WORDS, Layout
from cucumber_env.rules import MAX_SEATS, PRESETS, Rules
from cucumber_env.state import GAME, PUBLIC, VIEW, as_records, compile_rules


def observe(layout: Layout, view: np.ndarray) -> np.ndarray:
    """The observation of one view, int8 ``[size]``."""
    row = np.full((1, layout.size), 7, np.int8)
    batch.observe_views(compile_rules(layout.rules), layout.compiled, view, row.view(np.int64))
    return row[0]


@dataclass(frozen=True)
class Asked:
    """A layout and what it was asked for."""

    layout: Layout
    universal: bool
    history: bool


def all_layouts(rules: Rules, num_players: int, episode: str) -> list[Asked]:
    return [
        Asked(Layout.of(rules, num_players, episode, MAX_SEATS if universal else None, history), universal, history)
        for universal in (False, True)
        for history in (False, True)
    ]


def naive_row(asked: Asked, pair: Pair, seat: int, tied: set[int]) -> dict[str, list[int]]:
    """The sections of a layout by the second encoder."""
    layout = asked.layout
    total_bits = 7 if asked.universal else highest_total(layout.rules).bit_length()
    sections = NaiveEncoder(pair.naive, layout.rules, seat, tied, layout.seats, total_bits).sections()
    wanted = names(layout.rules, layout.episode, universal=asked.universal, history=asked.history)
    return {name: sections[name] for name in wanted}


def check_observation(asked: Asked, pair: Pair, seat: int, tied: set[int]) -> None:
    """Every section in its place, the padding zero."""
    layout = asked.layout
    row = observe(layout, pair.kernel.view(seat))
    expected = naive_row(asked, pair, seat, tied)
    assert list(expected) == [section.name for section in layout.sections]
    for section in layout.sections:
        got = row[section.offset : section.offset + section.size].tolist()
        assert got == expected[section.name], f"{section.name} of seat {seat} after {pair.actions}"
    flat = [bit for bits in expected.values() for bit in bits]
    assert row.tolist() == flat + [0] * (layout.size - len(flat))


def check_episode(pair: Pair, layouts: list[Asked], seed: int, most: int = 150) -> None:
    """Play at random, comparing some layout for the seat to move and one other at every decision."""
    chance = Random(seed)
    tied: set[int] = set()
    for _ in range(most):
        tied = set(pair.naive.tied) if pair.naive.phase != "over" else tied
        turn = pair.naive.turn
        for seat in {chance.randrange(pair.naive.num_players), turn} - {None}:
            check_observation(chance.choice(layouts), pair, seat, tied)
        if not pair.running:
            break
        pair.play(chance.choice(pair.naive.legal()))


@pytest.mark.parametrize("episode", EPISODES)
@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_number_against_a_second_encoder(name: str, episode: str) -> None:
    rules = Rules.preset(name)
    for num_players in (2, 4, rules.max_players):
        pair = Pair(rules, num_players, seed=num_players, episode=episode)
        check_episode(pair, all_layouts(rules, num_players, episode), seed=num_players)


@settings(max_examples=40)
@given(tables(most_points=150, most_rounds=10), st.sampled_from(EPISODES), st.integers(0, 2**32))
def test_random_rules_against_a_second_encoder(table: tuple[Rules, int], episode: str, seed: int) -> None:
    rules, num_players = table
    pair = Pair(rules, num_players, seed=seed, episode=episode)
    check_episode(pair, all_layouts(rules, num_players, episode), seed, most=60)


@settings(max_examples=25)
@given(tables(most_points=12), st.integers(0, 2**32), st.sampled_from(["chip", "skip", "choice"]))
def test_revivals_against_a_second_encoder(table: tuple[Rules, int], seed: int, revival: str) -> None:
    rules, num_players = table
    rules = rules.replace(end="last_survivor", revival=revival, threshold=rules.threshold or 12, rounds=None)
    check_episode(Pair(rules, num_players, seed=seed), all_layouts(rules, num_players, "match"), seed, most=60)


@settings(max_examples=100)
@given(all_rules(), st.data())
def test_layouts_are_contiguous(rules: Rules, data: st.DataObject) -> None:
    num_players = data.draw(st.integers(rules.players[0], rules.max_players))
    for episode in EPISODES:
        for layout in (asked.layout for asked in all_layouts(rules, num_players, episode)):
            offset = 0
            for section in layout.sections:
                assert section.offset == offset
                assert section.size == np.prod(section.shape)
                assert section.meaning
                offset += section.size
            assert layout.size - 8 < offset <= layout.size
            assert layout.size % 8 == 0
            assert layout.size <= 64 * WORDS
            assert len({section.name for section in layout.sections}) == len(layout.sections)


def test_totals_never_overflow_the_own_layout() -> None:
    """The widest totals that rules allow come back out of the observation."""
    for rules in (Rules(threshold=9999), Rules.preset("express", rounds=9999), Rules(threshold=1)):
        table = Table(rules, 3).begin()
        worst = highest_total(rules)
        table.public["totals"][:3] = [worst, 0, worst - 1]
        layout = Layout.of(rules, 3)
        bits = layout.views(observe(layout, table.view(1)))["totals"].astype(int)
        assert (bits << np.arange(bits.shape[1])).sum(1).tolist() == [0, worst - 1, worst]


@pytest.mark.parametrize("episode", EPISODES)
@pytest.mark.parametrize("name", sorted(PRESETS))
def test_at_most_400_numbers_at_four_players(name: str, episode: str) -> None:
    assert Layout.of(Rules.preset(name), 4, episode).size <= 400


def test_the_universal_layout_is_the_same_for_every_table() -> None:
    sections = {
        Layout.of(Rules.preset(name), n, episode, MAX_SEATS).sections[:-1]
        for name in PRESETS
        for n in (2, 5)
        for episode in EPISODES
    }
    assert len(sections) == 1


def test_views_are_views() -> None:
    layout = Layout.of(Rules(), 3)
    rows = np.zeros((2, 5, layout.size), np.int8)
    views = layout.views(rows)
    assert views["trick"].shape == (2, 5, 3, 13)
    views["reference"][1, 4, 12] = 1
    assert rows.sum() == rows[1, 4, layout.section("reference").offset + 12] == 1
    with pytest.raises(ValueError, match=f"does not end in the layout's {layout.size}"):
        layout.views(rows[..., 1:])


def test_bad_layouts_are_refused() -> None:
    with pytest.raises(ValueError, match=r"num_players=8 is out of range; allowed: 2 to 7"):
        Layout.of(Rules(), 8)
    with pytest.raises(ValueError, match=r"episode='game' is not one of its values; allowed: match, round"):
        Layout.of(Rules(), 3, "game")
    with pytest.raises(ValueError, match=r"seats=5 is not one of its values; allowed: 3 .* or 8"):
        Layout.of(Rules(), 3, "match", 5)
    with pytest.raises(KeyError, match="no section 'hands' in this layout; sections: hand, unseen"):
        Layout.of(Rules(), 3).section("hands")


def test_explain() -> None:
    """A position of three players, told in words."""
    table = dealt(Rules(hand_size=3, revival="choice"), ["59K", "38Q", "467"], dealer=0)
    table.public["totals"][:3] = [12, 0, 25]
    for rank in ranks_of("Q4K9"):
        table.play(rank)
    layout = Layout.of(table.rules, 3)
    assert (table.turn, layout.explain(observe(layout, table.view(1))).splitlines()) == (
        1,
        [
            "hand          38",
            "unseen        " + "2222333444555566667777888999" + "TTTTJJJJQQQKKKAAAA",
            "trick         me:- +1:- +2:9",
            "reference     9",
            "taker         +2",
            "legal         3",
            "trick_number  2",
            "cards_left    2",
            "leader        +2",
            "to_act        me +1",
            "bounds        +1:4..J +2:2..A",
            "seats         me +1 +2",
            "dealer        +2",
            "alive         me +1 +2",
            "totals        me:0 +1:25 +2:12",
            "distance      me:>20 +1:≤6 +2:≤20",
            "tied          -",
            "rounds_left   0",
            "away          -",
            "revived       -",
            "phase         a card to play",
        ],
    )


def test_explain_of_the_widest_layout() -> None:
    table = dealt(Rules(hand_size=3, ranks="3456789QK", tie="all"), ["59K", "38Q", "467"], dealer=0)
    table.play(ranks_of("3")[0])
    layout = Layout.of(table.rules, 3, "match", MAX_SEATS, True)
    text = layout.explain(observe(layout, table.view(1)))
    for line in (
        "players       3",
        "episode       match",
        "deck          333344445555666677778888" + "9999QQQQKKKK",
        "rules         tie=all",
        "deal          38Q",
        "leaders       me",
        "plays         me:3 +1:- +2:- +3:- +4:- +5:- +6:- +7:-",
    ):
        assert line in text.splitlines()


def random_games(rules: Rules, num_players: int, seed: int, *, most: int = 80) -> Iterator[Table]:
    """A table at the decisions of a random match."""
    chance = Random(seed)
    table = Table(rules, num_players).begin(seed=seed)
    for _ in range(most):
        if table.phase == "over":
            return
        yield table
        table.play(chance.choice(table.legal()))


def what_the_seat_gets(table: Table, layout: Layout) -> tuple[bytes, ...]:
    """View, mask, observation and information state of the seat to move, as the batch loops write them."""
    rules = compile_rules(table.rules)
    rows = np.zeros(1, np.int64)
    buffers = Buffers.new(1, layout.size, table.rules.num_actions, table.num_players)
    view = as_records(np.zeros(1, VIEW))
    batch.views(table.games, rows, view)
    words = buffers.observation.view(np.int64)
    batch.observe(rules, layout.compiled, table.games, rows, buffers.turn, buffers.mask, words)
    return view.tobytes(), buffers.mask.tobytes(), buffers.observation.tobytes()


def reshuffled(table: Table, chance: Random) -> Table:
    """The same to the eyes of the seat to move: other hands, stock and key are changed."""
    other = Table(table.rules, table.num_players)
    other.games[:] = table.games
    for name in ("seed", "game", "episode"):
        other.record[name] += chance.randrange(1, 1000)
    left = ranks_of(table.rules.ranks * table.rules.copies)
    for rank in unpacked(table.public["gone"]) + table.hand(table.turn):
        left.remove(rank)
    chance.shuffle(left)
    for seat in range(table.num_players):
        if seat != table.turn:
            other.record["hands"][seat] = packed(left.pop() for _ in table.hand(seat))
    return other


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_nothing_hidden_reaches_the_seat_to_move(name: str) -> None:
    rules = Rules.preset(name)
    chance = Random(5)
    different = 0
    for num_players in (2, rules.max_players):
        layouts = [asked.layout for asked in all_layouts(rules, num_players, "match")]
        for table in random_games(rules, num_players, seed=num_players):
            other = reshuffled(table, chance)
            different += other.games["hands"].tobytes() != table.games["hands"].tobytes()
            for layout in layouts:
                assert what_the_seat_gets(table, layout) == what_the_seat_gets(other, layout)
    assert different > 20


def test_records_hold_what_they_may() -> None:
    """A view is the public record, a seat and one hand; what is hidden is in the game record alone."""
    assert VIEW.names == ("public", "seat", "hand")
    assert GAME.names == ("public", "hands", "seed", "game", "episode")
    assert not set(PUBLIC.names or ()) & {"hand", "hands", "seed", "game", "episode", "stock"}


TINY = [
    (Rules(ranks="QKA", copies=2, hand_size=2), 2),
    (Rules(ranks="TJ2", copies=2, hand_size=2, order="value", points="face_10", follow="may", ace_lead="none"), 2),
    (Rules(ranks="JA", copies=3, hand_size=2, first_leader="dealer"), 3),
    (Rules(ranks="QKA", copies=1, hand_size=(1, 1), players=(2, 3)), 3),
]


@pytest.mark.parametrize(("rules", "num_players"), TINY)
def test_information_states_have_perfect_recall(rules: Rules, num_players: int) -> None:
    """Over all deals and plays: one information state for each own deal and public history of the round."""
    layout = Layout.of(rules, num_players, "round", None, True)
    states: dict[bytes, set[Any]] = {}
    known: dict[Any, set[bytes]] = {}
    for deal in all_deals(rules, num_players):
        for table, plays in all_histories(rules, deal):
            seat = table.turn
            relative = tuple(((other - seat) % num_players, rank) for other, rank in plays)
            dealer = (int(table.public["dealer"]) - seat) % num_players
            private = (deal[seat], dealer, relative)
            state = observe(layout, table.view(seat)).tobytes()
            states.setdefault(state, set()).add(private)
            known.setdefault(private, set()).add(state)
    assert len(states) >= 15
    assert {len(group) for group in states.values()} == {len(group) for group in known.values()} == {1}


def all_histories(rules: Rules, deal: tuple[str, ...]) -> Iterator[tuple[Table, list[tuple[int, int]]]]:
    """The table and the plays so far at every decision of every way to play a deal."""

    def walk(table: Table, plays: list[tuple[int, int]]) -> Iterator[tuple[Table, list[tuple[int, int]]]]:
        if table.phase == "over":
            return
        yield table, plays
        for action in table.legal():
            after = Table(rules, len(deal))
            after.games[:] = table.games
            after.play(action)
            yield from walk(after, [*plays, (table.turn, action)])

    for dealer in range(len(deal)):
        yield from walk(dealt(rules, list(deal), dealer=dealer, match=False), [])


def test_new_games_are_blank() -> None:
    assert not new_games(3).tobytes().strip(b"\0")
