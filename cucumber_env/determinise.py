"""Determinisation: whole games drawn from what one seat knows.

`worlds` fills in the hands that a `VIEW` leaves open, so that search can play on. The cards that the
seat has not seen are distinct cards, and every way to give them to the other seats that agrees with
the public bounds is equally likely. That is the deal given what the plays *prove*, not what they
suggest: no model of how the others play goes into it.
"""

from __future__ import annotations

import numpy as np

from cucumber_env.compiled import njit
from cucumber_env.kernel import pick_card
from cucumber_env.randomness import WORLD_STREAM, below, stream
from cucumber_env.rules import MAX_SEATS, Rules
from cucumber_env.state import GAME, NUM_RANKS, PLAY, as_records, compile_rules

ATTEMPTS = 1_000_000
"""Draws after which a view is taken to contradict itself; positions of the game need a few."""


def worlds(rules: Rules, views: np.ndarray, *, count: int, keys: np.ndarray) -> np.ndarray:
    """Games that agree with each view, drawn independently.

    The view's own hand and the public record are kept. Each game has a random stream of its own, drawn from the
    key of its row: what is dealt in later rounds has nothing to do with what the table of the view will deal.

    Args:
        rules: Rules in force.
        views: `VIEW` records ``[B]``.
        count: Games for each view.
        keys: uint64 ``[B]``: equal keys draw equal games for equal views, whatever the rest of the batch.

    Returns:
        `GAME` records ``[B, count]``.

    Raises:
        ValueError: `count` is no integer ≥ 1, keys of another shape or dtype, or a view of no seat, or one that no
            deal agrees with.

    Example:
        >>> from cucumber_env.envs.vector import SelfPlay
        >>> table = SelfPlay(num_games=2, num_players=4)
        >>> at = table.reset(seed=1)
        >>> worlds(table.rules, table.turns().views, count=3, keys=np.arange(2, dtype=np.uint64)).shape
        (2, 3)
    """
    keys = np.asarray(keys)
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise ValueError(f"count={count!r} must be an integer ≥ 1")
    if keys.shape != views.shape or keys.dtype != np.uint64:
        raise ValueError(f"keys must be uint64 of shape {views.shape}, got {keys.dtype} of shape {keys.shape}")
    if (views["seat"] < 0).any():
        raise ValueError(f"view {int(np.argmin(views['seat']))} is that of no seat: nobody is to move there")
    games = as_records(np.zeros((len(views), count), GAME))
    failed = draw_worlds(compile_rules(rules), as_records(views), keys, games)
    if failed >= 0:
        raise ValueError(f"view {failed} contradicts itself: no deal of its unseen cards agrees with its bounds")
    return games


@njit
def draw_worlds(rules_table, views, keys, games):
    """Fill `games` ``[B, count]``; returns -1, or the number of a view for which no game was found."""
    for i in range(len(views)):
        for world in range(games.shape[1]):
            if determinise(rules_table[0], views[i], keys[i], world, games[i, world]) == 0:
                return i
    return -1


@njit
def determinise(rules, view, key, world, game):
    """Write world number `world` of a view into `game`; returns the number of attempts, 0 if none succeeded.

    Seat by seat, most constrained first, cards are drawn from those that the seat may hold. How many these are
    can depend on what the seats before drew, so an attempt draws among the most that they can be and is given up
    if the draw falls beyond them: every complete attempt then has the same probability, which makes the result
    uniform. Where the bounds of any two seats are disjoint or one within the other, no attempt fails.
    """
    public = view.public
    pile = rules.deck - public.gone - view.hand
    order, masks, limits = plan(rules, view, pile)
    name = stream(key, world, 0, 0, WORLD_STREAM)
    game.public = public
    game.seed = stream(key, world, 1, 0, WORLD_STREAM)
    game.game = 0
    game.episode = 0
    drawn = 0
    for attempt in range(ATTEMPTS):
        game.hands[:] = 0
        game.hands[view.seat] = view.hand
        drawn = try_hands(public, pile, order, masks, limits, name, drawn, game.hands)
        if drawn < 0:
            return attempt + 1
    return 0


@njit
def cards_to_come(public, seat):
    """How many cards `seat` holds."""
    if public.phase != PLAY or not public.seats >> seat & 1:
        return 0
    return public.hand_size - public.trick - (public.played[seat, public.trick] >= 0)


@njit
def count_cards(pile):
    """Number of cards in a pile."""
    pile = (pile & 0x0F0F0F0F0F0F0F) + (pile >> 4 & 0x0F0F0F0F0F0F0F)
    return pile * 0x01010101010101 >> 48 & 0xFF


@njit
def plan(rules, view, pile):
    """In which order seats draw from the unseen `pile`, from which cards, and among how many at most.

    Returns three int64 ``[8]``: the seats with cards, then -1; by seat the mask of the cards that its bounds
    allow; by seat the most of them that the seats before it can have left.
    """
    order = np.full(MAX_SEATS, -1)
    masks = np.zeros(MAX_SEATS, np.int64)
    limits = np.zeros(MAX_SEATS, np.int64)
    public = view.public
    found = 0
    for seat in range(public.players):
        if seat == view.seat or cards_to_come(public, seat) == 0:
            continue
        masks[seat] = allowed_cards(rules, public, seat)
        limits[seat] = count_cards(pile & masks[seat])
        at = found
        while at > 0 and limits[order[at - 1]] > limits[seat]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = seat
        found += 1
    for later in range(1, found):
        limits[order[later]] -= taken_before(public, pile, order[:later], masks, masks[order[later]])
    return order, masks, limits


@njit
def taken_before(public, pile, before, masks, mask):
    """The fewest cards of the mask that the seats of `before` can have drawn from the unseen `pile`.

    A bound, and the number itself where each seat's cards lie within the mask or outside of it: what a seat needs
    beyond the cards that it may draw elsewhere, added up; or the same of all that can draw from the mask at once.
    """
    one_by_one = 0
    together = 0
    elsewhere = np.int64(0)
    for seat in before:
        needs = cards_to_come(public, seat)
        outside = masks[seat] & ~mask
        one_by_one += max(0, needs - count_cards(pile & outside))
        if pile & masks[seat] & mask:
            together += needs
            elsewhere |= outside
    return max(one_by_one, together - count_cards(pile & elsewhere))


@njit
def allowed_cards(rules, public, seat):
    """Mask of the cards that the bounds of `seat` allow."""
    mask = np.int64(0)
    for rank in range(NUM_RANKS):
        if public.low[seat] <= rules.strength[rank] <= public.high[seat]:
            mask |= np.int64(15) << 4 * rank
    return mask


@njit
def try_hands(public, pile, order, masks, limits, name, drawn, hands):
    """Draw all hands, beginning with draw `drawn` of the stream; returns -1, or the next draw if it failed."""
    for seat in order:
        if seat < 0:
            break
        cards = pile & masks[seat]
        left = count_cards(cards)
        for taken in range(cards_to_come(public, seat)):
            if left <= taken:
                return drawn
            index = below(name, drawn, limits[seat] - taken)
            drawn += 1
            if index >= left - taken:
                return drawn
            card = np.int64(1) << 4 * pick_card(cards, index)
            cards -= card
            pile -= card
            hands[seat] += card
    return -1
