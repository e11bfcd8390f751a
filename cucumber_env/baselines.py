"""Scripted opponents, the fixed yardstick of the benchmark.

Six policies that need no training, registered on import under the names `random`, `lowest`, `highest`,
`lowest_sufficient`, `control` and `careful`. They read the view of the seat to move and the mask, nothing
else, and answer thousands of decisions in one compiled loop. All but `random` are deterministic, and none
depends on how a batch is made up.

What is to be avoided follows `Rules.payer`. Under ``taker`` the highest card of the last trick pays, so a low
card is wanted at the end; ``lowest`` and ``non_winners`` turn that round, and a high one is wanted.
`control` and `careful` follow the turn; the other four are defined by their cards and play the same under
every goal.

Decisions other than cards are answered alike, `random` excepted: the dealer deals as many cards as
allowed, and who may come back into a match does, by a chip (at once) rather than by skipping a round.
"""

from __future__ import annotations

import numpy as np

from cucumber_env.batch import pick_uniform
from cucumber_env.compiled import njit
from cucumber_env.kernel import (
    ACE,
    ALL,
    CHIP,
    DEAL_ONE,
    DECLINE,
    FIRST,
    LOWEST,
    NON_WINNERS,
    NUM_RANKS,
    PLAY,
    SKIP,
    TAKER,
    as_records,
    compile_rules,
    held_ranks,
)
from cucumber_env.policies import Policy, Turns, register
from cucumber_env.rules import MAX_CARDS, MAX_SEATS, RANKS

PLAY_LOWEST, PLAY_HIGHEST, PLAY_SUFFICIENT, PLAY_CONTROL, PLAY_CAREFUL = range(5)
"""How the compiled loop chooses cards; see `choose_all`."""

POISON = RANKS.index("9")
"""The middle of the deck, which `control` sheds first. (The 8 does as well; the seeds of the game say 6 to 8.)"""

CONTROL_TRICKS = 3
"""With so many tricks left `control` stops shedding and fights for the lead."""

PLAN = np.dtype(
    [
        ("cards", np.int64, MAX_CARDS),  # own ranks, strongest first, one entry a card
        ("weaker", np.float64, NUM_RANKS + 1),  # unseen cards weaker than a strength
        ("share", np.float64, (MAX_SEATS, NUM_RANKS + 1)),  # chance that a card of a seat is weaker than a strength
        ("below", np.float64, NUM_RANKS + 1),  # the same for the average opponent
        ("reach", np.float64, MAX_CARDS),  # chance that an own card may answer the reference met when following
        ("take", np.float64, (MAX_CARDS + 1, MAX_CARDS)),  # chance that it takes a trick, by cards still in hand
        ("follow", np.float64, 1 << MAX_CARDS),  # expected cost of a set of own cards when following next
        ("gain", np.float64, 1 << MAX_CARDS),  # what leading next adds to it
    ],
    align=True,
)
"""Scratch of `careful`; sets of own cards are bit sets over `cards`."""

ONE = np.uint64(1)
"""Sets of own cards are unsigned: an index that cannot be negative saves a third of `look_ahead`."""

SETS = range(1 << MAX_CARDS)
SIZE = np.array([held.bit_count() for held in SETS], np.uint64)
"""Number of members of a set of own cards."""

STRONGEST = np.array([max((held & -held).bit_length() - 1, 0) for held in SETS], np.uint64)
"""Position of its strongest card."""

BUT_WEAKEST = np.array([held ^ 1 << held.bit_length() >> 1 for held in SETS], np.uint64)
"""The set without its weakest card."""


def _orders() -> np.ndarray:
    """By number of own cards, all sets of two or more but the full one, smaller sets first; uint64 ``[8, 128]``."""
    orders = np.zeros((MAX_CARDS + 1, len(SETS)), np.uint64)
    for cards in range(3, MAX_CARDS + 1):
        sets = [held for held in range((1 << cards) - 1) if held.bit_count() >= 2]
        orders[cards, : len(sets)] = sorted(sets, key=int.bit_count)
    return orders


ORDERS = _orders()
"""The order in which `careful` looks at sets of own cards: equals in size are independent, which keeps a processor busy."""


class Scripted(Policy):
    """A deterministic policy whose decisions `choose_all` makes; subclasses say how in `kind`."""

    kind: int

    def act(self, turns: Turns) -> np.ndarray:
        """The action of every decision, int64 ``[B]``; ``turns.u`` is not used."""
        actions = np.empty(len(turns), np.int64)
        plan = as_records(np.zeros(1, PLAN))
        choose_all(self.kind, compile_rules(turns.rules), as_records(turns.views), turns.mask, plan, actions)
        return actions

    def probabilities(self, turns: Turns) -> np.ndarray:
        """One for the action of `act`, zero for all others; float64 ``[B, A]``."""
        probabilities = np.zeros(turns.mask.shape)
        np.put_along_axis(probabilities, self.act(turns)[:, None], 1.0, axis=1)
        return probabilities


