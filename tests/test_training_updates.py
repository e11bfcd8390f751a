"""What an update makes of its settings: schedules, minibatches, averages of weights, magnets, the advantage filter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from training import coarse, equal, network, small, weights

import train
from agents.network import ActorCritic, blend

Batch = dict[str, Tensor]


def watch(trainer: train.Trainer) -> list[tuple[Batch, float]]:
    """All minibatches that the trainer will learn from, each with the weight of the magnet's pull."""
    seen: list[tuple[Batch, float]] = []
    losses: Callable[..., Any] = trainer.losses

    def watched(network: ActorCritic, batch: Batch, config: train.Config, pull: float) -> tuple[Tensor, Tensor]:
        seen.append((batch, pull))
        result: tuple[Tensor, Tensor] = losses(network, batch, config, pull)
        return result

    trainer.losses = watched
    return seen


@pytest.mark.parametrize(
    ("schedule", "values"),
    [
        ("constant", [0.8, 0.8, 0.8, 0.8]),
        ("linear", [0.8, 0.6, 0.4, 0.2]),
        ("inverse_sqrt", [0.8, 0.8 / 2**0.5, 0.8 / 3**0.5, 0.4]),
    ],
)
def test_schedules(schedule: str, values: list[float]) -> None:
    config = small(
        games=4,
        epochs=1,
        learning_rate=0.8e-3,
        learning_rate_schedule=schedule,
        entropy=0.8,
        entropy_schedule=schedule,
    )
    trainer = train.Trainer(config)
    seen = watch(trainer)
    for value in values:
        seen.clear()
        assert trainer.advance()["charts/learning_rate"] == pytest.approx(value * 1e-3)
        assert trainer.optimizer.param_groups[0]["lr"] == pytest.approx(value * 1e-3)
        assert [pull for _, pull in seen] == pytest.approx([value] * len(seen))


def test_the_two_schedules_are_separate() -> None:
    config = small(updates=100, learning_rate_schedule="constant", entropy_schedule="inverse_sqrt", entropy=0.5)
    assert config.faded("learning_rate", 99) == config.learning_rate
    assert config.faded("entropy", 99) == pytest.approx(0.05)


