"""Policies at a table, on duplicate deals.

Every deal is played once for each rotation of the seats, with the same cards, the same dealer and the same
uniform number for each move (common random numbers), so that luck of the deal falls on all policies alike
and policies that play alike score alike, to the last bit. All games of a batch advance together, and each
policy is asked once a step for all of its decisions; finished games leave the batch.

>>> from cucumber_env.policies import make
>>> result = play([make("random")] * 4, deals=3, seed=1)
>>> result.penalties.shape
(3, 4, 4)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cucumber_env.batch import RUNNING
from cucumber_env.envs.vector import SelfPlay
from cucumber_env.policies import Policy, decide, make
from cucumber_env.rules import Rules

EVALUATION_EPISODE = 1 << 48
"""The episode number of every deal of the arena.

All random numbers are named by (seed, game, episode, round). Deal `d` under seed `s` is game `d` of seed `s`
in this episode. Everything else, training above all, counts episodes from 0 and never gets here: whatever
the seeds, no deal of training is a deal of evaluation."""

BATCH = 4096
"""Games played side by side."""

_SHARES = 840
"""Least common multiple of 1 to 8: what seats can share evenly, whatever their number."""

Progress = Callable[[int], object]
"""Called now and then with the number of deals finished since the last call."""


@dataclass(frozen=True)
class Result:
    """What came of `D` deals in `n` rotations at a table of `n` seats.

    Under rotation `r` the policy at position `p` of the table's list sits at seat ``(p + r) % n``.

    Attributes:
        episode: ``"round"`` or ``"match"``.
        penalties: float64 ``[D, n, n]`` by deal, rotation and seat, in points: what the round cost, or the total at
            the end of the match.
        outcomes: float64 ``[D, n, n]``, the reward `outcome` of a match: +1 shared by who won, −1 by who lost.
            None for rounds.
    """

    episode: str
    penalties: np.ndarray
    outcomes: np.ndarray | None

    @property
    def scores(self) -> np.ndarray:
        """float64 ``[D, n, n]``: penalties of rounds (lower is better), outcomes of matches (higher is better)."""
        return self.penalties if self.outcomes is None else self.outcomes

    @property
    def shares(self) -> np.ndarray:
        """float64 ``[D, n, n]``: 1 where a round cost something, or the seat's share in winning the match."""
        return (self.penalties > 0).astype(np.float64) if self.outcomes is None else np.maximum(self.outcomes, 0)

    def of(self, position: int, values: np.ndarray) -> np.ndarray:
        """Of `values` ``[D, n, n]`` by seat, those of the policy at `position` of the table, ``[D, n]``."""
        rotations = np.arange(values.shape[1])
        return np.asarray(values[:, rotations, (position + rotations) % values.shape[2]])


