"""Runs that are killed, stopped, starved of disk or broken: what is saved is whole, and going on gives the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from processes import Started, die_at, finished, flags, logged, new_run, outcome, resumed

import train


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The outcome of a run that nothing happened to, and how many file operations it took."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    started = Started(folder.with_suffix(".txt"), die_at, -1, folder, new_run(folder))
    assert started.status() == 0, started.words()
    operations = int(started.words().rsplit(": ", 1)[1])
    return {"operations": operations, **outcome(folder)}


def same(folder: Path, whole: dict[str, Any]) -> None:
    found = outcome(folder)
    for name in found:
        assert found[name] == whole[name], name


def test_x(whole, tmp_path):
    print(whole["operations"], whole["names"], whole["best"])
    import time
    for number in range(1, whole["operations"], 10):
        t=time.time()
        folder = tmp_path / f"run{number}"
        died = Started(tmp_path / "died.txt", die_at, number, folder, new_run(folder))
        st = died.status()
        print(number, st)
        assert st == -9
        t1=time.time()
        finished(folder, resumed(folder) if (folder / "config.json").exists() else new_run(folder))
        same(folder, whole)
        print(t1-t, time.time()-t1)
