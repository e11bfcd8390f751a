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

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cucumber_env.arena.seer import Seer
from cucumber_env.batch import RUNNING
from cucumber_env.envs.vector import SelfPlay
from cucumber_env.policies import Policy, PolicyError, check_seat, decide, make
from cucumber_env.rules import Rules

EVALUATION_EPISODE = 1 << 48
"""The episode number of every deal of the arena.

All random numbers are named by (seed, game, episode, round). Deal `d` under seed `s` is game `d` of seed `s`
in this episode. Everything else, training above all, counts episodes from 0 and never gets here: whatever
the seeds, no deal of training is a deal of evaluation."""

BATCH = 4096
"""Games played side by side."""

SHARES = 840
"""Least common multiple of 1 to 8: what seats can share evenly, whatever their number."""

Deals = int | range | np.ndarray
"""Of duplicate deals how many, or the numbers that name them."""

Progress = Callable[[int], object]
"""Called now and then with the number of deals finished since the last call."""


class TableError(ValueError):
    """A policy failed at a table; the cause is its `PolicyError`.

    Attributes:
        policy: Its name.
        deal: Number of the deal.
    """

    def __init__(self, message: str, policy: str, deal: int) -> None:
        super().__init__(message)
        self.policy, self.deal = policy, deal


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
        decisions: int16 ``[D, n, n]``, turns at which the seat had a choice.
    """

    episode: str
    penalties: np.ndarray
    outcomes: np.ndarray | None
    decisions: np.ndarray

    @property
    def scores(self) -> np.ndarray:
        """float64 ``[D, n, n]``: penalties of rounds (lower is better), outcomes of matches (higher is better)."""
        return self.penalties if self.outcomes is None else self.outcomes

    @property
    def shares(self) -> np.ndarray:
        """float64 ``[D, n, n]``: 1 where a round cost something, or the seat's share in winning the match."""
        return (self.penalties > 0).astype(np.float64) if self.outcomes is None else np.maximum(self.outcomes, 0)

    @classmethod
    def join(cls, parts: Sequence[Result]) -> Result:
        """The deals of several results at one table, one behind the other."""
        outcomes = [part.outcomes for part in parts if part.outcomes is not None]
        return cls(
            parts[0].episode,
            np.concatenate([part.penalties for part in parts]),
            np.concatenate(outcomes) if outcomes else None,
            np.concatenate([part.decisions for part in parts]),
        )

    def select(self, deals: np.ndarray) -> Result:
        """Some of the deals, by row."""
        outcomes = None if self.outcomes is None else self.outcomes[deals]
        return Result(self.episode, self.penalties[deals], outcomes, self.decisions[deals])

    def turned(self, turn: int) -> Result:
        """The same games as those of the table that begins with the policy at position `turn`."""
        rotations = (np.arange(self.penalties.shape[1]) - turn) % self.penalties.shape[1]
        outcomes = None if self.outcomes is None else self.outcomes[:, rotations]
        return Result(self.episode, self.penalties[:, rotations], outcomes, self.decisions[:, rotations])

    def of(self, position: int, values: np.ndarray) -> np.ndarray:
        """Of `values` ``[D, n, n]`` by seat, those of the policy at `position` of the table, ``[D, n]``."""
        rotations = np.arange(values.shape[1])
        return np.asarray(values[:, rotations, (position + rotations) % values.shape[2]])


