"""What a seat observes: the layout as data, the encoder, named views and a plain-text explanation.

An observation is a row of binary int8, made of the sections that `Layout` lists in order. Seats are
relative: index 0 is the observing seat, then clockwise over all seats, those that are out included.
Counts are thermometers (≥1, ≥2, ≥3, =4). The row is filled up with zeros to whole 8-byte words,
because the encoder gathers all sections as bits and then spreads eight bits to eight bytes at a time.

>>> from cucumber_env.rules import Rules
>>> layout = Layout.of(Rules.preset("cucumber"), num_players=4, episode="round")
>>> layout.size, layout.section("hand").shape
(288, (13, 4))
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cucumber_env.compiled import njit
from cucumber_env.kernel import legal
from cucumber_env.rules import CHOICES, MAX_CARDS, MAX_COPIES, MAX_SEATS, POINTS, RANKS, Rules
from cucumber_env.state import CHOOSE, NUM_RANKS, OVER, PLAY, REVIVE, as_records

OBSERVATION_VERSION = 1
"""Stored in every artifact that reads observations; grows with any change of layout or meaning."""

EPISODES = ("match", "round")

DISTANCES = (2, 4, 6, 8, 10, 12, 14, 20)
"""Steps of the thermometer that tells how many points a seat is away from going out."""

_STEPS = np.array(DISTANCES)
COUNT_BITS = NUM_RANKS * MAX_COPIES
_BOUND_BITS = NUM_RANKS - 1
WORDS = 32
"""Length of the scratch space that `encode` wants: 64-bit words for the widest layout."""

_UNIVERSAL_TOTAL_BITS = 7


@dataclass(frozen=True)
class Section:
    """A named part of the observation.

    Attributes:
        name: Key of `Layout.views`.
        shape: Shape of the view; the first axis of a per-seat section counts relative seats.
        offset: Index of its first number in the row.
        meaning: What a 1 says, for people and the generated documentation.
    """

    name: str
    shape: tuple[int, ...]
    offset: int
    meaning: str

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)


LAYOUT = np.dtype(
    [
        ("seats", np.int32),
        ("match", np.int32),
        ("revival", np.int32),
        ("phases", np.int32),
        ("sizes", np.int32),
        ("universal", np.int32),
        ("history", np.int32),
        ("total_bits", np.int32),
        ("words", np.int32),  # 64-bit words of gathered bits
        ("columns", np.int32),  # 8-byte words of the row
        ("rule_bits", np.int64),
    ],
    align=True,
)
"""`Layout` as the encoder reads it."""


@dataclass(frozen=True)
class Layout:
    """Which sections an observation has, where, and what they mean.

    The width follows the rules in force. With ``seats=8`` it is the same for all rules, player
    counts and episodes, and says which rules are in force, so that one policy can sit at any table.

    With ``history`` the row is the *information state*: the observation, then the own deal and the
    whole public history of the round in order, so that nothing a seat has seen in the round is
    forgotten (perfect recall).

    Attributes:
        rules: Rules in force.
        num_players: Seats at the table.
        episode: ``"match"`` or ``"round"``.
        seats: Seats described by per-seat sections: `num_players`, or 8 for the universal layout.
        sections: All sections, in order.
        size: Width of the row; a multiple of 8.
    """

    rules: Rules
    num_players: int
    episode: str
    seats: int
    sections: tuple[Section, ...]
    size: int

    @classmethod
    @functools.lru_cache(maxsize=1024)
    def of(
        cls, rules: Rules, num_players: int, episode: str = "match", seats: int | None = None, history: bool = False
    ) -> Layout:
        """The layout for a table; with `history`, that of the information state.

        Raises:
            ValueError: a number of players that the rules do not seat, an unknown episode, or `seats` other
                than `num_players` and 8.
        """
        rules.check_players(num_players)
        if episode not in EPISODES:
            raise ValueError(f"episode={episode!r} is not one of its values; allowed: {', '.join(EPISODES)}")
        if seats not in (None, num_players, MAX_SEATS):
            raise ValueError(
                f"seats={seats!r} is not one of its values; allowed: {num_players} (the table's own layout) or "
                f"{MAX_SEATS} (the layout that is the same for every table)"
            )
        universal = seats == MAX_SEATS
        sections: list[Section] = []
        offset = 0
        for name, shape, meaning in _sections(rules, seats or num_players, episode, universal, history):
            sections.append(Section(name, shape, offset, meaning))
            offset += sections[-1].size
        return cls(rules, num_players, episode, seats or num_players, tuple(sections), -(-offset // 8) * 8)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are the layout itself, made anew in another process."""
        names = {section.name for section in self.sections}
        seats = MAX_SEATS if "rules" in names else None
        return Layout.of, (self.rules, self.num_players, self.episode, seats, "deal" in names)

    def section(self, name: str) -> Section:
        """The section called `name`.

        Raises:
            KeyError: there is none; lists those there are.
        """
        for section in self.sections:
            if section.name == name:
                return section
        raise KeyError(f"no section {name!r} in this layout; sections: {', '.join(s.name for s in self.sections)}")

    def views(self, observation: np.ndarray) -> dict[str, np.ndarray]:
        """Every section of an observation by name, as views without a copy.

        Args:
            observation: int8 array of shape ``[..., size]``.

        Returns:
            Arrays of shape ``[..., *section.shape]``.

        Raises:
            ValueError: the last axis is not `size` wide.
        """
        observation = np.asarray(observation)
        if observation.shape[-1:] != (self.size,):
            raise ValueError(f"observation of shape {observation.shape} does not end in the layout's {self.size}")
        lead = observation.shape[:-1]
        return {s.name: observation[..., s.offset : s.offset + s.size].reshape(*lead, *s.shape) for s in self.sections}

    def explain(self, observation: np.ndarray) -> str:
        """One observation as text, section by section, for people."""
        views = self.views(np.asarray(observation).reshape(-1))
        width = max(len(name) for name in views)
        return "\n".join(f"{name:<{width}}  {_explain(name, view)}" for name, view in views.items())

    @functools.cached_property
    def compiled(self) -> np.ndarray:
        """The layout as a read-only array of one `LAYOUT` record, for compiled code."""
        names = {section.name for section in self.sections}
        used = self.sections[-1].offset + self.sections[-1].size
        table = np.zeros(1, LAYOUT)
        table["seats"] = self.seats
        table["match"] = "totals" in names
        table["revival"] = "revived" in names
        table["phases"] = "phase" in names
        table["sizes"] = "hand_size" in names
        table["universal"] = "rules" in names
        table["history"] = "deal" in names
        table["total_bits"] = self.section("totals").shape[1] if "totals" in names else 0
        table["words"] = -(-used // 64)
        table["columns"] = self.size // 8
        table["rule_bits"] = sum(bit << i for i, bit in enumerate(_rule_bits(self.rules)))
        table.flags.writeable = False
        return as_records(table)


def _sections(
    rules: Rules, n: int, episode: str, universal: bool, history: bool
) -> list[tuple[str, tuple[int, ...], str]]:
    """Name, shape and meaning of the sections, in the order in which `encode` writes them."""
    sections = [
        ("hand", (NUM_RANKS, MAX_COPIES), "own cards: at least k+1 of the rank"),
        (
            "unseen",
            (NUM_RANKS, MAX_COPIES),
            "cards neither in the own hand nor played this round: at least k+1 of the rank",
        ),
        ("trick", (n, NUM_RANKS), "the card of this seat on the table"),
        ("reference", (NUM_RANKS,), "the rank that takes the trick so far"),
        ("taker", (n,), "this seat takes the trick so far"),
        ("legal", (NUM_RANKS,), "the own cards that may be played now"),
        ("trick_number", (MAX_CARDS,), "the trick on the table, from the first"),
        ("cards_left", (MAX_CARDS,), "at least k+1 tricks are still to be finished"),
        ("leader", (n,), "this seat leads the trick on the table"),
        ("to_act", (n,), "this seat has still to play to the trick on the table"),
        (
            "bounds",
            (n - 1, 2, _BOUND_BITS),
            "by opponent, clockwise: [0] all he holds is stronger than strength k; [1] what he holds may be stronger",
        ),
        ("seats", (n,), "this seat takes part in the round"),
        ("dealer", (n,), "this seat deals"),
    ]
    if episode == "match" or universal:
        sections += [
            ("alive", (n,), "this seat counts as in"),
            ("totals", (n, _total_bits(rules, universal)), "total of this seat in binary, lowest bit first"),
            ("distance", (n, len(DISTANCES)), f"goes out with at most {', '.join(map(str, DISTANCES))} points more"),
            ("tied", (n,), "this seat plays sudden death"),
            ("rounds_left", (MAX_CARDS,), "at least k+1 rounds are still to be settled (fixed_rounds)"),
        ]
    if rules.revival != "none" or universal:
        sections += [
            ("away", (n,), "this seat sits the round out and comes back"),
            ("revived", (n,), "this seat has come back once"),
        ]
    if rules.num_actions > NUM_RANKS or universal:
        sections.append(("phase", (3,), "the decision is: cards to deal, a card to play, a revival"))
    if rules.dealer_chooses or universal:
        sections.append(("hand_size", (MAX_CARDS,), "the dealer dealt k+1 cards to each"))
    if universal:
        sections += [
            ("players", (MAX_SEATS - 1,), "k+2 seats are at the table"),
            ("episode", (1,), "the episode is a whole match"),
            ("deck", (NUM_RANKS, MAX_COPIES), "cards in the deck: at least k+1 of the rank"),
            ("rules", (len(_rule_bits(rules)),), f"in force: {', '.join(_RULE_NAMES)}"),
        ]
    if history:
        sections += [
            ("deal", (NUM_RANKS, MAX_COPIES), "cards dealt to the seat this round: at least k+1 of the rank"),
            ("leaders", (MAX_CARDS, n), "by trick: this seat led it"),
            ("plays", (MAX_CARDS, n, NUM_RANKS), "by trick: the card of this seat"),
        ]
    return sections


def _total_bits(rules: Rules, universal: bool) -> int:
    """Bits that hold every total the rules allow; the universal layout stops at 127."""
    if universal:
        return _UNIVERSAL_TOTAL_BITS
    worst = max(POINTS[rules.points].values())
    highest = rules.rounds * worst if rules.rounds else (rules.threshold or 0) + worst
    return highest.bit_length()


_RULE_NAMES = tuple(f"{field}={word}" for field, words in CHOICES.items() for word in words[1:])


def _rule_bits(rules: Rules) -> list[int]:
    """One bit for each word of each field but the field's first."""
    return [int(getattr(rules, field) == word) for field, words in CHOICES.items() for word in words[1:]]


_RULE_BITS = len(_RULE_NAMES)


def _explain(name: str, view: np.ndarray) -> str:
    if name in ("hand", "unseen", "deck", "deal"):
        return "".join(rank * int(count) for rank, count in zip(RANKS, view.sum(-1), strict=True)) or "-"
    if name in ("reference", "legal"):
        return "".join(RANKS[i] for i in np.flatnonzero(view)) or "-"
    if name == "plays":
        return " | ".join(_explain("trick", trick) for trick in view if trick.any()) or "-"
    if name == "leaders":
        return " | ".join(_explain("leader", trick) for trick in view if trick.any()) or "-"
    if name == "trick":
        cards = ["".join(RANKS[i] for i in np.flatnonzero(row)) or "-" for row in view]
        return " ".join(f"{_seat_name(i)}:{card}" for i, card in enumerate(cards))
    if name == "bounds":
        low, high = view[:, 0].sum(-1), view[:, 1].sum(-1)
        return " ".join(
            f"{_seat_name(i + 1)}:{RANKS[a]}..{RANKS[b]}" for i, (a, b) in enumerate(zip(low, high, strict=True))
        )
    if name == "totals":
        numbers = (view << np.arange(view.shape[1])).sum(-1)
        return " ".join(f"{_seat_name(i)}:{number}" for i, number in enumerate(numbers))
    if name == "distance":
        return " ".join(f"{_seat_name(i)}:{_distance(row)}" for i, row in enumerate(view))
    if name in ("taker", "leader", "to_act", "seats", "dealer", "alive", "tied", "away", "revived"):
        return " ".join(_seat_name(int(i)) for i in np.flatnonzero(view)) or "-"
    if name in ("cards_left", "rounds_left"):
        return str(int(view.sum()))
    if name == "trick_number" or name == "hand_size":
        return " ".join(str(i + 1) for i in np.flatnonzero(view)) or "-"
    if name == "phase":
        return " ".join(("cards to deal", "a card to play", "a revival")[i] for i in np.flatnonzero(view)) or "-"
    if name == "players":
        return " ".join(str(i + 2) for i in np.flatnonzero(view))
    if name == "rules":
        return ", ".join(_RULE_NAMES[i] for i in np.flatnonzero(view)) or "as cucumber"
    return "match" if view[0] else "round"


def _seat_name(relative: int) -> str:
    return "me" if relative == 0 else f"+{relative}"


def _distance(row: np.ndarray) -> str:
    return f"≤{DISTANCES[-int(row.sum())]}" if row.any() else f">{DISTANCES[-1]}"


@njit
def put(words, at, bits, width):
    """Write `width` bits at bit position `at` of zeroed 64-bit words; returns the next position."""
    word = at >> 6
    shift = at & 63
    words[word] |= bits << shift
    if shift + width > 64:
        words[word + 1] |= bits >> 64 - shift
    return at + width


@njit
def thermometers(counts):
    """Counts of four bits (0–4) as thermometers of four bits (≥1, ≥2, ≥3, =4), all ranks at once."""
    ones = 0x1111111111111
    half = counts >> 1
    quarter = counts >> 2
    one = (counts | half | quarter) & ones
    two = (half | quarter) & ones
    three = (half & counts | quarter) & ones
    four = quarter & ones
    return one | two << 1 | three << 2 | four << 3


@njit
def relative_set(seats, seat, players):
    """A set of seats as seen from `seat`."""
    return (seats >> seat | seats << players - seat) & (1 << players) - 1


@njit
def relative_one(other, seat, players):
    """The set of `other` alone as seen from `seat`; empty for NOBODY."""
    return relative_set(np.int64(1) << other, seat, players) if other >= 0 else np.int64(0)


_SPREAD = np.array([sum((byte >> i & 1) << 8 * i for i in range(8)) for byte in range(256)], dtype=np.int64)


@njit
def spread(words, columns, out):
    """Spread gathered bits to one byte each, eight at a time; `out` is the row as int64."""
    for column in range(columns):
        out[column] = _SPREAD[words[column >> 3] >> 8 * (column & 7) & 255]


@njit
def encode(layout, rules, public, seat, hand, words, out):
    """Write the observation of `seat`, who holds `hand`, into a row.

    Args:
        layout, rules, public: Records of `LAYOUT`, `RULES` and `PUBLIC`.
        seat: Observing seat.
        hand: Its cards, four bits a rank.
        words: Scratch, int64 ``[WORDS]``.
        out: The row, int8 ``[size]`` seen as int64 ``[size / 8]``.
    """
    n = np.int64(layout.seats)
    players = public.players
    words[: layout.words] = 0
    at = put(words, 0, thermometers(hand), COUNT_BITS)
    at = put(words, at, thermometers(rules.deck - public.gone - hand), COUNT_BITS)
    at = put_table(words, at, rules, public, seat, hand, n)
    at = put(words, at, relative_set(np.int64(public.seats), seat, players), n)
    at = put(words, at, relative_one(public.dealer, seat, players), n)
    if layout.match:
        at = put_match(words, at, rules, public, seat, n, layout.total_bits)
    if layout.revival:
        at = put(words, at, relative_set(np.int64(public.away), seat, players), n)
        at = put(words, at, relative_set(np.int64(public.revived), seat, players), n)
    if layout.phases:
        phase = (public.phase == CHOOSE) | (public.phase == PLAY) << 1 | (public.phase == REVIVE) << 2
        at = put(words, at, np.int64(phase), 3)
    if layout.sizes:
        at = put(words, at, np.int64(1) << public.hand_size >> 1, MAX_CARDS)
    if layout.universal:
        at = put(words, at, np.int64(1) << players - 2, MAX_SEATS - 1)
        at = put(words, at, np.int64(public.match), 1)
        at = put(words, at, thermometers(rules.deck), COUNT_BITS)
        at = put(words, at, layout.rule_bits, _RULE_BITS)
    if layout.history:
        put_history(words, at, public, seat, hand, n)
    spread(words, layout.columns, out)


@njit
def put_table(words, at, rules, public, seat, hand, n):
    """Sections `trick` to `bounds`: the table of this round."""
    players = public.players
    to_act = np.int64(0)
    other = seat
    for relative in range(players):
        if public.hand_size > 0 and public.seats >> other & 1:
            card = np.int64(public.played[other, public.trick])
            if card >= 0:
                put(words, at + NUM_RANKS * relative, np.int64(1) << card, NUM_RANKS)
            else:
                to_act |= np.int64(1) << relative
        other = other + 1 if other + 1 < players else 0
    at += NUM_RANKS * n
    at = put(words, at, np.int64(1) << public.reference if public.reference >= 0 else np.int64(0), NUM_RANKS)
    at = put(words, at, relative_one(public.taker, seat, players), n)
    playing = public.turn == seat and public.phase == PLAY
    at = put(words, at, np.int64(legal(rules, public, hand)) if playing else np.int64(0), NUM_RANKS)
    left = np.int64(public.hand_size - public.trick if public.phase == PLAY else 0)
    at = put(words, at, np.int64(1) << public.trick if public.hand_size > 0 else np.int64(0), MAX_CARDS)
    at = put(words, at, (np.int64(1) << left) - 1, MAX_CARDS)
    at = put(words, at, relative_one(public.leader, seat, players), n)
    at = put(words, at, to_act, n)
    other = seat
    for relative in range(players - 1):
        other = other + 1 if other + 1 < players else 0
        low = (np.int64(1) << public.low[other]) - 1
        high = (np.int64(1) << public.high[other]) - 1
        put(words, at + 2 * _BOUND_BITS * relative, low | high << _BOUND_BITS, 2 * _BOUND_BITS)
    return at + 2 * _BOUND_BITS * (n - 1)


@njit
def put_match(words, at, rules, public, seat, n, total_bits):
    """Sections `alive` to `rounds_left`: the standing of the match."""
    players = public.players
    at = put(words, at, relative_set(np.int64(public.alive), seat, players), n)
    other = seat
    for relative in range(players):
        total = np.int64(public.totals[other])
        put(words, at + total_bits * relative, min(total, (1 << total_bits) - 1), total_bits)
        if rules.out_at > 0:
            steps = np.int64(0)
            for i in range(len(_STEPS)):
                steps |= np.int64(rules.out_at - total <= _STEPS[i]) << np.int64(i)
            put(words, at + total_bits * n + len(_STEPS) * relative, steps, len(_STEPS))
        other = other + 1 if other + 1 < players else 0
    at += (total_bits + len(_STEPS)) * n
    at = put(words, at, relative_set(np.int64(public.tied), seat, players), n)
    left = min(max(np.int64(rules.rounds - public.round_index if public.phase != OVER else 0), 0), MAX_CARDS)
    return put(words, at, (np.int64(1) << left) - 1, MAX_CARDS)


@njit
def put_history(words, at, public, seat, hand, n):
    """Sections `deal` to `plays`: what makes the information state one of perfect recall."""
    players = public.players
    deal = hand
    for trick in range(MAX_CARDS):
        if public.played[seat, trick] >= 0:
            deal += np.int64(1) << 4 * np.int64(public.played[seat, trick])
    at = put(words, at, thermometers(deal), COUNT_BITS)
    for trick in range(MAX_CARDS):
        at = put(words, at, relative_one(np.int64(public.leaders[trick]), seat, players), n)
    for trick in range(MAX_CARDS):
        other = seat
        for relative in range(players):
            card = np.int64(public.played[other, trick])
            if card >= 0:
                put(words, at + NUM_RANKS * relative, np.int64(1) << card, NUM_RANKS)
            other = other + 1 if other + 1 < players else 0
        at += NUM_RANKS * n
