"""Trained agents that ship with the package and play without torch: the policy `champion`.

A shipped agent is a pair of files in ``cucumber_env/champions/``: ``NAME.npz``, the weights of a multilayer perceptron
in half precision (``0.weight`` ``[out, in]``, ``0.bias`` ``[out]``, ``1.weight``, …; no pickle is ever read), and
``NAME.json``, its `Card`. ``python -m agents.export`` writes both from a trained agent.

    champion                        whichever shipped agent was trained for the table that asks
    champion:greedy=1               the same, playing its likeliest action instead of drawing one
    champion:NAME                   one particular agent
    champion:NAME,folder=FOLDER     one that you exported to a folder of your own

At a table `champion` is the agent of that kind of episode, else one of rounds: these may play whole matches, of which
they see the round and not the totals. Of several, it is the one trained at the fewest kinds of table, so that a
specialist comes before an agent of all tables; then the first by name. An agent that you name and whose observation
layout is that of all tables plays at tables it was not trained at, too.

>>> from cucumber_env.policies import make
>>> make("champion:greedy=1")
<policy champion:greedy=1>
"""

from __future__ import annotations

import io
import json
import operator
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from cucumber_env.observation import EPISODES, OBSERVATION_VERSION, Layout
from cucumber_env.policies import Policy, Turns, certain, register, with_revival
from cucumber_env.rules import RULES_VERSION, Rules, nearest

FORMAT = 1
"""Version of the pair of files; grows when an older program could not read them."""

FOLDER = "champions"
"""Where the shipped agents lie in the package."""

ROWS = 16
"""Decisions multiplied together. Products of matrices round as their shapes have it: with one shape for all, what an
agent answers does not depend on the batch in which it is asked."""


@dataclass(frozen=True)
class Card:
    """What an agent is: the tables it was trained at, the shape of its network, how it was made, how strong it is.

    Attributes:
        name: Its name.
        tables: The kinds of table it was trained at: rules and number of players.
        episode: ``"round"`` or ``"match"``.
        seats: None for the table's own observation layout, 8 for the one that fits every table.
        width: Numbers in an observation.
        actions: Outputs of the network; at a table with fewer actions the first are used.
        hidden: Widths of the hidden layers.
        rules_version, observation_version: Versions that it was trained under.
        training: Its budget and whatever else the trainer remembered.
        strength: Rows of its evaluation.
    """

    name: str
    tables: tuple[tuple[Rules, int], ...]
    episode: str
    seats: int | None
    width: int
    actions: int
    hidden: tuple[int, ...]
    rules_version: int
    observation_version: int
    training: Mapping[str, Any]
    strength: Sequence[Mapping[str, Any]]

    @classmethod
    def from_dict(cls, fields: Any) -> Card:
        """A card from what JSON holds.

        Raises:
            ValueError, TypeError, KeyError: another version, a field that is missing or unknown, or a network that
                does not fit the tables.
        """
        if not isinstance(fields, dict):
            raise TypeError(f"a card is a JSON object, not {type(fields).__name__}")
        ours = {"format": FORMAT, "rules_version": RULES_VERSION, "observation_version": OBSERVATION_VERSION}
        for name, version in ours.items():
            if fields.get(name) != version:
                raise ValueError(
                    f"{name} is {fields.get(name)!r} and this program reads {version}: it belongs to another version"
                )
        known = {name: value for name, value in fields.items() if name != "format"}
        tables = tuple(_table(table) for table in fields["tables"])
        card = cls(**{**known, "tables": tables, "hidden": tuple(fields["hidden"])})
        card._check()
        return card

    def _check(self) -> None:
        """Refuse a network that does not fit the tables."""
        if not self.tables:
            raise ValueError("tables=[] is empty")
        for size in (self.width, self.actions, *self.hidden):
            if operator.index(size) < 1:
                raise ValueError(f"a layer of {size} numbers; allowed: 1 and more")
        for rules, players in self.tables:
            width = Layout.of(rules, players, self.episode, self.seats).size
            if width != self.width:
                raise ValueError(f"width={self.width} is not that of its table {_text(rules, players)}, {width}")
            if self.actions != rules.num_actions and (self.seats is None or self.actions < rules.num_actions):
                raise ValueError(
                    f"actions={self.actions} do not fit its table {_text(rules, players)}, {rules.num_actions}"
                )

    def trained_for(self, rules: Rules, num_players: int, episode: str) -> bool:
        """Whether it was trained at such a table; agents of rounds play matches too."""
        return (rules, num_players) in self.tables and self.episode in (episode, "round")

    def can_play(self, rules: Rules, num_players: int, episode: str) -> bool:
        """Whether its network fits the table: where it was trained, or anywhere in the layout of all tables."""
        anywhere = self.seats is not None and rules.num_actions <= self.actions and self.episode in (episode, "round")
        return anywhere or self.trained_for(rules, num_players, episode)


