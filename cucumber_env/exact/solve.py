"""Solve the small games: counterfactual regret minimisation (CFR) on the public tree, for two players.

Every iteration updates one seat against the current strategy of the other, then the other seat. A hand's regret for
not having played a card is what that card would have gained, summed over iterations; the current strategy plays cards
in proportion to positive regrets, and the average over iterations, each weighted by its own reach, approaches an
equilibrium. What becomes of regrets and weights over time is the `Scheme`:

* ``cfr+``: negative regrets are forgotten, iteration `t` weighs `t` (Tammelin, "Solving large imperfect information
  games using CFR+", 2014).
* ``dcfr``: after iteration `t` positive regrets are multiplied by ``t^1.5 / (t^1.5 + 1)``, negative ones by 1/2, and
  it weighs ``t^2`` (Brown and Sandholm, "Solving imperfect-information games via discounted regret minimization",
  2019).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

import cucumber_env.exact.passes as passes
from cucumber_env.exact.evaluation import Evaluation
from cucumber_env.exact.measure import exploitability
from cucumber_env.exact.reports import Report
from cucumber_env.exact.tabular import Tabular
from cucumber_env.exact.threads import check_threads, in_order
from cucumber_env.exact.tree import Level, Tree, build, check_rules
from cucumber_env.rules import Rules


@dataclass(frozen=True)
class Scheme:
    """How the past is discounted.

    Attributes:
        positive: Exponent `a` of the factor ``t^a / (t^a + 1)`` of positive regrets after iteration `t`.
        negative: The same for negative regrets; −∞ forgets them.
        average: Exponent of the weight ``t^g`` of iteration `t` in the average strategy.
    """

    positive: float
    negative: float
    average: float


SCHEMES = {"cfr+": Scheme(math.inf, -math.inf, 1.0), "dcfr": Scheme(1.5, 0.0, 2.0)}
"""The schemes by name."""

SolveProgress = Callable[[int, float, float], object]
"""Called after each check with the iterations done, the NashConv in points and the seconds since the start."""


class Solver:
    """CFR on one tree, an iteration at a time.

    Args:
        tree: The public tree.
        scheme: How the past is discounted.
        threads: Threads to work in. The results are the same bytes for any number.

    Attributes:
        iterations: How many have been done.
        regrets: By depth, float64 ``[N, M, K]``.
        average: Sums of the average strategy, likewise.
    """

    def __init__(self, tree: Tree, scheme: Scheme, *, threads: int = 1) -> None:
        self.tree, self.scheme, self.threads = tree, scheme, threads
        self.iterations = 0
        shapes = [(*level.legal.shape, level.hands.cards) for level in tree.levels[:-1]]
        self.regrets = [np.zeros(shape) for shape in shapes]
        self.average = [np.zeros(shape) for shape in shapes]

    def iterate(self) -> None:
        """One iteration: each seat in turn learns against the other."""
        self.iterations += 1
        for hero in range(2):
            self._piecewise(hero, self.tree.levels[0], self.tree.weights[None, :] / self.tree.deals)

    def strategy(self, level: Level, reach: np.ndarray) -> np.ndarray:
        """The average strategy, an `evaluation.Strategy`."""
        return normalised(self.average[level.depth][level.nodes], level)

    def nash_conv(self) -> float:
        """NashConv of the average strategy, in points."""
        return sum(Evaluation(self.tree, self.strategy, threads=self.threads).run()[0])

    def _piecewise(self, hero: int, level: Level, reach: np.ndarray) -> np.ndarray:
        """`_learn`, piece by piece where the tree is split."""
        if level.depth != self.tree.split:
            return self._learn(hero, level, reach)
        jobs = ((level.select(nodes), reach[nodes]) for nodes in self.tree.pieces)
        return np.concatenate(list(in_order(lambda job: self._learn(hero, *job), jobs, self.threads)))

    def _learn(self, hero: int, level: Level, reach: np.ndarray) -> np.ndarray:
        """Update the regrets of `hero` and the average of its opponent below some nodes.

        `reach` is the opponent's. Returns the values of the hero ``[N, M]`` under the current strategies.
        """
        if level.depth == self.tree.last:
            return self.tree.settle(level, hero, reach)
        regrets, average = (tables[level.depth][level.nodes] for tables in (self.regrets, self.average))
        sigma = normalised(regrets, level)
        below = level.descend(1 - hero, sigma, reach)
        passes.accumulate(1 - hero, float(self.iterations**self.scheme.average), level.turn, sigma, reach, average)
        values = self._piecewise(hero, self.tree.children(level), below)
        value = level.ascend(hero, sigma, values)
        positive, negative = (_factor(self.iterations, a) for a in (self.scheme.positive, self.scheme.negative))
        passes.learn(hero, positive, negative, *level.links, level.legal, values, value, regrets)
        return value


def normalised(weights: np.ndarray, level: Level) -> np.ndarray:
    """Probabilities float64 ``[N, M, K]`` proportional to positive weights, uniform over legal slots without any."""
    sigma = np.empty(weights.shape)
    passes.normalise(weights, level.legal, sigma)
    return sigma


def _factor(iteration: int, exponent: float) -> float:
    """``t^a / (t^a + 1)``, also for infinite exponents."""
    return 1.0 / (1.0 + float(iteration) ** -exponent) if math.isfinite(exponent) else float(exponent > 0)


def solve(
    rules: Rules | str | Mapping[str, Any],
    *,
    scheme: str | Scheme = "dcfr",
    nash_conv: float = 1e-3,
    iterations: int = 1000,
    seconds: float = math.inf,
    every: int = 10,
    threads: int | None = None,
    progress: SolveProgress | None = None,
) -> tuple[Tabular, Report]:
    """An approximate equilibrium of a round of two, and what it is worth.

    Stops as soon as the NashConv is low enough, or after so many iterations or seconds.

    Args:
        rules: Rules with a fixed hand size, a preset with changes such as ``"cucumber,hand_size=3"``, or a mapping.
        scheme: ``"dcfr"``, ``"cfr+"`` or a scheme of one's own.
        nash_conv: NashConv to reach, in points.
        iterations: Most iterations.
        seconds: Most seconds, but for the last iterations begun.
        every: Iterations between checks.
        threads: Threads to work in, by default one a core. The results are the same bytes for any number.
        progress: Told of every check.

    Returns:
        The average strategy as a policy, and its exact report. The policy's `facts` hold the report, the scheme, the
        iterations and the NashConv found at each check, but no times, so the same work always makes the same file.

    Raises:
        ValueError, TypeError: an argument out of range, named; rules that two cannot play or that are too large.

    Example:
        >>> policy, report = solve("cucumber,hand_size=2")
        >>> f"{report.value:.2f}", report.nash_conv < 1e-3
        ('2.98', True)
    """
    started = time.perf_counter()
    chosen = _scheme(scheme)
    for name, number in (("iterations", iterations), ("every", every)):
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
            raise ValueError(f"{name}={number!r} must be an integer ≥ 1")
    for name, limit in (("nash_conv", nash_conv), ("seconds", seconds)):
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit >= 0:
            raise ValueError(f"{name}={limit!r} must be a number ≥ 0")
    solver = Solver(build(check_rules(rules)), chosen, threads=check_threads(threads))
    found, passed = math.inf, 0.0
    curve: list[tuple[int, float]] = []
    while found > nash_conv and solver.iterations < iterations and passed < seconds:
        for _ in range(min(every, iterations - solver.iterations)):
            solver.iterate()
        found, passed = solver.nash_conv(), time.perf_counter() - started
        curve.append((solver.iterations, found))
        if progress is not None:
            progress(solver.iterations, found, passed)
    return _result(solver, curve, started)


def _scheme(scheme: str | Scheme) -> Scheme:
    if isinstance(scheme, Scheme):
        return scheme
    if scheme not in SCHEMES:
        raise ValueError(f"scheme={scheme!r} is not one of its values; allowed: {', '.join(SCHEMES)}, or a Scheme")
    return SCHEMES[scheme]


def _result(solver: Solver, curve: list[tuple[int, float]], started: float) -> tuple[Tabular, Report]:
    """The average strategy as it is stored, measured as such."""
    tree = solver.tree
    tables = [
        normalised(average, level).astype(np.float32)
        for average, level in zip(solver.average, tree.levels, strict=False)
    ]
    policy = Tabular(tree, tables, name="solution")
    report = exploitability(tree.rules, policy, threads=solver.threads)
    report = replace(report, seconds=time.perf_counter() - started)
    policy.facts = {
        "report": {name: fact for name, fact in report.to_dict().items() if name != "seconds"},
        "scheme": asdict(solver.scheme),
        "iterations": solver.iterations,
        "curve": [list(point) for point in curve],
    }
    return policy, report
