"""The leaderboard from the command line: entries added and reproduced, and the page that shows them."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
import subprocess
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from agents import leaderboard
from agents.commands.common import fail, progress_bar, write
from agents.leaderboard import FOLDER, Board, Entry
from agents.leaderboard_page import document
from cucumber_env import arena
from cucumber_env.arena.markdown import as_markdown
from cucumber_env.arena.page import as_page
from cucumber_env.baselines import BASELINES

ROOT = FOLDER.parent


@dataclasses.dataclass
class Leaderboard:
    """Add an entry to the leaderboard, reproduce entries, or write its page anew."""

    action: Annotated[Literal["add", "reproduce", "page"], Positional]
    """What to do."""
    what: Annotated[tuple[str, ...], Positional, arg(metavar="POLICY|ENTRY ...", help_behavior_hint="")] = ()
    """Names of policies to add, or files of entries to reproduce."""
    board: Annotated[str | None, arg(metavar="BOARD", help_behavior_hint="")] = None
    """The board of a new entry, as leaderboard/boards.toml names it."""
    deals: Annotated[int | None, arg(metavar="INT", help_behavior_hint="")] = None
    """Reproduce on so many of the first deals only."""
    retrain: bool = False
    """Make the policy of an entry again first, by the commands that it names; equal strength is then expected, not
    equal bytes."""
    folder: Path = FOLDER
    """Where the leaderboard is."""

    def run(self) -> int:
        """Check, do it, report; returns the exit code."""
        self.folder = self.folder.absolute()
        if self.action == "page":
            return self.page()
        if not self.what:
            raise ValueError(f"{self.action} what? name {'policies' if self.action == 'add' else 'files of entries'}")
        if self.deals is not None and self.deals < 2:
            raise ValueError(f"deals={self.deals} is out of range; allowed: 2 and more (one has no interval)")
        if self.action == "add":
            if self.deals is not None:
                raise ValueError("deals: an entry is measured on all deals of its board; --deals is for reproduce")
            return max(self.add(name) for name in self.what)
        return max(self.tried(name) for name in self.what)

    def tried(self, file: str) -> int:
        """Reproduce an entry; an error is told and ends this one alone."""
        try:
            return self.reproduce(file)
        except arena.TableError as error:
            return fail(f"{file}: {error}", 1)
        except (ValueError, OSError) as error:
            return fail(f"{file}: {error}", 2)

    def page(self) -> int:
        """Write the page, as Markdown and for the browser."""
        with contextlib.chdir(ROOT):
            title, parts = document(self.folder)
        write(str(self.folder / "README.md"), as_markdown(title, parts))
        write(str(self.folder / "index.html"), as_page(title, parts))
        print(f"{_relative(self.folder)}: README.md and index.html are written.")
        return 0

    def add(self, policy: str) -> int:
        """Measure a policy and write its entry."""
        if self.board is None:
            raise ValueError(f"board: which? one of {', '.join(leaderboard.boards(self.folder))}")
        entry = self.measured(leaderboard.find_board(self.board, self.folder), policy)
        print(f"{_relative(entry.write(self.folder))} is written.")
        return 0

    def reproduce(self, file: str) -> int:
        """Measure an entry again and say where it differs; 1 if it does."""
        entry = Entry.read(file)
        board = leaderboard.find_board(entry.board, self.folder)
        with contextlib.chdir(ROOT):
            changes = leaderboard.stale(entry, board)
        for change in changes:
            print(f"{file} is stale: {change}")
        policy = self.remade(entry) if self.retrain else entry.policy
        again = self.measured(board, policy)
        found = leaderboard.reproduce(entry, again)
        print(f"{file}: {entry.policy}, {again.scores.shape[1]:,} deals")
        for each in found:
            change = f"{each.change.mean:+.4f} ± {each.change.half_width:.4f}, {each.deals:,} deals differ"
            print(f"  among {each.field}: was {each.was:.4f}, is {each.now:.4f}; difference {change}")
        same = all(not each.deals for each in found)
        if entry.exact and again.exact:
            was, now = entry.exact["nash_conv"], again.exact["nash_conv"]
            print(f"  NashConv: was {was:.6f}, is {now:.6f}")
            same = same and abs(was - now) < 1e-6
        if same:
            print("  The same on every deal.")
        return 0 if same or self.retrain else fail(f"{file} was not reproduced", 1)

    def measured(self, board: Board, policy: str) -> Entry:
        """An entry with progress on stderr, if that is a terminal."""
        deals = min(self.deals or board.deals, board.deals)
        with progress_bar() as bar:
            task = bar.add_task(policy, total=2 * len(BASELINES) * deals)
            with contextlib.chdir(ROOT):  # files that names of policies speak of are there
                return leaderboard.measure(board, policy, deals=deals, progress=lambda done: bar.advance(task, done))

    def remade(self, entry: Entry) -> str:
        """Make the policy of an entry again; returns its name.

        Raises:
            ValueError: the entry does not say how, or a command failed.
        """
        if not entry.commands or entry.remade is None:
            raise ValueError(f"{entry.policy} has no commands to make it again")
        for command in entry.commands:
            print(command, flush=True)
            done = subprocess.run(shlex.split(command), cwd=ROOT, check=False)
            if done.returncode:
                raise ValueError(f"{command} ended with exit code {done.returncode}")
        return entry.remade


def _relative(path: Path) -> str:
    """The path as seen from the working folder."""
    return os.path.relpath(path)
