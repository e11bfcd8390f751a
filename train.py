"""Train an agent by self-play with PPO, and measure it against every scripted opponent.

    uv run train.py                          # 4 players, Cucumber, about two minutes on two cores
    uv run train.py --players 2 --rules three_card --seed 7
    uv run train.py --resume runs/cucumber-4p-seed1

All seats share one network. Each update plays whole episodes, then learns from them. A seat's next
decision may be one turn away or many, and its reward arrives on somebody else's move, so
advantages follow each seat's own chain of decisions, without discount. Turns with one legal action
are played by the kernel and never reach the network.

Nothing random has a state of its own: deals and action samples are hashes of (seed, game, update),
and so is the order of minibatches. A checkpoint is the weights, the optimiser and the number of
updates done, and a resumed run goes on as if it had never stopped.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

# Threads that spin for long while they wait for each other lose most of their speed as soon as anything else runs
# on the machine. Read when torch is imported.
os.environ.setdefault("GOMP_SPINCOUNT", "3000")

import numpy as np
import torch
import tyro
from rich.console import Console
from torch import Tensor
from torch.utils.tensorboard import SummaryWriter

from agents.checkpoint import Card, load_training, save_agent
from agents.display import Progress, show
from agents.network import ActorCritic, entropy, fast_bf16, find_device
from agents.policy import NetworkPolicy
from agents.runs import StopSignal, describe, forget_after, free_folder
from cucumber_env import arena
from cucumber_env.baselines import BASELINES
from cucumber_env.envs.vector import SelfPlay
from cucumber_env.policies import sample
from cucumber_env.rules import POINTS, Rules

CONFIG = "config.json"

SELECTION_DEALS, FINAL_DEALS = 1, 2
"""Seeds of the evaluation deals on which the best agent is chosen, and of those on which it is measured."""


@dataclass
class Config:
    """Settings of a run; every one is a command-line argument."""

    rules: str = "cucumber"
    """Rules: a preset, with changes after commas, such as `cucumber,hand_size=3`."""
    players: int = 4
    """Seats at the table."""
    episode: Literal["round", "match"] = "round"
    """What an episode is."""
    updates: int = 224
    """Updates of the run; learning rate and entropy bonus fall to zero over them."""
    games: int = 4096
    """Episodes played for each update."""
    seed: int = 1
    """Names all random numbers of the run."""
    hidden: tuple[int, ...] = (128, 128)
    """Widths of the hidden layers of policy and value networks."""
    critic: Literal["perfect", "own"] = "perfect"
    """What the critic sees: all hands (it is needed in training alone), or what the seat itself sees."""
    learning_rate: float = 2e-3
    """Adam's step size at the start."""
    entropy: float = 0.003
    """Weight of the entropy bonus at the start."""
    epochs: int = 2
    """Passes over the data of an update."""
    minibatch: int = 4096
    """Decisions in a gradient step."""
    clip: float = 0.2
    """PPO's limit on the change of a probability ratio."""
    gae_lambda: float = 0.6
    """Weight of later advantages (generalised advantage estimation)."""
    max_grad_norm: float = 0.5
    """Limit on the norm of the gradient."""
    evaluate_every: int = 28
    """Updates between evaluations at a table of `highest`."""
    evaluate_deals: int = 2048
    """Duplicate deals of such an evaluation."""
    final_deals: int = 40_000
    """Duplicate deals behind each line of the final table."""
    save_every: int = 28
    """Updates between checkpoints."""
    threads: int = field(default_factory=lambda: os.cpu_count() or 1)
    """CPU threads of the network arithmetic."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """Of the network arithmetic; `auto` takes bf16 where the processor multiplies it fast."""
    device: str = "auto"
    """Where the network lives: `cpu`, `cuda`, or `auto` for a GPU if there is one."""
    out: Path | None = None
    """Folder of the run; by default a new one under runs/."""
    resume: Annotated[Path | None, tyro.conf.arg(metavar="RUN")] = None
    """Go on with the run in this folder, with its own settings; all other arguments are ignored."""

    def check(self) -> None:
        """Refuse values out of range, by name."""
        Rules.of(self.rules).check_players(self.players, name="players")
        for name in ("updates", "games", "epochs", "minibatch", "evaluate_every", "save_every", "threads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} is out of range; allowed: 1 and more")
        for name in ("evaluate_deals", "final_deals"):
            if getattr(self, name) < 2:
                raise ValueError(f"{name}={getattr(self, name)} is out of range; allowed: 2 and more (for an interval)")
        for name in ("learning_rate", "clip", "max_grad_norm"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ValueError(f"{name}={getattr(self, name)} is out of range; allowed: above 0")
        if not 0 <= self.entropy < float("inf"):
            raise ValueError(f"entropy={self.entropy} is out of range; allowed: 0 and more")
        if not 0 <= self.gae_lambda <= 1:
            raise ValueError(f"gae_lambda={self.gae_lambda} is out of range; allowed: 0 to 1")
        if self.seed < 0:
            raise ValueError(f"seed={self.seed} is out of range; allowed: any integer ≥ 0")
        if not self.hidden or min(self.hidden) < 1:
            raise ValueError(f"hidden={self.hidden} is out of range; allowed: one or more widths of 1 and more")


@dataclass
class Rollout:
    """Decisions of an update and what came of them, in lock-step order.

    Attributes:
        observation: int8 ``[N, W]``.
        hidden: int8 ``[N, H]``, the hands of the others, for the critic alone.
        mask: bool ``[N, A]``, legal actions.
        action: int64 ``[N]``.
        log_probability: float32 ``[N]`` of the action, when it was taken.
        steps: For each lock-step, the slice of the decisions made in it, their games and seats, and the
            rewards ``[games, seats]`` that followed.
        turns: Turns played, forced ones included.
    """

    observation: np.ndarray
    hidden: np.ndarray
    mask: np.ndarray
    action: np.ndarray
    log_probability: np.ndarray
    steps: list[tuple[slice, np.ndarray, np.ndarray, np.ndarray]]
    turns: int


@torch.no_grad()
def rollout(network: ActorCritic, table: SelfPlay, *, seed: int, update: int, device: torch.device) -> Rollout:
    """Play one whole episode of every game of `table`, all seats by `network`.

    Episode `update` of every game: the same call gives the same games.
    """
    at = table.reset(seed=seed, episodes=update)
    rows = np.arange(table.num_games)
    turns = -table.turns_played
    kept: dict[str, list[np.ndarray]] = defaultdict(list)
    steps = []
    decisions = 0
    while len(rows):
        mask = at.mask[rows] > 0
        actions = mask.argmax(axis=1)
        free = mask.sum(axis=1) > 1  # the first turn of an episode may be forced, and is no decision
        asked = rows[free]
        seats = at.turn[asked].astype(np.int64)
        if len(asked):
            observation = at.observation[asked]
            logs = network.log_probabilities(
                torch.from_numpy(observation).to(device), torch.from_numpy(mask[free]).to(device)
            ).cpu()
            actions[free] = sample(logs.exp().numpy(), table.draws(asked))
            kept["observation"].append(observation)
            kept["hidden"].append(table.hidden(asked))
            kept["mask"].append(mask[free])
            kept["action"].append(actions[free])
            kept["log_probability"].append(logs.numpy()[np.arange(len(asked)), actions[free]])
        table.step(actions, rows=rows)
        made = slice(decisions, decisions := decisions + len(asked))
        steps.append((made, asked, seats, at.rewards.copy()))
        rows = rows[at.done[rows] == 0]
    if not decisions:
        raise ValueError(
            f"{table.num_games} episodes without a single decision: there is nothing to learn at this table"
        )
    columns = {name: np.concatenate(parts) for name, parts in kept.items()}
    return Rollout(**columns, steps=steps, turns=turns + table.turns_played)


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


def update(
    network: ActorCritic,
    optimizer: torch.optim.Optimizer,
    batch: dict[str, Tensor],
    config: Config,
    *,
    entropy_weight: float,
    order: np.random.Generator,
) -> dict[str, float]:
    """Some epochs of PPO on a batch of decisions; returns the mean of the usual metrics.

    Args:
        batch: observation, hidden, mask, action, log_probability, advantage, target, each ``[N, …]``.
        order: Draws the order of the minibatches.
    """
    metrics: dict[str, list[float]] = defaultdict(list)
    size = len(batch["action"])
    for _ in range(config.epochs):
        for rows in minibatches(size, config.minibatch, order):
            part = {name: column[rows] for name, column in batch.items()}
            loss, seen = losses(network, part, clip=config.clip, entropy_weight=entropy_weight)
            if not torch.isfinite(loss):
                raise FloatingPointError(f"the loss is {loss.item()}: {seen}")
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), config.max_grad_norm)
            optimizer.step()
            for name, value in seen.items():
                metrics[name].append(value)
    return {f"losses/{name}": float(np.mean(values)) for name, values in metrics.items()}


def minibatches(size: int, minibatch: int, order: np.random.Generator | None = None) -> Iterator[Tensor]:
    """A division of `size` decisions into nearly equal parts of at most `minibatch`; random, if given an `order`."""
    rows = torch.arange(size) if order is None else torch.from_numpy(order.permutation(size))
    yield from rows.tensor_split(max(1, -(-size // minibatch)))


def losses(
    network: ActorCritic, part: dict[str, Tensor], *, clip: float, entropy_weight: float
) -> tuple[Tensor, dict[str, float]]:
    """PPO's clipped objective (Schulman et al. 2017), squared value error and entropy bonus of a minibatch."""
    logs = network.log_probabilities(part["observation"], part["mask"])
    chosen = logs.gather(1, part["action"][:, None]).squeeze(1)
    log_ratio = chosen - part["log_probability"]
    ratio = log_ratio.exp()
    advantage = part["advantage"]
    policy_loss = -torch.min(advantage * ratio, advantage * ratio.clamp(1 - clip, 1 + clip)).mean()
    value_loss = 0.5 * (network.values(critic_sees(network, part)) - part["target"]).square().mean()
    mean_entropy = entropy(logs, part["mask"]).mean()
    loss = policy_loss + value_loss - entropy_weight * mean_entropy
    with torch.no_grad():
        seen = {
            "policy_loss": policy_loss.item(),
            "value_loss": value_loss.item(),
            "entropy": mean_entropy.item(),
            "approx_kl": ((ratio - 1) - log_ratio).mean().item(),
            "clipfrac": ((ratio - 1).abs() > clip).float().mean().item(),
        }
    return loss, seen