@njit
def choose_all(kind, rules_table, views, mask, plan_table, out):
    """Write the action of a policy of `kind` for every view; `mask` is int8 ``[B, A]``, `out` int64 ``[B]``."""
    rules = rules_table[0]
    plan = plan_table[0]
    for i in range(len(views)):
        view = views[i]
        legal = np.int64(0)
        for action in range(mask.shape[1]):
            legal |= np.int64(mask[i, action]) << action
        if view.public.phase != PLAY:
            out[i] = answer(legal)
        elif kind == PLAY_LOWEST:
            out[i] = lowest(legal)
        elif kind == PLAY_HIGHEST:
            out[i] = highest(legal)
        elif kind == PLAY_SUFFICIENT:
            out[i] = sufficient(rules, view.public, legal)
        elif kind == PLAY_CONTROL:
            out[i] = control(rules, view.public, view.hand, legal)
        else:
            out[i] = careful(rules, view.public, view.seat, view.hand, legal, plan)


@njit
def lowest(actions):
    """The lowest member of a set that is not empty."""
    action = 0
    while not actions >> action & 1:
        action += 1
    return action


@njit
def highest(actions):
    """The highest member of a set that is not empty."""
    action = lowest(actions)
    while actions >> action > 1:
        action += 1
    return action


@njit
def answer(legal):
    """Decisions other than cards: deal as many as allowed, come back by a chip if possible, else by skipping."""
    if legal & 1 << CHIP:
        return CHIP
    return highest(legal)


@njit
def sufficient(rules, public, legal):
    """The lowest card that takes the trick so far, if there is one, else the lowest; the highest as leader."""
    if public.count == 0:
        return highest(legal)
    able = legal & rules.at_least[public.reference]
    return lowest(able) if able and not public.ace_led else lowest(legal)


@njit
def control(rules, public, hand, legal):
    """The card of `Control`."""
    if rules.payer != TAKER:
        return lowest(legal)
    held = held_ranks(hand)
    inner = legal & ~(1 << lowest(held)) & ~(1 << highest(held))
    if public.hand_size - public.trick <= CONTROL_TRICKS or inner == 0:
        return highest(legal)
    best = lowest(inner)
    for rank in range(best + 1, NUM_RANKS):
        if inner >> rank & 1 and abs(rank - POISON) <= abs(best - POISON):
            best = rank
    return best


@njit
def careful(rules, public, seat, hand, legal, plan):
    """The card of `Careful`: the legal one after which the rest of the hand is expected to cost least."""
    cards = spread_hand(hand, plan)
    opponents = average_table(rules, public, seat, hand, plan)
    expect(rules, public, seat, cards, opponents, plan)
    for i in range((1 << cards) - 2 - cards):
        look_ahead(rules, ORDERS[cards, i], plan)
    best = -1
    least = np.inf
    for i in range(cards):
        rank = plan.cards[i]
        if legal >> rank & 1:
            rest = (1 << cards) - 1 ^ 1 << i
            cost = plan.follow[rest] + chance_to_take(rules, public, seat, rank, cards, plan) * plan.gain[rest]
            if cost < least:
                least = cost
                best = rank
    return best


@njit
def spread_hand(hand, plan):
    """Write the ranks of a hand, the strongest first and equals side by side; returns how many cards it has."""
    cards = 0
    for rank in range(NUM_RANKS - 1, -1, -1):
        for _ in range(hand >> 4 * rank & 15):
            plan.cards[cards] = rank
            cards += 1
    return cards


@njit
def average_table(rules, public, seat, hand, plan):
    """Count the unseen cards, and write what they tell about one card of each opponent and of the average opponent.

    An opponent's card is one of the unseen cards within the bounds that his play has proved. Returns the number of
    opponents.
    """
    unseen = rules.deck - public.gone - hand
    plan.weaker[:] = 0.0
    plan.below[:] = 0.0
    for rank in range(NUM_RANKS):
        plan.weaker[rules.strength[rank] + 1] += unseen >> 4 * rank & 15
    for strength in range(NUM_RANKS):
        plan.weaker[strength + 1] += plan.weaker[strength]
    opponents = 0
    for other in range(public.players):
        if other != seat and public.seats >> other & 1:
            opponents += 1
            least = plan.weaker[public.low[other]]
            scale = 1.0 / max(plan.weaker[public.high[other] + 1] - least, 1.0)
            for strength in range(NUM_RANKS + 1):
                share = min(max((plan.weaker[strength] - least) * scale, 0.0), 1.0)
                plan.share[other, strength] = share
                plan.below[strength] += share
    for strength in range(NUM_RANKS + 1):
        plan.below[strength] /= opponents
    return opponents


