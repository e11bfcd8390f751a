"""What a policy is, and the registry of the names by which policies are called everywhere.

A policy answers batches of decisions (`Turns`). It sees what the seats to move may know (views,
observations, masks) and never a hidden card. `Policy.probabilities` is what it is; `Policy.act`
samples it with `Turns.u`, one uniform number that belongs to each decision, so that results depend
neither on how a batch is made up nor on stopping and resuming.

>>> make("random").name
'random'
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cucumber_env import batch
from cucumber_env.observation import Layout
from cucumber_env.rules import Rules, nearest
from cucumber_env.state import REVIVE, as_records, compile_rules


@dataclass(frozen=True)
class Turns:
    """A batch of `B` decisions at tables of one kind.

    Attributes:
        rules: Rules in force.
        num_players: Seats at each table.
        episode: ``"match"`` or ``"round"``.
        views: `VIEW` records ``[B]``: the public state, the seat to move and its hand.
        mask: int8 ``[B, A]``, legal actions.
        u: float64 ``[B]`` in [0, 1): the uniform number that belongs to each decision.
    """

    rules: Rules
    num_players: int
    episode: str
    views: np.ndarray
    mask: np.ndarray
    u: np.ndarray

    def __len__(self) -> int:
        return len(self.views)

    @cached_property
    def observation(self) -> np.ndarray:
        """int8 ``[B, W]`` in the table's own layout."""
        return self.observe()

    def observe(self, seats: int | None = None, history: bool = False) -> np.ndarray:
        """Observations int8 ``[B, W]`` in the layout for `seats` (8: the same for every table).

        With `history`, information states: the own deal and the whole round in order as well.
        """
        layout = Layout.of(self.rules, self.num_players, self.episode, seats, history)
        observation = np.empty((len(self), layout.size), np.int8)
        batch.observe_views(
            compile_rules(self.rules), layout.compiled, as_records(self.views), observation.view(np.int64)
        )
        return observation

    def select(self, rows: np.ndarray) -> Turns:
        """The decisions at `rows` (indices or a boolean mask)."""
        return replace(self, views=self.views[rows], mask=self.mask[rows], u=self.u[rows])


TOLERANCE = 0.01
"""How far from one the probabilities of a decision may sum: as far as half precision rounds."""


class PolicyError(ValueError):
    """A policy answered what it may not, or raised an error of its own (which is then the cause of this one).

    Attributes:
        policy: Its name.
        row: The decision of the batch that it failed at.
        fault: What it did.
    """

    def __init__(self, policy: str, row: int, fault: str) -> None:
        super().__init__(f"policy {policy!r} {fault}")
        self.policy, self.row, self.fault = policy, row, fault


class Policy:
    """Base class of policies: give `name` and `probabilities`, or override `act` and set `samples_only`.

    Attributes:
        name: The text that `make` turns into this policy.
        samples_only: Whether the policy can draw actions but cannot say their probabilities.
    """

    name: str = "unnamed"
    samples_only: bool = False

    def probabilities(self, turns: Turns) -> np.ndarray:
        """Probabilities of all actions, float ``[B, A]``; zero where illegal, rows sum to one.

        Raises:
            NotImplementedError: the policy only samples.
        """
        raise NotImplementedError(f"policy {self.name!r} only samples: it cannot say its action probabilities")

    def act(self, turns: Turns) -> np.ndarray:
        """An action for every decision, int64 ``[B]``, drawn with ``turns.u``."""
        return sample(checked_probabilities(self, turns), turns.u)

    def check(self, rules: Rules, num_players: int, episode: str) -> None:
        """Refuse a table at which the policy cannot sit; by default it sits at any.

        Raises:
            ValueError: says where it can.
        """

    def __repr__(self) -> str:
        return f"<policy {self.name}>"


