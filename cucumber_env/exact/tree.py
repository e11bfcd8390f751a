"""The public tree of one round: what all players see, in compact arrays.

A node is a public state: the cards played so far. All that is private, the hands, is carried in vectors over the
nodes (`cucumber_env.exact.passes`), so a round of 4 cards for two with its 15 million information states takes 2
million nodes. The tree ends before the last trick, which is forced. The rules are the kernel's: it is asked for the
legal cards of every hand, for the state after every play and for the penalties of the last trick.

Seat 0 leads the first trick.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import cucumber_env.exact.passes as passes
import cucumber_env.exact.walk as walk
from cucumber_env.exact.hands import Hands, list_hands
from cucumber_env.policies import Turns
from cucumber_env.rules import RANKS, Rules
from cucumber_env.state import PUBLIC, VIEW, as_records, compile_rules

MOST_LEAVES = 100_000_000
"""Larger trees are refused: the arrays of the nodes alone would take gigabytes."""

MOST_TRICKS = 100_000
"""More ways to play the last trick are refused: most of them are looked at from most leaves."""

PIECE = 60_000
"""Information states below the nodes that are worked on at a time, about; bounds the memory for vectors."""

CHUNK = 65_536
"""Nodes whose public records exist at a time while the tree is built."""


Vectors = list[np.ndarray]
"""An array ``[N, M]`` for each seat."""


@dataclass(frozen=True)
class Level:
    """All nodes after `depth` plays, or some neighbours among them; `N` nodes.

    Attributes:
        depth: Cards played.
        start: Number of the first node here among all of this depth.
        hands: What the seat to move may hold, `M` hands.
        others: What the seat that moves next may hold, `O` hands.
        parent: int32 ``[N]``, number of the node before the last play.
        rank: int8 ``[N]``, the last play.
        turn: int8 ``[N]``, seat to move.
        gone: int64 ``[N]``, counts of the cards played.
        first: int64 ``[N + 1]``, number of the first child; no children before the last trick.
        children: int32 ``[N]``, set of the ranks that are played to children.
        legal: uint8 ``[N, M]``, set of the slots that a hand may play; empty if it cannot be held here.
    """

    depth: int
    start: int
    hands: Hands
    others: Hands
    parent: np.ndarray
    rank: np.ndarray
    turn: np.ndarray
    gone: np.ndarray
    first: np.ndarray
    children: np.ndarray
    legal: np.ndarray

    def __len__(self) -> int:
        return len(self.turn)

    @property
    def nodes(self) -> slice:
        """Which nodes of the depth these are."""
        return slice(self.start, self.start + len(self))

    @property
    def below(self) -> slice:
        """Their children, among the nodes one play deeper."""
        return slice(int(self.first[0]), int(self.first[-1]))

    def select(self, nodes: slice) -> Level:
        """The nodes of a slice, of a whole level."""
        arrays = {name: getattr(self, name)[nodes] for name in ("parent", "rank", "turn", "gone", "children", "legal")}
        return replace(self, start=nodes.start, first=self.first[nodes.start : nodes.stop + 1], **arrays)

    def slots(self) -> np.ndarray:
        """uint8 ``[N, M, K]``: 1 where a slot may be played."""
        return self.legal[..., None] >> np.arange(self.hands.cards, dtype=np.uint8) & 1

    def uniform(self) -> np.ndarray:
        """float32 ``[N, M, K]``: the same probability for all slots that may be played; zeros for hands without any."""
        slots = self.slots().astype(np.float32)
        return slots / np.maximum(slots.sum(axis=2, keepdims=True), 1)

    def of_movers(self, vectors: Sequence[np.ndarray]) -> np.ndarray:
        """Of an array ``[N, ...]`` for each seat the rows of the seats to move."""
        chosen = vectors[0].copy()
        for seat in range(1, len(vectors)):
            np.copyto(chosen, vectors[seat], where=(self.turn == seat)[:, None])
        return chosen

    @property
    def links(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Turn, children and hands, as the passes take them."""
        return self.turn, self.first, self.children, self.hands.ranks, self.hands.after

    def descend(self, seat: int, sigma: np.ndarray, reach: np.ndarray) -> np.ndarray:
        """The reach of `seat` ``[N, M]`` carried to the children under the mover's `sigma` ``[N, M, K]``."""
        below = np.zeros((self.below.stop - self.below.start, len(self.others)), reach.dtype)
        passes.descend(seat, *self.links, sigma, len(self.others), reach, below)
        return below

    def ascend(self, hero: int, sigma: np.ndarray, below: np.ndarray) -> np.ndarray:
        """The values of `hero`, who follows `sigma`, from those of the children; ``[N, M]``."""
        value = np.zeros(self.legal.shape)
        passes.ascend(hero, *self.links, sigma, len(self.others), below, value)
        return value

    def respond(self, hero: int, below: np.ndarray, sigma: np.ndarray) -> np.ndarray:
        """`sigma` with the decisions of `hero` replaced by the best ones, given the values of the children."""
        best = sigma.copy()
        passes.respond(hero, *self.links, self.legal, below, best)
        return best


