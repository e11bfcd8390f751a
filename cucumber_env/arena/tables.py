"""Many tables on the same deals: in this process, on all cores or on a cluster, into a file that can be continued.

The work is cut into parts of a table and `PART` deals, whose results come back in the order of the tables, however
many workers there are; so the file is the same. joblib hands the parts out, and with it whatever it can use: under
``joblib.parallel_config("dask")`` or ``"ray"`` the same call plays on a cluster.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cucumber_env.arena.match import Deals, Progress, Result, TableError, check_table, deal_numbers, play
from cucumber_env.arena.optional import optional
from cucumber_env.arena.results import Failure, ResultFile, Results, Setting
from cucumber_env.batch import make_options, seed_word
from cucumber_env.policies import Policy, make
from cucumber_env.rules import Rules

PART = 1024
"""Deals that a worker plays at a time."""


@dataclass(frozen=True)
class Part:
    """Some deals at one of the tables.

    Attributes:
        number: Of the table.
        table: The policy for every seat.
        deals: Numbers of the deals, int64 ``[D]``.
        setting: What all tables share.
    """

    number: int
    table: tuple[Policy, ...]
    deals: np.ndarray
    setting: Setting

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the policies."""
        return tuple(policy.name for policy in self.table)

    def play(self) -> Result | Failure:
        """Play the deals, in whichever process."""
        setting = self.setting
        try:
            return play(self.table, rules=setting.rules, deals=self.deals, seed=setting.seed, episode=setting.episode)
        except TableError as error:
            return Failure(self.names, error.policy, error.deal, str(error))


def play_tables(
    tables: Sequence[Sequence[str | Policy]],
    *,
    rules: Rules | str | Mapping[str, Any] = "cucumber",
    deals: Deals = 1000,
    seed: int = 0,
    episode: str = "round",
    file: str | Path | None = None,
    retry: bool = False,
    workers: int | None = 1,
    progress: Progress | None = None,
) -> list[Result | Failure]:
    """Play every table on the same duplicate deals.

    Args:
        tables: For each table a policy, or the name of one, for every seat; all with as many seats.
        rules, deals, seed, episode: As `match.play`.
        file: Results as lines of JSON are written here while they come, see `results`. What is there already is not
            played again, so that a stopped tournament goes on. Policies then need different names.
        retry: Play tables that failed in the file again, from where they ended. Otherwise they stand as they ended.
        workers: Processes that play: 1 is this one, −1 all cores, None what `joblib.parallel_config` says.
        progress: Told of finished deals, those in the file among them.

    Returns:
        For each table the result, or how a policy's error ended it; the other tables are played all the same.

    Raises:
        ValueError, TypeError, OSError: an argument out of range, policies that cannot sit at such a table, or a file
            that holds something else.
    """
    seated = _seated(tables)
    setting = _setting(seated, rules, seed, episode)
    numbers = deal_numbers(deals)
    different, turned = _different(seated)
    wanted = [Part(number, table, numbers, setting) for number, table in enumerate(different)]
    tell = progress or (lambda _: None)
    with ExitStack() as stack:
        book = None if file is None else stack.enter_context(_open(file, setting, seated))
        found = [_known(part, book.results if book else Results(setting), retry) for part in wanted]
        left = len(different) * len(numbers) - sum(known.count for known in found)
        tell(len(seated) * len(numbers) - left)
        for part, outcome in stack.enter_context(closing(_played(_parts(wanted, found), workers))):
            known = found[part.number]
            if known.failure is None:
                known.add(part.deals, outcome)
                if book:
                    _write(book, part, outcome)
            left -= len(part.deals)
            tell(len(part.deals))
        tell(left)  # of tables that ended early
    outcomes = [known.outcome(numbers) for known in found]
    return [_turn(outcomes[which], turn, table) for (which, turn), table in zip(turned, seated, strict=True)]


def sound(outcomes: Sequence[Result | Failure]) -> list[Result]:
    """What came of tables, for whoever cannot go on without one of them.

    Raises:
        TableError: one failed.
    """
    for outcome in outcomes:
        if isinstance(outcome, Failure):
            raise outcome.error()
    return [outcome for outcome in outcomes if isinstance(outcome, Result)]


@dataclass
class Known:
    """What is known of a table so far.

    Attributes:
        deals, results: Parts that were played.
        failure: How the table ended early, if it did.
    """

    deals: list[np.ndarray]
    results: list[Result]
    failure: Failure | None = None

    @property
    def count(self) -> int:
        """How many deals were played."""
        return sum(map(len, self.deals))

    def add(self, deals: np.ndarray, outcome: Result | Failure) -> None:
        """One more part."""
        if isinstance(outcome, Failure):
            self.failure = outcome
        else:
            self.deals.append(deals)
            self.results.append(outcome)

    def outcome(self, numbers: np.ndarray) -> Result | Failure:
        """The failure, or the result with its deals in the order of `numbers`."""
        if self.failure is not None:
            return self.failure
        played = np.concatenate(self.deals)
        order = np.argsort(played)
        return Result.join(self.results).select(order[np.searchsorted(played[order], numbers)])


