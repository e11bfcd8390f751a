"""Ranks, hands, actions and deals as text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import packed, ranks_of, text_of

from cucumber_env import state
from cucumber_env.cards import ACTIONS, action_id, actions_text, check_deal, hand_text, parse_hand
from cucumber_env.rules import MAX_CARDS, RANKS, Rules


def test_actions_are_those_of_the_kernel() -> None:
    assert len(ACTIONS) == state.NUM_ACTIONS
    assert ACTIONS[: state.NUM_RANKS] == tuple("23456789TJQKA")
    assert ACTIONS[state.DEAL_ONE] == "deal 1"
    assert ACTIONS[state.DEAL_ONE + MAX_CARDS - 1] == "deal 7"
    names = ("decline", "chip", "skip")
    assert (ACTIONS[state.DECLINE], ACTIONS[state.CHIP], ACTIONS[state.SKIP]) == names


@pytest.mark.parametrize("action", range(state.NUM_ACTIONS))
def test_an_action_may_be_text_or_any_integer(action: int) -> None:
    assert action_id(ACTIONS[action]) == action_id(action) == action_id(np.int64(action)) == action


@pytest.mark.parametrize("action", ["k", "10", "", "deal", "deal 8", "deal  3", "K ", -1, 23])
def test_unknown_actions_are_named(action: str | int) -> None:
    with pytest.raises(ValueError, match=f"{action!r}.*does not exist|{action}.*action ids: 0 to 22"):
        action_id(action)


@pytest.mark.parametrize("action", [None, True, 1.0, ["K"], b"K"])
def test_actions_of_other_types_are_refused(action: object) -> None:
    with pytest.raises(TypeError, match="must be text such as 'K' or an action id"):
        action_id(action)  # type: ignore[arg-type]


@given(st.sets(st.integers(0, state.NUM_ACTIONS - 1)))
def test_a_set_of_actions_is_its_texts_in_order(actions: set[int]) -> None:
    assert [action_id(text) for text in actions_text(sum(1 << action for action in actions))] == sorted(actions)


@given(st.lists(st.integers(0, 12), max_size=MAX_CARDS))
def test_hands_to_text_and_back(ranks: list[int]) -> None:
    hand = packed(ranks)
    assert hand_text(hand) == (text_of(ranks) or "-")
    assert parse_hand(hand_text(hand)) == hand
    assert parse_hand("".join(RANKS[rank] for rank in ranks)) == hand


def test_hands_of_the_kernel_are_numpy_integers() -> None:
    assert hand_text(np.int64(packed(ranks_of("2479TQA")))) == "2479TQA"


@pytest.mark.parametrize(("hand", "why"), [("2X", "'X' is no rank"), ("2-", "'-' is no rank"), ("22223333", "8 cards")])
def test_bad_hands_are_refused(hand: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_hand(hand)


THREE = Rules.preset("three_card", ranks="2345", copies=2)


@pytest.mark.parametrize("hands", [["432", "-", "552"], ["432", "", "552"], {2: "525", 0: "324"}])
def test_a_deal_by_list_or_by_seat(hands: list[str] | dict[int, str]) -> None:
    assert check_deal(THREE, hands, seats=[0, 2], size=3) == {0: "234", 2: "255"}


@pytest.mark.parametrize(
    ("hands", "why"),
    [
        (["234", "234"], r"hands for seats \[0, 1\]; those that take part: \[0, 2\]"),
        ({0: "234"}, r"hands for seats \[0\]; those that take part: \[0, 2\]"),
        (["234", "-", "2345"], "seat 2 has 4 cards; each is dealt 3"),
        (["234", "-", "23"], "seat 2 has 2 cards; each is dealt 3"),
        (["234", "-", "23A"], "seat 2: no 'A' in the deck; ranks: 2345"),
        (["224", "-", "233"], "3 cards of rank 2 in the hands; the deck has 2"),
    ],
)
def test_cards_that_cannot_be_dealt_are_refused(hands: list[str] | dict[int, str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        check_deal(THREE, hands, seats=[0, 2], size=3)


@pytest.mark.parametrize("hands", ["234", 7, None, [234, "-", "225"], {0: b"234", 2: "225"}])
def test_hands_must_be_text(hands: object) -> None:
    with pytest.raises(TypeError, match="must be"):
        check_deal(THREE, hands, seats=[0, 2], size=3)  # type: ignore[arg-type]
