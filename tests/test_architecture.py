"""The house rules that a test can hold: which way imports point, what is compiled, what an import loads."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import numpy as np
import pytest

import cucumber_env
from cucumber_env import compiled
from cucumber_env.batch import OPTIONS
from cucumber_env.observation import LAYOUT
from cucumber_env.one_table import TABLE
from cucumber_env.state import GAME, PUBLIC, RULES, VIEW

ROOT = Path(__file__).parent.parent
PACKAGE = Path(cucumber_env.__file__).parent

LAYERS: list[set[str]] = [
    {"rules", "cards", "compiled"},
    {"state", "randomness"},
    {"kernel", "determinise"},
    {"observation"},
    {"batch"},
    {
        "baselines",
        "champion",
        "cucumber_v0",
        "envs",
        "game",
        "one_seat",
        "one_table",
        "policies",
        "records",
        "render",
        "replay",
        "rewards",
    },
    {"arena", "exact", "openspiel", "testing"},
]
"""Parts of the package from the ground up: each imports from its own layer and those before it."""

ALLOWED = {"numpy", "numba", "gymnasium", "pettingzoo", "cucumber_env"}
OPTIONAL = {"openspiel": {"pyspiel", "open_spiel"}}
"""What else some parts import; nothing imports these parts, and importing them without says what to install."""

HEAVY = (
    "pyspiel",
    "torch",
    "matplotlib",
    "pygame",
    "pandas",
    "scipy.stats",
    "tyro",
    "rich",
    "tensorboard",
    "PIL",
    "agents",
)


def modules(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def name_of(path: Path) -> str:
    """Dotted name of a module of the repository."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path, *, running: bool = True) -> Iterator[str]:
    """Dotted names that a file imports, inside of functions too; those for type checkers only if not `running`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if running and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            skipped |= {inner for statement in node.body for inner in ast.walk(statement)}
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def part_of(name: str) -> str | None:
    """The part of the package that a dotted name belongs to."""
    first, *rest = name.split(".")
    return rest[0] if first == "cucumber_env" and rest else None


def layer_of(part: str) -> int:
    found = [number for number, layer in enumerate(LAYERS) if part in layer]
    assert found, f"cucumber_env.{part} has no layer: give it one in LAYERS"
    return found[0]


@pytest.mark.parametrize("path", modules(PACKAGE), ids=name_of)
def test_imports_point_one_way(path: Path) -> None:
    part = part_of(name_of(path))
    for imported in imports(path):
        other = part_of(imported)
        if part and other and other != part:
            assert layer_of(other) <= layer_of(part), f"{name_of(path)} imports {imported}"


def test_no_imports_go_round_in_circles() -> None:
    """Modules as they are loaded, so imports inside of functions do not count."""
    names = {name_of(path): path for path in modules(PACKAGE)}
    graph: dict[str, set[str]] = {}
    for name, path in names.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        at_top = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module]
        found = {f"{node.module}.{alias.name}" for node in at_top for alias in node.names}
        found |= {node.module for node in at_top if node.module}
        graph[name] = (found & names.keys()) - {name, "cucumber_env"}
    assert len(list(TopologicalSorter(graph).static_order())) == len(names)


def test_the_package_imports_its_dependencies_alone() -> None:
    for path in modules(PACKAGE):
        tops = {name.split(".")[0] for name in imports(path, running=False)}
        allowed = ALLOWED | OPTIONAL.get(str(part_of(name_of(path))), set())
        assert tops <= allowed | set(sys.stdlib_module_names), f"{name_of(path)} imports {tops}"
        others = {part_of(name) for name in imports(path)} - {part_of(name_of(path))}
        assert not others & OPTIONAL.keys(), f"{name_of(path)} imports {others}"


def test_nothing_imports_the_scripts_and_only_they_import_agents() -> None:
    for path in [*modules(PACKAGE), *modules(ROOT / "agents")]:
        tops = {name.split(".")[0] for name in imports(path, running=False)}
        assert not tops & {"train", "evaluate", "play"}, f"{name_of(path)} imports {tops}"
        assert "agents" not in tops or "agents" in path.parts, f"{name_of(path)} imports agents"


def test_importing_the_package_loads_nothing_heavy() -> None:
    parts = [name_of(path) for path in modules(PACKAGE) if part_of(name_of(path)) not in OPTIONAL]
    for names in (["cucumber_env"], parts):
        code = f"import sys, {', '.join(names)}\nprint(*(name for name in {HEAVY} if name in sys.modules))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == []


def test_what_is_optional_says_what_to_install() -> None:
    code = "import sys\nsys.modules['pyspiel'] = None\nimport cucumber_env.openspiel"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 1
    assert "ImportError: cucumber_env.openspiel needs OpenSpiel, which is not installed: pip install" in done.stderr


def test_what_the_arena_loads_when_asked_is_its_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = {re.split(r"[^a-z0-9-]", need)[0] for need in project["optional-dependencies"]["arena"]}
    asked = set()
    for path in modules(PACKAGE):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "optional":
                assert part_of(name_of(path)) == "arena"
                assert isinstance(node.args[0], ast.Constant)
                asked.add(str(node.args[0].value).split(".")[0])
    assert asked == listed


def test_an_extra_that_is_missing_is_named() -> None:
    code = (
        "import sys\nsys.modules['openskill.models'] = None\nfrom cucumber_env import arena\n"
        "arena.tournament(['lowest', 'highest'], num_players=2, deals=5, seer_deals=0).report()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 1
    assert "ImportError: this part of the arena needs openskill, which is not installed: pip install" in done.stderr


def calls_njit(path: Path) -> bool:
    """Whether a file compiles a function."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return any(isinstance(mark, ast.Name) and mark.id == "njit" for node in functions for mark in node.decorator_list)


def test_every_compiled_source_names_the_cache_folder() -> None:
    found = {path.relative_to(PACKAGE).as_posix() for path in modules(PACKAGE) if calls_njit(path)}
    assert found | {"compiled.py", "rules.py", "state.py"} == set(compiled.SOURCES)


def test_numba_is_called_in_one_place() -> None:
    users = {path.name for path in modules(PACKAGE) if any(name.startswith("numba") for name in imports(path))}
    assert users == {"compiled.py"}


@pytest.mark.parametrize("word", ["prange", "parallel", "fastmath", "jitclass", "np.random", "objmode"])
def test_compiled_sources_keep_off_what_bites(word: str) -> None:
    for name in compiled.SOURCES:
        tree = ast.parse((PACKAGE / name).read_text(encoding="utf-8"))
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        names |= {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        names |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg}
        assert not any(word in used.split(".") or word in used for used in names), name


def test_record_fields_are_not_attributes_of_arrays() -> None:
    """Without the JIT records are record arrays, where such a field would be hidden."""

    for dtype in (OPTIONS, GAME, PUBLIC, RULES, VIEW, LAYOUT, TABLE):
        assert not [name for name in dtype.names or () if hasattr(np.ndarray, name)]
