"""Measure policies from the command line: against each other, or exactly where the game is small.

    uv run evaluate.py arena random highest checkpoint:runs/demo/best --html report.html
    uv run evaluate.py arena lowest highest --rules cucumber,hand_size=3 --players 2 --json -
    uv run evaluate.py duel champion careful --margin 0.01
    uv run evaluate.py audit careful --updates 112
    uv run evaluate.py leaderboard page
    uv run evaluate.py exploitability highest --rules three_card
    uv run evaluate.py solve --rules three_card --out three_card.npz

Tables are drawn on a terminal and plain lines in a pipe; progress goes to stderr. Exit codes: 0 done,
1 a policy failed while it played or was asked (the rest is reported), 2 arguments that make no evaluation, 130
interrupted.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import Any

from tyro.extras import SubcommandApp

import agents  # noqa: F401 (registers the names of trained agents)
from agents.commands.audit import Audit
from agents.commands.common import fail
from agents.commands.duel import Duel, Plan
from agents.commands.exactly import Exploitability, Solve
from agents.commands.leaderboard import Leaderboard
from agents.commands.tournament import Arena, Report
from cucumber_env import arena

COMMANDS = (Arena, Report, Duel, Plan, Audit, Exploitability, Solve, Leaderboard)


def _trainer(config: Any) -> Any:
    """The trainer of `train.py`, which is loaded when it is needed."""
    from train import Trainer

    return Trainer(config)


Audit.trainer = staticmethod(_trainer)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command with `arguments` (by default those of the process) and return the exit code."""
    typed = list(sys.argv[1:] if arguments is None else arguments)
    commands = SubcommandApp()
    for command_class in COMMANDS:
        commands.command(name=command_class.__name__.lower())(command_class)
    try:
        command = commands.cli(args=typed, prog="evaluate.py", description=(__doc__ or "").split("\n", 1)[0])
        command.command_line = shlex.join(["uv", "run", "evaluate.py", *typed])
        return int(command.run())
    except arena.TableError as error:
        return fail(error, 1)
    except (ValueError, TypeError, OSError, ImportError) as error:
        return fail(error, 2)
    except KeyboardInterrupt:
        print("evaluate.py: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
