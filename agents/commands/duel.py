"""Two policies from the command line: until it is clear which is better, and how many deals that takes."""

from __future__ import annotations

import dataclasses
import math
import sys
from typing import Annotated, Literal

import numpy as np
from tyro import MISSING
from tyro.conf import Positional, arg

from agents.commands.common import check_file, load, progress_bar, versions, write_json
from cucumber_env import arena
from cucumber_env.arena.compare import one_against, same_tables
from cucumber_env.arena.sample_size import deals_needed
from cucumber_env.policies import Policy, make
from cucumber_env.rules import Rules


@dataclasses.dataclass
class Two:
    """Two policies at tables of one kind; base of commands."""

    first: Annotated[str, Positional, arg(metavar="FIRST", help_behavior_hint="")] = MISSING
    """Name of a policy."""
    second: Annotated[str, Positional, arg(metavar="SECOND", help_behavior_hint="")] = MISSING
    """Name of another."""
    rules: str = "cucumber"
    """Rules: a preset, with changes after commas, such as `cucumber,hand_size=3`."""
    players: int = 4
    """Seats at each table."""
    episode: Literal["round", "match"] = "round"
    """What is played on each deal: a round (the score is its penalty) or a whole match (its outcome)."""
    seed: int = 0
    """Names the deals; no seed shares a deal with training."""
    confidence: float = 0.95
    """How often an answer is right."""
    json: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Write everything as JSON to this file, or with `-` to stdout in place of the text."""
    imports: Annotated[tuple[str, ...], arg(metavar="MODULE ...", help_behavior_hint="")] = ()
    """Modules to import first, which register policies of yours."""

    def made(self) -> tuple[Policy, Policy]:
        """Both policies, after everything has been checked.

        Raises:
            ValueError, TypeError, OSError: what is wrong with which argument.
        """
        load(self.imports)
        check_file("json", self.json)
        Rules.of(self.rules).check_players(self.players, name="players")
        return make(self.first), make(self.second)

    def write(self, text: str, found: dict[str, object]) -> None:
        """Print the text, or write what was found where it is wanted."""
        if self.json != "-":
            print(text)
        if self.json is not None:
            facts = {name: getattr(self, name) for name in ("first", "second", "players", "episode", "seed")}
            named = {"command": type(self).__name__.lower(), "versions": versions()}
            write_json(self.json, {**named, "rules": Rules.of(self.rules).to_dict(), **facts, **found})


@dataclasses.dataclass
class Duel(Two):
    """Play two policies until it is clear which is better: an anytime-valid test, which may be watched and stopped."""

    margin: float | None = None
    """Differences up to this do not matter: stop when the difference is surely not larger."""
    most: int = arena.MOST
    """Deals, at most."""

    def run(self) -> int:
        """Check, play, report; returns the exit code."""
        first, second = self.made()
        seen: list[arena.ConfidenceSequence] = []
        try:
            with progress_bar() as bar:
                task = bar.add_task("playing", total=self.most)

                def show(test: arena.ConfidenceSequence) -> None:
                    seen[:] = [test]
                    bar.update(task, completed=test.deals, description=_interval(test))

                test = arena.duel(
                    first,
                    second,
                    rules=self.rules,
                    num_players=self.players,
                    episode=self.episode,
                    seed=self.seed,
                    confidence=self.confidence,
                    margin=self.margin,
                    most=self.most,
                    progress=show,
                )
        except KeyboardInterrupt:
            if seen:
                print(f"So far: {_interval(seen[-1])} after {seen[-1].deals:,} deals.", file=sys.stderr)
            raise
        score = arena.SCORES[self.episode]
        lower, higher = (self.first, self.second) if self.episode == "round" else (self.second, self.first)
        winner = {-1: lower, 0: None, 1: higher}[test.sign]
        verdict = f"{winner} is better" if winner else "no difference that matters" if test.decided else "undecided"
        self.write(
            f"{verdict}: mean {score} of {self.first} less that of {self.second} at the same tables {_interval(test)} "
            f"({self.confidence:.0%} at all times together; {test.deals:,} duplicate deals, seed {self.seed})",
            {"better": winner, "decided": test.decided, "difference": test.estimate.to_dict(), "test": test.to_dict()},
        )
        return 0


@dataclasses.dataclass
class Plan(Two):
    """How many deals it takes to tell two policies apart, from the spread of a few deals."""

    difference: float | None = None
    """A difference that should be found, in the unit of the score; by default a row of several."""
    power: float = 0.9
    """How often it should be found."""
    pilot: int = 1000
    """Deals that are played to learn the spread."""

    def run(self) -> int:
        """Check, play a few, reckon; returns the exit code."""
        first, second = self.made()
        deals = arena.check_deals(self.pilot)
        one, other = (
            one_against(
                guest,
                field,
                num_players=self.players,
                rules=self.rules,
                episode=self.episode,
                deals=deals,
                seed=self.seed,
            )
            for guest, field in ((first, second), (second, first))
        )
        mine, theirs = same_tables(one, other)
        values = mine - theirs
        deviation = float(np.std(values, ddof=1))
        if not deviation:
            raise ValueError(f"{self.first} and {self.second} scored alike on all {deals} deals; try another pilot")
        wanted = [self.difference] if self.difference is not None else [0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005]
        needed = {size: deals_needed(size, deviation, confidence=self.confidence, power=self.power) for size in wanted}
        found = float(np.mean(values))
        lines = [
            f"Difference of {self.first} less {self.second}: {found:+.3f} on {deals:,} deals (seed {self.seed}), from "
            f"deal to deal ± {deviation:.3f}.",
            f"Deals that show a difference at {self.confidence:.0%} confidence {self.power:.0%} of the time:",
            *(f"  {size:g}: {count:,}" for size, count in needed.items()),
        ]
        rows = [{"difference": size, "deals": count} for size, count in needed.items()]
        measured = {"difference": found, "deviation": deviation, "pilot": deals}
        self.write("\n".join(lines), {**measured, "power": self.power, "needed": rows})
        return 0


def _interval(test: arena.ConfidenceSequence) -> str:
    low, high = test.estimate.low, test.estimate.high
    return f"{test.estimate.mean:+.3f} [{low:+.3f}, {high:+.3f}]" if math.isfinite(high) else "…"
