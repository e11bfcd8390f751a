"""Policies of other libraries at a table: small wrappers round what they hand out.

    Predictor      an object with ``predict(observation, action_masks=…)``, as in Stable-Baselines3 and sb3-contrib
    Logits         a function from observations and masks to logits or Q-values, as a network of any library
    SingleAgent    a function that is asked for one observation and its mask at a time, as in a PettingZoo loop

All see the observation of the Gymnasium face (`CucumberEnv`): what a seat may know, in the table's own layout, or with
``seats=8`` in the one that is the same for every table. They are asked where there is more than one legal action.

>>> import numpy as np
>>> from cucumber_env.arena import play
>>> highest = SingleAgent(lambda observation, mask: np.flatnonzero(mask)[-1], name="my_highest")
>>> (play([highest, "random"], deals=5).penalties == play(["highest", "random"], deals=5).penalties).all()
np.True_
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cucumber_env.policies import Policy, Turns, certain


class Predictor(Policy):
    """An agent with the interface of Stable-Baselines3: ``predict(observation, …) -> (actions, state)``.

    Args:
        agent: Asked with observations int8 ``[B, W]`` and, if `masked`, ``action_masks`` bool ``[B, A]``, as
            MaskablePPO of sb3-contrib takes them.
        name: Text by which reports call it.
        deterministic: Handed on: its likeliest action, or one that the agent draws with random numbers of its own; such
            results do not repeat, and duplicate deals then share the cards but not the draws.
        masked: Whether the agent takes masks. One that does not has to choose legal actions by itself.
        seats: None for the table's own observation layout, 8 for the one that fits every table.
    """

    samples_only = True

    def __init__(
        self, agent: Any, *, name: str, deterministic: bool = True, masked: bool = True, seats: int | None = None
    ) -> None:
        self.agent, self.name, self.deterministic, self.masked, self.seats = agent, name, deterministic, masked, seats

    def act(self, turns: Turns) -> np.ndarray:
        """What the agent predicts, int ``[B]``."""
        masks = {"action_masks": turns.mask.astype(bool)} if self.masked else {}
        actions, _ = self.agent.predict(turns.observe(self.seats), deterministic=self.deterministic, **masks)
        return np.asarray(actions)


class Logits(Policy):
    """A function that gives logits, drawn from by the arena's own numbers; or Q-values, of which the best is played.

    Args:
        function: Takes observations int8 ``[B, W]`` and masks int8 ``[B, A]``, gives float ``[B, A]`` as anything that
            ``numpy.asarray`` reads. Values of illegal actions do not matter.
        name: Text by which reports call it.
        greedy: Play the highest value with certainty, rather than the softmax.
        seats: None for the table's own observation layout, 8 for the one that fits every table.
    """

    def __init__(
        self,
        function: Callable[[np.ndarray, np.ndarray], Any],
        *,
        name: str,
        greedy: bool = False,
        seats: int | None = None,
    ) -> None:
        self.function, self.name, self.greedy, self.seats = function, name, greedy, seats

    def probabilities(self, turns: Turns) -> np.ndarray:
        """float64 ``[B, A]``: softmax over legal actions, or one for the highest (the first of equals).

        Raises:
            ValueError: the function gave another shape.
        """
        values = np.asarray(self.function(turns.observe(self.seats), turns.mask), np.float64)
        if values.shape != turns.mask.shape:
            raise ValueError(f"logits of shape {values.shape}; expected {turns.mask.shape}")
        legal = np.where(turns.mask > 0, values, -np.inf)
        with np.errstate(invalid="ignore"):  # what is not finite is refused with the probabilities
            likely = np.exp(legal - legal.max(axis=1, keepdims=True))
        if self.greedy:
            likely = np.where(
                np.isfinite(likely).all(axis=1, keepdims=True), certain(likely.argmax(axis=1), likely), likely
            )
        return np.asarray(likely / likely.sum(axis=1, keepdims=True))


class SingleAgent(Policy):
    """A function that is asked for one decision at a time; slower than the others.

    Args:
        function: Takes an observation int8 ``[W]`` and a mask int8 ``[A]``, gives an action.
        name: Text by which reports call it.
        seats: None for the table's own observation layout, 8 for the one that fits every table.
    """

    samples_only = True

    def __init__(
        self, function: Callable[[np.ndarray, np.ndarray], Any], *, name: str, seats: int | None = None
    ) -> None:
        self.function, self.name, self.seats = function, name, seats

    def act(self, turns: Turns) -> np.ndarray:
        """What the function says, int ``[B]``."""
        return np.array([self.function(*row) for row in zip(turns.observe(self.seats), turns.mask, strict=True)])
