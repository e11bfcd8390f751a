"""Who sits where while a network trains: itself at every seat, or at one seat among opponents.

Opponents are past selves from a pool, and policies by name; with one policy alone, in all games, what is trained is a
best response to it. Who sits where is settled before a game and does not change within it. It is drawn by (seed,
update, table), so that all processes of a run, and a run that is resumed, agree on it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from agents.network import ActorCritic
from cucumber_env.policies import Policy

POOLS = ("none", "uniform", "prioritised")

AT_ONCE = 4
"""Members of a pool that an update meets."""

FADE = 0.9
"""What a record against a member keeps of its weight when new games are added to it."""

_CHOICE = 1 << 20
"""Beside numbers of tables, the purpose of drawing the members that an update meets."""


@dataclass(frozen=True)
class Lineup:
    """Who plays the seats of some games.

    Attributes:
        players: The learner's network first, then the opponents: frozen networks or policies.
        seats: int64 ``[games, seats]``, index into `players`.
    """

    players: tuple[ActorCritic | Policy, ...]
    seats: np.ndarray

    def of(self, games: slice) -> Lineup:
        """Of all games, some."""
        return Lineup(self.players, self.seats[games])

    def scores(self, returns: np.ndarray) -> np.ndarray:
        """Games against each opponent and how many the learner won of them, float64 ``[opponents, 2]``.

        Args:
            returns: ``[games, seats]``; above zero is a win, zero half of one.
        """
        rows = np.arange(len(self.seats))
        own = returns[rows, self.seats.argmin(axis=1)]
        won = (own > 0) + 0.5 * (own == 0)
        met, count = self.seats.max(axis=1), len(self.players)
        tallies = np.bincount(met, minlength=count), np.bincount(met, weights=won, minlength=count)
        return np.stack(tallies, axis=1)[1:].astype(np.float64)


def everywhere(network: ActorCritic, games: int, seats: int) -> Lineup:
    """The network at every seat."""
    return Lineup((network,), np.zeros((games, seats), np.int64))


@dataclass
class Opponents:
    """Draws line-ups, and keeps the pool of past selves.

    Attributes:
        pool: ``"none"``, ``"uniform"`` or ``"prioritised"``: drawn by (1 − share of games won against it)², so that
            members that are hard to beat are met more often (prioritised fictitious self-play, Vinyals et al. 2019).
        share: Share of games at which the learner has one seat and an opponent all others.
        rivals: Policies that every update meets beside members of the pool.
        members: Past selves.
        games, wins: Records against the members, in games with fading weights; a win is a return above zero, a
            return of zero is half of one.
    """

    pool: str = "none"
    share: float = 0.25
    rivals: tuple[Policy, ...] = ()
    members: list[ActorCritic] = field(default_factory=list)
    games: list[float] = field(default_factory=list)
    wins: list[float] = field(default_factory=list)

    def remember(self, network: ActorCritic) -> None:
        """Put a frozen copy of the network into the pool."""
        member = copy.deepcopy(network).eval().requires_grad_(False)
        member.critic = None  # type: ignore[assignment]
        self.members.append(member)
        self.games.append(0.0)
        self.wins.append(0.0)

    def chances(self) -> np.ndarray:
        """Probability with which each member is met, float64 ``[members]``."""
        weights = np.ones(len(self.members))
        if self.pool == "prioritised":
            weights = (1 - (np.array(self.wins) + 0.5) / (np.array(self.games) + 1)) ** 2 + 1e-3
        return np.asarray(weights / weights.sum())

    def meet(self, *, seed: int, update: int) -> list[int]:
        """The members that an update meets."""
        if self.pool == "none" or not self.members:
            return []
        draw = np.random.default_rng([seed, update, _CHOICE])
        count = min(AT_ONCE, len(self.members))
        return sorted(draw.choice(len(self.members), size=count, replace=False, p=self.chances()).tolist())

    def lineup(self, network: ActorCritic, met: list[int], games: int, seats: int, draw: np.random.Generator) -> Lineup:
        """Who plays some games of an update that meets the members `met`, then the rivals."""
        others: list[ActorCritic | Policy] = [self.members[member] for member in met]
        others += self.rivals
        if not others:
            return everywhere(network, games, seats)
        opponent = draw.integers(1, len(others) + 1, size=games)
        opponent[draw.random(games) >= self.share] = 0
        learner = draw.integers(seats, size=games)
        seated = np.repeat(opponent[:, None], seats, axis=1)
        seated[np.arange(games), learner] = 0
        return Lineup((network, *others), seated)

    def record(self, met: list[int], scores: np.ndarray) -> None:
        """Add the games and wins of an update to the records of the members it met, the first rows of `scores`."""
        for member, (games, wins) in zip(met, scores[: len(met)].tolist(), strict=True):
            self.games[member] = FADE * self.games[member] + games
            self.wins[member] = FADE * self.wins[member] + wins

    def tensors(self) -> dict[str, Tensor]:
        """Weights of all members by name."""
        return {
            f"{number:04d}.{name}": tensor
            for number, member in enumerate(self.members)
            for name, tensor in member.actor.state_dict().items()
        }

    def counters(self) -> dict[str, Any]:
        """What a checkpoint keeps beside the weights."""
        return {"games": self.games, "wins": self.wins}

    def restore(self, tensors: Mapping[str, Tensor], counters: Mapping[str, Any], like: ActorCritic) -> None:
        """Put the pool of a checkpoint back; its members have the shape of `like`."""
        for number in range(len(counters["games"])):
            self.remember(like)
            prefix = f"{number:04d}."
            weights = {name[len(prefix) :]: tensor for name, tensor in tensors.items() if name.startswith(prefix)}
            self.members[-1].actor.load_state_dict(weights)
        self.games, self.wins = list(counters["games"]), list(counters["wins"])
