"""The Gymnasium face: `CucumberEnv` and its registration."""

from __future__ import annotations

import copy
import json
import pickle
import re
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import FlattenObservation, RecordEpisodeStatistics, TimeLimit
from learners import SHORT_MATCHES, Life, any_legal, first_legal, last_legal, life_at, play_episode

import cucumber_env  # noqa: F401 (registers the environment)
from cucumber_env import one_seat
from cucumber_env.batch import TERMINATED, TRUNCATED
from cucumber_env.envs.single_agent import CucumberEnv
from cucumber_env.envs.vector import SelfPlay
from cucumber_env.policies import Policy
from cucumber_env.rules import PRESETS, RANKS, Rules
from cucumber_env.state import CHIP, DECLINE, OVER

ID = "cucumber_env/Cucumber-v0"


def packed(text: str) -> int:
    """A hand as the kernel holds it."""
    return sum(1 << 4 * RANKS.index(letter) for letter in text)


def lead(env: CucumberEnv, hands: list[str]) -> None:
    """Begin a round in which the learner, at seat 0, leads, and deal these hands to the seats."""
    game = env._games.games
    for seed in range(100):
        env.reset(seed=seed)
        if game["public"]["leader"][0] == 0:
            for seat, hand in enumerate(hands):
                game["hands"][0][seat] = packed(hand)
            env._games.mask[0] = [letter in hands[0] for letter in RANKS]
            return
    raise AssertionError("the learner never leads")


@pytest.mark.parametrize("episode", ["round", "match"])
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_gymnasium_finds_nothing_to_complain_about(preset: str, episode: str):
    rules = Rules.preset(preset)
    for num_players in range(rules.players[0], rules.max_players + 1):
        env = gymnasium.make(ID, rules=preset, num_players=num_players, episode=episode, opponents="random")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_env(env.unwrapped)
        env.close()


def test_rewards_arrive_on_other_peoples_moves():
    # Seat 0 leads 9, seat 1 tops it with T and seat 2 with J, who leads his 5; seat 0 has to give his 3 (0 points so
    # far). The last word is seat 1's, whose 4 is below the 5: seat 2 pays 5 points, seats 0 and 1 earn 5/2.
    env = CucumberEnv(rules={"hand_size": 2}, num_players=3, seat=0, opponents=last_legal)
    lead(env, ["93", "T4", "J5"])
    _, reward, terminated, truncated, info = env.step(RANKS.index("9"))
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert np.flatnonzero(info["action_mask"]).tolist() == [RANKS.index("3")]
    _, reward, terminated, truncated, info = env.step(RANKS.index("3"))
    assert (reward, terminated, truncated) == (2.5, True, False)
    assert info["action_mask"].all()
    assert env.action_masks().all()


def test_the_payer_pays():
    # Seat 0 leads K, seat 1 has to top it with his Ace and lead Q, which nobody tops: he pays 12, the others earn 6.
    # Seat 0 leads K, nobody tops it, and he has to lead his Ace: he pays 14.
    for reward, hands, expected in (
        ("zero_sum", ["K2", "QA", "34"], 6.0),
        ("points", ["K2", "QA", "34"], 0.0),
        ("zero_sum", ["KA", "23", "34"], -14.0),
        ("points", ["KA", "23", "34"], -14.0),
    ):
        env = CucumberEnv(rules={"hand_size": 2}, num_players=3, seat=0, opponents=first_legal, reward=reward)
        lead(env, hands)
        assert env.step(RANKS.index("K"))[1] == 0.0
        assert env.step(int(env.action_masks().argmax()))[1:3] == (expected, True)


@pytest.mark.parametrize("skip_forced", [False, True])
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_a_round_is_what_the_seat_lives_at_the_table(preset: str, skip_forced: bool):
    for num_players in (2, 4, 7):
        env = CucumberEnv(
            rules=preset, num_players=num_players, seat="rotate", opponents=any_legal, skip_forced=skip_forced
        )
        for number in range(num_players):
            env.reset(seed=3 if number == 0 else None)
            assert env.seat == number
            story = play_episode(env)
            life = life_at(
                number,
                seed=3,
                number=number,
                learner=any_legal,
                opponents=[any_legal] * num_players,
                rules=preset,
                num_players=num_players,
                episode="round",
            )
            check_same_life(story, life, skip_forced)


