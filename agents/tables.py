"""Which tables a run trains at: pairs of rules and player counts, from what a user writes; and its games there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from cucumber_env.envs.vector import SelfPlay
from cucumber_env.rules import MAX_SEATS, POINTS, Rules


@dataclass(frozen=True)
class Table:
    """A kind of table.

    Attributes:
        rules: Rules in force.
        players: Seats.
    """

    rules: Rules
    players: int

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Table:
        """The inverse of `to_dict`."""
        return cls(Rules.from_dict(fields["rules"]), int(fields["players"]))

    def to_dict(self) -> dict[str, Any]:
        """JSON-friendly: fields of the rules, and the number of players."""
        return {"rules": self.rules.to_dict(), "players": self.players}

    def __str__(self) -> str:
        return f"{self.rules}, {self.players} players"


def find_tables(rules: str, players: int | str) -> tuple[list[Table], list[str]]:
    """All pairs of the rules and player counts named, and what is impossible among them, in words.

    Args:
        rules: Presets with changes, such as ``cucumber,hand_size=3,agurk``: a part with ``=`` changes the preset
            before it, any other part begins the next.
        players: A number, an interval such as ``2-8``, or several with commas.

    Raises:
        ValueError, TypeError: unknown rules, text that names no numbers, or no possible pair at all.
    """
    named = [Rules.of(text) for text in _each_rules(rules)]
    counts = _player_counts(players)
    if len(named) == len(counts) == 1:
        return [Table(named[0], named[0].check_players(counts[0], name="players"))], []
    tables, impossible = [], []
    for one in named:
        for count in counts:
            try:
                tables.append(Table(one, one.check_players(count, name="players")))
            except ValueError as error:
                impossible.append(f"{one}: {error}")
    if not tables:
        raise ValueError(f"no table can be made of rules={rules!r} and players={players!r}: {'; '.join(impossible)}")
    return list(dict.fromkeys(tables)), impossible


def _each_rules(rules: str) -> list[str]:
    texts: list[str] = []
    for part in (part.strip() for part in rules.split(",")):
        if "=" in part and texts:
            texts[-1] += f",{part}"
        else:
            texts.append(part)
    return texts


def _player_counts(players: int | str) -> list[int]:
    counts: list[int] = []
    for part in str(players).split(","):
        found = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
        if not 2 <= first <= last <= MAX_SEATS:
            raise ValueError(f"players={players!r} is out of range; allowed: 2 to {MAX_SEATS}, such as 4, 2-8 or 2,4")
        counts += range(first, last + 1)
    return list(dict.fromkeys(counts))


@dataclass
class Place:
    """A kind of table in a run, and this process's games at it.

    Attributes:
        table: Rules and players.
        face: Those games, side by side.
        games: How many games the run plays there in an update, in all processes.
        share: Which of them are played here.
        first: Number of the first of them all, by which their deals are named: no two games of a run share one.
    """

    table: Table
    face: SelfPlay
    games: int
    share: slice
    first: int

    @property
    def numbers(self) -> np.ndarray:
        """Numbers of the games played here, int64."""
        return np.arange(self.first + self.share.start, self.first + self.share.stop)

    @property
    def scale(self) -> float:
        """Points that count as 1 in returns: the highest penalty, or 1 for outcomes."""
        return float(max(POINTS[self.table.rules.points].values())) if self.face.episode == "round" else 1.0


def find_places(tables: list[Table], *, games: int, episode: str, rank: int, processes: int) -> list[Place]:
    """Deal `games` evenly to tables, and those of each table to processes; what process `rank` plays.

    Raises:
        ValueError: too few games for all.
    """
    seats = MAX_SEATS if len(tables) > 1 else None
    places = []
    for number, table in enumerate(tables):
        first, end = (games * count // len(tables) for count in (number, number + 1))
        if end - first < processes:
            raise ValueError(
                f"games={games} is out of range; allowed: {len(tables) * processes} and more, for {len(tables)} tables "
                f"in {processes} processes"
            )
        share = slice(*((end - first) * count // processes for count in (rank, rank + 1)))
        face = SelfPlay(
            table.rules,
            num_games=share.stop - share.start,
            num_players=table.players,
            episode=episode,
            autoreset=False,
            seats=seats,
        )
        places.append(Place(table, face, end - first, share, first))
    return places
