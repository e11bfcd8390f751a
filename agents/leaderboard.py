"""The leaderboard: policies measured by one yardstick, each in a file of its own that says how to do it again.

A board (``leaderboard/boards.toml``) is a kind of table with duplicate deals. An entry is a policy that was measured on
them among n−1 of each scripted opponent: ``leaderboard/entries/BOARD/NAME.json``, and beside it ``NAME.npz`` with its
score among each of them on every deal. So entries are measured one by one, and compared deal by deal. Of rounds of two
with few cards an entry has its exact distance from equilibrium, too.

    measure      a policy on a board
    reproduce    measure an entry again, and say where it differs
    stale        what has changed since an entry was measured
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from agents.config import Config
from cucumber_env import exact
from cucumber_env.arena import VERSIONS, Comparison, Estimate, Progress, paired_difference
from cucumber_env.arena.compare import samples_among
from cucumber_env.arena.match import SHARES
from cucumber_env.baselines import BASELINES
from cucumber_env.champion import Champion, read_card, read_weights
from cucumber_env.policies import Policy, make
from cucumber_env.rules import Rules

FOLDER = Path(__file__).parent.parent / "leaderboard"
"""Where boards and entries are."""

FORMAT = 1
"""Version of an entry's files; grows when an older program could not read them."""

MOST_CARDS = 4
"""Rounds of two with so many cards are measured exactly, too."""

AGAIN = Path("runs/leaderboard")
"""Where agents are that were trained again."""


@dataclass(frozen=True)
class Board:
    """A kind of table, and the deals on which it is played.

    Attributes:
        name: By which entries call it.
        title: For people.
        rules, players, episode: Of the table.
        deals, seed: Duplicate deals, and the seed that names them.
    """

    name: str
    title: str
    rules: str
    players: int
    episode: str
    deals: int
    seed: int

    @property
    def table(self) -> dict[str, Any]:
        """What the scores of an entry depend on."""
        return {
            "rules": Rules.of(self.rules).to_dict(),
            "num_players": self.players,
            "episode": self.episode,
            "deals": self.deals,
            "seed": self.seed,
            "fields": list(BASELINES),
        }

    @property
    def solvable(self) -> bool:
        """Whether policies are measured exactly, too."""
        return self.players == 2 and self.episode == "round" and Rules.of(self.rules).largest_hand <= MOST_CARDS


@dataclass(frozen=True)
class Entry:
    """A policy on a board.

    Attributes:
        board: Name of the board.
        policy: Name of the policy.
        kind: ``"scripted"``, ``"trained"``, ``"solved"`` or ``"other"``.
        budget: What making it took, such as turns of training.
        commands: How to make it again, from the root of the repository; none for scripted policies.
        remade: Name of the policy that these commands make.
        table: `Board.table` as it was.
        versions: `arena.VERSIONS` as they were.
        agent: SHA-256 of the file with the policy's weights or tables; None for scripted policies.
        against: Rows of `Comparison`, one for each field.
        exact: Value and NashConv of a round of two in points, and its numbers of decisions; None elsewhere.
        sums: int32 ``[fields, deals]``, the scores of a deal's rotations together: points, or 1/840 of outcomes.
        format: `FORMAT`.
    """

    board: str
    policy: str
    kind: str
    budget: dict[str, Any]
    commands: list[str]
    remade: str | None
    table: dict[str, Any]
    versions: dict[str, int]
    agent: str | None
    against: list[dict[str, Any]]
    exact: dict[str, Any] | None
    sums: np.ndarray = field(repr=False)
    format: int = FORMAT

    @property
    def scores(self) -> np.ndarray:
        """float64 ``[fields, deals]``, mean over the rotations of each deal."""
        return self.sums / _unit(self.table["num_players"], self.table["episode"])

    @property
    def name(self) -> str:
        """The policy's name, as names of files allow it."""
        return re.sub(r"[^A-Za-z0-9_]+", "-", self.policy).strip("-")

    def write(self, folder: Path = FOLDER) -> Path:
        """Write both files, each whole or not at all; returns the one with the facts.

        Raises:
            ValueError: an entry of another policy has these names.
        """
        place = folder / "entries" / self.board
        target = place / f"{self.name}.json"
        if target.exists() and (other := Entry.read(target).policy) != self.policy:
            raise ValueError(f"{target} is the entry of {other!r}; give {self.policy!r} another name")
        place.mkdir(parents=True, exist_ok=True)
        packed = _packed(self.sums)
        facts = {each.name: getattr(self, each.name) for each in dataclasses.fields(self) if each.name != "sums"}
        command = f"uv run evaluate.py leaderboard reproduce leaderboard/entries/{self.board}/{self.name}.json"
        facts |= {"command": command, "results": f"{self.name}.npz", "sha256": hashlib.sha256(packed).hexdigest()}
        text = json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        for path, content in ((place / f"{self.name}.npz", packed), (target, text.encode())):
            fresh = path.with_name(f"{path.name}.new")
            fresh.write_bytes(content)
            fresh.replace(path)
        return target

    @classmethod
    def read(cls, path: str | Path) -> Entry:
        """The entry of a file.

        Raises:
            ValueError: no entry, one of another format, or its scores are damaged or belong to another.
            OSError: it cannot be read.
        """
        path = Path(path)
        try:
            facts = json.loads(path.read_text(encoding="utf-8"))
            if facts["format"] != FORMAT:
                raise ValueError(f"format {facts['format']}; this program reads {FORMAT}")
            packed = (path.parent / facts["results"]).read_bytes()
            if hashlib.sha256(packed).hexdigest() != facts["sha256"]:
                raise ValueError(f"its scores, {facts['results']}, are not those it was written with")
            with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
                sums = arrays["sums"].astype(np.int32)
            known = {each.name for each in dataclasses.fields(cls)} - {"sums"}
            return cls(sums=sums, **{name: value for name, value in facts.items() if name in known})
        except (ValueError, KeyError, TypeError) as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else error
            raise ValueError(f"{path} is no entry of the leaderboard: {reason}") from error


