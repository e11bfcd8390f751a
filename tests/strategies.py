"""Hypothesis strategies for rules and tables."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from cucumber_env.rules import CHOICES, LARGEST, MAX_CARDS, MAX_COPIES, MAX_SEATS, RANKS, Rules

DECKS = (RANKS, "9TJQKA", "TJQKA", "23A", "QKA", "2468", "TJ2", "2345678")
"""Decks worth trying often: whole, with Aces, with ranks tied by value, without either."""


@st.composite
def decks(draw: st.DrawFn) -> tuple[str, int]:
    """Ranks and copies of a deck of at least two cards."""
    subsets = st.sets(st.sampled_from(RANKS), min_size=1).map("".join)
    ranks = draw(st.sampled_from(DECKS) | subsets)
    return ranks, draw(st.integers(2 if len(ranks) == 1 else 1, MAX_COPIES))


@st.composite
def hand_sizes(draw: st.DrawFn, largest: int) -> int | tuple[int, int]:
    """A fixed number of cards, or the dealer's choice of a range."""
    high = draw(st.integers(1, largest))
    if high > 1 and draw(st.booleans()):
        return draw(st.integers(1, high - 1)), high
    return high


@st.composite
def all_rules(draw: st.DrawFn, *, most_points: int = LARGEST, most_rounds: int = LARGEST) -> Rules:
    """Any rules: every field free, as far as they make a game.

    Args:
        most_points, most_rounds: Upper limits of `threshold` and `rounds`, to keep matches short.
    """
    fields: dict[str, Any] = {name: draw(st.sampled_from(words)) for name, words in CHOICES.items()}
    fields["ranks"], fields["copies"] = draw(decks())
    cards = len(fields["ranks"]) * fields["copies"]
    low = draw(st.integers(2, min(MAX_SEATS, cards)))
    fields["players"] = (low, draw(st.integers(low, MAX_SEATS)))
    fields["hand_size"] = draw(hand_sizes(min(MAX_CARDS, cards // low)))
    if fields["end"] != "last_survivor":
        fields["revival"] = "none"
    fixed = fields["end"] == "fixed_rounds"
    fields["threshold"] = None if fixed else draw(st.integers(1, most_points))
    fields["rounds"] = draw(st.integers(1, most_rounds)) if fixed else None
    if fields["tie"] == "all" and _one_strength(fields):
        fields["tie"] = draw(st.sampled_from(("last", "first")))
    return Rules(**fields)


def _one_strength(fields: dict[str, Any]) -> bool:
    """Whether all cards of the deck are equal in strength: `tie: all` is refused then."""
    tens = set("TJQK") if (fields["order"], fields["points"]) == ("value", "face_10") else set()
    return len({"T" if rank in tens else rank for rank in fields["ranks"]}) == 1


@st.composite
def tables(draw: st.DrawFn, *, most_points: int = 60, most_rounds: int = 4) -> tuple[Rules, int]:
    """Rules of short matches and a number of players that they seat."""
    rules = draw(all_rules(most_points=most_points, most_rounds=most_rounds))
    return rules, draw(st.integers(rules.players[0], rules.max_players))
