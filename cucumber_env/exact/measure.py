"""Measure a policy: what it is worth in all seats, and what best responses to it gain.

`exploitability` is about tables of two. `deviation` is about tables of any size; nothing there speaks of equilibria,
see `cucumber_env.exact.CLAIM`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from cucumber_env.baselines import BASELINES
from cucumber_env.exact.evaluation import BATCH, Evaluation, Progress, ask
from cucumber_env.exact.reports import Deviation, Measured, Report
from cucumber_env.exact.tabular import Tabular
from cucumber_env.exact.threads import check_threads
from cucumber_env.exact.tree import build, check_rules
from cucumber_env.policies import Policy, make
from cucumber_env.rules import Rules

Kind = TypeVar("Kind", bound=Measured)


def exploitability(
    rules: Rules | str | Mapping[str, Any],
    policy: Policy | str,
    *,
    batch: int = BATCH,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """What `policy` is worth against itself in a round of two, and how much best responses win.

    The policy is asked for its probabilities at every decision that its own play can reach, once each, in batches,
    from the thread of the caller; forced turns are not asked.

    Args:
        rules: Rules with a fixed hand size, a preset with changes such as ``"cucumber,hand_size=3"``, or a mapping.
        policy: A policy or the name of one.
        batch: Decisions asked at a time.
        threads: Threads to work in, by default one a core. The results are the same bytes for any number.
        progress: Told of the share of the work that is done.

    Raises:
        ValueError, TypeError: an argument out of range (see `check_rules`), a policy that cannot sit at such a
            table, that only samples, or that answers what is no distribution over the legal actions.

    Example:
        >>> report = exploitability("cucumber,hand_size=2", "highest")
        >>> f"{report.value:.5f} {abs(report.nash_conv):.5f}"
        '2.97943 0.00000'
    """
    return _measure(Report, rules, policy, 2, batch, threads, progress)


def deviation(
    rules: Rules | str | Mapping[str, Any],
    policy: Policy | str,
    num_players: int,
    *,
    batch: int = BATCH,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Deviation:
    """What `policy` is worth in each seat when it plays all of them, and what each seat gains by deviating alone.

    No equilibrium is claimed, see `cucumber_env.exact.CLAIM`.

    Args:
        rules, policy, batch, threads, progress: As `exploitability`.
        num_players: Seats at the table.

    Raises:
        ValueError, TypeError: as `exploitability`.

    Example:
        >>> report = deviation("cucumber,hand_size=2", "lowest", num_players=3)
        >>> [f"{gain:.5f}" for gain in report.gains]
        ['6.01825', '3.59154', '1.86840']
    """
    return _measure(Deviation, rules, policy, num_players, batch, threads, progress)


def _measure(
    kind: type[Kind],
    rules: Rules | str | Mapping[str, Any],
    policy: Policy | str,
    num_players: int,
    batch: int,
    threads: int | None,
    progress: Progress | None,
) -> Kind:
    """A report of some kind: one walk over the tree, which the baselines take along."""
    started = time.perf_counter()
    rules, policy, threads = _checked(rules, policy, num_players, threads)
    tree = build(rules, num_players)
    others = [ask(tree, make(name)) for name in BASELINES]
    walk = Evaluation(tree, ask(tree, policy, batch), others, threads=threads, progress=progress)
    best, values, *baselines = walk.run()
    return kind(
        values=values,
        best_response=best,
        baselines=dict(zip(BASELINES, baselines, strict=True)),
        information_states=tree.information_states,
        decisions=tree.decisions,
        seconds=time.perf_counter() - started,
    )


def _checked(
    rules: Rules | str | Mapping[str, Any], policy: Policy | str, num_players: int, threads: int | None
) -> tuple[Rules, Policy, int]:
    """Rules, a policy that plays by them, and a number of threads, or what is wrong with them."""
    threads = check_threads(threads)
    rules, policy = check_rules(rules, num_players), make(policy)
    policy.check(rules, num_players, "round")
    return rules, policy, threads


def best_response(
    rules: Rules | str | Mapping[str, Any],
    policy: Policy | str,
    seat: int,
    *,
    num_players: int = 2,
    batch: int = BATCH,
    threads: int | None = None,
) -> tuple[Tabular, float]:
    """A best response of `seat` to `policy` in all other seats, and the utility of `seat` then, in points.

    Args:
        rules, policy, batch, threads: As `exploitability`.
        seat: 0 for the seat that leads the first trick, then clockwise.
        num_players: Seats at the table.

    Returns:
        A policy for all seats, which responds best in `seat` (with the lowest card where several are as good) and
        plays as `policy` in the others (any card alike where that never gets), so that it can be measured in its turn;
        and the utility, as in `cucumber_env.exact.deviation`.

    Raises:
        ValueError, TypeError: as `exploitability`, or another seat.

    Example:
        >>> response, utility = best_response("cucumber,hand_size=2", "random", 1)
        >>> f"{utility:.5f} {exploitability('cucumber,hand_size=2', response).values[1]:.5f}"
        '2.41761 2.41761'
    """
    rules, policy, threads = _checked(rules, policy, num_players, threads)
    if isinstance(seat, bool) or not isinstance(seat, int | np.integer) or not 0 <= seat < num_players:
        raise ValueError(f"seat={seat!r} is out of range; allowed: 0 (leads the first trick) to {num_players - 1}")
    tree = build(rules, num_players)
    tables = [level.uniform() for level in tree.levels[:-1]]
    best = Evaluation(tree, ask(tree, policy, batch), threads=threads, record=(int(seat), tables)).run()[0]
    return Tabular(tree, tables, name=f"best response to {policy.name}"), best[seat]
