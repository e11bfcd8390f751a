"""The agent that sees all cards: brute force in plain Python plays as it does, and leaks stand out beside it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import reference
from responses import Responding

from cucumber_env import arena, exact
from cucumber_env.arena import match
from cucumber_env.arena import seer as seers
from cucumber_env.arena.seer import Seer, suspects, unjudged
from cucumber_env.baselines import BASELINES
from cucumber_env.envs.vector import SelfPlay
from cucumber_env.policies import Policy, PolicyError, Turns, decide, make
from cucumber_env.rules import Rules
from cucumber_env.state import PLAY

LOWEST, HIGHEST = 0, -1
"""Where in its legal actions a player of the naive game looks."""


def unpacked(hand: int) -> list[int]:
    return [rank for rank in range(13) for _ in range(int(hand) >> 4 * rank & 15)]


def naive_game(rules: Rules, record: Any, players: int) -> reference.ReferenceGame:
    """The naive game of a round that has just been dealt."""
    hands = {seat: unpacked(record["hands"][seat]) for seat in range(players)}
    dealer = int(record["public"]["dealer"])
    return reference.ReferenceGame(rules, players, dealer, lambda *_: hands, episode="round")


def cost(game: reference.ReferenceGame, action: int, base: int, others: int) -> tuple[int, int]:
    """Own penalty, and minus that of the others, if `action` is played and then as `base` and `others` say."""
    trial, seat = copy.deepcopy(game), game.turn
    owed = trial.play(action)
    while owed is None:
        owed = trial.play(trial.legal()[base if trial.turn == seat else others])
    return owed[seat], owed[seat] - sum(owed)


def naive_round(game: reference.ReferenceGame, seat: int, base: int, others: int) -> tuple[list[int], list[int]]:
    """What everybody owes, and the free choices of `seat`, which sees all cards; the others look where they do."""
    owed, chosen = None, []
    while owed is None:
        legal = game.legal()
        action = legal[others]
        if game.turn == seat:
            action = min(legal, key=lambda card: (*cost(game, card, base, others), card))
            chosen += [action] if len(legal) > 1 else []
        owed = game.play(action)
    return owed, chosen


class Watched(Seer):
    """A seer that writes down its free choices by deal and seat."""

    def __init__(self, base: str) -> None:
        super().__init__(base)
        self.chosen: dict[tuple[int, int], list[int]] = {}

    def foresee(self, games: SelfPlay, rows: np.ndarray, sits: np.ndarray, policies: Any) -> np.ndarray:
        actions = super().foresee(games, rows, sits, policies)
        free = games.buffers.mask[rows].sum(axis=1) > 1
        for row, action in zip(rows[free], actions[free], strict=True):
            record = games.games[row]
            place = int(record["game"]), int(record["public"]["turn"])
            self.chosen.setdefault(place, []).append(int(action))
        return actions


@pytest.mark.parametrize(
    ("rules", "players"),
    [
        ("cucumber,hand_size=3", 2),
        ("cucumber,hand_size=4", 3),
        ("concombre,hand_size=3", 4),
        ("inverted,hand_size=3", 3),
        ("wikipedia,hand_size=4", 2),
    ],
)
@pytest.mark.parametrize("base", ["highest", "lowest"])
def test_brute_force_takes_the_same_cards(rules: str, players: int, base: str) -> None:
    """Every card of every deal, foreseen with the game in plain Python; nothing of the kernel but the deal."""
    book, deals, seed = Rules.of(rules), 15, 5
    field, positions = ("lowest", LOWEST) if base == "highest" else ("highest", HIGHEST)
    one = Watched(base)
    table: list[Any] = [one, *[make(field)] * (players - 1)]
    result = arena.play(table, rules=book, deals=deals, seed=seed)
    dealt = SelfPlay(book, num_games=deals, num_players=players, skip_forced=False, observe=False)
    dealt.reset(seed=seed, episodes=arena.EVALUATION_EPISODE)
    several = 0
    for deal in range(deals):
        for seat in range(players):
            game = naive_game(book, dealt.games[deal], players)
            owed, chosen = naive_round(game, seat, HIGHEST if base == "highest" else LOWEST, positions)
            assert result.penalties[deal, seat].tolist() == owed  # the one sits at the seat of the rotation's number
            assert one.chosen.get((deal, seat), []) == chosen
            several += len(chosen)
    assert several > deals


@pytest.mark.parametrize("field", ["random", "highest", "lowest_sufficient", "careful"])
@pytest.mark.parametrize(("rules", "players"), [("cucumber", 4), ("literal", 3), ("inverted", 5), ("three_card", 2)])
def test_it_never_pays_more_than_its_base_would(field: str, rules: str, players: int) -> None:
    """On no deal: so it foresees what really comes, `random` drawing what it will draw."""
    seen, base = (
        arena.play([one, *[make(field)] * (players - 1)], rules=rules, deals=60, seed=2)
        for one in (Seer(), make("careful"))
    )
    paid, owed = seen.of(0, seen.penalties), base.of(0, base.penalties)
    assert (paid <= owed).all()
    assert (paid < owed).any()


@pytest.mark.parametrize(
    ("rules", "players"), [("cucumber", 4), ("concombre", 3), ("revival", 4), ("express,rounds=3", 2)]
)
def test_it_wins_matches(rules: str, players: int) -> None:
    """Its own matches and its base's, on the same deals; offers to come back and sizes of hands are its base's."""
    deals: dict[str, Any] = {"rules": rules, "num_players": players, "episode": "match", "deals": 20, "seed": 1}
    (row,) = arena.compare_with(Seer(), ["careful"], **deals)
    assert row.difference.low > 0.1


def test_what_is_not_about_cards_is_up_to_its_base() -> None:
    games = SelfPlay("concombre,hand_size=3-7", num_games=50, num_players=3, episode="match", observe=False)
    games.reset(seed=1)
    turns = games.turns()
    assert (turns.views["public"]["phase"] != PLAY).all()
    everybody = [Seer("random"), make("random")]
    actions = everybody[0].foresee(games, np.arange(50), np.zeros((50, 3), int), everybody)  # type: ignore[attr-defined]
    assert actions.tolist() == decide(make("random"), turns).tolist()
    assert len(set(actions.tolist())) > 1


def test_games_are_left_as_they_are_and_parts_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    games = SelfPlay(num_games=40, num_players=4, observe=False)
    games.reset(seed=3)
    before, mask = games.games.tobytes(), games.buffers.mask.copy()
    rows, sits = np.arange(5, 40), np.tile([0, 1, 1, 1], (35, 1))
    one, players = Seer(), [Seer(), make("random")]
    at_once = one.foresee(games, rows, sits, players)
    monkeypatch.setattr(seers, "COPIES", 20)
    assert one.foresee(games, rows, sits, players).tolist() == at_once.tolist()
    assert games.games.tobytes() == before
    assert (games.buffers.mask == mask).all()


def test_it_is_no_policy_that_anybody_could_train_against() -> None:
    with pytest.raises(ValueError, match="unknown policy 'seer'"):
        make("seer")
    games = SelfPlay(num_games=2)
    games.reset()
    with pytest.raises(TypeError, match="needs the games themselves: it sits at tables of the arena alone"):
        Seer().act(games.turns())
    with pytest.raises(PolicyError, match="policy 'seer' raised TypeError: the seer needs the games themselves"):
        decide(Seer(), games.turns())
    with pytest.raises(ValueError, match="unknown policy 'carefull'"):
        Seer("carefull")


class Failing(Policy):
    """Plays high, and fails at a trick of a game."""

    name = "failing"

    def __init__(self, draw: float) -> None:
        self.draw = draw

    def act(self, turns: Turns) -> np.ndarray:
        if (turns.u == self.draw).any():
            raise ZeroDivisionError("of no use")
        return make("highest").act(turns)


def test_a_policy_that_fails_in_a_game_foreseen_is_named() -> None:
    """At the third card on, of the game of deal 7."""
    games = SelfPlay("three_card", num_games=20, num_players=2, skip_forced=False, observe=False)
    at = games.reset(seed=4, episodes=arena.EVALUATION_EPISODE)
    games.step(at.mask.argmax(axis=1))
    bad = Failing(games.draws()[7])
    with pytest.raises(match.TableError) as caught:
        arena.play([Seer(), bad], rules="three_card", deals=20, seed=4)
    assert (caught.value.policy, caught.value.deal) == ("failing", 7)
    assert "policy 'failing' raised ZeroDivisionError: of no use, in a game that the seer foresaw" in str(caught.value)


class Peeking(Policy):
    """Sees all hands of the games that are played, takes all others for a policy that it knows, and plays accordingly.

    Of other games than those it sees its own cards alone, and plays as `careful`.
    """

    name = "peeking"
    guess = "careful"

    def __init__(self, games: Callable[[], SelfPlay]) -> None:
        self.games = games

    def act(self, turns: Turns) -> np.ndarray:
        games = self.games()
        waiting = np.flatnonzero(games.buffers.mask.any(axis=1))
        place = dict(zip(self.keys(games.turns(waiting)), waiting, strict=True))
        rows = np.array([place.get(key, -1) for key in self.keys(turns)])
        actions = make("careful").act(turns)
        known = rows >= 0  # what the seer foresees is none of these games
        rows, which = np.unique(rows[known], return_inverse=True)  # rotations of a deal begin alike
        sits = (np.arange(games.num_players) != games.buffers.turn[rows][:, None]).astype(int)
        actions[known] = Seer().foresee(games, rows, sits, [make("careful"), make(self.guess)])[which]
        return actions

    @staticmethod
    def keys(turns: Turns) -> list[tuple[float, bytes]]:
        """What tells a turn from all others; rotations of a deal share the number."""
        return [(u, view.tobytes()) for u, view in zip(turns.u, turns.views, strict=True)]


@pytest.fixture
def peeking(monkeypatch: pytest.MonkeyPatch) -> Peeking:
    """A policy that sees all hands of whatever table of the arena it sits at."""
    made: list[SelfPlay] = []

    class Open(SelfPlay):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            made.append(self)

    monkeypatch.setattr(match, "SelfPlay", Open)
    return Peeking(lambda: made[-1])


def measured(guests: list[Any], fields: list[Any], **options: Any) -> tuple[list[Any], list[Any]]:
    """Guests among fields, and the seer among them."""
    return [row for one in guests for row in arena.compare_with(one, fields, **options)], arena.compare_with(
        Seer(), fields, **options
    )


@pytest.mark.parametrize(
    ("options", "guess"),
    [
        ({"num_players": 4, "deals": 200}, "careful"),
        ({"num_players": 4, "deals": 200}, "champion"),
        ({"num_players": 4, "deals": 12, "episode": "match"}, "careful"),
        ({"num_players": 3, "deals": 150, "rules": "concombre"}, "careful"),
    ],
)
def test_a_leak_is_found_and_nobody_else(options: dict[str, Any], guess: str, peeking: Peeking) -> None:
    """It knows what to make of its knowledge among those whom it guesses right."""
    peeking.guess = guess
    fields = ["careful", "champion"] if "rules" not in options else ["careful", "control"]
    fields = [guess] if "episode" in options else fields
    rows, seen = measured([*fields, "highest", peeking], fields, seed=6, **options)
    found = suspects(rows, seen)
    assert [(one["policy"], one["field"]) for one in found] == [("peeking", guess)]
    assert "half of the way from the best scripted policy (careful, " in found[0]["text"]
    assert unjudged(rows, seen) == {}


def test_no_honest_policy_of_a_small_game_is_suspect_and_a_leak_is(peeking: Peeking) -> None:
    """Three cards, two players: baselines, an equilibrium, and the most that any honest policy can gain."""
    rules, peeking.guess = "three_card", "highest"
    solved, _ = exact.solve(rules, nash_conv=0.01)
    solved.name = "solved"
    responses = [Responding(rules, field) for field in ("highest", "careful", "lowest")]
    fields = [*map(make, BASELINES), solved]
    rows, seen = measured([*fields, *responses, peeking], fields, rules=rules, num_players=2, deals=2000, seed=8)
    found = suspects(rows, seen)
    assert ("peeking", "highest") in [(one["policy"], one["field"]) for one in found]
    assert {one["policy"] for one in found} == {"peeking"}
    assert {"lowest", "random"} <= unjudged(rows, seen).keys() <= {"lowest", "random", "solved"}  # anybody beats those


def test_where_hidden_cards_matter_little_nobody_is_suspect(peeking: Peeking) -> None:
    options: dict[str, Any] = {"rules": "cucumber,hand_size=2", "num_players": 2, "deals": 500}
    rows, seen = measured(["highest", peeking], ["highest"], **options)
    assert suspects(rows, seen) == []
    assert "too little lies between them to judge by" in unjudged(rows, seen)["highest"]


def comparison(policy: str, gain: float, half_width: float = 0.0, episode: str = "round") -> arena.Comparison:
    some = arena.Estimate(0.5, 0.0, 10)
    difference = arena.Estimate(-gain if episode == "round" else gain, half_width, 10)
    return arena.Comparison(policy, "weak", 4, episode, some, some, difference, some)


@pytest.mark.parametrize("episode", ["round", "match"])
def test_the_line_is_half_way_and_all_intervals_count(episode: str) -> None:
    def found(gain: float, width: float = 0.0, *, base: float = 0.2, base_width: float = 0.0, top: float = 0.0) -> bool:
        seen = [comparison("seer", 1.0, top, episode), comparison("careful", base, base_width, episode)]
        return bool(suspects([comparison("mine", gain, width, episode)], seen))

    assert (found(0.61), found(0.59)) == (True, False)  # between 0.2 and 1
    assert (found(0.72, 0.1), found(0.69, 0.1)) == (True, False)
    assert (found(0.66, top=0.1), found(0.64, top=0.1)) == (True, False)
    assert (found(0.66, base_width=0.1), found(0.64, base_width=0.1)) == (True, False)
    assert (found(0.51, base=-3.0, base_width=9.0), found(0.49, base=-3.0)) == (True, False)  # as its field plays
    assert (found(2.0, base=0.89), found(2.0, base=0.91), found(2.0, base=0.85, top=0.1)) == (True, False, False)


def test_without_a_scripted_policy_there_is_no_line() -> None:
    rows, seen = [comparison("mine", 9.0)], [comparison("seer", 1.0)]
    assert suspects(rows, seen) == []
    assert unjudged(rows, seen) == {"weak": "no scripted policy was measured in its place"}
    assert suspects(rows, []) == []
    assert suspects([comparison("highest", 0.1), *rows], seen)[0]["policy"] == "mine"
