"""Several processes that train one network: what they share, what each has of its own, and how they end together."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from processes import PATIENCE, Started, finished, free_port, logged, new_run, outcome, replace, resumed, until
from training import small

import train
from agents import session
from agents.checkpoint import load_agent
from agents.distributed import Group, leave
from agents.tables import find_places, find_tables

ROOT = Path(__file__).parent.parent
ONE_STEP: dict[str, Any] = {
    "games": 33,
    "updates": 2,
    "minibatch": 100_000,
    "epochs": 1,
    "save_every": 1,
    "players": "3,4",
}
"""A single gradient step on everything in an update, so that the division into minibatches plays no part."""


def together(size: int, beside: Path, function: Callable[..., int], *arguments: Any) -> list[Started]:
    """Start `size` processes of one group that all call ``function(*arguments)``; each speaks to a file of its own."""
    shared = {
        "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "GLOO_SOCKET_IFNAME": "lo" if sys.platform == "linux" else "lo0",
    }
    return [
        Started(
            beside.with_name(f"{beside.name}-said-{rank}.txt"),
            function,
            *arguments,
            environment={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank in range(size)
    ]


def ended(started: list[Started]) -> list[int]:
    """The exit statuses of processes."""
    return [one.status() for one in started]


def trained(size: int, folder: Path, arguments: list[str]) -> list[list[dict[str, Any]]]:
    """Train in `size` processes, which has to end well; the notes of each on every update."""
    started = together(size, folder, noted, arguments, folder)
    statuses = ended(started)
    assert statuses == [0] * size, "\n".join(one.words() for one in started)
    return notes(folder, size)


def noted(arguments: list[str], folder: Path) -> int:
    """Train, and note beside the folder what was played and learned in each update, and which files were written."""
    rank = os.environ.get("RANK", "0")
    advance, rollout = train.Trainer.advance, train.rollout
    played: list[dict[str, Any]] = []
    written: list[str] = []

    def hook(event: str, facts: tuple[Any, ...]) -> None:
        changes = event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink")
        opened = event == "open" and isinstance(facts[1], str) and not set(facts[1]).isdisjoint("wax+")
        if (changes or opened) and str(folder) + "/" in str(facts[:2]):
            written.append(f"{event} {facts[:2]}")

    def listening(network: Any, table: Any, lineup: Any, **named: Any) -> train.Rollout:
        result = rollout(network, table, lineup, **named)
        games = zip(named["games"].tolist(), result.returns().tolist(), strict=True)
        played.append({"seed": named["seed"], "episode": named["episode"], "paid": dict(games)})
        return result

    def noting(trainer: train.Trainer) -> dict[str, float]:
        played.clear()
        metrics = advance(trainer)
        note = {"update": trainer.updates, "parameters": parameters(trainer), "played": list(played)}
        with Path(f"{folder}-noted-{rank}.jsonl").open("a") as file:
            file.write(json.dumps({**note, "metrics": metrics, "written": list(written)}) + "\n")
        return metrics

    sys.addaudithook(hook)
    replace(train, "rollout", listening)
    replace(train.Trainer, "advance", noting)
    return train.main(arguments)


def parameters(trainer: train.Trainer) -> str:
    """A digest of all that must be equal in all processes."""
    counters = {name: value for name, value in trainer.counters().items() if name != "seconds"}
    together = hashlib.sha256(json.dumps(counters).encode())
    for name, tensor in sorted(trainer.state().items()):
        together.update(name.encode() + tensor.detach().numpy().tobytes())
    return together.hexdigest()


def notes(folder: Path, size: int) -> list[list[dict[str, Any]]]:
    """What `noted` left, by process."""
    paths = [Path(f"{folder}-noted-{rank}.jsonl") for rank in range(size)]
    return [[json.loads(line) for line in path.read_text().splitlines()] for path in paths]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[list[dict[str, Any]]]]:
    """A run in two processes that nothing happened to, and their notes."""
    folder = tmp_path_factory.mktemp("pair") / "run"
    return folder, trained(2, folder, new_run(folder))


def test_parameters_are_equal_after_every_update(pair: tuple[Path, list[list[dict[str, Any]]]]) -> None:
    first, second = pair[1]
    assert [note["update"] for note in first] == [1, 2, 3, 4, 5, 6]
    assert [note["parameters"] for note in first] == [note["parameters"] for note in second]
    assert len({note["parameters"] for note in first}) == 6
    assert [note["metrics"] for note in first] == [note["metrics"] for note in second]


def test_only_the_first_process_writes(pair: tuple[Path, list[list[dict[str, Any]]]]) -> None:
    folder, (first, second) = pair
    assert len(first[-1]["written"]) > 20
    assert second[-1]["written"] == []
    assert [line["update"] for line in logged(folder)] == [1, 2, 3, 4, 5, 6]
    assert len(list(folder.glob("events.*"))) == 1
    said = folder.with_name(f"{folder.name}-said-1.txt").read_text()
    assert said == ""


def test_no_two_processes_play_the_same_game(pair: tuple[Path, list[list[dict[str, Any]]]]) -> None:
    for first, second in zip(*pair[1], strict=True):
        mine, theirs = (set(note["played"][0]["paid"]) for note in (first, second))
        assert not mine & theirs
        assert sorted(map(int, mine | theirs)) == list(range(32))


@pytest.mark.parametrize("processes", [1, 2, 3, 8])
def test_processes_share_out_all_games_of_all_tables(processes: int) -> None:
    tables, _ = find_tables("cucumber,agurk", "2-5")
    whole = find_places(tables, games=131, episode="round", rank=0, processes=1)
    parts = [
        find_places(tables, games=131, episode="round", rank=rank, processes=processes) for rank in range(processes)
    ]
    for number, place in enumerate(whole):
        shares = [part[number] for part in parts]
        assert np.array_equal(np.concatenate([share.numbers for share in shares]), place.numbers)
        sizes = {share.face.num_games for share in shares}
        assert max(sizes) - min(sizes) <= 1
        assert {share.table for share in shares} == {place.table}
    assert np.array_equal(np.concatenate([place.numbers for place in whole]), np.arange(131))


@pytest.fixture(scope="module")
def one_step(tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[Path, list[list[dict[str, Any]]]]]:
    """Runs of two updates with a single gradient step each, in one process and in two."""
    found = {}
    for size in (1, 2):
        folder = tmp_path_factory.mktemp("one_step") / "run"
        found[size] = folder, trained(size, folder, new_run(folder, **ONE_STEP))
    return found


def test_two_processes_play_the_games_that_one_would(
    one_step: dict[int, tuple[Path, list[list[dict[str, Any]]]]],
) -> None:
    [alone], both = one_step[1][1], one_step[2][1]
    for table in range(2):
        parts = [process[0]["played"][table] for process in both]
        whole = alone[0]["played"][table]
        assert {(part["seed"], part["episode"]) for part in parts} == {(whole["seed"], whole["episode"])}
        assert {**parts[0]["paid"], **parts[1]["paid"]} == whole["paid"]


def test_two_processes_learn_from_them_as_one_would(
    one_step: dict[int, tuple[Path, list[list[dict[str, Any]]]]],
) -> None:
    """Advantages normalised over all games, gradients averaged over all decisions: only rounding differs."""
    metrics = [one_step[size][1][0][0]["metrics"] for size in (1, 2)]
    assert metrics[0].keys() == metrics[1].keys()
    for name in metrics[0]:
        assert metrics[0][name] == pytest.approx(metrics[1][name], rel=1e-4, abs=1e-6), name
    lines = [logged(one_step[size][0])[0] for size in (1, 2)]
    assert [line["turns"] for line in lines] == [lines[0]["turns"]] * 2
    assert [line["decisions"] for line in lines] == [lines[0]["decisions"]] * 2
    agents = [load_agent(one_step[size][0] / "checkpoint-000001")[0] for size in (1, 2)]
    start = train.Trainer(small(hidden=(16,), players="3,4", games=33)).network
    for name, alone in agents[0].state_dict().items():
        both, before = agents[1].state_dict()[name], start.state_dict()[name]
        moved = (alone - before).abs().max()
        assert moved > 0, name
        assert (alone - both).abs().max() < 0.02 * moved, name


def sums(out: Path) -> int:
    """What the processes of a group agree on, from numbers that each has of its own."""
    trainer = train.Trainer(small(games=8))
    group = trainer.group
    own = [np.array([1.0, 2.0, 9.0]), np.array([4.0])][group.rank]
    weight = torch.nn.Parameter(torch.zeros(2, 2))
    idle = torch.nn.Parameter(torch.zeros(3))
    weight.grad = torch.full((2, 2), float(own.mean()))
    loss = group.average_gradients([weight, idle], torch.tensor(float(own.max())), len(own))
    found = {
        "moments": trainer.moments(own),
        "total": group.total(len(own), own.sum()),
        "least": group.least(len(own)),
        "gradient": weight.grad.tolist(),
        "loss": loss.item(),
        "stopped": group.total(group.rank == 1),
    }
    group.wait()
    Path(f"{out}-{group.rank}.json").write_text(json.dumps(found))
    leave()
    leave()
    return 0


def test_sums_are_of_all_numbers_everywhere(tmp_path: Path) -> None:
    assert ended(together(2, tmp_path / "sums", sums, tmp_path / "found")) == [0, 0]
    found = [json.loads((tmp_path / f"found-{rank}.json").read_text()) for rank in range(2)]
    assert found[0] == found[1]
    everything = np.array([1.0, 2.0, 9.0, 4.0])
    assert found[0]["moments"] == pytest.approx([everything.mean(), everything.std()])
    assert found[0]["total"] == [4, 16]
    assert found[0]["least"] == 1
    assert found[0]["gradient"] == [[4.0, 4.0], [4.0, 4.0]]  # the mean over four decisions, three of mean 4, one of 4
    assert found[0]["loss"] == (3 * 9 + 4) / 4
    assert found[0]["stopped"] == [1]


def test_a_process_alone_is_a_group() -> None:
    group = Group(torch.device("cpu"))
    assert (group.rank, group.size, group.leads) == (0, 1, True)
    assert group.total(1, 2.5) == [1.0, 2.5]
    assert group.least(3) == 3
    group.wait()
    leave()


def told(folder: Path, updates: int) -> Callable[[], bool]:
    return lambda: len(logged(folder)) >= updates


@pytest.mark.parametrize("rank", [0, 1])
def test_a_signal_to_one_process_stops_all_after_the_same_update(
    rank: int, pair: tuple[Path, list[list[dict[str, Any]]]], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    started = together(2, folder, noted, new_run(folder), folder)
    started[rank].wait_for(told(folder, 2))
    started[rank].send(signal.SIGTERM)
    assert ended(started) == [130, 130]
    assert not [one.words() for one in started if "Traceback" in one.words()]
    first, second = notes(folder, 2)
    assert first[-1]["update"] == second[-1]["update"] < 6
    assert os.readlink(folder / "last") == f"checkpoint-{first[-1]['update']:06d}"
    trained(2, folder, resumed(folder))
    assert outcome(folder) == outcome(pair[0])


@pytest.mark.parametrize("rank", [0, 1])
def test_when_a_process_is_killed_the_other_ends_too(
    rank: int, pair: tuple[Path, list[list[dict[str, Any]]]], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    started = together(2, folder, train.main, new_run(folder))
    started[rank].wait_for(told(folder, 2))
    started[rank].send(signal.SIGKILL)
    assert started[rank].status() == -signal.SIGKILL
    assert started[1 - rank].status(PATIENCE / 2) == 1
    words = started[1 - rank].words()
    assert f"error in process {1 - rank}: " in words
    assert "Traceback" not in words
    trained(2, folder, resumed(folder))
    assert outcome(folder) == outcome(pair[0])


def test_a_run_goes_on_with_more_processes_or_fewer(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    started = Started(tmp_path / "said.txt", train.main, new_run(folder))
    started.wait_for(told(folder, 2))
    started.send(signal.SIGTERM)
    assert started.status() == 130
    done = len(logged(folder))
    started_again = together(2, folder, noted, resumed(folder), folder)
    started_again[0].wait_for(told(folder, done + 1))
    started_again[0].send(signal.SIGTERM)
    assert ended(started_again) == [130, 130]
    first, second = notes(folder, 2)
    assert first[0]["update"] == done + 1
    assert [note["parameters"] for note in first] == [note["parameters"] for note in second]
    finished(folder, resumed(folder))
    outcome(folder)
    assert [line["update"] for line in logged(folder)] == [1, 2, 3, 4, 5, 6]


def elsewhere(folder: Path, arguments: list[str]) -> int:
    """train.py with another working folder."""
    os.chdir(folder)
    return train.main(arguments)


def test_a_new_run_does_not_go_on_with_the_one_whose_default_folder_is_taken(tmp_path: Path) -> None:
    arguments = new_run(tmp_path / "none", updates=1)[:-2]
    assert Started(tmp_path / "said.txt", elsewhere, tmp_path, arguments).status() == 0
    (first,) = (tmp_path / "runs").iterdir()
    assert ended(together(2, tmp_path / "two", elsewhere, tmp_path, arguments)) == [0, 0]
    second = tmp_path / "runs" / f"{first.name}-2"
    assert sorted((tmp_path / "runs").iterdir()) == [first, second]
    assert json.loads((second / "last" / "agent.json").read_text())["training"]["updates"] == 1


def test_what_is_wrong_ends_all_processes(tmp_path: Path) -> None:
    started = together(2, tmp_path / "run", train.main, new_run(tmp_path / "run", games=1))
    assert ended(started) == [2, 2]
    for rank, one in enumerate(started):
        assert one.words().startswith(f"error in process {rank}: games=1 is out of range; allowed: 2 and more")
        assert one.words().count("\n") == 1
    (tmp_path / "file").touch()
    started = together(2, tmp_path / "run", train.main, new_run(tmp_path / "file"))
    assert ended(started) == [2, 2]


def unwritable(arguments: list[str]) -> int:
    """Train, but the first save fails."""

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    replace(session, "save_agent", full)
    return train.main(arguments)


def test_a_full_disk_ends_all_processes(tmp_path: Path) -> None:
    started = together(2, tmp_path / "run", unwritable, new_run(tmp_path / "run"))
    assert [one.status(PATIENCE / 2) for one in started] == [1, 1]
    assert "error in process 0: [Errno 28] No space left on device" in started[0].words()
    assert not [one.words() for one in started if "Traceback" in one.words()]


def torchrun(folder: Path, arguments: list[str]) -> subprocess.Popen[str]:
    """Train as the documentation says, on loopback."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = {
        **os.environ,
        "GLOO_SOCKET_IFNAME": "lo" if sys.platform == "linux" else "lo0",
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.Popen(
        [*command, str(ROOT / "train.py"), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=ROOT,
    )


def test_torchrun_trains_the_same_agent(pair: tuple[Path, list[list[dict[str, Any]]]], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = torchrun(folder, new_run(folder))
    try:
        _, said = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 0, said
    assert not re.search("warning|Traceback", said, re.IGNORECASE), said
    assert said.count("The agent is in ") == 1
    assert said.splitlines()[-1] == f"  resume     uv run train.py --resume {folder}"
    assert outcome(folder) == outcome(pair[0])


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the workers of torchrun")
@pytest.mark.parametrize("kill", [False, True])
def test_torchrun_is_stopped_and_goes_on(
    kill: bool, pair: tuple[Path, list[list[dict[str, Any]]]], tmp_path: Path
) -> None:
    """By a signal to torchrun, which hands it on, or by the death of a worker, after which it ends the other."""
    folder = tmp_path / "run"
    process = torchrun(folder, new_run(folder))
    try:
        for _ in until(PATIENCE):
            if told(folder, 2)():
                break
        if kill:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            os.kill(int(children[-1]), signal.SIGKILL)
        else:
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode != 0
    trained(2, folder, resumed(folder))
    assert outcome(folder) == outcome(pair[0])


@pytest.mark.long
def test_two_processes_with_half_of_the_games_learn_as_one_with_all(tmp_path: Path) -> None:
    """Strength on the way, by evaluations on the same deals, within what these deals can tell."""
    changes: dict[str, Any] = {
        **{"updates": 40, "games": 1024, "hidden": 64, "minibatch": 2048, "average": 0, "pool": "none"},
        **{"magnet": "uniform", "evaluate_every": 5, "evaluate_deals": 2000, "save_every": 40},
    }
    curves = []
    for size in (1, 2):
        folder = tmp_path / f"run{size}"
        trained(size, folder, new_run(folder, **changes))
        curves.append([line for line in logged(folder) if "eval/penalty" in line])
    assert curves[0][-1]["eval/penalty"] < 1.8, "it learns; `highest` itself pays 2.2"
    for alone, both in zip(*curves, strict=True):
        noise = np.hypot(alone["eval/half_width"], both["eval/half_width"])
        assert abs(alone["eval/penalty"] - both["eval/penalty"]) < noise
        assert abs(alone["losses/entropy"] - both["losses/entropy"]) < 0.1
