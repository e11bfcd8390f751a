"""Duplicate deals, rotations, exact zeros, and intervals that cover what they claim to cover."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
from scipy import stats

from cucumber_env import arena
from cucumber_env.arena import match
from cucumber_env.arena.statistics import student_t
from cucumber_env.envs.vector import SelfPlay
from cucumber_env.policies import Policy, PolicyError, Turns
from cucumber_env.rules import Rules


class Lowest(Policy):
    """The lowest legal action."""

    name = "my_lowest"

    def act(self, turns: Turns) -> np.ndarray:
        return turns.mask.argmax(axis=1)


class Highest(Policy):
    """The highest legal action."""

    name = "my_highest"

    def act(self, turns: Turns) -> np.ndarray:
        return turns.mask.shape[1] - 1 - turns.mask[:, ::-1].argmax(axis=1)


class Uniform(Policy):
    """Any legal action."""

    name = "my_random"

    def probabilities(self, turns: Turns) -> np.ndarray:
        return turns.mask / turns.mask.sum(axis=1, keepdims=True)


class Answer(Policy):
    """The same answer whatever is asked."""

    name = "my_answer"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def act(self, turns: Turns) -> np.ndarray:
        return self.answer(turns)


TABLES = [
    ("cucumber", 4, "round"),
    ("cucumber,hand_size=3", 2, "round"),
    ("literal", 3, "round"),
    ("concombre", 5, "round"),
    ("cucumber", 3, "match"),
    ("revival", 4, "match"),
    ("concombre", 4, "match"),
    ("express,rounds=3", 2, "match"),
]


def dealt(rules: Rules, num_players: int, deals: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The first hands (packed counts ``[deals, seats]``) and dealers of the arena's deals."""
    games = SelfPlay(rules, num_games=deals, num_players=num_players, skip_forced=False, observe=False)
    games.reset(seed=seed, episodes=arena.EVALUATION_EPISODE)
    return games.games["hands"][:, :num_players].copy(), games.games["public"]["dealer"].copy()


def unpacked(hand: int) -> list[int]:
    return [rank for rank in range(13) for _ in range(int(hand) >> 4 * rank & 15)]


def play_reference(rules: Rules, hands: np.ndarray, dealer: int, highest: list[bool]) -> list[int]:
    """Penalties by seat of a round in which some seats play their highest, the others their lowest legal card."""
    held = {seat: unpacked(hand) for seat, hand in enumerate(hands)}
    game = reference.ReferenceGame(rules, len(hands), int(dealer), lambda *_: held, episode="round")
    owed = None
    while owed is None:
        legal = game.legal()
        owed = game.play(legal[-1 if highest[game.turn] else 0])
    return owed


@pytest.mark.parametrize("rules", ["cucumber", "three_card", "inverted", "literal", "wikipedia", "gurka_no_ace"])
def test_every_rotation_plays_the_cards_of_the_naive_game(rules: str) -> None:
    book = Rules.of(rules)
    hands, dealers = dealt(book, 3, 20, seed=7)
    result = arena.play([Highest(), Lowest(), Lowest()], rules=book, deals=20, seed=7)
    for deal in range(20):
        for rotation in range(3):
            highest = [seat == rotation for seat in range(3)]  # position 0 moves to the seat of the rotation's number
            expected = play_reference(book, hands[deal], dealers[deal], highest)
            assert result.penalties[deal, rotation].tolist() == expected


@pytest.mark.parametrize(("rules", "num_players", "episode"), TABLES)
def test_a_batch_plays_as_games_one_by_one(rules: str, num_players: int, episode: str) -> None:
    table = [Uniform(), Highest(), Lowest(), Uniform(), Highest()][:num_players]
    result = arena.play(table, rules=rules, deals=range(40, 46), seed=3, episode=episode)
    game = SelfPlay(
        rules, num_players=num_players, episode=episode, reward="points", skip_forced=False, autoreset=False
    )
    for deal in range(6):
        for rotation in range(num_players):
            at = game.reset(seed=3, games=np.array([40 + deal]), episodes=arena.EVALUATION_EPISODE)
            points = np.zeros(num_players)
            while at.turn[0] >= 0:
                policy = table[(at.turn[0] - rotation) % num_players]
                at = game.step(policy.act(game.turns()))
                points -= at.rewards[0]
            final = game.games["public"][0]
            paid = points if episode == "round" else final["totals"][:num_players]
            np.testing.assert_array_equal(result.penalties[deal, rotation], paid)
            if result.outcomes is not None:
                won = result.outcomes[deal, rotation] > 0
                place = final["placement"][:num_players]
                lost = final["out_round"][:num_players] >= 0 if rules == "concombre" else place > 1
                np.testing.assert_array_equal(won, ~lost)


