"""The AEC face: its API, its spaces and masks, the cards it deals, what it keeps secret, and copies of it."""

from __future__ import annotations

import copy
import inspect
import pickle
import random
from random import Random
from typing import Any

import numpy as np
import pettingzoo
import pytest
from aec_tables import begun, name_of, play, put, random_policy, refresh, returns_of, walk
from gymnasium.spaces import Box, Discrete
from pettingzoo import AECEnv
from tables import members

from cucumber_env import baselines, cucumber_v0, policies
from cucumber_env.batch import seed_word
from cucumber_env.envs.aec import CucumberAEC
from cucumber_env.envs.vector import SelfPlay
from cucumber_env.game import Game
from cucumber_env.observation import Layout
from cucumber_env.rules import RANKS, Rules
from cucumber_env.state import compile_rules

ENVS = [cucumber_v0.env, cucumber_v0.raw_env]


class TestMaking:
    def test_the_registry_makes_it(self) -> None:
        for name in ("cucumber_env/cucumber-v0", "cucumber_env/cucumber_v0", "cucumber_env/cucumber"):
            env = pettingzoo.make("aec", name, rules="agurk", num_players=3)
            assert type(env) is cucumber_v0.env
            assert (env.rules.threshold, env.max_num_agents, str(env)) == (21, 3, "cucumber_v0")
        assert pettingzoo.spec("aec", "cucumber_env/cucumber-v0").version == 0

    def test_importing_it_again_does_not_register_it_again(self) -> None:
        import importlib

        import cucumber_env

        importlib.reload(cucumber_env)  # a warning is an error here

    @pytest.mark.parametrize("make", ENVS)
    def test_its_arguments(self, make: type[CucumberAEC]) -> None:
        parameters = inspect.signature(make).parameters
        assert {name: parameter.default for name, parameter in parameters.items()} == {
            "rules": "cucumber",
            "num_players": 4,
            "episode": "match",
            "elimination": "wait",
            "reward": None,
            "max_rounds": None,
            "seats": None,
            "chip_cost": 0.0,
            "render_mode": None,
        }
        assert {parameter.kind for parameter in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}

    @pytest.mark.parametrize(
        ("arguments", "error", "words"),
        [
            ({"rules": "cucmber"}, ValueError, ["cucmber", "did you mean 'cucumber'"]),
            ({"rules": 3}, TypeError, ["rules"]),
            ({"rules": {"hand_size": 0}}, ValueError, ["hand_size=0", "1 to 7"]),
            ({"num_players": 8}, ValueError, ["num_players=8", "2 to 7"]),
            ({"num_players": 1}, ValueError, ["num_players=1"]),
            ({"num_players": "4"}, TypeError, ["num_players='4'"]),
            ({"episode": "game"}, ValueError, ["episode='game'", "match, round"]),
            ({"elimination": "out"}, ValueError, ["elimination='out'", "wait, remove"]),
            ({"elimination": ["wait"]}, ValueError, ["elimination=['wait']", "wait, remove"]),
            ({"reward": "money"}, ValueError, ["reward='money'", "points, zero_sum, outcome"]),
            ({"reward": "outcome", "episode": "round"}, ValueError, ["reward='outcome'", "points, zero_sum"]),
            ({"max_rounds": 0}, ValueError, ["max_rounds=0", "1 to"]),
            ({"max_rounds": 2.0}, TypeError, ["max_rounds=2.0"]),
            ({"max_rounds": 2, "episode": "round"}, ValueError, ["max_rounds=2", "matches only"]),
            ({"seats": 5}, ValueError, ["seats=5", "4", "8"]),
            ({"chip_cost": -1}, ValueError, ["chip_cost=-1"]),
            ({"render_mode": "rgb_array"}, ValueError, ["render_mode='rgb_array'", "human, ansi"]),
        ],
        ids=str,
    )
    def test_wrong_arguments(self, arguments: dict[str, Any], error: type[Exception], words: list[str]) -> None:
        with pytest.raises(error) as raised:
            cucumber_v0.env(**arguments)
        assert all(word in str(raised.value) for word in words), raised.value

    def test_spaces(self) -> None:
        env = cucumber_v0.env(episode="round")
        space = env.observation_space("player_0")
        assert list(space.spaces) == ["observation", "action_mask"]
        assert space["observation"] == Box(0, 1, (288,), np.int8)
        assert space["action_mask"] == Box(0, 1, (13,), np.int8)
        assert env.action_space("player_3") == Discrete(13)
        assert cucumber_v0.env(rules="revival").action_space("player_0") == Discrete(23)
        assert cucumber_v0.env(rules="concombre").action_space("player_0") == Discrete(23)
        assert env.metadata["is_parallelizable"] is False

    def test_spaces_belong_to_one_agent_of_one_environment(self) -> None:
        one, two = cucumber_v0.env(), cucumber_v0.env()
        spaces = [env.action_space(agent) for env in (one, two) for agent in env.possible_agents]
        assert len({id(space) for space in spaces}) == 8
        assert one.action_space("player_1") is one.action_space("player_1")


