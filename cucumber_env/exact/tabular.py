"""Policies that are tables over the information states of a round, and their files.

A file ``NAME.npz`` holds a header (JSON: version, rules with their version, players, what was found) and
the probabilities of every decision, level by level in the order of the tree. Nothing in it is ever executed.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cucumber_env.exact.tree import Tree, build, check_rules
from cucumber_env.policies import Policy, Turns, register
from cucumber_env.rules import Rules

SOLUTION_VERSION = 1
"""Stored in every file; grows whenever a file would be read as something else."""

ROUND_FIELDS = ("hand_size", "follow", "ace_lead", "order", "points", "payer", "penalty", "tie", "ranks", "copies")
"""Fields of `Rules` that a round depends on; the others are about matches and tables."""


class Tabular(Policy):
    """Plays what a table says, in any seat of a table of one size; in a match, each round as if it stood alone.

    Args:
        tree: The public tree.
        tables: By depth, float32 ``[N, M, K]``: the probability of each slot at every node and hand; zeros where a
            hand cannot be held.
        name: Text by which reports call it.
        facts: What is known about the policy, JSON-friendly.
    """

    def __init__(
        self, tree: Tree, tables: list[np.ndarray], *, name: str = "table", facts: Mapping[str, Any] | None = None
    ) -> None:
        self.tree, self.tables, self.name, self.facts = tree, tables, name, dict(facts or {})

    def probabilities(self, turns: Turns) -> np.ndarray:
        """float64 ``[B, A]``.

        Raises:
            ValueError: another number of seats in the round, other rules, or a view that no play leads to.
        """
        self.check(turns.rules, turns.num_players, turns.episode)
        publics = turns.views["public"]
        if (np.bitwise_count(publics["seats"]) != turns.num_players).any():
            raise ValueError(f"{self.name} plays rounds of all {turns.num_players} seats; here one sits out")
        depths = self.tree.players * publics["trick"] + publics["count"]
        answer = np.zeros(turns.mask.shape)
        for depth in np.unique(depths):
            rows = np.flatnonzero(depths == depth)
            level = self.tree.levels[depth]
            nodes = self._nodes(publics[rows], int(depth))
            hands = np.searchsorted(level.hands.packed[:-1], turns.views["hand"][rows])
            known = level.hands.packed[hands] == turns.views["hand"][rows]
            if depth == self.tree.last or not (known & (level.legal[nodes, hands] > 0)).all():
                raise ValueError(f"{self.name} was asked about a view that no play leads to")
            ranks = level.hands.ranks[hands].astype(np.int64)
            for slot in range(level.hands.cards):
                held = ranks[:, slot] >= 0
                answer[rows[held], ranks[held, slot]] = self.tables[depth][nodes, hands, slot][held]
        return answer / answer.sum(axis=1, keepdims=True)

    def _nodes(self, publics: np.ndarray, depth: int) -> np.ndarray:
        """The nodes of the tree at which some tables are, all after `depth` plays."""
        everyone = np.arange(len(publics))
        nodes = np.zeros(len(publics), np.int64)
        for level in self.tree.levels[:depth]:
            trick, place = divmod(level.depth, self.tree.players)
            seat = (publics["leaders"][:, trick] + place) % self.tree.players
            rank = publics["played"][everyone, seat, trick].astype(np.int64)
            children = level.children[nodes].astype(np.int64)
            if not (children >> rank & 1).all():
                raise ValueError(f"{self.name} was asked about a view that no play leads to")
            nodes = level.first[nodes] + np.bitwise_count(children & (1 << rank) - 1)
        return nodes

    def check(self, rules: Rules, num_players: int, episode: str) -> None:
        """Refuse tables of another size, and other rules of the round.

        Raises:
            ValueError: says what differs.
        """
        mine, theirs = round_fields(self.tree.rules), round_fields(rules)
        mine, theirs = {"num_players": self.tree.players, **mine}, {"num_players": num_players, **theirs}
        different = [f"{name}={own!r} (here {theirs[name]!r})" for name, own in mine.items() if own != theirs[name]]
        if different:
            raise ValueError(f"{self.name} is for other rounds: {', '.join(different)}")

    def save(self, path: str | Path) -> None:
        """Write the policy to a file, which appears whole or not at all."""
        rules = json.loads(self.tree.rules.to_json())
        header = {"version": SOLUTION_VERSION, "rules": rules, "players": self.tree.players, "facts": self.facts}
        arrays = {
            f"level_{level.depth}": table[decisions]
            for level, table, decisions in zip(self.tree.levels, self.tables, _decisions(self.tree), strict=False)
        }
        fresh = Path(f"{path}.new-{os.getpid()}")
        with fresh.open("wb") as file:
            np.savez_compressed(file, header=np.array(json.dumps(header)), **arrays)
        fresh.replace(path)

    @classmethod
    def load(cls, path: str | Path) -> Tabular:
        """The policy of a file.

        Raises:
            ValueError: not such a file, of another version, or damaged.
            OSError: it cannot be read.
        """
        path = str(path)
        content = io.BytesIO(Path(path).read_bytes())
        try:
            with np.load(content, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            header = json.loads(str(arrays.pop("header")))
            version, rules, facts = header["version"], json.dumps(header["rules"]), dict(header["facts"])
            players = header.get("players", 2)
        except Exception:  # what damaged archives raise has no common base, and may advise to unpickle them
            raise ValueError(
                f"{path} is no solution file, or a damaged one; `evaluate.py solve --out FILE` writes solutions"
            ) from None
        if version != SOLUTION_VERSION:
            raise ValueError(f"{path} is a solution of version {version!r}; this program reads {SOLUTION_VERSION!r}")
        try:
            tree = build(check_rules(Rules.from_json(rules), players), players)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path} is no solution of a game that this program plays: {error}") from None
        tables = [level.uniform() for level in tree.levels[:-1]]
        for depth, (table, decisions) in enumerate(zip(tables, _decisions(tree), strict=True)):
            table[decisions] = _checked(path, arrays.get(f"level_{depth}"), table[decisions])
        return cls(tree, tables, name=f"exact:{path}", facts=facts)


def round_fields(rules: Rules) -> dict[str, Any]:
    """What a round depends on: fields of `ROUND_FIELDS` and their values."""
    return {field: getattr(rules, field) for field in ROUND_FIELDS}


def _decisions(tree: Tree) -> list[np.ndarray]:
    """By depth, bool ``[N, M]``: where there is more than one legal slot."""
    return [level.legal & level.legal - 1 != 0 for level in tree.levels[:-1]]


def _checked(path: str, found: np.ndarray | None, legal: np.ndarray) -> np.ndarray:
    """The probabilities `found` ``[D, K]``, refused unless they are distributions over the `legal` slots."""
    if found is None or found.shape != legal.shape or found.dtype != np.float32:
        raise ValueError(f"{path} is damaged: probabilities are missing or not float32 of shape {legal.shape}")
    if not (found >= 0).all() or (found[legal == 0] > 0).any() or not (np.abs(found.sum(axis=1) - 1) < 1e-4).all():
        raise ValueError(f"{path} is damaged: its numbers are no probabilities of legal cards")
    return found


register("exact", Tabular.load)
