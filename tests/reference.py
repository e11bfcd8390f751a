"""The naive game: Cucumber and Concombre in plain Python, written from RULES.md alone.

An independent witness for the compiled kernel. Nothing here is fast and nothing comes from
`cucumber_env`: lists, dicts and sets, one short function for each sentence of the rules, so that the
page and the code can be compared by eye. Labels such as A10 name the readings of RULES.md.

Cards are rank ids, 0 for 2 up to 12 for A; suits never matter. Seats count clockwise from 0. A play
is a pair (seat, rank id). Amounts are in points.

Actions are ids: 0-12 play 2...A, 13-19 deal 1-7 cards, 20 decline, 21 chip, 22 skip.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

RANKS = "23456789TJQKA"
ACE = RANKS.index("A")

DEAL = 12  # dealing n cards is action DEAL + n
DECLINE, CHIP, SKIP = 20, 21, 22

Play = tuple[int, int]
Deal = Callable[[int, list[int], int], dict[int, list[int]]]


@dataclass(frozen=True)
class ReferenceRules:
    """The fields of RULES.md; ranges are (lowest, highest), both included."""

    players: tuple[int, int]
    hand_size: int | tuple[int, int]  # a range is the dealer's choice
    follow: str
    ace_lead: str
    order: str
    points: str
    payer: str
    penalty: str
    tie: str
    threshold: int | None
    threshold_rule: str
    end: str
    first_leader: str
    revival: str
    rounds: int | None
    ranks: str
    copies: int


_CUCUMBER = ReferenceRules(
    players=(2, 7),
    hand_size=7,
    follow="must",
    ace_lead="all_lowest",
    order="natural",
    points="face_14",
    payer="taker",
    penalty="highest",
    tie="last",
    threshold=30,
    threshold_rule="reach",
    end="last_survivor",
    first_leader="left_of_dealer",
    revival="none",
    rounds=None,
    ranks=RANKS,
    copies=4,
)

PRESETS = {
    "cucumber": _CUCUMBER,
    "agurk": replace(_CUCUMBER, threshold=21),
    "gurka": _CUCUMBER,
    "gurka_no_ace": replace(_CUCUMBER, ace_lead="none"),
    "three_card": replace(_CUCUMBER, hand_size=3),
    "inverted": replace(_CUCUMBER, payer="lowest"),
    "express": replace(_CUCUMBER, threshold=None, end="fixed_rounds", rounds=10),
    "revival": replace(_CUCUMBER, revival="choice"),
    "literal": replace(_CUCUMBER, payer="non_winners"),
    "concombre": replace(
        _CUCUMBER,
        players=(2, 8),
        hand_size=(1, 5),
        follow="may",
        ace_lead="none",
        order="value",
        points="face_10",
        penalty="own",
        threshold=51,
        end="first_out_loses",
        first_leader="dealer",
    ),
    "wikipedia": replace(_CUCUMBER, tie="all"),
    "bga": replace(_CUCUMBER, follow="may", threshold_rule="exceed"),
}


def points(rules: Any, rank: int) -> int:
    """Value of a card: 2-10 as printed, then J Q K A as `face_14` or `face_10` say."""
    printed = rank + 2
    if rules.points == "face_14":
        return printed
    if rank == ACE:
        return 11
    return min(printed, 10)


def strength(rules: Any, rank: int) -> int:
    """What a card is compared by: under `value` the lowest rank id worth the same points (A17)."""
    if rules.order == "natural":
        return rank
    return min(other for other in range(len(RANKS)) if points(rules, other) == points(rules, rank))


def is_ace_led(rules: Any, plays: list[Play]) -> bool:
    """Whether the trick was led with an Ace and the Ace exception is in force."""
    return rules.ace_lead == "all_lowest" and bool(plays) and plays[0][1] == ACE


def lowest_cards(rules: Any, hand: Iterable[int]) -> set[int]:
    """The lowest rank of a hand; under `value` every rank tied for it."""
    bottom = min(strength(rules, rank) for rank in hand)
    return {rank for rank in hand if strength(rules, rank) == bottom}


def take_trick(rules: Any, plays: list[Play]) -> int:
    """The seat whose card takes: the highest, the last played of equals (A06), or a led Ace (A05)."""
    if is_ace_led(rules, plays):
        return plays[0][0]
    top = max(strength(rules, rank) for _, rank in plays)
    return [seat for seat, rank in plays if strength(rules, rank) == top][-1]


def legal_cards(rules: Any, hand: list[int], plays: list[Play]) -> list[int]:
    """The distinct ranks of a hand that may be played on the trick so far, ascending."""
    if not plays:
        return sorted(set(hand))
    if is_ace_led(rules, plays):
        return sorted(lowest_cards(rules, hand))
    # The reference is the highest card of the trick, not the previous one (A22).
    reference = max(strength(rules, rank) for _, rank in plays)
    reaching = {rank for rank in hand if strength(rules, rank) >= reference}
    if rules.follow == "may":
        return sorted(reaching | lowest_cards(rules, hand))
    return sorted(reaching or lowest_cards(rules, hand))


def _pick_tied(rules: Any, tied: list[int]) -> list[int]:
    """Those of the tied seats, in playing order, on whom the penalty falls (A31)."""
    return {"last": tied[-1:], "first": tied[:1], "all": tied}[rules.tie]


def payers(rules: Any, plays: list[Play]) -> list[int]:
    """The seats that pay for a complete last trick, in playing order."""
    if rules.payer == "non_winners":
        return [seat for seat, _ in plays if seat != take_trick(rules, plays)]
    strengths = [strength(rules, rank) for _, rank in plays]
    deciding = min(strengths) if rules.payer == "lowest" else max(strengths)
    tied = [seat for (seat, _), value in zip(plays, strengths, strict=True) if value == deciding]
    # A05: the taker of a led Ace is its leader, though later Aces equal his; `all` still means every Ace.
    if rules.payer == "taker" and rules.tie != "all" and is_ace_led(rules, plays):
        return [plays[0][0]]
    return _pick_tied(rules, tied)


def penalties(rules: Any, plays: list[Play]) -> dict[int, int]:
    """Payer -> points for a complete last trick; seats that pay nothing are left out."""
    card_of = dict(plays)
    highest = max(points(rules, rank) for _, rank in plays)
    if rules.penalty == "own":
        return {seat: points(rules, card_of[seat]) for seat in payers(rules, plays)}
    return dict.fromkeys(payers(rules, plays), highest)


def is_over_threshold(rules: Any, total: int) -> bool:
    """Whether a total is one that puts its seat out (A09); never under `fixed_rounds`."""
    if rules.threshold is None:
        return False
    return total >= rules.threshold if rules.threshold_rule == "reach" else total > rules.threshold


def next_seat(seats: Iterable[int], after: int) -> int:
    """The next of these seats clockwise; `after` itself need not be one of them (A14)."""
    seats = sorted(seats)
    return next((seat for seat in seats if seat > after), seats[0])


def round_leader(rules: Any, seats: Iterable[int], dealer: int) -> int:
    """Who leads the first trick of a round."""
    return dealer if rules.first_leader == "dealer" else next_seat(seats, dealer)


def hand_sizes(rules: Any) -> range:
    """The hand sizes the dealer may choose from, or the one that is fixed (A20)."""
    low, high = rules.hand_size if isinstance(rules.hand_size, tuple) else (rules.hand_size, rules.hand_size)
    return range(low, high + 1)


def undealt_cards(rules: Any, num_players: int, hand_size: int) -> int:
    """How many cards stay undealt. Raises ValueError where this deal is against the rules."""
    low, high = rules.players
    undealt = len(rules.ranks) * rules.copies - num_players * hand_size
    if not low <= num_players <= high or hand_size not in hand_sizes(rules) or undealt < 0:
        raise ValueError(f"{num_players} players may not be dealt {hand_size} cards each")
    return undealt


def rank_seats(keys: list[Any]) -> list[int]:
    """The place of every seat, 1 for the smallest key; equal keys share the better place."""
    return [1 + sum(other < key for other in keys) for key in keys]


class ReferenceGame:
    """One match, from the first deal to the final ranking.

    `deal(round_index, seats, hand_size)` supplies the hands of a round: seat -> rank ids. Rounds are
    counted from 0, those of a sudden death included. With `episode="round"` the game is over when its
    first round has been settled: nobody is out and the ranking goes by points.

    What stays in sight: the tricks of a settled round (and its leader, the taker of the last trick)
    during the offers that follow it and when the game is over; a new round clears them, before the
    dealer chooses the hand size. During a sudden death under `last_survivor` nobody is `alive`: those
    who play it have crossed the threshold, they are the `tied`.
    """

    def __init__(self, rules: Any, num_players: int, first_dealer: int, deal: Deal, episode: str = "match"):
        self.rules = rules
        self.num_players = num_players
        self.episode = episode
        self._deal = deal

        self.totals = [0] * num_players
        self.alive = set(range(num_players))
        self.away: set[int] = set()  # skip the round now being played
        self.skipping: set[int] = set()  # have chosen to skip the next round
        self.used: set[int] = set()  # have come back before
        self.tied: set[int] = set()
        self.last_penalties: dict[int, int] = {}
        self.placement: list[int] = []
        self.losers: list[int] = []
        self._out_round: dict[int, int] = {}
        self._undecided: list[int] = []  # out in this round and still to be asked (A26)

        self.round = -1
        self._begin_round(self.alive, first_dealer)

    @property
    def trick(self) -> int:
        """Index of the current trick; the number of tricks once the round is settled."""
        return len(self.tricks)

    @property
    def taker(self) -> int | None:
        """The seat that holds the current trick so far."""
        return take_trick(self.rules, self.plays) if self.plays else None

    @property
    def reference(self) -> int | None:
        """The rank that decides the current trick so far: the card of `taker`."""
        taker = self.taker
        return None if taker is None else dict(self.plays)[taker]

    def legal(self) -> list[int]:
        """The action ids open to the seat whose turn it is, ascending; none when the game is over."""
        if self.turn is None:
            return []
        if self.phase == "choose":
            return [DEAL + size for size in hand_sizes(self.rules)]
        if self.phase == "play":
            return legal_cards(self.rules, self.hands[self.turn], self.plays)
        return [DECLINE, *self._ways_back(self.turn)]  # declining is always possible

    def play(self, action: int) -> list[int] | None:
        """Carry out an action of the seat whose turn it is.

        Returns the penalty of every seat, in points, when this ended a round (sudden death included),
        else None. Raises ValueError when the action is not legal.
        """
        if self.turn is None or action not in self.legal():
            raise ValueError(f"action {action} is not legal for seat {self.turn} in phase {self.phase}")
        if self.phase == "play":
            return self._play_card(self.turn, action)
        if self.phase == "choose":
            self._hand_out(action - DEAL)
        else:
            self._answer_offer(action)
        return None

    def _begin_round(self, seats: Iterable[int], dealer: int) -> None:
        self.round += 1
        self.seats = sorted(seats)
        self.dealer = dealer
        self.leader = round_leader(self.rules, self.seats, dealer)
        self.hand_size: int | None = None
        self.hands: dict[int, list[int]] = {seat: [] for seat in range(self.num_players)}
        self.bounds = dict.fromkeys(range(self.num_players), (0, ACE))
        self.plays: list[Play] = []
        self.tricks: list[dict[str, Any]] = []
        self.phase = "choose"
        self.turn: int | None = dealer
        if not isinstance(self.rules.hand_size, tuple):
            self._hand_out(self.rules.hand_size)

    def _hand_out(self, hand_size: int) -> None:
        hands = self._deal(self.round, list(self.seats), hand_size)
        self._check_deal(hands, hand_size)
        self.hand_size = hand_size
        for seat in self.seats:
            self.hands[seat] = sorted(int(rank) for rank in hands[seat])
        self.phase = "play"
        self.turn = self.leader

    def _check_deal(self, hands: dict[int, list[int]], hand_size: int) -> None:
        if sorted(hands) != self.seats or any(len(hand) != hand_size for hand in hands.values()):
            raise ValueError(f"the deal must give {hand_size} cards to each of the seats {self.seats}")
        dealt = Counter(rank for hand in hands.values() for rank in hand)
        deck = {RANKS.index(letter) for letter in self.rules.ranks}
        if not dealt.keys() <= deck or max(dealt.values()) > self.rules.copies:
            raise ValueError("the deal holds cards that the deck does not")

    def _play_card(self, seat: int, rank: int) -> list[int] | None:
        self._narrow_bounds(seat, rank)
        self.hands[seat].remove(rank)
        self.plays.append((seat, rank))
        if len(self.plays) == len(self.seats):
            return self._end_trick()
        self.turn = next_seat(self.seats, seat)
        return None

    def _narrow_bounds(self, seat: int, rank: int) -> None:
        """What a play proves to everybody about the cards its seat still holds, by strength (A30)."""
        if self.reference is None:
            return  # any card may be led
        low, high = self.bounds[seat]
        played = strength(self.rules, rank)
        reference = strength(self.rules, self.reference)
        ace_led = is_ace_led(self.rules, self.plays)
        if ace_led or played < reference:
            low = max(low, played)  # only the lowest may be thrown below the reference
        if played < reference and self.rules.follow == "must" and not ace_led:
            high = min(high, reference - 1)  # who could reach it had to
        self.bounds[seat] = (low, high)

    def _end_trick(self) -> list[int] | None:
        taker = take_trick(self.rules, self.plays)
        self.tricks.append({"leader": self.leader, "plays": self.plays, "taker": taker})
        self.plays = []
        self.leader = self.turn = taker
        if any(self.hands.values()):
            return None
        owed = penalties(self.rules, self.tricks[-1]["plays"])
        self.settle(owed)
        return [owed.get(seat, 0) for seat in range(self.num_players)]

    def settle(self, owed: dict[int, int]) -> None:
        """Charge the penalties of the round just played, payer -> points, and see how the match stands."""
        self.last_penalties = dict(owed)
        if self.tied:
            self._settle_sudden_death(owed)
            return
        for seat, amount in owed.items():
            self.totals[seat] += amount
        if self.episode == "round":
            self._finish(self.totals)
        elif self.rules.end == "fixed_rounds":
            self._settle_fixed_rounds()
        elif self.rules.end == "first_out_loses":
            self._settle_first_out_loses()
        else:
            self._settle_last_survivor()

    def _crossed(self) -> list[int]:
        # Seats away did not play: their old total, fixed only on return, puts nobody out again (A26).
        return [seat for seat in self.seats if is_over_threshold(self.rules, self.totals[seat])]

    def _settle_last_survivor(self) -> None:
        crossed = self._crossed()
        self.alive -= set(crossed)
        for seat in crossed:
            self._out_round[seat] = self.round  # a seat that came back counts by its last time out
        if len(self.alive) == 1:
            self._win(*self.alive)
        elif not self.alive:
            self._break_tie(crossed)  # A10: among those out in this round, never those out before
        else:
            self._undecided = crossed
            self._next_offer()

    def _settle_fixed_rounds(self) -> None:
        if self.round + 1 < self.rules.rounds:
            self._next_round()
        else:
            self._break_tie(range(self.num_players))  # A12

    def _settle_first_out_loses(self) -> None:
        self.losers = self._crossed()
        if not self.losers:
            self._next_round()
            return
        self.alive -= set(self.losers)
        keys: list[Any] = [(0, total) for total in self.totals]
        for seat in self.losers:
            keys[seat] = (1, 0)  # last, all on one place: several at once all lose
        self._finish(keys)

    def _break_tie(self, contenders: Iterable[int]) -> None:
        """The lowest total wins; equal lowest totals play sudden death among themselves."""
        contenders = list(contenders)
        lowest = min(self.totals[seat] for seat in contenders)
        tied = {seat for seat in contenders if self.totals[seat] == lowest}
        if len(tied) == 1:
            self._win(*tied)
        else:
            self.tied = tied
            self._begin_round(self.tied, next_seat(self.tied, self.dealer))

    def _settle_sudden_death(self, owed: dict[int, int]) -> None:
        """A11: who pays drops out, if all pay another round decides; the totals stay as they are."""
        self.tied = (self.tied - owed.keys()) or self.tied
        if len(self.tied) == 1:
            self._win(*self.tied)
        else:
            self._begin_round(self.tied, next_seat(self.tied, self.dealer))

    def _next_round(self) -> None:
        """Those back from a skip get their total, those who chose one sit out, and the deal moves on."""
        returning, self.away, self.skipping = self.away, self.skipping, set()
        for seat in sorted(returning):
            self.totals[seat] = self._return_total(seat)
        seats = self.alive - self.away
        self._begin_round(seats, next_seat(seats, self.dealer))

    def _next_offer(self) -> None:
        """A26: ask the next seat that may come back; when there is none, the next round begins."""
        while self._undecided and not self._ways_back(self._undecided[0]):
            self._undecided.pop(0)
        if self._undecided:
            self.phase = "revive"
            self.turn = self._undecided[0]
        else:
            self._next_round()

    def _ways_back(self, seat: int) -> list[int]:
        """Chip and skip, as far as this seat may choose them now. Undecided seats do not count as in."""
        if seat in self.used or len(self.alive - {seat}) < 2:
            return []
        ways = []
        if self.rules.revival in ("chip", "choice"):
            ways.append(CHIP)
        will_play = self.alive - self.skipping - {seat}  # seats away in this round are due back in the next
        if self.rules.revival in ("skip", "choice") and len(will_play) >= 2:
            ways.append(SKIP)
        return ways

    def _answer_offer(self, action: int) -> None:
        seat = self._undecided.pop(0)
        if action == CHIP:
            self.totals[seat] = self._return_total(seat)
        if action == SKIP:
            self.skipping.add(seat)
        if action != DECLINE:
            self.used.add(seat)
            self.alive.add(seat)
        self._next_offer()

    def _return_total(self, seat: int) -> int:
        """The highest total among the others in; those due back have none of their own yet."""
        own = [self.totals[other] for other in self.alive - {seat}]
        own = [total for total in own if not is_over_threshold(self.rules, total)]
        if own:
            return max(own)
        # Nobody in has a total of his own: the highest that is still in.
        return self.rules.threshold - (self.rules.threshold_rule == "reach")

    def _win(self, winner: int) -> None:
        """The winner first; then who was out later (nobody in `fixed_rounds`), then the lower total."""

        def key(seat: int) -> tuple[int, int, int]:
            if seat == winner:
                return (0, 0, 0)
            return (1, -self._out_round.get(seat, 0), self.totals[seat])

        self._finish([key(seat) for seat in range(self.num_players)])

    def _finish(self, keys: list[Any]) -> None:
        self.placement = rank_seats(keys)
        self.tied = set()
        self.phase = "over"
        self.turn = None
