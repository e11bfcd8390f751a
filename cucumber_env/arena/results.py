"""Results of games as lines of JSON: written while they are played, resumed, merged and read back.

The first line says what all games of a file share; then comes a line for each game, table by table and deal by deal:

    {"results": 1, "versions": {…}, "rules": {…}, "num_players": 4, "episode": "round", "seed": 0}
    {"deal": 0, "rotation": 0, "seats": ["careful", "highest", "highest", "highest"], "penalties": [0, 0, 9, 0], …}

`seats` names the policy at each seat; lines of rotation 0 name the table itself. Rotations that put the same policies
in the same seats are the same game and have one line. `decisions` counts the turns at which each seat had a choice;
lines of matches also have `outcomes`. A table that a policy's error ended has a line that says so, ``"failed"``.
Files are merged by putting one behind the other, or by reading several: what is there twice has to be equal.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from io import BufferedRandom
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from cucumber_env.arena.match import Result, TableError, seatings
from cucumber_env.observation import OBSERVATION_VERSION
from cucumber_env.rewards import REWARD_VERSION
from cucumber_env.rules import RULES_VERSION, Rules

FORMAT = 1
"""Stored in every file; grows whenever a file would be read as something else."""

VERSIONS = {"rules": RULES_VERSION, "rewards": REWARD_VERSION, "observation": OBSERVATION_VERSION}
"""Versions of what results depend on; results of different ones are never put together."""

Names = tuple[str, ...]
"""Names of policies, by position of a table or by seat."""


@dataclass(frozen=True)
class Setting:
    """What all games of a tournament share: rules, seats at each table, ``"round"`` or ``"match"``, and the seed."""

    rules: Rules
    num_players: int
    episode: str
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """The first line of a file, with the versions."""
        return {
            "results": FORMAT,
            "versions": VERSIONS,
            "rules": self.rules.to_dict(),
            "num_players": self.num_players,
            "episode": self.episode,
            "seed": self.seed,
        }

    @classmethod
    def from_dict(cls, fields: Any) -> Setting:
        """The setting that a first line tells.

        Raises:
            ValueError: no such line, or one of other versions, both of which it names.
        """
        if not isinstance(fields, dict) or "results" not in fields:
            raise ValueError("it does not begin as a file of results does")
        theirs = {"results": fields["results"], **fields.get("versions", {})}
        ours = {"results": FORMAT, **VERSIONS}
        if theirs != ours:
            raise ValueError(f"it was written under versions {theirs}; this program has {ours}")
        return cls(Rules.from_dict(fields["rules"]), fields["num_players"], fields["episode"], fields["seed"])


@dataclass(frozen=True)
class Failure:
    """A table that a policy's error ended.

    Attributes:
        table: Names of the policies by position.
        policy: Which of them failed.
        deal: In which deal.
        message: What it did, and where.
    """

    table: Names
    policy: str
    deal: int
    message: str

    def error(self) -> TableError:
        """The same as an error, for whoever cannot go on without the table."""
        return TableError(self.message, self.policy, self.deal)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"failed": self.message, "table": list(self.table), "policy": self.policy, "deal": self.deal}


class Games:
    """Games with the same policies at the same seats, in the order of their lines.

    Args:
        width: Numbers kept of each game: penalties, decisions and, of matches, outcomes, by seat.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self._deals, self._values = array("q"), array("d")

    def add(self, deals: Iterable[int], values: Iterable[float]) -> None:
        """More games: numbers of their deals, and what is kept of all of them in a row."""
        self._deals.extend(deals)
        self._values.extend(values)

    @property
    def deals(self) -> np.ndarray:
        """Numbers of the deals, int64 ``[G]``."""
        return np.array(self._deals, np.int64)

    @property
    def values(self) -> np.ndarray:
        """What is kept of each, float64 ``[G, width]``."""
        return np.array(self._values, np.float64).reshape(-1, self.width)

    def of(self, deals: np.ndarray) -> np.ndarray:
        """What is kept of some deals, each of them played, float64 ``[D, width]``."""
        played = self.deals
        order = np.argsort(played, kind="stable")
        return np.asarray(self.values[order[np.searchsorted(played[order], deals)]])

    def settle(self) -> None:
        """Keep each deal once.

        Raises:
            ValueError: a deal is there twice and went two ways.
        """
        played, values = self.deals, self.values
        _, first, which = np.unique(played, return_index=True, return_inverse=True)
        if len(first) == len(played):
            return
        different = (values != values[first[which]]).any(axis=1)
        if different.any():
            row = int(np.argmax(different))
            ways = values[first[which[row]]].tolist(), values[row].tolist()
            raise ValueError(f"deal {played[row]} went two ways: {ways[0]} and {ways[1]}")
        kept = np.sort(first)
        self._deals, self._values = array("q"), array("d")
        self.add(played[kept].tolist(), values[kept].ravel().tolist())


