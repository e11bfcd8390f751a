"""Train the network on a solution: how close to equilibrium can this representation come at all?

    python -m agents.distil three_card.npz --out runs/distilled
    python -m agents.distil three_card.npz --history

FILE is a solution as `evaluate.py solve --out FILE` writes it. The actor learns its probabilities (cross-entropy),
the critic what they are worth, at decisions drawn as they come up in play, mixed with a share of those to which the
solution plays but never its opponent. What comes out is measured exactly, sampled and greedy, and with `--out` saved
as an agent that plays as ``checkpoint:FOLDER``. With `--history` the network reads the information state, in which
nothing is forgotten, instead of the observation.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro
from rich.console import Console
from rich.progress import Progress

from agents.checkpoint import Card, save_agent
from agents.network import ActorCritic
from agents.tables import Table
from cucumber_env.exact import Tabular, exploitability
from cucumber_env.exact.decisions import Decisions, decisions
from cucumber_env.observation import Layout
from cucumber_env.policies import Policy, Turns
from cucumber_env.rules import POINTS, Rules


@dataclass
class Arguments:
    """What to learn from, and how."""

    solution: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """Solution, as `evaluate.py solve --out FILE` writes it."""
    out: Path | None = None
    """Folder for the agent; it must not exist."""
    history: bool = False
    """Read the information state instead of the observation; such a network cannot be saved as an agent."""
    hidden: tuple[int, ...] = (128, 128)
    """Widths of the hidden layers."""
    steps: int = 8000
    """Gradient steps."""
    minibatch: int = 1024
    """Decisions in a gradient step."""
    learning_rate: float = 2e-3
    """Adam's step size at the start; it falls linearly to 0."""
    floor: float = 0.5
    """Share of decisions drawn without regard to whether the solution, as the opponent, lets it come to them."""
    seed: int = 1
    """Names all random numbers."""
    threads: int = 1
    """CPU threads."""
    json: bool = False
    """Print JSON in place of text."""

    def check(self) -> None:
        """Refuse values out of range, by name.

        Raises:
            ValueError: says which.
        """
        for name in ("steps", "minibatch", "threads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} is out of range; allowed: 1 and more")
        if not self.hidden or min(self.hidden) < 1:
            raise ValueError(f"hidden={self.hidden} is out of range; allowed: one or more widths of 1 and more")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate={self.learning_rate} is out of range; allowed: above 0")
        if not 0 <= self.floor <= 1:
            raise ValueError(f"floor={self.floor} is out of range; allowed: 0 to 1")
        if self.seed < 0:
            raise ValueError(f"seed={self.seed} is out of range; allowed: any integer ≥ 0")
        if self.out is not None and self.history:
            raise ValueError(
                f"out={str(self.out)!r}: agents that are saved read observations; leave out history or out"
            )
        if self.out is not None and self.out.exists():
            raise ValueError(f"out={str(self.out)!r} exists; name a folder that does not")


@dataclass(frozen=True)
class Lessons:
    """What is learned: `D` decisions of a solution.

    Attributes:
        observation: int8 ``[D, W]``.
        mask: bool ``[D, A]``, legal actions.
        target: float32 ``[D, A]``, probabilities of the solution.
        value: float32 ``[D]``, what they are worth, in units of the highest penalty; NaN where the solution as the
            opponent never lets it come to this.
        drawn: float64 ``[D]``, rising to 1: a uniform number draws the decision that it falls below of.
    """

    observation: np.ndarray
    mask: np.ndarray
    target: np.ndarray
    value: np.ndarray
    drawn: np.ndarray

    @classmethod
    def of(cls, policy: Tabular, *, history: bool, floor: float) -> Lessons:
        """All decisions of `policy`; for `history` and `floor` see `Arguments`."""
        batches = list(decisions(policy))
        turns = [batch.turns() for batch in batches]
        chance, reach = (np.concatenate([getattr(batch, name) for batch in batches]) for name in ("chance", "reach"))
        weight = (1 - floor) * chance / chance.sum() + floor * reach / reach.sum()
        return cls(
            np.concatenate([one.observe(history=history) for one in turns]),
            np.concatenate([one.mask for one in turns]) > 0,
            np.concatenate([policy.probabilities(one) for one in turns]).astype(np.float32),
            np.concatenate([_values(batch) for batch in batches]),
            np.cumsum(weight) / weight.sum(),
        )

    def draw(self, uniform: np.ndarray) -> tuple[torch.Tensor, ...]:
        """Observations, masks, targets and values of the decisions that numbers ``[B]`` in [0, 1) draw."""
        rows = np.searchsorted(self.drawn, uniform, side="right")
        arrays = (self.observation, self.mask, self.target, self.value)
        observation, mask, target, value = (torch.from_numpy(array[rows]) for array in arrays)
        return observation, mask, target, value


def _values(batch: Decisions) -> np.ndarray:
    worth = np.where(batch.legal, batch.worth, 0.0)
    highest = max(POINTS[batch.tree.rules.points].values())
    return ((batch.sigma * worth).sum(axis=1) / highest).astype(np.float32)


