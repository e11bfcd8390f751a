"""Whole matches as text that people can read, write and compare, and that machines check.

A *decision* names the seat and what it does: ``0: deal 3``, ``1: chip``. A *trick* names its leader and
then the cards in playing order: ``2: 7K3``. A *match record* tells a match, or as much of it as has been
played. Here two players have three cards each and play one round::

    cucumber record 1, rules version 1
    rules three_card
    players 2
    episode round
    seed none

    round 1, dealer 0
    given 0:5QA 1:36K
    1: 35
    0: A6
    0: QK
    pays 1:13

    end
    placement 0:1 1:2

A line that begins with a digit is what that seat decided, or the trick that it led. Any other line
begins with a word:

``round``
    A round begins: its number from 1, the dealer, and whether it is part of a sudden death.
``totals``
    Points of every seat, before the round or at the end (in matches only).
``dealt``, ``given``
    Hands of the seats that take part, as the seed deals them or as somebody put them there.
``pays``
    Who pays how many points for the last trick.
``out``
    Seats that this round puts out of the match.
``end``
    The episode is over; totals and placement follow (1 is best, equals share a place).
``unfinished``
    The episode is not over.

The dealer's choice stands before the hands, answers to an offer of revival come last. Whatever follows
from the cards and the decisions (dealers, totals, payers, placement) is written all the same, so that
people can read it and whoever plays the record can check it. Text after ``#`` and empty lines mean nothing.

Here is the notation alone; `cucumber_env.game.Game` writes records and plays them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cucumber_env.cards import ACTIONS, ANSWERS, action_id, hand_text, parse_hand
from cucumber_env.rules import RANKS, RULES_VERSION, Rules

RECORD_VERSION = 1
"""Stored in every match record; grows whenever the notation changes."""

T = TypeVar("T")


class RecordError(ValueError):
    """A match record that is malformed, illegal, or at odds with what was played.

    Attributes:
        line: Number of the line, from 1.
        reason: What is wrong with it.
    """

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(line, reason)
        self.line = line
        self.reason = reason

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


def _line() -> Any:
    """Where a part of a record stood in its text, for messages; no part of its value."""
    return field(default=0, compare=False, repr=False)


@dataclass(frozen=True)
class Decision:
    """What a seat decided, as ``seat: action``.

    >>> Decision.parse("1: chip")
    Decision(seat=1, action='chip')
    """

    seat: int
    action: str
    line: int = _line()

    @classmethod
    def parse(cls, text: str, line: int = 0) -> Decision:
        """A decision from its text. Raises ValueError: malformed, or no action."""
        seat, action = _seat_and_rest(text)
        return cls(seat, ACTIONS[action_id(action)], line)

    def __str__(self) -> str:
        return f"{self.seat}: {self.action}"


@dataclass(frozen=True)
class Trick:
    """A trick, complete or not, as ``leader: plays``.

    >>> Trick.parse("2: 7K3")
    Trick(leader=2, plays='7K3')
    """

    leader: int
    plays: str
    line: int = _line()

    @classmethod
    def parse(cls, text: str, line: int = 0) -> Trick:
        """A trick from its text. Raises ValueError: malformed, or a letter that is no rank."""
        leader, plays = _seat_and_rest(text)
        for number, letter in enumerate(plays, 1):
            if letter not in RANKS:
                raise ValueError(f"play {number} of {text!r}: {letter!r} is no rank; ranks: {RANKS}")
        return cls(leader, plays, line)

    def __str__(self) -> str:
        return f"{self.leader}: {self.plays}"


@dataclass(frozen=True, kw_only=True)
class Round:
    """One round as it was played, complete or not.

    Attributes:
        number: From 1, sudden death included.
        dealer: Seat.
        sudden_death: Whether the round is part of a sudden death.
        totals: Points of every seat before the round; None where there are none (single rounds).
        choice: The dealer's choice, or None.
        hands: Hands by seat as text, of those that take part; None before the deal.
        given: Whether the hands were put there by hand, not dealt from the seed.
        tricks: All tricks that were begun.
        pays: Points by paying seat; None before the round is settled.
        out: Seats that the round put out.
        answers: Answers to offers of revival.
        lines: Line numbers of the parts in the text, by the word each begins with; of several, the last.
    """

    number: int
    dealer: int
    sudden_death: bool = False
    totals: Mapping[int, int] | None = None
    choice: Decision | None = None
    hands: Mapping[int, str] | None = None
    given: bool = False
    tricks: tuple[Trick, ...] = ()
    pays: Mapping[int, int] | None = None
    out: tuple[int, ...] = ()
    answers: tuple[Decision, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> Round:
        """A round from its text. Raises RecordError: malformed."""
        reader = _Reader(text)
        round_ = _read_round(reader)
        reader.finish()
        return round_

    def __str__(self) -> str:
        return "\n".join(self._text())

    def _text(self) -> Iterator[str]:
        yield f"round {self.number}, dealer {self.dealer}{', sudden death' if self.sudden_death else ''}"
        if self.totals is not None:
            yield f"totals {by_seat(self.totals)}"
        if self.choice is not None:
            yield str(self.choice)
        if self.hands is not None:
            yield f"{'given' if self.given else 'dealt'} {by_seat(self.hands)}"
        yield from map(str, self.tricks)
        if self.pays is not None:
            yield f"pays {by_seat(self.pays)}"
        if self.out:
            yield f"out {' '.join(map(str, self.out))}"
        yield from map(str, self.answers)


@dataclass(frozen=True, kw_only=True)
class MatchRecord:
    """A match, or a single round, as far as it has been played; ``str()`` writes it, `parse` reads it.

    Reading checks the form alone; `cucumber_env.game.Game.from_record` plays it and checks the rest.

    Attributes:
        rules: Rules in force.
        players: Seats at the table.
        episode: ``"match"`` or ``"round"``.
        key: (seed, game, episode) that the deals come from, or None if all hands were given.
        rounds: All rounds that were begun, at least one.
        totals: Final points of every seat; None if unfinished, or where there are none (single rounds).
        placement: Final place of every seat, 1 is best; None if unfinished.
        lines: Line numbers of the parts in the text, by the word each begins with.
    """

    rules: Rules
    players: int
    episode: str
    key: tuple[int, int, int] | None
    rounds: tuple[Round, ...]
    totals: Mapping[int, int] | None = None
    placement: Mapping[int, int] | None = None
    lines: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> MatchRecord:
        """A match record from its text.

        Raises:
            RecordError: another version, or malformed; says which line and why.
        """
        reader = _Reader(text)
        reader.take(_check_versions)
        rules: Rules = reader.take(_after("rules", Rules.of))
        players: int = reader.take(_after("players", lambda rest: rules.check_players(_number(rest), name="players")))
        episode: str = reader.take(_after("episode", _episode))
        key = reader.take(_after("seed", _key))
        rounds = [_read_round(reader)]
        while reader.kind == "round":
            rounds.append(_read_round(reader))
        lines: dict[str, int] = {}
        totals, placement = None, None
        if reader.take(_ending, lines) == "end":
            totals = reader.maybe("totals", _numbers, lines)
            placement = reader.take(_after("placement", _numbers), lines)
        reader.finish()
        return cls(
            rules=rules,
            players=players,
            episode=episode,
            key=key,
            rounds=tuple(rounds),
            totals=totals,
            placement=placement,
            lines=lines,
        )

    def __str__(self) -> str:
        return "\n\n".join(["\n".join(self._heading()), *map(str, self.rounds), "\n".join(self._ending())]) + "\n"

    def _heading(self) -> Iterator[str]:
        yield f"cucumber record {RECORD_VERSION}, rules version {RULES_VERSION}"
        yield f"rules {self.rules}"
        yield f"players {self.players}"
        yield f"episode {self.episode}"
        yield "seed none" if self.key is None else "seed {}, game {}, episode {}".format(*self.key)

    def _ending(self) -> Iterator[str]:
        if self.placement is None:
            yield "unfinished"
            return
        yield "end"
        if self.totals is not None:
            yield f"totals {by_seat(self.totals)}"
        yield f"placement {by_seat(self.placement)}"


class _Reader:
    """The lines of a text that mean something, taken one by one."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f"a match record must be text, got {type(text).__name__}")
        lines = text.split("\n")
        self._last = max(len(lines) - text.endswith("\n"), 1)
        bare = ((number, " ".join(line.partition("#")[0].split())) for number, line in enumerate(lines, 1))
        self._lines = [(number, line) for number, line in bare if line]
        self._at = 0

    @property
    def text(self) -> str:
        """The next line, empty at the end."""
        return self._lines[self._at][1] if self._at < len(self._lines) else ""

    @property
    def line(self) -> int:
        """The number of the next line; at the end, that of the last."""
        return self._lines[self._at][0] if self._at < len(self._lines) else self._last

    @property
    def kind(self) -> str:
        """What the next line is: the word it begins with, or deal, answer or trick; empty at the end."""
        if not self.text[:1].isdigit():
            return self.text.partition(" ")[0]
        rest = self.text.partition(":")[2].strip()
        if rest.startswith("deal"):
            return "deal"
        return "answer" if rest in ANSWERS else "trick"

    def take(self, parse: Callable[[str], T], lines: dict[str, int] | None = None) -> T:
        """What `parse` makes of the next line; its number goes into `lines`, under its kind."""
        try:
            parsed = parse(self.text)
        except (ValueError, TypeError) as error:
            raise RecordError(self.line, str(error)) from None
        if lines is not None:
            lines[self.kind] = self.line
        self._at += 1
        return parsed

    def maybe(self, word: str, parse: Callable[[str], T], lines: dict[str, int]) -> T | None:
        """What `parse` makes of the rest of the next line, if that begins with `word`."""
        return self.take(_after(word, parse), lines) if self.kind == word else None

    def take_all(self, kind: str, parse: Callable[..., T], lines: dict[str, int]) -> tuple[T, ...]:
        """What `parse` makes of each of the next lines that are of one `kind`; the last one's number is kept."""
        parsed = []
        while self.kind == kind:
            parsed.append(self.take(functools.partial(parse, line=self.line), lines))
        return tuple(parsed)

    def finish(self) -> None:
        """Refuse anything that follows."""
        if self.text:
            raise RecordError(self.line, f"{self.text!r} follows the end of the record")