class TestTurns:
    @pytest.mark.parametrize("make", ENVS)
    @pytest.mark.parametrize(
        "table",
        [
            {"rules": "revival", "num_players": 5, "elimination": "remove"},
            {"rules": "concombre", "num_players": 3},
            {"rules": "cucumber", "num_players": 7, "episode": "round"},
            {"rules": "wikipedia", "num_players": 4, "seats": 8, "max_rounds": 3},
        ],
        ids=name_of,
    )
    def test_masks_infos_and_types(self, make: type[CucumberAEC], table: dict[str, Any]) -> None:
        env = make(**table)
        env.reset(seed=5)
        for _ in walk(env, random_policy(5)):
            for agent in env.possible_agents:
                observation = env.observe(agent)
                mask = observation["action_mask"]
                assert env.observation_space(agent).contains(observation)
                assert mask.any() == (agent == env._mover)
                if agent in env.agents:
                    assert list(env.infos[agent]) == ["action_mask"]
                    np.testing.assert_array_equal(env.infos[agent]["action_mask"], mask)
                    assert env.infos[agent]["action_mask"].dtype == np.int8
                    assert type(env.rewards[agent]) is float
                    assert type(env._cumulative_rewards[agent]) is float
                    assert type(env.terminations[agent]) is bool
                    assert type(env.truncations[agent]) is bool
                    assert not (env.terminations[agent] and env.truncations[agent])
            assert env.infos.keys() == env.rewards.keys() == env.terminations.keys() == set(env.agents)

    def test_the_taker_of_a_trick_acts_twice_running(self) -> None:
        env = begun(leader=1, num_players=3, rules="three_card", episode="round")
        put(env, hands="235 456 789")
        seen = [env.agent_selection]
        for rank in "4728":  # the 7 takes, after the 2 of the third seat
            play(env, rank)
            seen.append(env.agent_selection)
        assert seen == ["player_1", "player_2", "player_0", "player_2", "player_0"]
        assert not env.infos["player_2"]["action_mask"].any()

    def test_what_is_handed_out_never_changes_afterwards(self) -> None:
        env = cucumber_v0.env(rules="concombre", num_players=4)
        env.reset(seed=3)
        handed: list[tuple[np.ndarray, bytes]] = []
        policy = random_policy(3)
        for agent in env.agent_iter():
            observation, *_, info = env.last()
            arrays = [*observation.values(), info["action_mask"], *env.observe(agent).values(), env.state()]
            handed += [(array, array.tobytes()) for array in arrays]
            dead = env.terminations[agent]
            env.step(None if dead else policy(np.flatnonzero(observation["action_mask"])))
        assert all(array.tobytes() == before for array, before in handed)

    def test_observe_gives_new_arrays_and_changes_nothing(self) -> None:
        env = cucumber_v0.env(num_players=3)
        env.reset(seed=1)
        for agent in env.possible_agents:
            first = env.observe(agent)
            before = {name: array.copy() for name, array in first.items()}
            for array in first.values():
                array[:] = 7
            for name, array in env.observe(agent).items():
                np.testing.assert_array_equal(array, before[name])
        assert env.last()[0]["action_mask"].max() == 1

    def test_the_observation_is_that_of_the_layout(self) -> None:
        env = begun(leader=2, num_players=3, rules="three_card", elimination="remove")
        put(env, hands="23A 456 789", totals=[1, 2, 3])
        play(env, "8")
        assert env.layout == Layout.of(Rules.preset("three_card"), 3, "match")
        text = env.layout.explain(env.observe("player_0")["observation"])
        lines = dict(line.split(maxsplit=1) for line in text.splitlines())
        assert (lines["hand"], lines["legal"]) == ("23A", "A")
        assert (lines["trick"], lines["totals"]) == ("me:- +1:- +2:8", "me:1 +1:2 +2:3")
        other = env.layout.views(env.observe("player_1")["observation"])
        assert not other["legal"].any()

    def test_reset_begins_anew_at_any_time(self) -> None:
        env = begun(num_players=4, rules={"hand_size": 1, "tie": "all"}, elimination="remove")
        put(env, hands="2 K K 3", totals=[0, 29, 29, 0])
        play(env, "2KK3")
        env.step(None)  # one of two dead agents has left
        assert env.agent_selection == "player_2"
        assert env.reset(seed=0, options={"unknown": 1}) is None
        assert env.agents == env.possible_agents
        assert not any(env.terminations.values())
        returns_of(env, random_policy(0))

    def test_dead_steps_are_those_of_the_base_class(self) -> None:
        env = cucumber_v0.raw_env(
            rules={"hand_size": 1, "tie": "all", "threshold": 9}, num_players=6, elimination="remove"
        )
        policy = random_policy(2)
        several_at_once = 0
        for seed in range(20):
            env.reset(seed=seed)
            while env.agents:
                twin = copy.deepcopy(env)
                several_at_once += 1 < sum(env.terminations.values()) < len(env.agents)
                dead = env.terminations[env.agent_selection]
                env.step(None if dead else policy(np.flatnonzero(env.last()[0]["action_mask"])))
                if dead:
                    AECEnv._was_dead_step(twin, None)
                    assert (env.agents, env.agent_selection) == (twin.agents, twin.agent_selection)
                    assert env._skip_agent_selection == twin._skip_agent_selection
                    assert env.rewards == twin.rewards
                    assert env._cumulative_rewards == twin._cumulative_rewards
                    assert env.terminations == twin.terminations
        assert several_at_once

    def test_policies_play_at_it(self) -> None:
        env = cucumber_v0.env(rules="revival", num_players=3)
        env.reset(seed=2)
        assert "random" in baselines.BASELINES
        policy = policies.make("random")
        for agent in env.agent_iter():
            if env.terminations[agent]:
                env.step(None)
                continue
            turns = env.turns()
            np.testing.assert_array_equal(turns.mask[0], env.infos[agent]["action_mask"])
            np.testing.assert_array_equal(turns.observation[0], env.observe(agent)["observation"])
            env.step(policy.act(turns)[0])
        with pytest.raises(ValueError, match="nobody is to move"):
            env.turns()