def test_every_epoch_sees_every_decision_once_in_an_order_of_its_own() -> None:
    trainer = train.Trainer(small(games=32, minibatch=100, epochs=3, updates=2))
    seen = watch(trainer)
    batch, _ = trainer.prepare(trainer.play())
    batch["target"] = torch.arange(len(batch["action"]), dtype=torch.float32)  # names the decisions
    parts = -(-len(batch["action"]) // 100)
    orders = []
    for _ in range(2):
        seen.clear()
        trainer.learn(batch)
        assert len(seen) == 3 * parts
        for epoch in range(3):
            sizes = [len(part["action"]) for part, _ in seen[epoch * parts : (epoch + 1) * parts]]
            assert max(sizes) <= 100
            assert max(sizes) - min(sizes) <= 1
            order = torch.cat([part["target"] for part, _ in seen[epoch * parts : (epoch + 1) * parts]])
            assert torch.equal(order.sort().values, batch["target"])
            orders.append(order.tolist())
        trainer.updates += 1
    assert len(set(map(tuple, orders))) == 6


def test_advantages_are_normalised_at_each_table() -> None:
    """Rounds that cost 14 and rounds that cost 2 at most weigh alike, whatever their numbers of decisions."""
    trainer = train.Trainer(small(rules="cucumber,cucumber,ranks=2345,hand_size=4", players=2))
    rollouts = trainer.play()
    assert [place.scale for place in trainer.places] == [14.0, 14.0]
    batch, metrics = trainer.prepare(rollouts)
    start = 0
    for rollout, place in zip(rollouts, trainer.places, strict=True):
        rows = slice(start, start := start + len(rollout.action))
        values = trainer.network.values(batch["observation"][rows], batch["hidden"][rows]).detach().numpy()
        raw, target = train.advantages(rollout, values, scale=place.scale, gae_lambda=trainer.config.gae_lambda)
        np.testing.assert_allclose(batch["advantage"][rows], (raw - raw.mean()) / raw.std(), atol=1e-4)
        np.testing.assert_allclose(batch["target"][rows], target, atol=1e-6)
    assert start == len(batch["action"])
    assert -1 < metrics["losses/explained_variance"] < 0.2


def test_explained_variance_by_hand() -> None:
    trainer = train.Trainer(small(critic="own", gae_lambda=1.0))
    weight, bias = list(trainer.network.critic.parameters())[-2:]
    weight.data.zero_()
    bias.data.fill_(0.25)
    batch, metrics = trainer.prepare(trainer.play())
    assert metrics["losses/explained_variance"] == pytest.approx(0, abs=1e-5)  # a constant explains nothing
    target = batch["target"].double().numpy()
    trainer.look = lambda columns: look(columns) * 0 + 0.5 * target.astype(np.float32)  # type: ignore[method-assign]
    look = train.Trainer.look.__get__(trainer)
    _, metrics = trainer.prepare(trainer.play())
    assert metrics["losses/explained_variance"] == pytest.approx(0.75, abs=1e-3)  # half of a number leaves a quarter


def test_the_moving_average_by_hand() -> None:
    trainer = train.Trainer(small(average=0.75, games=8))
    history = [weights(trainer.network)]
    for _ in range(3):
        trainer.advance()
        history.append(weights(trainer.network))
    shares = [0.75**3, 0.25 * 0.75**2, 0.25 * 0.75, 0.25]
    by_hand = [
        sum(share * tensor for share, tensor in zip(shares, column, strict=True))
        for column in zip(*history, strict=True)
    ]
    assert trainer.average is trainer.agent is trainer.policy().network
    for mine, expected in zip(weights(trainer.average), by_hand, strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-5, atol=1e-7)
    assert not equal(weights(trainer.average), weights(trainer.network))
    plain = train.Trainer(small(games=8))
    for _ in range(3):
        plain.advance()
    assert equal(weights(plain.network), history[-1])  # the average changes what is saved, not what is trained
    assert plain.agent is plain.network


def test_blend_moves_by_one_minus_the_decay() -> None:
    one, other = network(), network()
    with torch.no_grad():
        for weight in one.parameters():
            weight.fill_(2.0)
        for weight in other.parameters():
            weight.fill_(3.0)
    blend(one, other, 0.9)
    assert {round(float(value), 6) for weight in one.parameters() for value in weight.detach().flatten()} == {2.1}


def magnet_of(trainer: train.Trainer) -> tuple[Batch, Tensor]:
    """Decisions that the trainer would learn from next, and the magnet's log-probabilities there."""
    batch, _ = trainer.prepare(trainer.play())
    return batch, batch["magnet"]


def legal(batch: Batch, logs: Tensor) -> Tensor:
    return logs[batch["mask"]]


def test_the_snapshot_magnet_is_a_copy_taken_now_and_then() -> None:
    trainer = train.Trainer(small(magnet="snapshot", magnet_every=2, games=16, updates=5))
    history = []
    for update in range(5):
        history.append(weights(trainer.network))
        trainer.advance()
        assert trainer.snapshot is not None
        assert equal(weights(trainer.snapshot), history[update // 2 * 2])
        batch, magnet = magnet_of(trainer)
        expected = trainer.snapshot.log_probabilities(batch["observation"], batch["mask"])
        torch.testing.assert_close(legal(batch, magnet), legal(batch, expected), rtol=1e-5, atol=1e-5)
        assert not torch.equal(legal(batch, magnet), legal(batch, batch["log_probabilities"]))


def test_the_average_and_the_uniform_magnet() -> None:
    trainer = train.Trainer(small(magnet="average", average=0.5, games=16))
    trainer.advance()
    batch, magnet = magnet_of(trainer)
    assert trainer.average is not None
    expected = trainer.average.log_probabilities(batch["observation"], batch["mask"])
    torch.testing.assert_close(legal(batch, magnet), legal(batch, expected), rtol=1e-5, atol=1e-5)
    batch, magnet = magnet_of(train.Trainer(small(games=16)))
    count = batch["mask"].sum(1, keepdim=True).expand_as(magnet)
    torch.testing.assert_close(legal(batch, magnet).exp(), 1 / legal(batch, count))


def test_a_strong_magnet_holds_the_policy() -> None:
    """Pulled hard to the uniform policy, entropy stays; left alone, it falls."""
    entropies = []
    for pull in (0.0, 100.0):
        trainer = train.Trainer(small(updates=8, games=128, entropy=pull, entropy_schedule="constant", clip=1e3))
        entropies.append([trainer.advance()["losses/entropy"] for _ in range(8)][-1])
    batch, _ = trainer.prepare(trainer.play())
    assert entropies[1] == pytest.approx(float(batch["mask"].sum(1).log().mean()), abs=0.02)
    assert entropies[0] < entropies[1] - 0.1


def test_reverse_kl_is_zero_at_the_start_and_holds_back_later() -> None:
    moved = []
    for weight in (0.0, 100.0):
        trainer = train.Trainer(small(reverse_kl=weight, updates=2, games=256, epochs=4, clip=float("inf")))
        coarse(trainer.network)
        batch, _ = trainer.prepare(trainer.play())
        start, _ = train.losses(trainer.network, batch, trainer.config, 0.0)
        without, _ = train.losses(trainer.network, batch, small(reverse_kl=0.0, clip=float("inf")), 0.0)
        assert start.item() == without.item()
        moved.append(trainer.learn(batch)["losses/approx_kl"])
    assert moved[1] < moved[0] / 3


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_the_filter_keeps_the_decisions_of_largest_advantage(share: float) -> None:
    trainer = train.Trainer(small(advantage_filter=share, minibatch=10**6, epochs=2))
    seen = watch(trainer)
    batch, _ = trainer.prepare(trainer.play())
    size = len(batch["action"])
    batch["target"] = torch.arange(size, dtype=torch.float32)
    trainer.learn(batch)
    count = int(size * (1 - share))
    largest = np.argsort(-batch["advantage"].abs().numpy(), kind="stable")[:count]
    for part, _ in seen:
        kept = part["target"].long().numpy()
        assert sorted(kept) == sorted(largest)
        for name, column in batch.items():
            assert torch.equal(part[name], column[kept]), name
    assert len(seen) == 2


def test_two_trainers_of_one_configuration_agree_to_the_last_bit() -> None:
    settings: dict[str, Any] = {"average": 0.5, "magnet": "snapshot", "pool": "prioritised", "advantage_filter": 0.1}
    one, two, other = (train.Trainer(small(games=32, seed=seed, **settings)) for seed in (10**30, 10**30, 10**30 + 1))
    for trainer in (one, two, other):
        torch.manual_seed(trainer is two)  # no state of torch's or NumPy's own generators is read
        for _ in range(2):
            trainer.advance()
    assert equal(weights(one.network), weights(two.network))
    assert equal(weights(one.agent), weights(two.agent))
    assert not equal(weights(one.network), weights(other.network))


def test_a_loss_that_is_not_finite_stops_with_a_description() -> None:
    trainer = train.Trainer(small(games=8))
    batch, _ = trainer.prepare(trainer.play())
    batch["advantage"][3] = float("nan")
    before = weights(trainer.network)
    with pytest.raises(FloatingPointError, match=r"update 1: the loss is nan.*advantage nan.*\(1 not finite\)"):
        trainer.learn(batch)
    assert equal(weights(trainer.network), before)
    list(trainer.network.actor.parameters())[1].data[0] = float("inf")
    batch["advantage"][3] = 0.0
    with pytest.raises(FloatingPointError, match=r"weights that are not finite: actor\.0\.bias"):
        trainer.learn(batch)
