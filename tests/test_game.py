"""`Game`: moves, views, copies, and the same game as the naive one, the vector face and the kernel."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference import ReferenceGame, ReferenceRules
from strategies import tables
from tables import ranks_of, text_of

from cucumber_env import kernel, state
from cucumber_env.cards import ACTIONS, hand_text, parse_hand
from cucumber_env.envs.vector import SelfPlay
from cucumber_env.game import Game
from cucumber_env.observation import Layout
from cucumber_env.policies import Policy, Turns, decide
from cucumber_env.rules import PRESETS, Rules
from cucumber_env.state import PUBLIC, VIEW

THREE = ["2479TQA", "358JJKA", "246689K"]
"""Hands of the first worked trace of rule_cases.yaml; seat 0 deals."""


def play_all(game: Game, cards: str) -> Game:
    for card in cards:
        game.play(card)
    return game


def played(game: Game, seed: int, *, decisions: int = 10**6) -> Game:
    """A game played on at random, to its end or by some `decisions`."""
    chance = Random(seed)
    for _ in range(decisions):
        if game.over or game.round_number > 100:
            break
        game.play(chance.choice(game.legal()))
    return game


def naive_twin(game: Game) -> ReferenceGame:
    """The naive game with the same cards."""
    return ReferenceGame(
        ReferenceRules(**dataclasses.asdict(game.rules)),
        game.players,
        int(game.public.dealer),
        lambda _round, seats, _size: {seat: ranks_of(game.hand(seat)) for seat in seats},
        game.episode,
    )


def assert_same(game: Game, naive: ReferenceGame) -> None:
    assert game.phase == naive.phase
    assert game.turn == naive.turn
    assert game.legal() == [ACTIONS[action] for action in naive.legal()]
    assert game.round_number == naive.round + 1
    assert game.penalties == [naive.last_penalties.get(seat, 0) for seat in range(game.players)]
    assert game.hands == [text_of(naive.hands[seat]) or "-" for seat in range(game.players)]
    assert game.placement == (naive.placement or None)
    if game.episode == "match":
        assert game.totals == naive.totals


@settings(max_examples=250)
@given(tables(most_points=40), st.integers(0, 2**64 - 1), st.sampled_from(["match", "round"]))
def test_lock_step_with_the_naive_game(table: tuple[Rules, int], seed: int, episode: str) -> None:
    game = Game.new(*table, seed=seed, episode=episode)
    naive = naive_twin(game)
    chance = Random(seed)
    assert_same(game, naive)
    while not game.over and game.round_number < 30:
        action = chance.choice(game.legal())
        game.play(action)
        naive.play(ACTIONS.index(action))
        assert_same(game, naive)


@pytest.mark.parametrize(("rules", "players"), [("cucumber", 4), ("concombre", 8), ("revival", 3), ("express", 7)])
def test_the_same_game_as_the_vector_face(rules: str, players: int) -> None:
    table = SelfPlay(rules, num_games=3, num_players=players, episode="match", skip_forced=False, autoreset=False)
    table.reset(seed=11, episodes=np.array([0, 5, 2]))
    games = [Game.new(rules, players, seed=11, game=i, episode_index=e) for i, e in enumerate((0, 5, 2))]
    chance = Random(1)
    for _ in range(60):
        running = np.array([i for i, game in enumerate(games) if not game.over])
        turns = table.turns(running)
        for row, game in enumerate(games[i] for i in running):
            own = game.turns()
            assert game.state == table.games[running[row]].tobytes()
            assert np.array_equal(turns.views[row : row + 1], own.views)
            assert own.views.tobytes() == game.view().tobytes()
            assert np.array_equal(turns.observation[row], own.observation[0])
            assert np.array_equal(turns.observation[row], game.observation())
            assert np.array_equal(turns.mask[row], own.mask[0])
            assert turns.u[row] == own.u[0]
        actions = np.array([ACTIONS.index(chance.choice(games[i].legal())) for i in running])
        table.step(actions, rows=running)
        for i, action in zip(running, actions, strict=True):
            games[i].play(action)


def test_a_policy_plays_a_game() -> None:
    class Highest(Policy):
        """The strongest card; asked only where there is a choice."""

        def act(self, turns: Turns) -> np.ndarray:
            assert len(turns) == 1
            assert turns.mask.sum() > 1
            return turns.mask.shape[1] - 1 - turns.mask[:, ::-1].argmax(axis=1)

    game, by_hand = Game.new("cucumber", 3, seed=4), Game.new("cucumber", 3, seed=4)
    while not game.over:
        game.play(decide(Highest(), game.turns())[0])
        by_hand.play(by_hand.legal()[-1])
    assert game == by_hand
    assert game.history == by_hand.history
    with pytest.raises(ValueError, match="nobody is to decide"):
        game.turns()


def test_a_worked_round() -> None:
    game = Game.from_hands(THREE)
    assert (game.phase, game.turn, game.legal()) == ("play", 1, ["3", "5", "8", "J", "K", "A"])
    play_all(game, "599A")
    assert (game.turn, game.legal()) == (1, ["3"])  # an Ace is led: the lowest
    assert game.hands == ["247TQ", "38JJKA", "24668K"]
    play_all(game, "32TJK8QKJ42A6486")
    assert (game.over, game.winner, game.placement, game.penalties) == (False, None, None, [0, 0, 0])
    game.play("7")
    assert (game.over, game.phase, game.turn, game.legal()) == (True, "over", None, [])
    assert game.penalties == [0, 8, 0]
    assert game.totals == [0, 0, 0]  # a single round has no totals
    assert (game.placement, game.winner) == ([1, 3, 1], None)
    assert game.history[:4] == [(1, "5"), (2, "9"), (0, "9"), (0, "A")]
    assert "".join(action for _, action in game.history) == "599A32TJK8QKJ42A64867"


def test_the_end_of_a_match_from_given_totals() -> None:
    game = Game.from_hands(["A", "K"], "cucumber,hand_size=1", dealer=1, episode="match", totals=[16, 28], seed=1)
    play_all(game, "A")
    assert game.legal() == ["K"]
    game.play("K")
    assert (game.totals, game.over, game.winner, game.placement) == ([30, 28], True, 1, [2, 1])


def test_revival_by_hand() -> None:
    """A26: a seat out is asked, skips a round, and comes back with the highest total of the others in."""
    game = Game.by_hand("revival,hand_size=1", 3, dealer=2, totals=[20, 10, 5])
    assert (game.phase, game.turn, game.legal()) == ("deal", None, [])
    game.deal(["A", "2", "3"])
    play_all(game, "A23")
    assert (game.phase, game.turn, game.legal()) == ("revive", 0, ["decline", "chip", "skip"])
    game.play("skip")
    assert (game.phase, game.totals) == ("deal", [34, 10, 5])
    with pytest.raises(ValueError, match=r"hands for seats \[0, 1, 2\]; those that take part: \[1, 2\]"):
        game.deal(["4", "5", "6"])
    game.deal(["-", "5", "6"])
    assert (game.public.dealer, game.turn) == (1, 2)
    play_all(game, "65")
    assert game.totals == [11, 10, 11]
    assert game.given == {1: {0: "A", 1: "2", 2: "3"}, 2: {1: "5", 2: "6"}}


def test_under_a_dealers_choice_given_hands_say_how_many() -> None:
    game = Game.from_hands(["5TA", "37Q", "29K", "48J"], "concombre", dealer=2)
    assert game.history == [(2, "deal 3")]
    play_all(game, "9JTQ7K4528A3")
    assert game.penalties == [11, 0, 0, 0]


def test_the_cards_after_given_hands_come_from_the_seed() -> None:
    game = Game.from_hands(["2", "3"], "cucumber,hand_size=1", episode="match", seed=9)
    dealt = Game.new("cucumber,hand_size=1", 2, seed=9)
    play_all(game, "32")
    play_all(dealt, "".join(hand for hand in (dealt.hands if dealt.turn == 0 else dealt.hands[::-1])))
    assert game.round_number == dealt.round_number == 2
    assert game.hands == dealt.hands
    assert Game.from_hands(["2", "3"], "cucumber,hand_size=1", episode="match", seed=10) != game


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ("2", r"action '2' of seat 1 is illegal \(no such card in hand\); legal: 3, 5, 8, J, K, A"),
        (0, r"action '2' of seat 1 is illegal"),
        ("chip", r"action 'chip' of seat 1 is illegal.*legal: 3, 5"),
        ("10", r"action '10' does not exist"),
        (23, r"action 23 does not exist"),
    ],
)
def test_illegal_actions_name_action_seat_and_the_legal_ones(action: str | int, why: str) -> None:
    game = Game.from_hands(THREE)
    before = game.copy()
    with pytest.raises(ValueError, match=why):
        game.play(action)
    assert game == before
    assert game.history == []


def test_an_illegal_card_in_hand() -> None:
    game = play_all(Game.from_hands(THREE), "5")
    with pytest.raises(ValueError, match=r"^action '4' of seat 2 is illegal; legal: 6, 8, 9, K$"):
        game.play("4")


def test_nothing_can_be_played_when_nobody_is_to_decide() -> None:
    over = play_all(Game.from_hands(["5QA", "36K"], "three_card"), "35A6QK")
    with pytest.raises(ValueError, match="the round is over"):
        over.play("K")
    waiting = Game.by_hand("three_card", 2)
    with pytest.raises(ValueError, match=r"round 1 waits for its cards; give them by deal\(\)"):
        waiting.play("K")
    with pytest.raises(ValueError, match=r"round 1 does not wait for cards \(phase 'over'\)"):
        over.deal(["5QA", "36K"])


NEW: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"rules": "cucmber"}, ValueError, "did you mean 'cucumber'"),
    ({"rules": 7}, TypeError, "rules must be"),
    ({"players": 8}, ValueError, "players=8 is out of range; allowed: 2 to 7"),
    ({"players": 2.0}, TypeError, "players=2.0 must be an integer"),
    ({"seed": -1}, ValueError, "seed=-1 is out of range"),
    ({"seed": None}, TypeError, "seed=None must be an integer"),
    ({"episode": "game"}, ValueError, "episode='game' is not one of its values; allowed: match, round"),
    ({"game": -1}, ValueError, "game=-1 is out of range"),
    ({"episode_index": True}, TypeError, "episode_index=True must be an integer"),
]


@pytest.mark.parametrize(("arguments", "error", "why"), NEW)
def test_bad_arguments_are_named(arguments: dict[str, Any], error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        Game.new(**arguments)


BY_HAND: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"dealer": 4}, ValueError, "dealer=4 is out of range; allowed: 0 to 3"),
    ({"dealer": "0"}, TypeError, "dealer='0' must be an integer"),
    ({"totals": [0, 0, 0]}, ValueError, "must be 4 numbers"),
    ({"totals": [0, 0, 0, 30]}, ValueError, r"totals\[3\]=30 is out of range; allowed: 0 to 29"),
    ({"totals": [0, 0, 0, 0], "episode": "round"}, ValueError, "belong to matches"),
]


@pytest.mark.parametrize(("arguments", "error", "why"), BY_HAND)
def test_bad_set_ups_are_named(arguments: dict[str, Any], error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        Game.by_hand(**arguments)


@pytest.mark.parametrize(
    ("hands", "rules", "error", "why"),
    [
        ("5QA", "three_card", TypeError, "must be a list of texts"),
        ([5, 6], "three_card", TypeError, "must be a list of texts"),
        (["5QA"], "three_card", ValueError, "players=1 is out of range"),
        (["5QA", "36"], "three_card", ValueError, "seat 1 has 2 cards; each is dealt 3"),
        (["5QA", "-"], "three_card", ValueError, r"hands for seats \[0\]"),
        (["QQQ", "QQ3"], "three_card", ValueError, "5 cards of rank Q in the hands; the deck has 4"),
        (["234567", "234567"], "concombre", ValueError, "the dealer deals 1 to 5 cards"),
        (["23", "234"], "concombre", ValueError, "seat 1 has 3 cards; each is dealt 2"),
    ],
)
def test_hands_that_cannot_be_dealt(hands: Any, rules: str, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        Game.from_hands(hands, rules)


@pytest.mark.parametrize("seat", [-1, 3, True, "0"])
def test_seats_are_checked(seat: Any) -> None:
    game = Game.from_hands(THREE)
    for ask in (game.view, game.observation, game.explain, game.hand, game.text):
        with pytest.raises((ValueError, TypeError), match=f"seat={seat!r}"):
            ask(seat)


@pytest.mark.parametrize("copied", [Game.copy, copy.copy, copy.deepcopy, lambda game: pickle.loads(pickle.dumps(game))])
@pytest.mark.parametrize("name", ["concombre", "revival"])
def test_copies_continue_the_same_game(name: str, copied: Callable[[Game], Game]) -> None:
    game = played(Game.new(name, 4, seed=3), seed=1, decisions=50)
    twin = copied(game)
    before = twin.state
    assert twin == game
    played(game, seed=2)
    assert twin.state == before  # playing one leaves the other alone
    assert twin != game
    played(twin, seed=2)
    assert twin == game
    assert twin.record() == game.record()


def test_copies_of_games_by_hand() -> None:
    game = Game.by_hand("three_card", 2)
    twin = copy.deepcopy(game)
    twin.deal(["5QA", "36K"])
    assert (game.phase, game.given) == ("deal", {})
    assert pickle.loads(pickle.dumps(twin)).record() == twin.record()


def test_rewound_games_begin_again() -> None:
    game = Game.new("cucumber", 5, seed=8)
    start = game.state
    played(game, seed=1)
    assert game.rewound().state == start
    assert game.rewound().history == []


def test_games_are_equal_by_what_happened_and_what_will() -> None:
    assert Game.new(seed=1) == Game.new(seed=1)
    assert Game.new(seed=1) != Game.new(seed=2)
    assert Game.new("agurk", seed=1) != Game.new("cucumber", seed=1)
    assert Game.new(seed=1, episode="round") != Game.new(seed=1)
    assert Game.from_hands(THREE) != Game.from_hands(THREE, seed=0)
    assert Game.new() != "game"


def test_views_are_copies_of_what_a_seat_may_know() -> None:
    game = play_all(Game.from_hands(THREE), "5")
    view = game.view(0)
    assert view.dtype.fields == VIEW.fields
    assert (view.seat, hand_text(view.hand)) == (0, "2479TQA")
    assert np.frombuffer(view.tobytes(), VIEW)["public"][0].tobytes() == game.public.tobytes()
    view.public.turn = 0
    view.hand = 0
    game.public.turn = 0
    assert (game.turn, game.hand(0)) == (2, "2479TQA")
    rules = state.compile_rules(game.rules)[0]
    assert kernel.legal(rules, game.view().public, game.view().hand) == sum(1 << r for r in ranks_of("689K"))


def test_the_public_record_is_that_of_the_kernel() -> None:
    public = Game.from_hands(THREE).public
    assert public.dtype.fields == PUBLIC.fields
    assert (public.leader, public.dealer, public.hand_size, public.played.shape) == (1, 0, 7, (8, 7))


@settings(max_examples=60)
@given(st.sampled_from(sorted(PRESETS)), st.integers(2, 5), st.integers(0, 2**32))
def test_nothing_hidden_is_shown(name: str, players: int, seed: int) -> None:
    """Other cards in the other hands (and another seed): the same view, observation and text of the seat."""
    game = played(Game.new(name, players, seed=seed), seed=seed, decisions=seed % 40)
    assume(game.phase == "play")
    seat = seed % players
    chance = Random(seed)
    unseen = [rank for rank in range(13) for _ in range(4)]
    for rank in [*ranks_of(game.hand(seat).strip("-")), *(r for r in game.public.played.flat if r >= 0)]:
        unseen.remove(rank)
    chance.shuffle(unseen)
    other = game.copy()
    for opponent in range(players):
        if opponent != seat:
            cards = "".join(text_of([unseen.pop()]) for _ in game.hand(opponent).strip("-"))
            other._games["hands"][0, opponent] = parse_hand(cards)
    other._games["seed"] = seed + 1
    assert other.view(seat).tobytes() == game.view(seat).tobytes()
    assert np.array_equal(other.observation(seat, history=True), game.observation(seat, history=True))
    assert other.text(seat) == game.text(seat)
    for opponent in range(players):
        if opponent != seat and len(game.hand(opponent)) > 2:
            assert game.hand(opponent) in game.text()


@pytest.mark.parametrize(("seats", "history"), [(None, False), (8, False), (None, True)])
def test_observations_are_those_of_their_layout(seats: int | None, history: bool) -> None:
    game = play_all(Game.from_hands(THREE), "59")
    layout = Layout.of(game.rules, 3, "round", seats, history)
    row = game.observation(seats=seats, history=history)
    assert (row.dtype, row.shape) == (np.int8, (layout.size,))
    assert game.explain(seats=seats, history=history) == layout.explain(row)
    lines = dict(line.split(maxsplit=1) for line in game.explain(seats=seats, history=history).splitlines())
    assert (lines["hand"], lines["legal"], lines["reference"]) == ("2479TQA", "9TQA", "9")
    assert game.explain(2).splitlines()[0].endswith("24668K")


def test_masks_are_the_legal_actions() -> None:
    game = Game.new("concombre", 3, seed=2)
    assert (game.action_mask.dtype, game.action_mask.shape) == (np.int8, (23,))
    for _ in range(40):
        assert [ACTIONS[action] for action in np.flatnonzero(game.action_mask)] == game.legal()
        game.play(game.legal()[-1])
    assert Game.new("cucumber").action_mask.shape == (13,)


def test_text_for_spectators_and_for_seats() -> None:
    game = play_all(Game.from_hands(THREE), "599")
    for hand in ("247TQA", "38JJKA", "24668K"):
        assert hand in str(game)
    text = game.text(2)
    assert "24668K" in text
    assert "247TQA" not in text
    assert "38JJKA" not in text
    assert "6 to decide" not in repr(game)
    assert repr(game) == "<Game of 3 players, round 1, seat 0 to decide>"


def test_the_taker_of_a_finished_trick_is_marked_before_he_leads() -> None:
    game = Game.from_hands(["2479TQA", "358JJKA", "246689K"], dealer=0)
    for card in ("5", "9", "9"):
        game.play(card)
    seats = [line for line in str(game).splitlines() if "seat" in line and "." in line]
    assert ["*" in line for line in seats[-3:]] == [True, False, False]
