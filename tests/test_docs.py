"""The pages that are generated are current, and the README's table was made by the command beside it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_environment_page_is_current(generate: ModuleType) -> None:
    assert generate.PAGE.read_text(encoding="utf-8") == generate.environment_page(), "run docs/generate.py"


def test_arguments_without_a_meaning_are_refused(generate: ModuleType) -> None:
    def function(one: int, two: int = 2) -> None: ...

    docstring = "Do.\n\nArgs:\n    one: The first,\n        in two lines.\n"
    with pytest.raises(ValueError, match="does not say what 'two' is"):
        generate.argument_table(function, docstring)
    text = generate.argument_table(function, docstring + "    two: The second.\n")
    assert "| `one` | required | The first, in two lines. |" in text
    assert "| `two` | `2` | The second. |" in text


def test_every_reading_that_the_kernel_cites_is_explained() -> None:
    page = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    cited = set(re.findall(r"\bA\d\d\b", (ROOT / "cucumber_env" / "kernel.py").read_text(encoding="utf-8")))
    assert len(cited) > 3
    assert {reading for reading in cited if f"**{reading} " not in page} == set()