@pytest.mark.parametrize(("rules", "num_players", "episode"), TABLES)
def test_alike_is_exactly_zero(rules: str, num_players: int, episode: str) -> None:
    policies = [Uniform(), Uniform()]
    result = arena.round_robin(policies, rules=rules, num_players=num_players, deals=30, episode=episode)
    differences = [result.pairs[0].difference, *(row.difference for line in result.against for row in line)]
    assert [(each.mean, each.half_width) for each in differences] == [(0.0, 0.0)] * 5
    scores = [row.score for line in result.against for row in line]
    assert scores == [scores[0]] * 4


@pytest.mark.parametrize(("rules", "num_players", "episode"), TABLES)
def test_results_depend_on_the_seed_alone(rules: str, num_players: int, episode: str) -> None:
    table = [Uniform(), Highest(), *[Uniform()] * (num_players - 2)]
    options: dict[str, Any] = {"rules": rules, "episode": episode}
    result = arena.play(table, deals=25, seed=1, **options)
    for batch in (1, 7 * num_players, 1000):
        again = arena.play(table, deals=25, seed=1, batch=batch, **options)
        np.testing.assert_array_equal(again.penalties, result.penalties)
        np.testing.assert_array_equal(again.scores, result.scores)
    part = arena.play(table, deals=range(10, 25), seed=1, **options)
    np.testing.assert_array_equal(part.scores, result.scores[10:])
    assert (arena.play(table, deals=25, seed=2, **options).scores != result.scores).any()


def test_one_policy_alone_plays_every_rotation_alike() -> None:
    policy = Uniform()
    alone = arena.play([policy] * 4, deals=50, seed=2)
    apart = arena.play([Uniform() for _ in range(4)], deals=50, seed=2)
    np.testing.assert_array_equal(alone.penalties, apart.penalties)
    assert (alone.penalties == alone.penalties[:, :1]).all()


def test_exchanging_the_policies_of_two_seats_exchanges_the_rotations() -> None:
    high, rand = Highest(), Uniform()
    one, other = (arena.play(table, deals=40, seed=5) for table in ([high, rand], [rand, high]))
    np.testing.assert_array_equal(one.penalties, other.penalties[:, ::-1])
    np.testing.assert_array_equal(one.of(0, one.scores), other.of(1, other.scores)[:, ::-1])
    assert (one.of(0, one.scores) != other.of(0, other.scores)).any()


@pytest.mark.parametrize(("rules", "num_players", "episode"), TABLES)
def test_sums_over_seats(rules: str, num_players: int, episode: str) -> None:
    table = [Uniform(), Highest(), *[Lowest()] * (num_players - 2)]
    result = arena.play(table, rules=rules, deals=30, episode=episode)
    by_position = sum(result.of(position, result.scores) for position in range(num_players))
    np.testing.assert_allclose(by_position, result.scores.sum(axis=2), atol=1e-12)
    if episode == "match":
        np.testing.assert_allclose(result.scores.sum(axis=2), 0, atol=1e-12)
        np.testing.assert_allclose(result.shares.sum(axis=2), 1, atol=1e-12)
    else:  # one seat pays for the last trick, or under `literal` all but one
        assert ((result.penalties > 0).sum(axis=2) == (num_players - 1 if rules == "literal" else 1)).all()


