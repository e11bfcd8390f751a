"""Best-response audits from the command line."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from rich.console import Console
from tyro import MISSING
from tyro.conf import Positional, arg

from agents import audit
from agents.commands.common import check_file, load, versions, write_json
from cucumber_env.rules import Rules


@dataclasses.dataclass
class Audit:
    """What one seat gains by leaving a policy that all others play, at least: train a best response and measure it.

    Interrupted, it goes on when the same command is given again. Rounds of two with few cards are looked at exactly.
    """

    policy: Annotated[str, Positional, arg(metavar="POLICY", help_behavior_hint="")] = MISSING
    """Name of the policy."""
    rules: str = "cucumber"
    """Rules: a preset, with changes after commas, such as `cucumber,hand_size=3`."""
    players: int = 4
    """Seats at the table."""
    episode: Literal["round", "match"] = "round"
    """What is played: rounds or whole matches."""
    kind: Literal["auto", "trained", "exact"] = "auto"
    """How the response is found; auto: exactly for two players and up to three cards, else by training."""
    updates: int = 112
    """Updates of the training: the budget, with --games."""
    games: int = 4096
    """Episodes played for each update."""
    deals: int = 20_000
    """Fresh duplicate deals on which the response is measured."""
    seed: int = 1
    """Names the random numbers of the training, and the deals."""
    threads: int = dataclasses.field(default_factory=lambda: os.cpu_count() or 1)
    """CPU threads of the network arithmetic."""
    out: Path = Path("runs/audits")
    """Where trainings are kept."""
    json: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Write what was found as JSON to this file, for `arena --audit`, or with `-` to stdout in place of the text."""
    imports: Annotated[tuple[str, ...], arg(metavar="MODULE ...", help_behavior_hint="")] = ()
    """Modules to import first, which register policies of yours."""

    trainer: ClassVar[Callable[[Any], Any]]
    """Makes the trainer of some settings."""

    def run(self) -> int:
        """Check, train, measure, report; returns the exit code."""
        load(self.imports)
        check_file("json", self.json)
        found = audit.audit(
            self.policy,
            trainer=type(self).trainer,
            rules=Rules.of(self.rules),
            num_players=self.players,
            episode=self.episode,
            kind=self.kind,
            out=self.out,
            updates=self.updates,
            games=self.games,
            deals=self.deals,
            seed=self.seed,
            threads=self.threads,
            console=Console(stderr=True),
        )
        if self.json != "-":
            print(_text(found))
        if self.json is not None:
            write_json(self.json, {"command": "audit", "versions": versions(), **found.to_dict()})
        return 0


def _text(found: audit.Audit) -> str:
    """What was found, in a sentence or two."""
    unit = "points a round" if found.episode == "round" else "of outcome a match"
    if found.kind == "exact":
        return f"{found.policy}: a best response gains {found.gain.mean:.5f} {unit}, mean over seats; exact."
    gain = f"{found.gain.mean:+.3f} ± {found.gain.half_width:.3f}"
    return (
        f"{found.policy}: gain from deviating at least {found.at_least:.3f} {unit}. A response that took "
        f"{found.turns:,} turns of training gained {gain} on {found.deals:,} fresh deals; a better one may exist."
    )
