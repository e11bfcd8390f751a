"""Agents on disk: a folder with ``agent.json`` (what it is) and ``weights.safetensors``.

No pickle is ever read. A folder appears whole or not at all, by renaming a finished one.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from agents.network import ActorCritic
from cucumber_env.observation import OBSERVATION_VERSION, Layout
from cucumber_env.rules import RULES_VERSION, Rules

CARD, WEIGHTS = "agent.json", "weights.safetensors"
TRAINING, OPTIMIZER = "training.json", "optimizer.safetensors"


@dataclass(frozen=True)
class Card:
    """What an agent is: the table it was trained for, the shape of its network, how it was made.

    Attributes:
        rules: Fields of the rules.
        players: Seats at the table.
        episode: ``"round"`` or ``"match"``.
        seats: None for the table's own observation layout, 8 for the one that fits every table.
        width, actions, hidden, critic_width: Shape of the network.
        training: Whatever the trainer wants to be remembered (settings, steps, seed).
        rules_version, observation_version: Versions that the agent was trained under.
    """

    rules: dict[str, Any]
    players: int
    episode: str
    seats: int | None
    width: int
    actions: int
    hidden: tuple[int, ...]
    critic_width: int
    training: dict[str, Any]
    rules_version: int = RULES_VERSION
    observation_version: int = OBSERVATION_VERSION

    @property
    def layout(self) -> Layout:
        """The observation layout that the network reads."""
        return Layout.of(Rules.from_dict(self.rules), self.players, self.episode, self.seats)


def save_agent(
    folder: str | Path,
    network: ActorCritic,
    card: Card,
    *,
    optimizer: torch.optim.Optimizer | None = None,
    counters: dict[str, Any] | None = None,
) -> None:
    """Write an agent; `folder` appears, or is replaced, whole.

    With `optimizer` and `counters` (JSON-friendly) training can go on from it, see `load_training`.
    """
    folder = Path(folder)
    fresh = folder.with_name(f".{folder.name}.new-{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    save_file({name: tensor.contiguous() for name, tensor in network.state_dict().items()}, fresh / WEIGHTS)
    (fresh / CARD).write_text(json.dumps(asdict(card), indent=2) + "\n")
    if optimizer is not None:
        save_file(_optimizer_tensors(optimizer), fresh / OPTIMIZER)
        (fresh / TRAINING).write_text(json.dumps(counters or {}) + "\n")
    replace_folder(fresh, folder)


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    return {
        f"{number}.{name}": torch.as_tensor(value).contiguous()
        for number, entries in optimizer.state_dict()["state"].items()
        for name, value in entries.items()
    }


def load_training(folder: str | Path, network: ActorCritic, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Put weights and optimiser back as `save_agent` wrote them; returns the counters.

    Raises:
        FileNotFoundError, ValueError: as `load_agent`; or the folder holds no state of a training.
    """
    folder = Path(folder)
    saved, _ = load_agent(folder)
    for name in (TRAINING, OPTIMIZER):
        if not (folder / name).is_file():
            raise FileNotFoundError(f"{folder} holds an agent but no training to go on with: {name} is missing")
    try:
        tensors = load_file(folder / OPTIMIZER)
        counters: dict[str, Any] = json.loads((folder / TRAINING).read_text())
        network.load_state_dict(saved.state_dict())
        state: dict[int, dict[str, torch.Tensor]] = {}
        for key, tensor in tensors.items():
            number, _, name = key.partition(".")
            state.setdefault(int(number), {})[name] = tensor
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    except (SafetensorError, RuntimeError, ValueError, OSError) as error:
        raise ValueError(f"the training saved in {folder} cannot be read: {error}") from error
    return counters


def replace_folder(fresh: Path, folder: Path) -> None:
    """Put the finished folder `fresh` in the place of `folder`."""
    old = folder.with_name(f".{folder.name}.old-{os.getpid()}")
    if folder.exists():
        folder.rename(old)
    fresh.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def load_agent(folder: str | Path) -> tuple[ActorCritic, Card]:
    """The agent in `folder`.

    Raises:
        FileNotFoundError: there is none; says what is missing.
        ValueError: another rules or observation version, or files that do not belong together.
    """
    folder = Path(folder)
    card = _read_card(folder)
    network = ActorCritic(card.width, card.actions, card.hidden, card.critic_width)
    try:
        network.load_state_dict(load_file(folder / WEIGHTS))
    except (SafetensorError, RuntimeError, OSError) as error:
        raise ValueError(f"{folder / WEIGHTS} is not the weights that {CARD} describes: {error}") from error
    network.eval()
    return network, card


def _read_card(folder: Path) -> Card:
    for name in (CARD, WEIGHTS):
        if not (folder / name).is_file():
            raise FileNotFoundError(f"no agent in {folder}: {name} is missing; train one with `uv run train.py`")
    try:
        fields = json.loads((folder / CARD).read_text())
        card = Card(**{**fields, "hidden": tuple(fields["hidden"])})
    except (json.JSONDecodeError, TypeError, KeyError) as error:
        raise ValueError(f"{folder / CARD} does not describe an agent: {error}") from error
    for what, theirs, ours in (
        ("rules", card.rules_version, RULES_VERSION),
        ("observation", card.observation_version, OBSERVATION_VERSION),
    ):
        if theirs != ours:
            raise ValueError(f"{folder} was trained under {what} version {theirs}; this is version {ours}")
    if card.layout.size != card.width:
        raise ValueError(f"{folder / CARD}: width {card.width} is not that of its table, {card.layout.size}")
    return card
