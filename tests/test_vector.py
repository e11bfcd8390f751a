"""The Gymnasium face for many tables: `CucumberVectorEnv`."""

from __future__ import annotations

import copy
import itertools
import pickle
import re
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.utils.passive_env_checker import data_shares_objects
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics, TransformReward
from learners import any_legal, first_legal, last_legal, life_at

import cucumber_env  # noqa: F401 (registers the environment)
from cucumber_env import one_seat
from cucumber_env.envs.single_agent import CucumberEnv
from cucumber_env.envs.vector import SelfPlay
from cucumber_env.envs.vector_env import CucumberVectorEnv

ID = "cucumber_env/Cucumber-v0"
SEEDS = [11, 3, 2**66, 3, 0]
POOL = [any_legal, last_legal, first_legal]

TABLES: dict[str, dict[str, Any]] = {
    "round": {"num_players": 4},
    "skipping": {"num_players": 5, "skip_forced": True, "seat": "rotate", "reward": "points"},
    "match": {"rules": {"threshold": 9}, "num_players": 3, "episode": "match", "seat": 1},
    "revival": {
        "rules": {"preset": "revival", "hand_size": 2, "threshold": 12},
        "num_players": 4,
        "episode": "match",
        "chip_cost": 0.5,
        "max_rounds": 4,
        "seats": 8,
    },
    "concombre": {"rules": {"preset": "concombre", "threshold": 12}, "num_players": 6, "episode": "match"},
}