@pytest.mark.parametrize("reward", ["outcome", "points", "zero_sum"])
@pytest.mark.parametrize("name", SHORT_MATCHES)
def test_a_match_is_what_the_seat_lives_at_the_table(name: str, reward: str):
    for num_players, skip_forced, seed in ((2, False, 1), (3, True, 2), (4, False, 3), (4, True, 4)):
        table = {"rules": SHORT_MATCHES[name], "num_players": num_players, "episode": "match", "reward": reward}
        env = CucumberEnv(opponents=any_legal, skip_forced=skip_forced, chip_cost=0.125, **table)
        for number in range(6):
            env.reset(seed=seed if number == 0 else None)
            seat = env.seat
            story = play_episode(env)
            life = life_at(
                seat,
                seed=seed,
                number=number,
                learner=any_legal,
                opponents=[any_legal] * num_players,
                chip_cost=0.125,
                **table,
            )
            check_same_life(story, life, skip_forced)


def check_same_life(story: dict[str, Any], life: Life, skip_forced: bool) -> None:
    """The environment asked at the same turns (the free ones and the first), and paid the same in all."""
    met = life.turns
    if skip_forced:
        met = [turn for i, turn in enumerate(met) if i == 0 or sum(turn[1]) > 1]
    assert story["turns"] == met
    assert sum(story["rewards"]) == pytest.approx(life.earned, abs=1e-4)
    assert story["done"] == life.done


@pytest.mark.parametrize(
    "rules",
    [{"hand_size": 1, "threshold": 8}, {"preset": "express", "rounds": 2, "hand_size": 1}],
    ids=["out", "not tied"],
)
def test_whoever_is_out_for_good_is_done_while_the_others_play_on(rules: dict[str, Any]):
    env = CucumberEnv(rules=rules, num_players=4, episode="match", seat=0, opponents=any_legal)
    played_on = 0
    for number in range(40):
        env.reset(seed=5 if number == 0 else None)
        story = play_episode(env)
        public = env._games.games["public"][0]
        if public["phase"] != OVER:
            played_on += 1
            assert story["rewards"][-1] == -1 / 3
            assert public["totals"][0] >= 8 if "threshold" in rules else public["tied"] not in (0, 1)
            assert public["gone"] == 0  # not a card of the next round was waited for
    assert played_on > 10


def test_an_offer_to_come_back_is_a_decision():
    rules = {"preset": "revival", "hand_size": 1, "threshold": 8}
    env = CucumberEnv(rules=rules, num_players=5, episode="match", seat=2, opponents=first_legal, chip_cost=0.25)
    env.reset(seed=0)
    while not env.action_masks()[DECLINE]:
        over = env.step(int(any_legal(env.turns())[0]))[2]
        if over:
            env.reset()
    other = copy.deepcopy(env)
    assert env.step(DECLINE)[1:4] == (-1 / 4, True, False)
    assert other.step(CHIP)[1:4] == (-0.25, False, False)


def test_a_limit_of_rounds_truncates_unless_the_learner_is_out():
    table = {
        "rules": {"hand_size": 1, "threshold": 14},
        "num_players": 3,
        "episode": "match",
        "max_rounds": 3,
        "reward": "outcome",
    }
    env = CucumberEnv(opponents=any_legal, seat=1, **table)
    ends = set()
    for number in range(60):
        env.reset(seed=8 if number == 0 else None)
        story = play_episode(env)
        life = life_at(1, seed=8, number=number, learner=any_legal, opponents=[any_legal] * 3, **table)
        out = life.totals[1] >= 14
        assert story["turns"] == life.turns
        if life.done == TRUNCATED and not out:
            assert (story["done"], sum(story["rewards"])) == (TRUNCATED, 0.0)
        else:
            assert story["done"] == TERMINATED
            assert sum(story["rewards"]) == (-1 / 2 if out else 1.0)
        ends.add((life.done, out))
    assert ends == {(TERMINATED, False), (TERMINATED, True), (TRUNCATED, False), (TRUNCATED, True)}


