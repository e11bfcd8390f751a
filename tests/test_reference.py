"""The naive game against the worked cases of the rules, and against itself under random play."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference import (
    CHIP,
    DEAL,
    DECLINE,
    PRESETS,
    RANKS,
    SKIP,
    ReferenceGame,
    ReferenceRules,
    is_over_threshold,
    legal_cards,
    next_seat,
    penalties,
    points,
    rank_seats,
    round_leader,
    strength,
    take_trick,
    undealt_cards,
)

CASES = yaml.safe_load(Path(__file__).with_name("rule_cases.yaml").read_text())["cases"]


def ids(text):
    return [RANKS.index(letter) for letter in text]


def letters(ranks):
    return "".join(RANKS[rank] for rank in ranks)


def rules_of(case):
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in case.get("rules", {}).items()}
    return replace(PRESETS[case["variant"]], **fields)


def plays_of(case):
    """The plays of a case, clockwise from its leader over the seats still in."""
    seats = [seat for seat in range(case["n"]) if seat not in case.get("out", [])]
    plays, seat = [], case["leader"]
    for rank in ids(case["plays"]):
        plays.append((seat, rank))
        seat = next_seat(seats, seat)
    return plays


def shuffled(rules, seed):
    """A deal from a deck shuffled anew for every round."""

    def deal(round_index, seats, hand_size):
        deck = [rank for rank in ids(rules.ranks) for _ in range(rules.copies)]
        Random(f"{seed} {round_index}").shuffle(deck)
        return {seat: [deck.pop() for _ in range(hand_size)] for seat in seats}

    return deal


def game_of(rules, num_players, first_dealer=0, seed=0, episode="match"):
    return ReferenceGame(rules, num_players, first_dealer, shuffled(rules, seed), episode)


def cases(kind):
    chosen = [case for case in CASES if case["kind"] == kind]
    return pytest.mark.parametrize("case", chosen, ids=[case["id"] for case in chosen])


def test_every_kind_of_case_is_run():
    kinds = {"legal", "trick", "last_trick", "match", "seat", "deal", "revive", "trace"}
    assert {case["kind"] for case in CASES} == kinds


@cases("legal")
def test_legal(case):
    plays = list(enumerate(ids(case["plays"])))
    assert letters(legal_cards(rules_of(case), ids(case["hand"]), plays)) == case["expect"]["legal"]


@cases("trick")
def test_trick(case):
    taker = take_trick(rules_of(case), plays_of(case))
    assert (taker, taker) == (case["expect"]["winner"], case["expect"]["next_leader"])


@cases("last_trick")
def test_last_trick(case):
    rules, plays = rules_of(case), plays_of(case)
    assert take_trick(rules, plays) == case["expect"]["taker"]
    assert penalties(rules, plays) == {int(seat): due for seat, due in case["expect"]["penalties"].items()}


@cases("deal")
def test_deal(case):
    rules, expect = rules_of(case), case["expect"]
    if expect["ok"]:
        assert undealt_cards(rules, case["n"], case["hand_size"]) == expect["undealt"]
    else:
        with pytest.raises(ValueError, match="may not be dealt"):
            undealt_cards(rules, case["n"], case["hand_size"])


@cases("trace")
def test_trace(case):
    hands = [ids(hand) for hand in case["hands"]]
    rules = rules_of(case)
    game = ReferenceGame(rules, case["n"], case["dealer"], lambda *_: dict(enumerate(hands)), episode="round")
    if game.phase == "choose":
        game.play(DEAL + len(hands[0]))
    charged = None
    for trick in case["expect"]["tricks"]:
        assert game.leader == game.turn == trick["leader"]
        for rank, legal in zip(ids(trick["plays"]), trick["legal"], strict=True):
            assert letters(game.legal()) == legal
            charged = game.play(rank)
        assert game.tricks[-1]["taker"] == trick["winner"]
    expected = {int(seat): due for seat, due in case["expect"]["tricks"][-1]["penalties"].items()}
    assert game.last_penalties == expected
    assert charged == game.totals == [expected.get(seat, 0) for seat in range(case["n"])]
    assert game.phase == "over"


def table_of(case):
    """A game set to the totals of a case, in the round that the case settles."""
    rules = rules_of(case)
    game = game_of(rules, case["n"])
    game.totals = list(case["totals"])
    game.alive -= set(case.get("out_before", []))
    game.seats = sorted(game.alive)
    if "sudden_death" in case:
        game.alive, game.seats, game.tied = set(), case["sudden_death"], set(case["sudden_death"])
    if case.get("last_round"):
        game.round = rules.rounds - 1
    return game


def status_of(game):
    if game.tied:
        return "sudden_death"
    if game.phase != "over":
        return "continue"
    return "lost" if game.losers else "won"


@cases("match")
def test_match(case):
    game, expect = table_of(case), case["expect"]
    before = set(game.alive)
    game.settle({int(seat): due for seat, due in case["penalties"].items()})
    assert status_of(game) == expect["status"]
    assert game.totals == expect.get("totals", case["totals"])
    assert sorted(before - game.alive) == expect.get("out", expect.get("losers", []))
    assert sorted(game.tied) == expect.get("tied", [])
    assert game.losers == expect.get("losers", [])
    first = [seat for seat, place in enumerate(game.placement) if place == 1]
    assert first == ([expect["winner"]] if "winner" in expect else expect.get("best", []))


@cases("seat")
def test_seat(case):
    rules, expect = rules_of(case), case["expect"]
    seats = [seat for seat in range(case["n"]) if seat not in case["out"]]
    if "leader" in expect:
        assert round_leader(rules, seats, case["dealer"]) == expect["leader"]
    game = game_of(rules, case["n"], first_dealer=case["dealer"])
    game.alive = set(seats)
    game.seats = seats
    game.settle({})
    assert (game.dealer, game.leader) == (expect["next_dealer"], expect["next_leader"])


@cases("revive")
def test_revive(case):
    game, expect, seat = table_of(case), case["expect"], case["seat"]
    game.used = {seat} if case["used"] else set()
    game.settle({})
    how = {"chip": CHIP, "skip": SKIP, "decline": DECLINE}[case["how"]]
    asked = game.phase == "revive" and game.turn == seat
    assert (asked and how in game.legal()) == expect["ok"]
    if not expect["ok"]:
        return
    game.play(how)
    assert (seat in game.seats) == expect["plays_next_round"]
    assert (seat not in game.alive) == expect.get("out", False)
    if "rounds_skipped" in expect:
        assert rounds_until_back(game, seat) == expect["rounds_skipped"]
    if "total" in expect:
        assert game.totals[seat] == expect["total"]


def rounds_until_back(game, seat):
    rounds = 0
    while seat not in game.seats:
        rounds += 1
        game.settle({})
    return rounds


def test_points_and_strength():
    cucumber, concombre = PRESETS["cucumber"], PRESETS["concombre"]
    assert [points(cucumber, rank) for rank in range(13)] == list(range(2, 15))
    assert [points(concombre, rank) for rank in range(13)] == [2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10, 11]
    assert [strength(concombre, rank) for rank in range(13)] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8, 12]
    assert [strength(replace(cucumber, order="value"), rank) for rank in range(13)] == list(range(13))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"tie": "last"}, {0: 14}),
        ({"tie": "first"}, {0: 14}),
        ({"tie": "all"}, {0: 14, 1: 14}),
        ({"ace_lead": "none"}, {1: 14}),
        ({"payer": "lowest"}, {2: 14}),
        ({"payer": "lowest", "penalty": "own"}, {2: 2}),
        ({"payer": "non_winners"}, {1: 14, 2: 14}),
        ({"payer": "non_winners", "penalty": "own"}, {1: 14, 2: 2}),
    ],
)
def test_who_pays_under_a_led_ace(fields, expected):
    assert penalties(replace(PRESETS["cucumber"], **fields), [(0, 12), (1, 12), (2, 0)]) == expected


def test_tied_lowest_by_value():
    rules = replace(PRESETS["concombre"], payer="lowest", penalty="own")
    plays = list(enumerate(ids("JAK")))
    assert penalties(rules, plays) == {2: 10}
    assert penalties(replace(rules, tie="first"), plays) == {0: 10}
    assert penalties(replace(rules, tie="all"), plays) == {0: 10, 2: 10}


def dealt(rules, *hands, dealer):
    """A round with these hands, seat by seat."""
    hands = [ids(hand) for hand in hands]
    rules = replace(rules, hand_size=len(hands[0]))
    return ReferenceGame(rules, len(hands), dealer, lambda *_: dict(enumerate(hands)), episode="round")


def test_bounds_narrow_from_trick_to_trick():
    game = dealt(PRESETS["cucumber"], "59K", "38Q", "467", dealer=0)
    for rank in ids("Q4K"):
        game.play(rank)
    assert game.bounds == {0: (0, 12), 1: (0, 12), 2: (2, 9)}
    for rank in ids("936"):
        game.play(rank)
    assert game.bounds == {0: (0, 12), 1: (1, 6), 2: (4, 6)}


def test_bounds_of_a_throw_below_the_reference():
    must = dealt(PRESETS["cucumber"], "T2", "48", "JK", dealer=2)
    may = dealt(replace(PRESETS["cucumber"], follow="may"), "T2", "48", "JK", dealer=2)
    for game in (must, may):
        for rank in ids("T4K"):
            game.play(rank)
    assert must.bounds == {0: (0, 12), 1: (2, 7), 2: (0, 12)}
    assert may.bounds == {0: (0, 12), 1: (2, 12), 2: (0, 12)}


def test_bounds_under_a_led_ace_prove_the_lowest_only():
    game = dealt(PRESETS["cucumber"], "A2", "5A", "AA", dealer=2)
    for rank in ids("A5A"):
        game.play(rank)
    assert game.bounds == {0: (0, 12), 1: (3, 12), 2: (12, 12)}
    none = dealt(PRESETS["gurka_no_ace"], "A2", "56", "AA", dealer=2)
    for rank in ids("A5"):
        none.play(rank)
    assert none.bounds[1] == (3, 11)


def test_bounds_by_value():
    rules = replace(PRESETS["concombre"], follow="must")
    game = dealt(rules, "36", "QA", "4J", dealer=1)
    for rank in ids("Q"):
        game.play(rank)
    assert game.legal() == ids("J")
    game.play(ids("J")[0])
    assert (game.reference, game.taker) == (ids("J")[0], 2)
    game.play(ids("3")[0])
    assert game.bounds == {0: (1, 7), 1: (0, 12), 2: (0, 12)}


def revival_game(totals, **fields):
    game = game_of(replace(PRESETS["revival"], **fields), len(totals))
    game.totals = list(totals)
    return game


def test_offers_go_round_in_seat_order_and_a_chip_counts_for_the_next():
    game = revival_game([20, 31, 10, 35])
    game.settle({})
    assert (game.phase, game.turn, game.alive) == ("revive", 1, {0, 2})
    game.play(CHIP)
    assert (game.turn, game.totals[1], game.alive) == (3, 20, {0, 1, 2})
    game.play(SKIP)
    assert (game.seats, game.away, game.alive) == ([0, 1, 2], {3}, {0, 1, 2, 3})
    assert (game.round, game.dealer) == (1, 1)


def test_skip_returns_with_the_total_of_that_moment():
    game = revival_game([20, 31, 10])
    game.settle({})
    game.play(SKIP)
    assert (game.seats, game.dealer, game.totals) == ([0, 2], 2, [20, 31, 10])
    game.settle({2: 14})
    assert (game.seats, game.dealer, game.totals) == ([0, 1, 2], 0, [20, 24, 24])
    game.settle({1: 14})
    assert (game.phase, game.turn, game.alive) == ("play", game.leader, {0, 2})  # used: never asked again


def test_a_seat_away_wins_when_everybody_else_is_out():
    game = revival_game([20, 31, 20], tie="all")
    game.settle({})
    game.play(SKIP)
    game.settle({0: 12, 2: 12})
    assert (game.phase, game.placement, game.alive) == ("over", [2, 1, 2], {1})


def test_two_seats_away_return_to_an_empty_table():
    for rule, expected in (("reach", 29), ("exceed", 30)):
        game = revival_game([32, 31, 20, 20], tie="all", threshold_rule=rule)
        game.settle({})
        game.play(SKIP)
        game.play(SKIP)
        game.settle({2: 12, 3: 12})
        assert (game.turn, game.legal()) == (2, [DECLINE, CHIP, SKIP])
        game.play(DECLINE)
        game.play(DECLINE)
        assert (game.seats, game.totals[:2]) == ([0, 1], [expected] * 2)


def test_last_time_out_counts_for_the_final_ranking():
    game = revival_game([31, 0, 0, 0])
    game.settle({})
    game.play(CHIP)
    game.settle({1: 30})
    game.play(DECLINE)
    game.settle({0: 30})
    assert game.alive == {2, 3}
    game.settle({3: 30})
    assert game.placement == [3, 4, 1, 2]


def test_sudden_death_moves_the_deal_and_leaves_the_totals():
    game = game_of(PRESETS["wikipedia"], 4)
    game.totals = [30, 20, 20, 19]
    game.alive, game.seats = {1, 2, 3}, [1, 2, 3]
    game._out_round = {0: 0}
    game.round, game.dealer = 3, 2
    game.settle({1: 11, 2: 11, 3: 12})
    assert (game.tied, game.seats, game.dealer, game.round) == ({1, 2, 3}, [1, 2, 3], 3, 4)
    game.settle({1: 9, 2: 9, 3: 9})
    assert (game.tied, game.dealer, game.round) == ({1, 2, 3}, 1, 5)
    game.settle({1: 9})
    assert (game.tied, game.dealer, game.leader) == ({2, 3}, 2, 3)
    game.settle({3: 5})
    assert (game.phase, game.totals, game.placement) == ("over", [30, 31, 31, 31], [4, 2, 1, 2])


def test_fixed_rounds_ranking_with_a_tie_for_first():
    game = game_of(replace(PRESETS["express"], rounds=1), 4)
    game.totals = [9, 4, 4, 7]
    game.settle({})
    assert game.tied == {1, 2}
    game.settle({1: 14})
    assert game.placement == [4, 2, 1, 3]


def test_several_losers_share_the_last_place():
    game = game_of(replace(PRESETS["concombre"], tie="all"), 5)
    game.totals = [45, 12, 41, 12, 3]
    game.settle({0: 11, 2: 11})
    assert (game.losers, game.placement) == ([0, 2], [4, 2, 4, 2, 1])


def test_rank_seats_share_the_better_place():
    assert rank_seats([5, 7, 7, 9]) == [1, 2, 2, 4]


def test_illegal_actions_are_refused():
    game = game_of(PRESETS["concombre"], 3)
    assert game.legal() == [13, 14, 15, 16, 17]
    for action in (0, 12, 18, DECLINE):
        with pytest.raises(ValueError, match="not legal"):
            game.play(action)


def most_players(fields):
    """How many hands of the largest size the deck gives, at most 8 (RULES.md refuses more)."""
    largest = fields["hand_size"][1] if isinstance(fields["hand_size"], tuple) else fields["hand_size"]
    return min(8, len(fields["ranks"]) * fields["copies"] // largest)


@st.composite
def tables(draw):
    """Rules over every field, and a number of players they allow. No deck has cards of one strength only."""
    pick = {
        "hand_size": [1, 2, 3, 7, (1, 3), (2, 5)],
        "follow": ["must", "may"],
        "ace_lead": ["all_lowest", "none"],
        "order": ["natural", "value"],
        "points": ["face_14", "face_10"],
        "payer": ["taker", "lowest", "non_winners"],
        "penalty": ["highest", "own"],
        "tie": ["last", "first", "all"],
        "threshold_rule": ["reach", "exceed"],
        "end": ["last_survivor", "first_out_loses", "fixed_rounds"],
        "first_leader": ["left_of_dealer", "dealer"],
        "ranks": [RANKS, "9TJQKA", "23A", "TJQKA", "2468"],
        "copies": [4, 2, 1],
    }
    fields = {name: draw(st.sampled_from(values)) for name, values in pick.items()}
    assume(most_players(fields) >= 2)
    fixed = fields["end"] == "fixed_rounds"
    fields["rounds"] = draw(st.integers(1, 4)) if fixed else None
    fields["threshold"] = None if fixed else draw(st.sampled_from([30, 12, 1]))
    ways = ["none", "chip", "skip", "choice"] if fields["end"] == "last_survivor" else ["none"]
    fields["revival"] = draw(st.sampled_from(ways))
    return ReferenceRules(players=(2, 8), **fields), draw(st.integers(2, most_players(fields)))


def check_state(game):
    """What must hold whenever somebody is to act."""
    held = {len(game.hands[seat]) for seat in game.seats}
    assert max(held) - min(held) <= 1
    assert not game.away & set(game.seats)
    for seat, (low, high) in game.bounds.items():
        assert low <= high
        assert all(low <= strength(game.rules, rank) <= high for rank in game.hands[seat])
    legal = game.legal()
    assert legal == sorted(set(legal))
    assert legal
    if game.phase == "play":
        assert set(legal) <= set(game.hands[game.turn])
        assert game.turn in game.seats
    if game.phase == "revive":
        assert game.turn not in game.alive
        assert game.turn not in game.used
        assert len(legal) > 1


def play_randomly(game, chance):
    """Play a match at random; the totals move by exactly the penalties of its ordinary rounds."""
    while game.phase != "over":
        check_state(game)
        seat, phase, before = game.turn, game.phase, list(game.totals)
        cards, sudden_death, around = len(game.hands[seat]), bool(game.tied), game.round
        charged = game.play(chance.choice(game.legal()))
        if phase == "play" and game.round == around:
            assert len(game.hands[seat]) == cards - 1
        if charged is not None:
            check_totals(game, before, charged, sudden_death)
        assert game.round < 500


def check_totals(game, before, charged, sudden_death):
    assert sum(charged) > 0
    if sudden_death:
        assert game.totals == before
    elif game.rules.revival == "none":
        assert game.totals == [old + new for old, new in zip(before, charged, strict=True)]


def check_ranking(game):
    assert min(game.placement) == 1
    for place in game.placement:
        assert place == 1 + sum(other < place for other in game.placement)
    over = {s for s in range(game.num_players) if is_over_threshold(game.rules, game.totals[s])}
    if game.episode == "match" and game.rules.end == "first_out_loses":
        assert set(game.losers) == over
    if game.episode == "match" and game.rules.end != "first_out_loses":
        assert game.placement.count(1) == 1
        assert not game.losers


@settings(max_examples=150, deadline=None, derandomize=True)
@given(tables(), st.integers(0, 10**6), st.sampled_from(["match", "match", "round"]))
def test_random_play_ends(table, seed, episode):
    rules, num_players = table
    chance = Random(seed)
    game = game_of(rules, num_players, chance.randrange(num_players), seed, episode)
    play_randomly(game, chance)
    check_ranking(game)
    assert game.legal() == []
    assert game.turn is None
    if episode == "round":
        assert game.round == 0


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_presets_play_at_every_table_size(name):
    low, high = PRESETS[name].players
    for num_players in range(low, high + 1):
        game = game_of(PRESETS[name], num_players, seed=num_players)
        play_randomly(game, Random(num_players))
        check_ranking(game)


@pytest.mark.parametrize("revival", ["chip", "skip", "choice"])
@pytest.mark.parametrize("fields", [{"tie": "all"}, {"payer": "non_winners"}, {"payer": "lowest"}])
def test_revival_with_several_out_at_once(revival, fields):
    rules = replace(PRESETS["revival"], revival=revival, hand_size=2, ranks="89TJQKA", **fields)
    for seed in range(20):
        game = game_of(rules, 2 + seed % 5, seed=seed)
        play_randomly(game, Random(seed))
        check_ranking(game)
