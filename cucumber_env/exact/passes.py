"""Compiled passes over one level of the public tree: reach goes down, values come up.

A *level* is all public states after the same number of plays, or a run of neighbours among them. A seat's
vector at a node has one number for each hand that the seat may hold there: `M` hands for the seat to move, and no more
for any other. Arrays by node are ``[N, M]`` for all seats, which use as many columns as they need; `O`, the number of
hands of the seat that moves next, is what all but the mover have enough of.
An action is a *slot*: the number of its rank among the different ranks of the hand, from the lowest.

`reach` is the probability that a seat's own policy plays to this node with this hand, times what its deal
contributes to the weight. `value` is counterfactual: what a hand of the `hero` is worth, summed over the hands of
the opponents, each weighted by its reach and all by the number of ways to deal them together.
"""

from __future__ import annotations

import numpy as np

from cucumber_env.compiled import njit
from cucumber_env.state import NUM_RANKS


@njit
def number_children(children, first, out):
    """Write the number of the child of every rank in the set `children`, which are numbered from `first`."""
    for rank in range(NUM_RANKS):
        out[rank] = first
        first += children >> rank & 1


@njit
def descend(seat, turn, first, children, ranks, after, sigma, others, reach, below):
    """Carry the reach of `seat` to the children.

    Args:
        seat: Whose reach it is.
        turn: int8 ``[N]``, seat to move.
        first: int64 ``[N + 1]``, number of the first child of each node.
        children: int32 ``[N]``, set of ranks that lead to a child.
        ranks: int8 ``[M, K]``, rank in each slot of a hand, or -1.
        after: int32 ``[M, K]``, the hand that is left when the slot is played.
        sigma: ``[N, M, K]``, probabilities of the seat to move; zero where illegal.
        others: Number of hands `O`.
        reach: ``[N, M]``.
        below: ``[children, ...]`` of zeros, written.
    """
    child = np.empty(NUM_RANKS, np.int64)
    for node in range(len(turn)):
        if turn[node] != seat:
            for i in range(first[node] - first[0], first[node + 1] - first[0]):
                below[i, :others] = reach[node, :others]
            continue
        number_children(children[node], first[node] - first[0], child)
        for hand in range(len(ranks)):
            if reach[node, hand] == 0:
                continue
            for slot in range(ranks.shape[1]):
                if sigma[node, hand, slot] != 0:
                    below[child[ranks[hand, slot]], after[hand, slot]] = reach[node, hand] * sigma[node, hand, slot]


@njit
def ascend(hero, turn, first, children, ranks, after, sigma, others, below, value):
    """Bring the values of `hero`, who follows `sigma`, up from the children.

    Args:
        hero: Whose values they are.
        below: ``[children, ...]``, values at the children.
        value: ``[N, M]``, written.

    The other arguments are those of `descend`.
    """
    child = np.empty(NUM_RANKS, np.int64)
    for node in range(len(turn)):
        if turn[node] != hero:
            sum_children(first[node] - first[0], first[node + 1] - first[0], others, below, value[node])
            continue
        number_children(children[node], first[node] - first[0], child)
        for hand in range(len(ranks)):
            value[node, hand] = 0.0
            for slot in range(ranks.shape[1]):
                if sigma[node, hand, slot] != 0:
                    action_value = below[child[ranks[hand, slot]], after[hand, slot]]
                    value[node, hand] += sigma[node, hand, slot] * action_value


@njit
def sum_children(start, stop, others, below, value):
    """Where the opponent moves, a hand is worth what it is worth at all children together."""
    value[:others] = 0.0
    for i in range(start, stop):
        for hand in range(others):
            value[hand] += below[i, hand]


@njit
def respond(hero, turn, first, children, ranks, after, legal, below, sigma):
    """Write what is best for `hero` at its nodes: 1 for the slot of the highest value (of equals the lowest card).

    `legal` is uint8 ``[N, M]``, the set of the slots that may be played; `below` is that of `ascend`; `sigma`
    ``[N, M, K]`` is written where the hero moves.
    """
    child = np.empty(NUM_RANKS, np.int64)
    for node in range(len(turn)):
        if turn[node] != hero:
            continue
        number_children(children[node], first[node] - first[0], child)
        for hand in range(len(ranks)):
            most = -np.inf
            choice = 0
            for slot in range(ranks.shape[1]):
                sigma[node, hand, slot] = 0.0
                if legal[node, hand] >> slot & 1:
                    action_value = below[child[ranks[hand, slot]], after[hand, slot]]
                    if action_value > most:
                        most = action_value
                        choice = slot
            if legal[node, hand]:
                sigma[node, hand, choice] = 1.0


@njit
def play_forced(legal, sigma):
    """Write 1 to `sigma` ``[N, M, K]``, all zeros, where a hand has one slot to play, by `legal` uint8 ``[N, M]``."""
    for node in range(len(legal)):
        for hand in range(legal.shape[1]):
            slots = legal[node, hand]
            if slots != 0 and slots & (slots - 1) == 0:
                slot = 0
                while slots >> slot != 1:
                    slot += 1
                sigma[node, hand, slot] = 1.0


@njit
def normalise(weights, legal, sigma):
    """Write probabilities ``[N, M, K]`` proportional to the positive `weights`, uniform over `legal` without any."""
    for node in range(len(legal)):
        for hand in range(legal.shape[1]):
            total = 0.0
            count = 0
            for slot in range(weights.shape[2]):
                if legal[node, hand] >> slot & 1:
                    total += max(weights[node, hand, slot], 0.0)
                    count += 1
            for slot in range(weights.shape[2]):
                if not legal[node, hand] >> slot & 1:
                    sigma[node, hand, slot] = 0.0
                elif total > 0:
                    sigma[node, hand, slot] = max(weights[node, hand, slot], 0.0) / total
                else:
                    sigma[node, hand, slot] = 1.0 / count