@dataclass
class Results:
    """What one or more files hold.

    Attributes:
        setting: What all games share.
        games: By who sits at which seat.
        tables: Names by position of every table that was played or failed, in the order of the file.
        failures: Tables that ended early.
    """

    setting: Setting
    games: dict[Names, Games] = field(default_factory=dict)
    tables: list[Names] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    @property
    def kinds(self) -> tuple[str, ...]:
        """What is kept of each game, by seat."""
        return ("penalties", "decisions", "outcomes") if self.setting.episode == "match" else ("penalties", "decisions")

    def seat(self, table: Names) -> None:
        """Remember that a table is there."""
        if table not in self.tables[-1:] and table not in self.tables:
            self.tables.append(table)

    def of(self, seats: Names) -> Games:
        """The games with these policies at the seats, so far perhaps none."""
        return self.games.setdefault(seats, Games(len(self.kinds) * self.setting.num_players))

    def deals(self, table: Sequence[str]) -> np.ndarray:
        """Numbers of the deals that were played in all rotations of a table, rising int64 ``[D]``."""
        played = [self.games[seats].deals if seats in self.games else np.empty(0) for seats in rotations(table)]
        return reduce(np.intersect1d, played).astype(np.int64)

    def result(self, table: Sequence[str], deals: np.ndarray | None = None) -> Result:
        """The games of a table, all of them or those of some deals.

        Raises:
            KeyError: there are none.
        """
        numbers = self.deals(table) if deals is None else deals
        if not len(numbers):
            raise KeyError(f"no deal of the table {', '.join(table)}")
        _, _, seating_of = seatings(table)
        played = np.stack([self.games[seats].of(numbers) for seats in rotations(table)], axis=1)[:, seating_of]
        values = dict(zip(self.kinds, np.split(played, len(self.kinds), axis=2), strict=True))
        decisions = values["decisions"].astype(np.int16)
        return Result(self.setting.episode, values["penalties"], values.get("outcomes"), decisions)

    def failure(self, table: Sequence[str]) -> Failure | None:
        """How a table, or one that is a rotation of it, ended early, if it did and its deal was not played since."""
        names = tuple(table)
        turned = [names[turn:] + names[:turn] for turn in range(len(names))]
        found = next((failure for failure in self.failures if failure.table in turned), None)
        if found is None or found.deal in self.deals(table):
            return None
        return replace(found, table=names)

    def settle(self) -> None:
        """Keep each game once.

        Raises:
            ValueError: a game is there twice and went two ways.
        """
        for seats, games in self.games.items():
            try:
                games.settle()
            except ValueError as error:
                raise ValueError(f"{error} with {', '.join(seats)}") from None

    def merge(self, other: Results) -> None:
        """Take over what another holds.

        Raises:
            ValueError: it is of another setting, or the same game went otherwise there.
        """
        if other.setting != self.setting:
            raise ValueError(f"results of {_differences(self.setting, other.setting)} cannot be put together")
        for seats, theirs in other.games.items():
            self.of(seats).add(theirs.deals.tolist(), theirs.values.ravel().tolist())
        self.settle()
        self.tables += [table for table in other.tables if table not in self.tables]
        self.failures += [failure for failure in other.failures if failure not in self.failures]


def rotations(table: Sequence[str]) -> list[Names]:
    """Who sits at which seat under the different rotations of a table."""
    distinct, seated, _ = seatings(table)
    return [tuple(distinct[index] for index in seats) for seats in seated]


def read(paths: str | Path | Iterable[str | Path]) -> Results:
    """What some files hold together.

    The last line of a file may be torn, as a program that was stopped leaves it; it is then left out.

    Raises:
        ValueError: a line that is no result, named by file and number, or files that do not belong together.
        OSError: a file cannot be read.
    """
    several = [paths] if isinstance(paths, str | Path) else list(paths)
    if not several:
        raise ValueError("no file of results was named")
    whole: Results | None = None
    for path in several:
        with open(path, "rb") as file:
            found, _ = _parse(path, file)
        if found is None:
            raise ValueError(f"{path} is no file of results: it is empty")
        if whole is None:
            whole = Results(found.setting)
        try:
            whole.merge(found)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    assert whole is not None
    return whole


