"""The trainer: advantages by hand, masks, exact resumption, and that it learns."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch

import train
from agents.checkpoint import load_agent
from agents.network import ActorCritic, entropy
from cucumber_env.envs.vector import SelfPlay
from cucumber_env.policies import make, sample


def small(**changes: object) -> train.Config:
    settings = {
        "updates": 4,
        "games": 64,
        "hidden": (32,),
        "minibatch": 256,
        "evaluate_every": 2,
        "evaluate_deals": 8,
        "final_deals": 8,
        "save_every": 1,
        "threads": 1,
        "precision": "fp32",
    }
    return train.Config(**{**settings, **changes})  # type: ignore[arg-type]


def chain(*steps: tuple[list[int], list[int], list[list[float]]]) -> train.Rollout:
    """A rollout of steps (games asked, their seats, rewards that followed)."""
    made, at = [], 0
    for games, seats, rewards in steps:
        made.append(
            (slice(at, at + len(games)), np.array(games), np.array(seats), np.array(rewards, np.float32)),
        )
        at += len(games)
    empty = np.zeros(0)
    return train.Rollout(empty, empty, empty, empty, empty, made, turns=at)


def test_advantages_follow_each_seats_own_decisions() -> None:
    # Seat 0 takes a trick and moves twice running; the round is then paid on seat 1's move.
    played = chain(([0], [0], [[0, 0]]), ([0], [0], [[0, 0]]), ([0], [1], [[-4, 4]]))
    values = np.array([0.5, 0.25, -0.1], np.float32)
    advantage, target = train.advantages(played, values, scale=4.0, gae_lambda=0.5)
    np.testing.assert_allclose(advantage, [0.25 - 0.5 + 0.5 * (-1 - 0.25), -1 - 0.25, 1 + 0.1], rtol=1e-6)
    np.testing.assert_allclose(target, advantage + values, rtol=1e-6)


def test_a_reward_between_two_decisions_belongs_to_the_earlier_one() -> None:
    # Three seats, a match: seat 2 earns on the moves of 0 and 1, between its decisions and after its last one.
    played = chain(
        ([0], [2], [[0, 0, 1]]),
        ([0], [0], [[2, 0, 3]]),
        ([0], [2], [[0, 0, 0]]),
        ([0], [1], [[0, 5, 7]]),
    )
    advantage, _ = train.advantages(played, np.zeros(4, np.float32), scale=1.0, gae_lambda=1.0)
    np.testing.assert_allclose(advantage, [1 + 3 + 7, 2, 7, 5])


def test_games_of_different_length_do_not_mix() -> None:
    # Game 1 ends in the first step; a loser without a later decision is charged for its last one.
    played = chain(([0, 1], [0, 1], [[0, 0], [1, -1]]), ([0], [1], [[-2, 2], [0, 0]]))
    advantage, _ = train.advantages(played, np.zeros(3, np.float32), scale=1.0, gae_lambda=0.9)
    np.testing.assert_allclose(advantage, [-2, -1, 2])


def test_a_rollout_keeps_decisions_only_and_pays_zero_sums() -> None:
    table = SelfPlay(num_games=128, num_players=4, autoreset=False)
    network = ActorCritic(table.layout.size, 13, (16,))
    played = train.rollout(network, table, seed=3, update=5, device=torch.device("cpu"))
    assert played.turns == 128 * 28
    assert (played.mask.sum(axis=1) > 1).all()
    assert played.mask[np.arange(len(played.action)), played.action].all()
    paid = sum(rewards for *_, rewards in played.steps)
    np.testing.assert_allclose(np.sum(paid, axis=1), 0, atol=1e-5)
    assert (np.abs(paid).max(axis=1) > 0).all()
    again = train.rollout(network, table, seed=3, update=5, device=torch.device("cpu"))
    assert again.action.tobytes() == played.action.tobytes()
    other = train.rollout(network, table, seed=3, update=6, device=torch.device("cpu"))
    assert other.action.tobytes() != played.action.tobytes()


def test_the_first_gradient_step_starts_from_ratio_one() -> None:
    trainer = train.Trainer(small())
    played = train.rollout(trainer.network, trainer.table, seed=1, update=0, device=trainer.device)
    batch, _ = trainer.prepare(played)
    _, seen = train.losses(trainer.network, batch, clip=0.2, entropy_weight=0.0)
    assert seen["approx_kl"] == pytest.approx(0, abs=1e-6)
    assert seen["clipfrac"] == 0


@pytest.mark.parametrize("bf16", [False, True])
def test_one_legal_action_of_thirteen_is_finite(bf16: bool) -> None:
    network = ActorCritic(8, 13, (4,))
    network.bf16 = bf16
    mask = torch.eye(13, dtype=torch.bool)
    logs = network.log_probabilities(torch.randn(13, 8), mask)
    assert torch.equal(logs.diagonal(), torch.zeros(13))
    assert torch.equal(logs.exp(), mask.float())
    spread = entropy(logs, mask)
    assert torch.equal(spread, torch.zeros(13))
    (logs.diagonal().sum() + spread.sum()).backward()
    assert all(torch.isfinite(weight.grad).all() for weight in network.actor.parameters() if weight.grad is not None)


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


def digest(folder: Path) -> str:
    return hashlib.sha256((folder / "weights.safetensors").read_bytes()).hexdigest()


def run(config: train.Config, *, stop_after: int | None = None) -> train.Run:
    started = train.open_run(config)
    stop = train.StopSignal()
    with train.Progress(started.trainer.config.updates, done=started.trainer.updates) as progress:
        if stop_after is not None:
            advance = started.trainer.advance

            def counted() -> dict[str, float]:
                metrics = advance()
                stop.asked = started.trainer.updates >= stop_after
                return metrics

            started.trainer.advance = counted  # type: ignore[method-assign]
        started.train(progress, stop)
    started.close()
    return started


def test_a_resumed_run_ends_with_the_same_bytes(tmp_path: Path) -> None:
    whole = run(small(out=tmp_path / "whole"))
    run(small(out=tmp_path / "parts"), stop_after=2)
    with (tmp_path / "parts" / "log.jsonl").open("a") as log:  # as a run leaves it that was killed later
        log.write('{"update": 3}\n{"upda')
    resumed = run(train.Config(resume=tmp_path / "parts"))
    assert resumed.trainer.updates == 4
    assert digest(tmp_path / "parts" / "last") == digest(tmp_path / "whole" / "last")
    lines = [json.loads(line) for line in (tmp_path / "parts" / "log.jsonl").read_text().splitlines()]
    assert [line["update"] for line in lines] == [1, 2, 3, 4]
    assert whole.trainer.turns == resumed.trainer.turns == 4 * 64 * 28


def test_a_saved_agent_plays_by_its_name(tmp_path: Path) -> None:
    import agents  # noqa: F401 - registers the name `checkpoint`

    done = run(small(out=tmp_path / "run", updates=1))
    policy = make(f"checkpoint:{tmp_path / 'run' / 'last'}")
    table = SelfPlay(num_games=32, num_players=4, observe=False)
    table.reset(seed=9)
    np.testing.assert_allclose(
        policy.probabilities(table.turns()), done.trainer.policy().probabilities(table.turns()), rtol=1e-6
    )
    greedy = make(f"checkpoint:{tmp_path / 'run' / 'last'},greedy=1").probabilities(table.turns())
    assert set(np.unique(greedy)) == {0.0, 1.0}
    other = SelfPlay("three_card", num_games=2, num_players=4, observe=False)
    other.reset(seed=9)
    with pytest.raises(ValueError, match=r"trained for 4 players.*hand_size=7 \(here 3\)"):
        policy.probabilities(other.turns())


def test_bad_checkpoints_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no agent in"):
        load_agent(tmp_path / "nothing")
    run(small(out=tmp_path / "run", updates=1))
    folder = tmp_path / "run" / "last"
    card = json.loads((folder / "agent.json").read_text())
    (folder / "agent.json").write_text(json.dumps({**card, "observation_version": 99}))
    with pytest.raises(ValueError, match="observation version 99; this is version 1"):
        load_agent(folder)
    (folder / "agent.json").write_text(json.dumps({**card, "hidden": [16]}))
    with pytest.raises(ValueError, match="is not the weights that"):
        load_agent(folder)
    (folder / "agent.json").write_text(json.dumps(card))
    (folder / "weights.safetensors").write_bytes(b"\x80\x04pickle")
    with pytest.raises(ValueError, match="is not the weights that"):
        load_agent(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"players": 9}, "players=9 is out of range; allowed: 2 to 7"),
        ({"rules": "cucmber"}, "did you mean 'cucumber'"),
        ({"updates": 0}, "updates=0 is out of range"),
        ({"clip": -1.0}, "clip=-1.0 is out of range"),
        ({"gae_lambda": 1.5}, "gae_lambda=1.5 is out of range; allowed: 0 to 1"),
        ({"hidden": ()}, "hidden=()"),
        ({"device": "nonsense"}, "device='nonsense' cannot be used here"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_settings_out_of_range_are_named(changes: dict[str, object], message: str) -> None:
    import re

    with pytest.raises(ValueError, match=re.escape(message)):
        train.Trainer(small(**changes))


def test_a_taken_folder_is_not_written_over(tmp_path: Path) -> None:
    run(small(out=tmp_path / "run", updates=1))
    with pytest.raises(FileExistsError, match="--resume"):
        train.open_run(small(out=tmp_path / "run"))
    with pytest.raises(FileNotFoundError, match="no run to resume"):
        train.open_run(small(resume=tmp_path / "elsewhere"))
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match="is a file"):
        train.open_run(small(out=tmp_path / "file"))
    for text in ("{}", '{"config": {"foo": 1, "hidden": []}}', "nothing"):
        (tmp_path / "run" / "config.json").write_text(text)
        with pytest.raises(ValueError, match="is not a run that can be resumed"):
            train.open_run(small(resume=tmp_path / "run"))


def test_a_table_without_decisions_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--players", "2", "--rules", "cucumber,hand_size=1", "--games", "4", "--out", str(tmp_path / "run")]
    assert train.main(arguments) == 1
    assert "without a single decision" in capsys.readouterr().err


def test_any_seed_is_taken(tmp_path: Path) -> None:
    assert run(small(out=tmp_path / "run", updates=1, games=4, seed=10**30)).trainer.updates == 1


@pytest.mark.parametrize(
    ("rules", "players", "episode"), [("concombre", 3, "round"), ("revival", 3, "match"), ("three_card", 2, "round")]
)
def test_other_tables_train_too(rules: str, players: int, episode: str, tmp_path: Path) -> None:
    done = run(small(out=tmp_path / "run", updates=2, games=16, rules=rules, players=players, episode=episode))
    assert done.trainer.decisions > 0


def test_it_learns_to_beat_random_play(tmp_path: Path) -> None:
    done = run(small(out=tmp_path / "run", updates=10, games=512, hidden=(64,), minibatch=1024, evaluate_every=10))
    (row,) = done.trainer.evaluate(["random"], 500, seed=5)
    assert row.difference.high < -0.5
