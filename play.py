"""Play Cucumber in the terminal against policies by name.

    uv run play.py champion
    uv run play.py checkpoint:runs/demo/last --episode round --hints
    uv run play.py highest careful --rules concombre --players 3 --seed 7 --record match.txt

Reads a line for each decision, from a terminal or a pipe; `?` explains, `q` or the end of the input leaves. Exit
codes: 0 played or left, 1 a policy failed while it played, 2 arguments that make no game, 130 interrupted.
"""

from __future__ import annotations

import dataclasses
import secrets
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TextIO

import tyro
from tyro.conf import FlagCreatePairsOff, Positional, arg

import agents  # noqa: F401  registers the names of trained agents
from cucumber_env.cards import ACTIONS, hand_text
from cucumber_env.game import Game
from cucumber_env.policies import Policy, decide, make
from cucumber_env.rules import RANKS, Rules

HELP = """
Cards: type 2 to 9, T or 10, J, Q, K or A; lower case will do. Other questions: a number or a word that is offered.
? shows this; q leaves (with a Queen in hand: quit, or q twice).
The table: > is to decide, * takes the trick, . has still to play to it, ? is a card that you may not see.
The rules in force:"""

QUESTIONS = {"choose": "How many cards do you deal", "play": "Your card", "revive": "Do you come back"}
"""What is asked in each phase of a game."""

ANSWERS = {
    "decline": ("you stay out", "decline", "to come back"),
    "chip": ("you play the next round, with the highest total of the others still in", "take", "a chip"),
    "skip": ("you sit the next round out, then return with the highest total of the others", "skip", "a round"),
}
"""What each answer to an offer of revival means, and how it is told of a seat: its verb, and the rest."""


class Left(Exception):  # noqa: N818  nothing went wrong
    """The person leaves, or the input has ended."""


