"""The rule book: every rule that can vary, as one frozen value.

A `Rules` object holds the fields of the game (what each means is said beside it in `FIELDS`),
refuses combinations that make no game, goes to JSON and back, and prints the rules in force as
text. Presets are named sets of fields; every field can be set on top of a preset:

>>> Rules.preset("cucumber", hand_size=3, threshold=21).hand_size
3
>>> Rules.of("cucumber,hand_size=3,players=2-4").players
(2, 4)
>>> Rules.preset("cucmber")
Traceback (most recent call last):
    ...
ValueError: unknown preset 'cucmber' (did you mean 'cucumber' or 'concombre'?); presets: agurk, ...
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

RULES_VERSION = 1
"""Stored in every artifact; grows whenever the same rules and seed can lead to another game."""

RANKS = "23456789TJQKA"
"""Text of the ranks, lowest first; the index of a letter is the rank's id (2 is 0, the Ace 12)."""

MAX_SEATS = 8
MAX_CARDS = 7
MAX_COPIES = 4
LARGEST = 9999
"""Upper limit of `threshold` and `rounds`: keeps totals far inside 32 bits."""

POINTS = {
    "face_14": dict(zip(RANKS, (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14), strict=True)),
    "face_10": dict(zip(RANKS, (2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10, 11), strict=True)),
}
"""Penalty points of each rank, by the value of the field `points`."""

CHOICES: dict[str, tuple[str, ...]] = {
    "follow": ("must", "may"),
    "ace_lead": ("all_lowest", "none"),
    "order": ("natural", "value"),
    "points": ("face_14", "face_10"),
    "payer": ("taker", "lowest", "non_winners"),
    "penalty": ("highest", "own"),
    "tie": ("last", "first", "all"),
    "threshold_rule": ("reach", "exceed"),
    "end": ("last_survivor", "first_out_loses", "fixed_rounds"),
    "first_leader": ("left_of_dealer", "dealer"),
    "revival": ("none", "chip", "skip", "choice"),
}
"""Allowed values of the fields that are one of a few words."""