def critic_sees(network: ActorCritic, part: dict[str, Tensor]) -> Tensor:
    """What the critic reads of some decisions, int8 ``[B, critic_width]``: the observation, and maybe all hands."""
    return torch.cat([part["observation"], part["hidden"]], dim=1)[:, : network.critic_width]


class Trainer:
    """A run: its network, optimiser and count of updates, and the phases of an update."""

    def __init__(self, config: Config) -> None:
        config.check()
        torch.manual_seed(config.seed % (1 << 63))
        torch.set_num_threads(config.threads)
        self.config = config
        self.device = find_device(config.device)
        self.rules = Rules.of(config.rules)
        self.table = SelfPlay(
            self.rules,
            num_games=config.games,
            num_players=config.players,
            episode=config.episode,
            autoreset=False,
        )
        width = self.table.layout.size
        critic_width = width + self.table.hidden().shape[1] if config.critic == "perfect" else width
        self.network = ActorCritic(width, self.rules.num_actions, config.hidden, critic_width).to(self.device)
        self.network.bf16 = config.precision == "bf16" or (config.precision == "auto" and fast_bf16(self.device))
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=config.learning_rate, eps=1e-5)
        self.updates = 0
        self.turns = 0
        self.decisions = 0
        self.seconds: dict[str, float] = defaultdict(float)

    @property
    def scale(self) -> float:
        """Points that count as 1 in returns: the highest penalty, or 1 for outcomes."""
        return float(max(POINTS[self.rules.points].values())) if self.config.episode == "round" else 1.0

    def advance(self) -> dict[str, float]:
        """One update: play, estimate advantages, learn. Returns metrics by their usual names."""
        config = self.config
        left = 1 - self.updates / config.updates
        for group in self.optimizer.param_groups:
            group["lr"] = config.learning_rate * left
        with self.clock("games and inference"):
            played = rollout(self.network, self.table, seed=config.seed, update=self.updates, device=self.device)
        with self.clock("learning"):
            batch, explained = self.prepare(played)
            metrics = update(
                self.network,
                self.optimizer,
                batch,
                config,
                entropy_weight=config.entropy * left,
                order=np.random.default_rng([config.seed, self.updates]),
            )
        self.updates += 1
        self.turns += played.turns
        self.decisions += len(played.action)
        metrics["losses/explained_variance"] = explained
        metrics["charts/learning_rate"] = config.learning_rate * left
        return metrics

    def prepare(self, played: Rollout) -> tuple[dict[str, Tensor], float]:
        """The batch that `update` learns from, and the share of the targets' variance that values explain."""
        columns = {
            name: torch.from_numpy(getattr(played, name)).to(self.device)
            for name in ("observation", "hidden", "mask", "action", "log_probability")
        }
        with torch.no_grad():
            parts = minibatches(len(played.action), self.config.minibatch)
            seen = (
                critic_sees(self.network, {name: column[rows] for name, column in columns.items()}) for rows in parts
            )
            values = torch.cat([self.network.values(part) for part in seen]).cpu().numpy()
        advantage, target = advantages(played, values, scale=self.scale, gae_lambda=self.config.gae_lambda)
        normal = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        columns["advantage"] = torch.from_numpy(normal).to(self.device)
        columns["target"] = torch.from_numpy(target).to(self.device)
        return columns, float(1 - np.var(target - values) / max(float(np.var(target)), 1e-12))

    @contextlib.contextmanager
    def clock(self, phase: str) -> Iterator[None]:
        """A context that adds the time spent in it to `phase`."""
        start = time.perf_counter()
        yield
        self.seconds[phase] += time.perf_counter() - start

    def counters(self) -> dict[str, Any]:
        """What a resumed run needs beside weights and optimiser."""
        return {
            "updates": self.updates,
            "turns": self.turns,
            "decisions": self.decisions,
            "seconds": dict(self.seconds),
        }

    def restore(self, folder: Path) -> None:
        """Go on from the checkpoint in `folder`."""
        saved = load_training(folder, self.network, self.optimizer)
        self.updates, self.turns, self.decisions = saved["updates"], saved["turns"], saved["decisions"]
        self.seconds.update(saved["seconds"])

    def policy(self) -> NetworkPolicy:
        """The current network as a policy."""
        return NetworkPolicy(self.network, self.card(), name="trained")

    def card(self, **facts: float) -> Card:
        """What the current network is, for its checkpoint; `facts` are remembered with it."""
        return Card(
            rules=self.rules.to_dict(),
            players=self.config.players,
            episode=self.config.episode,
            seats=None,
            width=self.network.width,
            actions=self.network.actions,
            hidden=self.network.hidden,
            critic_width=self.network.critic_width,
            training={
                "updates": self.updates,
                "turns": self.turns,
                "decisions": self.decisions,
                "seed": self.config.seed,
                **facts,
            },
        )

    def evaluate(self, opponents: list[str], deals: int, *, seed: int) -> list[arena.Comparison]:
        """The current network against tables of each of `opponents`, on duplicate deals."""
        with self.clock("evaluation"):
            return arena.compare_with(
                self.policy(),
                opponents,
                rules=self.rules,
                num_players=self.config.players,
                episode=self.config.episode,
                deals=deals,
                seed=seed,
            )


