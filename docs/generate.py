"""Write docs/environment.md from the layout, the rules and the signatures of the environments.

    uv run docs/generate.py            # write the page
    uv run docs/generate.py --check    # exit with 1 if it is not current

Whatever the code knows is read from it; the rest of the page is environment.template.md.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from cucumber_env import cucumber_v0
from cucumber_env.batch import REWARDS, make_options
from cucumber_env.envs.single_agent import CucumberEnv
from cucumber_env.envs.vector import SelfPlay
from cucumber_env.observation import OBSERVATION_VERSION, Layout
from cucumber_env.rewards import reward_range
from cucumber_env.rules import FIELDS, PRESETS, RANKS, RULES_VERSION, Rules

PAGE = Path(__file__).parent / "environment.md"
TEMPLATE = Path(__file__).parent / "environment.template.md"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def argument_table(function: Callable[..., Any], docstring: str | None) -> str:
    """Arguments of a callable with their defaults, and what its docstring says of them."""
    meanings = dict(argument_texts(inspect.cleandoc(docstring or "")))
    rows = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "self":
            continue
        default = "required" if parameter.default is inspect.Parameter.empty else f"`{parameter.default!r}`"
        if name not in meanings:
            raise ValueError(f"{function.__qualname__} does not say what {name!r} is")
        rows.append([f"`{name}`", default, meanings[name]])
    return table(["argument", "default", "meaning"], rows)


def argument_texts(docstring: str) -> Iterable[tuple[str, str]]:
    """Names and texts of the section ``Args`` of a docstring."""
    section = re.search(r"^Args:\n((?:    .*\n|\n)+)", docstring + "\n", re.MULTILINE)
    if section is None:
        raise ValueError(f"no section Args in {docstring[:60]!r}")
    for entry in re.finditer(r"^    ([\w, ]+): ((?:.*\n)(?:     +.*\n)*)", section[1] + "\n", re.MULTILINE):
        text = " ".join(entry[2].split()).replace("``", "`")
        for name in entry[1].split(", "):
            yield name, text


def layout_table(layout: Layout, sections: slice = slice(None)) -> str:
    """Sections of a layout."""
    return table(
        ["section", "index", "shape", "a 1 says"],
        (
            [f"`{s.name}`", f"{s.offset}–{s.offset + s.size - 1}", " × ".join(map(str, s.shape)), s.meaning]
            for s in layout.sections[sections]
        ),
    )


def field_table() -> str:
    """All fields of `Rules` with their defaults."""
    default = Rules().to_dict()
    return table(["field", "cucumber", "meaning"], ([f"`{f}`", f"`{default[f]}`", text] for f, text in FIELDS.items()))


def preset_table() -> str:
    """What each preset changes."""
    rows = []
    for name, changes in PRESETS.items():
        text = ", ".join(f"`{field}={value!r}`" for field, value in changes.items()) or "nothing"
        rows.append([f"`{name}`", f"2–{Rules.preset(name).max_players}", text])
    return table(["preset", "players", "changes"], rows)


def action_table() -> str:
    """Numbers of the actions."""
    return table(
        ["action", "meaning"],
        [
            ["0–12", f"play a card of rank {', '.join(RANKS)}"],
            ["13–19", "deal 1–7 cards (the dealer, under a dealer's choice)"],
            ["20", "decline to come back"],
            ["21", "come back by a chip"],
            ["22", "come back after skipping a round"],
        ],
    )


def ranges() -> dict[str, str]:
    """Ranges of returns of a seat at a table of four, by reward and episode."""
    rules = Rules()
    found = {}
    for reward in REWARDS:
        for episode in ("round", "match"):
            if (reward, episode) == ("outcome", "round"):
                continue
            options = make_options(rules=rules, num_players=4, episode=episode, reward=reward)
            low, high = reward_range(rules, options)
            found[f"{reward}_{episode}"] = f"[{low:.4g}, {high:.4g}]"
    return found


def environment_page() -> str:
    """The text of docs/environment.md."""
    rules = Rules()
    rounds, matches = Layout.of(rules, 4, "round"), Layout.of(rules, 4, "match")
    universal, history = Layout.of(rules, 4, "match", 8), Layout.of(rules, 4, "round", None, True)
    return TEMPLATE.read_text(encoding="utf-8").format(
        observation_fact=f"`Dict(observation=Box(0, 1, (W,), int8), action_mask=Box(0, 1, (A,), int8))`; "
        f"W = {rounds.size} for rounds of four, {matches.size} for matches; the plain `Box` in Gymnasium",
        rewards_fact=", ".join(f"`{reward}`" for reward in REWARDS),
        rules_version=RULES_VERSION,
        observation_version=OBSERVATION_VERSION,
        aec_arguments=argument_table(cucumber_v0.env, cucumber_v0.raw_env.__doc__),
        gymnasium_arguments=argument_table(CucumberEnv, CucumberEnv.__doc__),
        self_play_arguments=argument_table(SelfPlay, SelfPlay.__doc__),
        actions=action_table(),
        round_size=rounds.size,
        round_layout=layout_table(rounds),
        match_size=matches.size,
        match_layout=layout_table(matches),
        universal_size=universal.size,
        universal_layout=layout_table(universal),
        history_size=history.size,
        history_layout=layout_table(history, slice(len(rounds.sections), None)),
        fields=field_table(),
        presets=preset_table(),
        **ranges(),
    )


def main() -> int:
    """Write or check the page; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="only say whether the page is current")
    current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == environment_page()
    if parser.parse_args().check:
        print("docs/environment.md is current" if current else "docs/environment.md is stale: run docs/generate.py")
        return 0 if current else 1
    PAGE.write_text(environment_page(), encoding="utf-8")
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