def test_no_decision_no_question() -> None:
    def refuse(turns: Turns) -> np.ndarray:
        raise AssertionError("asked about a forced turn")

    result = arena.play([Answer(refuse), Lowest(), Lowest()], rules="cucumber,hand_size=1", deals=10)
    hands, _ = dealt(Rules.of("cucumber,hand_size=1"), 3, 10, seed=0)
    highest = [max(unpacked(hand)[0] for hand in deal) + 2 for deal in hands]
    assert result.penalties.max(axis=2).tolist() == [[points] * 3 for points in highest]
    assert not result.decisions.any()


def test_no_deal_of_training_is_a_deal_of_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[SelfPlay] = []

    class Recorded(SelfPlay):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            played.append(self)

    monkeypatch.setattr(match, "SelfPlay", Recorded)
    arena.play([Uniform()] * 4, deals=500, seed=1)
    evaluated = played[0].games
    assert (evaluated["episode"] == arena.EVALUATION_EPISODE).all()
    assert (evaluated["game"] == np.arange(500)).all()
    assert (evaluated["seed"] == 1).all()

    training = SelfPlay(num_games=500, num_players=4)
    at = training.reset(seed=1)
    for _ in range(100):
        at = training.step(at.mask.argmax(axis=1))
    assert 1 < training.games["episode"].min() < training.games["episode"].max() < arena.EVALUATION_EPISODE

    first_deals = set()
    for seed in range(5):
        training.reset(seed=seed)
        first_deals |= set(map(bytes, training.games["hands"]))
    assert len(first_deals) == 2500
    training.reset(seed=1, episodes=arena.EVALUATION_EPISODE)
    assert first_deals.isdisjoint(map(bytes, training.games["hands"]))


def test_progress_counts_every_deal() -> None:
    told: list[int] = []
    arena.compare_with(Lowest(), [Highest(), Uniform()], deals=30, progress=told.append)
    assert sum(told) == 2 * 2 * 30
    told.clear()
    arena.round_robin([Lowest(), Highest(), Uniform()], deals=30, progress=told.append)
    assert sum(told) == 3 * 3 * 30
    told.clear()
    arena.play([Lowest()] * 4, deals=30, batch=12, progress=told.append)
    assert told == [12, 12, 6]


def test_known_strengths_of_simple_policies() -> None:
    """Figures of an earlier engine with the same rules, known to about a tenth of a point."""
    mine = {"random": Uniform(), "lowest": Lowest(), "highest": Highest()}
    published = {
        "random": (2.5, 0.60, 3.67),
        "lowest": (6.1, 3.4, 7.0),
        "highest": (1.04, 0.02, 2.22),
    }
    for name, expected in published.items():
        rows = arena.compare_with(mine[name], list(mine.values()), deals=4000, seed=11)
        assert [row.score.mean for row in rows] == pytest.approx(expected, abs=0.15)


def test_names_stand_for_their_policies() -> None:
    by_name = arena.round_robin(["lowest", "highest"], deals=200, seed=3)
    by_object = arena.round_robin([Lowest(), Highest()], deals=200, seed=3)
    assert by_name.pairs[0].difference == by_object.pairs[0].difference
    assert by_name.names == ["lowest", "highest"]


