"""Train an agent by self-play with PPO or MMD, and measure it against every scripted opponent.

    uv run train.py                                        # 4 players, Cucumber, about two minutes on two cores
    uv run train.py --players 2 --rules three_card --seed 7
    uv run train.py --players 2-7 --rules cucumber,agurk   # one agent for many tables
    uv run train.py --resume runs/cucumber-4p-seed1
    torchrun --nproc-per-node=2 train.py --threads 1       # the same run in two processes

All seats share one network. Each update plays whole episodes, then learns from them. A seat's next
decision may be one turn away or many, and its reward arrives on somebody else's move, so
advantages follow each seat's own chain of decisions, without discount. Turns with one legal action
are played by the kernel and never reach the network.

Nothing random has a state of its own: deals and action samples are hashes of (seed, game, update),
and so is the order of minibatches. A checkpoint is weights, optimiser and counters, and a resumed
run goes on as if it had never stopped.
"""

from __future__ import annotations

import copy
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

# Threads that spin for long while they wait for each other lose most of their speed as soon as anything else runs
# on the machine. Read when torch is imported.
os.environ.setdefault("GOMP_SPINCOUNT", "3000")

import numpy as np
import torch
import tyro
from rich.console import Console
from torch import Tensor

from agents import report
from agents.checkpoint import Card, below, load_agent, optimizer_tensors, restore_optimizer, under
from agents.config import SELECTION_DEALS, Config, lasting
from agents.display import Progress
from agents.distributed import Group, leave
from agents.network import ActorCritic, blend, divergence, entropy, fast_bf16, find_device
from agents.opponents import Lineup, Opponents
from agents.policy import NetworkPolicy, widened
from agents.runs import Clock, RunFolder, StopSignal
from agents.session import Run, open_run, saved_config
from agents.tables import find_places, find_tables
from cucumber_env import arena
from cucumber_env.envs.vector import SelfPlay
from cucumber_env.policies import Policy, decide, make, sample
from cucumber_env.rules import MAX_SEATS


@dataclass
class Rollout:
    """The learner's decisions at one table in an update and what came of them, in lock-step order.

    Attributes:
        observation: int8 ``[N, W]``.
        hidden: int8 ``[N, H]``, the hands of the others, for the critic alone.
        mask: bool ``[N, A]``, legal actions.
        action: int64 ``[N]``.
        log_probabilities: float32 ``[N, A]``, of all actions when the action was drawn.
        steps: For each lock-step, the slice of the decisions made in it, their games and seats, and the
            rewards ``[games, seats]`` that followed.
        lineup: Who sat where.
        turns: Turns played, those of opponents and forced ones included.
    """

    observation: np.ndarray
    hidden: np.ndarray
    mask: np.ndarray
    action: np.ndarray
    log_probabilities: np.ndarray
    steps: list[tuple[slice, np.ndarray, np.ndarray, np.ndarray]]
    lineup: Lineup
    turns: int

    def returns(self) -> np.ndarray:
        """What every seat was paid in every game, float32 ``[games, seats]``."""
        return np.asarray(sum(rewards for *_, rewards in self.steps))


def rollout(
    network: ActorCritic, table: SelfPlay, lineup: Lineup, *, seed: int, games: np.ndarray, episode: int, clock: Clock
) -> Rollout:
    """Play one whole episode of every game of `table`, with the players of `lineup` at its seats.

    Args:
        games: int64 ``[num_games]``, the numbers that name the games under the seed.
        episode: Which episode of each: the same call gives the same games.
    """
    at = table.reset(seed=seed, games=games, episodes=episode)
    rows = np.arange(table.num_games)
    turns = -table.turns_played
    kept: dict[str, list[np.ndarray]] = defaultdict(list)
    steps = []
    decisions = 0
    while len(rows):
        actions = at.mask[rows].argmax(axis=1)
        free = np.flatnonzero(at.mask[rows].sum(axis=1) > 1)  # the first turn of an episode may be forced
        player = lineup.seats[rows[free], at.turn[rows[free]]]
        own = free[player == 0]
        asked, seats = rows[own], at.turn[rows[own]].astype(np.int64)
        with clock("inference"):
            if len(own):
                for name, column in choose(network, table, asked).items():
                    kept[name].append(column)
                actions[own] = kept["action"][-1]
                kept["hidden"].append(table.hidden(asked) if network.extra else np.zeros((len(asked), 0), np.int8))
            for number, opponent in enumerate(lineup.players[1:], 1):
                if len(theirs := free[player == number]):
                    actions[theirs] = answer(opponent, table, rows[theirs])
        table.step(actions, rows=rows)
        made = slice(decisions, decisions := decisions + len(asked))
        steps.append((made, asked, seats, at.rewards.copy()))
        rows = rows[at.done[rows] == 0]
    width, actions_, extra = network.width, network.actions, network.extra
    nothing = {
        "observation": np.zeros((0, width), np.int8),
        "hidden": np.zeros((0, extra), np.int8),
        "mask": np.zeros((0, actions_), bool),
        "action": np.zeros(0, np.int64),
        "log_probabilities": np.zeros((0, actions_), np.float32),
    }
    columns = {name: np.concatenate([empty, *kept[name]]) for name, empty in nothing.items()}
    return Rollout(**columns, steps=steps, lineup=lineup, turns=turns + table.turns_played)


