"""All hands that a deck can deal, numbered: the columns of every vector of exact play."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cucumber_env.rules import RANKS, Rules


@dataclass(frozen=True)
class Hands:
    """All `M` hands of so many cards.

    Attributes:
        cards: Number of cards of each hand.
        packed: int64 ``[M]`` ascending, counts of four bits a rank.
        ranks: int8 ``[M, cards]``, the different ranks of a hand from the lowest (its slots), then -1.
        after: int32 ``[M, cards]``, number of the hand without a card of that slot, among those of one card less.
        weights: float64 ``[M]``, ``1 / Π count!`` over the ranks: in proportion to the ways of dealing each hand if the
            deck had cards without end.
    """

    cards: int
    packed: np.ndarray
    ranks: np.ndarray
    after: np.ndarray
    weights: np.ndarray

    def __len__(self) -> int:
        return len(self.packed)

    def by_slot(self, hands: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
        """Probabilities of all actions ``[B, A]`` with hands of some numbers ``[B]``, by slot: float64 ``[B, K]``."""
        ranks = self.ranks[hands]
        slots = np.take_along_axis(probabilities, np.maximum(ranks, 0).astype(np.int64), axis=1)
        return np.where(ranks >= 0, slots, 0.0)


def list_hands(rules: Rules) -> list[Hands]:
    """By number of cards, from none to the hand size, all hands that the deck can deal."""
    deck = [RANKS.index(letter) for letter in rules.ranks]
    nothing = np.zeros((1, 0), np.int32)
    found = [Hands(0, np.zeros(1, np.int64), nothing.astype(np.int8), nothing, np.ones(1))]
    for cards in range(1, rules.largest_hand + 1):
        counts = (Counter(hand) for hand in itertools.combinations_with_replacement(deck, cards))
        dealt = {_packed(hand): hand for hand in counts if max(hand.values()) <= rules.copies}
        hands = [dealt[packed] for packed in sorted(dealt)]
        packed = np.array(sorted(dealt), np.int64)
        ranks = np.array([sorted(hand) + [-1] * (cards - len(hand)) for hand in hands])
        without = packed[:, None] - (np.int64(1) << 4 * np.maximum(ranks, 0))
        after = np.where(ranks < 0, 0, np.searchsorted(found[-1].packed, without))
        weights = np.array([1 / math.prod(map(math.factorial, hand.values())) for hand in hands])
        found.append(Hands(cards, packed, ranks.astype(np.int8), after.astype(np.int32), weights))
    return found


def _packed(counts: Mapping[int, int]) -> int:
    return sum(count << 4 * rank for rank, count in counts.items())
