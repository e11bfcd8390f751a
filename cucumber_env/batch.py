"""Compiled loops over many games, writing into buffers that the caller owns.

Every face is a thin layer over these. Games are an array of `GAME` records (`new_games`); `rows` names
the games that a call is about, and all other rows of the buffers are left alone. Buffers are of the
`Buffers` kind; `B` is the number of games, `n` of players, `A` of actions, `W` the width of the layout.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from cucumber_env.compiled import njit
from cucumber_env.kernel import act, begin, count_bits, legal_now, play
from cucumber_env.observation import COUNT_BITS, EPISODES, WORDS, encode, thermometers
from cucumber_env.randomness import POLICY_STREAM, stream, uniform
from cucumber_env.rules import LARGEST, Rules
from cucumber_env.state import CHIP, FIRST_OUT_LOSES, GAME, NUM_ACTIONS, OVER, as_records

POINTS, ZERO_SUM, OUTCOME = range(3)
REWARDS = ("points", "zero_sum", "outcome")
"""Names of the rewards, by their number in compiled code."""

RUNNING, TERMINATED, TRUNCATED = range(3)
"""Values of `done`."""

OPTIONS = np.dtype(
    [
        ("players", np.int32),
        ("match", np.int32),  # 1: whole matches; 0: single rounds
        ("reward", np.int32),  # POINTS, ZERO_SUM or OUTCOME
        ("max_rounds", np.int32),  # rounds after which a match is truncated, or 0
        ("skip_forced", np.int32),
        ("autoreset", np.int32),
        ("chip_cost", np.float64),  # what coming back by a chip costs, in units of reward
    ],
    align=True,
)
"""What an environment adds to the rules; see `make_options`."""


def make_options(
    *,
    rules: Rules,
    num_players: int,
    episode: str = "match",
    reward: str | None = None,
    max_rounds: int | None = None,
    skip_forced: bool = False,
    autoreset: bool = False,
    chip_cost: float = 0.0,
) -> np.ndarray:
    """Checked options as a read-only array of one `OPTIONS` record.

    Args:
        rules: Rules in force.
        num_players: Seats at the table.
        episode: ``"match"`` or ``"round"``.
        reward: ``"points"``, ``"zero_sum"`` (default for rounds) or ``"outcome"`` (default for matches, and for
            matches only).
        max_rounds: Rounds after which a match is truncated; None for no limit. For matches only.
        skip_forced: Let the kernel play turns with one legal action.
        autoreset: Begin the next episode in the step that ends one.
        chip_cost: What coming back by a chip costs the seat, in units of reward.

    Raises:
        ValueError, TypeError: names the argument, its value and what is allowed.
    """
    rules.check_players(num_players)
    if episode not in EPISODES:
        raise ValueError(f"episode={episode!r} is not one of its values; allowed: {', '.join(EPISODES)}")
    if reward is None:
        reward = "outcome" if episode == "match" else "zero_sum"
    if reward not in REWARDS:
        raise ValueError(f"reward={reward!r} is not one of its values; allowed: {', '.join(REWARDS)}")
    if reward == "outcome" and episode == "round":
        raise ValueError("reward='outcome' pays for a whole match; with episode='round' allowed: points, zero_sum")
    if max_rounds is not None:
        if isinstance(max_rounds, bool) or not isinstance(max_rounds, int | np.integer):
            raise TypeError(f"max_rounds={max_rounds!r} must be an integer ≥ 1 or None")
        if max_rounds < 1 or max_rounds > LARGEST or episode == "round":
            raise ValueError(f"max_rounds={max_rounds} is out of range; allowed: 1 to {LARGEST}, for matches only")
    if isinstance(chip_cost, bool) or not isinstance(chip_cost, int | float) or not 0 <= chip_cost < float("inf"):
        raise ValueError(f"chip_cost={chip_cost!r} must be a finite number ≥ 0")
    table = np.zeros(1, OPTIONS)
    table["players"] = num_players
    table["match"] = episode == "match"
    table["reward"] = REWARDS.index(reward)
    table["max_rounds"] = max_rounds or 0
    table["skip_forced"] = skip_forced
    table["autoreset"] = autoreset
    table["chip_cost"] = chip_cost
    table.flags.writeable = False
    return as_records(table)


def seed_word(seed: int, *, name: str = "seed") -> np.uint64:
    """The 64-bit word that stands for a seed: the seed itself below 2**64, a hash of it above.

    Raises:
        TypeError, ValueError: `seed` is no integer ≥ 0.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise TypeError(f"{name}={seed!r} must be an integer ≥ 0, got {type(seed).__name__}")
    number = int(seed)
    if number < 0:
        raise ValueError(f"{name}={number} is out of range; allowed: any integer ≥ 0")
    if number >> 64:
        size = (number.bit_length() + 7) // 8
        number = int.from_bytes(hashlib.blake2b(number.to_bytes(size, "little"), digest_size=8).digest(), "little")
    return np.uint64(number)


