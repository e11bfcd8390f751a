"""The rules of Cucumber and Concombre, compiled: the only place where they are written.

`legal`, `advance` and the penalties read what is public (`PUBLIC`) and, for `legal`, the hand of the seat to
move; they never see another hand. The last part of the file plays whole games (`GAME`) with them.

A match runs through the phases::

    DEAL ── cards are dealt ──► PLAY ── last trick ──► settled ──► REVIVE (offers) ──► DEAL of the next round
     ▲                                                    └──────► OVER
    CHOOSE (dealer's choice)

`DEAL` is the chance node: whoever walks public states by hand puts cards there and calls `open_round`.
The readings cited as A05, A10 … are those of docs/rules.md.
"""

from __future__ import annotations

import numpy as np

from cucumber_env.compiled import njit
from cucumber_env.randomness import DEAL_STREAM, DEALER_STREAM, below, stream
from cucumber_env.state import (
    ACE,
    ALL,
    CHIP,
    CHOOSE,
    DEAL,
    DEAL_ONE,
    DECLINE,
    FIRST_OUT_LOSES,
    FIXED_ROUNDS,
    LAST,
    LAST_SURVIVOR,
    LOWEST,
    NOBODY,
    NON_WINNERS,
    NUM_RANKS,
    OVER,
    PLAY,
    REVIVE,
    SKIP,
    TAKER,
)

ROUND_ENDED = 1
"""What `advance` returns when its action ended a round: `penalties` are those of that round."""


@njit
def count_bits(bits):
    """Number of members of a set."""
    count = 0
    while bits:
        bits &= bits - 1
        count += 1
    return count


@njit
def next_seat(seats, seat, players):
    """The next member of `seats` clockwise after `seat`."""
    for _ in range(players):
        seat += 1
        if seat == players:
            seat = 0
        if seats >> seat & 1:
            return seat
    return NOBODY


@njit
def held_ranks(hand):
    """The set of ranks in a hand."""
    # A count is at most 4, so three bits tell whether it is zero; four steps then gather every
    # fourth bit into the low 13.
    bits = (hand | hand >> 1 | hand >> 2) & 0x1111111111111
    bits = (bits | bits >> 3) & 0x0303030303030303
    bits = (bits | bits >> 6) & 0x000F000F000F000F
    bits = (bits | bits >> 12) & 0x000000FF000000FF
    return (bits | bits >> 24) & 0x1FFF


@njit
def lowest_ranks(rules, held):
    """The lowest of a set of ranks; all that tie with it in strength."""
    lowest = held & -held
    if lowest & rules.ties:
        return held & rules.ties
    return lowest


@njit
def legal_ranks(rules, public, hand):
    """The set of ranks that the seat to move may play from `hand`."""
    held = held_ranks(hand)
    if public.reference < 0:
        return held
    if public.ace_led:
        return lowest_ranks(rules, held)
    able = held & rules.at_least[public.reference]
    if able == 0:
        return lowest_ranks(rules, held)
    if rules.may:
        return able | lowest_ranks(rules, held)
    return able


@njit
def legal(rules, public, hand):
    """The set of actions open to the seat to move, who holds `hand`; empty outside of decisions."""
    if public.phase == PLAY:
        return legal_ranks(rules, public, hand)
    if public.phase == CHOOSE:
        return ((1 << rules.most_cards) - (1 << rules.fewest_cards - 1)) << DEAL_ONE
    if public.phase == REVIVE:
        return revivals(rules, public, public.turn)
    return 0


@njit
def revivals(rules, public, seat):
    """The set of answers open to an eliminated `seat` (A26); empty if it is not to be asked."""
    others = count_bits(public.alive & ~(1 << seat))
    if others < 2 or public.revived >> seat & 1:
        return 0
    answers = 1 << DECLINE
    if rules.chip:
        answers |= 1 << CHIP
    if rules.skip and count_bits(public.alive & ~public.skipping) >= 2:
        answers |= 1 << SKIP
    return answers


