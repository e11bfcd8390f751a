"""Games with a learner at one seat and policies at the others: the engine of both Gymnasium faces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cucumber_env import batch, one_seat, policies
from cucumber_env.batch import TERMINATED
from cucumber_env.observation import Layout
from cucumber_env.policies import FunctionPolicy, Policy, Turns, check_seat, decide
from cucumber_env.rewards import reward_range
from cucumber_env.rules import MAX_SEATS, Rules
from cucumber_env.state import NOBODY, VIEW, as_records, as_table, compile_rules

Opponent = str | Policy | Callable[[Turns], np.ndarray]
"""A policy's name, a policy, or a function from `Turns` of length B to legal actions int ``[B]``."""

NO_ACTION = -1
"""In `LearnerGames.illegal`: the last step was legal."""


class LearnerGames:
    """Games side by side, each with one learner; opponents are asked in batches between the learners' turns.

    Row `i` of every array is game `i`; a game waits either for its learner or for `begin`. Arguments are those
    of `envs.single_agent.CucumberEnv`, and `num_games`.

    Attributes:
        games: `GAME` records ``[B]``.
        seats: int64 ``[B]``, the learner's seat in this episode.
        mask: int8 ``[B, A]``, the learner's legal actions; ones when its episode is over.
        done: int8 ``[B]``: `batch.RUNNING`, `TERMINATED` or `TRUNCATED`, for the learner.
        rewards: float64 ``[B]``, what the learner earned since its last decision.
        illegal: int64 ``[B]``, the illegal action that ended the episode in the last step, or `NO_ACTION`.
        penalty: Return of an episode with an illegal action: the lower end of `rewards.reward_range`.
        layout: Layout of the observation.
    """

    def __init__(
        self,
        num_games: int,
        *,
        rules: Rules | str | Mapping[str, Any],
        num_players: int,
        episode: str,
        opponents: Opponent | Sequence[Opponent],
        seat: str | int,
        reward: str | None,
        max_rounds: int | None,
        skip_forced: bool,
        seats: int | None,
        chip_cost: float,
    ) -> None:
        if not isinstance(skip_forced, bool | np.bool_):
            raise TypeError(f"skip_forced={skip_forced!r} must be True or False")
        self.rules = Rules.of(rules)
        self.num_players = self.rules.check_players(num_players)
        self.episode = episode
        options = batch.make_options(
            rules=self.rules,
            num_players=self.num_players,
            episode=episode,
            reward=reward,
            max_rounds=max_rounds,
            chip_cost=chip_cost,
        )
        self.layout = Layout.of(self.rules, self.num_players, episode, seats)
        self.policies = as_policies(opponents)
        for policy in self.policies:
            try:
                check_seat(policy, self.rules, self.num_players, episode)
            except ValueError as error:
                raise ValueError(f"opponents: {error}") from error
        self.penalty = reward_range(self.rules, options)[0]
        self.games = batch.new_games(num_games)
        self.seats = np.zeros(num_games, np.int64)
        self.mask = np.ones((num_games, self.rules.num_actions), np.int8)
        self.done = np.full(num_games, TERMINATED, np.int8)
        self.rewards = np.zeros(num_games)
        self.illegal = np.full(num_games, NO_ACTION)
        self._skip_forced = bool(skip_forced)
        self._choice = seat_choice(seat, self.num_players)
        self._returns = np.zeros(num_games)
        self._turn = np.full(num_games, NOBODY, np.int32)
        self._chosen = np.zeros((num_games, MAX_SEATS), np.int64)
        self._tables = (compile_rules(self.rules), options)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but layout and rules as compiled code reads them, which all tables of a process share."""
        state = self.__dict__.copy()
        del state["layout"], state["_tables"]
        return {**state, "seats_of_layout": self.layout.seats, "options": self._tables[1]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Records in arrays of this process's own types, see `as_table`."""
        seats, options, games = state.pop("seats_of_layout"), state.pop("options"), state["games"]
        self.__dict__.update(state)
        self.games = batch.new_games(len(games))
        self.games[:] = games
        self.layout = Layout.of(self.rules, self.num_players, self.episode, seats)
        self._tables = (compile_rules(self.rules), as_table(options, batch.OPTIONS))

    def name(self, rows: np.ndarray, seeds: np.ndarray | np.uint64, numbers: np.ndarray | int) -> None:
        """Make `rows` the games `numbers` under `seeds` (words of `batch.seed_word`); `begin` starts at episode 0."""
        self.games["seed"][rows] = seeds
        self.games["game"][rows] = numbers
        self.games["episode"][rows] = -1

    def begin(self, rows: np.ndarray) -> None:
        """Begin the next episode in `rows` (int64 ``[k]``) and play it up to the learner's first turn."""
        self.rewards[rows] = 0
        self.illegal[rows] = NO_ACTION
        self._returns[rows] = 0
        one_seat.begin_next(
            *self._tables,
            self.games,
            rows,
            self._choice,
            len(self.policies),
            self.seats,
            self._chosen,
            self.done,
            self._turn,
            self.mask,
        )
        self._let_others_play(rows, False)  # a learner's first turn is never skipped

    def step(self, rows: np.ndarray, actions: np.ndarray) -> None:
        """Play the learners' `actions` (int64 ``[k]``, each in [0, A)) in running `rows`, then all others' turns.

        An illegal action ends the episode with `penalty` as its return.
        """
        self.rewards[rows] = 0
        self.illegal[rows] = NO_ACTION
        legal = self.mask[rows, actions].astype(bool)
        if not legal.all():
            self._stop(rows[~legal], actions[~legal])
            rows, actions = rows[legal], actions[legal]
        self._play(rows, actions, self._skip_forced)
        self._let_others_play(rows, self._skip_forced)
        self._returns[rows] += self.rewards[rows]

    def observe(self, rows: np.ndarray) -> np.ndarray:
        """What the learners of `rows` observe, to move or not: a new int8 array ``[k, W]``."""
        observation = np.empty((len(rows), self.layout.size), np.int8)
        rules, _ = self._tables
        one_seat.observe(rules, self.layout.compiled, self.games, rows, self.seats, observation.view(np.int64))
        return observation

    def views(self, rows: np.ndarray) -> np.ndarray:
        """What the learners of `rows` may know, to move or not: new `VIEW` records ``[k]``."""
        views = as_records(np.empty(len(rows), VIEW))
        one_seat.views(self.games, rows, self.seats, views)
        return views

    def turns(self, rows: np.ndarray) -> Turns:
        """The decisions that running `rows` wait for, as policies see them."""
        views = as_records(np.empty(len(rows), VIEW))
        u = np.empty(len(rows))
        batch.views(self.games, rows, views)
        batch.draws(self.games, rows, u)
        return Turns(self.rules, self.num_players, self.episode, views, self.mask[rows], u)

    def opponents(self, row: int) -> dict[int, Policy]:
        """The policy at every seat but the learner's, in this episode of game `row`."""
        return {
            seat: self.policies[self._chosen[row, seat]] for seat in range(self.num_players) if seat != self.seats[row]
        }

    def _play(self, rows: np.ndarray, actions: np.ndarray, skip_own: bool) -> None:
        """One action in each game of `rows`, whoever is to move, and what is forced then."""
        one_seat.step(
            *self._tables,
            self.games,
            rows,
            actions,
            self.seats,
            skip_own,
            self.rewards,
            self.done,
            self._turn,
            self.mask,
        )

    def _let_others_play(self, rows: np.ndarray, skip_own: bool) -> None:
        """Ask opponents until every game of `rows` waits for its learner or is over for it."""
        while True:
            turn = self._turn[rows]
            rows = rows[(turn != self.seats[rows]) & (turn != NOBODY)]
            if not len(rows):
                return
            self._play(rows, self._ask(rows), skip_own)

    def _ask(self, rows: np.ndarray) -> np.ndarray:
        """What the opponents to move in `rows` play, each policy asked once."""
        if len(self.policies) == 1:
            return decide(self.policies[0], self.turns(rows))
        chosen = self._chosen[rows, self._turn[rows]]
        actions = np.empty(len(rows), np.int64)
        for index in np.unique(chosen):
            mine = chosen == index
            actions[mine] = decide(self.policies[index], self.turns(rows[mine]))
        return actions

    def _stop(self, rows: np.ndarray, actions: np.ndarray) -> None:
        """End the episodes of `rows`, whose learners chose illegal `actions`."""
        self.illegal[rows] = actions
        self.rewards[rows] = self.penalty - self._returns[rows]
        self.done[rows] = TERMINATED
        self._turn[rows] = NOBODY
        self.mask[rows] = 1