@dataclass(frozen=True)
class Tree:
    """The public tree of a round; see the module.

    Attributes:
        rules: Rules in force.
        players: Number of seats.
        levels: One for each number of plays, from none to all but the last trick.
        root: `PUBLIC` ``[1]``, before the first play.
        payoffs: float64 ``[players, R, R^others]``, gains in the last trick in points, see `passes.settle_many`.
        weights: float64 ``[M]``, `Hands.weights` of the full hands.
        deals: Number of deals of a hand to each seat from the deck, all cards told apart.
    """

    rules: Rules
    players: int
    levels: list[Level]
    root: np.ndarray
    payoffs: np.ndarray
    weights: np.ndarray
    deals: int

    @property
    def last(self) -> int:
        """Depth of the nodes before the last trick."""
        return self.players * (self.rules.largest_hand - 1)

    @property
    def split(self) -> int:
        """Depth at which the tree is cut into pieces: after the first trick, or with three cards in hand (more players:
        two) if that is later."""
        cards = 3 if self.players == 2 else 2
        return min(self.last, self.players * max(1, self.rules.largest_hand - cards))

    @functools.cached_property
    def pieces(self) -> list[slice]:
        """The nodes of the depth `split`, in runs with about `PIECE` pairs of node and hand in their widest level."""
        nodes = len(self.levels[self.split])
        states = max(len(level) * len(level.hands) for level in self.levels[self.split :])
        count = max(1, min(nodes, states // PIECE))
        return [slice(nodes * i // count, nodes * (i + 1) // count) for i in range(count)]

    @functools.cached_property
    def information_states(self) -> int:
        """Information states that play can reach by the rules, but for those of the last trick."""
        return sum(int(np.count_nonzero(level.legal)) for level in self.levels[:-1])

    @functools.cached_property
    def decisions(self) -> int:
        """Information states with more than one legal card."""
        return sum(int(np.count_nonzero(level.legal & level.legal - 1)) for level in self.levels[:-1])

    @functools.cached_property
    def falling(self) -> np.ndarray:
        """float64 ``[copies + 1]``, see `passes.settle`."""
        copies = self.rules.copies
        return np.array([float(math.perm(copies, count)) for count in range(copies + 1)])

    def children(self, level: Level) -> Level:
        """The nodes one play below those of `level`."""
        return self.levels[level.depth + 1].select(level.below)

    def settle(self, level: Level, hero: int, *reach: np.ndarray) -> np.ndarray:
        """The values of `hero` ``[N, R]`` before the last trick.

        `reach` is ``[N, R]`` of every other seat, clockwise from the hero.
        """
        value = np.empty(reach[0].shape)
        last = (level.turn, level.gone, level.hands.ranks, self.falling)
        if self.players == 2:
            passes.settle(hero, self.payoffs, *last, reach[0], value)
        else:
            passes.settle_many(hero, self.payoffs, *last, np.stack(reach), value)
        return value

    def publics(self, level: Level) -> np.ndarray:
        """The states of a level's nodes, `PUBLIC` records ``[N]``: their plays, replayed."""
        path = np.empty((len(level), level.depth), np.int64)
        parent, rank = level.parent, level.rank
        for above in reversed(self.levels[: level.depth]):
            path[:, above.depth] = rank
            parent, rank = above.parent[parent], above.rank[parent]
        publics = as_records(np.zeros(len(level), PUBLIC))
        walk.replay(compile_rules(self.rules), self.root, path, publics)
        return publics

    def turns(self, level: Level, publics: np.ndarray, nodes: np.ndarray, hands: np.ndarray) -> Turns:
        """What a policy is asked at `nodes` of a level with `hands`, numbers ``[B]``; `publics` are the level's."""
        views = as_records(np.zeros(len(nodes), VIEW))
        mask = np.zeros((len(nodes), self.rules.num_actions), np.int8)
        walk.fill_views(publics, level.hands.packed, level.hands.ranks, level.legal, nodes, hands, views, mask)
        return Turns(self.rules, self.players, "round", views, mask, np.full(len(nodes), 0.5))


def check_rules(rules: Rules | str | Mapping[str, Any], num_players: int = 2) -> Rules:
    """Rules under which so many players can be worked on exactly.

    Raises:
        ValueError, TypeError: as `Rules.of`; so many may not play; the dealer chooses the hand size; too large a tree.
    """
    rules = Rules.of(rules)
    rules.check_players(num_players)
    if rules.dealer_chooses:
        low, high = rules.hand_sizes
        raise ValueError(
            f"hand_size={rules.hand_size!r} leaves the dealer a choice, and exact play takes one size; set one of "
            f"{low} to {high}, such as hand_size={min(3, high)}"
        )
    tricks = len(rules.ranks) ** num_players
    leaves = tricks ** (rules.largest_hand - 1)
    if leaves > MOST_LEAVES or tricks > MOST_TRICKS:
        raise ValueError(
            f"hand_size={rules.hand_size} with {len(rules.ranks)} ranks and {num_players} players makes a public tree "
            f"of up to {leaves:,} leaves with {tricks:,} last tricks; allowed: {MOST_LEAVES:,} and {MOST_TRICKS:,}; "
            "deal fewer cards or set fewer ranks, such as ranks=9TJQKA"
        )
    return rules


@functools.lru_cache(maxsize=2)
def build(rules: Rules, num_players: int = 2) -> Tree:
    """The public tree of a round under rules that `check_rules` lets pass."""
    size, seats = rules.largest_hand, range(num_players)
    hands = list_hands(rules)
    deals = math.prod(math.comb(rules.deck_size - size * seat, size) for seat in seats)
    payoffs = _last_trick(rules, num_players)
    tree = Tree(rules, num_players, [], _root(rules, num_players), payoffs, hands[size].weights, deals)
    level = _blank(0, hands[size], hands[size], nodes=1)
    possible = [np.ones((1, len(hands[size])), np.uint8) for _ in seats]
    for depth in range(1, tree.last + 1):
        level = _with_legal(tree, level, hands[level.hands.cards - 1], possible)
        tree.levels.append(level)
        if depth < tree.last:
            possible = [level.descend(seat, level.slots(), possible[seat]) for seat in seats]
        level = _children(tree, level, hands[size - depth // num_players], hands[size - (depth + 1) // num_players])
    tree.levels.append(level)
    return tree


def _root(rules: Rules, num_players: int) -> np.ndarray:
    """The state after the deal, with the dealer that makes seat 0 lead."""
    root = as_records(np.zeros(1, PUBLIC))
    for dealer in range(num_players):
        walk.open_round(compile_rules(rules), num_players, dealer, root)
        if root["turn"][0] == 0:
            break
    return root


def _last_trick(rules: Rules, num_players: int) -> np.ndarray:
    """What each card gains in the last trick, float64 ``[players, R, R^others]``, see `passes.settle_many`."""
    ranks = np.array([RANKS.index(letter) for letter in rules.ranks])
    payoffs = np.zeros((num_players, len(ranks), len(ranks) ** (num_players - 1)))
    one_card = rules.replace(hand_size=1)
    root, scratch = _root(one_card, num_players), as_records(np.zeros(1, PUBLIC))
    walk.play_last_tricks(compile_rules(one_card), root, scratch, ranks, payoffs)
    return payoffs


def _blank(depth: int, hands: Hands, others: Hands, *, nodes: int) -> Level:
    """A level of which nothing is known but the number of its nodes."""
    dtypes = {"parent": np.int32, "rank": np.int8, "turn": np.int8, "gone": np.int64, "children": np.int32}
    arrays = {name: np.zeros(nodes, dtype) for name, dtype in dtypes.items()}
    first, legal = np.zeros(nodes + 1, np.int64), np.zeros((nodes, 0), np.uint8)
    return Level(depth=depth, start=0, hands=hands, others=others, first=first, legal=legal, **arrays)


def _chunks(level: Level) -> list[Level]:
    """The nodes of a level, `CHUNK` at a time."""
    return [level.select(slice(start, min(start + CHUNK, len(level)))) for start in range(0, len(level), CHUNK)]


def _with_legal(tree: Tree, level: Level, fewer: Hands, possible: list[np.ndarray]) -> Level:
    """The level with its legal slots and its children counted.

    `possible` is uint8 ``[N, M]`` of each seat: whether its own plays so far were legal with this hand. A seat that
    has played to the trick has one of the hands `fewer`.
    """
    level = replace(level, legal=np.zeros((len(level), len(level.hands)), np.uint8))
    hands = level.hands
    for part in _chunks(level):
        held = np.stack([seat[part.nodes] for seat in possible], axis=1)
        publics = tree.publics(part)
        walk.find_legal(
            compile_rules(tree.rules), publics, hands.packed, hands.ranks, fewer.packed, held, part.legal, part.children
        )
    return replace(level, first=np.concatenate([[0], np.cumsum(np.bitwise_count(level.children), dtype=np.int64)]))


def _children(tree: Tree, level: Level, hands: Hands, others: Hands) -> Level:
    """The nodes one play below a level."""
    deeper = _blank(level.depth + 1, hands, others, nodes=int(level.first[-1]))
    scratch = as_records(np.zeros(1, PUBLIC))
    for part in _chunks(level):
        below = deeper.select(part.below)
        walk.expand(
            compile_rules(tree.rules), tree.publics(part), scratch, part.children, below.rank, below.turn, below.gone
        )
    deeper.parent[:] = np.repeat(np.arange(len(level)), np.bitwise_count(level.children))
    return deeper
