"""The kernel as plain Python sees it: one table, with sets, lists and text instead of packed integers.

Nothing here knows a rule: every answer comes from `cucumber_env.kernel`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from cucumber_env import kernel, state
from cucumber_env.batch import new_games, seed_word
from cucumber_env.rules import RANKS, Rules
from cucumber_env.state import PUBLIC, VIEW, as_records, compile_rules


def ranks_of(text: str) -> list[int]:
    """Rank ids of letters such as ``"456Q"``."""
    return [RANKS.index(letter) for letter in text]


def text_of(ranks: Iterable[int]) -> str:
    """Letters of rank ids, lowest first."""
    return "".join(RANKS[rank] for rank in sorted(ranks))


def packed(ranks: Iterable[int]) -> int:
    """A hand as the kernel holds it: counts of four bits a rank."""
    return sum(1 << 4 * rank for rank in ranks)


def unpacked(hand: int) -> list[int]:
    """Rank ids of a hand of the kernel, ascending."""
    return [rank for rank in range(len(RANKS)) for _ in range(int(hand) >> 4 * rank & 15)]


def members(bits: int) -> list[int]:
    """Members of a bit set, ascending."""
    bits = int(bits)
    return [number for number in range(bits.bit_length()) if bits >> number & 1]


def bit_set(numbers: Iterable[int]) -> int:
    """The bit set of some numbers."""
    return sum(1 << number for number in numbers)


def as_dict(public: Any) -> dict[str, Any]:
    """A `PUBLIC` record as a dict of ints and nested lists."""
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in zip(PUBLIC.names or (), public.tolist(), strict=True)
    }


class Table:
    """One game of the kernel, blank until `begin` or `start`."""

    def __init__(self, rules: Rules, num_players: int) -> None:
        self.rules = rules
        self.num_players = num_players
        self.games = new_games(1)
        self.table = compile_rules(rules)
        self.record = self.games[0]
        self.public = self.record["public"]
        self._compiled = self.table[0]

    def begin(self, *, match: bool = True, seed: int = 0, game: int = 0, episode: int = 0) -> Table:
        """Begin an episode: the kernel draws the dealer and deals, as in an environment."""
        kernel.begin(self._compiled, self.record, seed_word(seed), game, episode, self.num_players, int(match))
        return self

    def start(self, *, dealer: int, match: bool = True, seats: Iterable[int] | None = None) -> None:
        """Begin with this dealer and only `seats` in; nothing is dealt."""
        kernel.start(self._compiled, self.public, self.num_players, int(match), dealer)
        if seats is not None:
            self.public["alive"] = self.public["seats"] = bit_set(seats)
            kernel.begin_round(self._compiled, self.public)
        self.record["hands"][:] = 0

    def hand_out(self, hands: dict[int, list[int]], *, hand_size: int) -> None:
        """Put these cards into the hands, instead of a random deal, and open a round of `hand_size` tricks."""
        self.public["hand_size"] = hand_size
        for seat, hand in hands.items():
            self.record["hands"][seat] = packed(hand)
        kernel.open_round(self.public)

    def legal(self) -> list[int]:
        """Action ids open to the seat to move, ascending."""
        return members(kernel.legal_now(self._compiled, self.record))

    def play(self, action: int) -> int:
        """Play an action, dealing the next round if one begins; what `kernel.advance` returns."""
        return int(kernel.play(self._compiled, self.record, action))

    def advance(self, action: int) -> int:
        """Apply an action to the public record alone: no cards leave a hand, nothing is dealt."""
        return int(kernel.advance(self._compiled, self.public, action))

    def settle(self, penalties: dict[int, int]) -> None:
        """Settle a round of the match that cost these penalties, seat -> points."""
        self.public["penalties"] = 0
        for seat, amount in penalties.items():
            self.public["penalties"][seat] = amount
        kernel.settle(self._compiled, self.public)

    @property
    def phase(self) -> str:
        """Name of the phase."""
        return state.PHASES[self.public["phase"]]

    @property
    def turn(self) -> int:
        """Seat to move, or -1."""
        return int(self.public["turn"])

    def seats(self, field: str) -> list[int]:
        """A field of `PUBLIC` that is a set of seats, as an ascending list."""
        return members(self.public[field])

    def hand(self, seat: int) -> list[int]:
        """Cards of a seat, ascending rank ids."""
        return unpacked(self.record["hands"][seat])

    def view(self, seat: int) -> Any:
        """A `VIEW` array of one record: what `seat` may know."""
        view = as_records(np.zeros(1, VIEW))
        view["public"][0] = self.public
        view["seat"] = seat
        view["hand"] = self.record["hands"][seat]
        return view


def dealt(rules: Rules, hands: list[str], *, dealer: int, match: bool = True) -> Table:
    """A first round with these hands, seat by seat."""
    table = Table(rules, len(hands))
    table.start(dealer=dealer, match=match)
    table.hand_out({seat: ranks_of(hand) for seat, hand in enumerate(hands)}, hand_size=len(hands[0]))
    return table


def all_deals(rules: Rules, num_players: int) -> Iterator[tuple[str, ...]]:
    """All different deals, a hand of sorted letters for each seat."""

    def give(pile: str, count: int) -> Iterator[tuple[str, ...]]:
        if count == 0:
            yield ()
            return
        for hand in sorted(hands_of(pile, rules.largest_hand)):
            left = pile
            for letter in hand:
                left = left.replace(letter, "", 1)
            for others in give(left, count - 1):
                yield (hand, *others)

    yield from give(rules.ranks * rules.copies, num_players)


def hands_of(pile: str, size: int) -> set[str]:
    """All different hands of a pile."""
    if size == 0:
        return {""}
    return {
        "".join(sorted(letter + rest, key=RANKS.index))
        for letter in set(pile)
        for rest in hands_of(pile.replace(letter, "", 1), size - 1)
    }
