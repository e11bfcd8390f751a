"""The one place where Python becomes machine code.

Every compiled function of the project is made by `njit` below: released from the interpreter lock,
cached on disk, and free of `fastmath`, so that results are the same bytes everywhere.

Numba's cache of a function does not notice changes in other files, and a run with bounds checks
would load unchecked code from it. So the cache folder is named by a hash of all compiled sources
and of the bounds-check flag. Set ``NUMBA_CACHE_DIR`` to move it, ``NUMBA_DISABLE_JIT=1`` to run the
same sources as plain Python and ``NUMBA_BOUNDSCHECK=1`` to check every index.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import config as numba_config

SOURCES = (
    "compiled.py",
    "rules.py",
    "state.py",
    "randomness.py",
    "kernel.py",
    "determinise.py",
    "observation.py",
    "batch.py",
    "one_seat.py",
    "one_table.py",
    "baselines.py",
    "exact/passes.py",
    "exact/walk.py",
)
"""Files of this package with compiled code, or with constants that it freezes; all of them name the cache folder."""

config: Any = numba_config
"""Numba's settings, read from the environment; ``config.DISABLE_JIT`` tells whether compiled code runs as Python."""

F = TypeVar("F", bound=Callable[..., Any])


def njit(function: F) -> F:
    """`function` compiled on first call, cached across processes.

    With ``NUMBA_DISABLE_JIT=1`` the function itself, so that the same code runs as plain Python.
    """
    if config.DISABLE_JIT:
        return function
    before = config.CACHE_DIR
    config.CACHE_DIR = str(cache_folder())
    try:
        dispatcher: Any = numba.njit(nogil=True, cache=True, error_model="numpy")(function)
        return cast(F, dispatcher)
    finally:
        config.CACHE_DIR = before


@functools.cache
def cache_folder() -> Path:
    """Folder of the compiled code of exactly these sources."""
    here = Path(__file__).parent
    digest = hashlib.sha256(f"boundscheck={config.BOUNDSCHECK}".encode())
    for name in SOURCES:
        path = here / name
        if path.exists():
            digest.update(path.read_bytes())
    folder = _cache_root() / f"compiled-{digest.hexdigest()[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a read-only home, as in many containers
        folder = _private_folder() / folder.name
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _cache_root() -> Path:
    if config.CACHE_DIR:
        return Path(config.CACHE_DIR) / "cucumber_env"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "cucumber_env"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cucumber_env"


def _private_folder() -> Path:
    """A folder for temporary files that nobody else can have put there: what is cached is code."""
    user = os.getuid() if hasattr(os, "getuid") else None
    folder = Path(tempfile.gettempdir()) / f"cucumber_env-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if user is not None and folder.stat().st_uid != user:
        return Path(tempfile.mkdtemp(prefix="cucumber_env-"))
    return folder
