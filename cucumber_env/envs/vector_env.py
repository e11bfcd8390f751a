"""The Gymnasium face for many tables at once: learners in a batch, their opponents in batches too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from cucumber_env import batch
from cucumber_env.batch import RUNNING, TERMINATED, TRUNCATED
from cucumber_env.envs import RENDER_MODES
from cucumber_env.envs.learner import NO_ACTION, LearnerGames, Opponent
from cucumber_env.envs.single_agent import CucumberEnv, check_render_mode, reset_seed, table_texts
from cucumber_env.policies import Turns
from cucumber_env.rules import Rules

Info = dict[str, Any]


class CucumberVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """`CucumberEnv` many times in lock-step, ``gymnasium.make_vec("cucumber_env/Cucumber-v0", num_envs=...)``.

    Row `i` of every array is slot `i`. What a slot observes, earns and is told is what `CucumberEnv` returns for the
    same game, byte for byte, at any number of slots; all opponents that are to move are asked together.

    Seeds
        ``reset(seed=s)``: slot `i` plays game `i` under seed `s`, from episode 0 (Gymnasium's own vectors take seed
        ``s + i``, so that neighbouring seeds share their games). ``reset(seed=[s0, s1, ...])``: slot `i` plays game
        0 under seed `si`, as a `CucumberEnv` with that seed; None leaves the slot to its next episode.
        ``reset()``: the next episode of every slot.
    Autoreset
        ``metadata["autoreset_mode"]`` says what follows an episode's last step. ``SAME_STEP`` (default): the step
        returns the first observation and mask of the next episode, the last ones are in ``infos["final_obs"]`` and
        ``infos["final_info"]``. ``NEXT_STEP``: the next step ignores the action and begins the next episode, reward
        0. ``DISABLED``: the slot waits for ``reset(options={"reset_mask": bool [num_envs]})`` and may not be
        stepped before. Where an episode is over and the next has not begun, the mask is all ones, so that a softmax
        over legal actions stays finite.
    Infos
        ``action_mask`` int8 ``[num_envs, A]`` of all slots; ``illegal_action`` int64 in the slots whose episode an
        illegal action ended; each with the ``_``-prefixed bool array that says in which slots it holds.

    Args:
        num_envs: Number of slots.
        autoreset_mode: ``"SameStep"``, ``"NextStep"``, ``"Disabled"`` or an `AutoresetMode`.
        rules, num_players, episode, opponents, seat, reward, max_rounds, skip_forced, seats, chip_cost, render_mode:
            As in `CucumberEnv`, the same for all slots. ``seat="rotate"`` also differs from slot to slot.

    Raises:
        ValueError, TypeError: an argument out of range, named.

    Example:
        >>> import gymnasium, cucumber_env
        >>> envs = gymnasium.make_vec("cucumber_env/Cucumber-v0", num_envs=8, opponents="random")
        >>> observations, infos = envs.reset(seed=1)
        >>> observations, rewards, terminations, truncations, infos = envs.step(infos["action_mask"].argmax(axis=1))
        >>> observations.shape, rewards.shape
        ((8, 288), (8,))
    """

    metadata = CucumberEnv.metadata

    def __init__(
        self,
        num_envs: int = 1,
        *,
        autoreset_mode: str | AutoresetMode = AutoresetMode.SAME_STEP,
        rules: Rules | str | Mapping[str, Any] = "cucumber",
        num_players: int = 4,
        episode: str = "round",
        opponents: Opponent | Sequence[Opponent] = "highest",
        seat: str | int = "random",
        reward: str | None = None,
        max_rounds: int | None = None,
        skip_forced: bool = False,
        seats: int | None = None,
        chip_cost: float = 0.0,
        render_mode: str | None = None,
    ) -> None:
        self.autoreset_mode = _autoreset_mode(autoreset_mode)
        self.num_envs = _count(num_envs)
        self.render_mode = check_render_mode(render_mode)
        self._games = LearnerGames(
            self.num_envs,
            rules=rules,
            num_players=num_players,
            episode=episode,
            opponents=opponents,
            seat=seat,
            reward=reward,
            max_rounds=max_rounds,
            skip_forced=skip_forced,
            seats=seats,
            chip_cost=chip_cost,
        )
        self.rules = self._games.rules
        self.layout = self._games.layout
        self.penalty = self._games.penalty
        self.metadata = {**CucumberEnv.metadata, "autoreset_mode": self.autoreset_mode}
        self.single_observation_space = gymnasium.spaces.Box(0, 1, (self.layout.size,), np.int8)
        self.single_action_space = gymnasium.spaces.Discrete(self.rules.num_actions)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._all = np.arange(self.num_envs)
        self._begun = False

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, Info]:
        """Begin an episode in every slot, or in those of ``options["reset_mask"]``.

        Args:
            seed: Any integer ≥ 0, one for each slot (or None), or None for the next episode.
            options: May hold ``reset_mask``, bool ``[num_envs]``; it is left as it is. Nothing else is read.

        Returns:
            Observations int8 ``[num_envs, W]`` and infos of all slots, those that were not begun anew included.

        Raises:
            TypeError, ValueError: a seed or mask that is none, named; a first reset that leaves slots out.
        """
        rows = self._rows_to_reset(options)
        self._name(rows, seed)
        self._games.begin(rows)
        self._begun = True
        if self.render_mode == "human":
            self.render()
        return self._games.observe(self._all), self._infos(self._all)

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Info]:
        """Play an action in every slot, and all turns of others that follow.

        Args:
            actions: Integers ``[num_envs]`` in the action space; those of slots that begin anew are not read.

        Returns:
            Observations int8 ``[num_envs, W]``, rewards float64, terminations and truncations bool ``[num_envs]``,
            infos: all new arrays.

        Raises:
            ValueError: actions of another shape or outside of the action space.
            ResetNeeded: before the first `reset`, or (``DISABLED``) in slots whose episode is over.
        """
        games = self._games
        over = games.done != RUNNING
        if not self._begun or (self.autoreset_mode == AutoresetMode.DISABLED and over.any()):
            raise ResetNeeded(f"slots {np.flatnonzero(over).tolist()} have no episode; reset() them before step()")
        rows = np.flatnonzero(~over)
        games.step(rows, self._checked(actions, rows))
        if over.any():
            games.begin(np.flatnonzero(over))
        rewards = games.rewards.copy()
        terminations, truncations = games.done == TERMINATED, games.done == TRUNCATED
        finals: Info = {}
        if self.autoreset_mode == AutoresetMode.SAME_STEP and (games.done != RUNNING).any():
            finals = self._begin_again(np.flatnonzero(games.done != RUNNING))
        if self.render_mode == "human":
            self.render()
        return games.observe(self._all), rewards, terminations, truncations, {**finals, **self._infos(self._all)}

    def action_masks(self) -> np.ndarray:
        """The learners' legal actions as a new bool ``[num_envs, A]``; all True where an episode is over."""
        return self._games.mask.astype(bool)

    def turns(self) -> Turns:
        """The learners' decisions as policies see them.

        Raises:
            ResetNeeded: an episode is over, or none has begun.
        """
        if (self._games.done != RUNNING).any():
            raise ResetNeeded("there are slots without a turn; reset() them")
        return self._games.turns(self._all)

    @property
    def seats(self) -> np.ndarray:
        """The learners' seats in these episodes, int64 ``[num_envs]``."""
        return self._games.seats.copy()

    def render(self) -> tuple[str, ...] | None:
        """The tables as the learners see them: texts in mode ``ansi``, printed in mode ``human``, else nothing."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() was called without a render_mode; give one of: " + ", ".join(RENDER_MODES))
            return None
        texts = tuple(table_texts(self._games, self._all))
        if self.render_mode == "ansi":
            return texts
        print("\n".join(texts))
        return None

    def _rows_to_reset(self, options: dict[str, Any] | None) -> np.ndarray:
        """The slots of ``options["reset_mask"]``, all without one."""
        if options is None or "reset_mask" not in options:
            return self._all
        mask = options["reset_mask"]
        name, shape = "options['reset_mask']", (self.num_envs,)
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            kind = mask.dtype if isinstance(mask, np.ndarray) else type(mask).__name__
            raise TypeError(f"{name} must be a numpy array of bool, got {kind}")
        if mask.shape != shape:
            raise ValueError(f"{name} must have shape {shape}, got {mask.shape}")
        if not mask.any() or not (self._begun or mask.all()):
            raise ValueError(f"{name} must hold a slot to begin, and in the first reset all of them; got {mask}")
        return np.flatnonzero(mask)

    def _name(self, rows: np.ndarray, seed: int | Sequence[int | None] | None) -> None:
        """Say which games the slots `rows` play, as far as `seed` does or none has been given before."""
        if isinstance(seed, list | tuple | np.ndarray):
            self._name_each(rows, list(seed))
        elif seed is not None or not self._begun:
            word = reset_seed(self, seed)
            super().reset(seed=None if seed is None else int(word))
            self._games.name(rows, word, rows)

    def _name_each(self, rows: np.ndarray, seeds: list[int | None]) -> None:
        """The same with a seed for each slot; those of slots that are not to begin are not read."""
        if len(seeds) != self.num_envs:
            raise ValueError(f"seed holds {len(seeds)} seeds for {self.num_envs} slots; give one to each")
        words = {row: batch.seed_word(seeds[row], name=f"seed[{row}]") for row in rows if seeds[row] is not None}
        if not self._begun and len(words) < len(rows):
            self._games.name(rows, reset_seed(self, None), rows)
        self._games.name(np.array(list(words), np.int64), np.array(list(words.values()), np.uint64), 0)

    def _checked(self, actions: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The actions of `rows` as int64, in the action space."""
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,) or actions.dtype.kind not in "iu":
            raise ValueError(
                f"actions must be integers of shape ({self.num_envs},), got {actions.dtype} of shape {actions.shape}"
            )
        chosen = actions[rows].astype(np.int64)
        outside = (chosen < 0) | (chosen >= self.rules.num_actions)
        if outside.any():
            row = int(rows[outside.argmax()])
            raise ValueError(f"actions[{row}]={actions[row]} is not in the action space {self.single_action_space}")
        return chosen

    def _begin_again(self, rows: np.ndarray) -> Info:
        """Begin the next episodes of `rows`, whose last observations and infos are returned."""
        final_obs = np.full(self.num_envs, None, dtype=object)
        for row, observation in zip(rows.tolist(), self._games.observe(rows), strict=True):
            final_obs[row] = observation
        final_info = self._infos(rows)
        self._games.begin(rows)
        flags = self._flags(rows)
        return {"final_obs": final_obs, "_final_obs": flags, "final_info": final_info, "_final_info": flags.copy()}

    def _infos(self, rows: np.ndarray) -> Info:
        """The infos of `rows`, in Gymnasium's form: every key with the array of slots in which it holds."""
        flags = self._flags(rows)
        masks = np.zeros_like(self._games.mask)
        masks[rows] = self._games.mask[rows]
        infos: Info = {"action_mask": masks, "_action_mask": flags}
        illegal = flags & (self._games.illegal != NO_ACTION)
        if illegal.any():
            infos["illegal_action"] = np.where(illegal, self._games.illegal, 0)
            infos["_illegal_action"] = illegal
        return infos

    def _flags(self, rows: np.ndarray) -> np.ndarray:
        flags = np.zeros(self.num_envs, np.bool_)
        flags[rows] = True
        return flags


def _autoreset_mode(mode: str | AutoresetMode) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        allowed = ", ".join(repr(each.value) for each in AutoresetMode)
        raise ValueError(f"autoreset_mode={mode!r} is not one of its values; allowed: {allowed}") from None


def _count(num_envs: int) -> int:
    if isinstance(num_envs, bool) or not isinstance(num_envs, int | np.integer) or num_envs < 1:
        raise ValueError(f"num_envs={num_envs!r} must be an integer ≥ 1")
    return int(num_envs)