def _read_round(reader: _Reader) -> Round:
    """The round that begins at the next line, up to the first line that is no part of it."""
    lines: dict[str, int] = {}
    number, dealer, sudden_death = reader.take(_round_heading, lines)
    totals = reader.maybe("totals", _numbers, lines)
    choice = reader.take_all("deal", Decision.parse, lines)
    if len(choice) > 1:
        raise RecordError(choice[1].line, f"{str(choice[1])!r} is a second choice in round {number}")
    given = reader.kind == "given"
    hands = reader.maybe("given" if given else "dealt", _hands, lines)
    return Round(
        number=number,
        dealer=dealer,
        sudden_death=sudden_death,
        totals=totals,
        choice=choice[0] if choice else None,
        hands=hands,
        given=given,
        tricks=reader.take_all("trick", Trick.parse, lines),
        pays=reader.maybe("pays", _numbers, lines),
        out=reader.maybe("out", _seats, lines) or (),
        answers=reader.take_all("answer", Decision.parse, lines),
        lines=lines,
    )


def by_seat(values: Mapping[int, int] | Mapping[int, str]) -> str:
    """Values by seat as text, such as ``0:12 1:7``."""
    return " ".join(f"{seat}:{value}" for seat, value in sorted(values.items()))


def _match(pattern: str, text: str, example: str) -> re.Match[str]:
    found = re.fullmatch(pattern, text, re.ASCII)
    if found is None:
        raise ValueError(f"expected {example}, found {repr(text) if text else 'the end of the text'}")
    return found


