"""How much one seat gains by leaving a policy that all others play: best responses, trained or exact.

    audit    finds a best response to a policy and says what it gains

A trained one is a network that learns against n−1 of the policy (`Config.against`), from the policy's own weights if it
has any. What it gains is measured on deals that neither trained nor chose it, and bounds from below what there is to
gain: a better response may exist. Staying with the policy gains nothing, so the bound is never below zero.

A gain is in units of the reward: of rounds, in points, how much more the others pay on average than the seat itself
(`zero_sum`); of matches, their outcome. So trained and exact gains are gains of the same thing.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.progress import Progress as Bar

from agents.checkpoint import SUMS
from agents.config import SELECTION_DEALS, Config, lasting
from agents.display import Progress
from agents.policy import NetworkPolicy
from agents.runs import CONFIG, StopSignal
from agents.session import Learner, open_run
from cucumber_env import arena, exact
from cucumber_env.arena.statistics import Estimate, paired_difference
from cucumber_env.batch import seed_word
from cucumber_env.observation import COUNT_BITS, Layout
from cucumber_env.policies import Policy, check_seat, make
from cucumber_env.rules import Rules

FRESH_DEALS = 1 << 32
"""Added to the seed of an audit it names the deals on which the response is measured, and no others are."""

QUICK_CARDS = 3
"""Rounds of two with so many cards are looked at exactly in a moment."""

LEARNING: dict[str, Any] = {
    "entropy": 0.001,
    "minibatch": 512,  # one seat learns, so an update brings few decisions: with 4,096 far less is found
    "evaluate_every": 14,
    "save_every": 14,
    "final_deals": 2,
}
"""Settings of the training of a response, where they are not those of any training."""


@dataclass(frozen=True)
class Audit:
    """What one seat gains by deviating from a policy.

    Attributes:
        policy: Its name.
        rules, num_players, episode: Of the table.
        kind: ``"trained"``, or ``"exact"``: the best of all responses, the mean over seats.
        turns: Turns of training, those of all seats.
        deals, seed: Deals on which the gain was measured, and the seed that names them; 0 if it is exact.
        gain: Measured, in points or outcome per episode; of no width if it is exact.
        response: Name of the response as a policy; empty if it is exact.
    """

    policy: str
    rules: str
    num_players: int
    episode: str
    kind: str
    turns: int
    deals: int
    seed: int
    gain: Estimate
    response: str

    @property
    def at_least(self) -> float:
        """What one gains by deviating, at least: the lower end of the interval, or 0, which staying gains."""
        return max(0.0, self.gain.low)

    def to_dict(self) -> dict[str, Any]:
        """A row of a tournament's ``audit``, JSON-friendly."""
        return {**vars(self), "gain": self.gain.to_dict(), "at_least": self.at_least}


def audit(
    policy: str,
    *,
    trainer: Callable[[Config], Learner],
    rules: Rules | str | Mapping[str, Any] = "cucumber",
    num_players: int = 4,
    episode: str = "round",
    kind: Literal["auto", "trained", "exact"] = "auto",
    out: str | Path = "runs/audits",
    updates: int = 112,
    games: int = 4096,
    deals: int = 20_000,
    seed: int = 1,
    threads: int = 1,
    settings: Mapping[str, Any] | None = None,
    console: Console | None = None,
) -> Audit:
    """What a best response to `policy` gains.

    A training is a run in a folder of its own under `out`. Interrupted, it is saved, and the same call goes on with it
    or, if it was finished, measures it again; the audit is the same as of one never stopped. Other arguments, or
    another agent in the folder that `policy` names, make another run.

    Args:
        policy: Name of the policy.
        trainer: Makes the trainer of some settings: ``train.Trainer``.
        rules, num_players, episode: Of the table.
        kind: ``"exact"`` is for rounds of few cards, ``"auto"`` takes it for two players and up to three.
        out: Where runs are.
        updates, games: Updates of the training, and episodes played for each.
        deals: Duplicate deals on which the response is measured, 2 and more.
        seed: Names the random numbers of the training, and with `FRESH_DEALS` the deals.
        threads: CPU threads of the network arithmetic.
        settings: Other settings of the training, by their names in `Config`.
        console: Where progress is shown; by default stderr.

    Raises:
        ValueError, TypeError: an unknown name, an argument out of range, or a policy that cannot be asked so.
        OSError: there is no such agent, another process trains in the run, or its folder may not be written.
        KeyboardInterrupt: it was asked to stop.
    """
    rules = Rules.of(rules)
    made = _check(policy, rules, num_players, episode, kind)
    if isinstance(deals, bool) or not isinstance(deals, int | np.integer):
        raise TypeError(f"deals={deals!r} must be an integer ≥ 2")
    arena.check_deals(deals)
    seed_word(seed)
    table = _Table(policy, made, rules, num_players, episode)
    if kind == "exact" or (kind == "auto" and table.quick):
        return table.audit("exact", gain=table.exact_gain())
    console = console or Console(stderr=True)
    own = {**table.training(), "updates": updates, "games": games, "seed": seed, "threads": threads}
    if taken := sorted({*own, "out", "resume"} & {*(settings or {})}):
        raise ValueError(f"settings hold {', '.join(taken)}, which follow from the other arguments")
    config = Config(**{**LEARNING, **table.start(), **(settings or {}), **own})
    config.check()
    config.out = Path(out) / _run_name(config, policy)
    turns = _train(config, trainer, console)
    response = table.best(config.out, config.evaluate_deals, console)
    fresh = FRESH_DEALS + seed
    gain = table.gain(response, deals, fresh, console, "measuring")
    return table.audit("trained", turns=turns, deals=int(deals), seed=fresh, gain=gain, response=response.name)


