"""The compiled code as plain Python, with checked indices, and its cache."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import cucumber_env
from cucumber_env import compiled, kernel
from cucumber_env.compiled import config

LANE = Path(__file__).with_name("lane.py")
PACKAGE = Path(cucumber_env.__file__).parent


def run_lane(steps: int, **environment: str) -> list[str]:
    """What lane.py prints in a new process."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_DISABLE")}
    done = subprocess.run(
        [sys.executable, str(LANE), str(steps)],
        capture_output=True,
        text=True,
        env={**clean, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture(scope="module")
def compiled_digest() -> str:
    digest, jit, boundscheck = run_lane(12)
    assert (jit, boundscheck) == ("jit=True", "boundscheck=None")
    return digest


def test_the_same_bytes_without_the_jit(compiled_digest: str) -> None:
    assert run_lane(12, NUMBA_DISABLE_JIT="1") == [compiled_digest, "jit=False", "boundscheck=None"]


def test_every_index_is_within_its_array(compiled_digest: str) -> None:
    assert run_lane(12, NUMBA_BOUNDSCHECK="1") == [compiled_digest, "jit=True", "boundscheck=1"]


@pytest.mark.long
@pytest.mark.parametrize("lane", ["NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK"])
def test_lanes_for_longer(lane: str) -> None:
    assert run_lane(300, **{lane: "1"})[0] == run_lane(300)[0]


def load(path: Path) -> ModuleType:
    """A new instance of a copy of compiled.py."""
    spec = importlib.util.spec_from_file_location("copy_of_compiled", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the compiled sources, whose cache folders lie beside it."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "package"
    for name in compiled.SOURCES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PACKAGE / name, folder / name)
    return folder


def folder_of(sources: Path) -> Path:
    folder: Path = load(sources / "compiled.py").cache_folder()
    assert folder.is_dir()
    return folder


def test_the_cache_folder_follows_every_source(sources: Path, tmp_path: Path) -> None:
    seen = {folder_of(sources)}
    assert seen == {folder_of(sources)}
    for name in compiled.SOURCES:
        with (sources / name).open("a") as file:
            file.write("# a change\n")
        folder = folder_of(sources)
        assert folder.parent == tmp_path / "cache" / "cucumber_env"
        assert folder not in seen, name
        seen.add(folder)


def test_the_cache_folder_follows_the_bounds_checks(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = folder_of(sources)
    monkeypatch.setattr(config, "BOUNDSCHECK", 1)
    assert folder_of(sources) != plain


def test_the_cache_folder_falls_back_where_nothing_can_be_written(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = folder_of(sources).name
    (tmp_path / "file").touch()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    folder = folder_of(sources)
    assert folder.name == name
    assert folder.parent.parent == tmp_path / "temporary"


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")
def test_compiled_code_lies_in_the_cache_folder() -> None:
    assert kernel.count_bits(0b1011) == 3
    assert any(path.name.startswith("kernel.count_bits") for path in compiled.cache_folder().rglob("*.nbi"))