def as_policies(opponents: Opponent | Sequence[Opponent]) -> list[Policy]:
    """The policies that opponents are drawn from.

    Raises:
        ValueError: an empty list, or a name that no policy answers to.
        TypeError: something that is no opponent.
    """
    several = list(opponents) if isinstance(opponents, list | tuple) else [opponents]
    if not several:
        raise ValueError(
            "opponents=[] is empty; give a policy's name, a policy, a function of Turns, or a list of these"
        )
    return [_as_policy(opponent) for opponent in several]


def _as_policy(opponent: Any) -> Policy:
    if isinstance(opponent, str):
        try:
            return policies.make(opponent)
        except ValueError as error:
            raise ValueError(f"opponents: {error}") from None
    if isinstance(opponent, Policy):
        return opponent
    if callable(opponent) and not isinstance(opponent, type):
        return FunctionPolicy(opponent)
    raise TypeError(
        f"opponents={opponent!r} must be a policy's name, a policy, a function of Turns, or a list of these, "
        f"got {type(opponent).__name__}"
    )


def seat_choice(seat: str | int, num_players: int) -> int:
    """The argument `seat` as compiled code reads it.

    Raises:
        ValueError, TypeError: neither ``"random"``, ``"rotate"`` nor a seat at the table.
    """
    allowed = f"allowed: 'random', 'rotate', or 0 to {num_players - 1}"
    if isinstance(seat, str):
        if seat not in ("random", "rotate"):
            raise ValueError(f"seat={seat!r} is not one of its values; {allowed}")
        return one_seat.RANDOM_SEAT if seat == "random" else one_seat.ROTATING_SEAT
    if isinstance(seat, bool) or not isinstance(seat, int | np.integer):
        raise TypeError(f"seat={seat!r} must be a word or an integer, got {type(seat).__name__}; {allowed}")
    if not 0 <= seat < num_players:
        raise ValueError(f"seat={seat} is out of range; {allowed}")
    return int(seat)
