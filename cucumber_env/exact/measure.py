"""Exploitability: what a policy is worth against itself, and what best responses gain against it.

Every value is exact (up to rounding): all deals and all plays are covered, none is sampled. The utility of a seat is
the opponent's penalty minus its own, in points, so it sums to zero; seat 0 leads the first trick. Only one round is
looked at. Sudden death, like the rest of a match, is no part of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import cucumber_env.exact.walk as walk
from cucumber_env.exact.tabular import Tabular
from cucumber_env.exact.tree import Level, Tree, build, check_rules
from cucumber_env.policies import Policy, Turns, make
from cucumber_env.rules import Rules
from cucumber_env.state import VIEW, as_records

TOLERANCE = 1e-9
"""Points by which exact values may differ through rounding."""

BATCH = 32_768
"""Decisions that a policy is asked at a time."""

Strategy = Callable[[Level, np.ndarray], np.ndarray]
"""Takes some nodes and the reach ``[N, M]`` of the seats to move; returns their probabilities ``[N, M, K]`` by slot.

Zero where illegal, and rows sum to one where the reach is not zero."""

Progress = Callable[[float], object]
"""Called now and then with the share of the work that is done."""


@dataclass(frozen=True)
class Report:
    """Exact facts about a policy in both seats.

    Attributes:
        values: Utility of each seat when the policy plays both, in points; seat 0 leads.
        best_response: Utility of each seat when it plays a best response and the policy the other seat.
        information_states: Size of the game: information states that play can reach by the rules, but for those of
            the last trick, which is forced.
        decisions: Those with more than one legal card.
        seconds: Time it took.

    Raises:
        ArithmeticError: the values contradict each other; never by a policy, only by a defect here.
    """

    values: tuple[float, float]
    best_response: tuple[float, float]
    information_states: int
    decisions: int
    seconds: float

    def __post_init__(self) -> None:
        check_utilities(self.values, self.best_response)
        if abs(sum(self.gains) - self.nash_conv) > TOLERANCE:
            raise ArithmeticError(f"NashConv {self.nash_conv} is not the sum of the gains {self.gains}")

    @property
    def value(self) -> float:
        """Utility of the seat that leads first when the policy plays both seats, in points."""
        return self.values[0]

    @property
    def gains(self) -> tuple[float, float]:
        """What each seat gains by its best response, in points."""
        return self.best_response[0] - self.values[0], self.best_response[1] - self.values[1]

    @property
    def nash_conv(self) -> float:
        """What both best responses win together, in points: 0 for an equilibrium."""
        return sum(self.best_response)

    def to_dict(self) -> dict[str, Any]:
        """As JSON-friendly values."""
        return {
            "value": self.value,
            "best_response": list(self.best_response),
            "nash_conv": self.nash_conv,
            "information_states": self.information_states,
            "decisions": self.decisions,
            "seconds": self.seconds,
        }


def check_utilities(values: Sequence[float], best_response: Sequence[float]) -> None:
    """Refuse utilities by seat, of a policy and of best responses to it, that contradict each other.

    Raises:
        ArithmeticError: says how.
    """
    if abs(sum(values)) > TOLERANCE:
        raise ArithmeticError(f"values {values} of a zero-sum game do not sum to zero")
    if any(best < value - TOLERANCE for best, value in zip(best_response, values, strict=True)):
        raise ArithmeticError(f"a best response {best_response} is worse than the policy itself {values}")


def exploitability(
    rules: Rules | str | Mapping[str, Any],
    policy: Policy | str,
    *,
    batch: int = BATCH,
    progress: Progress | None = None,
) -> Report:
    """What `policy` is worth against itself in a round of two, and how much best responses win.

    The policy is asked for its probabilities at every decision that its own play can reach, once each, in batches;
    forced turns are not asked.

    Args:
        rules: Rules with a fixed hand size, a preset with changes such as ``"cucumber,hand_size=3"``, or a mapping.
        policy: A policy or the name of one.
        batch: Decisions asked at a time.
        progress: Told of the share of the work that is done.

    Raises:
        ValueError, TypeError: an argument out of range (see `check_rules`), a policy that only samples, or one that
            answers what is no distribution over the legal actions.

    Example:
        >>> report = exploitability("cucumber,hand_size=2", "highest")
        >>> f"{report.value:.5f} {abs(report.nash_conv):.5f}"
        '2.97943 0.00000'
    """
    started = time.perf_counter()
    tree = build(check_rules(rules))
    best, values = Evaluation(tree, ask(tree, make(policy), batch), progress).run()
    seconds = time.perf_counter() - started
    return Report((values[0], values[1]), (best[0], best[1]), tree.information_states, tree.decisions, seconds)


def best_response(
    rules: Rules | str | Mapping[str, Any],
    policy: Policy | str,
    seat: int,
    *,
    num_players: int = 2,
    batch: int = BATCH,
) -> tuple[Tabular, float]:
    """A best response of `seat` to `policy` in all other seats, and the utility of `seat` then, in points.

    Args:
        rules, policy, batch: As `exploitability`.
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
    tree = build(check_rules(rules, num_players), num_players)
    if isinstance(seat, bool) or not isinstance(seat, int | np.integer) or not 0 <= seat < num_players:
        raise ValueError(f"seat={seat!r} is out of range; allowed: 0 (leads the first trick) to {num_players - 1}")
    policy = make(policy)
    tables = [level.uniform() for level in tree.levels[:-1]]
    best, _ = Evaluation(tree, ask(tree, policy, batch), record=(int(seat), tables)).run()
    return Tabular(tree, tables, name=f"best response to {policy.name}"), best[seat]