@njit
def accumulate(seat, weight, turn, sigma, reach, average):
    """Add `weight` times the reach of `seat` ``[N, M]`` times its `sigma` to the sums of its average strategy."""
    for node in range(len(turn)):
        if turn[node] == seat:
            for hand in range(sigma.shape[1]):
                if reach[node, hand] != 0:
                    for slot in range(sigma.shape[2]):
                        average[node, hand, slot] += weight * reach[node, hand] * sigma[node, hand, slot]


@njit
def learn(hero, positive, negative, turn, first, children, ranks, after, legal, below, value, regrets):
    """Add to the regrets of `hero` what each slot gains over the hand's `value`, then discount them.

    Args:
        positive, negative: Factors of the regrets above and below zero.
        below, value: Those of `ascend`.
        regrets: ``[N, M, K]``, written where the hero moves.

    The other arguments are those of `respond`.
    """
    child = np.empty(NUM_RANKS, np.int64)
    for node in range(len(turn)):
        if turn[node] != hero:
            continue
        number_children(children[node], first[node] - first[0], child)
        for hand in range(len(ranks)):
            for slot in range(ranks.shape[1]):
                if legal[node, hand] >> slot & 1:
                    gain = below[child[ranks[hand, slot]], after[hand, slot]] - value[node, hand]
                    regret = regrets[node, hand, slot] + gain
                    regrets[node, hand, slot] = regret * (positive if regret > 0 else negative)


@njit
def settle(hero, payoffs, turn, gone, ranks, falling, reach, value):
    """The values of `hero` before the last trick, in which both seats play the card that they are left with.

    Args:
        hero: Whose values they are.
        payoffs: float64 ``[2, R, R]``: what the leader ``[0]`` or the follower ``[1]`` gains with the own card (row)
            against the opponent's (column).
        turn: int8 ``[N]``, seat that leads the last trick.
        gone: int64 ``[N]``, counts of the cards played.
        ranks: int8 ``[R, 1]``, the ranks of the deck.
        falling: float64 ``[copies + 1]``: ``copies · (copies - 1) · …``, so many factors.
        reach: ``[N, R]``, of the opponent.
        value: ``[N, R]``, written.

    A pair of hands can be dealt in ``Π copies! / (a! b! (copies - a - b)!)`` ways, over the ranks, of which one seat
    has `a` and the other `b`. The factors ``1 / a!`` and ``1 / b!`` are part of the seats' reach from the beginning;
    what is left depends on the cards gone and on the last two. Two cards of one rank are drawn without replacement.
    """
    cards = len(ranks)
    left = np.empty(cards)
    weighted = np.empty(cards)
    for node in range(len(turn)):
        if not reach[node].any():
            value[node] = 0.0
            continue
        scale = 1.0
        for card in range(cards):
            count = gone[node] >> 4 * ranks[card, 0] & 15
            scale *= falling[count]
            left[card] = len(falling) - 1 - count
            weighted[card] = left[card] * reach[node, card]
        payoff = payoffs[0 if turn[node] == hero else 1]
        for own in range(cards):
            total = -payoff[own, own] * reach[node, own]
            for card in range(cards):
                total += payoff[own, card] * weighted[card]
            value[node, own] = scale * left[own] * total


@njit
def settle_many(hero, payoffs, turn, gone, ranks, falling, reach, value):
    """`settle` for any number of seats.

    Args:
        payoffs: float64 ``[places, R, R^others]``: what each place, counted from the leader, gains with the own card
            (row) against those of the others, clockwise from it, read as the digits of one number.
        reach: ``[others, N, R]``, of the other seats clockwise from the `hero`.

    The other arguments are those of `settle`, and so is the number of ways to deal.
    """
    left = np.empty(len(ranks))
    card = np.empty(len(reach), np.int64)
    weight = np.empty(len(reach) + 1)
    for node in range(len(turn)):
        weight[0] = 1.0
        for own in range(len(ranks)):
            count = gone[node] >> 4 * ranks[own, 0] & 15
            weight[0] *= falling[count]
            left[own] = len(falling) - 1 - count
        value[node] = 0.0
        payoff = payoffs[(hero - turn[node]) % (len(reach) + 1)]
        draw_cards(node, left, card, weight, payoff, reach, value[node])


@njit
def draw_cards(node, left, card, weight, payoff, reach, value):
    """Add to `value` ``[R]`` what the hero gains at a node on all cards that the others can draw, seat by seat.

    Args:
        left: float64 ``[R]``, cards still to be drawn.
        card: Scratch, int64 ``[others]``: the card of each.
        weight: Scratch, float64 ``[others + 1]``, begins with the weight of the node: as far as each seat, the product
            of the reach and of the numbers of cards that could have been drawn.
        payoff: float64 ``[R, R^others]``, that of the hero's place.

    The other arguments are those of `settle_many`.
    """
    cards = len(left)
    drawn = 0
    seat = 0
    card[0] = -1
    while seat >= 0:
        if card[seat] >= 0:
            left[card[seat]] += 1
            drawn -= card[seat]
        card[seat] += 1
        while card[seat] < cards and (reach[seat, node, card[seat]] == 0 or left[card[seat]] == 0):
            card[seat] += 1
        if card[seat] == cards:
            seat -= 1
            drawn //= cards
            continue
        weight[seat + 1] = weight[seat] * left[card[seat]] * reach[seat, node, card[seat]]
        left[card[seat]] -= 1
        drawn += card[seat]
        if seat + 1 < len(reach):
            seat += 1
            drawn *= cards
            card[seat] = -1
        else:
            for own in range(cards):
                value[own] += weight[seat + 1] * left[own] * payoff[own, drawn]
