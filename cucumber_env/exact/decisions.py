"""Every decision of a round as a solution sees it: how often it comes, what is played, what each card is worth."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace

import numpy as np

from cucumber_env.exact.tabular import Tabular
from cucumber_env.exact.tree import Level, Tree, Vectors
from cucumber_env.policies import Turns


@dataclass(frozen=True)
class Decisions:
    """`D` decisions (information states with more than one legal card) after the same number of plays.

    Attributes:
        tree: The public tree.
        level: Nodes among which they are.
        nodes: int64 ``[D]``, node of each, in `level`.
        hands: int64 ``[D]``, number of the hand of the seat to move, in `level.hands`.
        chance: float64 ``[D]``, probability that a round played by the policy in all seats comes there.
        reach: float64 ``[D]``, what the own deal and the own plays contribute to `chance`, up to a factor: zero only
            where the policy itself never plays to, whatever the others do.
        sigma: float64 ``[D, K]``, what the policy plays, by slot; zero where illegal.
        worth: float64 ``[D, K]``, what each slot gains on average if the policy plays on in all seats, in points to
            the seat to move; NaN where illegal, and where the policy in the other seats never lets it come to this.
    """

    tree: Tree
    level: Level
    nodes: np.ndarray
    hands: np.ndarray
    chance: np.ndarray
    reach: np.ndarray
    sigma: np.ndarray
    worth: np.ndarray

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def ranks(self) -> np.ndarray:
        """int8 ``[D, K]``, the rank in each slot, or -1."""
        return self.level.hands.ranks[self.hands]

    @property
    def legal(self) -> np.ndarray:
        """bool ``[D, K]``."""
        return (self.level.legal[self.nodes, self.hands][:, None] >> np.arange(self.level.hands.cards) & 1) > 0

    def select(self, rows: np.ndarray) -> Decisions:
        """The decisions at `rows` (indices or a boolean mask)."""
        arrays = {name: getattr(self, name)[rows] for name in ("nodes", "hands", "chance", "reach", "sigma", "worth")}
        return replace(self, **arrays)

    def turns(self) -> Turns:
        """The same as a policy is asked about them."""
        return self.tree.turns(self.level, self.tree.publics(self.level), self.nodes, self.hands)

    def by_slot(self, probabilities: np.ndarray) -> np.ndarray:
        """Probabilities of all actions ``[D, A]`` as those of the slots, float64 ``[D, K]``."""
        return self.level.hands.by_slot(self.hands, probabilities)


def decisions(policy: Tabular) -> Iterator[Decisions]:
    """All decisions of a round under a tabular policy, in batches.

    Example:
        >>> from cucumber_env.exact import solve
        >>> policy, _ = solve("cucumber,hand_size=2")
        >>> batches = list(decisions(policy))
        >>> sum(map(len, batches)) == policy.tree.decisions
        True
        >>> f"{sum(batch.chance.sum() for batch in batches):.2f} decisions a round"
        '1.11 decisions a round'
    """
    yield from _walk(policy)


def hand_values(policy: Tabular) -> np.ndarray:
    """What each hand dealt gains on average if a tabular policy plays all seats, float64 ``[players, M]``.

    In points to the seat that holds it, by seat (0 leads) and by hand as in ``policy.tree.levels[0].hands``.

    Example:
        >>> from cucumber_env.exact import solve
        >>> policy, _ = solve("cucumber,hand_size=2,ranks=KA,copies=2")
        >>> hand_values(policy)  # KK, KA and AA: who keeps a King pays nothing
        array([[ 14.,  14., -14.],
               [ 14., -14., -14.]])
    """
    walk = _walk(policy)
    while True:
        try:
            next(walk)
        except StopIteration as end:
            values, weights = end.value
            return np.concatenate(values) / np.concatenate(weights)


Walk = Generator[Decisions, None, tuple[Vectors, Vectors]]
"""Yields the decisions at some nodes and below; returns values and weights of all seats there."""


def _walk(policy: Tabular) -> Walk:
    tree = policy.tree
    # Where every end is worth 1, a hand is worth the weight with which the others and the deal lead there.
    ones = replace(tree, payoffs=np.ones_like(tree.payoffs))
    return (yield from _piecewise(policy, ones, tree.levels[0], [tree.weights[None, :]] * tree.players))


def _piecewise(policy: Tabular, ones: Tree, level: Level, reach: Vectors) -> Walk:
    """`_below`, piece by piece where the tree is split."""
    if level.depth != ones.split:
        return (yield from _below(policy, ones, level, reach))
    pieces = []
    for nodes in ones.pieces:
        piece = yield from _below(policy, ones, level.select(nodes), [seat[nodes] for seat in reach])
        pieces.append(piece)
    values, weights = ([np.concatenate(parts) for parts in zip(*one, strict=True)] for one in zip(*pieces, strict=True))
    return values, weights


def _below(policy: Tabular, ones: Tree, level: Level, reach: Vectors) -> Walk:
    """The walk over some nodes and below."""
    tree = policy.tree
    if level.depth == tree.last:
        others = [(*reach[seat + 1 :], *reach[:seat]) for seat in range(len(reach))]
        values, weights = (
            [one.settle(level, seat, *theirs) for seat, theirs in enumerate(others)] for one in (tree, ones)
        )
        return values, weights
    sigma = policy.tables[level.depth][level.nodes].astype(np.float64)
    sigma /= np.maximum(sigma.sum(axis=2, keepdims=True), np.finfo(float).tiny)
    below = [level.descend(seat, sigma, mine) for seat, mine in enumerate(reach)]
    values, weights = yield from _piecewise(policy, ones, tree.children(level), below)
    own = level.of_movers(reach)
    yield _decisions(tree, level, own, sigma, values, weights)
    values, weights = (
        [level.ascend(seat, sigma, vector) for seat, vector in enumerate(vectors)] for vectors in (values, weights)
    )
    return values, weights


def _decisions(
    tree: Tree, level: Level, own: np.ndarray, sigma: np.ndarray, values: Vectors, weights: Vectors
) -> Decisions:
    """The decisions at some nodes, from values and weights ``[children, ...]`` one play below."""
    nodes, hands = np.nonzero(level.legal & level.legal - 1)
    legal = level.slots()[nodes, hands] > 0
    ranks = np.maximum(level.hands.ranks[hands], 0).astype(np.int64)
    before = np.bitwise_count(level.children[nodes, None] & (1 << ranks) - 1).astype(np.int64)
    child = np.where(legal, level.first[nodes, None] - level.first[0] + before, 0)
    after, turn = level.hands.after[hands], level.turn[nodes, None]
    value, weight = (np.choose(turn, [vector[child, after] for vector in vectors]) for vectors in (values, weights))
    with np.errstate(invalid="ignore", divide="ignore"):
        worth = np.where(legal & (weight > 0), value / weight, np.nan)
    reach = own[nodes, hands]
    theirs = np.where(legal, weight, 0.0).max(axis=1)  # the same after every card
    return Decisions(tree, level, nodes, hands, reach * theirs / tree.deals, reach, sigma[nodes, hands], worth)
