"""Measure policies from the command line: against each other, or exactly where the game is small.

    uv run evaluate.py arena random highest checkpoint:runs/demo/best
    uv run evaluate.py arena lowest highest --rules cucumber,hand_size=3 --players 2 --json -
    uv run evaluate.py exploitability highest --rules three_card
    uv run evaluate.py solve --rules three_card --out three_card.npz

Tables are drawn on a terminal and plain lines in a pipe; progress goes to stderr. Exit codes: 0 done,
1 a policy failed while it played or was asked, 2 arguments that make no evaluation, 130 interrupted.
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
from tyro import MISSING
from tyro.conf import Positional, arg
from tyro.extras import SubcommandApp

from agents.display import show  # importing agents registers the names of trained agents
from cucumber_env import arena, exact
from cucumber_env.batch import seed_word
from cucumber_env.observation import OBSERVATION_VERSION
from cucumber_env.policies import Policy, make, names
from cucumber_env.rules import FIELDS, RULES_VERSION, Rules


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
        check_file("json", self.json)
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
            write_json(self.json, self.to_dict(rules, result))
        return 0

    def play(self, rules: Rules, made: list[Policy]) -> arena.RoundRobin:
        """Play all tables, with a progress bar on stderr if that is a terminal."""
        with progress_bar() as bar:
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


_OVERRIDES: list[Any] = [
    (field, Annotated[str | None, arg(help=FIELDS[field], metavar="VALUE", help_behavior_hint="")], None)
    for field in (*exact.ROUND_FIELDS, "first_leader")
]


@dataclasses.dataclass
class Round(dataclasses.make_dataclass("Overrides", _OVERRIDES)):  # type: ignore[misc]
    """A round under any rules, looked at exactly; base of commands."""

    rules: str = "three_card"
    """Rules: a preset, with changes after commas; each field that matters is an option of its own, too."""
    players: int = 2
    """Seats at the table."""
    json: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Write everything as JSON to this file, or with `-` to stdout in place of the table."""

    def checked_rules(self) -> Rules:
        """The rules with the overrides on top.

        Raises:
            ValueError, TypeError: what is wrong with which argument.
        """
        check_file("json", self.json)
        overrides = {field: getattr(self, field) for field in (*exact.ROUND_FIELDS, "first_leader")}
        changes = [f"{field}={value}" for field, value in overrides.items() if value is not None]
        return exact.check_rules(",".join([self.rules, *changes]), self.players)

    def report(self, rules: Rules, report: exact.Report | exact.Deviation, **facts: Any) -> None:
        """Show what was found and write it where it is wanted."""
        if self.json != "-":
            print(f"{rules}, a round of {self.players} players; points, exact; seat 0 leads the first trick\n")
            show(exact_table(report))
            if isinstance(report, exact.Deviation):
                print(f"\n{exact.CLAIM}")
        if self.json is not None:
            named = {"command": type(self).__name__.lower(), "versions": versions(), "rules": rules.to_dict()}
            write_json(self.json, {**named, "num_players": self.players, **facts, **report.to_dict()})


@dataclasses.dataclass
class Exploitability(Round):
    """What a policy is worth against itself in a round, and what best responses win against it; exact.

    With more than two players: what each seat alone gains by deviating; no equilibrium is claimed.
    """

    policy: Annotated[str, Positional, arg(metavar="POLICY", help_behavior_hint="")] = MISSING
    """Name of a policy, such as `highest` or `checkpoint:runs/demo/best`."""

    def run(self) -> int:
        """Check, measure, report; returns the exit code."""
        rules = self.checked_rules()
        policy = make(self.policy)
        if policy.samples_only:
            exact.refuse_sampling(policy)
        try:
            with progress_bar() as bar:
                task = bar.add_task("asking", total=1.0)
                report = self.measure(rules, policy, lambda done: bar.update(task, completed=done))
        except (ValueError, TypeError) as error:
            return fail(error, 1)
        self.report(rules, report, policy=self.policy)
        return 0

    def measure(self, rules: Rules, policy: Policy, progress: exact.Progress) -> exact.Report | exact.Deviation:
        """The measure for so many players."""
        if self.players == 2:
            return exact.exploitability(rules, policy, progress=progress)
        return exact.deviation(rules, policy, self.players, progress=progress)


@dataclasses.dataclass
class Solve(Round):
    """An approximate equilibrium of a round of two, with its exact distance from one."""

    out: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Write the solution to this file, from which it plays as `exact:FILE`."""
    scheme: Literal[tuple(exact.SCHEMES)] = "dcfr"  # type: ignore[valid-type]
    """How regrets are discounted."""
    nash_conv: float = 1e-3
    """NashConv to reach, in points."""
    iterations: int = 1000
    """Most iterations."""
    seconds: float = float("inf")
    """Most seconds, but for the last iterations begun."""
    every: int = 10
    """Iterations between measurements of the NashConv."""

    def run(self) -> int:
        """Check, solve, write, report; returns the exit code."""
        if self.players != 2:
            raise ValueError(f"players={self.players} is out of range; allowed: 2, for whom games are solved")
        rules = self.checked_rules()
        check_file("out", self.out)
        with progress_bar() as bar:
            task = bar.add_task("solving", total=self.iterations)
            policy, report = exact.solve(
                rules,
                scheme=self.scheme,
                nash_conv=self.nash_conv,
                iterations=self.iterations,
                seconds=self.seconds,
                every=self.every,
                progress=lambda done, found, _: bar.update(
                    task, completed=done, description=f"solving: NashConv {found:.5f}"
                ),
            )
        if self.out is not None:
            policy.save(self.out)
        self.report(rules, report, out=self.out, **{name: policy.facts[name] for name in ("iterations", "curve")})
        return 0


def exact_table(report: exact.Report | exact.Deviation) -> arena.Table:
    """An exact report, a row for each seat."""
    rows = [
        [f"seat {seat}", f"{report.values[seat]:+.5f}", f"{report.best_response[seat]:+.5f}", f"{gain:.5f}"]
        for seat, gain in enumerate(report.gains)
    ]
    size = (
        f"({report.decisions:,} decisions among {report.information_states:,} information states, "
        f"{report.seconds:.1f} s)"
    )
    found = f"NashConv {report.nash_conv:.5f}" if isinstance(report, exact.Report) else "One seat deviates"
    return arena.Table(f"{found} {size}", ["", "against itself", "best response", "gain"], rows)


def progress_bar() -> Progress:
    """A bar on stderr, if that is a terminal."""
    console = Console(stderr=True)
    return Progress(console=console, transient=True, disable=not console.is_terminal)


def versions() -> dict[str, Any]:
    """Versions of the package and of what changes results."""
    try:
        package = metadata.version("cucumber-env")
    except metadata.PackageNotFoundError:
        package = "not installed"
    return {"cucumber_env": package, "rules": RULES_VERSION, "observation": OBSERVATION_VERSION}


def check_file(name: str, target: str | None) -> None:
    """Refuse a file that cannot be written: its folder must exist.

    Raises:
        ValueError: names the argument.
    """
    if target not in (None, "-") and (Path(target).is_dir() or not Path(target).absolute().parent.is_dir()):
        raise ValueError(f"{name}={target!r} must be a file in a folder that exists")


def write_json(target: str, content: dict[str, Any]) -> None:
    """`content` as JSON to stdout (``-``) or to a file."""
    write(target, json_format.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


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
    for command_class in (Arena, Exploitability, Solve):
        commands.command(name=command_class.__name__.lower())(command_class)
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