@torch.no_grad()
def choose(network: ActorCritic, table: SelfPlay, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Actions of `network` for the seats to move in games `rows`, with what they were drawn from."""
    observation = table.buffers.observation[rows]
    mask = widened(table.buffers.mask[rows], network.actions)
    device = next(network.parameters()).device
    logs = network.log_probabilities(torch.from_numpy(observation).to(device), torch.from_numpy(mask).to(device))
    probabilities = logs.exp().cpu().numpy()
    if not np.isfinite(probabilities).all():
        bad = int((~np.isfinite(probabilities)).any(axis=1).sum())
        raise FloatingPointError(
            f"while playing, the network's probabilities are not finite in {bad} of {len(rows)} decisions; "
            f"weights that are not finite: {not_finite(network)}"
        )
    return {
        "observation": observation,
        "mask": mask,
        "action": sample(probabilities, table.draws(rows)),
        "log_probabilities": logs.cpu().numpy(),
    }


def answer(opponent: Any, table: SelfPlay, rows: np.ndarray) -> np.ndarray:
    """Actions of a frozen network, or of a policy, for the seats to move in games `rows`."""
    if isinstance(opponent, ActorCritic):
        return choose(opponent, table, rows)["action"]
    return decide(opponent, table.turns(rows))


def advantages(
    played: Rollout, values: np.ndarray, *, scale: float, gae_lambda: float
) -> tuple[np.ndarray, np.ndarray]:
    """Advantages and value targets of all decisions, float32 ``[N]`` each, in units of `scale` points.

    Each seat's decisions form a chain of their own: whatever it is paid between two of them, on
    whosever move, belongs to the earlier one. γ = 1; the episode's end is worth 0.
    """
    games, players = played.steps[0][3].shape
    since = np.zeros((games, players), np.float32)  # paid since the decision that is being walked back to
    next_value = np.zeros_like(since)
    next_advantage = np.zeros_like(since)
    advantage = np.zeros_like(values)
    for made, rows, seats, rewards in reversed(played.steps):
        since += rewards / scale
        delta = since[rows, seats] + next_value[rows, seats] - values[made]
        advantage[made] = delta + gae_lambda * next_advantage[rows, seats]
        since[rows, seats] = 0.0
        next_value[rows, seats] = values[made]
        next_advantage[rows, seats] = advantage[made]
    return advantage, advantage + values


def losses(network: ActorCritic, batch: dict[str, Tensor], config: Config, pull: float) -> tuple[Tensor, Tensor]:
    """The loss of a minibatch, and ``[5]`` numbers to watch, named by `WATCHED`.

    PPO's clipped objective (Schulman et al. 2017), squared value error, and the two divergences of magnetic mirror
    descent (Sokota et al. 2023): `pull` times that from the magnet and `reverse_kl` times that from the policy that
    played. Without clipping, its minimum over policies is, with ``η = 1 / reverse_kl``,
    ``π ∝ (π_played · magnet^(pull·η) · exp(η·A))^(1/(1 + pull·η))``.
    """
    mask, played, advantage = batch["mask"], batch["log_probabilities"], batch["advantage"]
    logs, values = network(batch["observation"], batch["hidden"], mask)
    log_ratio = (logs - played).gather(1, batch["action"][:, None]).squeeze(1)
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - config.clip, 1 + config.clip)
    policy_loss = -torch.min(advantage * ratio, advantage * clipped).mean()
    value_loss = (values - batch["target"]).square().mean()
    loss = policy_loss + config.value_weight * value_loss + pull * divergence(logs, batch["magnet"], mask).mean()
    if config.reverse_kl:
        loss = loss + config.reverse_kl * divergence(logs, played, mask).mean()
    with torch.no_grad():
        approx_kl = ((ratio - 1) - log_ratio).mean()
        clipfrac = ((ratio - 1).abs() > config.clip).float().mean()
        watched = torch.stack([policy_loss, value_loss, entropy(logs, mask).mean(), approx_kl, clipfrac])
    return loss, watched


def not_finite(network: ActorCritic) -> str:
    """Names of the weights that are not finite."""
    return ", ".join(name for name, weight in network.named_parameters() if not weight.isfinite().all()) or "none"


WATCHED = ("policy_loss", "value_loss", "entropy", "approx_kl", "clipfrac")


ORDER = 1 << 21
"""Beside numbers of tables and the choice of opponents, the purpose of drawing the order of minibatches."""


def minibatches(size: int, parts: int, order: np.random.Generator) -> Iterator[Tensor]:
    """A random division of `size` decisions into nearly equal parts."""
    yield from torch.from_numpy(order.permutation(size)).tensor_split(parts)


class Trainer:
    """A run's network, optimiser and counters, and the phases of an update."""

    def __init__(self, config: Config, group: Group | None = None) -> None:
        config.check()
        torch.manual_seed(config.seed % (1 << 63))
        torch.set_num_threads(config.threads)
        self.config = config
        self.group = group or Group(find_device(config.device))
        self.device = self.group.device
        tables, self.impossible = find_tables(config.rules, config.players)
        self.places = find_places(
            tables, games=config.games, episode=config.episode, rank=self.group.rank, processes=self.group.size
        )
        self.network = self.new_network()
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=config.learning_rate, eps=1e-5)
        self.average = copy.deepcopy(self.network) if config.average else None
        self.snapshot = copy.deepcopy(self.network) if config.magnet == "snapshot" else None
        share, names = (config.pool_share, config.rivals) if config.against is None else (1.0, (config.against,))
        self.opponents = Opponents(pool=config.pool, share=share, rivals=tuple(map(self.rival, names)))
        report.load_specialists(config.specialists, self.places, config.episode)  # now rather than when they are needed
        self.losses = torch.compile(losses, dynamic=True) if config.compile else losses
        self.clock = Clock()
        self.updates = self.turns = self.decisions = 0

    def new_network(self) -> ActorCritic:
        """The network at the start of the run."""
        config = self.config
        face = self.places[0].face
        actions = max(place.table.rules.num_actions for place in self.places)
        extra = face.hidden(np.arange(0)).shape[1] if config.critic == "perfect" else 0
        network = ActorCritic(face.layout.size, actions, config.hidden, extra, config.trunk)
        if config.start is not None:
            try:
                saved, card = load_agent(config.start)
            except (ValueError, OSError) as error:
                raise ValueError(f"start={config.start}: {error}") from error
            try:
                network.load_state_dict(saved.state_dict())
            except RuntimeError:
                raise ValueError(
                    f"start={config.start}: its network (hidden {card.hidden}, trunk {card.trunk}, {card.width} "
                    f"numbers, {card.extra} more for the critic) has another shape than this run's"
                ) from None
        network.bf16 = config.precision == "bf16" or (config.precision == "auto" and fast_bf16(self.device))
        return network.to(self.device)

    def rival(self, name: str) -> Policy:
        """An opponent by name, which has answered a turn at each table."""
        policy = make(name)
        for place in self.places:
            place.face.reset()
            try:
                policy.act(place.face.turns(np.arange(1)))
            except ValueError as error:
                raise ValueError(f"{name} cannot play at every table of this run: {error}") from error
        return policy

    @property
    def agent(self) -> ActorCritic:
        """The network that is saved and measured: the moving average, if there is one."""
        return self.network if self.average is None else self.average

    def advance(self) -> dict[str, float]:
        """One update: play, estimate advantages, learn. Returns metrics by their usual names."""
        config = self.config
        rate = config.faded("learning_rate", self.updates)
        for settings in self.optimizer.param_groups:
            settings["lr"] = rate
        if config.pool != "none" and self.updates * config.pool_size % config.updates < config.pool_size:
            self.opponents.remember(self.agent)
        if self.snapshot is not None and self.updates % config.magnet_every == 0:
            self.snapshot.load_state_dict(self.network.state_dict())
        with self.clock("games"):
            played = self.play()
        with self.clock("learning"):
            batch, metrics = self.prepare(played)
            metrics |= self.learn(batch)
        if self.average is not None:
            blend(self.average, self.network, config.average)
        self.updates += 1
        turns, decisions = self.group.total(sum(part.turns for part in played), len(batch["action"]))
        self.turns += int(turns)
        self.decisions += int(decisions)
        return {**metrics, "charts/learning_rate": rate}

    def play(self) -> list[Rollout]:
        """One episode of every game at every table."""
        config, opponents = self.config, self.opponents
        met = opponents.meet(seed=config.seed, update=self.updates)
        played = []
        for number, place in enumerate(self.places):
            draw = np.random.default_rng([config.seed, self.updates, number])
            lineup = opponents.lineup(self.network, met, place.games, place.table.players, draw).of(place.share)
            played.append(
                rollout(
                    self.network,
                    place.face,
                    lineup,
                    seed=config.seed,
                    games=place.numbers,
                    episode=self.updates,
                    clock=self.clock,
                )
            )
        if met:
            scores = sum(part.lineup.scores(part.returns()) for part in played)
            opponents.record(met, self.group.sum(torch.from_numpy(scores).to(self.device)).cpu().numpy())
        return played

    def prepare(self, played: list[Rollout]) -> tuple[dict[str, Tensor], dict[str, float]]:
        """The batch that `learn` takes, each column ``[N, …]``, and how well values foretell returns.

        Advantages are normalised at each table, over all processes, so that every table counts alike.
        """
        names = ("observation", "hidden", "mask", "action", "log_probabilities")
        columns = {
            name: torch.from_numpy(np.concatenate([getattr(part, name) for part in played])).to(self.device)
            for name in names
        }
        values = self.look(columns)
        estimates, spread, error, start = [], 0.0, 0.0, 0
        for part, place in zip(played, self.places, strict=True):
            own = values[start : (start := start + len(part.action))]
            advantage, target = advantages(part, own, scale=place.scale, gae_lambda=self.config.gae_lambda)
            mean, deviation = self.moments(advantage)
            estimates.append(((advantage - mean) / (deviation + 1e-8), target))
            spread += self.moments(target)[1] ** 2
            error += self.moments(target - own)[1] ** 2
        columns["advantage"] = torch.from_numpy(np.concatenate([part for part, _ in estimates])).to(self.device)
        columns["target"] = torch.from_numpy(np.concatenate([part for _, part in estimates])).to(self.device)
        return columns, {"losses/explained_variance": 1 - error / max(spread, 1e-12)}

    @torch.no_grad()
    def look(self, columns: dict[str, Tensor]) -> np.ndarray:
        """Values of all decisions, float32 ``[N]``; adds to `columns` the magnet's log-probabilities."""
        magnet = {"uniform": None, "average": self.average, "snapshot": self.snapshot}[self.config.magnet]
        values, logs = [], []
        for rows in torch.arange(len(columns["action"])).split(self.config.minibatch):
            observation, hidden, mask = (columns[name][rows] for name in ("observation", "hidden", "mask"))
            values.append(self.network.values(observation, hidden))
            if magnet is None:
                logs.append(-mask.sum(dim=1, keepdim=True).log().expand_as(mask))
            else:
                logs.append(magnet.log_probabilities(observation, mask))
        columns["magnet"] = torch.cat(logs)
        return torch.cat(values).cpu().numpy()

    def moments(self, numbers: np.ndarray) -> tuple[float, float]:
        """Mean and standard deviation over all processes."""
        wide = numbers.astype(np.float64)
        count, total = self.group.total(len(wide), wide.sum())
        mean = total / max(count, 1)
        (squares,) = self.group.total(np.square(wide - mean).sum())
        return mean, (squares / max(count, 1)) ** 0.5

    def learn(self, batch: dict[str, Tensor]) -> dict[str, float]:
        """Some epochs of gradient steps on a batch; returns the means of the usual metrics."""
        config, group = self.config, self.group
        if config.advantage_filter:
            kept = int(len(batch["action"]) * (1 - config.advantage_filter))
            rows = batch["advantage"].abs().topk(kept, sorted=False).indices.sort().values
            batch = {name: column[rows] for name, column in batch.items()}
        size = len(batch["action"])
        (total,) = group.total(size)
        parts = min(max(1, -(-int(total) // config.minibatch)), group.least(size))
        if not parts:
            raise ValueError(f"{config.games} episodes with hardly a decision: there is nothing to learn at this table")
        pull = config.faded("entropy", self.updates)
        order = np.random.default_rng([config.seed, self.updates, ORDER + group.rank])
        watched = torch.zeros(len(WATCHED), device=self.device)
        for _ in range(config.epochs):
            for rows in minibatches(size, parts, order):
                part = {name: column[rows] for name, column in batch.items()}
                loss, seen = self.losses(self.network, part, config, pull)
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                with self.clock("communication"):
                    loss = group.average_gradients(self.network.parameters(), loss, len(rows))
                norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), config.max_grad_norm)
                if not torch.isfinite(loss + norm):
                    raise FloatingPointError(self.failure(part, loss.item(), norm.item()))
                self.optimizer.step()
                watched += seen * len(rows)
        if (broken := not_finite(self.network)) != "none":
            raise FloatingPointError(f"update {self.updates + 1}: weights that are not finite after it: {broken}")
        means = (group.sum(watched) / (config.epochs * total)).tolist()
        return {f"losses/{name}": mean for name, mean in zip(WATCHED, means, strict=True)}

    def failure(self, batch: dict[str, Tensor], loss: float, norm: float) -> str:
        """What to say of a minibatch whose loss or gradient is not finite."""
        columns = {name: batch[name].float() for name in ("advantage", "target", "magnet", "log_probabilities")}
        described = ", ".join(
            f"{name} {column.min():.4g} to {column.max():.4g} ({int((~column.isfinite()).sum())} not finite)"
            for name, column in columns.items()
        )
        return (
            f"update {self.updates + 1}: the loss is {loss:.4g}, its gradient {norm:.4g}, on a minibatch of "
            f"{len(batch['action'])} decisions of process {self.group.rank}: {described}; "
            f"weights that are not finite: {not_finite(self.network)}"
        )

    def state(self) -> dict[str, Tensor]:
        """All tensors that a resumed run goes on from."""
        tensors = under("network", self.network.state_dict()) | under("optimizer", optimizer_tensors(self.optimizer))
        for name, network in (("average", self.average), ("snapshot", self.snapshot)):
            tensors |= under(name, network.state_dict()) if network else {}
        return tensors | under("pool", self.opponents.tensors())

    def counters(self) -> dict[str, Any]:
        """What a resumed run needs beside tensors."""
        return {
            "updates": self.updates,
            "turns": self.turns,
            "decisions": self.decisions,
            "pool": self.opponents.counters(),
            "bf16": self.network.bf16,
            "settings": lasting(self.config),
            "seconds": dict(self.clock.seconds),
        }

    def restore(self, tensors: dict[str, Tensor], counters: dict[str, Any]) -> None:
        """Go on from `state` and `counters`.

        Raises:
            ValueError, KeyError, RuntimeError, TypeError: they are not of this run.
        """
        theirs, ours = counters["settings"], lasting(self.config)
        if other := [f"{name} is {theirs.get(name)!r}" for name in ours if theirs.get(name) != ours[name]]:
            raise ValueError(f"its {', '.join(other)}")
        for one in filter(None, (self.network, self.average, self.snapshot)):
            one.bf16 = bool(counters["bf16"])
        self.network.load_state_dict(below("network", tensors))
        restore_optimizer(self.optimizer, below("optimizer", tensors))
        for name, network in (("average", self.average), ("snapshot", self.snapshot)):
            if network is not None:
                network.load_state_dict(below(name, tensors))
        self.opponents.restore(below("pool", tensors), counters["pool"], like=self.network)
        self.updates, self.turns, self.decisions = (int(counters[name]) for name in ("updates", "turns", "decisions"))
        self.clock.seconds.update(counters["seconds"])

    def policy(self) -> NetworkPolicy:
        """The current agent."""
        return NetworkPolicy(self.agent, self.card(), name="trained")

    def card(self) -> Card:
        """What the current agent is, for its checkpoint."""
        network, config = self.network, self.config
        return Card(
            tables=tuple(place.table for place in self.places),
            episode=config.episode,
            seats=MAX_SEATS if len(self.places) > 1 else None,
            width=network.width,
            actions=network.actions,
            hidden=network.hidden,
            extra=network.extra,
            trunk=network.trunk,
            training={
                "updates": self.updates,
                "turns": self.turns,
                "decisions": self.decisions,
                "seed": config.seed,
                "against": config.against,
            },
        )

    def measure(self) -> dict[str, float]:
        """Strength among `highest`, or among the policy that training is against: means over all tables."""
        config = self.config
        with self.clock("evaluation"):
            rows = [
                arena.compare_with(
                    self.policy(),
                    [config.against or "highest"],
                    rules=place.table.rules,
                    num_players=place.table.players,
                    episode=config.episode,
                    deals=max(2, config.evaluate_deals // len(self.places)),
                    seed=SELECTION_DEALS,
                )[0]
                for place in self.places
            ]
        return {
            f"eval/{arena.SCORES[config.episode]}": float(np.mean([row.score.mean for row in rows])),
            "eval/half_width": float(np.sqrt(np.sum([row.score.half_width**2 for row in rows])) / len(rows)),
            "eval/gain": float(np.mean([row.gain for row in rows])),
        }


def main(arguments: list[str] | None = None) -> int:
    """Train as the command line says; returns the exit status."""
    console = Console(stderr=True, quiet=os.environ.get("RANK", "0") != "0")
    try:
        config, given = parsed(arguments)
        run = open_run(config, Trainer, given)
    except (*FAILURES, TypeError) as error:
        report.failure(error)
        leave()
        return 2
    except KeyboardInterrupt:
        return 130
    trainer, folder = run.trainer, run.folder.path
    report.opening(folder, trainer.places, trainer.impossible, console)
    stop = StopSignal()
    status = 0
    try:
        field = trainer.config.against or "highest"
        with Progress(trainer.config.updates, done=trainer.updates, field=field, console=console) as progress:
            run.train(progress, stop)
        stop.at_once()
        if trainer.group.leads and not stop.asked:
            finish(run)
    except FAILURES as error:
        report.failure(error)
        status = 1
    except KeyboardInterrupt:
        stop.asked = True
    finally:
        run.folder.close()
        leave()
        stop.restore()
    report.going_on(folder, trainer.places, trainer.config.episode, console)
    return status or (130 if stop.asked else 0)


def parsed(arguments: list[str] | None) -> tuple[Config, dict[str, Any] | None]:
    """The settings on the command line; beside ``--resume`` also which were given, be they at their defaults or not."""
    config = tyro.cli(Config, args=arguments, description=__doc__)
    if config.resume is None:
        return config, None
    saved = replace(saved_config(RunFolder(config.resume)), out=None)
    try:
        saved.check()
    except (TypeError, ValueError) as error:
        raise ValueError(f"{config.resume} cannot be resumed: {error}") from error
    again = tyro.cli(Config, args=arguments, default=saved, description=__doc__)
    given = {one.name: getattr(again, one.name) for one in fields(Config) if one.name != "resume"}
    return config, {name: value for name, value in given.items() if value != getattr(saved, name)}


FAILURES = (ValueError, RuntimeError, FloatingPointError, MemoryError, OSError)
"""What can go wrong without a mistake in the program."""


def finish(run: Run) -> None:
    """The final tables, and where the time went."""
    trainer, config = run.trainer, run.trainer.config
    console = Console()
    with trainer.clock("evaluation"):
        rows = report.measure(
            trainer.policy(),
            trainer.places,
            episode=config.episode,
            against=config.against,
            specialists=config.specialists,
            deals=config.final_deals,
            seed=config.final_seed,
            console=console,
        )
    report.closing(run.folder.path, rows, trainer.counters(), trainer.clock, config, console)


if __name__ == "__main__":
    sys.exit(main())