@dataclass
class Buffers:
    """What the loops write, one row a game.

    Attributes:
        observation: int8 ``[B, W]``, of the seat to move.
        mask: int8 ``[B, A]``, its legal actions; all zeros when the episode is over.
        rewards: float32 ``[B, n]``; added to, never cleared, by `step`.
        turn: int32 ``[B]``, the seat to move, or -1.
        done: int8 ``[B]``: RUNNING, TERMINATED or TRUNCATED.
    """

    observation: np.ndarray
    mask: np.ndarray
    rewards: np.ndarray
    turn: np.ndarray
    done: np.ndarray

    @classmethod
    def new(cls, games: int, width: int, actions: int, players: int) -> Buffers:
        """Zeroed buffers for `games` games."""
        return cls(
            np.zeros((games, width), np.int8),
            np.zeros((games, actions), np.int8),
            np.zeros((games, players), np.float32),
            np.zeros(games, np.int32),
            np.zeros(games, np.int8),
        )


def new_games(count: int) -> np.ndarray:
    """`count` blank games, to be begun by `reset`; an array of `GAME` records."""
    return as_records(np.zeros(count, GAME))


@njit
def reset(rules_table, options_table, games, rows, seed, indices, episodes):
    """Begin episode `episodes[i]` of game number `indices[i]` under `seed` in each game of `rows`."""
    options = options_table[0]
    for i in range(len(rows)):
        begin(rules_table[0], games[rows[i]], seed, indices[i], episodes[i], options.players, options.match)


@njit
def write_mask(actions, mask):
    """A set of actions as int8 ``[A]``."""
    for action in range(len(mask)):
        mask[action] = actions >> action & 1


@njit
def observe(rules_table, layout_table, games, rows, turn, mask, observation):
    """Write turn, mask and observation of the seat to move; zeros where the episode is over.

    `observation` is the buffer seen as int64 ``[B, W / 8]``; with no columns it is not written.
    """
    words = np.zeros(WORDS, np.int64)
    for i in range(len(rows)):
        row = rows[i]
        game = games[row]
        actions = legal_now(rules_table[0], game)
        turn[row] = game.public.turn
        write_mask(actions, mask[row])
        write_observation(rules_table[0], layout_table[0], game, words, observation[row])


@njit
def write_observation(rules, layout, game, words, out):
    """The observation of the seat to move, zeros if there is none, nothing if `out` has no columns."""
    if len(out) == 0:
        return
    seat = game.public.turn
    if seat < 0:
        out[:] = 0
    else:
        encode(layout, rules, game.public, seat, game.hands[seat], words, out)


@njit
def first_illegal(rules_table, games, rows, actions):
    """Position in `rows` of the first illegal action, or -1."""
    for i in range(len(rows)):
        action = actions[i]
        if action < 0 or action >= NUM_ACTIONS or not legal_now(rules_table[0], games[rows[i]]) >> action & 1:
            return i
    return -1


@njit
def step(rules_table, layout_table, options_table, games, rows, actions, rewards, done, turn, mask, observation):
    """Play `actions[i]`, which must be legal, in each game of `rows` and write what follows.

    With ``skip_forced``, turns with one legal action are then played as well, until there is a decision
    or the episode is over. With ``autoreset``, the next episode of a finished game begins at once and
    its first turn is what is observed, forced or not: a step never crosses the end of an episode.
    Returns the number of turns played.
    """
    rules = rules_table[0]
    options = options_table[0]
    words = np.zeros(WORDS, np.int64)
    turns = 0
    for i in range(len(rows)):
        row = rows[i]
        game = games[row]
        state = take_turn(rules, options, game, np.int64(actions[i]), rewards[row])
        turns += 1
        choices = legal_now(rules, game)
        while options.skip_forced and state == RUNNING and choices & choices - 1 == 0:
            state = take_turn(rules, options, game, forced_action(choices), rewards[row])
            turns += 1
            choices = legal_now(rules, game)
        done[row] = state
        if options.autoreset and state != RUNNING:
            begin(rules, game, game.seed, game.game, game.episode + 1, options.players, options.match)
            choices = legal_now(rules, game)
        turn[row] = game.public.turn
        write_mask(choices, mask[row])
        write_observation(rules, layout_table[0], game, words, observation[row])
    return turns