@njit
def advance(rules, public, action):
    """Apply a legal `action` of ``public.turn`` to what is public.

    Returns `ROUND_ENDED` if it ended a round, else 0. Legality is the caller's to check (`legal`).
    """
    public.moves += 1
    if public.phase == PLAY:
        return play_card(rules, public, action)
    if public.phase == CHOOSE:
        public.hand_size = action - DEAL_ONE + 1
        public.phase = DEAL
        public.turn = NOBODY
    else:
        answer_revival(rules, public, action)
    return 0


@njit
def play_card(rules, public, rank):
    """The seat to move plays a card of `rank`."""
    seat = public.turn
    if public.count == 0:
        public.leaders[public.trick] = seat
        public.reference = rank
        public.taker = seat
        public.ace_led = rules.ace_lead and rank == ACE
    else:
        infer_bounds(rules, public, seat, rank)
        # Under a led Ace nobody overtakes the leader, an Ace included (A05).
        if not public.ace_led and rules.strength[rank] >= rules.strength[public.reference]:
            public.reference = rank
            public.taker = seat
    public.played[seat, public.trick] = rank
    public.gone += 1 << 4 * rank
    public.count += 1
    follower = next_seat(public.seats, seat, public.players)
    if follower != public.leader:
        public.turn = follower
        return 0
    return end_trick(rules, public)


@njit
def infer_bounds(rules, public, seat, rank):
    """What a follower's card proves about the rest of his hand, as bounds on strength."""
    strength = rules.strength[rank]
    reference = rules.strength[public.reference]
    if public.ace_led or strength < reference:
        public.low[seat] = max(np.int32(public.low[seat]), strength)
        if not public.ace_led and not rules.may:
            public.high[seat] = min(np.int32(public.high[seat]), reference - 1)


@njit
def end_trick(rules, public):
    """The taker leads the next trick, or the round is settled."""
    if public.trick + 1 < public.hand_size:
        public.trick += 1
        public.count = 0
        public.reference = NOBODY
        public.leader = public.taker
        public.turn = public.taker
        public.taker = NOBODY
        public.ace_led = 0
        return 0
    charge(rules, public)
    public.turn = NOBODY
    if public.match:
        settle(rules, public)
    else:
        finish(rules, public, 0)
    return ROUND_ENDED


@njit
def charge(rules, public):
    """Write the penalty of every seat for the complete last trick on the table."""
    trick = public.trick
    highest = 0
    for seat in range(public.players):
        public.penalties[seat] = 0
        if public.seats >> seat & 1:
            highest = max(highest, rules.points[public.played[seat, trick]])
    payers = paying_seats(rules, public)
    for seat in range(public.players):
        if payers >> seat & 1:
            public.penalties[seat] = rules.points[public.played[seat, trick]] if rules.own else highest


@njit
def paying_seats(rules, public):
    """The set of seats that pay for the complete last trick on the table."""
    if rules.payer == NON_WINNERS:
        return public.seats & ~(1 << public.taker)
    if rules.payer == TAKER and public.ace_led and rules.tie != ALL:
        return 1 << public.taker  # the leader's Ace takes whatever else was played (A05)
    return deciding_seats(rules, public)


@njit
def deciding_seats(rules, public):
    """Who played the highest card, or under ``payer: lowest`` the lowest, as `tie` settles equals (A31)."""
    sign = -1 if rules.payer == LOWEST else 1
    best = -NUM_RANKS
    found = 0
    seat = public.leader
    for _ in range(public.count):
        card = sign * rules.strength[public.played[seat, public.trick]]
        if card > best or (card == best and rules.tie == LAST):
            best = card
            found = 1 << seat
        elif card == best and rules.tie == ALL:
            found |= 1 << seat
        seat = next_seat(public.seats, seat, public.players)
    return found


@njit
def settle(rules, public):
    """Carry the penalties of a round into the match: who is out, who has won, what comes next."""
    if public.tied:
        settle_sudden_death(rules, public)
        return
    for seat in range(public.players):
        public.totals[seat] += public.penalties[seat]
    if rules.end == FIXED_ROUNDS:
        if public.round_index + 1 < rules.rounds:
            next_round(rules, public)
        else:
            decide(rules, public, lowest_totals(public, public.seats))
        return
    out = crossing_seats(rules, public)
    if rules.end == FIRST_OUT_LOSES:
        if out:
            mark_out(public, out)
            finish(rules, public, 0)
        else:
            next_round(rules, public)
        return
    settle_survival(rules, public, out)