@pytest.mark.parametrize(("reward", "low"), [("points", -43.0), ("zero_sum", -43.0), ("outcome", -1 / 3)])
def test_an_illegal_action_ends_the_episode_with_the_worst_return(reward: str, low: float):
    env = CucumberEnv(episode="match", reward=reward, opponents=any_legal)
    env.reset(seed=4)
    earned = 0.0
    for _ in range(20):  # into the third round, with rewards collected
        earned += env.step(int(any_legal(env.turns())[0]))[1]
    wrong = int(env.action_masks().argmin())
    observation, last, terminated, truncated, info = env.step(wrong)
    assert observation in env.observation_space
    assert earned + last == pytest.approx(low)
    assert (terminated, truncated) == (True, False)
    assert info["illegal_action"] == wrong
    assert info["action_mask"].all()
    with pytest.raises(ResetNeeded):
        env.step(wrong)
    _, info = env.reset()
    assert set(info) == {"action_mask"}


def test_no_action_outside_of_the_space_is_played():
    env = CucumberEnv(opponents=any_legal)
    with pytest.raises(ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    for action in (13, -1, 2.0, "A", None):
        with pytest.raises(ValueError, match=re.escape(f"action={action!r}")):
            env.step(action)  # type: ignore[arg-type]
    legal = int(env.action_masks().argmax())
    other = copy.deepcopy(env)
    assert env.step(np.int32(legal))[0].tobytes() == other.step(np.array(legal))[0].tobytes()


def test_the_cards_are_those_of_every_other_face():
    env = CucumberEnv(num_players=5, opponents=any_legal)
    games = SelfPlay(num_games=1, num_players=5)
    for seed in (0, 9, 2**70):
        for number in range(3):
            env.reset(seed=seed if number == 0 else None)
            games.reset(seed=seed, episodes=number)
            dealt = env._games.games["hands"][0] + [
                sum(1 << 4 * int(rank) for rank in played if rank >= 0)
                for played in env._games.games["public"]["played"][0]
            ]
            assert dealt.tolist() == games.games["hands"][0].tolist()


def test_a_seed_says_everything():
    def episodes(seed: int | None) -> list[Any]:
        env = CucumberEnv(opponents=[any_legal, last_legal, first_legal])
        if seed is None:
            env.reset()
            seed = env.np_random_seed
        told = []
        for number in range(4):
            env.reset(seed=seed if number == 0 else None)
            told.append((env.seat, sorted(env.opponents), play_episode(env)["turns"]))
        return told

    np.random.seed(0)  # noqa: NPY002 (the global generator must not matter)
    first = episodes(7)
    np.random.seed(1)  # noqa: NPY002
    assert episodes(7) == first
    assert episodes(8) != first
    assert episodes(None) != episodes(None)
    env = CucumberEnv(opponents=any_legal)
    start = env.reset()[0]  # a seed of its own, which can be asked for
    assert env.reset(seed=env.np_random_seed)[0].tobytes() == start.tobytes()


def test_opponents_are_drawn_for_each_episode_and_seat():
    pool = [any_legal, last_legal, first_legal]
    env = CucumberEnv(opponents=pool, num_players=4, seat=1)
    counts = np.zeros((4, 3), int)
    all_the_same = 0
    for number in range(600):
        env.reset(seed=1 if number == 0 else None)
        at_table = {seat: policy.name for seat, policy in env.opponents.items()}
        assert set(at_table) == {0, 2, 3}
        all_the_same += len(set(at_table.values())) == 1
        for seat, name in at_table.items():
            counts[seat, [policy.__name__ for policy in pool].index(name)] += 1
    assert counts[1].sum() == 0
    assert (abs(counts[[0, 2, 3]] - 200) < 60).all()  # 5 standard deviations
    assert abs(all_the_same - 600 / 9) < 40


def test_seats_are_drawn_evenly_or_rotate():
    env = CucumberEnv(opponents=any_legal, num_players=5)
    drawn = []
    for number in range(500):
        env.reset(seed=1 if number == 0 else None)
        drawn.append(env.seat)
    assert (abs(np.bincount(drawn, minlength=5) - 100) < 45).all()
    env = CucumberEnv(opponents=any_legal, num_players=5, seat="rotate")
    env.reset(seed=1)
    assert [env.seat] + [env.reset() and env.seat for _ in range(6)] == [0, 1, 2, 3, 4, 0, 1]
    env = CucumberEnv(opponents=any_legal, num_players=5, seat=4)
    env.reset(seed=1)
    assert env.seat == 4


def test_opponents_play_their_own_policy():
    asked: dict[str, list[int]] = {"low": [], "high": []}

    def low(turns):
        asked["low"] += turns.views["seat"].tolist()
        return first_legal(turns)

    def high(turns):
        asked["high"] += turns.views["seat"].tolist()
        return last_legal(turns)

    env = CucumberEnv(opponents=[low, high], num_players=6, seat=2)
    for number in range(20):
        asked["low"], asked["high"] = [], []
        env.reset(seed=1 if number == 0 else None)
        story = play_episode(env)
        named = env.opponents
        assert all(named[seat].name == "low" for seat in asked["low"])
        assert all(named[seat].name == "high" for seat in asked["high"])
        choices = [
            None if seat == 2 else {"low": first_legal, "high": last_legal}[named[seat].name] for seat in range(6)
        ]
        life = life_at(
            2,
            seed=1,
            number=number,
            learner=any_legal,
            opponents=choices,
            rules="cucumber",
            num_players=6,
            episode="round",
        )
        check_same_life(story, life, skip_forced=False)


def test_opponents_never_decide_what_is_forced_and_must_answer_legally():
    def strict(turns):
        assert (turns.mask.sum(axis=1) > 1).all()
        return any_legal(turns)

    env = CucumberEnv(opponents=strict)
    env.reset(seed=1)
    play_episode(env)

    def stubborn(turns):
        return np.full(len(turns), 12)

    class Halves(Policy):
        name = "halves"

        def act(self, turns):
            return np.full(len(turns), 0.5)

    for opponent, message in (
        (stubborn, "policy 'stubborn' chose the illegal action 12; legal: "),
        (Halves(), "policy 'halves' answered 1 decisions with float64"),
    ):
        env = CucumberEnv(opponents=opponent)
        with pytest.raises(ValueError, match=message):  # noqa: PT012
            for seed in range(5):
                env.reset(seed=seed)
                play_episode(env)


def test_opponents_that_cannot_sit_at_the_table_are_refused_when_it_is_made():
    with pytest.raises(ValueError, match="opponents: policy 'champion:cucumber-4p' cannot sit at this table: agent"):
        CucumberEnv(rules="three_card", num_players=2, opponents=["highest", "champion:cucumber-4p"])


def test_a_copy_and_a_pickle_continue_the_same_game():
    env = CucumberEnv(episode="match", opponents=["random", "highest"], seats=8)
    env.reset(seed=6)
    for _ in range(9):
        env.step(int(any_legal(env.turns())[0]))
    twins = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    compiled = [len(getattr(loop, "signatures", ())) for loop in (one_seat.step, one_seat.observe)]
    story = play_episode(env)
    env.reset()
    following = play_episode(env)
    for twin in twins:
        assert same_story(play_episode(twin), story)
        twin.reset()
        assert same_story(play_episode(twin), following)
    # Copies of the tables are of the type that was compiled already.
    assert compiled == [len(getattr(loop, "signatures", ())) for loop in (one_seat.step, one_seat.observe)]


def same_story(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(one[key] == other[key] for key in ("turns", "rewards", "done"))


def test_arguments_survive_json():
    kwargs = {
        "rules": {"preset": "three_card", "threshold": 21},
        "num_players": 3,
        "episode": "match",
        "opponents": ["highest", "random"],
        "seat": "rotate",
        "reward": "points",
        "max_rounds": 20,
        "skip_forced": True,
        "seats": 8,
        "chip_cost": 0.5,
        "render_mode": "ansi",
    }
    env = gymnasium.make(ID, **json.loads(json.dumps(kwargs)))
    text = env.spec.to_json()
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(text))
    assert again.spec.kwargs == kwargs
    assert again.reset(seed=5)[0].tobytes() == env.reset(seed=5)[0].tobytes()


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"rules": "cucmber"}, ValueError, "did you mean 'cucumber'"),
        ({"num_players": 8}, ValueError, "num_players=8"),
        ({"episode": "game"}, ValueError, "episode='game'"),
        ({"opponents": "higest"}, ValueError, "opponents: unknown policy 'higest'"),
        ({"opponents": []}, ValueError, re.escape("opponents=[]")),
        ({"opponents": [3]}, TypeError, "opponents=3"),
        ({"opponents": Policy}, TypeError, "opponents=<class"),
        ({"seat": "first"}, ValueError, "seat='first'"),
        ({"seat": 4}, ValueError, "seat=4.*0 to 3"),
        ({"seat": -1}, ValueError, "seat=-1"),
        ({"seat": 1.0}, TypeError, "seat=1.0"),
        ({"seat": True}, TypeError, "seat=True"),
        ({"reward": "score"}, ValueError, "reward='score'"),
        ({"reward": "outcome"}, ValueError, "reward='outcome'"),
        ({"max_rounds": 3}, ValueError, "max_rounds=3"),
        ({"skip_forced": 1}, TypeError, "skip_forced=1"),
        ({"seats": 5}, ValueError, "seats=5"),
        ({"chip_cost": -1.0}, ValueError, "chip_cost=-1.0"),
        ({"render_mode": "rgb_array"}, ValueError, "render_mode='rgb_array'"),
        ({"players": 4}, TypeError, "players"),
    ],
)
def test_wrong_arguments_are_named(kwargs: dict[str, Any], error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        CucumberEnv(**{"opponents": any_legal, **kwargs})


@pytest.mark.parametrize(("seed", "error"), [(-1, ValueError), (1.5, TypeError), ("1", TypeError), (True, TypeError)])
def test_wrong_seeds_are_named(seed: Any, error: type[Exception]):
    env = CucumberEnv(opponents=any_legal)
    with pytest.raises(error, match="seed="):
        env.reset(seed=seed)


def test_one_card_rounds_and_skipped_turns_leave_a_step():
    env = CucumberEnv(rules={"hand_size": 1}, opponents=any_legal, skip_forced=True)
    for number in range(10):
        _, info = env.reset(seed=0 if number == 0 else None)
        assert info["action_mask"].sum() == 1
        assert env.step(int(info["action_mask"].argmax()))[2]


def test_wrappers_of_gymnasium_go_round_it():
    env = RecordEpisodeStatistics(gymnasium.make(ID, opponents="highest"))
    _, info = env.reset(seed=3)
    total, steps, over = 0.0, 0, False
    while not over:
        _, reward, over, _, info = env.step(int(info["action_mask"].argmax()))
        total, steps = total + reward, steps + 1
    assert (info["episode"]["r"], info["episode"]["l"], steps) == (total, 7, 7)
    env = TimeLimit(gymnasium.make(ID, opponents="highest"), max_episode_steps=2)
    _, info = env.reset(seed=3)
    env.step(int(info["action_mask"].argmax()))
    assert env.step(int(env.get_wrapper_attr("action_masks")().argmax()))[2:4] == (False, True)
    env = FlattenObservation(gymnasium.make(ID, opponents="highest"))
    assert env.observation_space == env.unwrapped.observation_space


def test_rendering_is_the_table_as_the_learner_sees_it(capsys: pytest.CaptureFixture[str]):
    env = gymnasium.make(ID, opponents="highest", render_mode="ansi").unwrapped
    env.reset(seed=2)
    text = env.render()
    assert isinstance(text, str)
    for seat in set(range(4)) - {env.seat}:  # hands that may not be seen change nothing
        env._games.games["hands"][0][seat] = packed("2")
    assert env.render() == text
    assert capsys.readouterr().out == ""
    human = gymnasium.make(ID, opponents="highest", render_mode="human")
    human.reset(seed=2)
    assert text in capsys.readouterr().out
    human.step(int(human.unwrapped.action_masks().argmax()))
    assert capsys.readouterr().out
    assert human.render() is None
    blind = gymnasium.make(ID, opponents="highest").unwrapped
    blind.reset(seed=2)
    with pytest.warns(UserWarning, match="render_mode"):
        assert blind.render() is None


def test_misuse_before_reset_and_bools_are_refused() -> None:
    env = CucumberEnv(render_mode="ansi")
    with pytest.raises(ResetNeeded, match=r"call reset\(\) before render"):
        env.render()
    env.reset(seed=1)
    with pytest.raises(ValueError, match="action=True is not in the action space"):
        env.step(True)
    with pytest.raises(TypeError, match="must name its fields by text"):
        CucumberEnv(rules={1: 2})  # type: ignore[dict-item]
