"""Tournaments over several processes, and on a cluster: the same results, to the byte."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from cucumber_env import arena
from cucumber_env.arena import tables

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


@pytest.mark.usefixtures("parts")
def test_a_dask_cluster_writes_the_same_file(tmp_path: Path, cluster: Any, alone: tuple[list[Any], bytes]) -> None:
    file = tmp_path / "games.jsonl"
    with joblib.parallel_config("dask"):
        found = arena.play_tables(TABLES, file=file, workers=None, **OPTIONS)
    check(found, file, alone)
    ran = cluster.run(lambda: sum(1 for name in __import__("sys").modules if name == "cucumber_env.arena.tables"))
    assert sum(ran.values()) >= 1  # the workers did play
