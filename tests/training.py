"""Small training runs for tests: their settings, and rollouts written down by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from rich.console import Console

import train
from agents.network import ActorCritic
from agents.opponents import everywhere
from agents.runs import Clock
from cucumber_env.envs.vector import SelfPlay


def small(**changes: Any) -> train.Config:
    """Settings of a run of a second."""
    settings: dict[str, Any] = {
        "updates": 4,
        "games": 64,
        "hidden": (32,),
        "minibatch": 256,
        "evaluate_every": 2,
        "evaluate_deals": 8,
        "final_deals": 8,
        "save_every": 1,
        "threads": 1,
        "precision": "fp32",
        "device": "cpu",
    }
    return train.Config(**{**settings, **changes})


def chain(*steps: tuple[list[int], list[int], list[list[float]]]) -> train.Rollout:
    """A rollout of lock-steps: the games whose decisions are learned from, their seats, the rewards that followed."""
    made: list[tuple[slice, np.ndarray, np.ndarray, np.ndarray]] = []
    at = 0
    for games, seats, rewards in steps:
        kept = slice(at, at := at + len(games))
        made.append((kept, np.array(games, int), np.array(seats, int), np.array(rewards, np.float32)))
    empty = np.zeros(0)
    (shape,) = {np.shape(rewards) for *_, rewards in steps}
    lineup = everywhere(network(), *shape)
    return train.Rollout(empty, empty, empty, empty, empty, made, lineup, turns=at)


def network(table: SelfPlay | None = None, *, hidden: tuple[int, ...] = (16,), extra: int = 0) -> ActorCritic:
    """A new network for a table; without one, for nothing in particular."""
    torch.manual_seed(0)
    width, actions = (table.layout.size, table.rules.num_actions) if table else (8, 13)
    return ActorCritic(width, actions, hidden, extra)


@torch.no_grad()
def coarse(player: ActorCritic) -> None:
    """Give the actor weights of so few bits that no sum in it is rounded, whatever its order."""
    draw = torch.Generator().manual_seed(1)
    for layer in player.actor:
        if isinstance(layer, torch.nn.Linear):
            layer.weight.copy_(torch.randint(-2, 3, layer.weight.shape, generator=draw) / 4)


@torch.no_grad()
def sharpen(player: ActorCritic, factor: float) -> None:
    """Multiply the logits, which are near 0 in a new network."""
    list(player.actor.parameters())[-2].mul_(factor)


def weights(module: torch.nn.Module) -> list[torch.Tensor]:
    """Copies of all weights."""
    return [weight.detach().clone() for weight in module.parameters()]


def equal(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    """Whether two lists of weights are the same to the last bit."""
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def played(
    player: ActorCritic, table: SelfPlay, *, lineup: Any = None, seed: int = 3, episode: int = 0, first: int = 0
) -> train.Rollout:
    """One episode of every game of the table, by default with `player` at every seat."""
    return train.rollout(
        player,
        table,
        lineup or everywhere(player, table.num_games, table.num_players),
        seed=seed,
        games=first + np.arange(table.num_games),
        episode=episode,
        clock=Clock(),
    )


def run(config: train.Config, *, stop_after: int | None = None) -> train.Run:
    """Train as `train.main` does, without its reports; asks for a stop after so many updates."""
    started = train.open_run(config, train.Trainer)
    stop = train.StopSignal()
    if stop_after is not None:
        advance = started.trainer.advance

        def counted() -> dict[str, float]:
            metrics = advance()
            stop.asked = started.trainer.updates >= stop_after
            return metrics

        started.trainer.advance = counted  # type: ignore[method-assign]
    try:
        done = started.trainer.updates
        with train.Progress(started.trainer.config.updates, done=done, console=Console(quiet=True)) as progress:
            started.train(progress, stop)
    finally:
        stop.restore()
        started.folder.close()
    return started