class ResultFile:
    """A file that results are added to, a context manager.

    What a stopped program left in it is taken over, up to the last deal that is there in all rotations, so that a
    file which was continued has the same bytes as one which was written in one go. Only one program can have it open.

    Raises:
        ValueError: the file holds results of another setting, is none of results, or is in use.
        OSError: it cannot be written.
    """

    def __init__(self, path: str | Path, setting: Setting) -> None:
        self.path, self.setting = Path(path), setting
        self._file: BufferedRandom = open(self.path, "a+b")  # noqa: SIM115 (closed on exit)
        try:
            self.results = self._take_over()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> ResultFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _take_over(self) -> Results:
        _lock(self._file, self.path)
        self._file.seek(0)
        found, end = _parse(self.path, self._file)
        if found is None:
            first = _line(self.setting.to_dict())
            self._file.seek(0)
            if not first.encode().startswith(self._file.read()):
                raise ValueError(f"{self.path} is no file of results; choose another file")
            self._file.truncate(0)
            self._write([first])
            return Results(self.setting)
        self._file.truncate(end)
        if found.setting != self.setting:
            raise ValueError(
                f"{self.path} holds results of {_differences(found.setting, self.setting)}; choose another file"
            )
        return found

    def add(self, table: Sequence[str], deals: np.ndarray, result: Result) -> None:
        """Write the games of some deals at a table."""
        _, _, seating_of = seatings(table)
        first = [int(np.flatnonzero(seating_of == seating)[0]) for seating in range(seating_of.max() + 1)]
        names = [json.dumps(seats, ensure_ascii=False) for seats in rotations(table)]
        kinds = [result.penalties.astype(np.int64), result.decisions]
        if result.outcomes is not None:
            kinds.append(result.outcomes)
        lists = [kind[:, first].tolist() for kind in kinds]
        kept = ", ".join(f'"{kind}": {{}}' for kind in self.results.kinds)
        line = f'{{{{"deal": {{}}, "rotation": {{}}, "seats": {{}}, {kept}}}}}\n'.format
        self._write(
            line(deal, rotation, seats, *values)
            for deal, *rows in zip(deals.tolist(), *lists, strict=True)
            for rotation, seats, *values in zip(first, names, *rows, strict=True)
        )

    def fail(self, failure: Failure) -> None:
        """Write that a table has ended early."""
        self.results.failures.append(failure)
        self._write([_line(failure.to_dict())])

    def _write(self, lines: Iterable[str]) -> None:
        self._file.write("".join(lines).encode())
        self._file.flush()


def _line(content: Mapping[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False) + "\n"


def _parse(path: str | Path, file: Iterable[bytes]) -> tuple[Results | None, int]:
    """What a file holds, and how many of its bytes hold it: whole lines, and deals in all their rotations.

    Raises:
        ValueError: names the line.
    """
    found: Results | None = None
    end = sound = 0
    waiting = 0  # games of the last deal that have not come yet
    for number, line in enumerate(file, 1):
        if not line.endswith(b"\n"):
            break
        end += len(line)
        try:
            fields = json.loads(line)
            if found is None or "results" in fields:
                found = _opened(found, fields)
            elif "failed" in fields:
                table = tuple(fields["table"])
                found.seat(table)
                found.failures.append(Failure(table, fields["policy"], fields["deal"], fields["failed"]))
            else:
                waiting = _take(found, fields, waiting)
        except (ValueError, KeyError, TypeError) as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else error
            raise ValueError(f"{path}, line {number}: {reason}") from None
        if not waiting:
            sound = end
    if found is not None:
        try:
            found.settle()
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    return found, sound


def _opened(found: Results | None, fields: Any) -> Results:
    """The results of a first line; another one may follow where files were put one behind the other."""
    setting = Setting.from_dict(fields)
    if found is not None and found.setting != setting:
        raise ValueError(f"results of {_differences(found.setting, setting)} cannot be put together")
    return found or Results(setting)


def _take(found: Results, fields: Mapping[str, Any], waiting: int) -> int:
    """Put a game where it belongs; returns how many games of its deal are still to come."""
    seats = tuple(fields["seats"])
    values = [fields[kind] for kind in found.kinds]
    if {len(each) for each in (seats, *values)} != {found.setting.num_players}:
        raise ValueError(f"a game of {len(seats)} seats at a table of {found.setting.num_players}")
    found.of(seats).add([fields["deal"]], chain.from_iterable(values))
    if fields["rotation"]:
        return waiting - 1
    found.seat(seats)
    return len(rotations(seats)) - 1


def _differences(mine: Setting, theirs: Setting) -> str:
    """Where two settings differ, both values of each."""
    one, other = ({**setting.to_dict(), **setting.rules.to_dict(), "rules": ""} for setting in (mine, theirs))
    return ", ".join(f"{name} {one[name]} and {other[name]}" for name in one if one[name] != other[name])


def _lock(file: BufferedRandom, path: Path) -> None:
    """Keep other programs from writing to the file while this one does.

    Raises:
        ValueError: another has it.
    """
    try:
        import fcntl
    except ImportError:  # only POSIX systems have it
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ValueError(f"{path} is being written by another program") from None
