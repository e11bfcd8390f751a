"""Many tables at once: `SelfPlay`, which sees all seats, for trainers and evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cucumber_env import batch
from cucumber_env.batch import Buffers
from cucumber_env.observation import COUNT_BITS, Layout
from cucumber_env.policies import Turns
from cucumber_env.rules import Rules
from cucumber_env.state import VIEW, as_records, as_table, compile_rules


class SelfPlay:
    """Games in lock-step, every seat asked in its turn: the raw face for self-play.

    Row `i` of every array is game `i`. ``reset`` and ``step`` return the same `Buffers` each time, overwritten by
    the next call; copy what is to be kept. A seat's reward may arrive on anybody's move: it belongs to that
    seat's last decision.

    Args:
        rules: Rules, a preset with changes such as ``"cucumber,hand_size=3"``, or a mapping of fields.
        num_games: Games played side by side.
        num_players: Seats at each table.
        episode: ``"round"`` or ``"match"``.
        reward: ``"points"``, ``"zero_sum"`` (default for rounds) or ``"outcome"`` (default for matches).
        max_rounds: Rounds after which a match is truncated, or None.
        skip_forced: Let the kernel play turns with one legal action. The first turn of an episode can still be
            forced: a step never crosses the end of an episode.
        autoreset: Begin the next episode in the step that ends one; otherwise finished rows wait for `reset`.
        seats: None for the table's own layout, 8 for the layout that is the same for every table.
        observe: Whether to write observations; without, ``Buffers.observation`` has no columns.
        chip_cost: What coming back by a chip costs, in units of reward.

    Raises:
        ValueError, TypeError: an argument out of range, named.

    Example:
        >>> games = SelfPlay(num_games=2, num_players=4)
        >>> at = games.reset(seed=1)
        >>> at = games.step(at.mask.argmax(axis=1))
        >>> at.observation.shape, at.rewards.shape
        ((2, 288), (2, 4))
    """

    def __init__(
        self,
        rules: Rules | str | Mapping[str, Any] = "cucumber",
        *,
        num_games: int = 1,
        num_players: int = 4,
        episode: str = "round",
        reward: str | None = None,
        max_rounds: int | None = None,
        skip_forced: bool = True,
        autoreset: bool = True,
        seats: int | None = None,
        observe: bool = True,
        chip_cost: float = 0.0,
    ) -> None:
        if isinstance(num_games, bool) or not isinstance(num_games, int | np.integer) or num_games < 1:
            raise ValueError(f"num_games={num_games!r} must be an integer ≥ 1")
        for name, flag in (("skip_forced", skip_forced), ("autoreset", autoreset), ("observe", observe)):
            if not isinstance(flag, bool | np.bool_):
                raise TypeError(f"{name}={flag!r} must be True or False")
        self.rules = Rules.of(rules)
        self.num_games = int(num_games)
        self.num_players = self.rules.check_players(num_players)
        self.episode = episode
        self.options = batch.make_options(
            rules=self.rules,
            num_players=num_players,
            episode=episode,
            reward=reward,
            max_rounds=max_rounds,
            skip_forced=skip_forced,
            autoreset=autoreset,
            chip_cost=chip_cost,
        )
        self.layout = Layout.of(self.rules, self.num_players, episode, seats)
        self.turns_played = 0
        width = self.layout.size if observe else 0
        games = batch.new_games(self.num_games)
        self._own(games, Buffers.new(self.num_games, width, self.rules.num_actions, self.num_players))

    def _own(self, games: np.ndarray, buffers: Buffers) -> None:
        self.games, self.buffers = games, buffers
        self._tables = (compile_rules(self.rules), self.layout.compiled, self.options)
        columns = buffers.observation.shape[1] // 8
        self._words = buffers.observation.view(np.int64) if columns else np.zeros((self.num_games, 0), np.int64)
        self._rows = np.arange(self.num_games)

    def __getstate__(self) -> dict[str, Any]:
        """All but what can be made again: tables and views of the buffers."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_tables", "_words", "_rows")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Records in arrays of this process's own types, see `as_table`."""
        self.__dict__.update(state)
        self.options = as_table(state["options"], batch.OPTIONS)
        games = batch.new_games(self.num_games)
        games[:] = state["games"]
        self._own(games, state["buffers"])

    def reset(
        self,
        *,
        seed: int = 0,
        rows: np.ndarray | None = None,
        games: np.ndarray | None = None,
        episodes: np.ndarray | int = 0,
    ) -> Buffers:
        """Begin an episode in each game of `rows` (all by default).

        Args:
            seed: Any integer ≥ 0.
            rows: The games to begin: int ``[k]``, all different, or bool ``[num_games]``.
            games: int64 ``[k]``, the numbers that name them under the seed; by default the rows themselves.
            episodes: int64 ``[k]`` or one number: which episode of each.

        Raises:
            ValueError, TypeError: rows that are no games of this object, or numbers below 0; named.
        """
        rows = self._checked_rows(rows)
        games = rows if games is None else self._one_each("games", games, rows)
        episodes = self._one_each("episodes", episodes, rows)
        rules, layout, options = self._tables
        batch.reset(rules, options, self.games, rows, batch.seed_word(seed), games, episodes)
        self.buffers.rewards[rows] = 0
        self.buffers.done[rows] = 0
        batch.observe(rules, layout, self.games, rows, self.buffers.turn, self.buffers.mask, self._words)
        return self.buffers

    def step(self, actions: np.ndarray, *, rows: np.ndarray | None = None) -> Buffers:
        """Play one action in each game of `rows` (all by default).

        Args:
            actions: int ``[k]``.
            rows: The games to move on: int ``[k]``, all different, or bool ``[num_games]``. All rewards of the other
                rows are 0.

        Raises:
            ValueError, TypeError: an illegal action, a game that is over or has not begun, or rows that are no games
                of this object; nothing has been played then.
        """
        rows = self._checked_rows(rows)
        actions = self._one_each("actions", actions, rows, broadcast=False)
        rules, layout, options = self._tables
        bad = batch.first_illegal(rules, self.games, rows, actions)
        if bad >= 0:
            raise ValueError(self._illegal(int(rows[bad]), int(actions[bad])))
        at = self.buffers
        at.rewards.fill(0)
        self.turns_played += batch.step(
            rules, layout, options, self.games, rows, actions, at.rewards, at.done, at.turn, at.mask, self._words
        )
        return at

    def turns(self, rows: np.ndarray | None = None) -> Turns:
        """The decisions that the games of `rows` (all by default) wait for, as policies see them.

        Raises:
            ValueError, TypeError: a game that waits for none, or rows that are no games of this object.
        """
        rows = self._checked_rows(rows)
        idle = np.flatnonzero(~self.buffers.mask[rows].any(axis=1))
        if len(idle):
            raise ValueError(f"game {rows[idle[0]]} waits for no decision; reset it first")
        views = as_records(np.zeros(len(rows), VIEW))
        batch.views(self.games, rows, views)
        return Turns(self.rules, self.num_players, self.episode, views, self.buffers.mask[rows], self.draws(rows))

    def hidden(self, rows: np.ndarray | None = None) -> np.ndarray:
        """What the seats to move do not see: the hands of the others, int8 ``[k, (seats - 1) * 52]``.

        For critics in training and for spectators; no policy is ever given this. Opponents clockwise, each with
        thermometers of the counts by rank, as in the observation.
        """
        rows = self._checked_rows(rows)
        hands = np.empty((len(rows), (self.layout.seats - 1) * COUNT_BITS), np.int8)
        batch.hidden_hands(self.games, rows, self.layout.seats, hands)
        return hands

    def draws(self, rows: np.ndarray | None = None) -> np.ndarray:
        """The uniform numbers in [0, 1) of the coming decisions of `rows` (all by default), float64 ``[k]``."""
        rows = self._checked_rows(rows)
        u = np.empty(len(rows))
        batch.draws(self.games, rows, u)
        return u

    def _checked_rows(self, rows: Any) -> np.ndarray:
        """Indices of games, int64 ``[k]``: compiled code trusts them."""
        if rows is None:
            return self._rows
        array = np.asarray(rows)
        if array.dtype == bool and array.shape == (self.num_games,):
            return np.flatnonzero(array)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise TypeError(
                f"rows of dtype {array.dtype} and shape {array.shape}; expected int [k], or bool [{self.num_games}]"
            )
        if array.size and not (0 <= array.min() and array.max() < self.num_games):
            raise ValueError(
                f"rows from {array.min()} to {array.max()} are out of range; allowed: 0 to {self.num_games - 1}"
            )
        named = np.zeros(self.num_games, bool)
        named[array.astype(np.int64)] = True
        if np.count_nonzero(named) < array.size:
            raise ValueError("rows name a game twice; each can make one move in a step")
        return array.astype(np.int64)

    def _one_each(self, name: str, values: Any, rows: np.ndarray, *, broadcast: bool = True) -> np.ndarray:
        """A number ≥ 0 for each of `rows`, int64 ``[k]``; one number may stand for all, if `broadcast`."""
        array = np.asarray(values)
        if array.size and array.dtype.kind not in "iu":
            raise TypeError(f"{name} of dtype {array.dtype}; expected integers")
        if array.shape != rows.shape and not (broadcast and array.ndim == 0):
            raise ValueError(f"{name} of shape {array.shape} for {len(rows)} games; expected ({len(rows)},)")
        if broadcast and array.size and array.min() < 0:
            raise ValueError(f"{name} hold {array.min()}; allowed: 0 and more")
        return np.ascontiguousarray(np.broadcast_to(array.astype(np.int64), rows.shape))

    def _illegal(self, row: int, action: int) -> str:
        if self.games["public"]["players"][row] == 0:
            return f"game {row} has not begun; reset it before stepping it"
        if self.buffers.turn[row] < 0:
            return f"game {row} is over; reset it before stepping it"
        legal = np.flatnonzero(self.buffers.mask[row]).tolist()
        return f"action {action} of seat {self.buffers.turn[row]} in game {row} is illegal; legal: {legal}"
