"""What a game is made of: records of who knows what, the numbers that stand for actions, and `Rules` compiled.

* `PUBLIC`: what everybody at the table knows.
* `VIEW`: `PUBLIC` and the hand of one seat, all that a player may know.
* `GAME`: `PUBLIC`, all hands and the key of the random numbers.

Many games are an array of records: a copy is a row copied, a checkpoint is bytes, equality is bytes.

Two integers carry the cards. A *hand* is 13 counts of four bits in one int64 (`hand >> 4 * rank & 15`
cards of that rank), so a card is added or removed by one addition. A *set* of ranks or actions is a
bit set whose bit numbers are the action ids: 0–12 play 2…A, 13–19 deal 1–7 cards, 20 decline,
21 chip, 22 skip. Sets of seats are bit sets likewise.
"""

from __future__ import annotations

import functools

import numpy as np

from cucumber_env.compiled import config
from cucumber_env.rules import MAX_CARDS, MAX_SEATS, RANKS, Rules

NUM_RANKS = len(RANKS)
ACE = NUM_RANKS - 1
DEAL_ONE = NUM_RANKS
"""Action id of dealing one card; dealing k cards is ``DEAL_ONE + k - 1``."""
DECLINE, CHIP, SKIP = 20, 21, 22
NUM_ACTIONS = 23

DEAL, CHOOSE, PLAY, REVIVE, OVER = range(5)
PHASES = ("deal", "choose", "play", "revive", "over")

NOBODY = -1
"""Stands for no seat, no rank and no card yet."""

TAKER, LOWEST, NON_WINNERS = range(3)
LAST, FIRST, ALL = range(3)
LAST_SURVIVOR, FIRST_OUT_LOSES, FIXED_ROUNDS = range(3)

RULES = np.dtype(
    [
        ("deck", np.int64),  # counts of the full deck
        ("ties", np.int64),  # set of the ranks that share their strength with another
        ("at_least", np.int64, NUM_RANKS),  # sets of the ranks as strong as this one or stronger
        ("strength", np.int32, NUM_RANKS),
        ("points", np.int32, NUM_RANKS),
        ("may", np.int32),
        ("ace_lead", np.int32),
        ("payer", np.int32),
        ("own", np.int32),
        ("tie", np.int32),
        ("end", np.int32),
        ("out_at", np.int32),  # lowest total that is out
        ("rounds", np.int32),
        ("dealer_leads", np.int32),
        ("chip", np.int32),
        ("skip", np.int32),
        ("fewest_cards", np.int32),
        ("most_cards", np.int32),
    ],
    align=True,
)
"""`Rules` as the kernel reads them; see `compile_rules`."""

PUBLIC = np.dtype(
    [
        ("gone", np.int64),  # counts of the cards played this round
        ("players", np.int32),
        ("match", np.int32),  # 1: a whole match; 0: one round
        ("phase", np.int32),
        ("turn", np.int32),  # seat to decide, or NOBODY
        ("moves", np.int32),  # actions taken since the episode began
        ("round_index", np.int32),  # index of the round, sudden death included
        ("dealer", np.int32),
        ("hand_size", np.int32),  # cards dealt to each seat this round; 0 before the dealer's choice
        ("trick", np.int32),  # index of the trick on the table
        ("leader", np.int32),  # of the trick on the table
        ("count", np.int32),  # cards on the table
        ("reference", np.int32),  # rank of the card that takes the trick so far, or NOBODY
        ("taker", np.int32),  # who played it, or NOBODY
        ("ace_led", np.int32),  # 1: everybody plays his lowest
        ("seats", np.int32),  # set: takes part in this round
        ("alive", np.int32),  # set: counts as in
        ("away", np.int32),  # set: in, but sits this round out
        ("skipping", np.int32),  # set: will sit the next round out
        ("undecided", np.int32),  # set: may still be offered a revival
        ("revived", np.int32),  # set: has come back once
        ("tied", np.int32),  # set: in sudden death; empty outside of it
        ("totals", np.int32, MAX_SEATS),
        ("penalties", np.int32, MAX_SEATS),  # of the round settled last
        ("out_round", np.int32, MAX_SEATS),  # round in which a seat went out, or NOBODY
        ("placement", np.int32, MAX_SEATS),  # 1 is best, equals share; 0 before the end
        ("low", np.int8, MAX_SEATS),  # weakest strength the seat can still hold
        ("high", np.int8, MAX_SEATS),  # strongest strength the seat can still hold
        ("leaders", np.int8, MAX_CARDS),  # of each trick begun this round
        ("played", np.int8, (MAX_SEATS, MAX_CARDS)),  # rank by seat and trick, or NOBODY
    ],
    align=True,
)
"""What everybody at the table knows."""

VIEW = np.dtype([("public", PUBLIC), ("seat", np.int64), ("hand", np.int64)], align=True)
"""What one seat knows: the table and its own hand (counts, four bits a rank)."""

GAME = np.dtype(
    [
        ("public", PUBLIC),
        ("hands", np.int64, MAX_SEATS),
        ("seed", np.uint64),
        ("game", np.int64),
        ("episode", np.int64),
    ],
    align=True,
)
"""One game: the table, all hands, and what names its random numbers."""


@functools.lru_cache(maxsize=1024)
def compile_rules(rules: Rules) -> np.ndarray:
    """`rules` as a read-only array of one `RULES` record."""
    table = np.zeros(1, RULES)
    record = table[0]
    strengths = [rules.strength(rank) for rank in RANKS]
    for rank, letter in enumerate(RANKS):
        record["strength"][rank] = strengths[rank]
        record["points"][rank] = rules.points_of(letter)
        record["at_least"][rank] = sum(1 << r for r in range(NUM_RANKS) if strengths[r] >= strengths[rank])
    record["deck"] = sum(rules.copies << 4 * RANKS.index(letter) for letter in rules.ranks)
    record["ties"] = sum(1 << r for r in range(NUM_RANKS) if strengths.count(strengths[r]) > 1)
    record["may"] = rules.follow == "may"
    record["ace_lead"] = rules.ace_lead == "all_lowest"
    record["payer"] = ("taker", "lowest", "non_winners").index(rules.payer)
    record["own"] = rules.penalty == "own"
    record["tie"] = ("last", "first", "all").index(rules.tie)
    record["end"] = ("last_survivor", "first_out_loses", "fixed_rounds").index(rules.end)
    record["out_at"] = 0 if rules.threshold is None else rules.threshold + (rules.threshold_rule == "exceed")
    record["rounds"] = rules.rounds or 0
    record["dealer_leads"] = rules.first_leader == "dealer"
    record["chip"] = rules.revival in ("chip", "choice")
    record["skip"] = rules.revival in ("skip", "choice")
    record["fewest_cards"], record["most_cards"] = rules.hand_sizes
    table.flags.writeable = False
    return as_records(table)


def as_table(records: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A read-only array of records of `dtype`, as compiled code takes its tables; a copy of `records`.

    For what comes out of a pickle: that has another type to Numba, for which everything would be compiled anew.
    """
    table = np.zeros(len(records), dtype)
    table[:] = records
    table.flags.writeable = False
    return as_records(table)


def as_records(array: np.ndarray) -> np.ndarray:
    """A structured array in the form whose records compiled code can read by attribute.

    That is the array itself, unless the JIT is off: then plain Python needs a record array.
    """
    return array.view(np.recarray) if config.DISABLE_JIT else array
