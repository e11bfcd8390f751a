"""Rewards, endings and eliminations of the AEC face: computed by hand, and against the naive game turn by turn."""

from __future__ import annotations

import dataclasses
from random import Random
from typing import Any

import numpy as np
import pytest
from aec_tables import begun, leave, play, put, random_policy, returns_of, walk
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import CHIP, ReferenceGame, ReferenceRules
from strategies import tables
from tables import unpacked

from cucumber_env import cucumber_v0
from cucumber_env.envs.aec import CucumberAEC
from cucumber_env.rules import PRESETS, Rules

ONE_CARD = {"hand_size": 1}
TIES = {"hand_size": 1, "tie": "all"}


def named(*values: float, seats: str = "0123") -> dict[str, Any]:
    """Values of agents; approximate."""
    return {f"player_{seat}": pytest.approx(value) for seat, value in zip(seats, values, strict=False)}


class TestByHand:
    """Four players with one card each, player 0 leads: all there is to a round is who has the highest card."""

    def test_zero_sum_round(self) -> None:
        env = begun(rules=ONE_CARD, episode="round")
        put(env, hands="5 K 7 2")
        rewards = play(env, "5K72")
        assert rewards[:3] == [named(0, 0, 0, 0)] * 3
        assert rewards[3] == named(13 / 3, -13, 13 / 3, 13 / 3)
        assert leave(env) == {
            "player_0": (pytest.approx(13 / 3), True, False),
            "player_1": (-13.0, True, False),
            "player_2": (pytest.approx(13 / 3), True, False),
            "player_3": (pytest.approx(13 / 3), True, False),
        }
        assert env.agents == []

    def test_points_of_two_rounds_are_collected_at_the_own_turn(self) -> None:
        env = begun(rules=ONE_CARD, reward="points")
        put(env, hands="5 K 7 2")
        assert play(env, "5K72")[-1] == named(0, -13, 0, 0)
        assert env.agent_selection == "player_1"  # the deal has moved on to player 0
        assert env.last()[1] == -13
        put(env, hands="5 2 7 A")
        assert play(env, "2") == [named(0, 0, 0, 0)]
        assert env._cumulative_rewards == named(0, 0, 0, 0)
        assert play(env, "7A5")[-1] == named(0, 0, 0, -14)
        assert env.agent_selection == "player_2"
        assert env._cumulative_rewards == named(0, 0, 0, -14)
        put(env, hands="2 2 2 3")
        play(env, "2")
        assert env.last()[1] == -14

    def test_several_payers(self) -> None:
        env = begun(rules=TIES, episode="round")
        put(env, hands="K K 7 2")
        assert play(env, "KK72")[-1] == named(-13 + 13 / 3, -13 + 13 / 3, 26 / 3, 26 / 3)
        env = begun(rules={**ONE_CARD, "payer": "non_winners"}, episode="round", reward="points")
        put(env, hands="K K 7 2")
        assert play(env, "KK72")[-1] == named(-13, 0, -13, -13)

    def test_outcome_of_a_match(self) -> None:
        env = begun(num_players=3, rules=TIES)
        put(env, hands="2 K K", totals=[0, 29, 29])
        assert play(env, "2KK") == [named(0, 0, 0, seats="012")] * 2 + [named(1, -1 / 2, -1 / 2, seats="012")]
        assert leave(env).keys() == {"player_0", "player_1", "player_2"}

    def test_losers_share_when_the_first_out_loses(self) -> None:
        env = begun(rules={**TIES, "end": "first_out_loses"})
        put(env, hands="2 K K 3", totals=[0, 29, 29, 0])
        assert play(env, "2KK3")[-1] == named(1 / 2, -1 / 2, -1 / 2, 1 / 2)
        env = begun(rules={**TIES, "end": "first_out_loses"})
        put(env, hands="K K K K", totals=[29, 29, 29, 29])
        assert play(env, "KKKK")[-1] == named(0, 0, 0, 0)
        assert all(env.terminations.values())

    def test_waiting_agents_are_paid_at_the_end(self) -> None:
        env = begun(rules=TIES)
        put(env, hands="2 K K 3", totals=[0, 29, 29, 0])
        assert play(env, "2KK3")[-1] == named(0, 0, 0, 0)
        assert (env.agents, env.agent_selection) == (env.possible_agents, "player_3")
        put(env, hands="2 - - A", totals=[0, 42, 42, 29])
        assert play(env, "A2") == [named(0, 0, 0, 0), named(1, -1 / 3, -1 / 3, -1 / 3)]
        assert list(leave(env)) == ["player_0", "player_1", "player_2", "player_3"]

    def test_two_agents_leave_at_once(self) -> None:
        env = begun(rules=TIES, elimination="remove")
        put(env, hands="2 K K 3", totals=[0, 29, 29, 0])
        assert play(env, "2KK3")[-1] == named(0, -1 / 3, -1 / 3, 0)
        assert env.terminations == {"player_0": False, "player_1": True, "player_2": True, "player_3": False}
        assert env.infos["player_3"]["action_mask"].any()
        assert leave(env) == {
            "player_1": (pytest.approx(-1 / 3), True, False),
            "player_2": (pytest.approx(-1 / 3), True, False),
        }
        assert (env.agents, env.agent_selection) == (["player_0", "player_3"], "player_3")
        assert env.rewards == named(0, 0, seats="03")
        assert env.observe("player_1")["observation"].any()
        put(env, hands="2 - - A", totals=[0, 42, 42, 29])
        assert play(env, "A2")[-1] == named(1, -1 / 3, seats="03")
        assert list(leave(env)) == ["player_0", "player_3"]

    def test_an_agent_leaves_when_it_declines_to_come_back(self) -> None:
        env = begun(rules={**TIES, "revival": "choice"}, elimination="remove", chip_cost=0.25)
        put(env, hands="2 K K 3", totals=[0, 29, 29, 4])
        assert play(env, "2KK3")[-1] == named(0, 0, 0, 0)
        assert env.agent_selection == "player_1"
        assert np.flatnonzero(env.infos["player_1"]["action_mask"]).tolist() == [20, 21, 22]
        env.step(20)
        assert env.rewards == named(0, -1 / 3, 0, 0)
        assert env.infos["player_2"]["action_mask"].any()  # who is asked next, once the dead agent has left
        assert leave(env) == {"player_1": (pytest.approx(-1 / 3), True, False)}
        assert env.agent_selection == "player_2"
        env.step(21)
        assert env.rewards == named(0, -0.25, 0, seats="023")
        assert not any(env.terminations.values())
        assert env._table["game"]["public"]["totals"][0, 2] == 4

    def test_sudden_death_ends_before_its_losers_leave(self) -> None:
        env = begun(num_players=4, rules=TIES, elimination="remove")
        put(env, hands="K K K K", totals=[20, 20, 29, 20])
        assert play(env, "KKKK")[-1] == named(0, 0, -1 / 3, 0)  # three of 33, and one of 42 who is out
        assert leave(env) == {"player_2": (pytest.approx(-1 / 3), True, False)}
        leader = env.agent_selection
        put(env, hands="2 9 - 9")
        order = {"player_0": "2", "player_1": "9", "player_3": "9"}
        while len(env.agents) == 3 and not any(env.terminations.values()):
            play(env, order[env.agent_selection])
        assert leader in order
        assert env.rewards == named(1, -1 / 3, -1 / 3, seats="013")
        assert all(env.terminations.values())

    def test_losers_of_sudden_death_leave_one_by_one(self) -> None:
        env = begun(num_players=3, rules=TIES, elimination="remove")
        put(env, hands="K K K", totals=[20, 20, 20])
        assert play(env, "KKK")[-1] == named(0, 0, 0, seats="012")
        assert env.agent_selection == "player_1"
        put(env, hands="2 9 3")
        assert play(env, "932")[-1] == named(0, -1 / 2, 0, seats="012")
        assert leave(env) == {"player_1": (pytest.approx(-1 / 2), True, False)}
        put(env, hands="2 - 3")
        play(env, {"player_0": "23", "player_2": "32"}[env.agent_selection])
        assert env.rewards == named(1, -1 / 2, seats="02")

    def test_who_is_not_in_the_sudden_death_of_fixed_rounds_leaves(self) -> None:
        env = begun(
            rules={**TIES, "end": "fixed_rounds", "rounds": 1, "threshold": None}, num_players=3, elimination="remove"
        )
        put(env, hands="2 9 3")
        assert play(env, "293")[-1] == named(0, -1 / 2, 0, seats="012")
        assert leave(env).keys() == {"player_1"}
        assert env.agents == ["player_0", "player_2"]

    def test_the_limit_of_rounds_truncates(self) -> None:
        for elimination in ("wait", "remove"):
            env = begun(rules=ONE_CARD, max_rounds=2, reward="points", elimination=elimination)
            put(env, hands="5 K 7 2")
            play(env, "5K72")
            put(env, hands="5 2 7 3")
            assert play(env, "273")[-1] == named(0, 0, 0, 0)
            assert not any(env.truncations.values())
            assert play(env, "5")[-1] == named(0, 0, -7, 0)
            assert all(env.truncations.values())
            assert not any(env.terminations.values())
            found = leave(env)
            assert found["player_2"] == (-7.0, False, True)
            assert env.agents == []

    def test_who_is_out_when_the_limit_comes_has_lost_all_the_same(self) -> None:
        env = begun(rules=ONE_CARD, max_rounds=1, elimination="remove")
        put(env, hands="5 K 7 2", totals=[0, 29, 0, 0])
        assert play(env, "5K72")[-1] == named(0, -1 / 3, 0, 0)
        assert leave(env) == {
            "player_0": (0.0, False, True),
            "player_1": (pytest.approx(-1 / 3), True, False),
            "player_2": (0.0, False, True),
            "player_3": (0.0, False, True),
        }

    def test_who_may_yet_come_back_when_the_limit_comes_is_not_out(self) -> None:
        env = begun(rules={**ONE_CARD, "revival": "choice"}, max_rounds=1, elimination="remove")
        put(env, hands="5 K 7 2", totals=[0, 29, 0, 0])
        assert play(env, "5K72")[-1] == named(0, 0, 0, 0)
        assert set(leave(env).values()) == {(0.0, False, True)}