def play(
    table: Sequence[str | Policy],
    *,
    rules: Rules | str | Mapping[str, Any] = "cucumber",
    deals: int | range = 1000,
    seed: int = 0,
    episode: str = "round",
    batch: int = BATCH,
    progress: Progress | None = None,
) -> Result:
    """Play every deal under all rotations of the seats.

    Args:
        table: A policy, or the name of one, for every seat.
        rules: Rules, a preset with changes such as ``"cucumber,hand_size=3"``, or a mapping of fields.
        deals: How many, or the numbers that name them: ``range(1000, 2000)`` is the second thousand of
            ``range(2000)``, with the same results.
        seed: Any integer ≥ 0; never shares a deal with training, see `EVALUATION_EPISODE`.
        episode: ``"round"``, or ``"match"`` for whole matches (a deal is then all rounds of the match).
        batch: Games played side by side; the results do not depend on it.
        progress: Told of finished deals.

    Raises:
        ValueError, TypeError: an argument out of range, or a policy that answers what it may not, by name.
    """
    policies = [make(policy) for policy in table]
    rules = Rules.of(rules)
    players = rules.check_players(len(policies), name="seats at the table")
    numbers = _deal_numbers(deals)
    if isinstance(batch, bool) or not isinstance(batch, int | np.integer) or batch < 1:
        raise ValueError(f"batch={batch!r} must be an integer ≥ 1")
    distinct, seatings, seating_of = _seatings(policies)
    together = min(max(1, batch // len(seatings)), len(numbers))
    games = SelfPlay(
        rules,
        num_games=together * len(seatings),
        num_players=players,
        episode=episode,
        autoreset=False,
        observe=False,
    )
    parts = []
    for first in range(0, len(numbers), together):
        part = numbers[first : first + together]
        parts.append(_play_batch(games, distinct, seatings, part, seed))
        if progress is not None:
            progress(len(part))
    penalties, outcomes = (np.concatenate(arrays)[:, seating_of] for arrays in zip(*parts, strict=True))
    return Result(episode, penalties, outcomes if episode == "match" else None)


def _deal_numbers(deals: int | range) -> np.ndarray:
    """The numbers that name the deals, int64 ``[D]``."""
    if isinstance(deals, bool) or not isinstance(deals, int | np.integer | range):
        raise TypeError(f"deals={deals!r} must be an integer ≥ 1 or a range, got {type(deals).__name__}")
    numbers = deals if isinstance(deals, range) else range(int(deals))
    if len(numbers) < 1 or min(numbers[0], numbers[-1]) < 0:
        raise ValueError(f"deals={deals!r} is out of range; allowed: an integer ≥ 1, or a range of numbers ≥ 0")
    return np.array(numbers, np.int64)


def _seatings(policies: list[Policy]) -> tuple[list[Policy], np.ndarray, np.ndarray]:
    """The different policies, the different ways of seating them over the rotations, and which rotation is which.

    Returns ``(distinct, seatings [S, n], seating_of [n])``: at seat `s` of seating `i` sits
    ``distinct[seatings[i, s]]``. Rotations that put the same policies in the same seats are the same games,
    so a table of one policy alone is played once.
    """
    by_identity = {id(policy): policy for policy in policies}
    places = {identity: place for place, identity in enumerate(by_identity)}
    seats = np.arange(len(policies))
    position = (seats[None, :] - seats[:, None]) % len(policies)  # [rotation, seat]
    seated = np.array([places[id(policy)] for policy in policies])[position]
    seatings, seating_of = np.unique(seated, axis=0, return_inverse=True)
    return list(by_identity.values()), seatings, seating_of.reshape(-1)


def _play_batch(
    games: SelfPlay, policies: list[Policy], seatings: np.ndarray, numbers: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Penalties and outcomes, ``[len(numbers), S, n]`` each, of some deals under all `S` seatings."""
    deals = np.repeat(numbers, len(seatings))
    sits = np.tile(seatings, (len(numbers), 1))
    rewards = np.zeros((len(deals), games.num_players))
    rows = np.arange(len(deals))
    at = games.reset(seed=seed, rows=rows, games=deals, episodes=EVALUATION_EPISODE)
    while len(rows):
        mover = sits[rows, at.turn[rows]]
        actions = np.empty(len(rows), np.int64)
        for index, policy in enumerate(policies):
            mine = np.flatnonzero(mover == index)
            if len(mine):
                actions[mine] = _ask(policy, games, rows[mine])
        at = games.step(actions, rows=rows)
        running = at.done[rows] == RUNNING
        ended = rows[~running]
        rewards[ended] = at.rewards[ended]  # an outcome is paid with the last action of a match
        rows = rows[running]
    shape = (len(numbers), len(seatings), games.num_players)
    field = "penalties" if games.episode == "round" else "totals"
    penalties = games.games["public"][field][: len(deals), : games.num_players].astype(np.float64)
    # Outcomes are whole multiples of 1/840, up to the rounding of float32.
    return penalties.reshape(shape), (np.rint(rewards * _SHARES) / _SHARES).reshape(shape)


def _ask(policy: Policy, games: SelfPlay, rows: np.ndarray) -> np.ndarray:
    """The actions that `policy` takes in the games of `rows`, int64 ``[k]``, all legal."""
    turns = games.turns(rows)
    actions = np.asarray(decide(policy, turns))
    if actions.shape != rows.shape or actions.dtype.kind not in "iu":
        raise ValueError(
            f"policy {policy.name!r} answered {len(rows)} turns with {actions.dtype} of shape {actions.shape}; "
            f"expected integers of shape ({len(rows)},)"
        )
    inside = (actions >= 0) & (actions < turns.mask.shape[1])
    legal = inside & (turns.mask[np.arange(len(rows)), np.where(inside, actions, 0)] > 0)
    if not legal.all():
        wrong = int(np.argmin(legal))
        public = turns.views["public"][wrong]
        raise ValueError(
            f"policy {policy.name!r} chose action {actions[wrong]} in deal {games.games['game'][rows[wrong]]}, "
            f"seat {public['turn']}, move {public['moves']}; legal: {np.flatnonzero(turns.mask[wrong]).tolist()}"
        )
    return actions
