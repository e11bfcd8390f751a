"""One walk over a tree: what a strategy is worth, what best responses gain against it, and what others do.

The strategy is carried down the tree, which gives the reach of all seats before the last trick. What a seat is worth
there depends on the reach of the others alone, so the same values come up under any way in which that seat plays: its
best response, the strategy itself, any other strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import cucumber_env.exact.passes as passes
from cucumber_env.exact.threads import in_order
from cucumber_env.exact.tree import Level, Tree, Vectors
from cucumber_env.policies import Policy, checked_probabilities

BATCH = 32_768
"""Decisions that a policy is asked at a time."""

Strategy = Callable[[Level, np.ndarray], np.ndarray]
"""Takes some nodes and the reach ``[N, M]`` of the seats to move; returns their probabilities ``[N, M, K]`` by slot.

Zero where illegal, and rows sum to one where the reach is not zero."""

Progress = Callable[[float], object]
"""Called now and then with the share of the work that is done."""


def ask(tree: Tree, policy: Policy, batch: int = BATCH) -> Strategy:
    """The strategy of a policy, asked in batches of decisions.

    Raises:
        ValueError, TypeError: see `cucumber_env.exact.exploitability`.
    """
    if isinstance(batch, bool) or not isinstance(batch, int | np.integer) or batch < 1:
        raise ValueError(f"batch={batch!r} must be an integer ≥ 1")
    refuse_sampling(policy)

    def strategy(level: Level, reach: np.ndarray) -> np.ndarray:
        sigma = np.zeros((*level.legal.shape, level.hands.cards))
        passes.play_forced(level.legal, sigma)
        nodes, hands = np.nonzero((level.legal & level.legal - 1 != 0) & (reach > 0))
        publics = tree.publics(level)
        for start in range(0, len(nodes), batch):
            rows = nodes[start : start + batch], hands[start : start + batch]
            answer = checked_probabilities(policy, tree.turns(level, publics, *rows)).astype(np.float64)
            sigma[rows] = level.hands.by_slot(rows[1], answer / answer.sum(axis=1, keepdims=True))
        return sigma

    return strategy


def refuse_sampling(policy: Policy) -> None:
    """Refuse a policy that cannot say its action probabilities.

    Raises:
        ValueError: it only samples; says what to do instead.
    """
    if policy.samples_only:
        raise ValueError(
            f"policy {policy.name!r} only samples and cannot say its action probabilities, which exact measures need; "
            "estimate instead: duplicate deals against strong opponents (arena) bound from below what it loses"
        )


@dataclass(frozen=True)
class Descent:
    """The way of a strategy down the tree.

    Attributes:
        levels: Some nodes, and all below them but `end`, by depth.
        sigmas: The strategy there, by depth, float64 ``[N, M, K]``.
        end: The nodes at which the descent ends.
        before: The reach of all seats one play before the end (at the end, if that is where the descent began).
    """

    levels: list[Level]
    sigmas: list[np.ndarray]
    end: Level
    before: Vectors

    def reach(self) -> Vectors:
        """The reach of all seats at the end."""
        if not self.levels:
            return self.before
        return [self.levels[-1].descend(seat, self.sigmas[-1], reach) for seat, reach in enumerate(self.before)]


class Evaluation:
    """A walk over a tree that finds what a strategy is worth.

    Args:
        tree: The tree.
        strategy: What is measured. It is asked from one thread only.
        others: What else may be played against the strategy, by one seat at a time; asked from any thread.
        threads: Threads to work in. The results are the same bytes for any number.
        progress: Told of the share of the work that is done.
        record: None, or ``(seat, tables)``: by depth, float32 ``[N, M, K]`` to be overwritten with the strategy, as
            far as it is known, the decisions of `seat` replaced by best responses.
    """

    def __init__(
        self,
        tree: Tree,
        strategy: Strategy,
        others: Sequence[Strategy] = (),
        *,
        threads: int = 1,
        progress: Progress | None = None,
        record: tuple[int, list[np.ndarray]] | None = None,
    ) -> None:
        self.tree, self.strategy, self.others = tree, strategy, others
        self.threads, self.progress, self.record = threads, progress, record
        self.seats = range(tree.players)

    def run(self) -> list[tuple[float, ...]]:
        """Utilities of all seats in points, each against the strategy in all other seats.

        By way of playing: a best response, the strategy itself, then each of the others.
        """
        top, reach = self.tree.levels[0], [self.tree.weights[None, :]] * self.tree.players
        trunks = [self._descend(plays, top, reach, self.tree.split) for plays in (self.strategy, *self.others)]
        pieces = []
        for nodes, values in zip(
            self.tree.pieces, in_order(self._piece, self._jobs(trunks), self.threads), strict=True
        ):
            pieces.append(values)
            if self.progress is not None:
                self.progress(nodes.stop / len(trunks[0].end))
        at = [[np.concatenate(seat) for seat in zip(*way, strict=True)] for way in zip(*pieces, strict=True)]
        ways = [self._respond(trunks[0], at[0])]
        ways += [self._ascend(trunk, values) for trunk, values in zip(trunks, at[1:], strict=True)]
        return [tuple(float(self.tree.weights @ value[0]) / self.tree.deals for value in way) for way in ways]

    def _descend(self, strategy: Strategy, level: Level, reach: Vectors, depth: int) -> Descent:
        """Carry the reach of all seats from some nodes down to a depth."""
        descent = Descent([], [], level, reach)
        while descent.end.depth < depth:
            level, reach = descent.end, descent.reach()
            sigma = strategy(level, level.of_movers(reach))
            descent = Descent([*descent.levels, level], [*descent.sigmas, sigma], self.tree.children(level), reach)
        return descent

    def _jobs(self, trunks: list[Descent]) -> Iterator[tuple[Descent, Level, list[Vectors]]]:
        """By piece of the tree: the descent of the strategy, where it began, and the reach of the others there."""
        whole = [trunk.reach() for trunk in trunks]
        for nodes in self.tree.pieces:
            level = trunks[0].end.select(nodes)
            own, *reaches = ([seat[nodes] for seat in reach] for reach in whole)
            yield self._descend(self.strategy, level, own, self.tree.last), level, reaches

    def _piece(self, job: tuple[Descent, Level, list[Vectors]]) -> list[Vectors]:
        """The values of a piece, by way of playing."""
        own, level, reaches = job
        reach = own.reach()
        end = [self.tree.settle(own.end, seat, *reach[seat + 1 :], *reach[:seat]) for seat in self.seats]
        ways = [self._respond(own, end), self._ascend(own, end)]
        for strategy, theirs in zip(self.others, reaches, strict=True):
            ways.append(self._ascend(self._descend(strategy, level, theirs, self.tree.last), end))
        return ways

    def _ascend(self, descent: Descent, values: Vectors) -> Vectors:
        """Bring values of seats that play as they descended up to where they began."""
        for level, sigma in zip(reversed(descent.levels), reversed(descent.sigmas), strict=True):
            values = [level.ascend(seat, sigma, values[seat]) for seat in self.seats]
        return values

    def _respond(self, descent: Descent, values: Vectors) -> Vectors:
        """Bring values of best responses up to where the strategy began its descent."""
        for level, sigma in zip(reversed(descent.levels), reversed(descent.sigmas), strict=True):
            responses = [level.respond(seat, values[seat], sigma) for seat in self.seats]
            if self.record is not None:
                self._write(level, responses[self.record[0]])
            values = [level.ascend(seat, responses[seat], values[seat]) for seat in self.seats]
        return values

    def _write(self, level: Level, response: np.ndarray) -> None:
        """Record what is known of a response."""
        assert self.record is not None
        known = response.sum(axis=2, keepdims=True) > 0
        np.copyto(self.record[1][level.depth][level.nodes], response, where=known, casting="same_kind")