class TestIllegalActions:
    def test_raw_env_refuses_them_and_plays_nothing(self) -> None:
        env = begun(cucumber_v0.raw_env, rules="three_card", num_players=3, episode="round")
        put(env, hands="235 456 789")
        play(env, "5")
        before = env.clone_state()
        for action, error in ((0, ValueError), (13, ValueError), (-1, ValueError), (2**65, ValueError)):
            with pytest.raises(error) as raised:
                env.step(action)
            assert str(raised.value) == f"action {action} of player_1 is illegal; legal: 3 (5), 4 (6)"
        for wrong in (None, 3.0, "5", True, np.bool_(True), np.array([3])):
            with pytest.raises(TypeError, match=r"of player_1 is illegal; legal: 3 \(5\), 4 \(6\)"):
                env.step(wrong)
        assert env.clone_state().memory.tobytes() == before.memory.tobytes()
        env.step(np.array(3))
        assert env.agent_selection == "player_2"

    @pytest.mark.parametrize(
        ("arguments", "offender", "others"),
        [
            ({"reward": "points"}, -14, 0),
            ({"reward": "zero_sum"}, -14, 14 / 3),
            ({"episode": "match", "reward": "outcome"}, -1 / 3, 1 / 9),
            ({"episode": "match", "reward": "points"}, -43, 0),
            ({"episode": "match", "reward": "outcome", "rules": {"end": "first_out_loses"}}, -1, 1 / 3),
        ],
        ids=str,
    )
    def test_env_ends_the_episode(self, arguments: dict[str, Any], offender: float, others: float) -> None:
        env = begun(**{"episode": "round", **arguments})
        assert env.reward_range[0] == pytest.approx(offender)
        env.step(int((env.infos["player_0"]["action_mask"] == 0).argmax()))
        assert env.rewards == named(offender, others, others, others)
        assert all(env.terminations.values())
        assert not any(env.truncations.values())
        assert not any(info["action_mask"].any() for info in env.infos.values())
        found = leave(env)
        assert list(found) == env.possible_agents
        assert [reward for reward, *_ in found.values()] == pytest.approx([offender, others, others, others])

    def test_the_return_of_the_episode_counts(self) -> None:
        """Player 1 has paid 13 before: 30 more make the 43 that are the most."""
        env = begun(rules=ONE_CARD, reward="zero_sum")
        put(env, hands="5 K 7 2")
        play(env, "5K72")
        put(env, hands="5 2 7 3")
        assert env.last()[1] == -13
        play(env, "A")
        assert env.rewards == named(10, -30, 10, 10)
        assert leave(env)["player_0"][0] == pytest.approx(13 / 3 + 10)

    def test_agents_that_have_left_count_as_paid(self) -> None:
        env = begun(rules=TIES, elimination="remove")
        put(env, hands="2 K K 3", totals=[0, 29, 29, 0])
        play(env, "2KK3")
        leave(env)
        put(env, hands="2 - - A")
        play(env, "K")
        assert env.rewards == named(1, -1 / 3, seats="03")  # with -1/3 for each of the two before: zero

    def test_a_chip_is_paid_for_in_any_case(self) -> None:
        env = begun(rules={**TIES, "revival": "chip"}, chip_cost=0.25)
        assert env.reward_range == (pytest.approx(-1 / 3 - 0.25), 1)
        put(env, hands="2 K 5 3", totals=[0, 29, 0, 0])
        play(env, "2K53")
        env.step(21)
        assert env.rewards == named(0, -0.25, 0, 0)
        put(env, hands="2 3 5 3")
        assert env.agent_selection == "player_1"
        play(env, "A")
        assert env.rewards == named(1 / 9, -1 / 3, 1 / 9, 1 / 9)


