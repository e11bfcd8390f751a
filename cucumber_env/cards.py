"""Ranks, hands and actions as text.

A *card* is its rank, ``2`` … ``9 T J Q K A``; suits never matter. A *hand* is its cards, lowest first:
``2479TQA``. An *action* is a rank to play, ``deal 3`` for the dealer's choice of three cards, or one of the
answers to an offer of revival. Whole matches as text are in `cucumber_env.records`.

>>> ACTIONS[11], action_id("deal 3"), hand_text(parse_hand("A22"))
('K', 15, '22A')
"""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import SupportsIndex

from cucumber_env.rules import MAX_CARDS, RANKS, Rules

ANSWERS = ("decline", "chip", "skip")
ACTIONS = (*RANKS, *(f"deal {cards}" for cards in range(1, MAX_CARDS + 1)), *ANSWERS)
"""Text of every action; its index is the action's id."""

_IDS = {text: action for action, text in enumerate(ACTIONS)}


def action_id(action: str | SupportsIndex) -> int:
    """The id of an action given as text or as its id.

    >>> action_id("K"), action_id("deal 3"), action_id(21)
    (11, 15, 21)

    Raises:
        ValueError: no such action; lists all.
        TypeError: neither text nor an integer.
    """
    if isinstance(action, str):
        if action in _IDS:
            return _IDS[action]
        raise ValueError(f"action {action!r} does not exist; actions: {', '.join(ACTIONS)}")
    if isinstance(action, bool) or not hasattr(action, "__index__"):
        raise TypeError(f"action {action!r} must be text such as 'K' or an action id, got {type(action).__name__}")
    number = operator.index(action)
    if not 0 <= number < len(ACTIONS):
        raise ValueError(f"action {number} does not exist; action ids: 0 to {len(ACTIONS) - 1}")
    return number


@functools.cache
def actions_text(actions: int) -> tuple[str, ...]:
    """The texts of a set of actions (bit `i` is the action of id `i`), lowest id first.

    >>> actions_text(1 << 0 | 1 << 11 | 1 << 20)
    ('2', 'K', 'decline')
    """
    return tuple(text for action, text in enumerate(ACTIONS) if actions >> action & 1)


def hand_text(hand: SupportsIndex) -> str:
    """A hand (counts of four bits a rank in one integer) as text, lowest card first; ``-`` if empty.

    >>> hand_text(2 << 4 * 0 | 1 << 4 * 12)
    '22A'
    """
    counts = operator.index(hand)
    return "".join(rank * (counts >> 4 * index & 15) for index, rank in enumerate(RANKS)) or "-"


def parse_hand(text: str) -> int:
    """The hand that a text stands for, as counts of four bits a rank in one integer; ``-`` is the empty one.

    >>> hand_text(parse_hand("A22"))
    '22A'

    Raises:
        ValueError: a letter that is no rank, or more than 7 cards.
    """
    cards = "" if text == "-" else text
    if len(cards) > MAX_CARDS:
        raise ValueError(f"hand {text!r} has {len(cards)} cards; allowed: at most {MAX_CARDS}")
    hand = 0
    for letter in cards:
        if letter not in RANKS:
            raise ValueError(f"hand {text!r}: {letter!r} is no rank; ranks: {RANKS}")
        hand += 1 << 4 * RANKS.index(letter)
    return hand


def check_deal(
    rules: Rules, hands: Sequence[str] | Mapping[int, str], *, seats: Sequence[int], size: int
) -> dict[int, str]:
    """Hands by seat, each with its lowest card first, if `rules` can deal them in one round.

    >>> check_deal(Rules.preset("three_card"), ["Q5A", "-", "36K"], seats=[0, 2], size=3)
    {0: '5QA', 2: '36K'}

    Args:
        rules: Rules in force.
        hands: The hand of every seat, ``-`` for one that sits out; or hands by seat.
        seats: Seats that take part, ascending.
        size: Cards that each is dealt.

    Raises:
        ValueError: hands for other seats, hands of another size, cards that the deck does not have.
        TypeError: hands that are no text.
    """
    if isinstance(hands, str) or not isinstance(hands, Mapping | Sequence):
        raise TypeError(f"hands={hands!r} must be a list of hands as text, or hands by seat")
    if not isinstance(hands, Mapping):
        hands = {seat: hand for seat, hand in enumerate(hands) if hand not in ("", "-")}
    if set(hands) != set(seats):
        raise ValueError(f"hands for seats {sorted(hands)}; those that take part: {list(seats)}")
    texts = {seat: _check_hand(rules, seat, hands[seat], size) for seat in seats}
    for letter, count in Counter("".join(texts.values())).items():
        if count > rules.copies:
            raise ValueError(f"{count} cards of rank {letter} in the hands; the deck has {rules.copies}")
    return texts


def _check_hand(rules: Rules, seat: int, hand: str, size: int) -> str:
    if not isinstance(hand, str):
        raise TypeError(f"hand {hand!r} of seat {seat} must be text such as '2479TQA', got {type(hand).__name__}")
    for letter in hand:
        if letter not in rules.ranks:
            raise ValueError(f"hand {hand!r} of seat {seat}: no {letter!r} in the deck; ranks: {rules.ranks}")
    if len(hand) != size:
        raise ValueError(f"hand {hand!r} of seat {seat} has {len(hand)} cards; each is dealt {size} in this round")
    return hand_text(parse_hand(hand))
