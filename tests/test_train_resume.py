"""Runs that are killed, stopped, starved or broken: what was saved is whole, and they go on to the same bytes."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from processes import (
    PATIENCE,
    Started,
    die_at,
    digest,
    finished,
    logged,
    new_run,
    outcome,
    replace,
    resumed,
    without_privileges,
)
from training import run, small

import train
from agents.checkpoint import load_agent, load_state

SIGNALS = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The outcome of a run that nothing happened to; how many file operations it took, and how large its files were."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    started = Started(folder.with_suffix(".txt"), die_at, -1, folder, new_run(folder))
    assert started.status() == 0, started.words()
    operations = int(started.words().rsplit(": ", 1)[1])
    assert [line["update"] for line in logged(folder)] == [1, 2, 3, 4, 5, 6]
    assert os.readlink(folder / "best") != os.readlink(folder / "last")
    pool = [name for name in load_state(folder / "last")[0] if name.startswith("pool/0005.")]
    assert pool, "the last checkpoint holds a full pool"
    sizes = {path.parent.name: path.stat().st_size for path in folder.glob("checkpoint-*/state.safetensors")}
    return {"operations": operations, "sizes": sizes, **outcome(folder)}


def goes_on(folder: Path, whole: dict[str, Any]) -> None:
    """Resume a run, and compare it with one that was never stopped."""
    begun = (folder / "config.json").exists()
    finished(folder, resumed(folder) if begun else new_run(folder))
    for name, found in outcome(folder).items():
        assert found == whole[name], name


def stopped(folder: Path, updates: int) -> Started:
    """A run that has begun and told at least so many updates."""
    started = Started(folder.with_suffix(".txt"), train.main, new_run(folder))
    started.wait_for(lambda: len(logged(folder)) >= updates)
    return started


@pytest.mark.parametrize("share", np.linspace(0, 1, 7).round(2))
def test_a_run_killed_before_a_file_operation_goes_on_to_the_same_bytes(
    share: float, whole: dict[str, Any], tmp_path: Path
) -> None:
    number, folder = 1 + round(share * (whole["operations"] - 1)), tmp_path / "run"
    assert Started(tmp_path / "died.txt", die_at, number, folder, new_run(folder)).status() == -signal.SIGKILL
    goes_on(folder, whole)


@pytest.mark.long
def test_a_run_killed_before_any_file_operation_goes_on_to_the_same_bytes(
    whole: dict[str, Any], tmp_path: Path
) -> None:
    """Before the first checkpoint, inside of each save, between a checkpoint and its links, while older ones go …"""
    for number in range(1, whole["operations"] + 1):
        folder = tmp_path / f"{number}" / "run"
        folder.parent.mkdir()
        assert Started(tmp_path / "died.txt", die_at, number, folder, new_run(folder)).status() == -signal.SIGKILL
        goes_on(folder, whole)
        shutil.rmtree(folder.parent)


def test_a_run_killed_again_and_again_comes_to_the_same_end(whole: dict[str, Any], tmp_path: Path) -> None:
    folder, deaths, arguments = tmp_path / "run", 0, new_run(tmp_path / "run")
    while (status := Started(tmp_path / "died.txt", die_at, 67, folder, arguments).status()) == -signal.SIGKILL:
        arguments, deaths = resumed(folder), deaths + 1
        assert deaths < 10
    assert status == 0
    assert deaths >= 2
    assert not [name for name, found in outcome(folder).items() if found != whole[name]]


@pytest.mark.parametrize("updates", [1, 4])
def test_a_run_killed_from_outside_goes_on_to_the_same_bytes(
    updates: int, whole: dict[str, Any], tmp_path: Path
) -> None:
    started = stopped(tmp_path / "run", updates)
    started.send(signal.SIGKILL)
    assert started.status() == -signal.SIGKILL
    with (tmp_path / "run" / "log.jsonl").open("a") as log:
        log.write('{"update": 6, "turns": 1}\n{"upda')  # of updates that no checkpoint knows, and half a line
    goes_on(tmp_path / "run", whole)


VARIANTS: dict[str, dict[str, Any]] = {
    "match": {"episode": "match", "rules": "three_card", "players": 2, "games": 16},
    "tables": {"rules": "cucumber,agurk", "players": "3,5", "trunk": "shared", "critic": "own"},
    "magnet": {"average": 0.7, "magnet": "average", "reverse_kl": 0.1, "advantage_filter": 0.3},
    "bf16": {"precision": "bf16", "pool": "uniform", "rivals": ("lowest",), "learning_rate_schedule": "inverse_sqrt"},
    "response": {"against": "lowest", "clip": float("inf"), "save_every": 3},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_other_runs_go_on_to_the_same_bytes(name: str, tmp_path: Path) -> None:
    settings = {"updates": 4, "games": 32, **VARIANTS[name]}
    run(small(out=tmp_path / "whole", **settings))
    run(small(out=tmp_path / "parts", **settings), stop_after=2)
    done = run(train.Config(resume=tmp_path / "parts"))
    assert done.trainer.updates == 4
    for file in ("weights.safetensors", "state.safetensors"):
        assert digest(tmp_path / "parts" / "last" / file) == digest(tmp_path / "whole" / "last" / file)
    assert os.readlink(tmp_path / "parts" / "best") == os.readlink(tmp_path / "whole" / "best")


def test_a_checkpoint_keeps_the_arithmetic_of_its_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "fast_bf16", lambda device: True)
    run(small(out=tmp_path / "run", precision="auto", updates=2), stop_after=1)
    monkeypatch.setattr(train, "fast_bf16", lambda device: False)
    done = run(train.Config(resume=tmp_path / "run"))
    assert done.trainer.network.bf16


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_finishes_the_update_and_saves(number: signal.Signals, whole: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    started = stopped(folder, 2)
    started.send(number)
    assert started.status() == 130
    words = started.words()
    assert "stopping after this update; Ctrl-C again stops at once" in words
    assert f"train.py --resume {folder}\n" in words
    assert "Traceback" not in words
    told = len(logged(folder))
    assert os.readlink(folder / "last") == f"checkpoint-{told:06d}"
    assert load_agent(folder / "last")[1].training["updates"] == told
    goes_on(folder, whole)


def slow_updates(arguments: list[str], marker: Path) -> int:
    """Train; the third update does not end by itself."""
    play = train.Trainer.play

    def slow(trainer: train.Trainer) -> list[train.Rollout]:
        if trainer.updates == 2:
            marker.touch()
            time.sleep(PATIENCE)
        return play(trainer)

    replace(train.Trainer, "play", slow)
    return train.main(arguments)


def test_a_second_ctrl_c_stops_at_once(whole: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    started = Started(tmp_path / "said.txt", slow_updates, new_run(folder), tmp_path / "marker")
    started.wait_for((tmp_path / "marker").exists)
    started.send(signal.SIGINT)
    started.wait_for(lambda: "again stops at once" in started.words())
    started.send(signal.SIGINT)
    assert started.status(PATIENCE / 2) == 130
    assert "Traceback" not in started.words()
    assert f"The agent is in {folder / 'last'}" in started.words()
    assert load_agent(folder / "last")[1].training["updates"] == 2
    goes_on(folder, whole)


def small_disk(arguments: list[str], size: int, update: int | None = None) -> int:
    """Train where no file may be larger than `size` bytes; with `update`, than the log before it and as much again."""
    advance = train.Trainer.advance

    def limited(trainer: train.Trainer) -> dict[str, float]:
        if trainer.updates + 1 == update:
            log = Path(arguments[arguments.index("--out") + 1]) / "log.jsonl"
            resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + size, resource.RLIM_INFINITY))
        return advance(trainer)

    if update is None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    replace(train.Trainer, "advance", limited)
    return train.main(arguments)


def test_a_full_disk_in_a_save_loses_nothing_that_was_saved(whole: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    limit = whole["sizes"]["checkpoint-000006"] - 1  # checkpoints grow with the pool, and the last is too large
    started = Started(tmp_path / "said.txt", small_disk, new_run(folder), limit)
    assert started.status() == 1
    words = started.words()
    assert "Traceback" not in words
    assert "File too large" in words
    assert f"{folder}/.checkpoint-000006" in words
    assert f"The agent is in {folder / 'last'}" in words
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]
    assert os.readlink(folder / "last") == "checkpoint-000005"
    for checkpoint in folder.glob("checkpoint-*"):
        load_state(checkpoint)
    goes_on(folder, whole)


def test_a_full_disk_in_the_log_loses_nothing_that_was_saved(whole: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    started = Started(tmp_path / "said.txt", small_disk, new_run(folder), 30, 4)
    assert started.status() == 1
    assert "File too large" in started.words()
    assert "Traceback" not in started.words()
    assert not (folder / "log.jsonl").read_text().endswith("\n")
    assert os.readlink(folder / "last") == "checkpoint-000003"
    goes_on(folder, whole)


def test_a_full_disk_at_the_start_leaves_nothing(tmp_path: Path) -> None:
    started = Started(tmp_path / "said.txt", small_disk, new_run(tmp_path / "run"), 100)
    assert started.status() == 2
    assert "error: [Errno 27] File too large" in started.words()
    assert not list((tmp_path / "run").iterdir())


def unprivileged(arguments: list[str]) -> int:
    """Train as one who may write only where folders say so."""
    without_privileges()
    return train.main(arguments)


@pytest.mark.skipif(sys.platform != "linux", reason="gives up the privileges of root in the way of Linux")
@pytest.mark.parametrize("begun", [False, True])
def test_a_folder_that_may_not_be_written_is_named(begun: bool, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    if begun:
        run(small(out=folder, updates=2), stop_after=1)
    else:
        folder.mkdir()
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    folder.chmod(0o555)
    started = Started(tmp_path / "said.txt", unprivileged, resumed(folder) if begun else new_run(folder))
    assert started.status() == 2
    folder.chmod(0o755)
    assert "Permission denied: " in started.words()
    assert f"'{folder}/" in started.words()
    assert "Traceback" not in started.words()
    assert files == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def broken_numbers(arguments: list[str], where: str) -> int:
    """Train; in the fourth update a number stops being one."""
    play, prepare = train.Trainer.play, train.Trainer.prepare

    def break_weights(trainer: train.Trainer) -> list[train.Rollout]:
        if trainer.updates == 3 and where == "actor":
            trainer.network.actor[0].get_parameter("weight").data[1, 1] = torch.nan
        return play(trainer)

    def break_batch(trainer: train.Trainer, played: list[train.Rollout]) -> Any:
        columns, metrics = prepare(trainer, played)
        if trainer.updates == 3 and where == "advantage":
            columns["advantage"][7] = torch.inf
        if trainer.updates == 3 and where == "critic":
            trainer.network.critic[0].get_parameter("bias").data[2] = torch.nan
        if trainer.updates == 3 and where == "step":
            trainer.optimizer.param_groups[0]["lr"] = 1e38
        return columns, metrics

    replace(train.Trainer, "play", break_weights)
    replace(train.Trainer, "prepare", break_batch)
    return train.main(arguments)


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("actor", ["while playing", " of 22 decisions; weights that are not finite: actor.0.weight"]),
        ("critic", ["update 4: the loss is nan", "not finite: critic.0.bias", "decisions of process 0: advantage -"]),
        ("advantage", ["update 4: the loss is", "to inf (1 not finite), target", "(0 not finite)", "finite: none"]),
        ("step", ["update 4: ", "weights that are not finite"]),
    ],
)
def test_numbers_that_are_not_finite_end_the_run_and_keep_the_last_good_checkpoint(
    where: str, told: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    started = Started(tmp_path / "said.txt", broken_numbers, new_run(folder), where)
    assert started.status() == 1
    words = started.words()
    assert all(text in words for text in ["error: ", *told]), words
    assert "Traceback" not in words
    assert f"The agent is in {folder / 'last'}" in words
    assert len(logged(folder)) == 3
    network, card = load_agent(folder / "last")
    assert card.training["updates"] == 3
    assert all(weight.isfinite().all() for weight in network.parameters())


def test_a_run_at_work_is_left_alone(whole: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    at_work = Started(tmp_path / "said.txt", slow_updates, new_run(folder), tmp_path / "marker")
    at_work.wait_for((tmp_path / "marker").exists)
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    second = Started(tmp_path / "second.txt", train.main, resumed(folder))
    assert second.status() == 2
    assert f"another process is training in {folder}" in second.words()
    assert files == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    at_work.send(signal.SIGKILL)
    at_work.status()
    goes_on(folder, whole)
