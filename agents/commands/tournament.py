"""Tournaments from the command line: played, and read back from files of results."""

from __future__ import annotations

import dataclasses
import json as json_format
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional, arg

from agents.commands.common import check_file, fail, load, progress_bar, versions, write, write_json
from agents.display import show
from cucumber_env import arena
from cucumber_env.rules import Rules

AUDIT = ("policy", "kind", "turns", "deals", "seed", "gain", "at_least", "response")
"""What a report keeps of an audit."""

File = Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")]


@dataclasses.dataclass
class Output:
    """Where a report goes; base of commands."""

    json: File = None
    """Write everything as JSON to this file, or with `-` to stdout in place of the tables."""
    markdown: File = None
    """Write the report as Markdown to this file."""
    html: File = None
    """Write the report as a page for the browser, with plots, to this file."""
    audit: Annotated[tuple[str, ...], arg(metavar="FILE ...", help_behavior_hint="")] = ()
    """Files that `evaluate.py audit --json` wrote: what best responses gain, for the report."""

    command_line: str = dataclasses.field(default="", init=False)

    def check_output(self) -> None:
        """Refuse files that cannot be written.

        Raises:
            ValueError: names the argument.
        """
        files = {name: getattr(self, name) for name in ("json", "markdown", "html", "results") if hasattr(self, name)}
        for name, file in files.items():
            check_file(name, file)
        named = [Path(file).absolute() for file in files.values() if file not in (None, "-")]
        if len(set(named)) < len(named):
            raise ValueError(f"two of {', '.join(files)} name the same file; each needs its own")

    def audits(self, rules: Rules, num_players: int, episode: str) -> list[dict[str, Any]]:
        """What the files of `audit` hold, which has to be of such a table.

        Raises:
            ValueError, OSError: a file that holds no audit, or one of another table.
        """
        found = []
        for file in self.audit:
            try:
                row = json_format.loads(Path(file).read_text(encoding="utf-8"))
                found.append({name: row[name] for name in AUDIT})
                theirs = (Rules.of(row["rules"]), row["num_players"], row["episode"])
            except (ValueError, KeyError, TypeError) as error:
                reason = f"{error} is missing" if isinstance(error, KeyError) else error
                raise ValueError(f"audit: {file} is no audit: {reason}") from error
            if not {"mean", "low", "high", "deals"} <= set(row["gain"]):
                raise ValueError(f"audit: {file} is no audit: its gain is {row['gain']!r}")
            if theirs != (rules, num_players, episode):
                raise ValueError(
                    f"audit: {file} is of {row['rules']} with {theirs[1]} players, {theirs[2]} episodes; this "
                    f"tournament of {rules} with {num_players} players, {episode} episodes"
                )
        return found

    def write(self, cup: arena.Tournament) -> int:
        """Show the tables and write the report; returns the exit code."""
        setting = cup.setting
        found = self.audits(setting.rules, setting.num_players, setting.episode)
        strangers = sorted({row["policy"] for row in found} - set(cup.round_robin.names))
        if strangers:
            raise ValueError(f"audit: of {', '.join(strangers)}, who did not play in this tournament")
        report = cup.report(audit=found, command_line=self.command_line)
        report["versions"] = versions()
        if self.json != "-":
            for table in arena.report_tables(report, cup.round_robin):
                show(table)
                print()
        if self.json is not None:
            write_json(self.json, report)
        if self.markdown is not None:
            write(self.markdown, arena.markdown(report))
        if self.html is not None:
            write(self.html, arena.page(report))
        for failure in cup.round_robin.failures:
            fail(f"{failure.message} [table: {', '.join(failure.table)}]", 1)
        return 1 if cup.round_robin.failures else 0


@dataclasses.dataclass
class Arena(Output):
    """Every policy against a table of every other, on the same duplicate deals."""

    policies: Annotated[tuple[str, ...], Positional, arg(metavar="POLICY ...", help_behavior_hint="")] = ()
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
    seer_deals: int | None = None
    """Deals, at most, on which an agent that sees all cards is put beside the others; 0: none; by default 1000, of
    matches 100."""
    mixed_deals: int = 0
    """Deals, at most, of tables of different policies, on which ratings then rest; 0: none."""
    results: File = None
    """Write every game to this file as a line of JSON; if it is there, go on with it."""
    retry: bool = False
    """Play tables again that failed in the file of results."""
    workers: int = 1
    """Processes that play; -1: all cores."""
    imports: Annotated[tuple[str, ...], arg(metavar="MODULE ...", help_behavior_hint="")] = ()
    """Modules to import first, which register policies of yours."""

    def check(self) -> Rules:
        """The rules, after what `arena.tournament` does not check itself.

        Raises:
            ValueError, TypeError, OSError: what is wrong with which argument.
        """
        load(self.imports)
        rules = Rules.of(self.rules)
        rules.check_players(self.players, name="players")
        if self.workers < 1 and self.workers != -1:
            raise ValueError(f"workers={self.workers} is out of range; allowed: 1 and more, or -1 for all cores")
        self.check_output()
        self.audits(rules, self.players, self.episode)
        return rules

    def run(self) -> int:
        """Check, play, report; returns the exit code."""
        rules = self.check()
        try:
            cup = self.play(rules)
        except KeyboardInterrupt:
            if self.results is not None:
                print(f"What was played is in {self.results}; the same command goes on.", file=sys.stderr)
            raise
        if self.json != "-":
            print(_opening(cup.setting, self.deals))
        return self.write(cup)

    def play(self, rules: Rules) -> arena.Tournament:
        """Play all tables, with a progress bar on stderr if that is a terminal."""
        seer_deals = arena.SEER_DEALS[self.episode] if self.seer_deals is None else self.seer_deals
        options = {"deals": self.deals, "seer_deals": seer_deals, "mixed_deals": self.mixed_deals}
        with progress_bar() as bar:
            task = bar.add_task("playing", total=arena.size(len(self.policies), self.players, **options))
            return arena.tournament(
                self.policies,
                rules=rules,
                num_players=self.players,
                episode=self.episode,
                seed=self.seed,
                file=self.results,
                retry=self.retry,
                workers=self.workers,
                progress=lambda deals: bar.advance(task, deals),
                **options,
            )


@dataclasses.dataclass
class Report(Output):
    """The report of a tournament from files of results, which are merged."""

    files: Annotated[tuple[str, ...], Positional, arg(metavar="RESULTS ...", help_behavior_hint="")] = ()
    """Files that `evaluate.py arena --results` wrote."""

    def run(self) -> int:
        """Read, report; returns the exit code."""
        self.check_output()
        cup = arena.analyse(arena.read(self.files))
        if self.json != "-":
            setting = cup.setting
            print(_opening(setting, cup.deals))
        return self.write(cup)


def _opening(setting: arena.Setting, deals: int) -> str:
    """What was played, in a line."""
    episodes = "rounds" if setting.episode == "round" else "matches"
    return (
        f"{setting.rules}, {setting.num_players} players, {episodes}; {deals:,} duplicate deals (seed {setting.seed}), "
        "95 % intervals\n"
    )
