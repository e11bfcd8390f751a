"""Random numbers: the same names give the same cards everywhere, and different names nothing in common."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, hypergeom
from tables import Table, all_deals, packed, ranks_of

from cucumber_env import batch, kernel, randomness
from cucumber_env.batch import make_options, new_games, seed_word
from cucumber_env.envs.vector import SelfPlay
from cucumber_env.rules import MAX_CARDS, Rules
from cucumber_env.state import compile_rules

WEAK = 1e-5
"""A p-value below this is taken as a defect: all seeds are fixed, so that a pass stays a pass."""


def deals(rules: Rules, num_players: int, seeds: range, games: range, episodes: range) -> Iterator[np.ndarray]:
    """The first deals of all games and episodes, seed by seed: hands int64 ``[games × episodes, n]``."""
    index, episode = (axis.ravel() for axis in np.meshgrid(np.array(games), np.array(episodes), indexing="ij"))
    options = make_options(rules=rules, num_players=num_players, episode="round")
    table = new_games(len(index))
    rows = np.arange(len(index))
    for seed in seeds:
        batch.reset(compile_rules(rules), options, table, rows, seed_word(seed), index, episode)
        yield table["hands"][:, :num_players].copy()


def round_deals(rules: Rules, num_players: int, rounds: int, seed: int = 0) -> np.ndarray:
    """The deals of the first rounds of one match, int64 ``[rounds, n]``."""
    table = Table(rules, num_players).begin(seed=seed)
    record, compiled = table.record, compile_rules(rules)[0]
    hands = np.empty((rounds, num_players), np.int64)
    for number in range(rounds):
        table.public["round_index"] = number
        kernel.deal(compiled, record)
        hands[number] = record["hands"][:num_players]
    return hands


@settings(max_examples=50)
@given(
    st.integers(0, 2**80), st.sampled_from([Rules(), Rules.preset("three_card"), Rules(ranks="9TJQKA", hand_size=4)])
)
def test_a_game_is_the_same_in_any_batch(seed: int, rules: Rules) -> None:
    def hands_of(rows: list[int], **names: list[int]) -> list[list[int]]:
        table = SelfPlay(rules, num_games=max(rows) + 1, num_players=3, skip_forced=False)
        table.reset(seed=seed, rows=np.array(rows), **{name: np.array(numbers) for name, numbers in names.items()})
        return table.games["hands"][rows].tolist()

    whole = hands_of(list(range(20)))
    assert hands_of([4]) == [whole[4]]
    assert hands_of([7, 2, 11]) == [whole[7], whole[2], whole[11]]
    assert hands_of([0, 1], games=[13, 5]) == [whole[13], whole[5]]
    later = hands_of([0, 1, 2], games=[6, 6, 7], episodes=[0, 3, 3])
    assert later[0] == whole[6]
    for game, episode, hands in ((6, 3, later[1]), (7, 3, later[2])):
        table = Table(rules, 3).begin(match=False, seed=seed, game=game, episode=episode)
        assert table.record["hands"].tolist() == hands
    assert len({tuple(hands) for hands in whole + later[1:]}) == 22


def match_deals(rules: Rules, num_players: int, seed: int, player: int) -> dict[int, dict[int, list[int]]]:
    """Hands by round and seat of a match whose choices are those of random player `player`."""
    chance = Random(player)
    table = Table(rules, num_players).begin(seed=seed)
    found: dict[int, dict[int, list[int]]] = {}
    while table.phase != "over" and table.public["round_index"] < 40:
        if table.phase == "play":
            number = int(table.public["round_index"])
            if number not in found:
                found[number] = {seat: table.hand(seat) for seat in table.seats("seats")}
        table.play(chance.choice(table.legal()))
    return found


@pytest.mark.parametrize(
    "rules", [Rules(tie="all"), Rules.preset("revival"), Rules.preset("express"), Rules(threshold=60, hand_size=5)]
)
def test_deals_depend_on_no_earlier_play(rules: Rules) -> None:
    """A seat is dealt the same cards in a round, however the rounds before went and whoever is out by then."""
    line_ups = set()
    for seed in range(6):
        first = match_deals(rules, 5, seed, player=0)
        for player in (1, 2, 3):
            other = match_deals(rules, 5, seed, player=player)
            for number in first.keys() & other.keys():
                for seat in first[number].keys() & other[number].keys():
                    assert first[number][seat] == other[number][seat]
                line_ups.add(first[number].keys() == other[number].keys())
    assert rules.end == "fixed_rounds" or line_ups == {True, False}


def test_the_first_cards_are_the_same_whatever_the_dealer_chooses() -> None:
    rules = Rules.preset("concombre", hand_size=(1, 6))
    for seed in range(20):
        hands: list[Counter[int]] = []
        for choice in range(13, 19):
            table = Table(rules, 8).begin(seed=seed)
            table.play(choice)
            hands.append(Counter(13 * seat + rank for seat in range(8) for rank in table.hand(seat)))
        for fewer, more in itertools.pairwise(hands):
            assert fewer <= more
            assert (more - fewer).total() == 8


def test_names_of_streams_are_all_different() -> None:
    """No two of 7^5 neighbouring names are equal, so that fields do not stand in for each other."""
    names = {
        int(randomness.stream(np.uint64(s), g, e, r, p)) for s, g, e, r, p in itertools.product(range(7), repeat=5)
    }
    assert len(names) == 7**5


def fingerprints(hands: np.ndarray) -> np.ndarray:
    """A 64-bit number for each row of hands; two of 10⁶ different rows share one with probability 3e-8."""
    odd = np.random.default_rng(1).integers(0, 2**63, hands.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    words = hands.astype(np.uint64) * odd
    return (words ^ (words >> np.uint64(29))).sum(1, dtype=np.uint64)


def test_a_million_deals_are_all_different() -> None:
    """Neighbouring seeds, games, episodes and rounds of four hands of seven: 10⁶ deals, no two the same.

    By chance two would be with a probability of about 10⁻⁵.
    """
    seen = [fingerprints(hands) for hands in deals(Rules(), 4, range(9), range(1000), range(100))]
    seen += [fingerprints(round_deals(Rules(), 4, 10_000, seed)) for seed in range(10)]
    together = np.concatenate(seen)
    assert len(together) == 1_000_000
    # Round 0 of the matches of game 0 is episode 0 of the rounds: the same name, so the same deal.
    assert len(np.unique(together)) == len(together) - 9


def equal_pairs(hands: np.ndarray) -> int:
    """How many pairs of numbers are equal."""
    counts = np.unique(hands, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


def power_sum(power: int) -> float:
    """Σ p^power over all hands of seven: the coefficient of x⁷ in (Σ C(4,c)^power x^c)¹³, over C(52,7)^power."""
    polynomial = [1]
    for _ in range(13):
        polynomial = [
            sum(math.comb(4, c) ** power * polynomial[d - c] for c in range(5) if 0 <= d - c < len(polynomial))
            for d in range(8)
        ]
    return polynomial[7] / math.comb(52, 7) ** power


def test_hands_coincide_no_more_than_chance() -> None:
    """Pairs of equal hands of seven among 2 × 10⁵ neighbours, against their exact mean and variance."""
    assert math.isclose(power_sum(1), 1)
    pair, triple = power_sum(2), power_sum(3)
    for hands in (
        np.concatenate([dealt[:, 1] for dealt in deals(Rules(), 4, range(20), range(100), range(100))]),
        np.concatenate([dealt[:, 1] for dealt in deals(Rules(), 4, range(10), range(20_000), range(1))]),
        np.concatenate([round_deals(Rules(), 4, 5000, seed)[:, 1] for seed in range(40)]),
    ):
        n = len(hands)
        assert n == 200_000
        mean = math.comb(n, 2) * pair
        variance = math.comb(n, 2) * (pair - pair**2) + 6 * math.comb(n, 3) * (triple - pair**2)
        assert abs(equal_pairs(hands) - mean) < 5 * math.sqrt(variance)


def test_counts_of_every_rank_are_hypergeometric() -> None:
    hands = np.concatenate([dealt[:, 2] for dealt in deals(Rules(), 7, range(2), range(200), range(200))])
    expected = hypergeom(52, 4, 7).pmf(range(5)) * len(hands)
    for rank in range(13):
        observed = np.bincount(hands >> 4 * rank & 15, minlength=5)
        # Four of a kind are expected 10 times, so all five classes count.
        assert chisquare(observed, expected).pvalue > WEAK


def test_tiny_deals_are_exactly_as_likely_as_they_should_be() -> None:
    """All deals of two hands of two from 2 2 3 3 A A, each weighed by the number of deals of cards."""
    rules = Rules(ranks="23A", copies=2, hand_size=2)
    weights: Counter[tuple[int, ...]] = Counter()
    for cards in itertools.permutations(ranks_of("2233AA"), 4):
        weights[packed(cards[:2]), packed(cards[2:])] += 1
    assert len(weights) == len(list(all_deals(rules, 2)))
    hands = np.concatenate([*deals(rules, 2, range(4), range(250), range(200))])
    kinds, counts = np.unique(hands, axis=0, return_counts=True)
    observed = dict(zip(map(tuple, kinds.tolist()), counts.tolist(), strict=True))
    total = sum(weights.values())
    expected = [weights[deal] * len(hands) / total for deal in weights]
    assert chisquare([observed[deal] for deal in weights], expected).pvalue > WEAK


def test_neighbours_are_independent() -> None:
    """The card of a game tells nothing of the card of the next game, episode, round, seed or seat."""
    rules = Rules(hand_size=1)
    cards = np.stack([np.log2(d).astype(int) // 4 for d in deals(rules, 2, range(30), range(60), range(60))])
    cards = cards.reshape(30, 60, 60, 2)
    rounds = np.stack([np.log2(round_deals(rules, 2, 1000, seed)).astype(int) // 4 for seed in range(60)])
    neighbours = {
        "seed": (cards[:-1, ..., 0], cards[1:, ..., 0]),
        "game": (cards[:, :-1, :, 0], cards[:, 1:, :, 0]),
        "episode": (cards[..., :-1, 0], cards[..., 1:, 0]),
        "round": (rounds[:, :-1, 0], rounds[:, 1:, 0]),
    }
    for name, (one, next_one) in neighbours.items():
        table = np.bincount((13 * one + next_one).ravel(), minlength=169)
        assert chisquare(table).pvalue > WEAK, name
    seats = np.bincount((13 * cards[..., 0] + cards[..., 1]).ravel(), minlength=169).reshape(13, 13)
    expected = np.where(np.eye(13, dtype=bool), 4 * 3, 4 * 4) / (52 * 51) * seats.sum()
    assert chisquare(seats.ravel(), expected.ravel()).pvalue > WEAK


def test_first_dealers_are_uniform() -> None:
    for num_players in (2, 3, 7):
        options = make_options(rules=Rules(), num_players=num_players, episode="match")
        games = new_games(20_000)
        rows = np.arange(len(games))
        batch.reset(compile_rules(Rules()), options, games, rows, seed_word(5), rows, np.zeros_like(rows))
        dealers = np.bincount(games["public"]["dealer"], minlength=num_players)
        assert len(dealers) == num_players
        assert chisquare(dealers).pvalue > WEAK


def test_uniform_numbers_are_uniform() -> None:
    name = randomness.stream(np.uint64(3), 0, 0, 0, randomness.POLICY_STREAM)
    u = np.array([randomness.uniform(name, index) for index in range(20_000)])
    assert 0 <= u.min() < 1e-3
    assert 1 - 1e-3 < u.max() < 1
    assert chisquare(np.bincount((u * 100).astype(int), minlength=100)).pvalue > WEAK
    limits = (1, 2, 3, 52, 10**6, 2**31 - 1)
    for limit in limits:
        drawn = [randomness.below(name, index, limit) for index in range(200)]
        assert 0 <= min(drawn) <= max(drawn) < limit
        assert limit < 1000 or len(set(drawn)) > 190


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**63, 2**64 - 1])
def test_seeds_of_64_bits_stand_for_themselves(seed: Any) -> None:
    assert int(seed_word(seed)) == seed
    numpy_seed: Any = np.uint64(seed)
    assert int(seed_word(numpy_seed)) == seed


def test_huge_seeds_are_all_different() -> None:
    seeds = [2**64, 2**64 + 1, 2**128, 2**200 + 7, 10**400]
    words = {int(seed_word(seed)) for seed in seeds} | {0, 1, 7}
    assert len(words) == len(seeds) + 3


@pytest.mark.parametrize("seed", [True, 1.0, "1", None, np.float64(3), [1]])
def test_seeds_that_are_no_integers_are_refused(seed: Any) -> None:
    with pytest.raises(TypeError, match=r"seed=.* must be an integer ≥ 0, got"):
        seed_word(seed)


@pytest.mark.parametrize("seed", [-1, -(2**70), np.int64(-3)])
def test_negative_seeds_are_refused(seed: int) -> None:
    with pytest.raises(ValueError, match=rf"reset_seed={int(seed)} is out of range; allowed: any integer ≥ 0"):
        seed_word(seed, name="reset_seed")


def test_a_whole_deck_can_be_dealt() -> None:
    """Eight hands of six from 48 cards: nothing is left, and nothing is dealt twice."""
    rules = Rules(players=(2, 8), ranks="3456789TJQKA", hand_size=6)
    for hands in deals(rules, 8, range(3), range(20), range(1)):
        assert (hands.sum(1) == compile_rules(rules)["deck"][0]).all()
    assert 6 <= MAX_CARDS