FIELDS: dict[str, str] = {
    "players": "fewest and most players, as (low, high)",
    "hand_size": "cards dealt to each player, or (low, high) for the dealer's choice before the deal",
    "follow": "must: play at least the reference if able, else the lowest; may: the lowest is always allowed too",
    "ace_lead": "all_lowest: under a led Ace everybody else plays his lowest and the leader takes; none: no such rule",
    "order": "natural: 2 < ... < A; value: ranks of equal points are equal in strength",
    "points": "face_14: J 11, Q 12, K 13, A 14; face_10: T J Q K 10, A 11",
    "payer": "who pays for the last trick: its taker, the lowest card, or all who did not take it",
    "penalty": "what is paid: the highest card of the last trick, or the payer's own card",
    "tie": "which of equal cards that decide the last trick pays: the last played, the first, or all",
    "threshold": "points that put a player out; None under fixed_rounds",
    "threshold_rule": "reach: out at the threshold; exceed: out above it",
    "end": "last_survivor: the last one in wins; first_out_loses: the first one out loses and the match ends; "
    "fixed_rounds: the lowest total after `rounds` rounds wins",
    "first_leader": "who leads the first trick of a round: the seat left of the dealer, or the dealer",
    "revival": "how a player who went out may come back, once a match: by a chip, by skipping a round, either, or not",
    "rounds": "number of rounds under fixed_rounds, else None",
    "ranks": "the ranks in the deck, as text",
    "copies": "cards of each rank in the deck",
}
"""Meaning of every field of `Rules`, for help texts and the generated documentation."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules of one game: frozen, hashable, checked on construction.

    Fields and their meaning are listed in `FIELDS`; defaults are those of the preset ``cucumber``.

    Raises:
        ValueError: a value outside its range or an impossible combination; names field, value and range.
        TypeError: a value of the wrong type, named likewise.
    """

    players: tuple[int, int] = (2, 7)
    hand_size: int | tuple[int, int] = 7
    follow: str = "must"
    ace_lead: str = "all_lowest"
    order: str = "natural"
    points: str = "face_14"
    payer: str = "taker"
    penalty: str = "highest"
    tie: str = "last"
    threshold: int | None = 30
    threshold_rule: str = "reach"
    end: str = "last_survivor"
    first_leader: str = "left_of_dealer"
    revival: str = "none"
    rounds: int | None = None
    ranks: str = RANKS
    copies: int = MAX_COPIES

    def __post_init__(self) -> None:
        """Bring every field to its canonical form and refuse what makes no game."""
        for field, allowed in CHOICES.items():
            _check_word(field, getattr(self, field), allowed)
        low, high = _interval("players", self.players, 2, MAX_SEATS)
        self._set("players", (low, high))
        self._set("hand_size", _hand_size(self.hand_size))
        self._set("copies", _integer("copies", self.copies, 1, MAX_COPIES))
        self._set("ranks", _deck_ranks(self.ranks))
        self._check_end()
        self._check_deck()

    def _set(self, field: str, value: Any) -> None:
        object.__setattr__(self, field, value)

    def _check_end(self) -> None:
        """`threshold`, `rounds` and `revival` belong to certain values of `end` alone."""
        fixed = self.end == "fixed_rounds"
        if fixed and self.threshold is not None:
            raise ValueError(
                f"threshold={self.threshold!r} has no meaning under end='fixed_rounds'; allowed: None "
                "(nobody goes out there)"
            )
        if fixed and self.rounds is None:
            raise ValueError(f"rounds=None under end='fixed_rounds'; allowed: 1 to {LARGEST}")
        if not fixed and self.rounds is not None:
            raise ValueError(
                f"rounds={self.rounds!r} belongs to end='fixed_rounds', not to {self.end!r}; allowed: None"
            )
        if not fixed and self.threshold is None:
            raise ValueError(f"threshold=None under end={self.end!r}; allowed: 1 to {LARGEST}")
        if self.revival != "none" and self.end != "last_survivor":
            raise ValueError(
                f"revival={self.revival!r} belongs to end='last_survivor', not to {self.end!r}; allowed: 'none'"
            )
        for field in ("threshold", "rounds"):
            if getattr(self, field) is not None:
                self._set(field, _integer(field, getattr(self, field), 1, LARGEST))

    def _check_deck(self) -> None:
        """The smallest table must be dealt in full, and sudden death must be able to end."""
        fewest = self.players[0]
        if fewest * self.largest_hand > self.deck_size:
            raise ValueError(
                f"hand_size={self.hand_size!r}: {fewest} players × {self.largest_hand} cards exceed the deck of "
                f"{self.deck_size} (ranks={self.ranks!r}, copies={self.copies}); allowed: at most "
                f"{self.deck_size // fewest} cards each"
            )
        if self.tie == "all" and len({self.strength(rank) for rank in self.ranks}) == 1:
            raise ValueError(
                f"tie='all' with ranks={self.ranks!r}: all cards are equal in strength, so a sudden death would "
                "never end; allowed: 'last', 'first', or ranks of two strengths"
            )

    @classmethod
    def preset(cls, name: str, **overrides: Any) -> Rules:
        """The preset `name` with `overrides` on top.

        Raises:
            ValueError: unknown preset (with the nearest names) or field, or an impossible combination.
        """
        if not isinstance(name, str):
            raise TypeError(f"preset must be a name, got {type(name).__name__}; presets: {', '.join(sorted(PRESETS))}")
        if name not in PRESETS:
            raise ValueError(f"unknown preset {name!r}{nearest(name, PRESETS)}; presets: {', '.join(sorted(PRESETS))}")
        return cls.from_dict({**PRESETS[name], **overrides})

    @classmethod
    def of(cls, rules: Rules | str | Mapping[str, Any]) -> Rules:
        """Rules from whatever a user writes: `Rules`, a text, or a mapping of fields.

        A text is a preset's name, with changes after commas: ``cucumber``, ``cucumber,hand_size=3,threshold=21``,
        ``concombre,hand_size=2-4``, ``express,rounds=5,threshold=none``. A mapping may name its base under the key
        ``preset`` (default ``cucumber``).

        Raises:
            ValueError, TypeError: text that is not of this form, or as `preset`.
        """
        if isinstance(rules, Rules):
            return rules
        if isinstance(rules, str):
            name, *changes = (part.strip() for part in rules.split(","))
            return cls.preset(name, **_changes(changes))
        if isinstance(rules, Mapping):
            fields = dict(rules)
            if not all(isinstance(field, str) for field in fields):
                raise TypeError(f"rules={fields!r} must name its fields by text; fields: preset, {', '.join(FIELDS)}")
            return cls.preset(fields.pop("preset", "cucumber"), **fields)
        raise TypeError(
            f"rules must be Rules, a text such as 'cucumber,hand_size=3' or a mapping of fields, got "
            f"{type(rules).__name__}"
        )

    def __str__(self) -> str:
        """One line that `of` reads: a preset's name, or ``cucumber`` and the fields that differ.

        >>> print(Rules(threshold=21))
        agurk
        >>> print(Rules(threshold=21, hand_size=(2, 4)))
        cucumber,hand_size=2-4,threshold=21
        """
        for name in PRESETS:
            if Rules.preset(name) == self:
                return name
        mine, usual = dataclasses.asdict(self), dataclasses.asdict(Rules())
        changes = [f"{field}={_text(value)}" for field, value in mine.items() if value != usual[field]]
        return ",".join(["cucumber", *changes])

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Rules:
        """Rules from a mapping of fields; missing ones take their defaults."""
        for field in fields:
            if field not in FIELDS:
                raise ValueError(f"unknown field {field!r}{nearest(field, FIELDS)}; fields: {', '.join(FIELDS)}")
        return cls(**fields)

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON-friendly values (intervals as lists)."""
        return {
            field: list(value) if isinstance(value, tuple) else value
            for field, value in dataclasses.asdict(self).items()
        }

    @classmethod
    def from_json(cls, text: str) -> Rules:
        """Rules from the text of `to_json`.

        Raises:
            ValueError: not JSON, another rules version, or fields that make no game.
        """
        try:
            fields = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"rules are not JSON: {error}") from None
        if not isinstance(fields, dict):
            raise ValueError(f"rules must be a JSON object of fields, got {type(fields).__name__}")
        version = fields.pop("rules_version", RULES_VERSION)
        if version != RULES_VERSION:
            raise ValueError(
                f"rules_version={version!r} was written by another version; this one reads {RULES_VERSION}"
            )
        return cls.from_dict(fields)

    def to_json(self) -> str:
        """All fields and the rules version as one line of JSON."""
        return json.dumps({"rules_version": RULES_VERSION, **self.to_dict()})

    def replace(self, **overrides: Any) -> Rules:
        """A copy with some fields changed, checked anew."""
        return Rules.from_dict({**dataclasses.asdict(self), **overrides})

    @property
    def hand_sizes(self) -> tuple[int, int]:
        """Fewest and most cards that can be dealt to each player."""
        return self.hand_size if isinstance(self.hand_size, tuple) else (self.hand_size, self.hand_size)

    @property
    def largest_hand(self) -> int:
        """Most cards that can be dealt to each player."""
        return self.hand_sizes[1]

    @property
    def dealer_chooses(self) -> bool:
        """Whether the dealer decides how many cards to deal."""
        return isinstance(self.hand_size, tuple)

    @property
    def deck_size(self) -> int:
        """Number of cards in the deck."""
        return len(self.ranks) * self.copies

    @property
    def max_players(self) -> int:
        """Most players that the rules and the deck allow."""
        return min(self.players[1], self.deck_size // self.largest_hand)

    @cached_property
    def num_actions(self) -> int:
        """Size of the action space: 13 where only cards are played, else 23."""
        return 23 if self.dealer_chooses or self.revival != "none" else 13

    def points_of(self, rank: str) -> int:
        """Penalty points of a rank given as its letter."""
        return POINTS[self.points][rank]

    def strength(self, rank: str) -> int:
        """Strength of a rank given as its letter: its id, or under ``order: value`` the lowest id of equal points."""
        if self.order == "natural":
            return RANKS.index(rank)
        return min(RANKS.index(other) for other in RANKS if self.points_of(other) == self.points_of(rank))

    def check_players(self, num_players: int, *, name: str = "num_players") -> int:
        """`num_players` as an int, refused unless these rules seat that many."""
        try:
            return _integer(name, num_players, self.players[0], self.max_players)
        except ValueError as error:
            raise ValueError(
                f"{error} ({self.players[0]}–{self.players[1]} by the rules, {self.deck_size} cards in the deck, "
                f"hands of up to {self.largest_hand})"
            ) from None

    def describe(self) -> str:
        """The rules in force, as text for a person to read."""
        return "\n".join(_describe(self))


PRESETS: dict[str, dict[str, Any]] = {
    "cucumber": {},
    "agurk": {"threshold": 21},
    "gurka": {},
    "gurka_no_ace": {"ace_lead": "none"},
    "three_card": {"hand_size": 3},
    "inverted": {"payer": "lowest"},
    "express": {"threshold": None, "end": "fixed_rounds", "rounds": 10},
    "revival": {"revival": "choice"},
    "literal": {"payer": "non_winners"},
    "concombre": {
        "players": (2, 8),
        "hand_size": (1, 5),
        "follow": "may",
        "ace_lead": "none",
        "order": "value",
        "points": "face_10",
        "penalty": "own",
        "threshold": 51,
        "end": "first_out_loses",
        "first_leader": "dealer",
    },
    "wikipedia": {"tie": "all"},
    "bga": {"follow": "may", "threshold_rule": "exceed"},
}
"""Fields of each preset that differ from ``cucumber``."""


def _changes(parts: Iterable[str]) -> dict[str, Any]:
    """Fields from texts such as ``hand_size=3``; what they may hold is checked by `Rules`."""
    fields: dict[str, Any] = {}
    for part in parts:
        field, equals, text = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise ValueError(f"{part!r} must be FIELD=VALUE, such as hand_size=3; fields: {', '.join(FIELDS)}")
        if field in fields:
            raise ValueError(f"field {field!r} is given twice: {fields[field]!r} and {text!r}")
        fields[field] = _value(field, text)
    return fields


def _value(field: str, text: str) -> Any:
    """What a text means as the value of a field: words stay, else an integer, a range ``1-5``, or none."""
    if field in CHOICES or field == "ranks" or field not in FIELDS:
        return text
    if text.lower() == "none":
        return None
    try:
        numbers = tuple(int(end) for end in text.split("-"))
    except ValueError:
        raise ValueError(f"{field}={text!r} must be an integer such as 3, a range such as 1-5, or none") from None
    return numbers if len(numbers) > 1 else numbers[0]


def _text(value: Any) -> str:
    """The inverse of `_value`."""
    if value is None:
        return "none"
    return "-".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _integer(field: str, value: Any, low: int, high: int) -> int:
    if isinstance(value, bool):
        raise TypeError(f"{field}={value!r} must be an integer, got bool; allowed: {low} to {high}")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(
            f"{field}={value!r} must be an integer, got {type(value).__name__}; allowed: {low} to {high}"
        ) from None
    if not low <= number <= high:
        raise ValueError(f"{field}={number} is out of range; allowed: {low} to {high}")
    return number


def _interval(field: str, value: Any, low: int, high: int) -> tuple[int, int]:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise TypeError(f"{field}={value!r} must be a pair (low, high); allowed: {low} to {high}")
    first, last = (_integer(field, end, low, high) for end in value)
    if first > last:
        raise ValueError(f"{field}=({first}, {last}) is empty; allowed: low ≤ high within {low} to {high}")
    return first, last


def _hand_size(value: Any) -> int | tuple[int, int]:
    if not isinstance(value, tuple | list):
        return _integer("hand_size", value, 1, MAX_CARDS)
    low, high = _interval("hand_size", value, 1, MAX_CARDS)
    return low if low == high else (low, high)


def _check_word(field: str, value: Any, allowed: tuple[str, ...]) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{field}={value!r} must be text, got {type(value).__name__}; allowed: {', '.join(allowed)}")
    if value not in allowed:
        raise ValueError(f"{field}={value!r} is not one of its values; allowed: {', '.join(allowed)}")


def _deck_ranks(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"ranks={value!r} must be text, got {type(value).__name__}; allowed: letters of {RANKS}")
    if not value or len(set(value)) < len(value) or not set(value) <= set(RANKS):
        raise ValueError(f"ranks={value!r} must be different letters of {RANKS}, at least one")
    return "".join(sorted(value, key=RANKS.index))


def nearest(word: str, words: Iterable[str]) -> str:
    """A hint for an error message about a misspelt `word`: those of `words` that look like it, or nothing."""
    close = difflib.get_close_matches(word, words, n=2, cutoff=0.6)
    return f" (did you mean {' or '.join(repr(name) for name in close)}?)" if close else ""


_FOLLOW_TEXT = {
    "must": "A follower who holds a card equal to or above the reference (the highest card on the table) must play "
    "such a card; otherwise his lowest.",
    "may": "A follower plays a card equal to or above the reference (the highest card on the table), or his lowest.",
}
_PAYER_TEXT = {
    "taker": "the taker of the last trick",
    "lowest": "whoever played the lowest card to the last trick",
    "non_winners": "everybody but the taker of the last trick",
}
_TIE_TEXT = {"last": "the last of them played", "first": "the first of them played", "all": "all of them"}
_REVIVAL_TEXT = {
    "chip": "by a chip (back at once)",
    "skip": "by skipping a round",
    "choice": "by a chip (back at once) or by skipping a round",
}


def _describe(rules: Rules) -> list[str]:
    low, high = rules.hand_sizes
    cards = f"{low}–{high} cards each, as the dealer chooses before the deal" if low < high else f"{low} cards each"
    lines = [
        f"{rules.players[0]}–{rules.max_players} players, {rules.deck_size} cards "
        f"({rules.copies} × {' '.join(rules.ranks)}), {cards}; suits never matter.",
        f"{'The dealer' if rules.first_leader == 'dealer' else 'The seat left of the dealer'} leads the first trick.",
        _FOLLOW_TEXT[rules.follow],
    ]
    if rules.order == "value" and rules.points == "face_10":
        lines.append("T, J, Q and K are equal in strength.")
    if _ace_counts(rules):
        lines.append("If an Ace is led, everybody else plays his lowest card and the Ace takes the trick.")
    lines.append("The highest card takes the trick, the last played of equals; its taker leads the next.")
    lines.append(_payment(rules))
    lines.append(_ending(rules))
    if rules.revival != "none":
        lines.append(
            f"Once a match, a player who goes out may come back {_REVIVAL_TEXT[rules.revival]}, with the highest "
            "total of the others still in, as long as two others are in."
        )
    return lines


def _ace_counts(rules: Rules) -> bool:
    return rules.ace_lead == "all_lowest" and "A" in rules.ranks


def _payment(rules: Rules) -> str:
    what = "the value of its highest card" if rules.penalty == "highest" else "the value of the card he played to it"
    values = ", ".join(f"{rank} {rules.points_of(rank)}" for rank in rules.ranks if rank in "TJQKA")
    text = f"Only the last trick counts: {_PAYER_TEXT[rules.payer]} pays {what}{f' ({values})' if values else ''}."
    if rules.payer != "non_winners":
        text += f" Of equal cards, {_TIE_TEXT[rules.tie]} pay{'' if rules.tie == 'all' else 's'}"
        led_ace = (
            rules.payer == "taker" and rules.tie != "all" and rules.ace_lead == "all_lowest" and "A" in rules.ranks
        )
        text += "; under a led Ace its leader." if led_ace else "."
    return text


def _ending(rules: Rules) -> str:
    if rules.end == "fixed_rounds":
        return f"After {rules.rounds} rounds the lowest total wins; equal lowest totals play sudden death."
    out = f"{'reaches' if rules.threshold_rule == 'reach' else 'exceeds'} {rules.threshold} points"
    if rules.end == "first_out_loses":
        return f"The first player whose total {out} loses and the match ends."
    return f"A player whose total {out} is out; the last one in wins the match."
