"""Compiled walks over the public states of a round for two, by the rules of the kernel.

`publics` are `PUBLIC` records ``[N]``, one a node; `cucumber_env.exact.tree.Level` and `Hands` name the other arrays.
"""

from __future__ import annotations

from cucumber_env import kernel
from cucumber_env.compiled import njit
from cucumber_env.state import NUM_RANKS

EIGHTS = 0x8888888888888
"""The highest bit of each count of a packed hand: set before a subtraction, it stays unless the count falls below 0."""


@njit
def open_round(rules_table, dealer, publics):
    """Write the state of a round of two after the deal to ``publics[0]``."""
    kernel.start(rules_table[0], publics[0], 2, 0, dealer)
    kernel.open_round(publics[0])


@njit
def play_last_tricks(rules_table, root, scratch, ranks, payoffs):
    """Write what leader and follower gain with every pair of `ranks` in a round of one card, which begins at `root`.

    `payoffs` is that of `passes.settle`, `scratch` is `PUBLIC` ``[1]``.
    """
    leader = root[0].turn
    for i in range(len(ranks)):
        for j in range(len(ranks)):
            scratch[0] = root[0]
            kernel.advance(rules_table[0], scratch[0], ranks[i])
            kernel.advance(rules_table[0], scratch[0], ranks[j])
            gain = scratch[0].penalties[1 - leader] - scratch[0].penalties[leader]
            payoffs[0, i, j] = gain
            payoffs[1, j, i] = -gain


@njit
def replay(rules_table, root, path, publics):
    """Write the states ``[N]`` that the plays `path` int64 ``[N, depth]`` lead to."""
    for node in range(len(path)):
        publics[node] = root[0]
        for rank in path[node]:
            kernel.advance(rules_table[0], publics[node], rank)


@njit
def find_legal(rules_table, publics, packed, ranks, others, possible_0, possible_1, legal, children):
    """Write the legal slots of every hand and the set of ranks that are played from a node.

    A hand can be held if its seat played by the rules so far (`possible`), and the other seat has such a hand too
    that leaves it the cards.
    """
    for node in range(len(publics)):
        public = publics[node]
        own, other = (possible_0, possible_1) if public.turn == 0 else (possible_1, possible_0)
        left = rules_table[0].deck - public.gone + EIGHTS
        for hand in range(len(packed)):
            if own[node, hand] and has_partner(left - packed[hand], others, other[node]):
                actions = kernel.legal(rules_table[0], public, packed[hand])
                children[node] |= actions
                for slot in range(ranks.shape[1]):
                    if ranks[hand, slot] >= 0:
                        legal[node, hand] |= (actions >> ranks[hand, slot] & 1) << slot


@njit
def has_partner(left, others, possible):
    """Whether one of the `possible` hands of `others` can be dealt from `left`, counts with a bit of `EIGHTS` each."""
    for hand in range(len(others)):  # noqa: SIM110 - compiled code knows no any() of a generator
        if possible[hand] and (left - others[hand]) & EIGHTS == EIGHTS:
            return True
    return False


@njit
def expand(rules_table, publics, scratch, children, rank, turn, gone):
    """Write play, seat to move and cards gone of all children; `scratch` is `PUBLIC` ``[1]``."""
    child = 0
    for node in range(len(publics)):
        for action in range(NUM_RANKS):
            if children[node] >> action & 1:
                scratch[0] = publics[node]
                kernel.advance(rules_table[0], scratch[0], action)
                rank[child] = action
                turn[child] = scratch[0].turn
                gone[child] = scratch[0].gone
                child += 1


@njit
def fill_views(publics, packed, ranks, legal, nodes, hands, views, mask):
    """Write view and mask of each decision; see `Level` and `Hands` for the arrays."""
    for i in range(len(nodes)):
        public = publics[nodes[i]]
        views[i].public = public
        views[i].seat = public.turn
        views[i].hand = packed[hands[i]]
        for slot in range(ranks.shape[1]):
            if legal[nodes[i], hands[i]] >> slot & 1:
                mask[i, ranks[hands[i], slot]] = 1
