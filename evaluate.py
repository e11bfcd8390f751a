"""Measure policies against each other from the command line.

    uv run evaluate.py arena random highest checkpoint:runs/demo/best
    uv run evaluate.py arena lowest highest --rules cucumber,hand_size=3 --players 2 --json -

Tables are drawn on a terminal and plain lines in a pipe; progress goes to stderr. Exit codes: 0 done,
1 a policy failed while it played, 2 arguments that make no evaluation, 130 interrupted.
"""

from __future__ import annotations

import dataclasses
import json as json_format
import os
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Literal

from rich.console import Console
from rich.progress import Progress
from tyro.conf import Positional, arg
from tyro.extras import SubcommandApp

from agents.display import show  # importing agents registers the names of trained agents
from cucumber_env import arena
from cucumber_env.batch import seed_word
from cucumber_env.observation import OBSERVATION_VERSION
from cucumber_env.policies import Policy, make, names
from cucumber_env.rules import RULES_VERSION, Rules


@dataclasses.dataclass
class Arena:
    """Every policy against a table of every other, on the same duplicate deals."""

    policies: Annotated[tuple[str, ...], Positional, arg(metavar="POLICY ...", help_behavior_hint="")]
    """Names of two or more policies, such as `highest` or `checkpoint:runs/demo/best`."""
    rules: str = "cucumber"
    """Rules: a preset, with changes after commas, such as `cucumber,hand_size=3`."""
    players: int = 4
    """Seats at each table."""
    episode: Literal["round", "match"] = "round"
    """What is played on each deal: a round (the score is its penalty) or a whole match (its outcome)."""
    deals: int = 10_000
    """Duplicate deals of each table; each is played once for every rotation of the seats."""
    seed: int = 0
    """Names the deals; no seed shares a deal with training."""
    json: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Write everything as JSON to this file, or with `-` to stdout in place of the tables."""

    def check(self) -> tuple[Rules, list[Policy]]:
        """The rules and the policies, after everything has been checked.

        Raises:
            ValueError, TypeError, OSError: what is wrong with which argument.
        """
        if len(self.policies) < 2:
            raise ValueError(f"a comparison takes two or more policies; names: {', '.join(names())}")
        made = {name: make(name) for name in self.policies}
        rules = Rules.of(self.rules)
        rules.check_players(self.players, name="players")
        arena.check_deals(self.deals)
        seed_word(self.seed)
        if self.json not in (None, "-"):
            folder = Path(self.json).absolute().parent
            if not folder.is_dir() or Path(self.json).is_dir():
                raise ValueError(f"json={self.json!r} must be a file in a folder that exists")
        return rules, [made[name] for name in self.policies]

    def run(self) -> int:
        """Check, play, report; returns the exit code."""
        rules, made = self.check()
        try:
            result = self.play(rules, made)
        except (ValueError, TypeError) as error:
            return fail(error, 1)
        if self.json != "-":
            episodes = "rounds" if self.episode == "round" else "matches"
            print(
                f"{self.rules}, {self.players} players, {episodes}; {self.deals:,} duplicate deals (seed {self.seed}), "
                "95 % intervals\n"
            )
            show(arena.matrix_table(result))
            print()
            show(arena.pair_table(result))
        if self.json is not None:
            text = json_format.dumps(self.to_dict(rules, result), indent=2, ensure_ascii=False, allow_nan=False)
            write(self.json, text + "\n")
        return 0

    def play(self, rules: Rules, made: list[Policy]) -> arena.RoundRobin:
        """Play all tables, with a progress bar on stderr if that is a terminal."""
        console = Console(stderr=True)
        bar = Progress(console=console, transient=True, disable=not console.is_terminal)
        with bar:
            task = bar.add_task("playing", total=len(made) ** 2 * self.deals)
            return arena.round_robin(
                made,
                rules=rules,
                num_players=self.players,
                episode=self.episode,
                deals=self.deals,
                seed=self.seed,
                progress=lambda deals: bar.advance(task, deals),
            )

    def to_dict(self, rules: Rules, result: arena.RoundRobin) -> dict[str, Any]:
        """Everything that names the evaluation and all that it found; the same on every machine."""
        return {
            "command": "arena",
            "versions": versions(),
            "rules": rules.to_dict(),
            "num_players": self.players,
            "episode": self.episode,
            "deals": self.deals,
            "seed": self.seed,
            "score": arena.SCORES[self.episode],
            "better": arena.better(self.episode),
            "confidence": 0.95,
            **result.to_dict(),
        }


def versions() -> dict[str, Any]:
    """Versions of the package and of what changes results."""
    try:
        package = metadata.version("cucumber-env")
    except metadata.PackageNotFoundError:
        package = "not installed"
    return {"cucumber_env": package, "rules": RULES_VERSION, "observation": OBSERVATION_VERSION}


def write(target: str, text: str) -> None:
    """Write to stdout (``-``) or to a file, which appears whole or not at all."""
    if target == "-":
        sys.stdout.write(text)
        return
    fresh = Path(f"{target}.new-{os.getpid()}")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(target)


def fail(error: Exception, code: int) -> int:
    """Say on stderr what went wrong; returns `code`."""
    print(f"evaluate.py: error: {error}", file=sys.stderr)
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command with `arguments` (by default those of the process) and return the exit code."""
    commands = SubcommandApp()
    commands.command(name="arena")(Arena)
    try:
        command = commands.cli(args=arguments, prog="evaluate.py", description=(__doc__ or "").split("\n", 1)[0])
        return int(command.run())
    except (ValueError, TypeError, OSError) as error:
        return fail(error, 2)
    except KeyboardInterrupt:
        print("evaluate.py: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