class Run:
    """A run's folder: ``config.json``, ``log.jsonl``, TensorBoard events, ``last/`` and ``best/``.

    ``last/`` is an agent with its optimiser beside it, to resume from. ``best/`` is the agent that did best against
    `highest` on deals of its own, which are neither trained on nor used in the final table.
    """

    def __init__(self, trainer: Trainer, folder: Path) -> None:
        self.trainer, self.folder = trainer, folder
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / CONFIG).exists():
            (folder / CONFIG).write_text(
                json.dumps(describe(trainer.config, trainer.rules), indent=2, default=str) + "\n"
            )
        best = folder / "best" / "agent.json"
        self.best = json.loads(best.read_text())["training"]["gain"] if best.exists() else -float("inf")
        forget_after(folder / "log.jsonl", trainer.updates)
        self.log = (folder / "log.jsonl").open("a", encoding="utf-8")
        self.board = SummaryWriter(str(folder))

    def train(self, progress: Progress, stop: StopSignal) -> None:
        """The updates that are left, or up to a `stop`, with evaluations and checkpoints in between."""
        trainer, config = self.trainer, self.trainer.config
        while trainer.updates < config.updates and not stop.asked:
            metrics = trainer.advance()
            last = trainer.updates == config.updates or stop.asked
            if last or trainer.updates % config.evaluate_every == 0:
                metrics |= self.measure()
            if last or trainer.updates % config.save_every == 0:
                self.save()
            metrics["charts/SPS"] = trainer.turns / sum(trainer.seconds.values())
            self.write(metrics)
            progress.show(trainer.updates, metrics)

    def measure(self) -> dict[str, float]:
        """Strength against `highest`; the best agent so far is kept."""
        trainer = self.trainer
        row = trainer.evaluate(["highest"], trainer.config.evaluate_deals, seed=SELECTION_DEALS)[0]
        if row.gain > self.best:
            self.best = row.gain
            save_agent(self.folder / "best", trainer.network, trainer.card(gain=row.gain))
        return {f"eval/{arena.SCORES[row.episode]}": row.score.mean, "eval/half_width": row.score.half_width}

    def save(self) -> None:
        """The state of the run, to resume from."""
        trainer = self.trainer
        save_agent(
            self.folder / "last",
            trainer.network,
            trainer.card(),
            optimizer=trainer.optimizer,
            counters=trainer.counters(),
        )

    def write(self, metrics: dict[str, float]) -> None:
        """One line of the log, and the same numbers for TensorBoard."""
        trainer = self.trainer
        line = {"update": trainer.updates, "turns": trainer.turns, "decisions": trainer.decisions, **metrics}
        self.log.write(json.dumps(line) + "\n")
        self.log.flush()
        for name, value in metrics.items():
            self.board.add_scalar(name, value, trainer.turns)

    def close(self) -> None:
        """Close the log files."""
        self.log.close()
        self.board.close()