def some_actions(mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A random action for every row, legal but for one in thirty."""
    chances = np.where(rng.random(len(mask))[:, None] < 1 / 30, 1.0, mask)
    return (chances * rng.random(mask.shape)).argmax(axis=1)


def same(one: Any, other: Any) -> bool:
    """Equal to the byte, types included."""
    return data_equivalence(one, other, exact=True)


@pytest.mark.parametrize("mode", ["SameStep", "NextStep", "Disabled"])
@pytest.mark.parametrize("table", TABLES)
def test_it_is_single_environments_side_by_side(table: str, mode: str):
    kwargs = {**TABLES[table], "opponents": POOL}
    many = CucumberVectorEnv(5, autoreset_mode=mode, **kwargs)
    one_by_one = SyncVectorEnv([lambda: CucumberEnv(**kwargs)] * 5, autoreset_mode=mode)
    assert many.observation_space == one_by_one.observation_space
    assert many.action_space == one_by_one.action_space
    observation, infos = many.reset(seed=SEEDS)
    assert same((observation, infos), one_by_one.reset(seed=SEEDS))
    rng = np.random.default_rng(0)
    ended = 0
    for _ in range(150):
        actions = some_actions(many.action_masks(), rng)
        result = many.step(actions)
        expected = one_by_one.step(actions)
        assert same(result, expected), (result, expected)
        over = result[2] | result[3]
        ended += over.sum()
        if mode == "Disabled" and over.any():
            observation, infos = many.reset(options={"reset_mask": over})
            expected_observation, expected_infos = one_by_one.reset(options={"reset_mask": over})
            assert same(observation, expected_observation)
            assert same(infos["action_mask"][over], expected_infos["action_mask"][over])
    assert ended > 20


@pytest.mark.parametrize("table", TABLES)
def test_a_slot_plays_the_game_of_its_number(table: str):
    kwargs = dict(TABLES[table])
    many = CucumberVectorEnv(4, opponents=any_legal, **kwargs)
    many.reset(seed=21)
    seats, earned, met = [many.seats], np.zeros(4), [[] for _ in range(4)]
    lives: list[list[Any]] = [[] for _ in range(4)]
    while min(map(len, lives)) < 3:
        turns = many.turns()
        for row in range(4):
            met[row].append((turns.observe(kwargs.get("seats"))[row].tobytes(), turns.mask[row].tobytes()))
        _, rewards, terminations, truncations, _ = many.step(any_legal(turns))
        earned += rewards
        for row in np.flatnonzero(terminations | truncations).tolist():
            lives[row].append((int(seats[-1][row]), met[row], earned[row]))
            earned[row], met[row] = 0.0, []
        seats.append(many.seats)
    for row in range(4):
        for number, (seat, turns_met, total) in enumerate(lives[row]):
            table_kwargs = {key: kwargs[key] for key in kwargs if key not in ("seat", "skip_forced")}
            life = life_at(
                seat,
                seed=21,
                game=row,
                number=number,
                learner=any_legal,
                opponents=[any_legal] * kwargs["num_players"],
                **table_kwargs,
            )
            skipped = kwargs.get("skip_forced", False)
            expected = [turn for i, turn in enumerate(life.turns) if not skipped or i == 0 or sum(turn[1]) > 1]
            assert turns_met == expected
            if "max_rounds" not in kwargs:  # who is out before the limit has lost at the table, too
                assert total == pytest.approx(life.earned, abs=1e-4)
            if kwargs.get("seat") == "rotate":
                assert seat == (row + number) % kwargs["num_players"]


@pytest.mark.parametrize("mode", ["SameStep", "NextStep", "Disabled"])
def test_a_slot_does_not_depend_on_the_number_of_slots(mode: str):
    def story(slots: int) -> list[Any]:
        many = CucumberVectorEnv(slots, autoreset_mode=mode, opponents=POOL, episode="match")
        told = [many.reset(seed=5)[0][:3]]
        rng = np.random.default_rng(1)
        for _ in range(60):
            masks = many.action_masks()
            actions = masks.argmax(axis=1)
            actions[:3] = some_actions(masks[:3], rng)
            result = many.step(actions)
            told.append([part[:3] for part in result[:4]])
            over = result[2] | result[3]
            if mode == "Disabled" and over.any():
                observation = many.reset(options={"reset_mask": over})[0]
                if over[:3].any():
                    told.append(observation[:3])
        return told

    assert same(story(3), story(40))


def test_make_vec_knows_it():
    envs = gymnasium.make_vec(ID, num_envs=3, autoreset_mode="NextStep", num_players=3, opponents="highest")
    assert isinstance(envs, CucumberVectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert "autoreset_mode" not in CucumberVectorEnv.metadata
    again = gymnasium.make_vec(gymnasium.envs.registration.EnvSpec.from_json(envs.spec.to_json()))
    assert again.num_envs == 3
    assert same(envs.reset(seed=1), again.reset(seed=1))
    explicit = gymnasium.make_vec(ID, num_envs=2, vectorization_mode="vector_entry_point", opponents="highest")
    assert explicit.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert explicit.observation_space.contains(explicit.reset(seed=1)[0])


@pytest.mark.parametrize("mode", ["SameStep", "NextStep", "Disabled"])
def test_statistics_of_gymnasium_see_every_episode(mode: str):
    raw = CucumberVectorEnv(6, autoreset_mode=mode, opponents=any_legal, skip_forced=True)
    counted = RecordEpisodeStatistics(raw, buffer_length=10_000)
    rng = np.random.default_rng(2)
    counted.reset(seed=3)
    returns, lengths, sums, steps = [], [], np.zeros(6), np.zeros(6, int)
    fresh = np.zeros(6, bool)
    for _ in range(80):
        _, rewards, terminations, _, infos = counted.step(some_actions(raw.action_masks(), rng))
        sums += rewards
        steps += ~fresh
        for row in np.flatnonzero(terminations):
            returns.append(sums[row])
            lengths.append(steps[row])
            assert infos["episode"]["r"][row] == pytest.approx(sums[row])
        sums[terminations] = steps[terminations] = 0
        fresh = terminations if mode == "NextStep" else fresh
        if mode == "Disabled" and terminations.any():
            counted.reset(options={"reset_mask": terminations})
    assert list(counted.return_queue) == pytest.approx(returns)
    assert list(counted.length_queue) == lengths
    assert len(returns) > 100


def test_other_wrappers_of_gymnasium_go_round_it():
    envs = TransformReward(DictInfoToList(CucumberVectorEnv(3, opponents=any_legal)), lambda rewards: 2 * rewards)
    _, infos = envs.reset(seed=0)
    assert [info["action_mask"].shape for info in infos] == [(13,)] * 3
    for _ in range(7):
        _, rewards, terminations, _, infos = envs.step(np.array([info["action_mask"].argmax() for info in infos]))
    assert terminations.all()
    assert rewards.any()
    assert all(info["final_info"]["action_mask"].all() for info in infos)


def test_same_step_returns_the_end_and_the_beginning():
    envs = CucumberVectorEnv(2, opponents=any_legal)
    envs.reset(seed=[1, 2])
    for _ in range(7):
        observation, _, terminations, _, infos = envs.step(any_legal(envs.turns()))
    assert terminations.all()
    for row, seed in enumerate((1, 2)):
        env = CucumberEnv(opponents=any_legal)
        env.reset(seed=seed)
        for _ in range(7):
            last = env.step(int(any_legal(env.turns())[0]))[0]
        assert infos["final_obs"][row].tobytes() == last.tobytes()
        assert observation[row].tobytes() == env.reset()[0].tobytes()
    assert infos["final_info"]["action_mask"].all()
    assert infos["_final_info"].all()
    assert not infos["action_mask"].all(axis=1).any()


def test_next_step_ignores_the_action_that_begins_an_episode():
    envs = CucumberVectorEnv(2, opponents=any_legal, autoreset_mode=AutoresetMode.NEXT_STEP)
    envs.reset(seed=1)
    first = envs.action_masks()[0]
    _, rewards, terminations, _, infos = envs.step(np.array([first.argmin(), any_legal(envs.turns())[1]]))
    assert terminations.tolist() == [True, False]
    assert rewards[0] == envs.penalty == -14.0
    assert infos["action_mask"][0].all()
    assert infos["illegal_action"][0] == first.argmin()
    assert infos["_illegal_action"].tolist() == [True, False]
    _, rewards, terminations, _, infos = envs.step(np.array([99, infos["action_mask"][1].argmax()]))
    assert rewards[0] == 0.0
    assert not terminations[0]
    assert "illegal_action" not in infos


def test_disabled_waits_for_the_mask_and_leaves_it_alone():
    envs = CucumberVectorEnv(3, opponents=any_legal, autoreset_mode="Disabled")
    envs.reset(seed=1)
    wrong = np.array([envs.action_masks()[0].argmin(), *any_legal(envs.turns())[1:]])
    observation, _, over, _, _ = envs.step(wrong)
    with pytest.raises(ResetNeeded, match=re.escape("[0]")):
        envs.step(wrong)
    options = {"reset_mask": over}
    fresh, infos = envs.reset(options=options)
    assert options == {"reset_mask": over}
    assert over.tolist() == [True, False, False]
    assert same(fresh[1:], observation[1:])
    assert infos["_action_mask"].all()
    assert not infos["action_mask"].all(axis=1).any()
    # A seed under a mask names the games of its slots alone.
    again, _ = envs.reset(seed=1, options=options)
    assert same(again[0], CucumberVectorEnv(1, opponents=any_legal).reset(seed=1)[0][0])
    assert same(again[1:], observation[1:])


def test_reset_masks_are_checked():
    envs = CucumberVectorEnv(3, opponents=any_legal, autoreset_mode="Disabled")
    some = np.array([True, False, False])
    with pytest.raises(ValueError, match="first reset"):
        envs.reset(options={"reset_mask": some})
    envs.reset(options={"reset_mask": np.ones(3, bool)})
    for mask, error in (
        ([True, False, False], TypeError),
        (some.astype(int), TypeError),
        (some[:2], ValueError),
        (np.zeros(3, bool), ValueError),
    ):
        with pytest.raises(error, match="reset_mask"):
            envs.reset(options={"reset_mask": mask})


def test_seeds_name_games():
    envs = CucumberVectorEnv(3, opponents=any_legal)
    by_number = envs.reset(seed=4)[0]
    following = envs.reset()[0]
    assert same(by_number, envs.reset(seed=4)[0])
    assert same(following, envs.reset()[0])
    single = CucumberEnv(opponents=any_legal)
    assert same(by_number[0], single.reset(seed=4)[0])
    assert not same(by_number[1], single.reset(seed=5)[0])  # neighbouring seeds share no games
    listed = envs.reset(seed=[9, None, 9])[0]
    assert same(listed[0], listed[2])
    assert same(listed[0], single.reset(seed=9)[0])
    envs.reset(seed=4)
    envs.reset()
    third = envs.reset()[0][1]
    envs.reset(seed=4)
    envs.reset()
    assert same(envs.reset(seed=[9, None, 9])[0][1], third)  # the slot in between goes on
    unseeded = CucumberVectorEnv(3, opponents=any_legal)
    start = unseeded.reset()[0]
    assert same(start, unseeded.reset(seed=unseeded.np_random_seed)[0])
    half = CucumberVectorEnv(3, opponents=any_legal)
    half.reset(seed=[1, None, 2])
    assert half.step(any_legal(half.turns()))[0].shape == (3, 288)


def test_what_is_returned_is_new_every_time():
    envs = CucumberVectorEnv(4, opponents=any_legal)
    rng = np.random.default_rng(0)
    calls = [envs.reset(seed=1), *(envs.step(some_actions(envs.action_masks(), rng)) for _ in range(20))]
    for one, other in itertools.pairwise(calls):
        for part in one:
            for another in other:
                assert not data_shares_objects(part, another)
        assert not np.shares_memory(other[0], other[-1]["action_mask"])


def test_copies_and_pickles_continue_the_same_games():
    envs = CucumberVectorEnv(3, opponents=["random", "highest"], episode="match", autoreset_mode="NextStep")
    envs.reset(seed=8)
    for _ in range(11):
        envs.step(any_legal(envs.turns()))
    twins = [copy.deepcopy(envs), pickle.loads(pickle.dumps(envs))]
    compiled = len(getattr(one_seat.step, "signatures", ()))
    for _ in range(40):
        actions = envs.action_masks().argmax(axis=1)
        result = envs.step(actions)
        assert all(same(twin.step(actions), result) for twin in twins)
    assert len(getattr(one_seat.step, "signatures", ())) == compiled


def test_rendering_gives_every_table(capsys: pytest.CaptureFixture[str]):
    envs = CucumberVectorEnv(2, opponents=any_legal, render_mode="ansi")
    envs.reset(seed=[3, 4])
    for text, seed in zip(envs.render(), (3, 4), strict=True):
        env = CucumberEnv(opponents=any_legal, render_mode="ansi")
        env.reset(seed=seed)
        assert env.render() == text
    human = CucumberVectorEnv(2, opponents=any_legal, render_mode="human")
    human.reset(seed=[3, 4])
    assert capsys.readouterr().out == "\n".join(envs.render()) + "\n"
    assert human.render() is None


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"num_envs": 0}, "num_envs=0"),
        ({"num_envs": 2.0}, "num_envs=2.0"),
        ({"autoreset_mode": "Never"}, "autoreset_mode='Never'"),
        ({"num_players": 9}, "num_players=9"),
        ({"render_mode": "svg"}, "render_mode='svg'"),
    ],
)
def test_wrong_arguments_are_named(kwargs: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=re.escape(message)):
        CucumberVectorEnv(**{"opponents": any_legal, **kwargs})


def test_wrong_actions_and_seeds_are_named():
    envs = CucumberVectorEnv(2, opponents=any_legal)
    with pytest.raises(ResetNeeded):
        envs.step(np.zeros(2, int))
    for seed, error in (
        ([1], ValueError),
        (-1, ValueError),
        ([1, -1], ValueError),
        (1.5, TypeError),
        ([1, "a"], TypeError),
    ):
        with pytest.raises(error, match="seed"):
            envs.reset(seed=seed)  # type: ignore[arg-type]
    envs.reset(seed=1)
    before = envs.action_masks()
    for actions, message in (
        (np.zeros(3, int), "shape"),
        (np.zeros(2), "integers"),
        (np.array([0, 13]), re.escape("actions[1]=13")),
        (np.array([-1, 0]), re.escape("actions[0]=-1")),
    ):
        with pytest.raises(ValueError, match=message):
            envs.step(actions)
    assert same(before, envs.action_masks())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda games: games.reset(rows=[4]), "rows from 4 to 4 are out of range; allowed: 0 to 3"),
        (lambda games: games.reset(rows=[-1]), "rows from -1 to -1"),
        (lambda games: games.reset(rows=[0.5]), "rows of dtype float64"),
        (lambda games: games.reset(rows=[[0]]), r"rows of dtype int64 and shape \(1, 1\)"),
        (lambda games: games.reset(games=[1, 2]), r"games of shape \(2,\) for 4 games"),
        (lambda games: games.reset(games=[1, 2, 3, -4]), "games hold -4"),
        (lambda games: games.reset(episodes=1.5), "episodes of dtype float64"),
        (lambda games: games.step([0], rows=[9]), "rows from 9 to 9"),
        (lambda games: games.step([0, 0], rows=[0, 0]), "name a game twice"),
        (lambda games: games.step(games.buffers.mask.argmax(axis=1) + 0.4), "actions of dtype float64"),
        (lambda games: games.step([True] * 4), "actions of dtype bool"),
        (lambda games: games.step([0]), r"actions of shape \(1,\) for 4 games"),
        (lambda games: games.draws(rows=[1_000_000]), "rows from 1000000"),
        (lambda games: games.turns(rows=[7]), "rows from 7"),
        (lambda games: games.hidden(rows=[7]), "rows from 7"),
        (lambda games: SelfPlay(skip_forced="no"), "skip_forced='no' must be True or False"),  # type: ignore[arg-type]
        (lambda games: SelfPlay(num_games=4).step([0, 0, 0, 0]), "game 0 has not begun"),
        (lambda games: SelfPlay(num_games=4).turns(), "game 0 waits for no decision"),
    ],
)
def test_self_play_refuses_what_it_cannot_play(call: Callable[[SelfPlay], object], message: str) -> None:
    games = SelfPlay(num_games=4)
    games.reset(seed=1)
    before = games.games.tobytes()
    with pytest.raises((ValueError, TypeError), match=message):
        call(games)
    assert games.games.tobytes() == before


def test_self_play_takes_rows_as_a_mask() -> None:
    games, others = SelfPlay(num_games=4), SelfPlay(num_games=4)
    for table, rows in ((games, np.array([True, False, False, True])), (others, np.array([0, 3]))):
        table.reset(seed=1)
        table.reset(seed=1, rows=rows, episodes=5)
        table.step(table.buffers.mask[rows].argmax(axis=1), rows=rows)
    assert games.games.tobytes() == others.games.tobytes()
    assert games.games["episode"].tolist() == [5, 0, 0, 5]
