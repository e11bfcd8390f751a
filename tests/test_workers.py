"""Tournaments over several processes, and on a cluster: the same results, to the byte."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

import evaluate
from cucumber_env import arena
from cucumber_env.arena import tables
from cucumber_env.policies import Policy, Turns

PATIENCE = 120.0
"""Seconds after which a process hangs, as these tests see it."""

TABLES = [
    ["careful", "champion", "champion", "champion"],
    ["champion"] * 4,
    ["random", "careful", "highest", "champion"],
]
OPTIONS: dict[str, Any] = {"deals": 50, "seed": 4}


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "PART", 8)


@pytest.fixture
def cluster() -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a cluster says while it starts and stops is its own affair
        distributed = pytest.importorskip("distributed")
        options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "host": "127.0.0.1"}
        with distributed.LocalCluster(**options) as local, distributed.Client(local) as client:
            yield client


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], bytes]:
    file = tmp_path_factory.mktemp("alone") / "games.jsonl"
    found = arena.play_tables(TABLES, file=file, **OPTIONS)
    return found, file.read_bytes()


def check(found: list[Any], file: Path, alone: tuple[list[Any], bytes]) -> None:
    assert file.read_bytes() == alone[1]
    for mine, theirs in zip(found, alone[0], strict=True):
        np.testing.assert_array_equal(mine.penalties, theirs.penalties)


@pytest.mark.usefixtures("parts")
def test_two_processes_write_the_same_file(tmp_path: Path, alone: tuple[list[Any], bytes]) -> None:
    file = tmp_path / "games.jsonl"
    file.write_bytes(alone[1][: len(alone[1]) // 3])
    check(arena.play_tables(TABLES, file=file, workers=2, **OPTIONS), file, alone)


class Fragile(Policy):
    """Fails when it holds one of some hands."""

    name = "fragile"

    def act(self, turns: Turns) -> np.ndarray:
        if (turns.views["hand"] % 211 == 3).any():
            raise OverflowError("what a hand")
        return turns.mask.argmax(axis=1)


@pytest.mark.usefixtures("parts")
def test_a_policy_that_fails_does_so_alike_on_workers(tmp_path: Path) -> None:
    several = [["highest", Fragile()], ["highest", "careful"]]
    files = [tmp_path / f"{workers}.jsonl" for workers in (1, 2)]
    found = [arena.play_tables(several, file=file, workers=workers, **OPTIONS) for workers, file in enumerate(files, 1)]
    assert isinstance(found[0][0], arena.Failure)
    assert found[0][0] == found[1][0]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].read_text(encoding="utf-8").count("failed") == 1


@pytest.mark.usefixtures("parts")
def test_a_dask_cluster_writes_the_same_file(tmp_path: Path, cluster: Any, alone: tuple[list[Any], bytes]) -> None:
    file = tmp_path / "games.jsonl"
    with joblib.parallel_config("dask"):
        found = arena.play_tables(TABLES, file=file, workers=None, **OPTIONS)
    check(found, file, alone)
    ran = cluster.run(lambda: sum(1 for name in __import__("sys").modules if name == "cucumber_env.arena.tables"))
    assert sum(ran.values()) >= 1  # the workers did play


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_leaves_what_was_played_and_the_same_command_goes_on(tmp_path: Path, workers: int) -> None:
    file = tmp_path / "games.jsonl"
    words = ["arena", "careful", "champion", "--seer-deals", "0", "--results", str(file), "--json", "-"]
    command = [sys.executable, evaluate.__file__, *words, "--workers", str(workers)]
    with subprocess.Popen(
        [*command, "--deals", "2000000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as long:
        until = time.monotonic() + PATIENCE
        while not file.exists() or file.stat().st_size < 1_000_000:
            assert long.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)
        long.send_signal(signal.SIGINT)
        out, err = long.communicate(timeout=PATIENCE)
    assert (long.returncode, out) == (130, "")
    assert err == f"What was played is in {file}; the same command goes on.\nevaluate.py: interrupted\n"
    played = file.read_bytes()
    assert played.endswith(b"}\n")
    deals = len(arena.read(file).deals(["careful"] * 4))
    assert deals > 1000
    arena.play_tables([["careful"] * 4], file=file, deals=deals, seed=0)
    assert file.read_bytes() == played  # nothing was missing