def open_run(config: Config) -> Run:
    """A new run in its folder, or with ``config.resume`` the one to go on with.

    Raises:
        FileNotFoundError, FileExistsError, ValueError: there is nothing to resume, the folder is taken, or a
            setting is out of range.
    """
    if config.resume is not None:
        folder = config.resume
        if not (folder / CONFIG).is_file():
            raise FileNotFoundError(f"no run to resume in {folder}: {CONFIG} is missing")
        try:
            saved = json.loads((folder / CONFIG).read_text())["config"]
            trainer = Trainer(Config(**{**saved, "hidden": tuple(saved["hidden"]), "out": folder, "resume": None}))
            trainer.restore(folder / "last")
            return Run(trainer, folder)
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise ValueError(f"{folder} is not a run that can be resumed: {type(error).__name__}: {error}") from error
    if config.out is not None and config.out.exists() and not config.out.is_dir():
        raise FileExistsError(f"{config.out} is a file; --out takes the folder of the run")
    trainer = Trainer(config)
    if config.out is None:
        return Run(trainer, free_folder(f"{config.rules.replace(',', '-')}-{config.players}p-seed{config.seed}"))
    if (config.out / CONFIG).exists():
        raise FileExistsError(f"{config.out} holds a run already; --resume {config.out} goes on with it")
    return Run(trainer, config.out)