def expected_rewards(
    game: ReferenceGame, before: dict[str, Any], env: CucumberAEC, charged: list[int] | None
) -> tuple[list[float], set[int]]:
    """What the last play of the naive game pays by the definition of the rewards, and who is now out for good."""
    n = game.num_players
    rewards = [0.0] * n
    if charged is not None and not before["tied"] and env.reward != "outcome":
        seats = before["seats"]
        for seat in seats:
            rewards[seat] -= charged[seat]
            if env.reward == "zero_sum":
                rewards[seat] += sum(charged[other] for other in seats if other != seat) / (len(seats) - 1)
    if before["action"] == CHIP:
        rewards[before["turn"]] -= 0.5
    if game.phase == "over":
        if env.reward == "outcome":
            losers = game.losers if env.rules.end == "first_out_loses" else np.flatnonzero(np.array(game.placement) > 1)
            winners = set(range(n)) - set(losers)
            for seat in range(n):
                rewards[seat] += 0 if not winners else 1 / len(winners) if seat in winners else -1 / len(losers)
        return rewards, set()
    offered = set(game._undecided) - game.used if game.phase == "revive" else set()
    out = set(range(n)) - (game.tied or game.alive | offered)
    return rewards, out


def play_beside_the_naive_game(rules: Rules, players: int, seed: int, **arguments: Any) -> None:
    """A whole episode; after each turn the selected agent, its mask, all rewards and who has left must agree."""
    env = cucumber_v0.raw_env(rules=rules, num_players=players, chip_cost=0.5, **arguments)
    env.reset(seed=seed)
    record = env._table["game"][0]
    game = ReferenceGame(
        ReferenceRules(**dataclasses.asdict(rules)),
        players,
        int(record["public"]["dealer"]),
        lambda _round, seats, _size: {seat: unpacked(record["hands"][seat]) for seat in seats},
        env.episode,
    )
    chance = Random(seed)
    left: set[int] = set()
    while game.phase != "over" and game.round < 60:
        leave(env)
        assert env.agent_selection == f"player_{game.turn}"
        assert env.agents == [f"player_{seat}" for seat in range(players) if seat not in left]
        legal = np.flatnonzero(env.last()[0]["action_mask"]).tolist()
        assert legal == game.legal()
        before = {"tied": set(game.tied), "seats": list(game.seats), "turn": game.turn, "action": chance.choice(legal)}
        env.step(before["action"])
        charged = game.play(before["action"])
        rewards, out = expected_rewards(game, before, env, charged)
        gone = out - left if env.elimination == "remove" else set()
        for seat in gone:
            rewards[seat] -= 1 / (players - 1) if env.reward == "outcome" else 0
        for agent in env.agents:
            seat = int(agent[-1])
            assert env.rewards[agent] == pytest.approx(rewards[seat])
            assert env.terminations[agent] == (game.phase == "over" or seat in gone)
        left |= gone
    if game.phase == "over":
        leave(env)
        assert env.agents == []


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_presets_beside_the_naive_game(name: str) -> None:
    rules = Rules.preset(name)
    for seed, elimination in enumerate(("wait", "remove", "remove")):
        play_beside_the_naive_game(rules, min(3 + 2 * seed, rules.max_players), seed, elimination=elimination)
    for reward in ("points", "zero_sum"):
        play_beside_the_naive_game(rules, 4, 9, reward=reward, elimination="remove")
        play_beside_the_naive_game(rules, 4, 9, reward=reward, episode="round")


