"""Compiled loops over games as one seat of each lives them: the others are in between its turns.

Rewards arrive on other people's moves, so all that a seat earns is collected until it is to decide
again or its episode is over. An episode is over for a seat when the game is, when the game is
truncated, or when the seat is out of the match for good: it then neither decides nor earns any more.

Names of arrays are those of `batch`; `seats` is int64 ``[B]``, the seat of each game that is followed.
"""

from __future__ import annotations

import numpy as np

from cucumber_env.batch import (
    OUTCOME,
    RUNNING,
    TERMINATED,
    forced_action,
    take_turn,
    write_mask,
)
from cucumber_env.compiled import njit
from cucumber_env.kernel import begin, legal_now
from cucumber_env.observation import WORDS, encode
from cucumber_env.randomness import OPPONENT_STREAM, SEAT_STREAM, below, stream
from cucumber_env.rules import MAX_SEATS
from cucumber_env.state import NOBODY

RANDOM_SEAT, ROTATING_SEAT = -1, -2
"""How the followed seat is chosen, where it is not the same in every episode."""


@njit
def still_in(public, seat):
    """Whether `seat` of a running game may still decide, earn or win.

    In sudden death only the tied may; before that, whoever counts as in (A10, A26) or may yet be offered a revival.
    """
    if public.tied:
        return public.tied >> seat & 1
    return (public.alive | public.undecided) >> seat & 1


@njit
def close_if_out(options, public, seat, state, earned):
    """The state of the episode for `seat`: over once it is out for good.

    The outcome of such a seat is settled although the match goes on: there will be one winner, and it is not he.
    A seat that goes out in the round that reaches `max_rounds` has lost all the same, so it is terminated.
    """
    if state == TERMINATED or still_in(public, seat):
        return state
    if options.reward == OUTCOME:
        earned[seat] -= 1.0 / (public.players - 1)
    return TERMINATED


@njit
def play_forced(rules, options, game, seat, state, skip_own, earned):
    """Play turns with one legal action, the own ones of `seat` only with `skip_own`; returns the state then."""
    public = game.public
    while True:
        state = close_if_out(options, public, seat, state, earned)
        choices = legal_now(rules, game)
        if state != RUNNING or choices & choices - 1 or (public.turn == seat and not skip_own):
            return state
        state = take_turn(rules, options, game, forced_action(choices), earned)


@njit
def write_turn(rules, game, state, row, done, turn, mask):
    """Write who is to move and how; nobody, and a mask of ones, when the episode is over for the seat.

    Nothing is played with that mask; zeros would make a masked softmax divide by zero.
    """
    done[row] = state
    if state == RUNNING:
        turn[row] = game.public.turn
        write_mask(legal_now(rules, game), mask[row])
    else:
        turn[row] = NOBODY
        mask[row, :] = 1


@njit
def begin_next(rules_table, options_table, games, rows, choice, policies, seats, chosen, done, turn, mask):
    """Begin the next episode in each game of `rows` and play up to the first free turn or the seat's first turn.

    Args:
        rules_table, options_table, games, rows: As in `batch.step`.
        choice: The seat to follow in every episode, `RANDOM_SEAT` or `ROTATING_SEAT`.
        policies: Number of policies that the other seats draw theirs from.
        seats: int64 ``[B]``, written: the seat that is followed.
        chosen: int64 ``[B, MAX_SEATS]``, written: index of each seat's policy.
        done, turn, mask: Written as by `write_turn`.
    """
    rules = rules_table[0]
    options = options_table[0]
    earned = np.zeros(MAX_SEATS)  # stays zero: nobody goes out or scores before everybody has played a card
    for i in range(len(rows)):
        row = rows[i]
        game = games[row]
        begin(rules, game, game.seed, game.game, game.episode + 1, options.players, options.match)
        seats[row] = followed_seat(game, choice, options.players)
        name = stream(game.seed, game.game, game.episode, 0, OPPONENT_STREAM)
        for seat in range(options.players):
            chosen[row, seat] = below(name, seat, policies)
        state = play_forced(rules, options, game, seats[row], RUNNING, False, earned)
        write_turn(rules, game, state, row, done, turn, mask)


@njit
def followed_seat(game, choice, players):
    """The seat to follow in this episode; rotating seats differ between neighbouring games and episodes."""
    if choice == RANDOM_SEAT:
        return below(stream(game.seed, game.game, game.episode, 0, SEAT_STREAM), 0, players)
    if choice == ROTATING_SEAT:
        return (game.game + game.episode) % players
    return choice


@njit
def step(rules_table, options_table, games, rows, actions, seats, skip_own, rewards, done, turn, mask):
    """Play `actions[i]`, which must be legal, in each game of `rows`, whoever is to move, and what is forced then.

    Args:
        rules_table, options_table, games, rows, actions: As in `batch.step`.
        seats: int64 ``[B]``, the seats that are followed.
        skip_own: Whether to play their forced turns as well, or those of the other seats only.
        rewards: float64 ``[B]``; what the followed seat earns is added.
        done, turn, mask: Written as by `write_turn`.
    """
    rules = rules_table[0]
    options = options_table[0]
    earned = np.zeros(MAX_SEATS)
    for i in range(len(rows)):
        row = rows[i]
        game = games[row]
        seat = seats[row]
        earned[:] = 0
        state = take_turn(rules, options, game, np.int64(actions[i]), earned)
        state = play_forced(rules, options, game, seat, state, skip_own, earned)
        rewards[row] += earned[seat]
        write_turn(rules, game, state, row, done, turn, mask)


@njit
def views(games, rows, seats, out):
    """Write what the followed seat of each game of `rows` may know, to move or not; `out` is `VIEW` ``[len(rows)]``."""
    for i in range(len(rows)):
        game = games[rows[i]]
        seat = seats[rows[i]]
        out[i].public = game.public
        out[i].seat = seat
        out[i].hand = game.hands[seat]


@njit
def observe(rules_table, layout_table, games, rows, seats, observation):
    """Write what the followed seat of each game of `rows` observes; `observation` is int64 ``[len(rows), W / 8]``."""
    words = np.zeros(WORDS, np.int64)
    for i in range(len(rows)):
        public = games[rows[i]].public
        seat = seats[rows[i]]
        encode(layout_table[0], rules_table[0], public, seat, games[rows[i]].hands[seat], words, observation[i])
