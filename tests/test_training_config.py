"""Settings of a run: every one is checked, and refused by its name."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from training import equal, small, weights

import train
from agents.checkpoint import save_agent

COUNTS = ("updates", "games", "epochs", "minibatch", "magnet_every", "evaluate_every", "save_every", "threads")

REFUSED: list[tuple[dict[str, Any], str]] = [
    *(({name: 0}, f"{name}=0 is out of range; allowed: 1 and more") for name in COUNTS),
    *(({name: 1}, f"{name}=1 is out of range; allowed: 2 and more") for name in ("evaluate_deals", "final_deals")),
    *(({name: 0.0}, f"{name}=0.0 is out of range; allowed: above 0") for name in ("learning_rate", "max_grad_norm")),
    *(({name: -0.1}, f"{name}=-0.1 is out of range") for name in ("entropy", "reverse_kl", "value_weight")),
    *(({name: 1.5}, f"{name}=1.5 is out of range; allowed: 0 to 1") for name in ("gae_lambda", "pool_share")),
    *(({name: 1.0}, f"{name}=1.0 is out of range; allowed: 0 to below 1") for name in ("average", "advantage_filter")),
    ({"clip": -1.0}, "clip=-1.0 is out of range; allowed: above 0, or inf"),
    ({"clip": float("nan")}, "clip=nan is out of range"),
    ({"learning_rate": float("inf")}, "learning_rate=inf is out of range"),
    ({"pool_size": 0}, "pool_size=0 is out of range; allowed: 1 to 1000"),
    ({"seed": -1}, "seed=-1 is out of range; allowed: any integer ≥ 0"),
    ({"final_seed": -1}, "final_seed=-1 is out of range"),
    ({"final_seed": 1}, "final_seed=1: the best agent is chosen on those deals"),
    ({"hidden": ()}, "hidden=() is out of range; allowed: one or more widths of 1 and more"),
    ({"hidden": (8, 0)}, "hidden=(8, 0) is out of range"),
    ({"hidden": (8.5,)}, "hidden=(8.5,) is out of range"),
    ({"players": 9}, "players=9 is out of range; allowed: 2 to 8"),
    ({"players": 8}, "players=8 is out of range; allowed: 2 to 7"),
    ({"players": 4.0}, "players=4.0 is out of range; allowed: 2 to 8, such as 4, 2-8 or 2,4"),
    ({"rules": "cucmber"}, "did you mean 'cucumber'"),
    ({"device": "nonsense"}, "device='nonsense' cannot be used here"),
    ({"magnet": "average"}, "magnet='average' needs the moving average of weights; set average"),
    ({"against": "higest"}, "unknown policy 'higest' (did you mean 'highest'?)"),
    ({"against": "highest", "pool": "uniform"}, "against='highest' is the only opponent; leave out pool and rivals"),
    ({"rivals": ("higest",)}, "unknown policy 'higest' (did you mean 'highest'?)"),
    (
        {"rivals": ("lowest",), "against": "highest"},
        "against='highest' is the only opponent; leave out pool and rivals",
    ),
    ({"start": Path("no/such/agent")}, "no agent in no/such/agent"),
    ({"games": 1, "players": "2-3"}, "games=1 is out of range; allowed: 2 and more, for 2 tables in 1 processes"),
]

HINTS = get_type_hints(train.Config)
WORDS = [name for name, kind in HINTS.items() if get_origin(kind) is Literal]

FREE = {"out", "resume", "specialists", "compile"}
"""Settings that no value can put out of range: folders, which are looked for, and a switch."""


@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=str)
def test_settings_out_of_range_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, OSError), match=re.escape(message)):
        train.Trainer(small(**changes))


@pytest.mark.parametrize("name", WORDS)
def test_words_that_are_none_of_a_settings_are_named(name: str) -> None:
    first, *_ = get_args(HINTS[name])
    with pytest.raises(ValueError, match=rf"{name}='other' is not one of its values; allowed: {first}, "):
        small(**{name: "other"}).check()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"updates": 2.5}, "updates=2.5 is of type float; expected int"),
        ({"games": True}, "games=True is of type bool; expected int"),
        ({"clip": "0.2"}, "clip='0.2' is of type str; expected float"),
        ({"compile": 1}, "compile=1 is of type int; expected bool"),
        ({"hidden": 32}, "hidden=32 is of type int; expected tuple"),
        ({"rules": 3}, "rules=3 is of type int; expected str"),
    ],
    ids=str,
)
def test_types_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        small(**changes).check()


def test_every_setting_is_tested_here() -> None:
    tested = {name for changes, _ in REFUSED for name in changes}
    assert {field.name for field in dataclasses.fields(train.Config)} == tested | {*WORDS} | FREE


def test_defaults_and_edges_are_in_range() -> None:
    train.Config().check()
    low = {"updates": 1, "games": 1, "entropy": 0.0, "gae_lambda": 0.0, "pool_share": 0.0, "evaluate_deals": 2}
    small(**low).check()
    small(clip=float("inf"), gae_lambda=1, pool_share=1, seed=10**40, final_seed=0, pool_size=1000).check()


def test_the_command_line_names_them_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train.main(["--clip", "-1", "--out", str(tmp_path / "run")]) == 2
    assert "error: clip=-1.0 is out of range" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SystemExit) as stop:
        train.main(["--magnet", "other"])
    assert stop.value.code == 2
    assert "--magnet" in capsys.readouterr().err


def test_a_start_of_another_shape_is_refused(tmp_path: Path) -> None:
    trainer = train.Trainer(small(hidden=(8,), games=1))
    save_agent(tmp_path / "agent", trainer.network, trainer.card())
    again = train.Trainer(small(hidden=(8,), games=1, seed=2, start=tmp_path / "agent"))
    assert equal(weights(again.network), weights(trainer.network))
    with pytest.raises(ValueError, match=r"start=.*hidden \(8,\), trunk separate.*another shape than this run's"):
        train.Trainer(small(hidden=(16,), games=1, start=tmp_path / "agent"))
