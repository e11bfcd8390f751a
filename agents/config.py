"""Settings of a training run, their allowed values and their schedules."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import tyro

SELECTION_DEALS = 1
"""Seed of the evaluation deals on which the best agent is chosen; it is measured on those of `Config.final_seed`."""

Schedule = Literal["constant", "linear", "inverse_sqrt"]

KINDS: dict[Any, tuple[type, ...]] = {
    bool: (bool,),
    int: (int,),
    float: (float, int),
    str: (str,),
    tuple[int, ...]: (tuple,),
}
"""Types of values for settings of each type."""


@dataclass
class Config:
    """Settings of a run; every one is a command-line argument."""

    rules: str = "cucumber"
    """Rules: a preset, with changes after commas, such as `cucumber,hand_size=3`; or several presets with commas."""
    players: int | str = 4
    """Seats at the table; several, such as `2-8` or `2,4`, train one agent for all of them."""
    episode: Literal["round", "match"] = "round"
    """What an episode is: a round (pays the others' mean penalty − one's own) or a match (pays its outcome)."""
    updates: int = 224
    """Updates of the run; schedules stretch over them."""
    games: int = 4096
    """Episodes played for each update, over all tables and processes."""
    seed: int = 1
    """Names all random numbers of the run."""
    hidden: tuple[int, ...] = (128, 128)
    """Widths of the hidden layers."""
    trunk: Literal["separate", "shared"] = "separate"
    """Whether policy and value have hidden layers of their own."""
    critic: Literal["perfect", "own"] = "perfect"
    """What the critic sees: all hands (it is needed in training alone), or what the seat itself sees."""
    learning_rate: float = 2e-3
    """Adam's step size at the start."""
    learning_rate_schedule: Schedule = "linear"
    """How it goes on: constant, linear to 0, or with 1/√(updates done + 1)."""
    entropy: float = 0.003
    """Weight of the pull towards the magnet at the start; for the uniform magnet it is the entropy bonus."""
    entropy_schedule: Schedule = "linear"
    """How it goes on."""
    magnet: Literal["uniform", "average", "snapshot"] = "uniform"
    """Policy that pulls (MMD): uniform, the moving average of weights, or a copy taken now and then."""
    magnet_every: int = 28
    """Updates between two copies of the snapshot magnet."""
    reverse_kl: float = 0.0
    """Weight of KL(policy ‖ policy that played), the inverse step size of MMD."""
    clip: float = 0.2
    """PPO's limit on the change of a probability ratio; `inf` for none."""
    epochs: int = 2
    """Passes over the data of an update."""
    minibatch: int = 4096
    """Decisions in a gradient step, over all processes."""
    gae_lambda: float = 0.6
    """Weight of later advantages (generalised advantage estimation)."""
    advantage_filter: float = 0.0
    """Share of the decisions, those of smallest advantage, that learning leaves out."""
    value_weight: float = 0.5
    """Weight of the squared value error."""
    max_grad_norm: float = 0.5
    """Limit on the norm of the gradient."""
    average: float = 0.0
    """Decay per update of a moving average of weights, which is then the agent that is saved and measured; 0: none."""
    pool: Literal["none", "uniform", "prioritised"] = "none"
    """Past selves as opponents: none, all alike, or of more than four those more often that are hard to beat."""
    pool_size: int = 16
    """Past selves taken over the run, evenly spaced."""
    pool_share: float = 0.25
    """Share of games with one learner among past selves or rivals."""
    rivals: tuple[str, ...] = ()
    """Policies by name that are met like past selves."""
    against: str | None = None
    """A policy by name that plays all other seats: what is trained is a best response to it."""
    start: Path | None = None
    """Folder of an agent whose weights training starts from; it may have been trained under other rules."""
    evaluate_every: int = 28
    """Updates between evaluations among `highest`, or among the policy of --against."""
    evaluate_deals: int = 2048
    """Duplicate deals of such an evaluation."""
    final_deals: int = 40_000
    """Duplicate deals behind each line of the final table; divided among several tables, at least 1000 each."""
    final_seed: int = 5
    """Names the deals of the final table."""
    specialists: tuple[Path, ...] = ()
    """Agents to compare with in the final report, each at the tables it was trained for."""
    save_every: int = 28
    """Updates between checkpoints."""
    threads: int = field(default_factory=lambda: os.cpu_count() or 1)
    """CPU threads of the network arithmetic."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """Of the network arithmetic; `auto` takes bf16 where the processor multiplies it fast."""
    compile: bool = False
    """Compile the loss with torch.compile."""
    device: str = "auto"
    """Where the network lives: `cpu`, `cuda`, or `auto` for a GPU if there is one."""
    out: Path | None = None
    """Folder of the run; by default a new one under runs/."""
    resume: Annotated[Path | None, tyro.conf.arg(metavar="RUN")] = None
    """Go on with the run in this folder, with its own settings."""

    def check(self) -> None:
        """Refuse values out of range, by name.

        Raises:
            ValueError, TypeError: says which.
        """
        self._check_types()
        tiny = float(np.nextafter(0, 1))
        counts = ("updates", "games", "epochs", "minibatch", "magnet_every", "evaluate_every", "save_every", "threads")
        ranges: dict[str, tuple[float, float, str]] = {
            **dict.fromkeys(counts, (1, np.inf, "1 and more")),
            **dict.fromkeys(("evaluate_deals", "final_deals"), (2, np.inf, "2 and more (for an interval)")),
            **dict.fromkeys(("learning_rate", "max_grad_norm"), (tiny, 1e9, "above 0")),
            **dict.fromkeys(("entropy", "reverse_kl", "value_weight"), (0, 1e9, "0 and more")),
            **dict.fromkeys(("gae_lambda", "pool_share"), (0, 1, "0 to 1")),
            **dict.fromkeys(("average", "advantage_filter"), (0, 1 - 1e-9, "0 to below 1")),
            "clip": (tiny, np.inf, "above 0, or inf"),
            "pool_size": (1, 1000, "1 to 1000"),
            "seed": (0, np.inf, "any integer ≥ 0"),
            "final_seed": (0, np.inf, "any integer ≥ 0"),
        }
        for name, (low, high, allowed) in ranges.items():
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name}={getattr(self, name)} is out of range; allowed: {allowed}")
        if not self.hidden or not all(isinstance(width, int) and width >= 1 for width in self.hidden):
            raise ValueError(f"hidden={self.hidden} is out of range; allowed: one or more widths of 1 and more")
        if self.magnet == "average" and not self.average:
            raise ValueError("magnet='average' needs the moving average of weights; set average, such as 0.9")
        if self.against is not None and (self.pool != "none" or self.rivals):
            raise ValueError(f"against={self.against!r} is the only opponent; leave out pool and rivals")
        if self.final_seed == SELECTION_DEALS:
            raise ValueError(f"final_seed={self.final_seed}: the best agent is chosen on those deals; allowed: others")

    def _check_types(self) -> None:
        """What tyro checks on a command line, for settings that come from elsewhere."""
        for name, kind in get_type_hints(Config).items():
            value, words = getattr(self, name), get_args(kind)
            if get_origin(kind) is Literal and value not in words:
                raise ValueError(f"{name}={value!r} is not one of its values; allowed: {', '.join(words)}")
            types = KINDS.get(kind)
            if types and type(value) not in types:
                raise TypeError(f"{name}={value!r} is of type {type(value).__name__}; expected {types[0].__name__}")

    def faded(self, name: str, updates: int) -> float:
        """The value of `learning_rate` or `entropy` after so many updates, by its schedule."""
        start, schedule = getattr(self, name), getattr(self, f"{name}_schedule")
        left = {"constant": 1.0, "linear": 1 - updates / self.updates, "inverse_sqrt": (updates + 1) ** -0.5}
        return float(start * left[schedule])


HERE = ("threads", "device", "compile", "final_deals", "final_seed", "specialists")
"""Settings that a resumed run takes from the command line: they belong to the machine, or to the report."""


def lasting(config: Config) -> dict[str, Any]:
    """The settings that make a run what it is, JSON-friendly: checkpoints under others are not of this run."""
    settings = json.loads(json.dumps(asdict(config), default=str))
    return {name: value for name, value in settings.items() if name not in (*HERE, "out", "resume", "start")}