@settings(max_examples=60)
@given(tables(most_points=30, most_rounds=3), st.integers(0, 2**64), st.sampled_from(("points", "zero_sum", "outcome")))
def test_random_rules_beside_the_naive_game(table: tuple[Rules, int], seed: int, reward: str) -> None:
    play_beside_the_naive_game(*table, seed, reward=reward, elimination="remove")


@pytest.mark.parametrize("reward", ["points", "zero_sum", "outcome"])
@pytest.mark.parametrize("elimination", ["wait", "remove"])
@pytest.mark.parametrize("name", ["cucumber", "concombre", "express", "revival", "literal", "wikipedia"])
def test_sums_and_ranges(name: str, elimination: str, reward: str) -> None:
    env = cucumber_v0.env(rules=name, num_players=4, elimination=elimination, reward=reward)
    low, high = env.reward_range
    for seed in range(4):
        env.reset(seed=seed)
        returns = dict.fromkeys(env.possible_agents, 0.0)
        for _ in walk(env, random_policy(seed)):
            for agent, amount in env.rewards.items():
                returns[agent] += amount
            step = sum(env.rewards.values())
            assert reward != "zero_sum" or step == pytest.approx(0)
            assert reward != "points" or step <= 0
        assert all(low - 1e-9 <= total <= high + 1e-9 for total in returns.values())
        assert reward == "points" or sum(returns.values()) == pytest.approx(0)


@pytest.mark.parametrize("reward", ["points", "zero_sum", "outcome"])
@pytest.mark.parametrize("elimination", ["wait", "remove"])
def test_an_illegal_action_anywhere(elimination: str, reward: str) -> None:
    """The offender ends at the least there is, and the sum stays what it is without one."""
    chance = Random(1)
    for seed in range(30):
        env = cucumber_v0.env(rules="revival", num_players=5, elimination=elimination, reward=reward, chip_cost=0.5)
        env.reset(seed=seed)
        policy, last_turn = random_policy(seed), chance.randrange(200)
        offender = None

        def play_one(legal: np.ndarray) -> int:
            nonlocal last_turn, offender
            last_turn -= 1
            if last_turn >= 0:
                return policy(legal)  # noqa: B023 (called in this turn of the loop alone)
            offender = env.agent_selection  # noqa: B023
            return next(action for action in range(23) if action not in legal)

        returns = returns_of(env, play_one)
        chips = int(env._table["game"]["public"]["revived"][0]).bit_count()
        if offender is not None:
            assert returns[offender] == pytest.approx(env.reward_range[0])
        if reward != "points":
            assert -0.5 * chips - 1e-9 <= sum(returns.values()) <= 1e-9