def test_comparison_by_hand() -> None:
    """Score, own score, difference and share from the plain results of both tables."""
    low, high = Lowest(), Highest()
    (row,) = arena.compare_with(low, [high], num_players=3, deals=60, seed=4)
    mixed = arena.play([low, high, high], deals=60, seed=4).penalties
    among = arena.play([high, high, high], deals=60, seed=4).penalties
    mine = (mixed[:, 0, 0] + mixed[:, 1, 1] + mixed[:, 2, 2]) / 3
    theirs = among[:, 0].sum(axis=1) / 3
    assert row.score.mean == pytest.approx(mine.mean())
    assert row.own.mean == pytest.approx(theirs.mean())
    assert row.difference.mean == pytest.approx((mine - theirs).mean())
    error = np.std(mine - theirs, ddof=1) / np.sqrt(60)
    assert row.difference.half_width == pytest.approx(stats.t.ppf(0.975, 59) * error, rel=1e-6)
    paid = (np.diagonal(mixed, axis1=1, axis2=2) > 0).mean()
    assert row.share.mean == pytest.approx(paid)
    assert row.gain == -row.difference.mean < 0

    result = arena.round_robin([low, high], num_players=3, deals=60, seed=4)
    reverse = arena.play([high, low, low], deals=60, seed=4).penalties
    others = (mixed.sum(axis=(1, 2)) - 3 * mine) / 6
    single = (reverse[:, 0, 0] + reverse[:, 1, 1] + reverse[:, 2, 2]) / 3
    rest = (reverse.sum(axis=(1, 2)) - 3 * single) / 6
    assert result.pairs[0].difference.mean == pytest.approx(((mine - others + rest - single) / 2).mean())
    assert result.against[0][1] == row
    assert result.names == ["my_lowest", "my_highest"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda turns: np.full(len(turns), 13),
            r"policy 'my_answer' chose the illegal action 13; legal: \[.* \(deal 1\d\d, seat \d, move \d+\)$",
        ),
        (lambda turns: np.full(len(turns), -1), r"chose the illegal action -1; legal: .*\(deal"),
        (lambda turns: turns.mask.argmin(axis=1), r"chose the illegal action \d+; legal: .*\(deal"),
        (lambda turns: np.zeros(len(turns)), r"'my_answer' answered \d+ decisions with float64 of shape .*\(deal"),
        (lambda turns: np.full(len(turns), np.nan), r"answered \d+ decisions with float64 of shape .*\(deal"),
        (lambda turns: turns.mask, r"answered \d+ decisions with int8 of shape \(\d+, 13\); expected integers"),
        (lambda turns: None, r"answered \d+ decisions with object of shape"),
        (lambda turns: turns.nothing, r"'my_answer' raised AttributeError: .*nothing.*\(deal"),
    ],
)
def test_a_policy_that_answers_what_it_may_not_is_named(answer: Any, message: str) -> None:
    with pytest.raises(arena.TableError, match=message) as failed:
        arena.play([Highest(), Answer(answer)], deals=range(100, 120))
    assert failed.value.policy == "my_answer"
    assert failed.value.deal in range(100, 120)


class Odds(Policy):
    """Probabilities that are the given function of the legal ones."""

    name = "my_odds"

    def __init__(self, change: Any) -> None:
        self.change = change

    def probabilities(self, turns: Turns) -> np.ndarray:
        return self.change(turns.mask / turns.mask.sum(axis=1, keepdims=True))


@pytest.mark.parametrize(
    "change",
    [
        lambda legal: np.where(legal > 0, np.nan, 0),
        lambda legal: legal * 2,
        lambda legal: np.full_like(legal, 1 / 13),
        lambda legal: legal[:, :5],
        lambda legal: legal[:-1],
        lambda legal: np.eye(13, dtype=np.int64)[legal.argmax(axis=1)],
        lambda legal: -legal,
        lambda legal: np.where(legal > 0, np.inf, 0),
    ],
)
def test_probabilities_that_are_none_are_refused(change: Any) -> None:
    with pytest.raises(
        arena.TableError, match=r"policy 'my_odds' gave probabilities .* \(deal \d+, seat \d, move \d+\)"
    ):
        arena.play([Highest(), Odds(change)], deals=20)


def test_probabilities_may_be_rounded_to_half_precision() -> None:
    half = arena.play([Highest(), Odds(lambda legal: legal.astype(np.float16))], deals=20)
    assert half.penalties.shape == (20, 2, 2)


def test_the_decision_that_a_policy_fails_at_is_found() -> None:
    """It raises for one seat's hand of one deal alone, in a batch of many."""
    hands, _ = dealt(Rules.of("cucumber"), 2, 300, seed=0)

    def act(turns: Turns) -> np.ndarray:
        public = turns.views["public"]
        if ((public["moves"] < 2) & (turns.views["hand"] == hands[217, 1])).any():
            raise RuntimeError("this hand is too good")
        return turns.mask.argmax(axis=1)

    with pytest.raises(
        arena.TableError, match=r"raised RuntimeError: this hand is too good \(deal 217, seat 1, move"
    ) as failed:
        arena.play([Answer(act), Highest()], deals=300)
    assert failed.value.deal == 217
    assert isinstance(failed.value.__cause__.__cause__, RuntimeError)