def _check(policy: str, rules: Rules, num_players: int, episode: str, kind: str) -> Policy:
    """The policy of that name, which can sit at such a table."""
    if not isinstance(policy, str):
        raise TypeError(f"policy must be a name, got {type(policy).__name__}: a training is written down with it")
    made = make(policy)
    rules.check_players(num_players)
    check_seat(made, rules, num_players, episode)
    if kind not in ("auto", "trained", "exact"):
        raise ValueError(f"kind={kind!r} is not one of its values; allowed: auto, trained, exact")
    if kind == "exact" and episode != "round":
        raise ValueError(f"kind='exact' looks at rounds; with episode={episode!r} allowed: auto, trained")
    return made


def _folder(policy: str) -> Path:
    """The folder or file that a name such as ``checkpoint:FOLDER,greedy=1`` speaks of."""
    parts = policy.partition(":")[2].split(",")
    return Path(",".join(part for part in parts if not part.startswith("greedy=")))


def _run_name(config: Config, policy: str) -> str:
    """Of the run with these settings, against the agent as it is now in its folder or file."""
    agent = _folder(policy) / SUMS if _folder(policy).is_dir() else _folder(policy)
    content = agent.read_bytes() if agent.is_file() else b""
    named = json.dumps([lasting(config), str(config.start), hashlib.sha256(content).hexdigest()], sort_keys=True)
    readable = re.sub(r"[^\w.]+", "-", policy)[-40:].strip("-")
    return f"{readable}-{hashlib.sha256(named.encode()).hexdigest()[:12]}"


def _train(config: Config, trainer: Callable[[Config], Learner], console: Console) -> int:
    """Train in ``config.out``, or go on there; returns the turns that it took.

    Raises:
        KeyboardInterrupt: a stop was asked for; what was done is saved.
    """
    assert config.out is not None
    begun = (config.out / CONFIG).exists()
    run = (
        open_run(Config(resume=config.out), trainer, {"threads": config.threads})
        if begun
        else open_run(config, trainer)
    )
    learner, stop = run.trainer, StopSignal()
    try:
        with Progress(config.updates, done=learner.updates, field=config.against or "", console=console) as progress:
            run.train(progress, stop)
    finally:
        stop.restore()
        run.folder.close()
    if learner.updates < config.updates:
        raise KeyboardInterrupt
    return learner.turns


@dataclass(frozen=True)
class _Table:
    """A policy at all seats but one.

    Attributes:
        name, policy: The policy.
        rules, num_players, episode: Of the table.
    """

    name: str
    policy: Policy
    rules: Rules
    num_players: int
    episode: str

    @property
    def quick(self) -> bool:
        """Whether the exact gain is a matter of a moment."""
        small = self.num_players == 2 and self.rules.largest_hand <= QUICK_CARDS and not self.rules.dealer_chooses
        return small and self.episode == "round" and not self.policy.samples_only

    def exact_gain(self) -> Estimate:
        """Mean over all seats of what a best response gains there."""
        if self.num_players == 2:
            gains = exact.exploitability(self.rules, self.policy).gains
        else:
            gains = exact.deviation(self.rules, self.policy, self.num_players).gains
        return Estimate(max(0.0, math.fsum(gains) / self.num_players), 0.0, 0)

    def training(self) -> dict[str, Any]:
        """Settings of a training that make it one of a response at this table."""
        table = {"rules": str(self.rules), "players": self.num_players, "episode": self.episode}
        return {**table, "against": self.name}

    def start(self) -> dict[str, Any]:
        """Settings of a training that begins with the weights of the policy; none if it has none that fit the table."""
        if not isinstance(self.policy, NetworkPolicy):
            return {}
        card = self.policy.card
        critic = {0: "own", (self.num_players - 1) * COUNT_BITS: "perfect"}.get(card.extra)
        shape = (Layout.of(self.rules, self.num_players, self.episode).size, self.rules.num_actions)
        if critic is None or (card.width, card.actions) != shape:
            return {}
        network = {"hidden": card.hidden, "trunk": card.trunk, "critic": critic}
        return {**network, "start": _folder(self.name), "learning_rate": 1e-3}

    def best(self, run: Path, deals: int, console: Console) -> NetworkPolicy:
        """The best of what a run has left, on the deals by which agents are chosen: last or best, sampling or not."""
        agents = {path.resolve(): path for path in (run / "best", run / "last")}.values()
        found = [NetworkPolicy.load(path, greedy=greedy) for path in agents for greedy in (False, True)]
        for one in found:
            one.name += ",greedy=1" * one.greedy
        return max(found, key=lambda one: self.gain(one, deals, SELECTION_DEALS, console, "choosing").mean)

    def gain(self, response: Policy, deals: int, seed: int, console: Console, doing: str) -> Estimate:
        """What the response gains in the place of one of the policy, paired by deal."""
        options: dict[str, Any] = {"rules": self.rules, "num_players": self.num_players, "episode": self.episode}
        with Bar(console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task(doing, total=2 * deals)
            options |= {"deals": deals, "seed": seed, "progress": lambda done: bar.advance(task, done)}
            away, home = (arena.one_against(one, self.policy, **options) for one in (response, self.policy))
        if self.episode == "match":
            return paired_difference(away.one, home.one)
        return paired_difference(away.others - away.one, home.others - home.one)

    def audit(
        self, kind: str, *, gain: Estimate, turns: int = 0, deals: int = 0, seed: int = 0, response: str = ""
    ) -> Audit:
        """What was found."""
        table = (self.name, str(self.rules), self.num_players, self.episode)
        return Audit(*table, kind, turns, deals, seed, gain, response)