def report(run: Run, console: Console) -> None:
    """The final table, where the time went, and what to do with the agent."""
    trainer, config = run.trainer, run.trainer.config
    console.print(f"Measuring on {config.final_deals:,} fresh duplicate deals …", style="dim")
    rows = trainer.evaluate(list(BASELINES), config.final_deals, seed=FINAL_DEALS)
    show(arena.comparison_table(rows), console)
    total = sum(trainer.seconds.values())
    shares = ", ".join(f"{phase} {seconds / total:.0%}" for phase, seconds in trainer.seconds.items())
    learned = total - trainer.seconds["evaluation"]
    console.print(
        f"{trainer.turns:,} turns, {trainer.decisions:,} decisions in {total:.0f} s: {trainer.turns / learned:,.0f} "
        f"turns/s and {trainer.decisions / learned:,.0f} decisions/s while training ({shares})."
    )
    agent = f"checkpoint:{run.folder / 'last'}"
    where = f"--rules {config.rules} --players {config.players} --episode {config.episode}"
    console.print(f"The agent is in {run.folder / 'last'}; the best one seen on the way in {run.folder / 'best'}.")
    console.print(f"  evaluate   uv run evaluate.py arena {agent} highest careful {where}", soft_wrap=True)


def main(arguments: list[str] | None = None) -> int:
    """Train as the command line says; returns the exit status."""
    config = tyro.cli(Config, args=arguments, description=__doc__)
    console = Console(stderr=True)
    try:
        run = open_run(config)
    except (ValueError, TypeError, OSError) as error:
        console.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
        return 2
    trainer = run.trainer
    console.print(f"{run.folder}\n{trainer.rules.describe()}", style="dim", markup=False, highlight=False)
    stop = StopSignal()
    try:
        with Progress(trainer.config.updates, done=trainer.updates, console=console) as progress:
            run.train(progress, stop)
        stop.restore()
        if stop.asked:
            console.print(f"Stopped. The agent is in {run.folder / 'last'}.", soft_wrap=True)
            console.print(f"  resume     uv run train.py --resume {run.folder}", soft_wrap=True)
            return 130
        report(run, Console())
    except (ValueError, FloatingPointError, OSError) as error:
        console.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        console.print(f"Interrupted. Checkpoints are in {run.folder}.", soft_wrap=True)
        return 130
    finally:
        run.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
