"""A tournament: every policy against every other, ranked, rated, and held against an agent that sees all cards.

    tournament    plays it, into a file if there is one
    analyse       makes the same of files that were written before

>>> cup = tournament(["highest", "lowest"], rules="three_card", num_players=2, deals=100, seer_deals=50)
>>> cup.round_robin.pairs[0].difference.sign  # `highest` pays less
-1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from cucumber_env.arena.compare import Comparison, RoundRobin, Sample, check_deals, one_table, same_tables
from cucumber_env.arena.match import Progress, Result
from cucumber_env.arena.ranking import Rank, cycles, openskill, ranks, surely_better
from cucumber_env.arena.report import SCORES, better
from cucumber_env.arena.results import VERSIONS, Failure, Names, Results, Setting
from cucumber_env.arena.seer import Seer, suspects, unjudged
from cucumber_env.arena.statistics import Estimate, mean_interval, simultaneous
from cucumber_env.arena.tables import play_tables
from cucumber_env.policies import Policy, make, names
from cucumber_env.rules import Rules

SEER_DEALS = {"round": 1000, "match": 100}
"""Deals, at most, on which the seer is measured unless told otherwise: it plays every game many times over."""

MOST_MIXED = 35
"""Mixed tables, at most: all fours of seven policies."""

CONFIDENCE = 0.95
"""Of intervals, and of all decisions of a ranking together."""

BEATS = (
    "One policy ranks above another, or beats it in a cycle, if the interval of their difference, paired by deal, "
    f"leaves zero out at a confidence of {CONFIDENCE:.0%} for all such decisions together (Bonferroni)."
)
"""How a report says who is better than whom."""

Played = Mapping[Names, tuple[np.ndarray, Result]]
"""By table the numbers of the deals that were played there, int64 ``[D]``, and what came of them."""


@dataclass(frozen=True)
class Tournament:
    """What came of a tournament.

    Attributes:
        setting: Rules, seats, episode and seed of all tables.
        deals: Duplicate deals of each table of the round robin.
        round_robin: Every policy against every other.
        seer: An agent that sees all cards in the place of one of each field.
        mixed: Tables of different policies, by their names.
    """

    setting: Setting
    deals: int
    round_robin: RoundRobin
    seer: list[Comparison]
    mixed: dict[Names, Result]

    @property
    def ranked(self) -> list[int]:
        """The policies that met all others of these, by their position.

        While a table is missing, whoever misses most tables is left out, the last of several.
        """
        results = self.round_robin.results
        places = list(range(len(results)))
        while True:
            missing = [sum(not (results[i][j] and results[j][i]) for j in places) for i in places]
            if not any(missing):
                return places
            worst = max(range(len(places)), key=lambda place: (missing[place], place))
            places.pop(worst)

    def scores(self) -> np.ndarray:
        """Of the policies that have a rank the mean score among all of them, by deal: float64 ``[deals, k]``."""
        results = self.round_robin.results
        samples = [[Sample.of(result).one for j in self.ranked if (result := results[i][j])] for i in self.ranked]
        return np.mean(samples, axis=1).T

    def ranking(self) -> list[Rank]:
        """Ranks by the mean score among all fields, best first."""
        named = [self.round_robin.names[place] for place in self.ranked]
        return ranks(named, self.scores(), lower_is_better=self._lower, confidence=CONFIDENCE) if named else []

    def cycles(self) -> list[list[str]]:
        """Policies that beat each other in a circle, by their pairs, all decided together at the confidence."""
        results, ranked = self.round_robin.results, self.ranked
        size = len(ranked)
        signs = np.zeros((size, size), np.int64)
        for i, j in combinations(range(size), 2):
            one, other = results[ranked[i]][ranked[j]], results[ranked[j]][ranked[i]]
            assert one is not None
            assert other is not None
            scores = np.stack(same_tables(Sample.of(one), Sample.of(other)), axis=1)
            confidence = simultaneous(size * (size - 1) // 2, confidence=CONFIDENCE)
            signs[i, j] = surely_better(scores, lower_is_better=self._lower, confidence=confidence)[0, 1]
        return cycles([self.round_robin.names[place] for place in ranked], signs - signs.T)

    def report(self, *, audit: Sequence[Mapping[str, Any]] = (), command_line: str | None = None) -> dict[str, Any]:
        """All of it, JSON-friendly: what `markdown` and `page` show, and ``evaluate.py arena --json`` writes.

        Args:
            audit: What best responses gain, as `agents.audit` finds it.
            command_line: How to play it again.

        Raises:
            ImportError: a library of the extra ``arena`` is missing; says which.
        """
        setting, result = self.setting, self.round_robin
        rows = [one for row in result.against for one in row if one]
        rated, games = openskill(*self._rated(), lower_is_better=self._lower)
        skills = {rating.policy: rating.to_dict() for rating in rated if rating.games}
        return {
            "command": "arena",
            "command_line": command_line,
            "versions": VERSIONS,
            "rules": setting.rules.to_dict(),
            "rules_text": str(setting.rules),
            "num_players": setting.num_players,
            "episode": setting.episode,
            "deals": self.deals,
            "seed": setting.seed,
            "score": SCORES[setting.episode],
            "better": better(setting.episode),
            "confidence": CONFIDENCE,
            **result.to_dict(),
            "ranking": [{**rank.to_dict(), "openskill": skills.get(rank.policy)} for rank in self.ranking()],
            "unranked": [name for place, name in enumerate(result.names) if place not in self.ranked],
            "beats": BEATS,
            "openskill_games": games,
            "cycles": self.cycles(),
            "mixed": [
                {"policy": name, "tables": tables, "score": score.to_dict()}
                for name, tables, score in self.mixed_scores()
            ],
            "distribution": {name: distribution(result, place) for place, name in enumerate(result.names)},
            "seer": [row.to_dict() for row in self.seer],
            "suspects": suspects(rows, self.seer),
            "unjudged": unjudged(rows, self.seer),
            "audit": [dict(row) for row in audit],
        }

    def mixed_scores(self) -> list[tuple[str, int, Estimate]]:
        """Of each policy at mixed tables: its name, how many tables, and its mean score over them.

        All tables are played on the same deals, so that the mean over tables is taken deal by deal.
        """
        found = []
        for name in self.round_robin.names:
            tables = [(table.index(name), result) for table, result in self.mixed.items() if name in table]
            scores = [result.of(place, result.scores).mean(axis=1) for place, result in tables]
            if scores:
                found.append((name, len(scores), mean_interval(np.mean(scores, axis=0), confidence=CONFIDENCE)))
        return found

    def _rated(self) -> tuple[list[str], list[dict[int, np.ndarray]]]:
        """Names, and by table the scores of its policies by deal: mixed tables if there are any, else all pairs."""
        named = self.round_robin.names
        if self.mixed:
            return named, [
                {named.index(name): result.of(place, result.scores).mean(axis=1) for place, name in enumerate(table)}
                for table, result in self.mixed.items()
            ]
        tables = []
        for i, row in enumerate(self.round_robin.results):
            for j, result in enumerate(row):
                if i != j and result is not None:
                    sample = Sample.of(result)
                    tables.append({i: sample.one, j: sample.others})
        return named, tables

    @property
    def _lower(self) -> bool:
        return self.setting.episode == "round"


def tournament(
    policies: Sequence[str | Policy],
    *,
    rules: Rules | str | Mapping[str, Any] = "cucumber",
    num_players: int = 4,
    deals: int = 10_000,
    seed: int = 0,
    episode: str = "round",
    seer_deals: int | None = None,
    mixed_deals: int = 0,
    file: str | Path | None = None,
    retry: bool = False,
    workers: int | None = 1,
    progress: Progress | None = None,
) -> Tournament:
    """Play every policy against n−1 of every other, the seer among each, and if asked mixed tables.

    Reports ``deals * k² + seer_deals * k + mixed_deals * tables`` to `progress` for k policies, see `size`.

    Args:
        policies: Two or more, of different names.
        rules, num_players, seed, episode: As `match.play`.
        deals: Duplicate deals of each table of the round robin.
        seer_deals: Of each table of the seer, at most as many as `deals`; 0: no seer; None: as `SEER_DEALS` has it.
        mixed_deals: Of each mixed table, at most as many as `deals`; 0: none. They take more than two seats, and as
            many policies as seats.
        file, retry, workers, progress: As `tables.play_tables`.

    Raises:
        ValueError, TypeError, OSError: as `play_tables`, fewer than two policies, or two of one name.
    """
    made = check_policies(policies)
    check_deals(deals)
    check_further_deals(len(made), num_players, seer_deals=seer_deals or 0, mixed_deals=mixed_deals)
    setting: dict[str, Any] = {"rules": rules, "seed": seed, "episode": episode}
    setting |= {"file": file, "retry": retry, "workers": workers}
    seer, seen = Seer(), SEER_DEALS.get(episode, 0) if seer_deals is None else seer_deals
    stages = [
        (deals, [one_table(one, field, num_players) for one in made for field in made]),
        (min(seen, deals), [one_table(seer, field, num_players) for field in made]),
        (min(mixed_deals, deals), mixed_tables(made, num_players)),
    ]
    played: dict[Names, tuple[np.ndarray, Result]] = {}
    failures: list[Failure] = []
    for count, tables in stages:
        if count < 1 or not tables:
            continue
        outcomes = play_tables(tables, deals=count, progress=progress, **setting)
        for table, outcome in zip(tables, outcomes, strict=True):
            if isinstance(outcome, Failure):
                failures.append(outcome)
            else:
                played[_names(table)] = (np.arange(count), outcome)
    shared = Setting(Rules.of(rules), num_players, episode, seed)
    return _analysed(shared, [policy.name for policy in made], played, failures)


def analyse(results: Results) -> Tournament:
    """The tournament that files of results hold.

    Policies are taken in the order of the tables, the numbers from the deals that all tables of the round robin have
    in common. Tables with fewer than half the deals of the longest, such as one at which a tournament was stopped,
    count as not played.

    Raises:
        ValueError: there are fewer than two policies with tables of their own, or no deal that all tables share.
    """
    players = results.setting.num_players
    guests = [table for table in results.tables if len(set(table[1:])) == 1 and table[0] != Seer.name]
    named = list(dict.fromkeys(name for table in guests for name in table))
    if len(named) < 2:
        raise ValueError(f"results of {len(named)} policies; a tournament takes those of two or more")
    pairs = dict.fromkeys(_names(one_table(one, field, players)) for one in named for field in named)
    tables = [*pairs, *(table for table in results.tables if table not in pairs)]
    failures = [failure for table in tables if (failure := results.failure(table))]
    failed = {failure.table for failure in failures}
    found = {table: results.deals(table) for table in tables if table not in failed}
    longest = max(map(len, found.values()), default=0)
    found = {table: deals for table, deals in found.items() if 2 * len(deals) >= longest or table not in pairs}
    paired = _shared(found, pairs.keys())
    if failures and not paired:
        raise failures[0].error()
    if all(len(numbers) < 2 for numbers in paired.values()):
        raise ValueError("the tables have fewer than two deals in common; an interval takes two or more")
    deals = {**found, **paired, **_shared(found, set(filter(_is_mixed, tables)))}
    played = {table: (numbers, results.result(table, numbers)) for table, numbers in deals.items() if len(numbers) > 1}
    return _analysed(results.setting, named, played, failures)


def size(policies: int, num_players: int, deals: int, seer_deals: int, mixed_deals: int) -> int:
    """Deals that a tournament plays in all, over all tables."""
    mixed = len(mixed_tables(list(range(policies)), num_players))
    return policies**2 * deals + policies * min(seer_deals, deals) + mixed * min(mixed_deals, deals)


def check_policies(policies: Sequence[str | Policy]) -> list[Policy]:
    """The policies of a tournament.

    Raises:
        ValueError, TypeError: an unknown name, fewer than two, or two of one name.
    """
    made = [make(policy) for policy in policies]
    if len(made) < 2:
        raise ValueError(f"a comparison takes two or more policies; names: {', '.join(names())}")
    twice = sorted({one.name for one in made if [other.name for other in made].count(one.name) > 1})
    if twice or Seer.name in [one.name for one in made]:
        raise ValueError(
            f"policies of a tournament need different names; given twice or reserved: {twice or Seer.name}"
        )
    return made


def check_further_deals(policies: int, num_players: int, *, seer_deals: int, mixed_deals: int) -> None:
    """Refuse numbers of deals of the seer and of mixed tables that make no interval or no table.

    Raises:
        ValueError: names the argument.
    """
    for name, deals in (("seer_deals", seer_deals), ("mixed_deals", mixed_deals)):
        if deals < 0 or deals == 1:
            raise ValueError(
                f"{name}={deals} is out of range; allowed: 0 for none, or 2 and more (one has no interval)"
            )
    if mixed_deals and not mixed_tables(range(policies), num_players):
        raise ValueError(
            f"mixed_deals={mixed_deals}: tables of different policies take three seats or more, and as many policies "
            f"as seats; here {num_players} seats and {policies} policies"
        )


def mixed_tables(policies: Sequence[Any], num_players: int) -> list[list[Any]]:
    """Tables of different policies: all ways of choosing them, or `MOST_MIXED` evenly spread over these."""
    if num_players < 3:
        return []
    tables = [list(table) for table in combinations(policies, num_players)]
    chosen = np.unique(np.linspace(0, len(tables) - 1, min(len(tables), MOST_MIXED)).round().astype(int))
    return [tables[place] for place in chosen] if tables else []


def distribution(result: RoundRobin, place: int) -> dict[str, list[float]]:
    """How often a policy among others pays so many points: ``points`` and the ``share`` of games with each.

    Of rounds, what the round cost; of matches, the total at the end.
    """
    among = [row for field, row in enumerate(result.results[place]) if row is not None and field != place]
    if not among:
        return {"points": [], "share": []}
    paid = np.concatenate([row.of(0, row.penalties).ravel() for row in among])
    points, counts = np.unique(paid, return_counts=True)
    return {"points": points.tolist(), "share": (counts / counts.sum()).tolist()}


def _analysed(setting: Setting, named: list[str], played: Played, failures: Sequence[Failure]) -> Tournament:
    """The tournament that some tables make up."""
    failed = {failure.table: failure for failure in failures}

    def at(one: str, field: str) -> Result | Failure | None:
        table = _names(one_table(one, field, setting.num_players))
        return failed.get(table) or (played[table][1] if table in played else None)

    result = RoundRobin.of(named, [[at(one, field) for field in named] for one in named])
    known = {failure.table for failure in result.failures}
    result.failures.extend(failure for failure in failures if failure.table not in known)
    seer = [_seen(setting, field, played) for field in named]
    mixed = {table: found for table, (_, found) in played.items() if _is_mixed(table)}
    deals = next(len(found.penalties) for row in result.results for found in row if found is not None)
    return Tournament(setting, deals, result, [row for row in seer if row], mixed)


def _seen(setting: Setting, field: str, played: Played) -> Comparison | None:
    """The seer in the place of one of a field, on the deals that both have played."""
    tables = [_names(one_table(one, field, setting.num_players)) for one in (Seer.name, field)]
    if not all(table in played for table in tables):
        return None
    (seen, seer), (deals, own) = (played[table] for table in tables)
    common = np.intersect1d(seen, deals)
    if len(common) < 2:
        return None
    mine, theirs = (
        Sample.of(result.select(np.searchsorted(numbers, common))) for numbers, result in ((seen, seer), (deals, own))
    )
    return Comparison.of((Seer.name, field), mine, theirs, (setting.num_players, setting.episode))


def _shared(found: Mapping[Names, np.ndarray], tables: Set[Names]) -> dict[Names, np.ndarray]:
    """The deals that all those of some tables which were played at all have in common, for each of these tables."""
    played = {table: numbers for table, numbers in found.items() if table in tables and len(numbers)}
    return dict.fromkeys(played, reduce(np.intersect1d, played.values())) if played else {}


def _is_mixed(table: Names) -> bool:
    """Whether all seats have different policies, and are more than two."""
    return len(set(table)) == len(table) > 2


def _names(table: Sequence[str | Policy]) -> Names:
    return tuple(one if isinstance(one, str) else one.name for one in table)
