"""Scripted opponents, the fixed yardstick of the benchmark.

Six policies that need no training, registered on import as `random`, `lowest`, `highest`, `lowest_sufficient`,
`control` and `careful`. They read the view of the seat to move and the mask, nothing else, and answer whole batches
in one compiled loop. All but `random` are deterministic, and no decision depends on the rest of its batch.

Which card is wanted at the end follows `Rules.payer`: a low one where the taker of the last trick pays, a high one
under ``lowest`` and ``non_winners``. `control` and `careful` turn round with it. The others are named after the
cards they play, and play them under every goal: as yardsticks they should not change.

Decisions that are not about cards are answered alike, except by `random`: with the highest action id. The dealer
deals as many cards as allowed; who is out comes back, and rather by skipping a round (nobody pays while away) than
by a chip: of four-player matches one `careful` that skips wins 27.7 ± 0.5 % against three that take the chip.
Totals are not read: making `careful` fear a payment that puts it out more than others gained nothing measurable.

>>> from cucumber_env.policies import make
>>> make("careful")
<policy careful>
"""

from __future__ import annotations

import numpy as np

from cucumber_env.batch import pick_uniform
from cucumber_env.compiled import njit
from cucumber_env.kernel import held_ranks
from cucumber_env.policies import Policy, Turns, register
from cucumber_env.rules import MAX_CARDS, MAX_SEATS, RANKS
from cucumber_env.state import ACE, FIRST, LAST, LOWEST, NON_WINNERS, NUM_RANKS, PLAY, TAKER, as_records, compile_rules

PLAY_LOWEST, PLAY_HIGHEST, PLAY_SUFFICIENT, PLAY_CONTROL, PLAY_CAREFUL = range(5)
"""Ways of choosing a card, by their number in `choose_all`."""

MIDDLE = RANKS.index("9")
"""What `control` sheds first; of the middle ranks, measured to be the best centre."""

CONTROL_TRICKS = 3
"""With at most so many tricks to finish, `control` fights for the lead."""

