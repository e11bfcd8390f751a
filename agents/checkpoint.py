"""Agents on disk: a folder with ``agent.json`` (what it is) and ``weights.safetensors``.

A checkpoint of a run has besides ``state.safetensors`` and ``state.json``, all that training goes on from. No pickle
is ever read. A folder appears whole or not at all, by renaming a finished one. ``SHA256SUMS`` lists its files, as
``sha256sum --check`` reads it, and nothing is loaded from a file that has changed since.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from agents.network import ActorCritic
from agents.tables import Table
from cucumber_env.observation import OBSERVATION_VERSION, Layout
from cucumber_env.rules import RULES_VERSION

CARD, WEIGHTS = "agent.json", "weights.safetensors"
STATE, COUNTERS = "state.safetensors", "state.json"
SUMS = "SHA256SUMS"

FORMAT = 2
"""Version of the files; grows when an older program could not read them."""


class VersionError(ValueError):
    """Files are whole, and were written by a version of the program, the rules or the observation that is not ours."""


@dataclass(frozen=True)
class Card:
    """What an agent is: the tables it was trained at, the shape of its network, how it was made.

    Attributes:
        tables: The kinds of table it was trained at.
        episode: ``"round"`` or ``"match"``.
        seats: None for the table's own observation layout, 8 for the one that fits every table.
        width, actions, hidden, extra, trunk: Shape of the network, see `ActorCritic`.
        training: Whatever the trainer wants to be remembered (settings, steps, seed).
        rules_version, observation_version: Versions that the agent was trained under.
    """

    tables: tuple[Table, ...]
    episode: str
    seats: int | None
    width: int
    actions: int
    hidden: tuple[int, ...]
    extra: int
    trunk: str
    training: dict[str, Any]
    rules_version: int = RULES_VERSION
    observation_version: int = OBSERVATION_VERSION

    @property
    def layout(self) -> Layout:
        """The observation layout that the network reads."""
        return Layout.of(self.tables[0].rules, self.tables[0].players, self.episode, self.seats)

    def network(self) -> ActorCritic:
        """A new network of this shape."""
        return ActorCritic(self.width, self.actions, self.hidden, self.extra, self.trunk)

    def to_dict(self) -> dict[str, Any]:
        """JSON-friendly."""
        return {"format": FORMAT, **vars(self), "tables": [table.to_dict() for table in self.tables]}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Card:
        """The inverse of `to_dict`."""
        known = {name: value for name, value in fields.items() if name != "format"}
        tables = tuple(Table.from_dict(table) for table in fields["tables"])
        return cls(**{**known, "tables": tables, "hidden": tuple(fields["hidden"])})


def save_agent(
    folder: str | Path,
    network: ActorCritic,
    card: Card,
    *,
    state: Mapping[str, Tensor] | None = None,
    counters: Mapping[str, Any] | None = None,
) -> None:
    """Write an agent; `folder` must not exist, and appears whole.

    With `state` (tensors) and `counters` (JSON-friendly) training can go on from it, see `load_state`.

    Raises:
        OSError: the disk is full or may not be written; nothing is left behind.
    """
    folder = Path(folder)
    fresh = folder.with_name(f".{folder.name}.new-{os.getpid()}")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        _write_tensors(fresh / WEIGHTS, network.state_dict())
        (fresh / CARD).write_text(json.dumps(card.to_dict(), indent=2) + "\n")
        if state is not None:
            _write_tensors(fresh / STATE, state)
            (fresh / COUNTERS).write_text(json.dumps(dict(counters or {})) + "\n")
        sums = [f"{_sum(path)}  {path.name}\n" for path in sorted(fresh.iterdir())]
        (fresh / SUMS).write_text("".join(sums))
        for path in [*fresh.iterdir(), fresh]:
            flush(path)
        fresh.rename(folder)
        flush(folder.parent)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def _write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    try:
        save_file({name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}, path)
    except SafetensorError as error:
        raise OSError(f"{path} cannot be written: {error}") from error


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def flush(path: Path) -> None:
    """Put a file or folder on the disk, so that a rename is not there before what it names."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def load_state(folder: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The state of training in a checkpoint and its counters, as `save_agent` wrote them.

    Raises:
        FileNotFoundError, ValueError: as `load_agent`; or the folder holds no state of a training.
    """
    folder = Path(folder)
    load_agent(folder)
    for name in (STATE, COUNTERS):
        if not (folder / name).is_file():
            raise FileNotFoundError(f"{folder} holds an agent but no training to go on with: {name} is missing")
    tensors, counters = _read_tensors(folder / STATE), _read_json(folder / COUNTERS)
    _check_sums(folder, STATE, COUNTERS)
    return tensors, counters


def load_agent(folder: str | Path) -> tuple[ActorCritic, Card]:
    """The agent in `folder`.

    Raises:
        FileNotFoundError: there is none; says what is missing.
        ValueError: another version, a pickle, or files that are damaged or do not belong together.
    """
    folder = Path(folder)
    card = read_card(folder)
    try:
        network = card.network()
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{folder / CARD} does not describe a network: {error}") from error
    weights = _read_tensors(folder / WEIGHTS)
    _check_sums(folder, WEIGHTS)
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{folder / WEIGHTS} is not the weights that {CARD} describes: {reason}") from error
    network.eval()
    return network, card


def _read_tensors(path: Path) -> dict[str, Tensor]:
    _refuse_pickle(path)
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path} is damaged, or not a safetensors file: {error}") from error


def _refuse_pickle(path: Path) -> None:
    """Pickles run code when they are read; torch.save writes one, by itself or in a zip archive."""
    with path.open("rb") as file:
        start = file.read(4)
    if start.startswith((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")) or start == b"PK\x03\x04":
        raise ValueError(f"{path} is a pickle, as torch.save writes it; only safetensors are read")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if not isinstance(fields, dict):
        raise ValueError(f"{path} is not a JSON object")
    return fields


def read_card(folder: str | Path) -> Card:
    """The card of the agent in `folder`; errors as `load_agent`."""
    folder = Path(folder)
    if folder.is_file():
        _refuse_pickle(folder)
        raise ValueError(f"{folder} is a file; an agent is a folder with {CARD} and {WEIGHTS}")
    for name in (CARD, WEIGHTS):
        if not (folder / name).is_file():
            raise FileNotFoundError(f"no agent in {folder}: {name} is missing; train one with `uv run train.py`")
    fields = _read_json(folder / CARD)
    _check_versions(folder, fields)
    _check_sums(folder, CARD)
    try:
        card = Card.from_dict(fields)
        width = card.layout.size
    except (TypeError, KeyError, IndexError, ValueError, AttributeError) as error:
        raise ValueError(f"{folder / CARD} does not describe an agent: {type(error).__name__}: {error}") from error
    if width != card.width:
        raise ValueError(f"{folder / CARD}: width {card.width} is not that of its table, {width}")
    return card


def _check_versions(folder: Path, fields: Mapping[str, Any]) -> None:
    for what, name, ours in (
        ("file format", "format", FORMAT),
        ("rules", "rules_version", RULES_VERSION),
        ("observation", "observation_version", OBSERVATION_VERSION),
    ):
        theirs = fields.get(name, 1)
        if theirs != ours:
            raise VersionError(f"{folder} was written under {what} version {theirs}; this is version {ours}")


def _check_sums(folder: Path, *names: str) -> None:
    """Refuse files that are not the ones that were saved.

    Raises:
        FileNotFoundError, ValueError: there are no sums, or a file has another one.
    """
    if not (folder / SUMS).is_file():
        raise FileNotFoundError(f"{folder} cannot be trusted: {SUMS}, which tells whether files are whole, is missing")
    listed = (line.split("  ", 1) for line in (folder / SUMS).read_text(errors="replace").splitlines())
    sums = {line[1]: line[0] for line in listed if len(line) == 2}
    for name in names:
        if name not in sums:
            raise ValueError(f"{folder / SUMS} is damaged: it does not list {name}")
        if _sum(folder / name) != sums[name]:
            raise ValueError(f"{folder / name} is damaged, or of another agent: its SHA-256 is not the one in {SUMS}")


def optimizer_tensors(optimizer: Any) -> dict[str, Tensor]:
    """The state of an optimiser as named tensors, see `restore_optimizer`."""
    return {
        f"{number}.{name}": value
        for number, entries in optimizer.state_dict()["state"].items()
        for name, value in entries.items()
    }


def restore_optimizer(optimizer: Any, tensors: Mapping[str, Tensor]) -> None:
    """Put the tensors of `optimizer_tensors` back.

    Raises:
        ValueError: they are not those of a parameter each.
    """
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        number, _, name = key.partition(".")
        state.setdefault(int(number), {})[name] = tensor
    shapes = [weight.shape for settings in optimizer.param_groups for weight in settings["params"]]
    if sorted(state) != list(range(len(shapes))):
        raise ValueError(f"the optimiser's state is of {len(state)} parameters, this network has {len(shapes)}")
    for entries, shape in zip((state[at] for at in sorted(state)), shapes, strict=True):
        if other := [name for name, tensor in entries.items() if tensor.dim() and tensor.shape != shape]:
            raise ValueError(f"the optimiser's state {', '.join(other)} is not of the shape {tuple(shape)}")
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors with a prefix and a slash before their names, see `below`."""
    return {f"{prefix}/{name}": tensor for name, tensor in tensors.items()}


def below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of `under`: of all tensors, those with the prefix, without it."""
    return {name[len(prefix) + 1 :]: tensor for name, tensor in tensors.items() if name.startswith(f"{prefix}/")}