def _table(fields: Mapping[str, Any]) -> tuple[Rules, int]:
    rules = Rules.from_dict(fields["rules"])
    return rules, rules.check_players(fields["players"], name="players")


def _text(rules: Rules, players: int) -> str:
    return f"{rules} with {players} players"


class Agent:
    """A card and the weights that it describes, ready to play.

    Args:
        card: What the agent is.
        layers: Weights ``[out, in]`` and biases ``[out]`` from the first layer to the last, of any float type.

    Attributes:
        card: What the agent is.
    """

    def __init__(self, card: Card, layers: Iterable[tuple[np.ndarray, np.ndarray]]) -> None:
        self.card = card
        self._layers = [
            (np.ascontiguousarray(weight.T, np.float32), np.asarray(bias, np.float32)) for weight, bias in layers
        ]

    def probabilities(self, observation: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Action probabilities, float32 ``[B, A]``: zero where illegal, rows sum to one.

        Args:
            observation: int8 ``[B, width]``.
            mask: int8 or bool ``[B, A]``, legal actions; at least one a row.
        """
        logits = np.where(mask, self._logits(observation)[:, : mask.shape[1]], -np.inf)
        likely = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(likely / likely.sum(axis=1, keepdims=True))

    def _logits(self, observation: np.ndarray) -> np.ndarray:
        rows, width = observation.shape
        numbers = np.zeros((-(-rows // ROWS), ROWS, width), np.float32)
        numbers.reshape(-1, width)[:rows] = observation
        for layer, (weight, bias) in enumerate(self._layers):
            if layer:
                np.maximum(numbers, 0, out=numbers)
            numbers = numbers @ weight
            numbers += bias
        return numbers.reshape(-1, numbers.shape[-1])[:rows]


class Champion(Policy):
    """A trained agent, its weights read when it first has to play, once a process.

    Args:
        agent: Name of one agent; without, the table decides.
        greedy: 1 plays the likeliest action with certainty.
        folder: A folder of exported agents in place of those that ship.

    Raises:
        ValueError: no agent of that name (lists those there are), or an option out of range.
    """

    def __init__(self, agent: str | None = None, *, greedy: int = 0, folder: str | Path | None = None) -> None:
        if greedy not in (0, 1):
            raise ValueError(f"greedy={greedy!r} is out of range; allowed: 0 or 1")
        self.agent = None if agent is None else str(agent)
        self.greedy = bool(greedy)
        self.folder = None if folder is None else str(Path(str(folder)).absolute())
        self.name = "champion" if agent is None else f"champion:{agent}"
        if self.agent is not None:
            _check_name(self.folder, self.agent)

    def check(self, rules: Rules, num_players: int, episode: str) -> None:
        """Refuse a table that no agent of this name was trained for.

        Raises:
            ValueError: lists the tables there are agents for.
        """
        _agent_for(self.folder, self.agent, rules, num_players, episode)

    def probabilities(self, turns: Turns) -> np.ndarray:
        """Float32 ``[B, A]``.

        Whether to come back into a match is no decision of rounds, so that an agent of rounds answers it as the
        scripted opponents do, with the highest action.

        Raises:
            ValueError: no agent was trained for the table (lists the tables there are agents for), or the files of
                the agent are damaged or belong to another version.
        """
        agent = _agent_for(self.folder, self.agent, turns.rules, turns.num_players, turns.episode)
        observation = replace(turns, episode=agent.card.episode).observe(agent.card.seats)
        probabilities = agent.probabilities(observation, turns.mask)
        if self.greedy:
            probabilities = certain(probabilities.argmax(axis=1), probabilities)
        return probabilities if agent.card.episode == turns.episode else with_revival(turns, probabilities)


register("champion", Champion)


def shipped() -> list[str]:
    """Names of the agents that ship with the package."""
    return _names(None)


def read_card(folder: str | Path | None, name: str) -> Card:
    """The card of an agent in `folder` (None: of one that ships).

    Raises:
        FileNotFoundError: there is none.
        ValueError: a file that is no card, or one of another version.
    """
    path = _place(folder) / f"{name}.json"
    try:
        card = Card.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise FileNotFoundError(f"no agent {name!r}: {path} is missing") from None
    except KeyError as error:
        raise ValueError(f"{path} does not describe an agent: {error} is missing") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} does not describe an agent: {error}") from error
    if card.name != name:
        raise ValueError(f"{path} describes an agent of another name, {card.name!r}")
    return card


def read_agent(folder: str | Path | None, name: str) -> Agent:
    """An agent in `folder` (None: one that ships), read anew.

    Raises:
        FileNotFoundError, ValueError: as `read_card`, or the same for its weights.
    """
    card = read_card(folder, name)
    path = _place(folder) / f"{name}.npz"
    try:
        arrays = _arrays(read_weights(folder, name))
        return Agent(card, _layers(card, arrays))
    except FileNotFoundError:
        raise FileNotFoundError(f"agent {name!r} has a card but no weights: {path} is missing") from None
    except Exception as error:  # damaged archives raise whatever their readers come upon
        raise ValueError(f"{path} does not hold the weights of agent {name!r}: {error}") from error


def read_weights(folder: str | Path | None, name: str) -> bytes:
    """The file with the weights of an agent in `folder` (None: of one that ships).

    Raises:
        FileNotFoundError: there is none.
    """
    return (_place(folder) / f"{name}.npz").read_bytes()


def _place(folder: str | Path | None) -> Traversable:
    return resources.files("cucumber_env") / FOLDER if folder is None else Path(folder)


def _arrays(data: bytes) -> dict[str, np.ndarray]:
    """All arrays of an npz file, after its checksums have been checked."""
    if data.startswith(b"\x80"):
        raise ValueError("it is a pickle, which could run any code and is never read")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        damaged = archive.testzip()
    if damaged is not None:
        raise ValueError(f"{damaged} is damaged")
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return {key: arrays[key] for key in arrays.files}


def _layers(card: Card, arrays: Mapping[str, np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Weights and biases in order, if they are those that the card describes."""
    shapes: dict[str, tuple[int, ...]] = {}
    for layer, (inputs, outputs) in enumerate(pairwise([card.width, *card.hidden, card.actions])):
        shapes |= {f"{layer}.weight": (outputs, inputs), f"{layer}.bias": (outputs,)}
    if arrays.keys() != shapes.keys():
        raise ValueError(f"its arrays are {', '.join(sorted(arrays))}; by its card {', '.join(sorted(shapes))}")
    for key, shape in shapes.items():
        array = arrays[key]
        if array.dtype != np.float16 or array.shape != shape:
            raise ValueError(f"{key} is {array.dtype} {array.shape}; by its card float16 {shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"{key} holds numbers that are not finite")
    return [(arrays[f"{layer}.weight"], arrays[f"{layer}.bias"]) for layer in range(len(shapes) // 2)]


def _names(folder: str | None) -> list[str]:
    place = _place(folder)
    if not place.is_dir():
        return []
    return sorted(path.name.removesuffix(".json") for path in place.iterdir() if path.name.endswith(".json"))


def _check_name(folder: str | None, name: str) -> None:
    names = _names(folder)
    if name not in names:
        where = "with the package" if folder is None else f"in {folder}"
        raise ValueError(f"no agent {name!r} {where}{nearest(name, names)}; agents: {', '.join(names) or 'none'}")


@lru_cache(maxsize=1024)
def _agent_for(folder: str | None, name: str | None, rules: Rules, num_players: int, episode: str) -> Agent:
    """The agent that plays at a table."""
    if name is None:
        cards = [_card(folder, each) for each in _names(folder)]
        fitting = [card for card in cards if card.trained_for(rules, num_players, episode)]
    else:
        cards = [_card(folder, name)]
        fitting = [card for card in cards if card.can_play(rules, num_players, episode)]
    if not fitting:
        who = "no agent was" if name is None else f"agent {name!r} was not"
        raise ValueError(
            f"{who} trained for {_EPISODES_TEXT[episode]} of {_text(rules, num_players)}; "
            f"{'agents play' if name is None else 'it plays'} {_tables_text(cards) or 'nowhere'}"
        )
    best = min(fitting, key=lambda card: (card.episode != episode, len(card.tables), card.name))
    return _agent(folder, best.name)


@cache
def _card(folder: str | None, name: str) -> Card:
    return read_card(folder, name)


@cache
def _agent(folder: str | None, name: str) -> Agent:
    return read_agent(folder, name)


_EPISODES_TEXT = dict(zip(EPISODES, ("matches", "rounds"), strict=True))


def _tables_text(cards: Iterable[Card]) -> str:
    """All tables of some agents, those of the same rules together."""
    players: dict[tuple[str, str], set[int]] = {}
    for card in cards:
        what = "matches" if card.episode == "match" else "rounds and matches"
        for rules, count in card.tables:
            players.setdefault((what, str(rules)), set()).add(count)
    return "; ".join(
        f"{what} of {rules} with {', '.join(map(str, sorted(counts)))} players"
        for (what, rules), counts in sorted(players.items())
    )
