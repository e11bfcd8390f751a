"""Exact play of tiny rounds by brute force: every deal and every history, with the rules of the naive game.

The independent witness of `cucumber_env.exact`: dicts and recursion, nothing compiled, nothing from `cucumber_env`.
Cards are told apart while dealing, so every deal is equally likely. Seat 0 leads the first trick. An information state
is ``(seat, hand, plays)``: the ranks still held, and the ranks played by all seats in order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from typing import Any

import reference

State = tuple[int, tuple[int, ...], tuple[int, ...]]
Strategy = Callable[[State, list[int]], dict[int, float]]
"""Probabilities of the legal ranks at an information state."""


@dataclass(frozen=True)
class History:
    """One deal and the plays so far; `turn` is None once the last trick is complete."""

    hands: tuple[tuple[int, ...], ...]
    plays: tuple[int, ...]
    trick: tuple[tuple[int, int], ...]
    turn: int | None

    def state(self) -> State:
        """The information state of the seat to move."""
        assert self.turn is not None
        return self.turn, self.hands[self.turn], self.plays


class BruteForce:
    """All of a round for `players` under `rules` (a `Rules` or anything with its fields)."""

    def __init__(self, rules: Any, players: int = 2) -> None:
        self.rules, self.players = rules, players
        self.last = players * (rules.hand_size - 1)
        self.deals: Counter[tuple[tuple[int, ...], ...]] = Counter()
        deck = [(reference.RANKS.index(letter), copy) for letter in rules.ranks for copy in range(rules.copies)]
        self._deal((), deck)

    def _deal(self, hands: tuple[tuple[int, ...], ...], deck: list[tuple[int, int]]) -> None:
        """Count all deals of `deck` to the seats that have no hand yet."""
        if len(hands) == self.players:
            self.deals[hands] += 1
            return
        for hand in combinations(deck, self.rules.hand_size):
            self._deal((*hands, _ranks(hand)), [card for card in deck if card not in hand])

    def starts(self) -> list[tuple[History, float]]:
        """Every deal with its probability."""
        total = sum(self.deals.values())
        return [(History(hands, (), (), 0), count / total) for hands, count in self.deals.items()]

    def legal(self, history: History) -> list[int]:
        """Ranks that the seat to move may play."""
        return reference.legal_cards(self.rules, list(history.hands[history.turn]), list(history.trick))

    def play(self, history: History, rank: int) -> History:
        """The history after a card."""
        seat = history.turn
        hands = list(history.hands)
        held = list(hands[seat])
        held.remove(rank)
        hands[seat] = tuple(held)
        trick = (*history.trick, (seat, rank))
        turn: int | None = (seat + 1) % self.players
        if len(trick) == self.players:
            over = not any(hands)
            turn = None if over else reference.take_trick(self.rules, list(trick))
            trick = trick if over else ()
        return History(tuple(hands), (*history.plays, rank), trick, turn)

    def utility(self, history: History, seat: int) -> float:
        """What `seat` gains at the end: the mean penalty of the others minus its own."""
        owed = reference.penalties(self.rules, list(history.trick))
        others = [owed.get(other, 0) for other in range(self.players) if other != seat]
        return sum(others) / len(others) - owed.get(seat, 0)

    @cached_property
    def states(self) -> dict[State, list[int]]:
        """Every information state that play can reach before the last trick, and its legal ranks."""
        found: dict[State, list[int]] = {}

        def visit(history: History) -> None:
            if history.turn is None or len(history.plays) >= self.last:
                return
            found[history.state()] = self.legal(history)
            for rank in self.legal(history):
                visit(self.play(history, rank))

        for start, _ in self.starts():
            visit(start)
        return found

    def reached(self, strategy: Strategy) -> set[State]:
        """The information states before the last trick that seats reach when they play `strategy`.

        What the opponents do is left open: only the seat's own plays and the cards count.
        """
        found: set[State] = set()

        def visit(history: History, shares: list[float]) -> None:
            if history.turn is None or len(history.plays) >= self.last:
                return
            if shares[history.turn] > 0:
                found.add(history.state())
            for rank in self.legal(history):
                own = list(shares)
                own[history.turn] *= strategy(history.state(), self.legal(history)).get(rank, 0.0)
                visit(self.play(history, rank), own)

        for start, _ in self.starts():
            visit(start, [1.0] * self.players)
        return found

    def value(self, strategies: list[Strategy], seat: int = 0) -> float:
        """What `seat` gains when each seat plays its strategy."""

        def expected(history: History) -> float:
            if history.turn is None:
                return self.utility(history, seat)
            answer = strategies[history.turn](history.state(), self.legal(history))
            return sum(share * expected(self.play(history, rank)) for rank, share in answer.items() if share > 0)

        return sum(chance * expected(start) for start, chance in self.starts())

    def best_response(self, seat: int, strategy: Strategy) -> float:
        """What `seat` gains when it plays best against `strategy` in all other seats.

        All histories that the seat cannot tell apart are gathered, weighted by what the deal and the others do, and
        get one card: the one that is best on their average.
        """
        reaching: dict[State, list[tuple[History, float]]] = defaultdict(list)

        def gather(history: History, weight: float) -> None:
            if history.turn is None or weight == 0:
                return
            if history.turn == seat:
                reaching[history.state()].append((history, weight))
            for rank, share in self._shares(history, seat, strategy).items():
                gather(self.play(history, rank), weight * share)

        @cache
        def choice(state: State) -> int:
            histories = reaching[state]
            gains = {
                rank: sum(weight * value(self.play(history, rank)) for history, weight in histories)
                for rank in self.legal(histories[0][0])
            }
            return max(gains, key=gains.__getitem__)

        def value(history: History) -> float:
            if history.turn is None:
                return self.utility(history, seat)
            if history.turn == seat:
                return value(self.play(history, choice(history.state())))
            shares = self._shares(history, seat, strategy)
            return sum(share * value(self.play(history, rank)) for rank, share in shares.items() if share > 0)

        for start, chance in self.starts():
            gather(start, chance)
        return sum(chance * value(start) for start, chance in self.starts())

    def _shares(self, history: History, seat: int, strategy: Strategy) -> dict[int, float]:
        """How the weight of a history is handed on: in full to all plays of `seat`, else as `strategy` plays."""
        legal = self.legal(history)
        return dict.fromkeys(legal, 1.0) if history.turn == seat else strategy(history.state(), legal)


def _ranks(cards: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    return tuple(sorted(rank for rank, _ in cards))
