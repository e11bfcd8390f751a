"""A table as text, for people: what printing a game and the render modes ``human`` and ``ansi`` show.

The line of a seat has its points, the cards it has played this round by trick (``*``: who takes the
trick; ``.``: who has still to play to it), its hand (``?``: a card that the reader may not see) and what is
special about it.

>>> import numpy as np
>>> from cucumber_env.kernel import begin
>>> from cucumber_env.state import GAME
>>> rules, games = Rules.preset("three_card"), as_records(np.zeros(1, GAME))
>>> begin(compile_rules(rules)[0], games[0], np.uint64(1), 0, 0, 3, 1)
>>> print(table_text(rules, games[0]["public"], {2: games[0]["hands"][2]}))
Round 1: trick 1 of 3, led by seat 0
          points  played  hand
> seat 0       0  .       ???
  seat 1       0  .       ???
  seat 2       0  .       88A   deals
Seat 0 is to play a card.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cucumber_env.cards import actions_text, hand_text
from cucumber_env.kernel import legal
from cucumber_env.rules import RANKS, Rules
from cucumber_env.state import CHOOSE, OVER, PLAY, PUBLIC, REVIVE, as_records, compile_rules


def text(rules: Rules, view: Any) -> str:
    """The table as one seat sees it; `view` is a `VIEW` record."""
    return table_text(rules, view["public"], {int(view["seat"]): int(view["hand"])})


def table_text(rules: Rules, public: Any, hands: Mapping[int, int] | None = None) -> str:
    """The table as somebody sees it who knows some of the hands.

    Args:
        rules: Rules in force.
        public: A `PUBLIC` record.
        hands: Hands that may be shown (counts of four bits a rank), by seat; all others are hidden.

    Returns:
        Lines of text without a line break at the end.
    """
    hands = hands or {}
    rows = [("", "points", "played", "hand", "")] if public["match"] else [("", "", "played", "hand", "")]
    for seat in range(int(public["players"])):
        mark = ">" if seat == public["turn"] else " "
        points = str(public["totals"][seat]) if public["match"] else ""
        rows.append(
            (f"{mark} seat {seat}", points, _played(public, seat), _hand(public, seat, hands), _notes(public, seat))
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(
            cell.rjust(width) if column == 1 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            if width
        ).rstrip()
        for row in rows
    )
    return "\n".join([_heading(public), *lines, *_to_move(rules, public, hands)])


def _heading(public: Any) -> str:
    """Where the episode stands."""
    kind = "sudden death, round" if public["tied"] else "round"
    parts = [f"{kind} {public['round_index'] + 1}".capitalize() if public["match"] else "One round"]
    if public["phase"] == PLAY:
        parts.append(f"trick {public['trick'] + 1} of {public['hand_size']}, led by seat {public['leader']}")
    elif public["phase"] == OVER:
        parts.append("over")
    return ": ".join(parts)


def _played(public: Any, seat: int) -> str:
    """The cards of a seat by trick."""
    tricks = int(public["trick"]) + 1 if public["hand_size"] and public["seats"] >> seat & 1 else 0
    cells = []
    for trick in range(tricks):
        rank = int(public["played"][seat][trick])
        takes = _taker(public, trick) == seat
        cells.append("." if rank < 0 else RANKS[rank] + ("*" if takes else ""))
    return " ".join(f"{cell:<2}" for cell in cells).rstrip()


def _taker(public: Any, trick: int) -> int:
    """Who took a trick of this round, or takes the one on the table."""
    if trick == public["trick"]:
        return int(public["taker"])
    # The taker leads the next trick, which is written down when the card is led.
    return int(public["leader"] if trick + 1 == public["trick"] else public["leaders"][trick + 1])


def _hand(public: Any, seat: int, hands: Mapping[int, int]) -> str:
    if public["phase"] != PLAY or not public["seats"] >> seat & 1:
        return ""
    if seat in hands:
        return hand_text(hands[seat])
    return "?" * int(public["hand_size"] - (public["played"][seat] >= 0).sum()) or "-"


def _notes(public: Any, seat: int) -> str:
    """What is special about a seat: the deal, a penalty just paid, how it stands in the match."""
    notes = ["deals"] if seat == public["dealer"] else []
    if public["phase"] in (REVIVE, OVER) and public["penalties"][seat]:
        notes.append(f"pays {public['penalties'][seat]}")
    if public["phase"] == OVER:
        notes.append(f"place {public['placement'][seat]}")
    elif public["tied"]:
        notes += [] if public["tied"] >> seat & 1 else ["out"]
    elif not public["alive"] >> seat & 1:
        notes.append("out")
    elif public["away"] >> seat & 1:
        notes.append("sits this round out")
    elif public["skipping"] >> seat & 1:
        notes.append("sits the next round out")
    return ", ".join(notes)


def _to_move(rules: Rules, public: Any, hands: Mapping[int, int]) -> list[str]:
    """Who is to decide what, with the legal actions if the reader may know them."""
    seat = int(public["turn"])
    if seat < 0:
        return []
    table = as_records(np.zeros(1, PUBLIC))
    table[0] = public
    question = {CHOOSE: "how many cards to deal", PLAY: "a card", REVIVE: "whether to come back"}[int(public["phase"])]
    if public["phase"] == PLAY and seat not in hands:
        return [f"Seat {seat} is to play {question}."]
    actions = actions_text(int(legal(compile_rules(rules)[0], table[0], int(hands.get(seat, 0)))))
    verb = "to play" if public["phase"] == PLAY else "to say"
    return [f"Seat {seat} is {verb} {question}: {', '.join(actions)}."]
