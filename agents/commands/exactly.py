"""Exact measures of rounds from the command line: exploitability and solutions."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal

from tyro import MISSING
from tyro.conf import Positional, arg

from agents.commands.common import check_file, fail, load, progress_bar, versions, write_json
from agents.display import show
from cucumber_env import arena, exact
from cucumber_env.policies import Policy, PolicyError, make
from cucumber_env.rules import FIELDS, Rules

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
    threads: int | None = None
    """Threads to work in, by default one a core; results are the same for any number."""
    json: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Write everything as JSON to this file, or with `-` to stdout in place of the table."""
    imports: Annotated[tuple[str, ...], arg(metavar="MODULE ...", help_behavior_hint="")] = ()
    """Modules to import first, which register policies of yours."""

    def checked_rules(self) -> Rules:
        """The rules with the overrides on top.

        Raises:
            ValueError, TypeError: what is wrong with which argument.
        """
        load(self.imports)
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
        policy.check(rules, self.players, "round")
        exact.refuse_sampling(policy)
        try:
            with progress_bar() as bar:
                task = bar.add_task("asking", total=1.0)
                report = self.measure(rules, policy, lambda done: bar.update(task, completed=done))
        except PolicyError as error:
            return fail(error, 1)
        self.report(rules, report, policy=self.policy)
        return 0

    def measure(self, rules: Rules, policy: Policy, progress: exact.Progress) -> exact.Report | exact.Deviation:
        """The measure for so many players."""
        if self.players == 2:
            return exact.exploitability(rules, policy, threads=self.threads, progress=progress)
        return exact.deviation(rules, policy, self.players, threads=self.threads, progress=progress)


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
        with progress_bar(known=False) as bar:
            task = bar.add_task("solving", total=None)
            policy, report = exact.solve(
                rules,
                scheme=self.scheme,
                nash_conv=self.nash_conv,
                iterations=self.iterations,
                seconds=self.seconds,
                every=self.every,
                threads=self.threads,
                progress=lambda done, found, _: bar.update(
                    task, description=f"solving: NashConv {found:.5f} after {done} iterations"
                ),
            )
        self.report(rules, report, out=self.out, **{name: policy.facts[name] for name in ("iterations", "curve")})
        if self.out is not None:
            policy.save(self.out)
        return 0


def exact_table(report: exact.Report | exact.Deviation) -> arena.Table:
    """An exact report, a row for each seat."""
    rows = [
        [
            f"seat {seat}",
            f"{report.values[seat]:+.5f}",
            f"{report.best_response[seat]:+.5f}",
            f"{gain:.5f}",
            "{1} {0:+.5f}".format(*max((values[seat], name) for name, values in report.baselines.items())),
        ]
        for seat, gain in enumerate(report.gains)
    ]
    size = (
        f"({report.decisions:,} decisions among {report.information_states:,} information states, "
        f"{report.seconds:.1f} s)"
    )
    found = f"NashConv {report.nash_conv:.5f}" if isinstance(report, exact.Report) else "One seat deviates"
    return arena.Table(f"{found} {size}", ["", "against itself", "best response", "gain", "best scripted"], rows)