@njit
def settle_survival(rules, public, out):
    """`last_survivor`: the match is decided when at most one seat is left (A10); else offers follow."""
    mark_out(public, out)
    left = count_bits(public.alive)
    if left == 1:
        finish(rules, public, public.alive)
    elif left == 0:
        decide(rules, public, lowest_totals(public, out))
    else:
        if rules.chip or rules.skip:
            public.undecided = out & ~public.revived
        offer_revival(rules, public)


@njit
def crossing_seats(rules, public):
    """The set of seats of this round whose total has come to the threshold."""
    out = 0
    for seat in range(public.players):
        if public.seats >> seat & 1 and public.totals[seat] >= rules.out_at:
            out |= 1 << seat
    return out


@njit
def mark_out(public, out):
    """The seats of `out` leave the match in this round."""
    public.alive &= ~out
    for seat in range(public.players):
        if out >> seat & 1:
            public.out_round[seat] = public.round_index


@njit
def lowest_totals(public, seats):
    """Those of `seats` with the lowest total."""
    lowest = 0
    best = np.int32(0)
    for seat in range(public.players):
        if seats >> seat & 1:
            total = public.totals[seat]
            if lowest == 0 or total < best:
                lowest = 0
                best = total
            if total == best:
                lowest |= 1 << seat
    return lowest


@njit
def decide(rules, public, best):
    """One of `best` wins the match: at once if alone, else after sudden death among them."""
    if count_bits(best) == 1:
        finish(rules, public, best)
        return
    public.tied = best
    next_round(rules, public)


@njit
def settle_sudden_death(rules, public):
    """Who pays drops out of it; if all pay, it is played again (A11)."""
    left = public.tied
    for seat in range(public.players):
        if public.penalties[seat]:
            left &= ~(1 << seat)
    decide(rules, public, left if left else public.tied)


@njit
def offer_revival(rules, public):
    """Ask the next eliminated seat that may come back, in ascending order, or go on to the next round."""
    for seat in range(public.players):
        if public.undecided >> seat & 1 and revivals(rules, public, seat):
            public.phase = REVIVE
            public.turn = seat
            return
    public.undecided = 0
    next_round(rules, public)


@njit
def answer_revival(rules, public, answer):
    """The seat to move declines, comes back by a chip, or comes back after skipping a round."""
    seat = public.turn
    public.undecided &= ~(1 << seat)
    if answer != DECLINE:
        public.revived |= 1 << seat
        if answer == CHIP:
            public.totals[seat] = highest_total_in(rules, public)
        else:
            public.skipping |= 1 << seat
        public.alive |= 1 << seat
    offer_revival(rules, public)


@njit
def highest_total_in(rules, public):
    """The total of a seat that comes back: the highest among those in whose own total stands.

    If no seat in has one (all of them due back at once), the highest total that is still in.
    """
    highest = -1
    for seat in range(public.players):
        if public.alive >> seat & 1 and public.totals[seat] < rules.out_at:
            highest = max(highest, public.totals[seat])
    return highest if highest >= 0 else rules.out_at - 1


@njit
def next_round(rules, public):
    """Seats that sat out return, the deal moves clockwise to the next seat that takes part."""
    if public.away:
        total = highest_total_in(rules, public)
        for seat in range(public.players):
            if public.away >> seat & 1:
                public.totals[seat] = total
    public.away = public.skipping
    public.skipping = 0
    public.seats = public.tied if public.tied else public.alive & ~public.away
    public.round_index += 1
    public.dealer = next_seat(public.seats, public.dealer, public.players)
    begin_round(rules, public)


@njit
def begin_round(rules, public):
    """Clear the table; the dealer chooses the number of cards, or the fixed number is to be dealt."""
    public.gone = 0
    public.trick = 0
    public.count = 0
    public.reference = NOBODY
    public.taker = NOBODY
    public.ace_led = 0
    public.low[:] = 0
    public.high[:] = ACE
    public.leaders[:] = NOBODY
    public.played[:] = NOBODY
    if rules.dealer_leads:
        public.leader = public.dealer
    else:
        public.leader = next_seat(public.seats, public.dealer, public.players)
    if rules.fewest_cards < rules.most_cards:
        public.phase = CHOOSE
        public.turn = public.dealer
        public.hand_size = 0
    else:
        public.phase = DEAL
        public.turn = NOBODY
        public.hand_size = rules.most_cards