class TestCards:
    @pytest.mark.parametrize("episode", ["match", "round"])
    @pytest.mark.parametrize("rules", ["cucumber", "revival", "concombre", "express"])
    def test_the_same_as_in_self_play(self, rules: str, episode: str) -> None:
        """Game 0 under the same seed, over three episodes, turn by turn."""
        table = {"rules": rules, "num_players": 4, "episode": episode}
        env = cucumber_v0.env(**table)
        games = SelfPlay(**table, num_games=2, skip_forced=False, autoreset=True)
        at = games.reset(seed=2**70 + 1)
        policy = random_policy(1)
        for number in range(3):
            env.reset(seed=2**70 + 1 if number == 0 else None)
            for agent in env.agent_iter():
                observation, *_ = env.last()
                if env.terminations[agent]:
                    env.step(None)
                    continue
                assert agent == f"player_{at.turn[0]}"
                np.testing.assert_array_equal(observation["observation"], at.observation[0])
                np.testing.assert_array_equal(observation["action_mask"], at.mask[0])
                action = policy(np.flatnonzero(at.mask[0]))
                env.step(action)
                at = games.step(np.array([action]), rows=np.array([0]))
                assert np.allclose(at.rewards[0], list(env.rewards.values()))
                assert bool(at.done[0]) == all(env.terminations.values())

    def test_key_names_them(self) -> None:
        env = cucumber_v0.env(num_players=5)
        env.reset(seed=11)
        env.reset()
        assert env.key == (11, 0, 1)
        game = Game.new("cucumber", 5, seed=11, episode_index=1)
        for seat in range(5):
            hand = env.layout.views(env.observe(f"player_{seat}")["observation"])["hand"]
            text = "".join(rank * int(count) for rank, count in zip(RANKS, hand.sum(-1), strict=True))
            assert text == game.hands[seat]

    def test_seeds(self) -> None:
        env = cucumber_v0.env()
        env.reset(seed=0)
        first = env.state()
        env.reset()
        assert env.key == (0, 0, 1)
        assert (env.state() != first).any()
        env.reset(seed=np.int64(0))
        np.testing.assert_array_equal(env.state(), first)
        env.reset(seed=2**64)
        assert env.key == (int(seed_word(2**64)), 0, 0)
        for seed in (-1, 1.5, "1", True):
            with pytest.raises((ValueError, TypeError), match="seed"):
                env.reset(seed=seed)
        assert env.key == (int(seed_word(2**64)), 0, 0)

    def test_without_a_seed_the_system_gives_one(self) -> None:
        keys = set()
        for _ in range(3):
            env = cucumber_v0.env()
            env.reset()
            seed, _, episode = env.key
            assert episode == 0
            env.reset()
            assert env.key == (seed, 0, 1)
            keys.add(seed)
        assert len(keys) == 3

    def test_other_generators_are_left_alone(self) -> None:
        before = random.getstate(), np.random.get_state()[1].tobytes()  # noqa: NPY002 (that is what is watched)
        env = cucumber_v0.env(num_players=3)
        env.reset()
        returns_of(env, lambda legal: int(legal[0]))
        assert (random.getstate(), np.random.get_state()[1].tobytes()) == before  # noqa: NPY002


