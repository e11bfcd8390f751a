"""What commands share: checks of their arguments, progress, files that appear whole, and what goes wrong."""

from __future__ import annotations

import importlib
import json as json_format
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from cucumber_env.arena.results import VERSIONS


def progress_bar(*, known: bool = True) -> Progress:
    """A bar on stderr, if that is a terminal; one that only moves if it is not `known` how much there is to do."""
    console = Console(stderr=True)
    columns: list[ProgressColumn] = [
        TextColumn("[progress.description]{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
    ]
    if known:
        columns += [TextColumn("{task.percentage:>3.0f} %"), TextColumn("left"), TimeRemainingColumn()]
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def versions() -> dict[str, Any]:
    """Versions of the package and of what changes results."""
    try:
        package = metadata.version("cucumber-env")
    except metadata.PackageNotFoundError:
        package = "not installed"
    return {"cucumber_env": package, **VERSIONS}


def load(modules: Sequence[str]) -> None:
    """Import modules that register policies of their own, from the working folder too.

    Raises:
        ValueError: a module that cannot be imported, and why.
    """
    if modules and "" not in sys.path:
        sys.path.insert(0, "")
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as error:  # whatever somebody's module raises
            raise ValueError(f"imports: {module} cannot be imported: {type(error).__name__}: {error}") from error


def check_file(name: str, target: str | None) -> None:
    """Refuse a file that cannot be written, before anything is computed for it.

    Raises:
        ValueError: names the argument.
    """
    if target in (None, "-"):
        return
    if Path(target).is_dir() or not Path(target).absolute().parent.is_dir():
        raise ValueError(f"{name}={target!r} must be a file in a folder that exists")
    fresh = _fresh(target)
    try:
        fresh.touch()
        fresh.unlink()
    except OSError as error:
        raise ValueError(f"{name}={target!r} cannot be written: {error.strerror}") from error


def write_json(target: str, content: Mapping[str, Any]) -> None:
    """`content` as JSON to stdout (``-``) or to a file."""
    write(target, json_format.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write(target: str, text: str) -> None:
    """Write to stdout (``-``) or to a file, which appears whole or not at all."""
    if target == "-":
        sys.stdout.write(text)
        return
    fresh = _fresh(target)
    try:
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)


def _fresh(target: str) -> Path:
    """What a file is called until it is whole."""
    return Path(f"{target}.new-{os.getpid()}")


def fail(error: Exception | str, code: int) -> int:
    """Say on stderr what went wrong; returns `code`."""
    print(f"evaluate.py: error: {error}", file=sys.stderr)
    return code
