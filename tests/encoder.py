"""The observation written a second time, from the meanings that the layout gives and a naive game.

Lists of 0 and 1, one function for each kind of section; nothing comes from `cucumber_env.observation`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from reference import ReferenceGame, is_over_threshold, points, strength

from cucumber_env.rules import CHOICES, RANKS, Rules

DISTANCES = (2, 4, 6, 8, 10, 12, 14, 20)

Bits = list[int]


def one_hot(index: int | None, size: int) -> Bits:
    return [int(number == index) for number in range(size)]


def thermometer(count: int, size: int) -> Bits:
    """At least 1, at least 2, …"""
    return [int(count > number) for number in range(size)]


def counts(ranks: Iterable[int]) -> Bits:
    """How many cards there are of each rank, as 13 thermometers of four."""
    held = Counter(ranks)
    return [bit for rank in range(13) for bit in thermometer(held[rank], 4)]


def binary(number: int, size: int) -> Bits:
    """Lowest bit first; what does not fit is the largest that does."""
    number = min(number, 2**size - 1)
    return [number // 2**bit % 2 for bit in range(size)]


class NaiveEncoder:
    """What `seat` observes of a naive game.

    Args:
        game: The game, at any moment of it.
        rules: Its rules.
        seat: Observing seat.
        tied: Seats that play or have just played a sudden death.
        seats: Seats described: as many as play, or 8 for the layout that is the same for every table.
    """

    def __init__(
        self, game: ReferenceGame, rules: Rules, seat: int, tied: set[int], seats: int, total_bits: int
    ) -> None:
        self.game, self.rules, self.seat, self.tied = game, rules, seat, tied
        self.n, self.total_bits = seats, total_bits
        self.settled = game.phase in ("revive", "over")
        self.table = game.tricks[-1]["plays"] if self.settled else game.plays
        self.clockwise = [(seat + step) % game.num_players for step in range(game.num_players)]

    def of_seats(self, seats: Iterable[int | None]) -> Bits:
        """A set of seats, clockwise from the observer."""
        return self.padded([int(other in set(seats)) for other in self.clockwise], 1)

    def padded(self, bits: Bits, width: int, fewer: int = 0) -> Bits:
        """With zeros for the seats that are described but not at the table."""
        return bits + [0] * (width * (self.n - fewer) - len(bits))

    def sections(self) -> dict[str, Bits]:
        """All sections that there can be, by name, in order."""
        return {**self.cards(), **self.round(), **self.match(), **self.about_the_table(), **self.history()}

    def cards(self) -> dict[str, Bits]:
        rules, hand = self.rules, self.game.hands[self.seat]
        deck = Counter({RANKS.index(letter): rules.copies for letter in rules.ranks})
        deck.subtract(hand)
        deck.subtract(rank for _, rank in self.plays())
        return {"hand": counts(hand), "unseen": counts(deck.elements())}

    def plays(self) -> list[tuple[int, int]]:
        """All cards of the round, seat and rank, in order."""
        return [play for trick in self.game.tricks for play in trick["plays"]] + self.game.plays

    def round(self) -> dict[str, Bits]:
        game = self.game
        taker = game.tricks[-1]["taker"] if self.settled else game.taker
        leader = game.tricks[-1]["leader"] if self.settled else game.leader
        card = dict(self.table)
        begun = game.hand_size is not None
        deciding = game.turn == self.seat and game.phase == "play"
        number = len(game.tricks) - self.settled
        return {
            "trick": self.padded([bit for other in self.clockwise for bit in one_hot(card.get(other), 13)], 13),
            "reference": one_hot(None if taker is None else card[taker], 13),
            "taker": self.of_seats([taker]),
            "legal": [int(deciding and rank in game.legal()) for rank in range(13)],
            "trick_number": one_hot(number if begun else None, 7),
            "cards_left": thermometer((game.hand_size or 0) - len(game.tricks), 7),
            "leader": self.of_seats([leader]),
            "to_act": self.of_seats(set(game.seats) - set(card) if begun else []),
            "bounds": self.padded([bit for other in self.clockwise[1:] for bit in self.bounds(other)], 24, fewer=1),
            "seats": self.of_seats(game.seats),
            "dealer": self.of_seats([game.dealer]),
        }

    def bounds(self, other: int) -> Bits:
        low, high = self.game.bounds[other]
        return [int(low > strength) for strength in range(12)] + [int(high > strength) for strength in range(12)]

    def match(self) -> dict[str, Bits]:
        game, rules = self.game, self.rules
        totals = game.totals if game.episode == "match" else [0] * game.num_players
        to_settle = rules.rounds - game.round if rules.rounds and game.phase != "over" else 0
        return {
            "alive": self.of_seats(game.alive),
            "totals": self.padded(
                [bit for other in self.clockwise for bit in binary(totals[other], self.total_bits)], self.total_bits
            ),
            "distance": self.padded(
                [int(self.goes_out(totals[other] + more)) for other in self.clockwise for more in DISTANCES], 8
            ),
            "tied": self.of_seats(self.tied),
            "rounds_left": thermometer(to_settle, 7),
            "away": self.of_seats(game.away),
            "revived": self.of_seats(game.used),
        }

    def goes_out(self, total: int) -> bool:
        return is_over_threshold(self.rules, total)

    def about_the_table(self) -> dict[str, Bits]:
        game, rules = self.game, self.rules
        words = [(field, word) for field, all_words in CHOICES.items() for word in all_words[1:]]
        return {
            "phase": [int(game.phase == phase) for phase in ("choose", "play", "revive")],
            "hand_size": one_hot((game.hand_size or 0) - 1, 7),
            "players": one_hot(game.num_players - 2, 7),
            "episode": [int(game.episode == "match")],
            "deck": counts(RANKS.index(letter) for letter in rules.ranks * rules.copies),
            "rules": [int(getattr(rules, field) == word) for field, word in words],
        }

    def history(self) -> dict[str, Bits]:
        tricks = [dict(trick["plays"]) for trick in self.game.tricks] + (
            [] if self.settled else [dict(self.game.plays)]
        )
        tricks += [{}] * (7 - len(tricks))
        deal = self.game.hands[self.seat] + [rank for seat, rank in self.plays() if seat == self.seat]
        return {
            "deal": counts(deal),
            "leaders": [bit for trick in tricks for bit in self.of_seats(list(trick)[:1])],
            "plays": [
                bit
                for trick in tricks
                for bit in self.padded([b for other in self.clockwise for b in one_hot(trick.get(other), 13)], 13)
            ],
        }


def names(rules: Rules, episode: str, *, universal: bool, history: bool) -> list[str]:
    """Names of the sections that a layout has, in order."""
    always = "hand unseen trick reference taker legal trick_number cards_left leader to_act bounds seats dealer"
    wanted = always.split()
    if episode == "match" or universal:
        wanted += ["alive", "totals", "distance", "tied", "rounds_left"]
    if rules.revival != "none" or universal:
        wanted += ["away", "revived"]
    if rules.revival != "none" or rules.dealer_chooses or universal:
        wanted.append("phase")
    if rules.dealer_chooses or universal:
        wanted.append("hand_size")
    if universal:
        wanted += ["players", "episode", "deck", "rules"]
    if history:
        wanted += ["deal", "leaders", "plays"]
    return wanted


def highest_total(rules: Rules) -> int:
    """The highest total that a seat can reach."""
    worst = max(points(rules, rank) for rank in range(13))
    return rules.rounds * worst if rules.rounds else (rules.threshold or 0) + worst


def strengths(rules: Any) -> list[int]:
    """Strength of every rank."""
    return [strength(rules, rank) for rank in range(13)]