def _seat_and_rest(text: str) -> tuple[int, str]:
    found = _match(r"(\d): ?(.+)", text, "a seat and what it did, such as '2: 7K3' or '1: chip'")
    return int(found[1]), found[2]


def _check_versions(text: str) -> None:
    example = f"'cucumber record {RECORD_VERSION}, rules version {RULES_VERSION}'"
    found = _match(r"cucumber record (\d+), rules version (\d+)", text, example)
    if int(found[1]) != RECORD_VERSION:
        raise ValueError(f"record version {found[1]} was written by another version; this one reads {RECORD_VERSION}")
    if int(found[2]) != RULES_VERSION:
        raise ValueError(f"rules version {found[2]} was written by another version; this one reads {RULES_VERSION}")


def _after(word: str, parse: Callable[[str], T]) -> Callable[[str], T]:
    """A parser of lines that begin with `word`, the rest of which `parse` reads."""
    return lambda text: parse(_match(rf"{word} (.+)", text, f"a line that begins with '{word}'")[1])


def _number(text: str) -> int:
    return int(_match(r"(\d{1,9})", text, "a number")[1])


def _episode(text: str) -> str:
    return _match(r"match|round", text, "'match' or 'round'")[0]


def _key(text: str) -> tuple[int, int, int] | None:
    if text == "none":
        return None
    example = "'none' or numbers such as '7, game 0, episode 0'"
    found = _match(r"(\d{1,20}), game (\d{1,19}), episode (\d{1,19})", text, example)
    seed, game, episode_index = map(int, found.groups())
    for name, number, bits in (("seed", seed, 64), ("game", game, 63), ("episode", episode_index, 63)):
        if number >> bits:
            raise ValueError(f"{name} {number} is out of range; allowed: 0 to {(1 << bits) - 1}")
    return seed, game, episode_index