def _seated(tables: Sequence[Sequence[str | Policy]]) -> list[tuple[Policy, ...]]:
    """The tables with the policies that names stand for; one policy for each name, so that it is asked in batches."""
    made: dict[str, Policy] = {}

    def policy(one: str | Policy) -> Policy:
        return made.setdefault(one, make(one)) if isinstance(one, str) else make(one)

    seated = [tuple(policy(one) for one in table) for table in tables]
    if len({len(table) for table in seated}) != 1:
        raise ValueError(f"tables of {sorted({len(table) for table in seated})} seats; all have to be alike")
    return seated


def _different(seated: list[tuple[Policy, ...]]) -> tuple[list[tuple[Policy, ...]], list[tuple[int, int]]]:
    """The tables that are no rotations of earlier ones; and for all which of these they are, and turned how far.

    Tables that are rotations of each other are the same games: of two players, one against the other either way.
    """
    different: list[tuple[Policy, ...]] = []
    places: dict[tuple[int, ...], tuple[int, int]] = {}
    turned = []
    for table in seated:
        ids = [id(policy) for policy in table]
        if tuple(ids) not in places:
            for turn in range(len(ids)):
                places.setdefault(tuple(ids[turn:] + ids[:turn]), (len(different), turn))
            different.append(table)
        turned.append(places[tuple(ids)])
    return different, turned


def _turn(outcome: Result | Failure, turn: int, table: tuple[Policy, ...]) -> Result | Failure:
    """What came of a table, as told of the same table begun `turn` positions later."""
    if isinstance(outcome, Failure):
        return replace(outcome, table=tuple(policy.name for policy in table))
    return outcome.turned(turn)


def _setting(seated: list[tuple[Policy, ...]], rules: Any, seed: int, episode: str) -> Setting:
    """What all tables share, checked."""
    rules = Rules.of(rules)
    players = rules.check_players(len(seated[0]), name="seats at the table")
    make_options(rules=rules, num_players=players, episode=episode)
    seed_word(seed)
    for table in seated:
        check_table(table, rules, episode)
    return Setting(rules, players, episode, int(seed))


def _open(file: str | Path, setting: Setting, seated: list[tuple[Policy, ...]]) -> ResultFile:
    """The file, after it is sure that its names tell the policies apart."""
    names: dict[str, Policy] = {}
    for policy in (policy for table in seated for policy in table):
        if names.setdefault(policy.name, policy) is not policy:
            raise ValueError(f"two policies have the name {policy.name!r}; a file of results tells them by name")
    return ResultFile(file, setting)


def _known(part: Part, results: Results, retry: bool) -> Known:
    """What a file knows of a table; how it failed only if deals are missing for it."""
    deals = part.deals[np.isin(part.deals, results.deals(part.names))]
    failure = None if retry or len(deals) == len(part.deals) else results.failure(part.names)
    if failure is not None:
        said = f"{failure.message}; the file says so, which was not played again (retry does)"
        failure = replace(failure, message=said)
    return Known([deals], [results.result(part.names, deals)], failure) if len(deals) else Known([], [], failure)


def _parts(wanted: list[Part], found: list[Known]) -> Iterator[Part]:
    """What is left to play, table by table; those that have ended by then are left out.

    Parts are cut at the same deals however much is known, so that a policy that fails does so in the same part.
    """
    for part, known in zip(wanted, found, strict=True):
        missing = ~np.isin(part.deals, np.concatenate([*known.deals, np.empty(0, np.int64)]))
        for first in range(0, len(missing), PART):
            left = part.deals[first : first + PART][missing[first : first + PART]]
            if len(left) and known.failure is None:
                yield replace(part, deals=left)


def _played(parts: Iterator[Part], workers: int | None) -> Generator[tuple[Part, Result | Failure]]:
    """Every part with what came of it, in the order of the parts."""
    if workers == 1:
        yield from ((part, part.play()) for part in parts)
        return
    joblib = optional("joblib")
    with warnings.catch_warnings():
        # A tournament that is stopped means to leave parts undone, and a worker that has loaded torch is replaced.
        for message in (".*still being processed", "A worker stopped while some jobs"):
            warnings.filterwarnings("ignore", message)
        calls = joblib.Parallel(n_jobs=workers, return_as="generator")(joblib.delayed(_pair)(part) for part in parts)
        try:
            with closing(calls):
                yield from calls
        except BrokenProcessPool as error:
            raise ChildProcessError(f"a worker was ended from outside or ran out of memory: {error}") from error


def _pair(part: Part) -> tuple[Part, Result | Failure]:
    return part, part.play()


def _write(book: ResultFile, part: Part, outcome: Result | Failure) -> None:
    if isinstance(outcome, Failure):
        book.fail(outcome)
    else:
        book.add(part.names, part.deals, outcome)