@dataclasses.dataclass
class Session:
    """A person at a table of policies: asks, tells what happens, and reads no hand but the person's own."""

    game: Game
    seat: int  # the person's
    policies: Mapping[int, Policy]  # who plays each other seat
    adviser: Policy | None  # whose probabilities are shown as hints
    lines: TextIO  # the person's answers
    out: TextIO  # where everything is told
    open: bool = False  # whether a line of cards lacks its end

    def run(self) -> None:
        """Play until the game is over or the person leaves; raises what a policy raises."""
        self._tell_deal()
        try:
            while self.game.turn is not None:
                if self.game.turn == self.seat:
                    self.take_turn()
                else:
                    self._move(int(decide(self.policies[self.game.turn], self.game.turns())[0]))
            self._say("", self._table(), self._result())
        except Left:
            standing = f" in round {self.game.round_number}. {self._points()}" if self.game.public.match else "."
            self._say("", f"You leave the {self.game.episode}{standing}")
        self.out.flush()

    def take_turn(self) -> None:
        """The person decides, unless there is nothing to decide."""
        legal = self.game.legal()
        if len(legal) == 1:
            return self._move(legal[0])
        self._show_turn()
        for word in self._answers():
            action = self._action_of(word)
            if action not in ACTIONS:
                self._say(f"{word!r} is none of {', '.join(legal)}; ? helps.")
                continue
            try:
                return self._move(action)
            except ValueError as error:
                self._say(f"{error}.{self._reason(action)}")
        return None

    def _answers(self) -> Iterable[str]:
        """What the person answers to the question of the turn, once and again; calls for help are seen to."""
        question = f"{QUESTIONS[self.game.phase]} ({', '.join(self.game.legal()).replace('deal ', '')}): "
        doubtful = False
        while True:
            self.out.write(question)
            self.out.flush()
            line = self.lines.readline()
            word = line.strip()
            if not self.lines.isatty():  # then nobody has seen it typed
                self._say(word)
            doubtful = word == "q" and "Q" in self._hand() and not doubtful
            if doubtful:
                self._say("Q plays the Queen; q once more leaves.")
            elif not line or (word.lower() in ("q", "quit", "exit") and word != "Q"):
                raise Left
            elif word == "?":
                self._say(HELP, *(f"  {rule}" for rule in self.game.rules.describe().splitlines()))
                self._show_turn()
            elif word:
                yield word

    def _action_of(self, word: str) -> str:
        """The action that a word means in this phase, if any; whether it is legal is the game's to say."""
        if self.game.phase == "choose":
            return f"deal {word.lower().removeprefix('deal').strip()}"
        if self.game.phase == "revive":
            return next((answer for answer in ANSWERS if answer.startswith(word.lower())), word)
        return "T" if word == "10" else word.upper()

    def _reason(self, action: str) -> str:
        """Which rule forbids a card that the person holds."""
        public = self.game.public
        if self.game.phase != "play" or action not in self._hand():
            return ""
        if public.ace_led:
            return " An Ace was led: everybody else plays his lowest."
        lowest = "or your lowest" if self.game.rules.follow == "may" else "or your lowest if you have none"
        return f" You may play what reaches the {RANKS[public.reference]}, {lowest}."

    def _show_turn(self) -> None:
        """The table, what is offered, and what the adviser would do."""
        legal = self.game.legal()
        self._say("", self._table())
        if self.game.phase == "revive":
            self._say("You may come back, once a match:", *(f"  {answer}: {ANSWERS[answer][0]}" for answer in legal))
        if self.adviser is not None:
            weights = self.adviser.probabilities(self.game.turns())[0]
            shares = ", ".join(f"{action} ({weights[ACTIONS.index(action)]:.0%})" for action in legal)
            self._say(f"Hints by {self.adviser.name}: {shares}")

    def _table(self) -> str:
        text = self.game.text(self.seat)
        if self.game.turn is not None:
            text = text.rpartition("\n")[0]  # the last line says what the question asks
        for mark, pad in (("\n> ", "   "), ("\n  ", "   "), ("led by ", "")):
            text = text.replace(f"{mark}seat {self.seat}", f"{mark}you{pad}")
        return text

    def _hand(self) -> str:
        return hand_text(self.game.view(self.seat).hand)

    def _points(self) -> str:
        alive = members(self.game.public.alive)
        totals = enumerate(self.game.totals)
        each = (f"{self._names([seat])}: {total}{'' if seat in alive else ' (out)'}" for seat, total in totals)
        return f"Points: {', '.join(each)}."

    def _names(self, seats: Sequence[int]) -> str:
        return ", ".join("you" if seat == self.seat else f"seat {seat}" for seat in seats)

    def _who(self, seat: int, verb: str) -> str:
        return f"You {verb}" if seat == self.seat else f"Seat {seat} {verb}s"

    def _say(self, *lines: str) -> None:
        self.out.writelines(f"{line}\n" for line in ([""] if self.open else []) + [*lines])
        self.open = False

    def _move(self, action: str | int) -> None:
        """Play an action and tell what it does; an illegal one raises ValueError and changes nothing."""
        before, forced = self.game.public, len(self.game.legal()) == 1
        self.game.play(action)
        seat, told = self.game.history[-1]
        if told in RANKS:
            self._tell_card(before, forced)
        elif told in ANSWERS:
            _, verb, rest = ANSWERS[told]
            self._say(f"{self._who(seat, verb)} {rest}.")
        for back in [seat] * (told == "chip") + members(before.away & ~self.game.public.away):
            self._say(f"{self._who(back, 'come')} back with {self.game.totals[back]} points.")
        self._tell_deal()

    def _tell_deal(self) -> None:
        """The head of a round, if it has just been dealt."""
        public = self.game.public
        if self.game.phase != "play" or public.trick or public.count:
            return
        seats = members(public.seats)
        kind = f"Sudden death ({self._names(seats)}), round" if public.tied else "Round"
        mine = f"your hand: {self._hand()}" if self.seat in seats else "you look on"
        deals = f"{self._who(public.dealer, 'deal').lower()} {public.hand_size} each"
        self._say("", f"{kind} {self.game.round_number}: {deals}; {mine}.")

    def _tell_card(self, before: Any, forced: bool) -> None:
        """The last card, the taker of a complete trick, the cost of a complete round; `before` is the table it met."""
        seat, card = self.game.history[-1]
        start = ", " if self.open else "            " if before.count else f"  Trick {before.trick + 1} – "
        self.out.write(f"{start}{self._names([seat])}{' must play' if forced and seat == self.seat else ':'} {card}")
        self.open = before.count + 1 < before.seats.bit_count()
        if self.open:
            return
        strength = self.game.rules.strength
        takes = not before.ace_led and strength(card) >= strength(RANKS[before.reference])
        self._say(f". {self._who(seat if takes else before.taker, 'take')} it.")
        if before.trick + 1 == before.hand_size:
            self._say(*(f"{self._who(seat, 'pay')} {cost}." for seat, cost in enumerate(self.game.penalties) if cost))
            if before.match and not before.tied:
                self._say(self._points())

    def _result(self) -> str:
        """Who has won, and how the person has done."""
        places = self.game.placement or []
        if self.game.episode == "round":
            return f"The round costs you {self.game.penalties[self.seat] or 'nothing'}."
        first = [seat for seat, place in enumerate(places) if place == 1]
        won = f"{self._who(first[0], 'win')} the match" if len(first) == 1 else f"First place: {self._names(first)}"
        return f"{won}; your place is {places[self.seat]} of {len(places)}."