class TestSecrets:
    @staticmethod
    def permuted(env: CucumberAEC, seat: int, chance: Random) -> CucumberAEC:
        """A copy in which everything is other that `seat` cannot see: hands, stock and what names the cards."""
        twin = copy.deepcopy(env)
        game = twin._table["game"][0]
        hands, public = game["hands"], game["public"]
        unseen = int(compile_rules(env.rules)["deck"][0]) - int(public["gone"]) - int(hands[seat])
        cards = [rank for rank in range(13) for _ in range(unseen >> 4 * rank & 15)]
        chance.shuffle(cards)
        for other in set(range(env.max_num_agents)) - {seat}:
            held = sum(int(hands[other]) >> 4 * rank & 15 for rank in range(13))
            hands[other] = sum(1 << 4 * cards.pop() for _ in range(held))
        game["seed"], game["game"], game["episode"] = chance.getrandbits(64), chance.getrandbits(40), 99
        if env._mover is not None:
            refresh(twin)
        return twin

    @pytest.mark.parametrize(
        "table",
        [
            {"rules": "cucumber", "num_players": 4, "episode": "round", "render_mode": "ansi"},
            {"rules": "revival", "num_players": 5, "render_mode": "ansi"},
            {"rules": "concombre", "num_players": 8, "render_mode": "ansi", "seats": 8},
        ],
        ids=name_of,
    )
    def test_nothing_hidden_is_seen(self, table: dict[str, Any]) -> None:
        env = cucumber_v0.env(**table)
        env.reset(seed=4)
        chance = Random(4)
        changed = 0
        for step, _ in enumerate(walk(env, random_policy(4))):
            if step % 3 or env._mover is None:
                continue
            for seat, agent in enumerate(env.possible_agents):
                twin = self.permuted(env, seat, chance)
                for name, array in env.observe(agent).items():
                    if agent == env._mover or name == "observation":
                        np.testing.assert_array_equal(array, twin.observe(agent)[name])
                np.testing.assert_array_equal(env.information_state(agent), twin.information_state(agent))
                if agent == env._mover:
                    np.testing.assert_array_equal(env.infos[agent]["action_mask"], twin.infos[agent]["action_mask"])
                    np.testing.assert_array_equal(env.last()[0]["observation"], twin.last()[0]["observation"])
                    assert env.turns().views.tobytes() == twin.turns().views.tobytes()
                    assert env.render() == twin.render()
                changed += (env.state() != twin.state()).any()
        assert changed > 20  # the critic sees what the seats do not, so the permutation did something

    def test_the_text_shows_the_hand_of_the_seat_to_move_alone(self) -> None:
        env = begun(leader=1, num_players=3, rules="three_card", episode="round", render_mode="ansi")
        put(env, hands="235 456 789")
        assert env.render().splitlines() == [
            "One round: trick 1 of 3, led by seat 1",
            "          played  hand",
            "  seat 0  .       ???   deals",
            "> seat 1  .       456",
            "  seat 2  .       ???",
            "Seat 1 is to play a card: 4, 5, 6.",
        ]
        play(env, "472835956")
        assert "?" not in env.render()
        assert "Seat" not in env.render()

    def test_human_prints(self, capsys: pytest.CaptureFixture[str]) -> None:
        env = cucumber_v0.env(render_mode="human")
        env.reset(seed=1)
        env.step(int(env.infos[env.agent_selection]["action_mask"].argmax()))
        assert env.render() is None
        assert capsys.readouterr().out.count("Round 1: trick 1 of 7") == 3

    def test_rendering_without_a_mode_warns(self) -> None:
        env = cucumber_v0.env()
        env.reset(seed=1)
        with pytest.warns(UserWarning, match="without a render_mode"):
            assert env.render() is None