PLAN = np.dtype(
    [
        ("cards", np.int64, MAX_CARDS),  # own ranks, strongest first, one entry a card
        ("weaker", np.float64, NUM_RANKS + 1),  # unseen cards weaker than a strength
        ("share", np.float64, (MAX_SEATS, NUM_RANKS + 1)),  # chance that a card of a seat is weaker than a strength
        ("below", np.float64, NUM_RANKS + 1),  # the same for the average opponent
        ("reach", np.float64, MAX_CARDS),  # chance that an own card may answer the reference met when following
        ("takes", np.float64, (MAX_CARDS + 1, MAX_CARDS)),  # chance that it takes a trick, by cards still in hand
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
"""The order of `look_ahead`: sets of one size do not wait for each other, which suits processors."""


class Scripted(Policy):
    """A deterministic policy that chooses in compiled code; subclasses name the way in `kind`."""

    kind: int

    def act(self, turns: Turns) -> np.ndarray:
        """The action of every decision, int64 ``[B]``; ``turns.u`` is not read."""
        actions = np.empty(len(turns), np.int64)
        plan = as_records(np.zeros(1, PLAN))
        choose_all(self.kind, compile_rules(turns.rules), as_records(turns.views), turns.mask, plan, actions)
        return actions

    def probabilities(self, turns: Turns) -> np.ndarray:
        """One for the action that `act` takes, zero for all others; float64 ``[B, A]``."""
        probabilities = np.zeros(turns.mask.shape)
        np.put_along_axis(probabilities, self.act(turns)[:, None], 1.0, axis=1)
        return probabilities


class Random(Policy):
    """Draws uniformly from the legal actions (ranks, not cards: a pair is drawn no more often than a single).

    It does not read `payer`.
    """

    name = "random"

    def act(self, turns: Turns) -> np.ndarray:
        """An action for every decision, int64 ``[B]``, drawn with ``turns.u``."""
        actions = np.empty(len(turns), np.int64)
        pick_uniform(turns.mask, turns.u, actions)
        return actions

    def probabilities(self, turns: Turns) -> np.ndarray:
        """The same for all legal actions; float64 ``[B, A]``."""
        return turns.mask / turns.mask.sum(axis=1, keepdims=True)


class Lowest(Scripted):
    """Plays the lowest legal card: ends with its highest, which is all wrong unless a high card is wanted.

    It does not read `payer`: the worst of all where the taker pays, among the best where the goal is turned round.
    """

    name = "lowest"
    kind = PLAY_LOWEST


class Highest(Scripted):
    """Plays the highest legal card: takes what it can and keeps low cards for the end, the strongest one-liner.

    It does not read `payer`, and is as bad as can be where the goal is turned round.
    """

    name = "highest"
    kind = PLAY_HIGHEST


class LowestSufficient(Scripted):
    """Takes a trick as cheaply as possible, so long as it can.

    As a follower it plays the lowest card that takes the trick so far and, without one, its lowest (so it does not
    duck where ``follow: may`` lets it). As leader, with nothing to suffice against, it plays its highest; leading
    the lowest would make it the same player as `lowest` under ``follow: must``. It does not read `payer`.
    """

    name = "lowest_sufficient"
    kind = PLAY_SUFFICIENT


class Control(Scripted):
    """Sheds the middle cards early, keeps a low card for the end and the means to get there.

    While more than three tricks are left it plays the legal card nearest to the 9 (the higher of two as near) that is
    neither the lowest nor the highest it holds. In the last three tricks, or with no such card, it plays the
    highest legal one: taking the third-last or second-last trick means leading, and the low card is left for
    the last. Where `payer` turns the goal round, nothing low is worth keeping and it plays the lowest legal card.
    """

    name = "control"
    kind = PLAY_CONTROL


class Careful(Scripted):
    """Counts cards and plans the rest of its hand against an average table.

    It knows which cards are unseen, and takes a card of an opponent for one of those within the bounds that his
    play has proved. From that it works out, for every subset of its hand from one card upwards, what playing on
    with it costs (`look_ahead`): the last card costs its points times the chance that it pays; with more cards the
    leader plays the best of them, and a follower meets a reference as strong as one card of the average opponent, to
    be answered with the best card that reaches it or by giving up the lowest. Of the legal cards it plays the one
    whose remaining hand costs least, given the chance that it takes the trick on the table. The average table is
    an assumption (opponents play like their average card, and end with the better of two): the counts are not.
    `payer`, `penalty` and `tie` enter with the cost of the last card, so that another goal turns the plan round.
    """

    name = "careful"
    kind = PLAY_CAREFUL


_POLICIES = (Random, Lowest, Highest, LowestSufficient, Control, Careful)
for _policy in _POLICIES:
    register(_policy.name, _policy)

BASELINES: tuple[str, ...] = tuple(policy.name for policy in _POLICIES)
"""Names of the scripted policies, from no plan to the most careful one."""


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
    """Decisions other than cards: deal as many as allowed; come back, by skipping a round if possible."""
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
        if inner >> rank & 1 and abs(rank - MIDDLE) <= abs(best - MIDDLE):
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
    for i in range(cards):  # from the strongest: of plays that cost the same, the card that is less wanted
        rank = plan.cards[i]
        if legal >> rank & 1:
            rest = (1 << cards) - 1 ^ 1 << i
            cost = plan.follow[rest] + chance_to_take(rules, public, seat, rank, cards, plan) * plan.gain[rest]
            if cost < least or (rules.payer != TAKER and cost == least):
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
            plan.takes[size, i] = chance
        cost = payment(rules, rank)
        plan.follow[1 << i] = cost * chance_to_pay(rules, below, upto, opponents, False)
        leading = chance_to_pay(rules, below, upto, opponents, True)
        if leads_all and rules.payer != LOWEST:
            leading = 1.0 if rules.payer == TAKER else 0.0
        plan.gain[1 << i] = cost * leading - plan.follow[1 << i]


@njit
def payment(rules, rank):
    """What it costs to pay with a last card of `rank`; where that is another's card, all cost the same."""
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
    before = 0.0 if leads else 0.5  # chance that an opponent plays before this seat, near enough
    if rules.payer == NON_WINNERS or rules.tie == LAST:
        equal = before
    elif rules.tie == FIRST:
        equal = 1.0 - before
    else:
        equal = 1.0
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
        every = min(every, plan.follow[left] + plan.takes[size, i] * plan.gain[left])
        reached = min(every, limit)
        cost += plan.reach[i] * (reached - best)
        best = reached
    plan.follow[held] = cost
    plan.gain[held] = every - cost