@njit
def play_one(rules_table, games, action, by_hand):
    """Play a legal `action` in ``games[0]``; returns the set of actions that are open then.

    A round that begins is dealt from the seed, or with `by_hand` waits for its cards. (Called from Python, an
    array of one game costs a tenth of what its record does.)
    """
    if by_hand:
        act(rules_table[0], games[0], action)
    else:
        play(rules_table[0], games[0], action)
    return legal_now(rules_table[0], games[0])


@njit
def forced_action(actions):
    """The member of a set of one action."""
    action = np.int64(0)
    while actions > 1:
        actions >>= 1
        action += 1
    return action


@njit
def take_turn(rules, options, game, action, rewards):
    """One action of the seat to move: play it, add what everybody earns, say whether the episode goes on."""
    public = game.public
    seats = public.seats
    sudden_death = public.tied
    rounds = public.round_index + 1
    if action == CHIP:
        rewards[public.turn] -= options.chip_cost
    ended = play(rules, game, action)
    if ended and not sudden_death:
        add_round_rewards(public, seats, options.reward, rewards)
    if public.phase == OVER:
        if options.reward == OUTCOME:
            add_outcome(rules, public, rewards)
        return TERMINATED
    if ended and options.max_rounds > 0 and rounds >= options.max_rounds:
        return TRUNCATED
    return RUNNING


@njit
def add_round_rewards(public, seats, reward, rewards):
    """Add what the settled round pays to its `seats`.

    ``points``: minus the own penalty. ``zero_sum``: that plus the mean penalty of the others.
    """
    if reward == OUTCOME:
        return
    total = 0
    for seat in range(public.players):
        total += public.penalties[seat]
    others = count_bits(seats) - 1
    for seat in range(public.players):
        if seats >> seat & 1:
            own = public.penalties[seat]
            rewards[seat] -= own
            if reward == ZERO_SUM:
                rewards[seat] += (total - own) / others


@njit
def add_outcome(rules, public, rewards):
    """Add what a finished match pays: +1 to the winner (shared by equals) and −1 shared by the others.

    Under `first_out_loses` the losers share −1 and the others +1. Zero if everybody is in one camp.
    """
    losing = 0
    for seat in range(public.players):
        lost = public.out_round[seat] >= 0 if rules.end == FIRST_OUT_LOSES else public.placement[seat] > 1
        losing |= np.int64(lost) << seat
    losers = count_bits(losing)
    winners = public.players - losers
    if losers == 0 or winners == 0:
        return
    for seat in range(public.players):
        rewards[seat] += -1.0 / losers if losing >> seat & 1 else 1.0 / winners


@njit
def views(games, rows, out):
    """Write what the seat to move in each game of `rows` may know; `out` is `VIEW` ``[len(rows)]``."""
    for i in range(len(rows)):
        game = games[rows[i]]
        out[i].public = game.public
        out[i].seat = game.public.turn
        out[i].hand = game.hands[game.public.turn]


@njit
def hidden_hands(games, rows, seats, out):
    """Write what the seat to move in each game of `rows` does not see: the hands of the others, clockwise.

    `out` is int8 ``[len(rows), (seats - 1) * 52]``: thermometers of the counts by rank, as in the observation.
    """
    for i in range(len(rows)):
        game = games[rows[i]]
        out[i] = 0
        seat = game.public.turn
        for relative in range(min(seats, game.public.players) - 1):
            seat = seat + 1 if seat + 1 < game.public.players else 0
            bits = thermometers(game.hands[seat])
            for k in range(COUNT_BITS):
                out[i, relative * COUNT_BITS + k] = bits >> k & 1


@njit
def draws(games, rows, out):
    """Write the uniform number in [0, 1) that belongs to the coming decision of each game of `rows`."""
    for i in range(len(rows)):
        game = games[rows[i]]
        name = stream(game.seed, game.game, game.episode, 0, POLICY_STREAM)
        out[i] = uniform(name, game.public.moves)


@njit
def observe_views(rules_table, layout_table, view_table, observation):
    """Write the observation that each view allows; `observation` is int64 ``[len(views), W / 8]``."""
    words = np.zeros(WORDS, np.int64)
    for i in range(len(view_table)):
        view = view_table[i]
        encode(layout_table[0], rules_table[0], view.public, view.seat, view.hand, words, observation[i])


@njit
def pick_uniform(mask, u, out):
    """An action drawn uniformly from each row of a mask, by the number `u` in [0, 1)."""
    for i in range(len(mask)):
        count = 0
        for action in range(mask.shape[1]):
            count += mask[i, action]
        index = np.int64(u[i] * count)
        for action in range(mask.shape[1]):
            index -= mask[i, action]
            if index < 0:
                out[i] = action
                break
