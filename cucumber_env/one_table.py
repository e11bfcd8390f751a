"""One table in one block of memory, moved on by one compiled call a turn: what the AEC face is made of.

A PettingZoo loop asks for one turn at a time, so what counts is the way into compiled code and out of it. A
plain int64 array is what Numba recognises fastest (an array of records takes twice as long, one that has been
pickled twenty times), what NumPy copies fastest, and what pickles without further ado. So rules, layout,
options and game lie in one such array, `new_memory`, followed by the rows that Python reads::

    TABLE | observation of seat 0 | of seat 1 | … | mask of the seat to move

What happened in a turn comes back as one integer; see `turn`.
"""

from __future__ import annotations

import numpy as np

from cucumber_env.batch import OPTIONS, OUTCOME, RUNNING, TERMINATED, take_turn
from cucumber_env.compiled import njit
from cucumber_env.kernel import begin, legal_now
from cucumber_env.observation import LAYOUT, WORDS, Layout, encode, put, spread, thermometers
from cucumber_env.one_seat import still_in
from cucumber_env.rules import MAX_COPIES, MAX_SEATS
from cucumber_env.state import GAME, NUM_ACTIONS, NUM_RANKS, RULES

_SETTINGS: list[tuple] = [
    ("rules", RULES),
    ("layout", LAYOUT),
    ("options", OPTIONS),
    ("remove", np.int64),  # 1: seats that are out for good leave the episode
]

TABLE = np.dtype(
    [
        *_SETTINGS,
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

SETTINGS_WORDS = np.dtype(_SETTINGS, align=True).itemsize // 8
"""Length of its first fields, which never change: rules, layout, options, mode of elimination."""

MASK_WORDS = -(-NUM_ACTIONS // 8)
HAND_BITS = NUM_RANKS * MAX_COPIES

ILLEGAL = -1
PAID, ENDED, CUT, LEFT = 8, 16, 32, 64
"""Parts of what `turn` returns; see there."""


def new_memory(*, rules: np.ndarray, layout: np.ndarray, options: np.ndarray, remove: bool) -> np.ndarray:
    """The memory of a table at which nothing has begun.

    Args:
        rules, layout, options: Arrays of one record: `compile_rules`, `Layout.compiled`, `make_options`.
        remove: Whether seats that are out for good leave the episode.
    """
    rows = int(options["players"][0]) * int(layout["columns"][0])
    memory = np.zeros(TABLE_WORDS + rows + MASK_WORDS, np.int64)
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
    write_turn(memory)
    return game.public.turn


@njit
def turn(memory, action):
    """Play `action`, any integer, for the seat to move and write the rows of the next turn, at the end those of all.

    Returns:
        `ILLEGAL`, with nothing played. Else the seat to move (0 when the episode is over) plus: `PAID` if
        somebody's reward is not zero, `ENDED` if the rules ended the episode, `CUT` if the limit of rounds did,
        and `LEFT` times the set of the seats that have left an episode which the rules have not ended.
    """
    table = _table(memory)
    game = table.game
    if action < 0 or action >= NUM_ACTIONS or not legal_now(table.rules, game) >> action & 1:
        return ILLEGAL
    rewards = table.rewards
    rewards[:] = 0
    state = take_turn(table.rules, table.options, game, action, rewards)
    news = np.int64(0)
    if table.remove and state != TERMINATED:
        news = LEFT * _leave(table, rewards)
    for seat in range(game.public.players):
        if rewards[seat] != 0:
            table.returns[seat] += rewards[seat]
            news |= PAID
    if state == RUNNING:
        write_turn(memory)
        return news | game.public.turn
    for seat in range(game.public.players):
        _write_observation(memory, table, seat)
    return news | (ENDED if state == TERMINATED else CUT)


@njit
def _leave(table, rewards):
    """The seats that are now out for good; under ``outcome`` each is paid its part of the losers' −1."""
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
def write_turn(memory):
    """Write the observation and the mask of the seat to move."""
    table = _table(memory)
    words = _write_observation(memory, table, table.game.public.turn)
    words[0] = legal_now(table.rules, table.game)
    spread(words, MASK_WORDS, memory[len(memory) - MASK_WORDS :])


@njit
def _write_observation(memory, table, seat):
    """Write what `seat` observes into its row; returns the scratch words."""
    words = np.empty(WORDS, np.int64)  # not in the table: a block of its own lets the compiler keep fields in registers
    columns = np.int64(table.layout.columns)
    start = TABLE_WORDS + seat * columns
    row = memory[start : start + columns]
    encode(table.layout, table.rules, table.game.public, seat, table.game.hands[seat], words, row)
    return words


@njit
def observe(memory, seat):
    """Write what `seat`, to move or not, observes now into its row."""
    _write_observation(memory, _table(memory), seat)


@njit
def inform(memory, layout_table, seat, row):
    """Write what `seat` observes in another layout, such as that of the information state, into an int64 row."""
    table = _table(memory)
    words = np.zeros(WORDS, np.int64)
    encode(layout_table[0], table.rules, table.game.public, seat, table.game.hands[seat], words, row)


@njit
def write_state(memory, row):
    """Write the global state: what seat 0 observes, then every hand and the seat to move; see `state_size`."""
    table = _table(memory)
    game = table.game
    columns = np.int64(table.layout.columns)
    words = np.zeros(WORDS, np.int64)
    encode(table.layout, table.rules, game.public, 0, game.hands[0], words, row[:columns])
    words[:] = 0
    at = np.int64(0)
    for seat in range(game.public.players):
        at = put(words, at, thermometers(game.hands[seat]), HAND_BITS)
    at = HAND_BITS * np.int64(table.layout.seats)
    if game.public.turn >= 0:
        put(words, at, np.int64(1) << game.public.turn, table.layout.seats)
    spread(words, len(row) - columns, row[columns:])


def state_size(layout: Layout) -> int:
    """Width of the global state: the observation, 13 × 4 bits for each seat's hand and one for each seat's turn."""
    return layout.size + -(-layout.seats * (HAND_BITS + 1) // 8) * 8