class TestState:
    def test_it_holds_what_all_seats_know(self) -> None:
        env = cucumber_v0.env(rules="three_card", num_players=3, episode="round")
        env.reset(seed=8)
        for _ in walk(env, random_policy(8)):
            state, n, size = env.state(), 3, env.layout.size
            assert state in env.state_space
            assert env.state_space.shape == (size + 160,)  # 3 × 53 = 159, filled up to a multiple of 8
            np.testing.assert_array_equal(state[:size], env.observe("player_0")["observation"])
            hands = state[size : size + n * 52].reshape(n, 13, 4)
            for seat in range(n):
                views = env.layout.views(env.observe(f"player_{seat}")["observation"])
                np.testing.assert_array_equal(hands[seat], views["hand"])
            turn = state[size + n * 52 :][:n]
            assert [f"player_{seat}" for seat in np.flatnonzero(turn)] == ([env._mover] if env._mover else [])

    def test_with_eight_seats_it_is_as_wide_for_every_table(self) -> None:
        small, large = cucumber_v0.env(num_players=2, seats=8), cucumber_v0.env(rules="concombre", num_players=8)
        assert small.state_space.shape[0] == small.layout.size + 8 * 53
        assert cucumber_v0.env(rules="concombre", num_players=8, seats=8).state_space == small.state_space
        assert large.state_space.shape[0] == large.layout.size + 8 * 53

    def test_information_state_remembers_the_round(self) -> None:
        env = begun(leader=0, num_players=3, rules="three_card", episode="round")
        put(env, hands="235 456 789")
        play(env, "2589")
        layout = env.information_layout
        views = layout.views(env.information_state("player_1"))
        assert "".join(RANKS[i] for i in np.flatnonzero(views["deal"][:, 0])) == "456"
        plays = [["".join(RANKS[i] for i in np.flatnonzero(card)) for card in trick] for trick in views["plays"][:2]]
        assert plays == [["5", "8", "2"], ["", "9", ""]]  # by seat, from player 1 on


