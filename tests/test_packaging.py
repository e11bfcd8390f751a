"""The wheel: what is in it, and that it plays in a clean environment without torch, from another folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from cucumber_env import champion

ROOT = Path(__file__).parent.parent
CHAMPIONS = "cucumber_env/champions/"

PLAY = """
import importlib.util
import gymnasium
import cucumber_env
from cucumber_env import cucumber_v0
from cucumber_env.game import Game

assert importlib.util.find_spec("torch") is None
game = Game.new(rules="cucumber", players=4, seed=1)
while not game.over:
    game.play(game.legal()[0])
env = cucumber_v0.env(rules="concombre", num_players=3, episode="match")
env.reset(seed=1)
for agent in env.agent_iter():
    observation, reward, termination, truncation, info = env.last()
    env.step(None if termination or truncation else int(observation["action_mask"].argmax()))
env = gymnasium.make("cucumber_env/Cucumber-v0", opponents="champion")
_, info = env.reset(seed=1)
over = False
while not over:
    _, _, over, _, info = env.step(int(info["action_mask"].argmax()))
print("played", cucumber_env.__file__)
"""


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run("uv", "build", "--wheel", "--out-dir", folder, ROOT, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_package_alone(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith("METADATA"))
        needs = [
            line.split(":")[1].strip()
            for line in archive.read(metadata).decode().splitlines()
            if line.startswith("Requires-Dist:")
        ]
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"cucumber_env"}
    assert "cucumber_env/arena/page.css" in names
    extra = {need for need in needs if "extra == 'arena'" in need}
    libraries = {need: re.split(r"[^a-z0-9-]", need)[0] for need in needs}
    assert {libraries[need] for need in set(needs) - extra} == {"numpy", "numba", "gymnasium", "pettingzoo"}
    assert {libraries[need] for need in extra} == {"joblib", "matplotlib", "openskill", "scipy"}
    assert "cucumber_env/py.typed" in names
    shipped = {name.removeprefix(CHAMPIONS) for name in names if name.startswith(CHAMPIONS)}
    assert shipped == {file.name for file in (ROOT / CHAMPIONS).iterdir()}
    assert {name.split(".")[0] for name in shipped} == set(champion.shipped())


def test_the_wheel_plays_in_a_clean_environment(wheel: Path, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    run("uv", "venv", "--python", sys.executable, venv, cwd=tmp_path)
    python = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    run("uv", "pip", "install", "--python", python, wheel, cwd=tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    out = run(python, "-W", "error", "-c", PLAY, cwd=elsewhere, NUMBA_CACHE_DIR=str(tmp_path / "numba"))
    assert out.startswith("played")
    assert str(venv) in out
