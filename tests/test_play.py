"""Playing by hand: what a person is asked and told, that nothing hidden is shown, and what is refused."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import play
from cucumber_env import policies
from cucumber_env.cards import ACTIONS, parse_hand
from cucumber_env.game import Game
from cucumber_env.policies import Policy, Turns, decide, make
from cucumber_env.rules import RANKS, Rules

SCRIPT = Path(play.__file__)
HANDS = ["2479TQA", "358JJKA", "246689K"]
"""Seat 0 deals, so seat 1 leads."""


class Person(io.StringIO):
    """Answers at random one of the actions that the question offers, as a person would type it."""

    def __init__(self, out: io.StringIO, seed: int) -> None:
        super().__init__()
        self.out, self.chance = out, Random(seed)

    def readline(self, *_: Any) -> str:
        offered = re.search(r"\((.+)\): $", self.out.getvalue())
        assert offered is not None
        word = self.chance.choice(offered[1].split(", "))
        return self.chance.choice([word, word.lower()] if word != "Q" else [word]) + "\n"


class Sheet(Policy):
    """Plays given cards in turn."""

    def __init__(self, cards: str) -> None:
        self.cards = iter(cards)

    def act(self, turns: Turns) -> np.ndarray:
        return np.array([ACTIONS.index(next(self.cards))])


def typed(arguments: str, text: str) -> tuple[int, str]:
    """Exit code and output for a text typed in."""
    out = io.StringIO()
    return play.main(arguments.split(), io.StringIO(text), out), out.getvalue()


def session(game: Game, opponents: Policy, text: str = "", seat: int = 0, adviser: Policy | None = None) -> Any:
    others = {other: opponents for other in range(game.players) if other != seat}
    return play.Session(game, seat, others, adviser, io.StringIO(text), io.StringIO())


def told(game: Game, opponents: Policy, text: str, **options: Any) -> str:
    """Everything that is told while a person types a text."""
    table = session(game, opponents, text, **options)
    table.run()
    return str(table.out.getvalue())


@pytest.mark.parametrize(
    "arguments",
    [
        "careful --players 4 --episode round --seat 3 --seed 8",
        "highest lowest random --players 4 --seed 2",
        "careful --rules concombre --players 3 --seat 1 --seed 5 --hints",
        "random --rules concombre --players 5 --episode round --seed 4",
        "random --rules revival,hand_size=3 --players 5 --seed 3 --adviser lowest",
        "random --rules wikipedia,hand_size=1,ranks=KA,threshold=15 --players 3 --seed 3",
        "control --rules express,hand_size=2 --players 2 --seed 6",
        "highest --rules inverted --players 7 --episode round --seed 9",
        "random --rules literal,hand_size=2 --players 6 --seed 1",
    ],
)
@pytest.mark.parametrize("taste", range(3))
def test_whole_games(arguments: str, taste: int, tmp_path: Path) -> None:
    """The record agrees with the rules; cards, takers, costs and totals in the output agree with the record."""
    file = tmp_path / "record.txt"
    out = io.StringIO()
    assert play.main([*arguments.split(), "--record", str(file)], Person(out, taste), out) == 0
    game = Game.from_record(file.read_text(encoding="utf-8"))
    assert game.over
    text = out.getvalue()
    seat = int(arguments.partition("--seat ")[2][:1] or 0)
    assert_tells(text, game, seat)


def assert_tells(text: str, game: Game, me: int) -> None:
    """Read the output of a whole game as a person does, and find the game in it."""
    names = ["you" if seat == me else f"seat {seat}" for seat in range(game.players)]
    body = re.sub(r"^Points: .*$", "", text, flags=re.MULTILINE)
    cards = re.findall(r"(you|seat \d)(?:: | must play )([2-9TJQKA])(?=[,.\n])", body)
    plays = [(seat, action) for seat, action in game.history if action in RANKS]
    assert [(names.index(name), card) for name, card in cards] == plays
    takers = re.findall(r"^.*\. (You|Seat \d) takes? it\.$", text, re.MULTILINE)
    expected, costs, standings = takers_costs_and_standings(game)
    assert len(takers) == len(expected)
    for taker, seats in zip(takers, expected, strict=True):
        assert names.index(taker.lower()) in seats
    points = [line.replace(" (out)", "") for line in re.findall(r"^Points: (.*)\.$", text, re.MULTILINE)]
    assert points == [
        ", ".join(f"{name}: {total}" for name, total in zip(names, totals, strict=True)) for totals in standings
    ]
    paid = re.findall(r"^(You|Seat \d) pays? (\d+)\.$", text, re.MULTILINE)
    *_, last = text.splitlines()
    if game.episode == "round":
        assert last == f"The round costs you {game.penalties[me] or 'nothing'}."
    else:
        first = [name for name, place in zip(names, game.placement or [], strict=True) if place == 1]
        winner = f"{first[0].capitalize()} win{'' if first == ['you'] else 's'} the match"
        won = winner if len(first) == 1 else f"First place: {', '.join(first)}"
        assert last == f"{won}; your place is {(game.placement or [])[me]} of {game.players}."
    assert [(names.index(name.lower()), int(cost)) for name, cost in paid] == costs


def takers_costs_and_standings(game: Game) -> tuple[list[set[int]], list[tuple[int, int]], list[list[int]]]:
    """Who can have taken each trick (who led the next one; of last tricks, as payments tell), who paid what, totals."""
    takers, costs, standings, everybody = [], [], [], set(range(game.players))
    twin = game.rewound()
    for _, action in game.history:
        before = twin.public
        twin.play(action)
        if action not in RANKS or before.count + 1 < int(before.seats).bit_count():
            continue
        if before.trick + 1 < before.hand_size:
            takers.append({int(twin.public.leader)})
            continue
        payers = {payer for payer, cost in enumerate(twin.penalties) if cost}
        costs += [(payer, twin.penalties[payer]) for payer in sorted(payers)]
        standings += [twin.totals] if before.match and not before.tied else []
        kept = {other for other in everybody if before.seats >> other & 1} - payers
        takers.append({"taker": payers, "non_winners": kept, "lowest": everybody}[game.rules.payer])
    return takers, costs, standings


def test_a_seed_repeats_the_game_of_every_face() -> None:
    """A text written before the program is run, from the game alone; forced turns take no line of it."""
    game, twin = (Game.new("concombre", 3, 7, "match") for _ in range(2))
    careful, lines, chance = make("careful"), [], Random(5)
    while not game.over:
        mine = game.turn == 2
        action = chance.choice(game.legal()) if mine else ACTIONS[decide(careful, game.turns())[0]]
        if mine and len(game.legal()) > 1:
            lines.append(action)
        game.play(action)
    table = session(twin, careful, "\n".join(lines), seat=2)
    table.run()
    assert table.game == game
    assert table.lines.read() == ""
    code, text = typed("careful --rules concombre --players 3 --seed 7 --seat 2", "\n".join(lines))
    assert code == 0
    assert text.endswith(table.out.getvalue())


def test_what_a_person_sees() -> None:
    out = told(Game.from_hands(HANDS, dealer=1), Sheet("8J34"), "10\n")
    assert (
        out
        == """