def learn(
    lessons: Lessons, arguments: Arguments, progress: Callable[[int, float], object] = lambda step, loss: None
) -> tuple[ActorCritic, float]:
    """A network trained on `lessons`, and the mean KL(solution ‖ network) over the last tenth of the steps, in nats.

    `progress` is told the steps done and the KL of the last one.
    """
    with torch.random.fork_rng():
        torch.manual_seed(arguments.seed)
        network = ActorCritic(lessons.observation.shape[1], lessons.mask.shape[1], arguments.hidden)
    generator = np.random.default_rng(arguments.seed)
    optimizer = torch.optim.Adam(network.parameters(), lr=arguments.learning_rate)
    last = []
    for step in range(arguments.steps):
        optimizer.param_groups[0]["lr"] = arguments.learning_rate * (1 - step / arguments.steps)
        observation, mask, target, value = lessons.draw(generator.random(arguments.minibatch))
        logs, values = network(observation, observation[:, :0], mask)
        divergence = (torch.special.xlogy(target, target) - target * logs).sum(-1).mean()
        error = torch.where(value.isnan(), 0.0, values - value.nan_to_num()).square().mean()
        optimizer.zero_grad()
        (divergence + error).backward()
        optimizer.step()
        last.append(divergence.item())
        progress(step + 1, last[-1])
    network.eval()
    return network, float(np.mean(last[-max(1, arguments.steps // 10) :]))


class Student(Policy):
    """Plays the probabilities of a network that was trained here, or with `greedy` its likeliest action."""

    name = "distilled"

    def __init__(self, network: ActorCritic, *, history: bool, greedy: bool) -> None:
        self.network, self.history, self.greedy = network, history, greedy

    @torch.no_grad()
    def probabilities(self, turns: Turns) -> np.ndarray:
        """float32 ``[B, A]``."""
        observation = torch.from_numpy(turns.observe(history=self.history))
        logs = self.network.log_probabilities(observation, torch.from_numpy(turns.mask > 0))
        if self.greedy:
            return np.eye(logs.shape[1], dtype=np.float32)[logs.argmax(-1).numpy()]
        return np.asarray(logs.exp().numpy())


def card_of(network: ActorCritic, rules: Rules, arguments: Arguments) -> Card:
    """What the agent is, for its folder."""
    return Card(
        tables=(Table(rules, 2),),
        episode="round",
        seats=None,
        width=network.width,
        actions=network.actions,
        hidden=network.hidden,
        extra=network.extra,
        trunk=network.trunk,
        training={"distilled_from": arguments.solution.name, "steps": arguments.steps, "seed": arguments.seed},
    )


def distil(
    policy: Tabular, arguments: Arguments, progress: Callable[[int, float], object] = lambda step, loss: None
) -> tuple[ActorCritic, dict[str, Any]]:
    """Train on `policy` and measure what comes out; torch works in `arguments.threads` threads from then on.

    Returns:
        The network, and JSON-friendly facts: what it read and how wide that is, the KL that is left, NashConv in points
        of the solution and of the network sampled and greedy, CPU seconds of training.
    """
    rules = policy.tree.rules
    torch.set_num_threads(arguments.threads)
    lessons = Lessons.of(policy, history=arguments.history, floor=arguments.floor)
    started = time.process_time()
    network, divergence = learn(lessons, arguments, progress)
    seconds = time.process_time() - started
    played: dict[str, Policy] = {"solution": policy}
    played |= {name: Student(network, history=arguments.history, greedy=name == "greedy") for name in HOW}
    return network, {
        "rules": str(rules),
        "input": "history" if arguments.history else "observation",
        "width": Layout.of(rules, 2, "round", None, arguments.history).size,
        "decisions": len(lessons.mask),
        "steps": arguments.steps,
        "seed": arguments.seed,
        "kl": divergence,
        "nash_conv": {
            name: exploitability(rules, player, threads=arguments.threads).nash_conv for name, player in played.items()
        },
        "cpu_seconds": seconds,
    }


HOW = ("sampled", "greedy")
"""Ways in which a network plays."""


def main(given: Sequence[str] | None = None) -> int:
    """Distil with command-line arguments; returns the exit status: 0 done, 2 arguments that make no sense."""
    arguments = tyro.cli(Arguments, args=given, prog="agents.distil", description=(__doc__ or "").split("\n", 1)[0])
    console = Console(stderr=True)
    try:
        arguments.check()
        policy = Tabular.load(arguments.solution)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task("learning", total=arguments.steps)
            network, facts = distil(
                policy,
                arguments,
                lambda step, loss: bar.update(task, completed=step, description=f"learning: KL {loss:.4f}"),
            )
        if arguments.out is not None:
            save_agent(arguments.out, network, card_of(network, policy.tree.rules, arguments))
    except (ValueError, OSError) as error:
        print(f"agents.distil: error: {error}", file=sys.stderr)
        return 2
    print(json.dumps(facts, indent=2) if arguments.json else text(facts))
    return 0


def text(facts: dict[str, Any]) -> str:
    """What came out, for people."""
    found = ", ".join(f"{name} {value:.5f}" for name, value in facts["nash_conv"].items())
    return (
        f"{facts['rules']}, a round of 2 players: {facts['decisions']:,} decisions, {facts['input']} of "
        f"{facts['width']} numbers\n{facts['steps']:,} steps in {facts['cpu_seconds']:.0f} CPU seconds, "
        f"KL {facts['kl']:.5f} nats\nNashConv in points: {found}"
    )


if __name__ == "__main__":
    sys.exit(main())
