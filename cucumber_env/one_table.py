"""One table in one block of memory, moved on by one compiled call a turn: what the AEC face is made of.

A PettingZoo loop asks for one turn at a time, so what counts is the way into compiled code and out of it. A
plain int64 array is what Numba recognises fastest (an array of records takes twice as long, one that has been
pickled twenty times), what NumPy copies fastest, and what pickles without further ado. So rules, layout,
options and game lie in one such array, `new_memory`, followed by the rows that Python reads::

    TABLE | observation of the seat to move | observation of another seat | mask of the seat to move

What happened in a turn comes back as one integer; see `turn`.
"""

from __future__ import annotations

import numpy as np

from cucumber_env.batch import OPTIONS, OUTCOME, RUNNING, TERMINATED, take_turn
from cucumber_env.compiled import njit
from cucumber_env.kernel import GAME, MAX_SEATS, NUM_ACTIONS, RULES, begin, legal_now
from cucumber_env.observation import LAYOUT, WORDS, encode, spread
from cucumber_env.one_seat import still_in

TABLE = np.dtype(
    [
        ("rules", RULES),
        ("layout", LAYOUT),
        ("options", OPTIONS),
        ("remove", np.int64),  # 1: seats that are out for good leave the episode
        ("game", GAME),
        ("present", np.int64),  # set: seats that have not left the episode
        ("rewards", np.float64, MAX_SEATS),  # of the last turn
        ("returns", np.float64, MAX_SEATS),  # of the episode so far
    ],
    align=True,
)
"""Everything about one table."""

_RECORD = np.dtype((np.record, TABLE))  # what plain Python reads by attribute as well

TABLE_WORDS = TABLE.itemsize // 8
"""Length of a `TABLE` in the memory."""

MASK_WORDS = -(-NUM_ACTIONS // 8)

ILLEGAL = -1
PAID, ENDED, CUT, LEFT = 8, 16, 32, 64
"""Parts of what `turn` returns; see there."""


def new_memory(*, rules: np.ndarray, layout: np.ndarray, options: np.ndarray, remove: bool) -> np.ndarray:
    """The memory of a table at which nothing has begun.

    Args:
        rules, layout, options: Arrays of one record: `compile_rules`, `Layout.compiled`, `make_options`.
        remove: Whether seats that are out for good leave the episode.
    """
    memory = np.zeros(TABLE_WORDS + 2 * int(layout["columns"][0]) + MASK_WORDS, np.int64)
    table = table_in(memory)
    table["rules"], table["layout"], table["options"], table["remove"] = rules, layout, options, remove
    table["game"]["episode"] = -1
    return memory


def table_in(memory: np.ndarray) -> np.ndarray:
    """The table in a memory, as an array of one `TABLE` record that shares it."""
    return memory[:TABLE_WORDS].view(TABLE)


@njit
def _table(memory):
    """The table in a memory, as compiled code reads it."""
    return memory[:TABLE_WORDS].view(_RECORD)[0]


@njit
def begin_episode(memory):
    """Begin the episode after the last one and write the rows of its first turn; returns the seat to move."""
    table = _table(memory)
    game = table.game
    players = table.options.players
    begin(table.rules, game, game.seed, game.game, game.episode + 1, players, table.options.match)
    table.present = (1 << players) - 1
    table.rewards[:] = 0
    table.returns[:] = 0
    _write_rows(memory, table)
    return game.public.turn


@njit
def turn(memory, action):
    """Play `action`, any integer, for the seat to move and write the rows of the next turn.

    Returns:
        `ILLEGAL`, with nothing played. Else the seat to move (0 when the episode is over) plus: `PAID` if
        somebody's reward is not zero, `ENDED` if the rules ended the episode, `CUT` if the limit of rounds did,
        and `LEFT` times the set of the seats that leave a running episode.
    """
    table = _table(memory)
    game = table.game
    if action < 0 or action >= NUM_ACTIONS or not legal_now(table.rules, game) >> action & 1:
        return ILLEGAL
    rewards = table.rewards
    rewards[:] = 0
    state = take_turn(table.rules, table.options, game, action, rewards)
    left = np.int64(0)
    if table.remove and state != TERMINATED:
        left = _leave(table, rewards)
    news = left * LEFT
    for seat in range(game.public.players):
        if rewards[seat] != 0:
            table.returns[seat] += rewards[seat]
            news |= PAID
    if state == RUNNING:
        _write_rows(memory, table)
        return news | game.public.turn
    return news | (ENDED if state == TERMINATED else CUT)


@njit
def _leave(table, rewards):
    """The seats that are now out for good; with ``outcome``, each is paid its part of the losers' −1."""
    public = table.game.public
    left = np.int64(0)
    for seat in range(public.players):
        if table.present >> seat & 1 and not still_in(public, seat):
            left |= np.int64(1) << seat
            if table.options.reward == OUTCOME:
                rewards[seat] -= 1.0 / (public.players - 1)
    table.present &= ~left
    return left


@njit
def _write_rows(memory, table):
    """Write the observation and the mask of the seat to move."""
    game = table.game
    columns = table.layout.columns
    seat = game.public.turn
    words = np.zeros(WORDS, np.int64)
    encode(table.layout, table.rules, game.public, seat, game.hands[seat], words, memory[TABLE_WORDS : TABLE_WORDS + columns])
    words[0] = legal_now(table.rules, game)
    spread(words, MASK_WORDS, memory[TABLE_WORDS + 2 * columns :])


@njit
def observe_seat(memory, seat):
    """Write the row of another seat: what `seat` observes now."""
    table = _table(memory)
    game = table.game
    start = TABLE_WORDS + table.layout.columns
    words = np.zeros(WORDS, np.int64)
    encode(table.layout, table.rules, game.public, seat, game.hands[seat], words, memory[start : start + table.layout.columns])