def check_seat(policy: Policy, rules: Rules, num_players: int, episode: str) -> None:
    """Refuse a policy that cannot sit at a table, by name; see `Policy.check`.

    Raises:
        ValueError: names the policy, and says where it can sit.
    """
    try:
        policy.check(rules, num_players, episode)
    except ValueError as error:
        raise ValueError(f"policy {policy.name!r} cannot sit at this table: {error}") from error


class FunctionPolicy(Policy):
    """A policy made of a function from `Turns` to legal actions, int ``[B]``."""

    samples_only = True

    def __init__(self, function: Callable[[Turns], np.ndarray], *, name: str | None = None) -> None:
        self.function = function
        self.name = str(name or getattr(function, "__name__", type(function).__name__))

    def act(self, turns: Turns) -> np.ndarray:
        """What the function says."""
        return self.function(turns)


def sample(probabilities: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Actions int64 ``[B]`` drawn from ``[B, A]`` by inversion with uniform numbers ``[B]``.

    Never an action of probability zero, whatever the rounding.
    """
    total = np.cumsum(probabilities, axis=1, dtype=np.float64)
    action = (total <= (u * total[:, -1])[:, None]).sum(axis=1)
    last = probabilities.shape[1] - 1 - np.argmax(probabilities[:, ::-1] > 0, axis=1)
    return np.minimum(action, last)


def certain(actions: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Probability one for `actions` ``[B]``, in an array like ``[B, A]``."""
    return np.eye(like.shape[1], dtype=like.dtype)[actions]


def with_revival(turns: Turns, probabilities: np.ndarray) -> np.ndarray:
    """What an agent of rounds plays in a match: offers to come back, which no round holds, are taken by skipping.

    That is the highest action, as scripted opponents have it; everything else is as `probabilities` ``[B, A]`` say.
    """
    last = turns.mask.shape[1] - 1 - turns.mask[:, ::-1].argmax(axis=1)
    offered = turns.views["public"]["phase"] == REVIVE
    return np.where(offered[:, None], certain(last, probabilities), probabilities)


def decide(policy: Policy, turns: Turns) -> np.ndarray:
    """Legal actions int64 ``[B]``: forced turns take their one action, the policy is asked for the others.

    Raises:
        PolicyError: the policy raised an error, or its answer is no legal action for every decision.
    """
    actions = turns.mask.argmax(axis=1)
    free = turns.mask.sum(axis=1) > 1
    if free.all():
        return _answers(policy, turns)
    if free.any():
        rows = np.flatnonzero(free)
        try:
            actions[rows] = _answers(policy, turns.select(rows))
        except PolicyError as error:
            raise PolicyError(error.policy, int(rows[error.row]), error.fault) from error.__cause__
    return actions


def _answers(policy: Policy, turns: Turns) -> np.ndarray:
    """What the policy chooses, int64 ``[B]``, checked."""
    rows, mask = len(turns), turns.mask.copy()  # a policy could write into the one it is given
    try:
        actions = np.asarray(policy.act(turns))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # even to leave the program is not for a policy to decide
        if isinstance(error, PolicyError) and error.policy == policy.name and error.row < rows:
            raise
        raise _failure(policy, policy.act, turns, error) from error
    if actions.shape != (rows,) or actions.dtype.kind not in "iu":
        fault = f"answered {rows} decisions with {actions.dtype} of shape {actions.shape}; expected integers ({rows},)"
        raise PolicyError(policy.name, 0, fault)
    inside = (actions >= 0) & (actions < mask.shape[1])
    legal = inside & (mask[np.arange(rows), np.where(inside, actions, 0)] > 0)
    if not legal.all():
        row = int(np.argmin(legal))
        allowed = np.flatnonzero(mask[row]).tolist()
        raise PolicyError(policy.name, row, f"chose the illegal action {actions[row]}; legal: {allowed}")
    return actions.astype(np.int64, copy=False)


def _failure(policy: Policy, ask: Callable[[Turns], object], turns: Turns, error: BaseException) -> PolicyError:
    """An error of the policy's own, with the decision it fails at, found by asking ever smaller parts of the batch."""
    rows = np.arange(len(turns))
    while len(rows) > 1:
        first, rest = np.array_split(rows, 2)
        try:
            ask(turns.select(first))
            rows = rest
        except KeyboardInterrupt:
            raise
        except BaseException as found:
            rows, error = first, found
    return PolicyError(policy.name, int(rows[0]), f"raised {type(error).__name__}: {error}")


def checked_probabilities(policy: Policy, turns: Turns) -> np.ndarray:
    """What the policy plays, float ``[B, A]``: distributions over legal actions, up to rounding.

    Raises:
        PolicyError: they are none, or the policy raised an error.
    """
    try:
        probabilities = np.asarray(policy.probabilities(turns))
    except Exception as error:
        raise _failure(policy, policy.probabilities, turns, error) from error
    shape = turns.mask.shape
    if probabilities.shape != shape or probabilities.dtype.kind != "f":
        fault = f"gave probabilities of {probabilities.dtype} {probabilities.shape}; expected float {shape}"
        raise PolicyError(policy.name, 0, fault)
    # Written so that NaN fails too.
    sound = (probabilities >= 0) & ((turns.mask > 0) | (probabilities == 0))
    rows = sound.all(axis=1) & (np.abs(probabilities.sum(axis=1, dtype=np.float64) - 1) < TOLERANCE)
    if not rows.all():
        row = int(np.argmin(rows))
        fault = f"gave probabilities {probabilities[row].tolist()} for the mask {turns.mask[row].tolist()}"
        raise PolicyError(policy.name, row, f"{fault}; expected numbers ≥ 0 that sum to 1, 0 where illegal")
    return probabilities


Factory = Callable[..., Policy]
_FACTORIES: dict[str, Factory] = {}


def register(name: str, factory: Factory) -> None:
    """Make `factory` answer to `name`, so that ``name:ARGUMENT,KEY=VALUE`` calls ``factory(ARGUMENT, KEY=VALUE)``.

    Raises:
        ValueError: the name is taken by another factory, or holds one of ``: , =``.
    """
    if not name or set(name) & set(":,= "):
        raise ValueError(f"policy name {name!r} must not be empty or hold ':', ',', '=' or spaces")
    if _FACTORIES.setdefault(name, factory) is not factory:
        raise ValueError(f"policy name {name!r} is taken")


def names() -> list[str]:
    """All registered names, sorted."""
    return sorted(_factories())


def _factories() -> dict[str, Factory]:
    """The registry, scripted and shipped opponents always in it: their modules register them when imported."""
    for module in ("baselines", "champion", "exact"):
        importlib.import_module(f"cucumber_env.{module}")
    return _FACTORIES


def make(policy: str | Policy) -> Policy:
    """The policy that a text such as ``highest`` or ``checkpoint:runs/demo/best`` stands for.

    A `Policy` is handed through. Values after the colon stay text, or become int or float where they look it.

    Raises:
        ValueError: unknown name (lists what exists) or arguments that the policy does not take.
    """
    if isinstance(policy, Policy):
        return policy
    if not isinstance(policy, str):
        raise TypeError(f"policy must be a name or a Policy, got {type(policy).__name__}; names: {', '.join(names())}")
    name, _, rest = policy.partition(":")
    if name not in _factories():
        hint = " (trained agents are known after `import agents`, in a clone)" if name == "checkpoint" else ""
        known = ", ".join(names())
        raise ValueError(f"unknown policy {name!r}{hint or nearest(name, names())}; names: {known}")
    argument: list[str] = []
    options: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if equals and key.isidentifier():
            options[key] = _value(value)
        else:
            argument.append(part)  # of a path, it may hold commas and equal signs
    try:
        made = _FACTORIES[name](*([_value(",".join(argument))] if argument else []), **options)
    except TypeError as error:
        raise ValueError(f"policy {policy!r}: {error}") from error
    made.name = policy
    return made


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