@njit
def power(base, exponent):
    """`base` to a small natural `exponent`; a plain loop beats the general power here."""
    result = 1.0
    for _ in range(exponent):
        result *= base
    return result


@njit
def chance_to_take(rules, public, seat, rank, cards, plan):
    """The chance that a card of `rank` takes the trick on the table: nobody still to play holds its equal."""
    if public.count == 0:
        if rank == ACE and rules.ace_lead:
            return 1.0
    elif public.ace_led or rules.strength[rank] < rules.strength[public.reference]:
        return 0.0
    chance = 1.0
    for other in range(public.players):
        if other != seat and public.seats >> other & 1 and public.played[other, public.trick] < 0:
            chance *= plan.share[other, rules.strength[rank]]
    return power(chance, cards)


@njit
def expect(rules, public, seat, cards, opponents, plan):
    """Write the chances of every own card in tricks to come, and what it costs to be left with it."""
    plan.follow[0] = 0.0
    plan.gain[0] = 0.0
    for i in range(cards):
        rank = plan.cards[i]
        below = plan.below[rules.strength[rank]]
        upto = plan.below[rules.strength[rank] + 1]
        leads_all = rules.ace_lead and rank == ACE
        # A reference that is an Ace was mostly led, and then not even an Ace answers it.
        plan.reach[i] = below if leads_all else upto
        one = 1.0 if leads_all else power(below, opponents)
        chance = one
        for size in range(2, cards):
            chance *= one
            plan.take[size, i] = chance
        cost = payment(rules, public, seat, rank)
        plan.follow[1 << i] = cost * chance_to_pay(rules, below, upto, opponents, False)
        leading = chance_to_pay(rules, below, upto, opponents, True)
        if leads_all and rules.payer != LOWEST:
            leading = 1.0 if rules.payer == TAKER else 0.0
        plan.gain[1 << i] = cost * leading - plan.follow[1 << i]


@njit
def payment(rules, public, seat, rank):
    """What paying with a last card of `rank` costs."""
    if rules.payer != TAKER and not rules.own:
        return 1.0
    return np.float64(rules.points[rank])


@njit
def chance_to_pay(rules, below, upto, opponents, leads):
    """The chance that a last card pays, if a card of the average opponent is below it, or up to it, so often.

    Everybody tries to end with a card that does not pay, so each opponent is taken to keep the better of two.
    """
    if rules.payer == TAKER:
        below = 1.0 - (1.0 - below) * (1.0 - below)
        upto = 1.0 - (1.0 - upto) * (1.0 - upto)
    else:
        below *= below
        upto *= upto
    if rules.payer == NON_WINNERS:
        equal = 0.0 if leads else 0.5
    elif rules.tie == ALL or (leads and rules.tie == FIRST):
        equal = 1.0
    else:
        equal = 0.0 if leads else 0.5
    equal *= upto - below
    if rules.payer == LOWEST:
        return power(1.0 - upto + equal, opponents)
    taken = power(below + equal, opponents)
    return taken if rules.payer == TAKER else 1.0 - taken


@njit
def look_ahead(rules, held, plan):
    """Write the expected cost of a set of two or more own cards, from that of the sets with one card less.

    The leader plays the best card. A follower meets a reference that is as strong as a card of the average
    opponent: he plays the best of the cards that reach it, or loses his lowest.
    """
    size = SIZE[held]
    forced = plan.follow[BUT_WEAKEST[held]]
    limit = forced if rules.may else np.inf
    every = np.inf  # the best of the cards seen so far
    best = forced  # the same for a follower whose reference they are to reach
    cost = forced
    rest = held
    while rest:
        i = STRONGEST[rest]
        less = rest & rest - ONE
        left = held ^ rest ^ less
        rest = less
        every = min(every, plan.follow[left] + plan.take[size, i] * plan.gain[left])
        reached = min(every, limit)
        cost += plan.reach[i] * (reached - best)
        best = reached
    plan.follow[held] = cost
    plan.gain[held] = every - cost


class Random(Policy):
    """Draws uniformly from the legal actions."""

    name = "random"

    def act(self, turns: Turns) -> np.ndarray:
        actions = np.empty(len(turns), np.int64)
        pick_uniform(turns.mask, turns.u, actions)
        return actions

    def probabilities(self, turns: Turns) -> np.ndarray:
        return turns.mask / turns.mask.sum(axis=1, keepdims=True)

class Lowest(Scripted):
    name = "lowest"; kind = PLAY_LOWEST
class Highest(Scripted):
    name = "highest"; kind = PLAY_HIGHEST
class LowestSufficient(Scripted):
    name = "lowest_sufficient"; kind = PLAY_SUFFICIENT
class Control(Scripted):
    name = "control"; kind = PLAY_CONTROL
class Careful(Scripted):
    name = "careful"; kind = PLAY_CAREFUL
for p in (Random, Lowest, Highest, LowestSufficient, Control, Careful):
    register(p.name, p)