def members(seats: int) -> list[int]:
    """The seats of a bit set, ascending."""
    return [seat for seat in range(int(seats).bit_length()) if seats >> seat & 1]


@dataclasses.dataclass
class Play:
    """Play Cucumber in the terminal against policies by name."""

    opponents: Annotated[tuple[str, ...], Positional, arg(metavar="POLICY ...", help_behavior_hint="")] = ("careful",)
    """One policy for all other seats (without any: careful), or one for each of them, by seat."""
    rules: str = "cucumber"
    """Rules: a preset, with changes after commas, such as `cucumber,hand_size=3`."""
    players: int = 4
    """Seats at the table."""
    episode: Literal["match", "round"] = "match"
    """What is played: a whole match or one round."""
    seed: Annotated[int | None, arg(metavar="INT")] = None
    """Names the deals and the opponents' luck, to have them again; drawn and told by default."""
    seat: int = 0
    """Your seat, from 0."""
    hints: FlagCreatePairsOff[bool] = False
    """Show how likely the adviser would be to take each legal action."""
    adviser: Annotated[str | None, arg(metavar="POLICY")] = None
    """Policy that gives the hints (by default the first opponent); naming one turns them on."""
    record: Annotated[str | None, arg(metavar="FILE")] = None
    """Write the match record to this file in the end, however you leave."""

    def session(self, lines: TextIO, out: TextIO) -> Session:
        """The session, after everything has been checked, policies by whether they can sit at the table.

        Raises:
            ValueError, TypeError, OSError, NotImplementedError: what is wrong with which argument.
        """
        rules = Rules.of(self.rules)
        others = [seat for seat in range(rules.check_players(self.players, name="players")) if seat != self.seat]
        if len(others) == self.players:
            raise ValueError(f"seat={self.seat} is out of range; allowed: 0 to {self.players - 1}")
        if len(self.opponents) not in (1, len(others)):
            raise ValueError(f"{len(self.opponents)} opponents for {len(others)} other seats; name one, or one a seat")
        if self.record is not None and (Path(self.record).is_dir() or not Path(self.record).absolute().parent.is_dir()):
            raise ValueError(f"record={self.record!r} must be a file in a folder that exists")
        seed = secrets.randbelow(1_000_000) if self.seed is None else self.seed
        game = Game.new(rules, self.players, seed, self.episode)
        made = [make(name) for name in self.opponents] * (len(others) // len(self.opponents))
        adviser = make(self.adviser or made[0]) if self.hints or self.adviser else None
        for policy in made:
            policy.check(rules, self.players, self.episode)
        if adviser is not None:
            adviser.probabilities(game.turns())
        out.write(f"{rules}, {self.players} players, one {self.episode}, seed {seed}. ? helps, q leaves.\n")
        out.write(f"You are seat {self.seat}; the others play {', '.join(self.opponents)}.\n")
        return Session(game, self.seat, dict(zip(others, made, strict=True)), adviser, lines, out)


def main(arguments: Sequence[str] | None = None, lines: TextIO | None = None, out: TextIO | None = None) -> int:
    """Play with `arguments` (by default those of the process), from `lines` to `out`, and return the exit code."""
    command = tyro.cli(Play, args=arguments, prog="play.py", description=__doc__)
    code = 2
    try:
        session = command.session(lines or sys.stdin, out or sys.stdout)
        code = 1
        try:
            session.run()
        finally:
            if command.record is not None:
                Path(command.record).write_text(session.game.record(), encoding="utf-8")
        return 0
    except (ValueError, TypeError, OSError, NotImplementedError) as error:
        print(f"play.py: error: {error}", file=sys.stderr)
        return code
    except KeyboardInterrupt:
        print("\nplay.py: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
