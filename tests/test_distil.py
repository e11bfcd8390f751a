"""Distillation: the network comes close to a solution, and plays as an agent from its folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import agents  # noqa: F401 - registers checkpoint
from agents import distil
from agents.checkpoint import read_card
from cucumber_env.exact import Tabular, exploitability, solve
from cucumber_env.exact.decisions import decisions
from cucumber_env.policies import make

RULES = "cucumber,hand_size=3,ranks=2KA,copies=3,follow=may"
TINY = ["--steps", "400", "--minibatch", "128", "--hidden", "64"]


@pytest.fixture(scope="module")
def solution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("distil") / "solution.npz"
    solve(RULES, nash_conv=1e-4)[0].save(file)
    return file


def test_the_network_comes_close_and_plays_from_its_folder(
    solution: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert distil.main([str(solution), *TINY, "--out", str(tmp_path / "agent"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    random = exploitability(RULES, "random").nash_conv
    assert facts["nash_conv"]["solution"] < 1.1e-4
    for how in distil.HOW:
        assert facts["nash_conv"][how] < random / 20
    for name, how in ((f"checkpoint:{tmp_path}/agent", "sampled"), (f"checkpoint:{tmp_path}/agent,greedy=1", "greedy")):
        assert exploitability(RULES, name).nash_conv == pytest.approx(facts["nash_conv"][how], abs=1e-5)
    card = read_card(tmp_path / "agent")
    assert card.training == {"distilled_from": "solution.npz", "steps": 400, "seed": 1}
    assert card.width == facts["width"]


def test_the_critic_learns_what_decisions_are_worth(solution: Path) -> None:
    policy = Tabular.load(solution)
    arguments = distil.Arguments(solution, hidden=(64,), steps=300, minibatch=256, floor=0.0)
    lessons = distil.Lessons.of(policy, history=False, floor=0.0)
    network, _ = distil.learn(lessons, arguments)
    total = error = spread = 0.0
    for batch in decisions(policy):
        observation = torch.from_numpy(batch.turns().observation)
        with torch.no_grad():
            guess = network.values(observation, observation[:, :0]).numpy() * 14
        worth = (batch.sigma * np.where(batch.legal, np.nan_to_num(batch.worth), 0)).sum(axis=1)
        total += batch.chance.sum()
        error += batch.chance @ (guess - worth) ** 2
        spread += batch.chance @ worth**2
    assert total > 1
    assert error < 0.1 * spread


def test_decisions_are_drawn_as_often_as_they_come_up(solution: Path) -> None:
    policy = Tabular.load(solution)
    chance = np.concatenate([batch.chance for batch in decisions(policy)])
    lessons = distil.Lessons.of(policy, history=False, floor=0.0)
    np.testing.assert_allclose(np.diff(lessons.drawn, prepend=0.0), chance / chance.sum(), atol=1e-12)
    _, mask, target, _ = lessons.draw(np.linspace(0, 1, 999, endpoint=False))
    assert (target[~mask] == 0).all()
    assert torch.allclose(target.sum(-1), torch.ones(999))
    wide = distil.Lessons.of(policy, history=False, floor=1.0)
    reach = np.concatenate([batch.reach for batch in decisions(policy)])
    assert ((np.diff(wide.drawn, prepend=0.0) > 0) == (reach > 0)).all()


def test_a_seed_names_a_network_and_history_is_wider(solution: Path) -> None:
    policy = Tabular.load(solution)
    arguments = distil.Arguments(solution, hidden=(8,), steps=5, minibatch=16)
    before = torch.random.get_rng_state()
    torch.set_num_threads(2)
    found = [distil.distil(policy, arguments) for _ in range(2)]
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.get_num_threads() == arguments.threads == 1
    for one, other in zip(found[0][0].parameters(), found[1][0].parameters(), strict=True):
        assert torch.equal(one, other)
    remembering = distil.Arguments(solution, history=True, hidden=(8,), steps=5, minibatch=16)
    facts = distil.distil(policy, remembering)[1]
    assert (facts["input"], found[0][1]["input"]) == ("history", "observation")
    assert facts["width"] > found[0][1]["width"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "0"], "steps=0 is out of range; allowed: 1 and more"),
        (["--hidden", "0"], "hidden=(0,) is out of range"),
        (["--learning-rate", "0"], "learning_rate=0.0 is out of range; allowed: above 0"),
        (["--floor", "2"], "floor=2.0 is out of range; allowed: 0 to 1"),
        (["--seed", "-1"], "seed=-1 is out of range"),
        (["--history", "--out", "somewhere"], "agents that are saved read observations"),
        (["--out", "."], "out='.' exists"),
    ],
)
def test_arguments_are_checked(
    arguments: list[str], message: str, solution: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert distil.main([str(solution), *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


def test_other_files_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("no solution")
    assert distil.main([str(tmp_path / "file")]) == 2
    assert "is no solution file" in capsys.readouterr().err
    assert distil.main([str(tmp_path / "none")]) == 2
    assert "none" in capsys.readouterr().err


def test_the_report_for_people(solution: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert distil.main([str(solution), "--steps", "3", "--minibatch", "8", "--hidden", "8", "--history"]) == 0
    lines = capsys.readouterr().out.splitlines()
    policy = make(Tabular.load(solution))
    assert f"{policy.tree.decisions:,} decisions, history of" in lines[0]
    assert lines[1].startswith("3 steps in")
    assert lines[2].startswith("NashConv in points: solution 0.0000")
