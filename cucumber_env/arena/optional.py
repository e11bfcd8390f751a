"""Libraries that some of the arena asks for and plain comparisons do not: loaded when they are first used."""

from __future__ import annotations

import importlib
from typing import Any


def optional(module: str) -> Any:
    """The module of that name, such as ``scipy.stats``.

    Raises:
        ImportError: it is not installed; says what to install.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise ImportError(
            f"this part of the arena needs {library}, which is not installed: pip install 'cucumber-env[arena]'"
        ) from error