@njit
def open_round(public):
    """The cards are dealt: the leader is to play."""
    public.phase = PLAY
    public.turn = public.leader


@njit
def finish(rules, public, winner):
    """The episode is over; `winner` is the set of the one seat that won the match, if any. Rank all seats."""
    public.phase = OVER
    public.turn = NOBODY
    for seat in range(public.players):
        better = 0
        for other in range(public.players):
            if standing(rules, public, winner, other) < standing(rules, public, winner, seat):
                better += 1
        public.placement[seat] = better + 1


@njit
def standing(rules, public, winner, seat):
    """Key of the final ranking: lower is better, equals share a place."""
    if not public.match:
        return np.int64(public.penalties[seat])
    if winner >> seat & 1:
        return np.int64(-1)
    if rules.end == LAST_SURVIVOR:
        return (np.int64(1 << 24) - public.out_round[seat]) * (1 << 24) + public.totals[seat]
    if rules.end == FIRST_OUT_LOSES and public.out_round[seat] >= 0:
        return np.int64(1 << 24)
    return np.int64(public.totals[seat])


@njit
def start(rules, public, players, match, dealer):
    """Begin a match (or a single round, ``match=0``) of `players` seats with the first `dealer`."""
    public.players = players
    public.match = match
    public.moves = 0
    public.round_index = 0
    public.dealer = dealer
    public.alive = (1 << players) - 1
    public.seats = public.alive
    public.away = 0
    public.skipping = 0
    public.undecided = 0
    public.revived = 0
    public.tied = 0
    public.totals[:] = 0
    public.penalties[:] = 0
    public.out_round[:] = NOBODY
    public.placement[:] = 0
    begin_round(rules, public)


@njit
def pick_card(cards, index):
    """Rank of the card number `index` (from 0) of a pile of counts, lowest first."""
    for rank in range(NUM_RANKS):
        index -= cards >> 4 * rank & 15
        if index < 0:
            return rank
    return NOBODY


@njit
def deal(rules, game):
    """Deal the round that ``game.public`` waits for, from the full deck, and open it.

    Cards go round the whole table one by one, seats that are out included, so that a seat's first
    cards depend neither on who is still in nor on how many are dealt.
    """
    public = game.public
    name = stream(game.seed, game.game, game.episode, public.round_index, DEAL_STREAM)
    pile = rules.deck
    left = 0
    for rank in range(NUM_RANKS):
        left += rules.deck >> 4 * rank & 15
    game.hands[:] = 0
    drawn = 0
    for _ in range(public.hand_size):
        for seat in range(public.players):
            card = np.int64(1) << 4 * pick_card(pile, below(name, drawn, left))
            pile -= card
            left -= 1
            drawn += 1
            if public.seats >> seat & 1:
                game.hands[seat] += card
    open_round(public)


@njit
def begin(rules, game, seed, index, episode, players, match):
    """Start episode `episode` of game `index` under `seed`: draw the first dealer, deal if it is time."""
    game.seed = np.uint64(seed)
    game.game = index
    game.episode = episode
    game.hands[:] = 0
    name = stream(game.seed, game.game, game.episode, 0, DEALER_STREAM)
    start(rules, game.public, players, match, below(name, 0, players))
    if game.public.phase == DEAL:
        deal(rules, game)


@njit
def act(rules, game, action):
    """Apply a legal `action` of the seat to move; a round that begins waits for its cards. Returns as `advance`."""
    public = game.public
    if public.phase == PLAY:
        game.hands[public.turn] -= np.int64(1) << 4 * action
    return advance(rules, public, action)


@njit
def play(rules, game, action):
    """`act`, then deal if a round is to begin. Returns as `advance`."""
    ended = act(rules, game, action)
    if game.public.phase == DEAL:
        deal(rules, game)
    return ended


@njit
def legal_now(rules, game):
    """The set of actions open to the seat to move."""
    if game.public.turn < 0:
        return np.int64(0)
    return np.int64(legal(rules, game.public, game.hands[game.public.turn]))