def play(
    table: Sequence[str | Policy],
    *,
    rules: Rules | str | Mapping[str, Any] = "cucumber",
    deals: Deals = 1000,
    seed: int = 0,
    episode: str = "round",
    batch: int = BATCH,
    progress: Progress | None = None,
) -> Result:
    """Play every deal under all rotations of the seats.

    Args:
        table: A policy, or the name of one, for every seat.
        rules: Rules, a preset with changes such as ``"cucumber,hand_size=3"``, or a mapping of fields.
        deals: How many, or the different numbers ≥ 0 that name them: ``range(1000, 2000)`` is the second thousand
            of ``range(2000)``, with the same results.
        seed: Any integer ≥ 0; never shares a deal with training, see `EVALUATION_EPISODE`.
        episode: ``"round"``, or ``"match"`` for whole matches (a deal is then all rounds of the match).
        batch: Games played side by side; the results do not depend on it.
        progress: Told of finished deals.

    Raises:
        ValueError, TypeError: an argument out of range, or a policy that cannot sit at such a table, by name.
        TableError: a policy raised an error or answered what it may not; names the policy, the deal and the turn.
    """
    policies = [make(policy) for policy in table]
    rules = Rules.of(rules)
    players = rules.check_players(len(policies), name="seats at the table")
    check_table(policies, rules, episode)
    numbers = deal_numbers(deals)
    if isinstance(batch, bool) or not isinstance(batch, int | np.integer) or batch < 1:
        raise ValueError(f"batch={batch!r} must be an integer ≥ 1")
    by_identity = {id(policy): policy for policy in policies}
    distinct, seated, seating_of = seatings([id(policy) for policy in policies])
    together = min(max(1, batch // len(seated)), len(numbers))
    games = SelfPlay(
        rules,
        num_games=together * len(seated),
        num_players=players,
        episode=episode,
        autoreset=False,
        observe=False,
    )
    parts = []
    for first in range(0, len(numbers), together):
        part = numbers[first : first + together]
        parts.append(_play_batch(games, [by_identity[each] for each in distinct], seated, part, seed))
        if progress is not None:
            progress(len(part))
    penalties, outcomes, decisions = (np.concatenate(arrays)[:, seating_of] for arrays in zip(*parts, strict=True))
    return Result(episode, penalties, outcomes if episode == "match" else None, decisions)


def check_table(policies: Sequence[Policy], rules: Rules, episode: str) -> None:
    """Refuse policies that cannot sit at a table with as many seats as there are policies.

    Raises:
        ValueError: names the policy, and says where it can.
    """
    for policy in {id(policy): policy for policy in policies}.values():
        check_seat(policy, rules, len(policies), episode)


def deal_numbers(deals: Deals) -> np.ndarray:
    """The numbers that name the deals, int64 ``[D]``.

    Raises:
        ValueError, TypeError: there are none, one comes twice, or they are no numbers ≥ 0.
    """
    if isinstance(deals, np.ndarray) and deals.ndim == 1 and deals.dtype.kind in "iu":
        numbers, different = deals.astype(np.int64), len(np.unique(deals)) == len(deals)
    elif isinstance(deals, bool) or not isinstance(deals, int | np.integer | range):
        raise TypeError(f"deals={deals!r} must be an integer ≥ 1 or a range, got {type(deals).__name__}")
    else:
        several = deals if isinstance(deals, range) else range(int(deals))
        numbers, different = np.arange(several.start, several.stop, several.step), True
    if not len(numbers) or numbers.min() < 0 or not different:
        raise ValueError(f"deals={deals!r} is out of range; allowed: an integer ≥ 1, or different numbers ≥ 0")
    return numbers


def seatings(table: Sequence[Hashable]) -> tuple[list[Any], np.ndarray, np.ndarray]:
    """The different members of a table, the different ways of seating them over the rotations, and which is which.

    Returns ``(distinct, seated [S, n], seating_of [n])``: at seat `s` of seating `i` sits ``distinct[seated[i, s]]``,
    and rotation `r` is seating ``seating_of[r]``. Rotations that put the same members in the same seats are the same
    games, so a table of one policy alone is played once. Seatings come in the order of their first rotations.
    """
    distinct = list(dict.fromkeys(table))
    players = len(table)
    seats = [
        tuple(distinct.index(table[(seat - turn) % players]) for seat in range(players)) for turn in range(players)
    ]
    different = list(dict.fromkeys(seats))
    return distinct, np.array(different), np.array([different.index(each) for each in seats])


def _play_batch(
    games: SelfPlay, policies: list[Policy], seated: np.ndarray, numbers: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Penalties, outcomes and decisions, ``[len(numbers), S, n]`` each, of some deals under all `S` seatings."""
    deals = np.repeat(numbers, len(seated))
    sits = np.tile(seated, (len(numbers), 1))
    rewards = np.zeros((len(deals), games.num_players))
    decisions = np.zeros((len(deals), games.num_players), np.int16)
    rows = np.arange(len(deals))
    at = games.reset(seed=seed, rows=rows, games=deals, episodes=EVALUATION_EPISODE)
    while len(rows):
        turn = at.turn[rows]
        decisions[rows, turn] += np.count_nonzero(at.mask[rows], axis=1) > 1
        mover = sits[rows, turn]
        actions = np.empty(len(rows), np.int64)
        for index, policy in enumerate(policies):
            mine = np.flatnonzero(mover == index)
            if len(mine):
                actions[mine] = _ask(policy, games, rows[mine], sits[rows[mine]], policies)
        at = games.step(actions, rows=rows)
        running = at.done[rows] == RUNNING
        ended = rows[~running]
        rewards[ended] = at.rewards[ended]  # an outcome is paid with the last action of a match
        rows = rows[running]
    shape = (len(numbers), len(seated), games.num_players)
    field = "penalties" if games.episode == "round" else "totals"
    penalties = games.games["public"][field][: len(deals), : games.num_players].astype(np.float64)
    # Outcomes are whole multiples of 1/840, up to the rounding of float32.
    outcomes = np.rint(rewards * SHARES) / SHARES
    return penalties.reshape(shape), outcomes.reshape(shape), decisions.reshape(shape)


def _ask(policy: Policy, games: SelfPlay, rows: np.ndarray, sits: np.ndarray, policies: Sequence[Policy]) -> np.ndarray:
    """The actions that `policy` takes in the games of `rows`, int64 ``[k]``; who sits where is for the seer alone.

    Raises:
        TableError: it failed.
    """
    try:
        if isinstance(policy, Seer):
            return policy.foresee(games, rows, sits, policies)
        return decide(policy, games.turns(rows))
    except PolicyError as error:
        row = rows[error.row]
        deal, public = int(games.games["game"][row]), games.games["public"][row]
        raise TableError(
            f"{error} (deal {deal}, seat {public['turn']}, move {public['moves']})", error.policy, deal
        ) from error