Round 1: seat 1 deals 7 each; your hand: 2479TQA.
  Trick 1 – seat 2: 8

One round: trick 1 of 7, led by seat 2
          played  hand
> you     .       2479TQA
  seat 1  .       ???????  deals
  seat 2  8*      ??????
Your card (9, T, Q, A): 10
            you: T, seat 1: J. Seat 1 takes it.
  Trick 2 – seat 1: 3, seat 2: 4

One round: trick 2 of 7, led by seat 1
          played  hand
> you     T  .    2479QA
  seat 1  J* 3    ?????   deals
  seat 2  8  4*   ?????
Your card (4, 7, 9, Q, A):\x20

You leave the round.
"""
    )


@pytest.mark.parametrize(
    ("word", "answer"),
    [
        (
            "4",
            "action '4' of seat 0 is illegal; legal: 9, T, Q, A. You may play what reaches the 9, or your lowest if ",
        ),
        ("k", "action 'K' of seat 0 is illegal (no such card in hand); legal: 9, T, Q, A.\n"),
        ("1", "'1' is none of 9, T, Q, A; ? helps.\n"),
        ("deal 3", "'deal 3' is none of 9, T, Q, A; ? helps.\n"),
        ("queen", "'queen' is none of 9, T, Q, A; ? helps.\n"),
        ("q", "Q plays the Queen; q once more leaves.\n"),
        ("", "Your card (9, T, Q, A): "),
        ("?", "\nCards: type 2 to 9, T or 10"),
    ],
)
def test_answers_that_play_nothing(word: str, answer: str) -> None:
    game = Game.from_hands(HANDS)
    out = told(game, Sheet("59"), f"{word}\n")
    question = "Your card (9, T, Q, A): "
    assert out.split(question, 1)[1].startswith(f"{word}\n{answer}")
    assert out.count(question) == 2  # asked once more, then the text ends
    assert game.history == [(1, "5"), (2, "9")]
    assert out.endswith("\nYou leave the round.\n")


def test_reasons_of_led_aces_and_of_concombre() -> None:
    two_lowest = Game.from_hands(["TJA", "2KA", "59Q"], "three_card,order=value,points=face_10")
    out = told(two_lowest, Sheet("A"), "a\n")
    assert "illegal; legal: T, J. An Ace was led: everybody else plays his lowest.\n" in out
    free = Game.from_hands(["369", "58A", "57Q"], "concombre", dealer=1)
    out = told(free, Sheet("85"), "6\n9\n")
    assert "illegal; legal: 3, 9. You may play what reaches the 8, or your lowest.\n" in out


@pytest.mark.parametrize(
    ("text", "moves"),
    [("q", 2), ("q\nq\n9\n", 2), ("quit\n9\n", 2), ("EXIT\n", 2), ("q\n9\n", 3), ("q\nQ\n", 3), ("", 2)],
)
def test_leaving_with_a_queen_in_hand(text: str, moves: int) -> None:
    game = Game.from_hands(HANDS)
    assert told(game, Sheet("59"), text).endswith("You leave the round.\n")
    assert len([seat for seat, _ in game.history[:3]]) == moves


def test_a_forced_turn_is_played_and_told() -> None:
    game = Game.from_hands(["46K", "2KA", "59Q"], "three_card")
    out = told(game, Sheet("A29"), "")
    assert "  Trick 1 – seat 1: A, seat 2: 5, you must play 4. Seat 1 takes it.\n" in out
    assert out.count("must play") == 3  # always the person: that somebody else had no choice tells of his hand
    assert out.endswith("\nThe round costs you nothing.\n")


def test_decisions_in_words() -> None:
    game = Game.by_hand("concombre", 2)
    table = session(game, make("lowest"), "6\n0\nfour\nDeal 3\n")
    table.take_turn()
    assert table.out.getvalue().split("How many cards do you deal (1, 2, 3, 4, 5): ")[1:] == [
        "6\naction 'deal 6' of seat 0 is illegal; legal: deal 1, deal 2, deal 3, deal 4, deal 5.\n",
        "0\n'0' is none of deal 1, deal 2, deal 3, deal 4, deal 5; ? helps.\n",
        "four\n'four' is none of deal 1, deal 2, deal 3, deal 4, deal 5; ? helps.\n",
        "Deal 3\n",
    ]
    assert game.history == [(0, "deal 3")]


@pytest.mark.parametrize(
    ("word", "answer", "telling"),
    [
        ("CHIP", "chip", "You take a chip.\nYou come back with 20 points.\n"),
        ("s", "skip", "You skip a round.\n"),
        ("decline", "decline", "You decline to come back.\n"),
    ],
)
def test_offers_of_revival(word: str, answer: str, telling: str) -> None:
    """Seat 0 leads its Ace, which nobody beats, and goes out."""
    rules = Rules.of("revival,hand_size=1")
    game = Game.from_hands(["A", "2", "3", "4"], rules, dealer=3, episode="match", totals=[20, 20, 7, 0], seed=1)
    table = session(game, make("lowest"), f"no\n{word}\n")
    table.run()
    before, _, after = table.out.getvalue().partition("Do you come back (decline, chip, skip): ")
    assert "You pay 14.\nPoints: you: 34 (out), seat 1: 20, seat 2: 7, seat 3: 0.\n" in before
    assert "  chip: you play the next round, with the highest total of the others still in\n" in before
    assert after.startswith("no\n'no' is none of decline, chip, skip; ? helps.\n")
    assert after.split(": ", 1)[1].startswith(f"{word}\n{telling}")
    assert (0, answer) in game.history
    if answer == "skip":
        assert "; you look on.\n" in after
        (back,) = re.finditer(r"You come back with \d+ points\.\n\n(.*)\n", after)
        assert re.fullmatch(r"Round 3: .* 1 each; your hand: [2-9TJQKA]\.", back[1])


def test_a_led_ace_takes_an_ace() -> None:
    out = told(Game.from_hands(["A", "A"], "cucumber,hand_size=1", dealer=1), make("lowest"), "")
    assert "you must play A, seat 1: A. You take it.\nYou pay 14.\n" in out


def test_sudden_death_is_told() -> None:
    rules = "wikipedia,hand_size=1,threshold=14"
    game = Game.from_hands(["A", "A"], rules, dealer=1, episode="match", totals=[5, 5], seed=4)
    out = told(game, make("lowest"), "")
    assert "You pay 14.\nSeat 1 pays 14.\nPoints: you: 19 (out), seat 1: 19 (out).\n" in out
    assert "\n\nSudden death (you, seat 1), round 2: you deal 1 each; " in out
    assert out.count("Points") == 1  # its penalties do not count


class Closed(Game):
    """A game that keeps from whoever asks what seat 0 may not know."""

    def view(self, seat: int | None = None) -> Any:
        assert seat == 0
        return super().view(seat)

    def text(self, seat: int | None = None) -> str:
        assert seat == 0
        return super().text(seat)

    def hidden(self, *_: Any) -> Any:
        raise AssertionError("this tells of other hands")

    hand = observation = explain = record = hidden  # type: ignore[assignment]
    hands = state = property(hidden)  # type: ignore[assignment]


@pytest.mark.parametrize("rules", ["cucumber", "concombre", "revival"])
def test_a_whole_match_without_a_look_at_other_hands(rules: str) -> None:
    out = io.StringIO()
    game = Closed.new(rules, 3, 1)
    careful = make("careful")
    play.Session(game, 0, {1: careful, 2: careful}, careful, Person(out, 1), out).run()
    assert game.over


def shuffled(game: Game, seat: int, chance: Random) -> Game:
    """The same game to `seat`, the cards of all others mixed."""
    others = [other for other in range(game.players) if other != seat]
    cards = [card for other in others for card in game.hand(other).strip("-")]
    chance.shuffle(cards)
    twin = game.copy()
    for other in others:
        size = len(game.hand(other).strip("-"))
        twin._games["hands"][0, other] = parse_hand("".join(cards[:size]))
        cards = cards[size:]
    return twin


@pytest.mark.parametrize("rules", ["cucumber", "concombre"])
def test_cards_that_others_hold_change_nothing_that_is_shown(rules: str) -> None:
    game, chance, careful, changed = Game.new(rules, 4, 3), Random(2), make("careful"), 0
    while not game.over:
        if game.turn == 0 and len(game.legal()) > 1:
            twin = shuffled(game, 0, chance)
            shown = [told(each, careful, "?\n", adviser=careful) for each in (game.copy(), twin)]
            assert shown[0] == shown[1]
            changed += game.text() != twin.text()
        game.play(chance.choice(game.legal()))
    assert changed > 5


def test_cards_that_others_keep_change_nothing_that_is_told() -> None:
    deals = [HANDS, ["2479TQA", "5577889", "3399TTT"]]
    one, other = (told(Game.from_hands(hands), Sheet("59"), "9\n") for hands in deals)
    assert "you: 9" in one
    assert one == other


def test_hints_are_the_probabilities_of_the_adviser() -> None:
    game = Game.from_hands(HANDS)
    game.play("5")
    game.play("9")
    assert "Hints by random: 9 (25%), T (25%), Q (25%), A (25%)\n" in told(
        game.copy(), make("lowest"), "", adviser=make("random")
    )
    assert "Hints by highest: 9 (0%), T (0%), Q (0%), A (100%)\n" in told(
        game.copy(), make("lowest"), "", adviser=make("highest")
    )
    for arguments, name in (
        ("lowest --hints", "lowest"),
        ("lowest highest random --hints", "lowest"),
        ("lowest --adviser highest", "highest"),
    ):
        assert f"\nHints by {name}: " in typed(f"{arguments} --seed 5", "")[1]
    assert "Hints" not in typed("lowest --seed 5", "")[1]


def test_the_end_of_the_input_ends_the_game(tmp_path: Path) -> None:
    file = tmp_path / "record.txt"
    code, text = typed(f"careful --seed 5 --record {file}", "2\n")
    assert code == 0
    assert re.search(r"\n\nYou leave the match in round \d+\. Points: you: \d+, seat 1: \d+.*\.\n$", text)
    game = Game.from_record(file.read_text(encoding="utf-8"))
    assert not game.over
    assert (0, "2") in game.history


def test_a_seed_is_drawn_and_told() -> None:
    code, text = typed("", "")
    assert code == 0
    again = typed(f"careful --seed {re.search(r'seed ([0-9]+)', text)[1]}", "")  # type: ignore[index]
    assert again == (0, text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("carefull", "unknown policy 'carefull' (did you mean 'careful'"),
        ("careful --adviser nobody", "unknown policy 'nobody'"),
        ("careful highest", "2 opponents for 3 other seats; name one, or one a seat"),
        ("careful --rules cucumbre", "unknown preset 'cucumbre'"),
        ("careful --players 8", "players=8 is out of range; allowed: 2 to 7"),
        ("careful --seat 4", "seat=4 is out of range; allowed: 0 to 3"),
        ("careful --seat -1", "seat=-1 is out of range; allowed: 0 to 3"),
        ("careful --seed -1", "seed=-1 is out of range"),
        ("checkpoint", "which agent? write checkpoint:FOLDER"),
        ("champion --rules concombre", "no agent was trained for matches of concombre with 4 players"),
        ("careful --record no/such/folder/file", "record='no/such/folder/file' must be a file in a folder that exists"),
        ("careful --record .", "record='.' must be a file in a folder that exists"),
    ],
)
def test_bad_arguments(arguments: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(arguments, "") == (2, "")
    err = capsys.readouterr().err
    assert err.startswith("play.py: error: ")
    assert message in err


class Silent(Policy):
    """Plays the first legal card and cannot say how likely it was."""

    samples_only = True

    def act(self, turns: Turns) -> np.ndarray:
        return turns.mask.argmax(axis=1)


class Weary(Silent):
    """Fails when the table has seen some cards."""

    def act(self, turns: Turns) -> np.ndarray:
        if turns.views["public"]["moves"][0] > 9:
            raise ValueError("enough")
        return super().act(turns)


def test_policies_that_cannot(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(policies, "_FACTORIES", {**policies._FACTORIES, "silent": Silent, "weary": Weary})
    assert typed("silent --hints", "") == (2, "")
    assert "only samples" in capsys.readouterr().err
    assert typed("silent --adviser highest", "")[0] == 0
    out, file = io.StringIO(), tmp_path / "record.txt"
    assert play.main(["weary", "--record", str(file)], Person(out, 1), out) == 1
    assert capsys.readouterr().err == "play.py: error: policy 'weary' raised ValueError: enough\n"
    assert len(Game.from_record(file.read_text(encoding="utf-8")).history) >= 10


def test_interrupted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    class Hand(io.StringIO):
        def readline(self, *_: Any) -> str:
            raise KeyboardInterrupt

    file = tmp_path / "record.txt"
    assert play.main(["careful", "--record", str(file)], Hand(), io.StringIO()) == 130
    assert capsys.readouterr().err == "\nplay.py: interrupted\n"
    assert Game.from_record(file.read_text(encoding="utf-8")).turn == 0


def test_in_a_pipe(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "careful", "--seed", "5", "--episode", "round"],
        input="2\n",
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == typed("careful --seed 5 --episode round", "2\n")[1]