def boards(folder: Path = FOLDER) -> dict[str, Board]:
    """All boards by name."""
    with open(folder / "boards.toml", "rb") as file:
        return {name: Board(name=name, **facts) for name, facts in tomllib.load(file).items()}


def find_board(name: str, folder: Path = FOLDER) -> Board:
    """The board of that name.

    Raises:
        ValueError: there is none; lists those there are.
    """
    known = boards(folder)
    if name not in known:
        raise ValueError(f"board={name!r} is not one of its values; allowed: {', '.join(known)}")
    return known[name]


def entries(board: Board, folder: Path = FOLDER) -> list[Entry]:
    """All entries of a board, by name."""
    return [Entry.read(path) for path in sorted((folder / "entries" / board.name).glob("*.json"))]


def stale(entry: Entry, board: Board) -> list[str]:
    """What has changed since the entry was measured, in words; nothing if it stands."""
    kinds = [(f"{name} version", entry.versions.get(name), version) for name, version in VERSIONS.items()]
    kinds += [(name, entry.table.get(name), value) for name, value in board.table.items()]
    changed = [f"{name}: {_short(was, now)}" for name, was, now in kinds if was != now]
    try:
        agent = _fingerprint(make(entry.policy))
    except (ValueError, OSError) as error:
        return [*changed, f"the policy cannot be made: {error}"]
    return changed if agent == entry.agent else [*changed, "the agent's file"]


def measure(
    board: Board,
    policy: str,
    *,
    deals: int | None = None,
    progress: Progress | None = None,
) -> Entry:
    """A policy on a board; nothing is written.

    Reports ``2 * len(BASELINES) * deals`` to `progress`.

    Args:
        board: The board.
        policy: Name of a policy.
        deals: Only so many of the first deals.
        progress: Told of finished deals.

    Raises:
        ValueError, TypeError: an unknown policy, or one that cannot sit at the table.
        TableError: it failed.
    """
    made = make(policy)
    fields = [made if made.name == name else make(name) for name in BASELINES]
    count = board.deals if deals is None else min(deals, board.deals)
    samples = samples_among(
        made,
        fields,
        num_players=board.players,
        rules=board.rules,
        deals=count,
        seed=board.seed,
        episode=board.episode,
        progress=progress,
    )
    kind = (board.players, board.episode)
    rows = [
        Comparison.of((policy, name), sample, own, kind) for name, (sample, own) in zip(BASELINES, samples, strict=True)
    ]
    return Entry(
        board=board.name,
        policy=policy,
        **_origin(made),
        table={**board.table, "deals": count},
        versions=dict(VERSIONS),
        agent=_fingerprint(made),
        against=[row.to_dict() for row in rows],
        exact=_exact(board, made),
        sums=np.rint(np.stack([sample.one for sample, _ in samples]) * _unit(*kind)).astype(np.int32),
    )


@dataclass(frozen=True)
class Difference:
    """An entry measured again, among one field.

    Attributes:
        field: Name of the field.
        was, now: Mean score on the deals that were played again.
        change: Now less then, paired by deal.
        deals: On how many of these deals the scores differ.
    """

    field: str
    was: float
    now: float
    change: Estimate
    deals: int

    @classmethod
    def of(cls, field: str, was: np.ndarray, now: np.ndarray) -> Difference:
        """From scores by deal, float64 ``[deals]`` each."""
        change, differing = paired_difference(now, was), int(np.count_nonzero(was != now))
        return cls(field, float(was.mean()), float(now.mean()), change, differing)


