"""The rule book: what it refuses and how it says so, its presets, its JSON and its text."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from strategies import all_rules

from cucumber_env.rules import CHOICES, FIELDS, PRESETS, RANKS, RULES_VERSION, Rules

UNCHECKED: Any = Rules
"""`Rules` as somebody calls it who runs no type checker."""

FIXED: dict[str, Any] = {"end": "fixed_rounds", "threshold": None, "rounds": 3}

WORDS = [
    (field, value, kind, f"{field}={value!r} ", f"allowed: {', '.join(words)}")
    for field, words in CHOICES.items()
    for value, kind in (("maybe", ValueError), (words[0].upper(), ValueError), ("", ValueError), (1, TypeError))
]

REFUSED: list[tuple[dict[str, Any], type[Exception], str, str]] = [
    *(({field: value}, kind, start, end) for field, value, kind, start, end in WORDS),
    *(({field: None}, TypeError, f"{field}=None must be text", "allowed: ") for field in CHOICES),
    ({"players": 4}, TypeError, "players=4 must be a pair", "allowed: 2 to 8"),
    ({"players": (2, 3, 4)}, TypeError, "players=(2, 3, 4) must be a pair", "allowed: 2 to 8"),
    ({"players": (1, 4)}, ValueError, "players=1 is out of range", "allowed: 2 to 8"),
    ({"players": (2, 9)}, ValueError, "players=9 is out of range", "allowed: 2 to 8"),
    ({"players": (5, 4)}, ValueError, "players=(5, 4) is empty", "allowed: low ≤ high within 2 to 8"),
    ({"players": (2.0, 4)}, TypeError, "players=2.0 must be an integer, got float", "allowed: 2 to 8"),
    ({"players": "24"}, TypeError, "players='24' must be a pair", "allowed: 2 to 8"),
    ({"hand_size": 0}, ValueError, "hand_size=0 is out of range", "allowed: 1 to 7"),
    ({"hand_size": 8}, ValueError, "hand_size=8 is out of range", "allowed: 1 to 7"),
    ({"hand_size": -1}, ValueError, "hand_size=-1 is out of range", "allowed: 1 to 7"),
    ({"hand_size": (0, 5)}, ValueError, "hand_size=0 is out of range", "allowed: 1 to 7"),
    ({"hand_size": (3, 2)}, ValueError, "hand_size=(3, 2) is empty", "allowed: low ≤ high within 1 to 7"),
    ({"hand_size": (1, 2, 3)}, TypeError, "hand_size=(1, 2, 3) must be a pair", "allowed: 1 to 7"),
    ({"hand_size": True}, TypeError, "hand_size=True must be an integer, got bool", "allowed: 1 to 7"),
    ({"hand_size": 7.0}, TypeError, "hand_size=7.0 must be an integer, got float", "allowed: 1 to 7"),
    ({"hand_size": None}, TypeError, "hand_size=None must be an integer, got NoneType", "allowed: 1 to 7"),
    ({"hand_size": "7"}, TypeError, "hand_size='7' must be an integer, got str", "allowed: 1 to 7"),
    ({"copies": 0}, ValueError, "copies=0 is out of range", "allowed: 1 to 4"),
    ({"copies": 5}, ValueError, "copies=5 is out of range", "allowed: 1 to 4"),
    ({"copies": False}, TypeError, "copies=False must be an integer, got bool", "allowed: 1 to 4"),
    ({"ranks": ""}, ValueError, "ranks='' must be different letters of 23456789TJQKA", "at least one"),
    ({"ranks": "AA"}, ValueError, "ranks='AA' must be different letters of 23456789TJQKA", "at least one"),
    ({"ranks": "10"}, ValueError, "ranks='10' must be different letters of 23456789TJQKA", "at least one"),
    ({"ranks": ["A", "K"]}, TypeError, "ranks=['A', 'K'] must be text, got list", "allowed: letters of 23456789TJQKA"),
    ({"threshold": 0}, ValueError, "threshold=0 is out of range", "allowed: 1 to 9999"),
    ({"threshold": 10_000}, ValueError, "threshold=10000 is out of range", "allowed: 1 to 9999"),
    ({"threshold": 30.5}, TypeError, "threshold=30.5 must be an integer, got float", "allowed: 1 to 9999"),
    ({"threshold": True}, TypeError, "threshold=True must be an integer, got bool", "allowed: 1 to 9999"),
    ({"threshold": None}, ValueError, "threshold=None under end='last_survivor'", "allowed: 1 to 9999"),
    ({**FIXED, "threshold": 30}, ValueError, "threshold=30 has no meaning under end='fixed_rounds'", "allowed: None"),
    ({**FIXED, "rounds": None}, ValueError, "rounds=None under end='fixed_rounds'", "allowed: 1 to 9999"),
    ({**FIXED, "rounds": 0}, ValueError, "rounds=0 is out of range", "allowed: 1 to 9999"),
    ({**FIXED, "rounds": 10_000}, ValueError, "rounds=10000 is out of range", "allowed: 1 to 9999"),
    ({**FIXED, "rounds": 1.0}, TypeError, "rounds=1.0 must be an integer, got float", "allowed: 1 to 9999"),
    ({"rounds": 3}, ValueError, "rounds=3 belongs to end='fixed_rounds', not to 'last_survivor'", "allowed: None"),
    ({**FIXED, "revival": "chip"}, ValueError, "revival='chip' belongs to end='last_survivor'", "allowed: 'none'"),
    (
        {"end": "first_out_loses", "revival": "skip"},
        ValueError,
        "revival='skip' belongs to end='last_survivor', not to 'first_out_loses'",
        "allowed: 'none'",
    ),
    (
        {"copies": 1},
        ValueError,
        "hand_size=7: 2 players × 7 cards exceed the deck of 13 (ranks='23456789TJQKA', copies=1)",
        "allowed: at most 6 cards each",
    ),
    (
        {"players": (8, 8)},
        ValueError,
        "hand_size=7: 8 players × 7 cards exceed the deck of 52",
        "allowed: at most 6 cards each",
    ),
    (
        {"ranks": "A", "hand_size": (1, 3)},
        ValueError,
        "hand_size=(1, 3): 2 players × 3 cards exceed the deck of 4",
        "allowed: at most 2 cards each",
    ),
    ({"ranks": "7", "hand_size": 1, "tie": "all"}, ValueError, "tie='all' with ranks='7'", "allowed: 'last', 'first'"),
    (
        {"ranks": "KTQ", "hand_size": 1, "tie": "all", "order": "value", "points": "face_10"},
        ValueError,
        "tie='all' with ranks='TQK': all cards are equal in strength",
        "allowed: 'last', 'first'",
    ),
]


@pytest.mark.parametrize(("fields", "error", "start", "end"), REFUSED)
def test_what_makes_no_game_is_refused(fields: dict[str, Any], error: type[Exception], start: str, end: str) -> None:
    """The message names field, value and range."""
    with pytest.raises(error, match=re.escape(start)) as refusal:
        Rules(**fields)
    assert type(refusal.value) is error
    assert end in str(refusal.value)


def test_every_field_has_a_bad_value() -> None:
    assert {field for fields, *_ in REFUSED for field in fields} == set(FIELDS)
    assert [field.name for field in dataclasses.fields(Rules)] == list(FIELDS)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("cucmber", "(did you mean 'cucumber'"),
        ("Cucumber", "(did you mean 'cucumber'"),
        ("concomber", "(did you mean 'concombre'"),
        ("gurka_no_aces", "(did you mean 'gurka_no_ace'"),
        ("xyz", "unknown preset 'xyz'; presets: agurk, bga,"),
    ],
)
def test_misspelt_presets_are_answered_with_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(hint)) as refusal:
        Rules.preset(name)
    assert str(refusal.value).startswith(f"unknown preset '{name}'")
    assert str(refusal.value).endswith(", ".join(sorted(PRESETS)))


@pytest.mark.parametrize(
    ("field", "hint"),
    [("hand_sise", "'hand_size'"), ("treshold", "'threshold'"), ("penalties", "'penalty'"), ("rank", "'ranks'")],
)
def test_misspelt_fields_are_answered_with_the_nearest(field: str, hint: str) -> None:
    for make in (lambda fields: Rules().replace(**fields), Rules.from_dict, Rules.of):
        with pytest.raises(ValueError, match=f"unknown field '{field}' \\(did you mean {hint}"):
            make({field: 3})


@pytest.mark.parametrize("value", [3, None, ["cucumber"]])
def test_rules_of_another_type_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=f"got {type(value).__name__}"):
        Rules.of(value)
    with pytest.raises(TypeError, match=f"preset must be a name, got {type(value).__name__}; presets: agurk"):
        Rules.preset(value)


def test_rules_in_every_form_that_users_write() -> None:
    wanted = Rules(hand_size=3, threshold=21)
    assert Rules.of(wanted) is wanted
    assert Rules.of({"hand_size": 3, "threshold": 21}) == wanted
    assert Rules.of({"preset": "agurk", "hand_size": 3}) == wanted
    assert Rules.of(" agurk , hand_size = 3") == wanted
    assert Rules.of("concombre,hand_size=2-4,players=2-5") == Rules.preset(
        "concombre", hand_size=(2, 4), players=(2, 5)
    )
    assert Rules.of("cucumber,end=fixed_rounds,threshold=none,rounds=5") == Rules.preset("express", rounds=5)
    assert Rules.of("cucumber,ranks=23456789") == Rules(ranks="23456789")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cucumber,hand_size", "'hand_size' must be FIELD=VALUE, such as hand_size=3"),
        ("cucumber,hand_size=three", "hand_size='three' must be an integer such as 3, a range such as 1-5, or none"),
        ("cucumber,hand_size=3,hand_size=4", "field 'hand_size' is given twice: 3 and '4'"),
        ("cucumber,handsize=3", "unknown field 'handsize' (did you mean 'hand_size'?)"),
        ("cucumber,hand_size=1-9", "hand_size=9 is out of range; allowed: 1 to 7"),
        ("", "unknown preset ''"),
    ],
)
def test_texts_that_are_not_rules_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Rules.of(text)


def test_presets_are_those_of_the_naive_game() -> None:
    assert set(PRESETS) == set(reference.PRESETS)
    for name, naive in reference.PRESETS.items():
        assert dataclasses.asdict(Rules.preset(name)) == dataclasses.asdict(naive)


@settings(max_examples=200)
@given(all_rules())
def test_json_round_trip(rules: Rules) -> None:
    again = Rules.from_json(rules.to_json())
    assert again == rules
    assert hash(again) == hash(rules)
    assert Rules.from_dict(json.loads(json.dumps(rules.to_dict()))) == rules
    assert rules.to_json().count("\n") == 0
    assert rules.replace() == rules


@settings(max_examples=200)
@given(all_rules())
def test_derived_numbers(rules: Rules) -> None:
    low, high = rules.hand_sizes
    assert rules.hand_size in (high, (low, high))
    assert rules.dealer_chooses == (low < high)
    assert rules.largest_hand == high
    assert rules.deck_size == len(rules.ranks) * rules.copies
    assert rules.players[0] <= rules.max_players <= rules.players[1]
    assert rules.max_players * high <= rules.deck_size
    assert rules.max_players == rules.players[1] or (rules.max_players + 1) * high > rules.deck_size
    assert rules.num_actions == (23 if rules.revival != "none" or low < high else 13)
    for rank, letter in enumerate(RANKS):
        assert rules.points_of(letter) == reference.points(rules, rank)
        assert rules.strength(letter) == reference.strength(rules, rank)
    for n in range(9):
        if rules.players[0] <= n <= rules.max_players:
            assert rules.check_players(n) == n
        else:
            with pytest.raises(ValueError, match=f"num_players={n} is out of range; allowed: {rules.players[0]} to"):
                rules.check_players(n)


def test_players_are_named_as_the_caller_calls_them() -> None:
    with pytest.raises(ValueError, match=r"--players=8 is out of range; allowed: 2 to 7 \(2–7 by the rules, 52 cards"):
        Rules().check_players(8, name="--players")
    with pytest.raises(TypeError, match=r"num_players=4.0 must be an integer, got float; allowed: 2 to 7"):
        UNCHECKED().check_players(4.0)
    assert type(UNCHECKED().check_players(np.int32(3))) is int


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "rules are not JSON"),
        ("[1]", "rules must be a JSON object of fields, got list"),
        ('{"rules_version": 99}', f"rules_version=99 was written by another version; this one reads {RULES_VERSION}"),
        ('{"handsize": 3}', "unknown field 'handsize'"),
    ],
)
def test_bad_json_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Rules.from_json(text)


def test_rules_are_frozen_and_hashable() -> None:
    rules = UNCHECKED()
    with pytest.raises(dataclasses.FrozenInstanceError):
        rules.hand_size = 3
    assert len({Rules(), Rules.preset("gurka"), Rules.preset("agurk"), UNCHECKED(players=[2, 7])}) == 2
    with pytest.raises(TypeError):
        UNCHECKED(7)


def test_fields_are_brought_to_one_form() -> None:
    assert Rules(ranks="A2K", hand_size=3).ranks == "2KA"
    assert Rules(hand_size=(4, 4)).hand_size == 4
    assert UNCHECKED(hand_size=[2, 4]) == Rules(hand_size=(2, 4))
    assert type(UNCHECKED(hand_size=np.int64(3)).hand_size) is int
    assert type(UNCHECKED(threshold=np.int16(30)).threshold) is int


CUCUMBER = [
    "2–7 players, 52 cards (4 × 2 3 4 5 6 7 8 9 T J Q K A), 7 cards each; suits never matter.",
    "The seat left of the dealer leads the first trick.",
    "A follower who holds a card equal to or above the reference (the highest card on the table) must play such a "
    "card; otherwise his lowest.",
    "If an Ace is led, everybody else plays his lowest card and the Ace takes the trick.",
    "The highest card takes the trick, the last played of equals; its taker leads the next.",
    "Only the last trick counts: the taker of the last trick pays the value of its highest card (T 10, J 11, Q 12, "
    "K 13, A 14). Of equal cards, the last of them played pays; under a led Ace its leader.",
    "A player whose total reaches 30 points is out; the last one in wins the match.",
]
MAY = "A follower plays a card equal to or above the reference (the highest card on the table), or his lowest."

DESCRIBED: dict[str, dict[int, str | None]] = {
    "cucumber": {},
    "gurka": {},
    "agurk": {6: "A player whose total reaches 21 points is out; the last one in wins the match."},
    "gurka_no_ace": {3: None, 5: CUCUMBER[5].replace("; under a led Ace its leader", "")},
    "three_card": {0: CUCUMBER[0].replace("7 cards each", "3 cards each")},
    "inverted": {
        5: "Only the last trick counts: whoever played the lowest card to the last trick pays the value of its highest "
        "card (T 10, J 11, Q 12, K 13, A 14). Of equal cards, the last of them played pays."
    },
    "express": {6: "After 10 rounds the lowest total wins; equal lowest totals play sudden death."},
    "revival": {
        7: "Once a match, a player who goes out may come back by a chip (back at once) or by skipping a round, with "
        "the highest total of the others still in, as long as two others are in."
    },
    "literal": {
        5: "Only the last trick counts: everybody but the taker of the last trick pays the value of its highest card "
        "(T 10, J 11, Q 12, K 13, A 14)."
    },
    "concombre": {
        0: "2–8 players, 52 cards (4 × 2 3 4 5 6 7 8 9 T J Q K A), 1–5 cards each, as the dealer chooses before the "
        "deal; suits never matter.",
        1: "The dealer leads the first trick.",
        2: MAY,
        3: "T, J, Q and K are equal in strength.",
        5: "Only the last trick counts: the taker of the last trick pays the value of the card he played to it (T 10, "
        "J 10, Q 10, K 10, A 11). Of equal cards, the last of them played pays.",
        6: "The first player whose total reaches 51 points loses and the match ends.",
    },
    "wikipedia": {
        5: CUCUMBER[5].replace("the last of them played pays; under a led Ace its leader", "all of them pay")
    },
    "bga": {2: MAY, 6: CUCUMBER[6].replace("reaches", "exceeds")},
}
"""By preset: the lines that differ from those of ``cucumber``, by their number; None for one that is not there."""


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_descriptions_say_what_differs(name: str) -> None:
    lines: dict[int, str | None] = {**dict(enumerate(CUCUMBER)), **DESCRIBED[name]}
    assert Rules.preset(name).describe().splitlines() == [lines[at] for at in sorted(lines) if lines[at] is not None]


@settings(max_examples=200)
@given(all_rules(), all_rules())
def test_different_rules_read_differently(one: Rules, other: Rules) -> None:
    """Two rules with one text are the same game: they differ in nothing that can matter to play."""
    for field in FIELDS:
        try:
            changed = one.replace(**{field: getattr(other, field)})
        except ValueError:
            continue
        if changed != one and changed.describe() == one.describe():
            assert field in what_cannot_matter(one)


def what_cannot_matter(rules: Rules) -> set[str]:
    """Fields whose change need not show in the text of these rules."""
    silent = {"players"}  # more seats than the deck serves are the same as fewer
    if "A" not in rules.ranks:
        silent.add("ace_lead")
    if not set("TJQKA") & set(rules.ranks):
        silent.add("points")
    if rules.payer == "non_winners":
        silent.add("tie")
    if rules.end == "fixed_rounds":
        silent.add("threshold_rule")
    if rules.order == "natural" or rules.points == "face_14" or len(set("TJQK") & set(rules.ranks)) < 2:
        silent |= {"order"}
    if not set("JQKA") & set(rules.ranks):
        silent |= {"points"}
    return silent
