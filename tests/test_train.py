"""The algorithm: advantages by hand, what is played and kept, the loss and its closed form; and that it learns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from training import chain, coarse, equal, network, played, run, sharpen, small, weights

import train
from agents.network import ILLEGAL, divergence, entropy, masked_log_softmax
from agents.opponents import Lineup
from cucumber_env.envs.vector import SelfPlay
from cucumber_env.policies import make, sample


def test_advantages_follow_each_seats_own_decisions() -> None:
    # Seat 0 takes a trick and moves twice running; the round is then paid on seat 1's move.
    rollout = chain(([0], [0], [[0, 0]]), ([0], [0], [[0, 0]]), ([0], [1], [[-4, 4]]))
    values = np.array([0.5, 0.25, -0.1], np.float32)
    advantage, target = train.advantages(rollout, values, scale=4.0, gae_lambda=0.5)
    np.testing.assert_allclose(advantage, [0.25 - 0.5 + 0.5 * (-1 - 0.25), -1 - 0.25, 1 + 0.1], rtol=1e-6)
    np.testing.assert_allclose(target, advantage + values, rtol=1e-6)


def test_a_whole_table_of_advantages_by_hand() -> None:
    """Two games of three seats, values and λ such that every number below can be checked on paper."""
    rollout = chain(
        ([0, 1], [1, 0], [[0, 0, 0], [0, 0, 0]]),  # decisions 0 (game 0, seat 1) and 1 (game 1, seat 0)
        ([0, 1], [1, 2], [[0, 0, 0], [1, -2, 1]]),  # 2: the taker again; 3: game 1 ends on it, seat 1 never decided
        ([0], [0], [[2, 4, -6], [0, 0, 0]]),  # 4: pays between two decisions of seat 1
        ([0], [1], [[0, 0, 0], [0, 0, 0]]),  # 5
        ([], [], [[3, 3, -6], [0, 0, 0]]),  # nobody's decision: a forced turn, or an opponent's
        ([0], [2], [[1, 1, -2], [0, 0, 0]]),  # 6: the loser's last decision
    )
    values = np.array([1, 2, 3, 4, 5, 6, 7], np.float32)
    advantage, target = train.advantages(rollout, values, scale=2.0, gae_lambda=0.5)
    last = (3 + 1) / 2 - 6  # decision 5: all that is paid after it
    middle = 4 / 2 + 6 - 3 + 0.5 * last  # decision 2: what seat 1 was paid on seat 0's move
    by_hand = [
        3 - 1 + 0.5 * middle,
        1 / 2 - 2,
        middle,
        1 / 2 - 4,
        (2 + 3 + 1) / 2 - 5,
        last,
        -2 / 2 - 7,
    ]
    np.testing.assert_allclose(advantage, by_hand, rtol=1e-6)
    np.testing.assert_allclose(target, advantage + values, rtol=1e-6)


def test_a_reward_between_two_decisions_belongs_to_the_earlier_one() -> None:
    # Three seats, a match: seat 2 earns on the moves of 0 and 1, between its decisions and after its last one.
    rollout = chain(
        ([0], [2], [[0, 0, 1]]),
        ([0], [0], [[2, 0, 3]]),
        ([0], [2], [[0, 0, 0]]),
        ([0], [1], [[0, 5, 7]]),
    )
    advantage, _ = train.advantages(rollout, np.zeros(4, np.float32), scale=1.0, gae_lambda=1.0)
    np.testing.assert_allclose(advantage, [1 + 3 + 7, 2, 7, 5])


def test_games_of_different_length_do_not_mix() -> None:
    # Game 1 ends in the first step; a loser without a later decision is charged for its last one.
    rollout = chain(([0, 1], [0, 1], [[0, 0], [1, -1]]), ([0], [1], [[-2, 2], [0, 0]]))
    advantage, _ = train.advantages(rollout, np.zeros(3, np.float32), scale=1.0, gae_lambda=0.9)
    np.testing.assert_allclose(advantage, [-2, -1, 2])


def test_without_discount_and_with_lambda_one_advantages_are_returns() -> None:
    """γ = 1: on real games every target is what the seat is paid from then on, whatever the values are."""
    table = SelfPlay("revival", num_games=16, num_players=3, episode="match", autoreset=False)
    rollout = played(network(table), table)
    values = np.random.default_rng(0).normal(size=len(rollout.action)).astype(np.float32)
    _, target = train.advantages(rollout, values, scale=2.0, gae_lambda=1.0)
    for number, (made, games, seats, _) in enumerate(rollout.steps):
        to_come = sum(rewards for *_, rewards in rollout.steps[number:])[games, seats]
        np.testing.assert_allclose(target[made], to_come / 2.0, atol=1e-4)


def test_a_rollout_keeps_decisions_only_and_pays_zero_sums() -> None:
    table = SelfPlay(num_games=128, num_players=4, autoreset=False)
    player = network(table)
    rollout = played(player, table, episode=5)
    assert rollout.turns == 128 * 28
    assert (rollout.mask.sum(axis=1) > 1).all()
    assert rollout.mask[np.arange(len(rollout.action)), rollout.action].all()
    assert [name for name, column in vars(rollout).items() if isinstance(column, np.ndarray)] == list(COLUMNS)
    np.testing.assert_allclose(rollout.returns().sum(axis=1), 0, atol=1e-5)
    assert (np.abs(rollout.returns()).max(axis=1) > 0).all()
    assert same(rollout, played(player, table, episode=5))
    assert not same(rollout, played(player, table, episode=6))
    assert not same(rollout, played(player, table, episode=5, first=128))
    assert not same(rollout, played(player, table, episode=5, seed=4))


COLUMNS = {"observation": np.int8, "hidden": np.int8, "mask": bool, "action": np.int64, "log_probabilities": np.float32}


def same(one: train.Rollout, other: train.Rollout) -> bool:
    return all(getattr(one, name).tobytes() == getattr(other, name).tobytes() for name in COLUMNS)


@pytest.mark.parametrize(
    ("rules", "players", "episode"), [("cucumber", 4, "round"), ("concombre", 3, "match"), ("revival", 2, "match")]
)
def test_a_rollout_is_the_game_that_was_played(rules: str, players: int, episode: str) -> None:
    """Its decisions, put back into games in which every turn is asked for, lead to the same rewards."""
    table = SelfPlay(rules, num_games=24, num_players=players, episode=episode, autoreset=False)
    extra = table.hidden(np.arange(0)).shape[1]
    rollout = played(network(table, extra=extra), table, first=7)
    decisions: dict[int, list[tuple[int, int]]] = {game: [] for game in range(24)}
    for made, games, seats, _ in rollout.steps:
        for row, game, seat in zip(range(made.start, made.stop), games.tolist(), seats.tolist(), strict=True):
            decisions[game].append((row, seat))
    again = SelfPlay(rules, num_games=24, num_players=players, episode=episode, autoreset=False, skip_forced=False)
    at = again.reset(seed=3, games=7 + np.arange(24), episodes=0)
    paid = np.zeros((24, players))
    while len(rows := np.flatnonzero(at.done == 0)):
        actions = at.mask[rows].argmax(axis=1)
        hidden = again.hidden(rows)
        for place, game in enumerate(rows.tolist()):
            if at.mask[game].sum() > 1:
                row, seat = decisions[game].pop(0)
                assert seat == at.turn[game]
                assert rollout.observation[row].tobytes() == at.observation[game].tobytes()
                assert rollout.mask[row].tolist() == at.mask[game].astype(bool).tolist()
                assert rollout.hidden[row].tobytes() == hidden[place].tobytes()
                actions[place] = rollout.action[row]
        at = again.step(actions, rows=rows)
        paid += at.rewards
    assert not any(decisions.values())
    np.testing.assert_allclose(paid, rollout.returns(), atol=1e-5)


def test_seats_of_opponents_give_no_samples() -> None:
    table = SelfPlay(num_games=64, num_players=3, autoreset=False)
    player = network(table, extra=table.hidden(np.arange(0)).shape[1])
    seated = np.ones((64, 3), np.int64)
    learner = np.arange(64) % 3
    seated[np.arange(64), learner] = 0
    rollout = played(player, table, lineup=Lineup((player, make("lowest")), seated))
    for made, games, seats, _ in rollout.steps:
        assert made.stop - made.start == len(games)
        np.testing.assert_array_equal(seats, learner[games])
    asked = np.concatenate([games for _, games, *_ in rollout.steps])
    assert len(asked) == len(rollout.action) == len(rollout.hidden) > 0
    assert rollout.turns == 64 * 21
    values = np.zeros(len(rollout.action), np.float32)
    advantage, _ = train.advantages(rollout, values, scale=1.0, gae_lambda=1.0)
    np.testing.assert_allclose(advantage, rollout.returns()[asked, learner[asked]], atol=1e-5)


@pytest.mark.parametrize("bf16", [False, True])
def test_the_ratio_is_exactly_one_until_the_first_step(bf16: bool) -> None:
    """Whatever the sizes of minibatches: in these networks sums are exact, so that only a mistake could change it."""
    trainer = train.Trainer(
        small(games=256, hidden=(16, 16), epochs=1, minibatch=37, reverse_kl=1.0, learning_rate=1e-300)
    )
    coarse(trainer.network)
    trainer.network.bf16 = bf16
    before = weights(trainer.network)
    batch, _ = trainer.prepare(trainer.play())
    spread = entropy(batch["log_probabilities"], batch["mask"])
    assert 0.3 < spread.mean() < 0.9 * batch["mask"].sum(1).log().mean()  # no uniform policy, for which it is easy
    for size in (1, 2, 3, 50, len(spread)):
        rows = torch.randperm(len(spread))[:size]
        logs, _ = trainer.network(*(batch[name][rows] for name in ("observation", "hidden", "mask")))
        assert torch.equal(logs, batch["log_probabilities"][rows])
        assert torch.equal(divergence(logs, batch["log_probabilities"][rows], batch["mask"][rows]), torch.zeros(size))
    metrics = trainer.learn(batch)
    assert equal(weights(trainer.network), before)
    assert (metrics["losses/approx_kl"], metrics["losses/clipfrac"]) == (0, 0)
    assert metrics["losses/policy_loss"] == pytest.approx(0, abs=1e-6)  # advantages have mean 0


@pytest.mark.parametrize(("bf16", "tolerance"), [(False, 2e-6), (True, 2e-3)])
def test_a_trained_network_starts_from_ratio_one_but_for_rounding(bf16: bool, tolerance: float) -> None:
    """Products of few rows may be summed in another order: one unit in the last place of fp32, or of bf16."""
    trainer = train.Trainer(small(games=512, hidden=(128, 128)))
    sharpen(trainer.network, 100)
    trainer.network.bf16 = bf16
    batch, _ = trainer.prepare(trainer.play())
    for rows in torch.randperm(len(batch["action"])).split(1000):
        logs, _ = trainer.network(*(batch[name][rows] for name in ("observation", "hidden", "mask")))
        apart = (logs - batch["log_probabilities"][rows]).masked_fill(~batch["mask"][rows], 0.0).abs()
        assert apart.max() <= tolerance
        assert (apart.amax(1) > 0).float().mean() < 0.02


def loss_batch(mask: Tensor, action: Tensor, **columns: Tensor) -> dict[str, Tensor]:
    """A minibatch with nothing to observe, by default of a uniform policy."""
    count = len(mask)
    uniform = -mask.sum(1, keepdim=True).double().log().expand(mask.shape)
    return {
        "observation": torch.zeros(count, 8, dtype=torch.int8),
        "hidden": torch.zeros(count, 0, dtype=torch.int8),
        "mask": mask,
        "action": action,
        "log_probabilities": uniform,
        "magnet": uniform,
        "advantage": torch.zeros(count, dtype=torch.float64),
        "target": torch.zeros(count, dtype=torch.float64),
        **columns,
    }


@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("size", [1.0, 1e4])
def test_one_legal_action_of_thirteen_is_finite(bf16: bool, size: float) -> None:
    player = network(hidden=(4,))
    player.bf16 = bf16
    sharpen(player, 100 * size)
    mask = torch.eye(13, dtype=torch.bool)
    observation = torch.randn(13, 8)
    logs = player.log_probabilities(observation, mask)
    assert torch.equal(logs.diagonal(), torch.zeros(13))
    assert torch.equal(logs.exp(), mask.float())
    assert torch.equal(entropy(logs, mask), torch.zeros(13))
    batch = {
        name: column.float() if column.is_floating_point() else column
        for name, column in loss_batch(mask, torch.arange(13), observation=observation).items()
    }
    loss, seen = train.losses(player, batch, small(reverse_kl=0.5), 0.1)
    loss.backward()
    assert loss.isfinite()
    assert seen.isfinite().all()
    assert seen[2:].tolist() == [0, 0, 0]  # entropy, approx_kl, clipfrac
    gradients = [weight.grad for weight in player.parameters()]
    assert all(gradient is not None and gradient.isfinite().all() for gradient in gradients)


def test_entropy_and_divergence_are_over_legal_actions_alone() -> None:
    draw = np.random.default_rng(1)
    mask = draw.random((50, 13)) < 0.4
    mask[:, 3] = True
    mine, other = draw.normal(0, 3, (2, 50, 13))
    one, two = (masked_log_softmax(torch.from_numpy(logits), torch.from_numpy(mask)) for logits in (mine, other))
    for row in range(50):
        p, q = (np.exp(logits[row, mask[row]]) for logits in (mine, other))
        p, q = p / p.sum(), q / q.sum()
        np.testing.assert_allclose(one[row, mask[row]].exp(), p)
        np.testing.assert_allclose(entropy(one, torch.from_numpy(mask))[row], -np.sum(p * np.log(p)))
        np.testing.assert_allclose(divergence(one, two, torch.from_numpy(mask))[row], np.sum(p * np.log(p / q)))
    logits = torch.from_numpy(mine).requires_grad_()
    logs = masked_log_softmax(logits, torch.from_numpy(mask))
    (entropy(logs, torch.from_numpy(mask)).sum() + logs[:, 3].sum()).backward()
    assert logits.grad is not None
    assert (logits.grad.numpy()[~mask] == 0).all()
    assert (logits.grad.numpy()[mask] != 0).any()


def test_a_million_samples_are_legal() -> None:
    draw = np.random.default_rng(0)
    mask = draw.random((1000, 13)) < 0.3
    mask[np.arange(1000), draw.integers(13, size=1000)] = True
    probabilities = np.where(mask, draw.random((1000, 13), np.float32) ** 20, 0).astype(np.float32)
    probabilities[:, :] = np.where(probabilities.sum(1, keepdims=True) > 0, probabilities, mask)
    u = np.concatenate([[0.0, np.nextafter(1.0, 0)], draw.random(998)])
    for _ in range(1000):
        actions = sample(probabilities, u)
        assert (probabilities[np.arange(1000), actions] > 0).all()
        u = np.roll(u, 1)


@pytest.mark.parametrize(("bf16", "size"), [(False, 100.0), (True, 100.0), (False, 1e4)])
def test_a_million_choices_at_real_tables_are_legal(bf16: bool, size: float) -> None:
    """Of a policy so sharp that the chance of most legal actions is almost or wholly zero; a third of 10⁶ each."""
    table = SelfPlay("concombre", num_games=25_000, num_players=2, episode="match", autoreset=True)
    player = network(table, hidden=(8,))
    player.bf16 = bf16
    sharpen(player, size)
    at = table.reset(seed=1)
    drawn = 0
    while drawn < 1_000_000 / 3:
        rows = np.flatnonzero(at.mask.sum(axis=1) > 1)
        chosen = train.choose(player, table, rows)
        assert at.mask[rows, chosen["action"]].all()
        assert np.isfinite(chosen["log_probabilities"]).all()
        assert (chosen["log_probabilities"][~chosen["mask"]] < ILLEGAL / 2).all()
        drawn += len(rows)
        actions = at.mask.argmax(axis=1)
        actions[rows] = chosen["action"]
        at = table.step(actions)  # refuses illegal actions, too


class Bandit(nn.Module):
    """A policy of one decision: `losses` at its logits, a value of 0."""

    def __init__(self, actions: int) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(actions, dtype=torch.float64))

    def forward(self, observation: Tensor, hidden: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        return masked_log_softmax(self.logits.expand(mask.shape), mask), torch.zeros(len(mask), dtype=torch.float64)


def minimised(batch: dict[str, Tensor], config: train.Config, pull: float) -> np.ndarray:
    """The policy at the minimum of `train.losses`."""
    bandit = Bandit(batch["mask"].shape[1])
    descent = torch.optim.LBFGS(
        bandit.parameters(), max_iter=500, tolerance_grad=1e-12, tolerance_change=1e-15, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        descent.zero_grad()
        loss, _ = train.losses(bandit, batch, config, pull)  # type: ignore[arg-type]
        loss.backward()
        return loss

    descent.step(closure)
    logs, _ = bandit(batch["observation"], batch["hidden"], batch["mask"])
    return logs[0].exp().detach().numpy()


COUNTS = np.array([1, 0, 5, 2, 0, 2])
"""How often each action occurs in ten decisions of a bandit; actions that never occur are illegal."""

MAGNETS = {"uniform": [1, 1, 1, 1, 1, 1], "skewed": [8, 1, 1, 4, 1, 3]}


@pytest.mark.parametrize("magnet", list(MAGNETS))
@pytest.mark.parametrize(("alpha", "eta"), [(0.0, 0.5), (0.05, 2.0), (0.3, 1.0), (1.0, 10.0), (2.0, 0.1)])
def test_a_step_of_mirror_descent_is_its_closed_form(magnet: str, alpha: float, eta: float) -> None:
    """π ∝ [π_t ρ^{αη} e^{ηq}]^{1/(1+αη)} (Sokota et al. 2023)."""
    legal = COUNTS > 0
    now = COUNTS / COUNTS.sum()
    rho = np.where(legal, MAGNETS[magnet], 0) / np.sum(np.where(legal, MAGNETS[magnet], 0))
    q = np.array([0.7, 9.0, -0.4, 0.1, -9.0, 0.3])
    action = np.repeat(np.arange(6), COUNTS)
    with np.errstate(divide="ignore"):
        logarithms = {name: np.tile(np.log(p), (10, 1)) for name, p in (("log_probabilities", now), ("magnet", rho))}
    batch = loss_batch(
        torch.from_numpy(np.tile(legal, (10, 1))),
        torch.from_numpy(action),
        advantage=torch.from_numpy(q[action] - now @ q),
        **{name: torch.from_numpy(np.maximum(logs, ILLEGAL)) for name, logs in logarithms.items()},
    )
    found = minimised(batch, small(clip=float("inf"), reverse_kl=1 / eta, value_weight=0.0), pull=alpha)
    expected = (now * rho ** (alpha * eta) * np.exp(eta * np.where(legal, q, 0))) ** (1 / (1 + alpha * eta))
    np.testing.assert_allclose(found, expected / expected.sum(), atol=2e-7)
    assert np.abs(found - now).max() > 0.005  # it has moved at all


def test_a_uniform_magnet_is_the_entropy_bonus() -> None:
    draw = np.random.default_rng(2)
    mask = torch.from_numpy(draw.random((40, 6)) < 0.6)
    mask[:, 1] = mask[:, 4] = True
    action = torch.from_numpy(np.where(draw.random(40) < 0.5, 1, 4))
    batch = loss_batch(mask, action, advantage=torch.from_numpy(draw.normal(size=40)))
    logits = torch.from_numpy(draw.normal(size=6))
    gradients: list[Tensor] = []
    values: list[Tensor] = []
    for pull in (0.7, 0.0):
        bandit = Bandit(6)
        bandit.logits.data.copy_(logits)
        loss, _ = train.losses(bandit, batch, small(), pull)  # type: ignore[arg-type]
        if not pull:
            logs, _ = bandit(batch["observation"], batch["hidden"], mask)
            loss = loss - 0.7 * entropy(logs, mask).mean()
        loss.backward()
        assert bandit.logits.grad is not None
        gradients.append(bandit.logits.grad)
        values.append(loss.detach())
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-12, atol=1e-15)
    torch.testing.assert_close(values[0] - values[1], 0.7 * mask.sum(1).double().log().mean(), rtol=1e-12, atol=0)


def test_clipping_stops_the_gradient_of_what_has_moved_enough() -> None:
    """A ratio of 2 gains nothing for a good action, and is pushed back for a bad one."""
    mask = torch.ones(1, 2, dtype=torch.bool)
    for advantage, moves in ((1.0, False), (-1.0, True)):
        played_with = torch.tensor([[0.25, 0.75]], dtype=torch.float64).log()
        batch = loss_batch(
            mask,
            torch.zeros(1, dtype=torch.int64),
            log_probabilities=played_with,
            advantage=torch.tensor([advantage], dtype=torch.float64),
        )
        bandit = Bandit(2)  # probabilities ½: twice that of the policy that played
        loss, seen = train.losses(bandit, batch, small(clip=0.2), 0.0)  # type: ignore[arg-type]
        loss.backward()
        assert loss.item() == pytest.approx(-1.2 if advantage > 0 else 2.0)
        assert bool(bandit.logits.grad.abs().max() > 0) == moves  # type: ignore[union-attr]
        assert seen.tolist() == pytest.approx([loss.item(), 0, np.log(2), 1 - np.log(2), 1])


def test_it_learns_to_beat_random_play(tmp_path: Path) -> None:
    done = run(small(out=tmp_path / "run", updates=10, games=512, hidden=(64,), minibatch=1024, evaluate_every=10))
    (row,) = train.arena.compare_with(done.trainer.policy(), ["random"], deals=500, seed=5)
    assert row.difference.high < -0.5