def reproduce(entry: Entry, again: Entry) -> list[Difference]:
    """Where an entry that was measured again, perhaps on fewer deals, differs; a row for each field."""
    count = again.scores.shape[1]
    scores = zip(entry.table["fields"], entry.scores[:, :count], again.scores, strict=True)
    return [Difference.of(*field) for field in scores]


def _fingerprint(policy: Policy) -> str | None:
    """SHA-256 of the file that a policy plays from; None for scripted policies and for folders of checkpoints."""
    if isinstance(policy, Champion) and policy.agent is not None:
        content = read_weights(policy.folder, policy.agent)
    elif isinstance(policy, exact.Tabular):
        content = Path(policy.name.partition(":")[2]).read_bytes()
    else:
        return None
    return hashlib.sha256(content).hexdigest()


def _origin(policy: Policy) -> dict[str, Any]:
    """How a policy was made: kind, budget, commands and the name of what these make."""
    name = policy.name
    if name in BASELINES:
        return {"kind": "scripted", "budget": {}, "commands": [], "remade": None}
    if isinstance(policy, Champion) and policy.agent is not None:
        return _trained(policy, name)
    if isinstance(policy, exact.Tabular):
        facts = policy.facts
        file = AGAIN / Path(name.partition(":")[2]).name
        solve = ["uv", "run", "evaluate.py", "solve", "--rules", str(policy.tree.rules), "--out", str(file)]
        budget = {fact: facts[fact] for fact in ("iterations", "scheme") if fact in facts}
        options = ["--iterations", str(budget.get("iterations", 1000)), "--nash-conv", "1e-9"]
        return {
            "kind": "solved",
            "budget": budget,
            "commands": [f"mkdir -p {AGAIN}", shlex.join([*solve, *options])],
            "remade": f"exact:{file}",
        }
    return {"kind": "other", "budget": {}, "commands": [], "remade": None}


def _trained(policy: Champion, name: str) -> dict[str, Any]:
    """The same of an agent whose card tells how it was trained."""
    card = read_card(policy.folder, str(policy.agent))
    training = card.training
    settings = training.get("settings", {})
    run, agents = AGAIN / card.name, AGAIN / "agents"
    export = ["uv", "run", "python", "-m", "agents.export", f"{run}/last", "--name", card.name, "--out", str(agents)]
    greedy = ",greedy=1" if policy.greedy else ""
    return {
        "kind": "trained",
        "budget": {fact: training[fact] for fact in ("turns", "decisions", "training_seconds") if fact in training},
        "commands": [command_of(settings, run), shlex.join(export)] if settings else [],
        "remade": f"champion:{card.name},folder={agents}{greedy}" if settings else None,
    }


def command_of(settings: Mapping[str, Any], out: Path) -> str:
    """The call of train.py with some settings, those at their defaults left out."""
    words = ["uv", "run", "train.py"]
    usual = json.loads(json.dumps(asdict(Config()), default=str))
    for name, value in settings.items():
        if value == usual.get(name):
            continue
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            words.append(option if value else f"--no-{option[2:]}")
        else:
            words += [
                option,
                *map(str, value if isinstance(value, Sequence) and not isinstance(value, str) else [value]),
            ]
    return shlex.join([*words, "--out", str(out)])


def _exact(board: Board, policy: Policy) -> dict[str, Any] | None:
    if not board.solvable or policy.samples_only:
        return None
    report = exact.exploitability(board.rules, policy)
    return {"value": report.value, "nash_conv": report.nash_conv, "decisions": report.decisions}


def _unit(num_players: int, episode: str) -> int:
    """What the mean score of a deal is a whole number of parts of: rotations, and of outcomes what winners share."""
    return num_players * (SHARES if episode == "match" else 1)


def _packed(sums: np.ndarray) -> bytes:
    """Scores as an npz file, the same bytes for the same scores; penalties of a round fit into two bytes."""
    file = io.BytesIO()
    np.savez_compressed(file, sums=sums if np.abs(sums).max() > np.iinfo(np.int16).max else sums.astype(np.int16))
    return file.getvalue()


def _short(was: Any, now: Any) -> str:
    """``was → now``, of mappings what differs alone."""
    if isinstance(was, dict) and isinstance(now, dict):
        changed = [name for name in now if was.get(name) != now[name]]
        return ", ".join(f"{name} {was.get(name)} → {now[name]}" for name in changed)
    return f"{was} → {now}"