def ask(tree: Tree, policy: Policy, batch: int = BATCH) -> Strategy:
    """The strategy of a policy, asked in batches of decisions.

    Raises:
        ValueError, TypeError: see `exploitability`.
    """
    if isinstance(batch, bool) or not isinstance(batch, int | np.integer) or batch < 1:
        raise ValueError(f"batch={batch!r} must be an integer ≥ 1")
    refuse_sampling(policy)

    def strategy(level: Level, reach: np.ndarray) -> np.ndarray:
        forced = level.legal & level.legal - 1 == 0
        sigma = (level.slots() * forced[..., None]).astype(np.float64)
        nodes, hands = np.nonzero(~forced & (reach > 0))
        publics = tree.publics(level)
        for start in range(0, len(nodes), batch):
            rows = nodes[start : start + batch], hands[start : start + batch]
            sigma[rows] = _answers(tree, policy, level, publics, *rows)
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


def _answers(
    tree: Tree, policy: Policy, level: Level, publics: np.ndarray, nodes: np.ndarray, hands: np.ndarray
) -> np.ndarray:
    """Probabilities float64 ``[B, K]`` by slot that `policy` gives for decisions at `nodes` with `hands`, ``[B]``."""
    views = as_records(np.zeros(len(nodes), VIEW))
    mask = np.zeros((len(nodes), tree.rules.num_actions), np.int8)
    walk.fill_views(publics, level.hands.packed, level.hands.ranks, level.legal, nodes, hands, views, mask)
    turns = Turns(tree.rules, tree.players, "round", views, mask, np.full(len(nodes), 0.5))
    answer = np.asarray(policy.probabilities(turns), np.float64)
    if answer.shape != mask.shape:
        raise ValueError(f"policy {policy.name!r} answered with shape {answer.shape}; expected {mask.shape}")
    totals = answer.sum(axis=1, keepdims=True)
    wrong = ~((answer >= 0) & ((mask > 0) | (answer == 0))).all(axis=1) | ~(np.abs(totals[:, 0] - 1) < 1e-4)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"policy {policy.name!r} answered {answer[row].tolist()}, which is no distribution over the legal actions "
            f"{np.flatnonzero(mask[row]).tolist()}"
        )
    slots = np.take_along_axis(answer / totals, np.maximum(level.hands.ranks[hands], 0).astype(np.int64), axis=1)
    return np.where(level.hands.ranks[hands] >= 0, slots, 0.0)


Ways = list[list[np.ndarray]]
"""By way of playing (best response, the strategy itself) and seat: values ``[N, M]``."""


class Evaluation:
    """A walk over a tree that finds what a strategy is worth.

    Args:
        tree: The tree.
        strategy: What all seats play.
        progress: Told of the share of the work that is done.
        record: None, or ``(seat, tables)``: by depth, float32 ``[N, M, K]`` to be overwritten with the strategy, as
            far as it is known, the decisions of `seat` replaced by best responses.
    """

    def __init__(
        self,
        tree: Tree,
        strategy: Strategy,
        progress: Progress | None = None,
        record: tuple[int, list[np.ndarray]] | None = None,
    ) -> None:
        self.tree, self.strategy, self.progress, self.record = tree, strategy, progress, record
        self.seats = range(tree.players)

    def run(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Utilities of all seats in points: by best responses to the strategy, and under the strategy itself."""
        best, values = self._piecewise(self.tree.levels[0], [self.tree.weights[None, :]] * self.tree.players)
        return self._utilities(best), self._utilities(values)

    def _utilities(self, values: list[np.ndarray]) -> tuple[float, ...]:
        return tuple(float(self.tree.weights @ value[0]) / self.tree.deals for value in values)

    def _piecewise(self, level: Level, reach: list[np.ndarray]) -> Ways:
        """`_values`, piece by piece where the tree is split."""
        if level.depth != self.tree.split:
            return self._values(level, reach)
        pieces = []
        for nodes in self.tree.pieces:
            pieces.append(self._values(level.select(nodes), [seat[nodes] for seat in reach]))
            if self.progress is not None:
                self.progress(nodes.stop / len(level))
        return [[np.concatenate([piece[way][seat] for piece in pieces]) for seat in self.seats] for way in range(2)]

    def _values(self, level: Level, reach: list[np.ndarray]) -> Ways:
        """Values at some nodes, given the reach ``[N, M]`` of all seats."""
        if level.depth == self.tree.last:
            return [[self.tree.settle(level, seat, *reach[seat + 1 :], *reach[:seat]) for seat in self.seats]] * 2
        sigma = self.strategy(level, np.choose(level.turn[:, None], reach))
        below = [level.descend(seat, sigma, reach[seat]) for seat in self.seats]
        best, values = self._piecewise(self.tree.children(level), below)
        responses = [level.respond(seat, best[seat], sigma) for seat in self.seats]
        if self.record is not None:
            seat, tables = self.record
            known = responses[seat].sum(axis=2, keepdims=True) > 0
            np.copyto(tables[level.depth][level.nodes], responses[seat], where=known, casting="same_kind")
        return [
            [level.ascend(seat, responses[seat], best[seat]) for seat in self.seats],
            [level.ascend(seat, sigma, values[seat]) for seat in self.seats],
        ]
