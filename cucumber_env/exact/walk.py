"""Compiled walks over the public states of a round, by the rules of the kernel.

`publics` are `PUBLIC` records ``[N]``, one a node; `cucumber_env.exact.tree.Level` and `Hands` name the other arrays.
"""

from __future__ import annotations

import numpy as np

from cucumber_env import kernel
from cucumber_env.compiled import njit
from cucumber_env.state import NUM_RANKS

EIGHTS = 0x8888888888888
"""The highest bit of each count of a packed hand: set before a subtraction, it stays unless the count falls below 0."""


@njit
def open_round(rules_table, players, dealer, publics):
    """Write the state of a round of so many players after the deal to ``publics[0]``."""
    kernel.start(rules_table[0], publics[0], players, 0, dealer)
    kernel.open_round(publics[0])


@njit
def play_last_tricks(rules_table, root, scratch, ranks, payoffs):
    """Write what every place at the table gains with all `ranks` in a round of one card, which begins at `root`.

    `payoffs` is that of `passes.settle_many`, `scratch` is `PUBLIC` ``[1]``.
    """
    players = root[0].players
    plays = np.empty(players, np.int64)
    for played in range(len(ranks) * payoffs.shape[2]):
        scratch[0] = root[0]
        rest = played
        total = 0
        for place in range(players):
            plays[place] = rest % len(ranks)
            rest //= len(ranks)
            kernel.advance(rules_table[0], scratch[0], ranks[plays[place]])
        for seat in range(players):
            total += scratch[0].penalties[seat]
        for place in range(players):
            penalty = scratch[0].penalties[(root[0].leader + place) % players]
            others = 0
            for other in range(place + 1, place + players):
                others = others * len(ranks) + plays[other % players]
            payoffs[place, plays[place], others] = (total - penalty) / (players - 1) - penalty


@njit
def replay(rules_table, root, path, publics):
    """Write the states ``[N]`` that the plays `path` int64 ``[N, depth]`` lead to."""
    for node in range(len(path)):
        publics[node] = root[0]
        for rank in path[node]:
            kernel.advance(rules_table[0], publics[node], rank)


@njit
def find_legal(rules_table, publics, packed, ranks, fewer, possible, legal, children):
    """Write the legal slots of every hand and the set of ranks that are played from a node.

    A hand can be held if its seat played by the rules so far (`possible`, uint8 ``[N, seats, M]``), and the other
    seats have such hands too that leave it the cards. Those that have played to the trick have one of the `fewer`.
    """
    tried = np.empty(possible.shape[1], np.int64)
    for node in range(len(publics)):
        public = publics[node]
        left = rules_table[0].deck - public.gone + EIGHTS
        held = possible[node]
        for hand in range(len(packed)):
            if held[public.turn, hand] and can_deal(left - packed[hand], public, packed, fewer, held, tried):
                actions = kernel.legal(rules_table[0], public, packed[hand])
                children[node] |= actions
                for slot in range(ranks.shape[1]):
                    if ranks[hand, slot] >= 0:
                        legal[node, hand] |= (actions >> ranks[hand, slot] & 1) << slot


@njit
def can_deal(left, public, packed, fewer, possible, tried):
    """Whether `left`, counts with a bit of `EIGHTS` each, has a possible hand for every seat but the mover's.

    `tried` is scratch, int64 ``[seats]``.
    """
    seat = other_seat(-1, 1, public.turn)
    tried[seat] = -1
    while seat >= 0:
        hands = fewer if public.played[seat, public.trick] >= 0 else packed
        if tried[seat] >= 0:
            left += hands[tried[seat]]
        tried[seat] = next_hand(left, hands, possible[seat], tried[seat] + 1)
        if tried[seat] == len(hands):
            seat = other_seat(seat, -1, public.turn)
            continue
        left -= hands[tried[seat]]
        seat = other_seat(seat, 1, public.turn)
        if seat == public.players:
            return True
        tried[seat] = -1
    return False


@njit
def other_seat(seat, step, turn):
    """The seat a step further, leaving out `turn`."""
    return seat + step if seat + step != turn else seat + 2 * step


@njit
def next_hand(left, hands, possible, hand):
    """The first of the possible hands, from number `hand` on, that `left` has the cards for; their number if none."""
    while hand < len(hands) and not (possible[hand] and (left - hands[hand]) & EIGHTS == EIGHTS):
        hand += 1
    return hand


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