def test_policies_that_cannot_sit_at_a_table_are_refused_before_it() -> None:
    class Choosy(Highest):
        def check(self, rules: Rules, num_players: int, episode: str) -> None:
            if num_players != 3:
                raise ValueError(f"three players or none, not {num_players}")

    arena.play([Choosy(), Lowest(), Lowest()], deals=5)
    with pytest.raises(ValueError, match="policy 'my_highest' cannot sit at this table: three players or none, not 4"):
        arena.play([Choosy(), *[Lowest()] * 3], deals=5)
    with pytest.raises(ValueError, match="policy 'champion' cannot sit at this table: no agent was trained for"):
        arena.round_robin(["champion", "highest"], rules="inverted", num_players=2, deals=5)


def test_decisions_are_the_turns_with_a_choice() -> None:
    asked = np.zeros(2, np.int64)

    class Counted(Highest):
        def act(self, turns: Turns) -> np.ndarray:
            asked[0] += len(turns)
            return super().act(turns)

    result = arena.play([Counted(), Lowest(), Lowest()], deals=50, seed=3)
    assert result.of(0, result.decisions).sum() == asked[0] > 0
    assert result.decisions.max() <= 6  # the seventh card is forced


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"deals": 0}, "deals=0 is out of range"),
        ({"deals": range(-1, 5)}, "deals=range"),
        ({"deals": np.array([3, 3])}, "different numbers"),
        ({"deals": 2.5}, "deals=2.5 must be an integer"),
        ({"deals": True}, "deals=True must be an integer"),
        ({"batch": 0}, "batch=0 must be an integer"),
        ({"seed": -1}, "seed=-1 is out of range"),
        ({"episode": "game"}, "episode='game' is not one of its values"),
        ({"rules": "cucumber,players=5-6"}, "seats at the table=4 is out of range; allowed: 5 to 6"),
    ],
)
def test_arguments_are_checked_by_name(change: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        arena.play([Lowest()] * 4, **change)


def test_one_deal_has_no_interval() -> None:
    for compare in (lambda: arena.compare_with("lowest", ["highest"], deals=1), lambda: arena.round_robin([], deals=1)):
        with pytest.raises(ValueError, match="deals=1 is out of range; allowed: 2 and more"):
            compare()


def test_tables_of_text() -> None:
    low, high = Lowest(), Highest()
    text = arena.format_table(arena.compare_with(low, [low, high], deals=40, seed=1))
    lines = text.splitlines()
    assert lines[0] == "my_lowest: mean penalty of one against 3 of each (lower is better; 40 deals, 95 % intervals)"
    assert lines[1].split("  ")[0] == "3 ×"
    assert "0.000 ± 0.000" in lines[2]
    assert lines[3].startswith("my_highest  ")
    result = arena.round_robin([low, high], deals=40, seed=1)
    matrix, pairs = str(arena.matrix_table(result)).splitlines(), str(arena.pair_table(result)).splitlines()
    assert matrix[2].startswith("#1 my_lowest   ")
    assert f"{result.against[0][1].score.mean:.3f}" in matrix[2]
    assert pairs[2].split()[:2] == ["my_lowest", "my_highest"]
    assert pairs[2].endswith("second")
    matches = arena.round_robin([low, high], deals=40, seed=1, episode="match")
    assert str(arena.pair_table(matches)).splitlines()[2].endswith("second")
    with pytest.raises(ValueError, match="0 comparisons of 0 kinds"):
        arena.format_table([])


def test_interval_by_hand() -> None:
    estimate = arena.mean_interval([1, 2, 3, 4])
    half = 3.182446 * np.sqrt(5 / 3) / 2  # t of a table, three degrees of freedom
    assert (estimate.mean, estimate.deals) == (2.5, 4)
    assert estimate.half_width == pytest.approx(half, rel=2e-3)
    assert (estimate.low, estimate.high) == pytest.approx((2.5 - half, 2.5 + half), abs=0.01)
    assert estimate.sign == 1
    assert arena.mean_interval([-1, 1]).sign == 0
    assert arena.mean_interval([-3, -3]) == arena.Estimate(-3.0, 0.0, 2)
    assert arena.paired_difference([1, 2, 5], [0, 1, 4]) == arena.Estimate(1.0, 0.0, 3)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_students_t(confidence: float) -> None:
    for freedom in (1, 2, 3, 4, 6, 10, 30, 1000, 10**6):
        expected = stats.t.ppf((1 + confidence) / 2, freedom)
        assert student_t(freedom, confidence=confidence) == pytest.approx(expected, rel=0.01 if freedom < 10 else 5e-5)


def test_statistics_refuse_what_has_no_interval() -> None:
    for values, message in (
        ([1.0], "shape"),
        ([[1.0, 2.0]], "shape"),
        ([1.0, np.nan, np.inf], "2 numbers that are not"),
    ):
        with pytest.raises(ValueError, match=message):
            arena.mean_interval(values)
    with pytest.raises(ValueError, match="same deals"):
        arena.paired_difference([1.0, 2.0], [1.0, 2.0, 3.0])
    for confidence in (0, 1, 95):
        with pytest.raises(ValueError, match="confidence"):
            arena.mean_interval([1.0, 2.0], confidence=confidence)
    with pytest.raises(ValueError, match="freedom=0"):
        student_t(0)


def test_intervals_cover_the_truth() -> None:
    """Two known policies: each pays 2 to 14 points or nothing; the deal moves both, so that they are correlated."""
    generator = np.random.default_rng(0)
    chances, deals, trials = (0.3, 0.2), 400, 4000
    points = generator.integers(2, 15, (trials, deals))
    luck = generator.random((trials, deals))
    first, second = ((luck < chance) * points for chance in chances)
    truths = {"mean": 0.3 * 8, "difference": 0.1 * 8}
    covered = {"mean": 0, "difference": 0}
    for trial in range(trials):
        for name, estimate in (
            ("mean", arena.mean_interval(first[trial])),
            ("difference", arena.paired_difference(first[trial], second[trial])),
        ):
            covered[name] += estimate.low <= truths[name] <= estimate.high
    assert {name: count / trials for name, count in covered.items()} == pytest.approx(
        {"mean": 0.95, "difference": 0.95}, abs=0.015
    )


def test_intervals_of_deals_cover_the_truth() -> None:
    """Deals played in earnest: intervals over parts of 50 deals against the mean over many."""
    result = arena.play([Uniform(), Highest(), Highest(), Highest()], deals=50_000, seed=9)
    scores = result.of(0, result.scores).mean(axis=1)
    parts = [arena.mean_interval(part) for part in scores.reshape(1000, 50)]
    coverage = np.mean([part.low <= scores.mean() <= part.high for part in parts])
    assert coverage == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, MemoryError, RecursionError])
def test_no_error_of_a_policy_ends_the_program(error: type[BaseException]) -> None:
    def act(turns: Turns) -> np.ndarray:
        raise error("enough")

    with pytest.raises(arena.TableError, match=rf"policy 'my_answer' raised {error.__name__}: enough \(deal"):
        arena.play([Answer(act), Highest()], deals=5)


def test_an_interrupt_does() -> None:
    def act(turns: Turns) -> np.ndarray:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        arena.play([Answer(act), Highest()], deals=5)


def test_a_policy_cannot_change_what_is_legal() -> None:
    def act(turns: Turns) -> np.ndarray:
        turns.mask[:] = 1
        return np.full(len(turns), 12)

    with pytest.raises(arena.TableError, match="policy 'my_answer' chose the illegal action 12"):
        arena.play([Answer(act), Highest()], deals=20)


def test_an_error_of_another_policy_inside_is_the_policys_own() -> None:
    def act(turns: Turns) -> np.ndarray:
        raise PolicyError("inner", 10**6, "was asked by another")

    with pytest.raises(
        arena.TableError, match="policy 'my_answer' raised PolicyError: policy 'inner' was asked by another"
    ):
        arena.play([Answer(act), Highest()], deals=5)