def _round_heading(text: str) -> tuple[int, int, bool]:
    found = _match(r"round (\d{1,9}), dealer (\d)(, sudden death)?", text, "a round such as 'round 1, dealer 0'")
    return int(found[1]), int(found[2]), found[3] is not None


def _ending(text: str) -> str:
    if text in ("end", "unfinished"):
        return text
    if not text:
        raise ValueError("the record breaks off; its last lines begin with 'end', or it says 'unfinished'")
    raise ValueError(f"{text!r} is out of place here, or unknown")


def _pairs(text: str, value: str, example: str) -> dict[int, str]:
    """Values by seat, as in ``0:12 1:7``; `value` is the pattern of one."""
    values: dict[int, str] = {}
    for part in text.split(" "):
        found = _match(rf"(\d):({value})", part, example)
        if int(found[1]) in values:
            raise ValueError(f"seat {found[1]} stands there twice")
        values[int(found[1])] = found[2]
    return values


def _numbers(text: str) -> dict[int, int]:
    return {seat: int(number) for seat, number in _pairs(text, r"\d{1,9}", "seat:number such as 0:12").items()}


def _hands(text: str) -> dict[int, str]:
    hands = {}
    for seat, cards in _pairs(text, r"\S+", "seat:hand such as 0:2479TQA").items():
        try:
            hands[seat] = hand_text(parse_hand(cards))
        except ValueError as error:
            raise ValueError(f"seat {seat}: {error}") from None
    return hands


def _seats(text: str) -> tuple[int, ...]:
    seats = [int(_match(r"\d", part, "seats such as 0 2")[0]) for part in text.split(" ")]
    if len(set(seats)) < len(seats):
        raise ValueError(f"a seat stands twice in {text!r}")
    return tuple(sorted(seats))