class TestCopies:
    @staticmethod
    def trace(env: CucumberAEC, seed: int) -> list[Any]:
        """All that is to be seen until the next episode has been played to its end."""
        seen: list[Any] = []
        policy = random_policy(seed)
        for _ in range(2):
            for agent, action in walk(env, policy):
                seen.append((agent, action, env.agents[:], dict(env.rewards), dict(env.terminations)))
                seen.append([env.observe(agent)["observation"].tobytes() for agent in env.possible_agents])
            env.reset()
        return seen

    @pytest.mark.parametrize("make", ENVS)
    def test_copies_play_on_alike(self, make: type[CucumberAEC]) -> None:
        """At every sixth turn of a match in which agents leave, dead ones selected included."""
        env = make(rules={"preset": "revival", "hand_size": 2, "threshold": 15}, num_players=4, elimination="remove")
        env.reset(seed=6)
        dead = 0
        for step, _ in enumerate(walk(env, random_policy(6))):
            pending = any(env.terminations.values())
            if not env.agents or (step % 6 and not pending):
                continue
            dead += pending
            state = env.clone_state()
            other = make(rules=env.rules, num_players=4, elimination="remove")
            other.restore_state(pickle.loads(pickle.dumps(state)))
            expected = self.trace(copy.deepcopy(env), step)
            assert self.trace(pickle.loads(pickle.dumps(env)), step) == expected
            assert self.trace(other, step) == expected
            before = self.trace(env, step)
            env.restore_state(state)
            assert before == expected
        assert dead >= 3

    def test_copies_share_nothing(self) -> None:
        env = cucumber_v0.env(num_players=3)
        env.reset(seed=1)
        before, state = env.state(), env.clone_state()
        for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
            returns_of(twin, random_policy(1))
            twin.reset()
        assert (env.agents, env.key) == (env.possible_agents, (1, 0, 0))
        returns_of(env, random_policy(2))
        for _ in range(2):
            env.restore_state(state)
            np.testing.assert_array_equal(env.state(), before)
            returns_of(env, random_policy(3))

    def test_an_environment_that_has_not_begun_can_be_copied(self) -> None:
        for env in (copy.deepcopy(cucumber_v0.env()), pickle.loads(pickle.dumps(cucumber_v0.env()))):
            assert not hasattr(env, "agents")
            env.reset(seed=1)
            assert env.key == (1, 0, 0)

    def test_states_of_other_tables_are_refused(self) -> None:
        env = cucumber_v0.env(num_players=3)
        env.reset(seed=1)
        for arguments in (
            {"num_players": 4},
            {"num_players": 3, "reward": "points"},
            {"num_players": 3, "rules": "bga"},
        ):
            with pytest.raises(ValueError, match="other arguments"):
                cucumber_v0.env(**arguments).restore_state(env.clone_state())
        with pytest.raises(TypeError, match="clone_state"):
            env.restore_state(env.state())

    def test_where_the_memory_ends(self) -> None:
        env = cucumber_v0.env(rules="concombre", num_players=8, seats=8)
        env.reset(seed=1)
        assert members(sum(int(bit) << i for i, bit in enumerate(env._mask))) == [13, 14, 15, 16, 17]
        assert env._mask.base is not None
        assert env._rows["player_7"].nbytes == env.layout.size
