"""The Gymnasium face: one learner at the table, policies at the other seats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded

from cucumber_env import batch
from cucumber_env.batch import RUNNING, TERMINATED, TRUNCATED
from cucumber_env.envs import RENDER_MODES
from cucumber_env.envs.learner import NO_ACTION, LearnerGames, Opponent
from cucumber_env.policies import Policy, Turns
from cucumber_env.rules import Rules


class CucumberEnv(gymnasium.Env[np.ndarray, np.int64]):
    """One learner's seat at a table of Cucumber, ``gymnasium.make("cucumber_env/Cucumber-v0")``.

    A step plays the learner's action and then everybody else's until the learner is to move again or its episode is
    over. Only last tricks score, mostly on other people's moves: **a step returns all that its seat has earned
    since**, so that the rewards of an episode add up to what the seat earns at the table.

    Observation
        ``Box(0, 1, (W,), int8)``, the row that `Layout` describes, seen from the learner's seat; at the end of an
        episode the table as it stands then. It is the plain row and not a dictionary with the mask: every
        network that reads vectors takes it as it is, the wrappers for dictionaries are not needed, and the users of
        masks look for them in ``info`` or ask `action_masks`. (The mask of card plays is in the row too: `legal`.)
    Action
        ``Discrete(13)``, the rank to play from 2 to A, or ``Discrete(23)`` under rules with other decisions.
    Mask
        ``info["action_mask"]``, int8 ``[A]``, from `reset` and `step`, and `action_masks`, bool ``[A]``. When the
        episode is over it is all ones: no action is left to be refused, and targets that take a maximum or a softmax
        over legal actions stay finite.
    Reward
        As `reward` says, see below; float. An **illegal action** is not repaired: it ends the episode (`terminated`)
        with a reward that brings its return down to the minimum of `rewards.reward_range`, attribute `penalty`, so
        that no legal play is worse; ``info["illegal_action"]`` then holds the action.
    End
        `terminated` when the round or match is over, and when the learner is out of the match for good: no revival
        can be offered and no sudden death is left to it. The ``outcome`` of a learner who is out, −1/(n−1), is
        paid then, though the others play on. `truncated` only after `max_rounds`, when the match goes on
        undecided for the learner. Never both.
    Randomness
        ``reset(seed=s)`` begins episode 0 of game 0 under seed s, ``reset()`` the next episode: the same cards as in
        every other face. The seats and the opponents that are drawn are functions of the same three numbers, and so
        are the opponents' moves, if they draw with ``Turns.u``. Without any seed the first `reset` takes one
        from the operating system, which `np_random_seed` tells.

    Args:
        rules: Rules, a preset with changes such as ``"cucumber,hand_size=3"``, or a mapping of fields.
        num_players: Seats at the table.
        episode: ``"round"`` or ``"match"``.
        opponents: A policy's name, a `Policy`, a function from `Turns` of length B to actions int ``[B]``, or a list
            of these, from which every other seat draws one for each episode.
        seat: The learner's seat: a number, ``"random"`` (drawn for each episode) or ``"rotate"`` (one on, each time).
        reward: ``"points"``, ``"zero_sum"`` (default for rounds) or ``"outcome"`` (default for matches).
        max_rounds: Rounds after which a match is truncated, or None.
        skip_forced: Also play the learner's turns with one legal action, but for the first of an episode (a step never
            crosses the end of an episode, and a round of one card has no other turn). Off by default, so that a
            step is a turn and nothing is played behind the learner's back; training is quicker with it, as over
            half of all turns are forced and teach nothing.
        seats: None for the table's own layout, 8 for the layout that is the same for every table.
        chip_cost: What coming back by a chip costs, in units of reward.
        render_mode: ``"human"`` prints the table at every reset and step, ``"ansi"`` makes `render` return it as text.

    All arguments are JSON-friendly, unless policies are given as objects.

    Raises:
        ValueError, TypeError: an argument out of range, named.

    Attributes:
        rules: Rules in force.
        layout: Layout of the observation.
        penalty: Return of an episode that an illegal action ended.

    Example:
        >>> import gymnasium, cucumber_env
        >>> env = gymnasium.make("cucumber_env/Cucumber-v0", num_players=4, opponents=["highest", "random"])
        >>> observation, info = env.reset(seed=1)
        >>> over = False
        >>> while not over:
        ...     action = env.action_space.sample(info["action_mask"])
        ...     observation, reward, terminated, truncated, info = env.step(action)
        ...     over = terminated or truncated
    """

    metadata = {"render_modes": list(RENDER_MODES), "render_fps": 1}  # noqa: RUF012 (Gymnasium's own way)

    def __init__(
        self,
        *,
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
        self.render_mode = check_render_mode(render_mode)
        self._games = LearnerGames(
            1,
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
        self.observation_space = gymnasium.spaces.Box(0, 1, (self.layout.size,), np.int8)
        self.action_space = gymnasium.spaces.Discrete(self.rules.num_actions)
        self._row = np.zeros(1, np.int64)
        self._named = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin episode 0 under `seed`, or without one the next episode, and play it up to the learner's first turn.

        Args:
            seed: Any integer ≥ 0.
            options: Nothing is read from it.

        Returns:
            The observation, int8 ``[W]``, and ``{"action_mask": int8 [A]}``.
        """
        if seed is not None or not self._named:
            word = reset_seed(self, seed)
            super().reset(seed=None if seed is None else int(seed))
            self._games.name(self._row, word, 0)
            self._named = True
        self._games.begin(self._row)
        if self.render_mode == "human":
            self.render()
        return self._games.observe(self._row)[0], {"action_mask": self._games.mask[0].copy()}

    def step(self, action: int | np.integer | np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Play `action` in the learner's turn, and everybody else's turns up to its next one.

        Returns:
            Observation int8 ``[W]``, reward earned since the last decision, terminated, truncated, and info:
            ``action_mask`` int8 ``[A]``, and ``illegal_action`` after an illegal action.

        Raises:
            ValueError: `action` is not in the action space.
            ResetNeeded: the episode is over, or none has begun.
        """
        games = self._games
        if games.done[0] != RUNNING:
            raise ResetNeeded("the episode is over; call reset() before step()")
        if isinstance(action, bool | np.bool_) or not self.action_space.contains(action):
            raise ValueError(f"action={action!r} is not in the action space {self.action_space}")
        games.step(self._row, np.array([action], np.int64))
        info: dict[str, Any] = {"action_mask": games.mask[0].copy()}
        if games.illegal[0] != NO_ACTION:
            info["illegal_action"] = int(games.illegal[0])
        if self.render_mode == "human":
            self.render()
        state = games.done[0]
        observation = games.observe(self._row)[0]
        return observation, float(games.rewards[0]), bool(state == TERMINATED), bool(state == TRUNCATED), info

    def action_masks(self) -> np.ndarray:
        """The learner's legal actions as a new bool ``[A]``; all True when the episode is over."""
        return self._games.mask[0].astype(bool)

    def turns(self) -> Turns:
        """The learner's decision as policies see it, a batch of one.

        Raises:
            ResetNeeded: the episode is over, or none has begun.
        """
        if self._games.done[0] != RUNNING:
            raise ResetNeeded("the learner has no turn; call reset()")
        return self._games.turns(self._row)

    @property
    def seat(self) -> int:
        """The learner's seat in this episode."""
        return int(self._games.seats[0])

    @property
    def opponents(self) -> dict[int, Policy]:
        """The policy at every other seat in this episode."""
        return self._games.opponents(0)

    def render(self) -> str | None:
        """The table as the learner sees it: text in mode ``ansi``, printed in mode ``human``, else nothing."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() was called without a render_mode; give one of: " + ", ".join(RENDER_MODES))
            return None
        if self._games.games["public"]["players"][0] == 0:
            raise ResetNeeded("nothing to see yet; call reset() before render()")
        text = table_texts(self._games, self._row)[0]
        if self.render_mode == "ansi":
            return text
        print(text)
        return None


def check_render_mode(render_mode: str | None) -> str | None:
    """`render_mode`, refused with a ValueError unless it is None or one of `RENDER_MODES`."""
    if render_mode is not None and render_mode not in RENDER_MODES:
        raise ValueError(
            f"render_mode={render_mode!r} is not one of its values; allowed: {', '.join(RENDER_MODES)}, None"
        )
    return render_mode


def reset_seed(env: gymnasium.Env | gymnasium.vector.VectorEnv, seed: Any) -> np.uint64:
    """The word of `seed`, or of a seed from the operating system, kept as ``env.np_random_seed``."""
    if seed is not None:
        return batch.seed_word(seed)
    own = env.np_random_seed
    if own is None or own < 0:  # somebody put a generator of his own in its place
        own = int(env.np_random.integers(2**63))
    return batch.seed_word(own)


def table_texts(games: LearnerGames, rows: np.ndarray) -> list[str]:
    """The tables of `rows` as text, as their learners see them."""
    from cucumber_env import render  # loaded only when asked for

    return [render.text(games.rules, view) for view in games.views(rows)]
