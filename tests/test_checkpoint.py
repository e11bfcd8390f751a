"""Agents on disk: what is written comes back, and anything else is refused by name, unread where it could run code."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from training import run, small

import evaluate
import train
from agents.checkpoint import load_agent, load_state, optimizer_tensors, restore_optimizer, save_agent
from agents.network import ActorCritic
from cucumber_env.policies import make

FILES = ("agent.json", "weights.safetensors", "state.json", "state.safetensors", "SHA256SUMS")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of four updates that was stopped after three, with everything that a checkpoint keeps."""
    folder = tmp_path_factory.mktemp("made") / "run"
    settings: dict[str, Any] = {"games": 16, "average": 0.5, "pool": "uniform", "magnet": "snapshot"}
    run(small(out=folder, hidden=(8,), **settings), stop_after=3)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy of that run."""
    shutil.copytree(made, tmp_path / "run", symlinks=True)
    return tmp_path / "run"


def add_up(checkpoint: Path) -> None:
    """Make the sums of a checkpoint right again, so that something else has to refuse it."""
    names = [name for name in FILES[:-1] if (checkpoint / name).exists()]
    sums = {name: hashlib.sha256((checkpoint / name).read_bytes()).hexdigest() for name in names}
    (checkpoint / "SHA256SUMS").write_text("".join(f"{sums[name]}  {name}\n" for name in names))


def edit(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change a JSON file of a checkpoint, whose sums stay right."""
    fields = json.loads(path.read_text())
    change(fields)
    path.write_text(json.dumps(fields))
    add_up(path.parent)


def refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Why a run is not resumed."""
    assert train.main(["--resume", str(folder)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    return said.err


def test_sums_are_those_of_all_other_files(made: Path) -> None:
    for checkpoint in made.glob("checkpoint-*"):
        lines = [line.split("  ") for line in (checkpoint / "SHA256SUMS").read_text().splitlines()]
        listed = {name: found for found, name in lines}
        others = [path for path in checkpoint.iterdir() if path.name != "SHA256SUMS"]
        assert listed == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in others}


def test_everything_comes_back_bit_by_bit(tmp_path: Path) -> None:
    done = run(small(out=tmp_path / "run", updates=2, games=16, average=0.5, pool="uniform", magnet="snapshot"))
    tensors, counters = load_state(tmp_path / "run" / "last")
    assert {name.split("/")[0] for name in tensors} == {"network", "optimizer", "average", "snapshot", "pool"}
    assert {name: tensor.numpy().tobytes() for name, tensor in tensors.items()} == {
        name: tensor.detach().numpy().tobytes() for name, tensor in done.trainer.state().items()
    }
    assert counters["updates"] == 2
    agent, card = load_agent(tmp_path / "run" / "last")
    assert card == done.trainer.card()
    kept = zip(agent.parameters(), done.trainer.agent.parameters(), strict=True)
    assert all(torch.equal(theirs, ours) for theirs, ours in kept)


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the names of open files")
def test_files_are_on_the_disk_before_their_folder_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, rename = os.fsync, Path.rename

    def synced(number: int) -> None:
        done.append(Path(os.readlink(f"/proc/self/fd/{number}")).name)
        fsync(number)

    def renamed(path: Path, target: Path) -> Path:
        done.append(f"-> {target.name}")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", renamed)
    run(small(out=tmp_path / "run", updates=1, games=4))
    before, after = done[: done.index("-> checkpoint-000001")], done[done.index("-> checkpoint-000001") :]
    assert {*FILES, ".config.json.new", "log.jsonl"} < set(before)
    assert before[-1].startswith(".checkpoint-000001.new")
    assert after[1] == "run"


def test_a_failed_save_leaves_nothing(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network, card = load_agent(made / "last")

    def full(path: Path) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("agents.checkpoint.flush", full)
    with pytest.raises(OSError, match="No space left"):
        save_agent(tmp_path / "agent", network, card)
    assert not list(tmp_path.iterdir())


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [truncated, flipped, emptied, Path.unlink], ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_checkpoint_is_named_and_the_one_before_goes_on(
    name: str, damage: Callable[[Path], None], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newest = folder / "checkpoint-000003"
    damage(newest / name)
    said = refused(folder, capsys)
    assert name in said
    assert str(newest) in said
    assert said.endswith(f"; delete {newest} to go on from checkpoint-000002\n")
    shutil.rmtree(newest)
    assert run(train.Config(resume=folder)).trainer.updates == 4


def test_a_run_without_its_damaged_checkpoints_comes_to_the_same_end(
    made: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(made, tmp_path / "whole", symlinks=True)
    run(train.Config(resume=tmp_path / "whole"))
    for checkpoint, before in zip(
        sorted(folder.glob("checkpoint-*"), reverse=True), ["from checkpoint-000002", "from the beginning"], strict=True
    ):
        flipped(checkpoint / "weights.safetensors")
        assert f"; delete {checkpoint} to go on {before}\n" in refused(folder, capsys)
        shutil.rmtree(checkpoint)
    run(train.Config(resume=folder))
    for name in ("weights.safetensors", "state.safetensors"):
        assert (folder / "last" / name).read_bytes() == (tmp_path / "whole" / "last" / name).read_bytes()
    assert os.readlink(folder / "best") == os.readlink(tmp_path / "whole" / "best")


def test_any_flipped_bit_is_noticed(folder: Path) -> None:
    checkpoint, draw = folder / "checkpoint-000003", np.random.default_rng(0)
    for name in FILES:
        whole = (checkpoint / name).read_bytes()
        for _ in range(40):
            data = bytearray(whole)
            data[draw.integers(len(data))] ^= 1 << int(draw.integers(8))
            (checkpoint / name).write_bytes(data)
            with pytest.raises((ValueError, FileNotFoundError), match="checkpoint-000003"):
                load_state(checkpoint)
        (checkpoint / name).write_bytes(whole)
    load_state(checkpoint)


class Harm:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def zipped(harm: Harm, path: Path) -> None:
    torch.save(harm, path)


def plain(harm: Harm, path: Path) -> None:
    torch.save(harm, path, _use_new_zipfile_serialization=False)


def raw(protocol: int) -> Callable[[Harm, Path], None]:
    def save(harm: Harm, path: Path) -> None:
        path.write_bytes(pickle.dumps(harm, protocol))

    return save


@pytest.mark.parametrize(
    "save",
    [zipped, plain, *map(raw, range(6))],
    ids=["torch.save", "torch.save without zip", *(f"pickle {protocol}" for protocol in range(6))],
)
def test_a_pickle_is_never_read(
    save: Callable[[Harm, Path], None], folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    harm, checkpoint = Harm(tmp_path / "harm"), folder / "checkpoint-000003"
    save(harm, tmp_path / "agent.pt")
    for name in FILES[:-1]:
        whole = (checkpoint / name).read_bytes()
        shutil.copy(tmp_path / "agent.pt", checkpoint / name)
        add_up(checkpoint)
        assert str(checkpoint / name) in refused(folder, capsys)
        (checkpoint / name).write_bytes(whole)
    for load in (load_agent, load_state, lambda path: make(f"checkpoint:{path}")):
        with pytest.raises(ValueError, match=r"agent\.pt is a (pickle, as torch\.save writes it|file; an agent is)"):
            load(tmp_path / "agent.pt")
    assert evaluate.main(["arena", f"checkpoint:{tmp_path / 'agent.pt'}", "random"]) == 2
    assert train.main(["--start", str(tmp_path / "agent.pt"), "--out", str(tmp_path / "new"), "--games", "4"]) == 2
    said = capsys.readouterr().err
    assert said.count("agent.pt is a ") == 2
    assert "Traceback" not in said
    assert not harm.path.exists()


def test_weights_that_torch_saved_are_called_a_pickle(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = folder / "checkpoint-000003" / "weights.safetensors"
    for zipped_too in (True, False):
        torch.save(load_agent(folder / "best")[0].state_dict(), weights, _use_new_zipfile_serialization=zipped_too)
        assert f"{weights} is a pickle, as torch.save writes it; only safetensors are read" in refused(folder, capsys)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [("format", 1, "file format"), ("rules_version", 99, "rules"), ("observation_version", 99, "observation")],
)
def test_another_version_is_named_and_nothing_is_to_be_deleted(
    name: str, value: int, told: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = folder / "checkpoint-000003"
    edit(checkpoint / "agent.json", lambda fields: fields.update({name: value}))
    said = refused(folder, capsys)
    assert f"{checkpoint} was written under {told} version {value}; this is version " in said
    assert "delete" not in said
    (checkpoint / "SHA256SUMS").unlink()  # which other versions may not have
    assert f"{told} version {value}" in refused(folder, capsys)


def test_the_first_format_had_no_number(folder: Path) -> None:
    edit(folder / "checkpoint-000003" / "agent.json", lambda fields: fields.pop("format"))
    with pytest.raises(ValueError, match="file format version 1; this is version 2"):
        load_agent(folder / "last")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda card: card.update(hidden=[9]), "weights.safetensors is not the weights that agent.json describes"),
        (lambda card: card.update(hidden=["a"]), "agent.json does not describe a network"),
        (lambda card: card.update(hidden=[-1]), "agent.json does not describe a network"),
        (lambda card: card.update(trunk="joint"), "agent.json does not describe a network: trunk='joint'"),
        (lambda card: card.update(width=7), "agent.json: width 7 is not that of its table"),
        (lambda card: card.update(tables=[]), "agent.json does not describe an agent"),
        (lambda card: card.update(colour="red"), "agent.json does not describe an agent"),
        (lambda card: card.pop("actions"), "agent.json does not describe an agent"),
        (lambda card: card["tables"][0].update(players=[2]), "agent.json does not describe an agent"),
        (lambda card: card["tables"][0]["rules"].update(hand_size=99), "agent.json does not describe an agent"),
    ],
)
def test_a_card_that_is_of_no_agent_is_refused(
    change: Callable[[dict[str, Any]], Any], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(folder / "checkpoint-000003" / "agent.json", change)
    assert message in refused(folder, capsys)
    name = f"checkpoint:{folder / 'last'}"
    assert evaluate.main(["arena", name, "random"]) == 2
    assert "agent.json" in capsys.readouterr().err


def test_files_of_another_network_are_refused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(small(out=tmp_path / "wide", updates=3, hidden=(9,), games=16))
    foreign, checkpoint = tmp_path / "wide" / "last", folder / "checkpoint-000003"
    for name, message in (
        ("weights.safetensors", "is not the weights that agent.json describes"),
        ("state.safetensors", "is not one of this run: "),
        ("state.json", "is not one of this run: its "),
    ):
        whole = (checkpoint / name).read_bytes()
        shutil.copy(foreign / name, checkpoint / name)
        assert f"{name} is damaged, or of another agent" in refused(folder, capsys)
        add_up(checkpoint)
        assert message in refused(folder, capsys)
        (checkpoint / name).write_bytes(whole)
        add_up(checkpoint)
    load_state(checkpoint)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seed": 2}, "its seed is 2"),
        ({"updates": 5, "gae_lambda": 0.5}, "its updates is 5, gae_lambda is 0.5"),
        ({"magnet": "uniform", "average": 0.0}, "its magnet is 'uniform', average is 0.0"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(
    settings: dict[str, Any], message: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usual: dict[str, Any] = {"games": 16, "hidden": (8,), "average": 0.5, "pool": "uniform", "magnet": "snapshot"}
    run(small(out=tmp_path / "other", **{**usual, **settings}), stop_after=3)
    shutil.rmtree(folder / "checkpoint-000003")
    shutil.copytree(tmp_path / "other" / "checkpoint-000003", folder / "checkpoint-000003")
    assert f"{folder}/checkpoint-000003 is not one of this run: {message};" in refused(folder, capsys)


@pytest.mark.parametrize("name", ["updates", "best", "gain", "pool", "settings", "bf16"])
def test_a_counter_that_is_missing_is_named(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(folder / "checkpoint-000003" / "state.json", lambda counters: counters.pop(name))
    assert f"checkpoint-000003 is not one of this run: '{name}'" in refused(folder, capsys)


def test_the_state_of_another_optimiser_is_refused() -> None:
    def stepped(*hidden: int) -> torch.optim.Adam:
        network = ActorCritic(8, 5, hidden)
        optimizer = torch.optim.Adam(network.parameters())
        for weight in network.parameters():
            weight.grad = torch.ones_like(weight)
        optimizer.step()
        return optimizer

    mine = stepped(4)
    tensors = optimizer_tensors(mine)
    restore_optimizer(stepped(4), tensors)
    with pytest.raises(ValueError, match="of 12 parameters, this network has 8"):
        restore_optimizer(mine, optimizer_tensors(stepped(4, 4)))
    with pytest.raises(ValueError, match=r"exp_avg, exp_avg_sq is not of the shape \(4, 8\)"):
        restore_optimizer(mine, optimizer_tensors(stepped(5)))
    with pytest.raises(ValueError, match="of 7 parameters"):
        restore_optimizer(mine, {name: tensor for name, tensor in tensors.items() if not name.startswith("3.")})


def test_an_agent_alone_cannot_be_resumed_from(made: Path, tmp_path: Path) -> None:
    network, card = load_agent(made / "last")
    save_agent(tmp_path / "agent", network, card)
    again = load_agent(tmp_path / "agent")[0]
    assert all(torch.equal(*pair) for pair in zip(again.parameters(), network.parameters(), strict=True))
    with pytest.raises(FileNotFoundError, match=r"no training to go on with: state\.safetensors is missing"):
        load_state(tmp_path / "agent")
    with pytest.raises(FileNotFoundError, match="no agent in"):
        load_agent(tmp_path / "none")
