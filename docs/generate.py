"""Write docs/environment.md from the layout, the rules and the signatures of the environments.

    uv run docs/generate.py            # write the page
    uv run docs/generate.py --check    # exit with 1 if it is not current

Whatever the code knows is read from it; the rest of the page is the text below.
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

TEMPLATE = """\
<!-- Written by docs/generate.py; change that, or the code it reads. -->

# The environment

| | |
|---|---|
| PettingZoo (AEC) | `cucumber_v0.env()`, or `pettingzoo.make("aec", "cucumber_env/cucumber-v0")` |
| Gymnasium | `gymnasium.make("cucumber_env/Cucumber-v0")`, `gymnasium.make_vec(...)` |
| Self-play | `cucumber_env.envs.vector.SelfPlay` |
| Agents | `player_0` … `player_7`, as many as play |
| Actions | `Discrete(13)` where only cards are decided, else `Discrete(23)` |
| Observation | {observation_fact} |
| Action mask | int8, `[13]` or `[23]`; 1 is legal; all zeros for a seat that is not to move |
| Rewards | {rewards_fact} |
| Parallel API | no: players move one by one |
| Versions | rules {rules_version}, observation {observation_version} |

{about}

## Arguments

### `cucumber_v0.env`, `cucumber_v0.raw_env`

{aec_arguments}

`env` answers wrong use as PettingZoo's stock wrappers do and ends the episode at an illegal action;
`raw_env` raises an error instead.

### `gymnasium.make("cucumber_env/Cucumber-v0")`

{gymnasium_arguments}

### `SelfPlay`

{self_play_arguments}

## Actions

{actions}

The numbers are the same under all rules.

## Observation

A row of int8, all 0 or 1, seen from the seat that observes: relative seat 0 is that seat itself, then clockwise over
all seats, those that are out included. Counts and bounds are thermometers: as many ones as the number says. Rows are filled up
with zeros to a multiple of 8. `Layout` holds this table as data: `layout.views(observation)` names the parts,
`layout.explain(observation)` says them in words.

Strength compares cards; it is the rank (2 is 0, the Ace 12) unless `order: value` makes ranks equal.

### Four players, rounds of Cucumber: {round_size} numbers

{round_layout}

### Four players, matches of Cucumber: {match_size} numbers

{match_layout}

### Any table, `seats=8`: {universal_size} numbers

The same for all rules, player counts and episodes, so that one policy can sit at any table.

{universal_layout}

### Information state

`information_state` is the observation followed by what makes it one of perfect recall within the round (here for four players,
rounds of Cucumber, {history_size} numbers in all):

{history_layout}

## Rewards

| reward | what it pays | sum over the seats | range of one seat's return, four players |
|---|---|---|---|
| `points` | minus the penalty, to whoever pays, when a round is settled | minus the penalties | round {points_round}, match {points_match} |
| `zero_sum` | minus the own penalty plus the mean penalty of the others in the round (default for rounds) | 0 | \
round {zero_sum_round}, match {zero_sum_match} |
| `outcome` | at the end of a match: +1 to the winner, −1 shared by the others; under `first_out_loses` −1 shared by the \
losers, +1 by the others (default for matches) | 0 | match {outcome_match} |

Rewards arrive on whosever move ends a round: only the last trick scores. `chip_cost` is paid by the seat that comes
back by a chip, on top of these. Sudden death pays nothing by itself. A match cut short by `max_rounds` pays no `outcome`.

## Endings

An episode ends (`terminations`) when its round is settled or its match is decided, and is cut short
(`truncations`) by `max_rounds` alone; never both. In matches a seat that goes out stays among the agents without being asked again
(`elimination="wait"`) or is removed as PettingZoo does it (`"remove"`).

An illegal action ends an episode of `env`: the offender's return is brought down to the low end of the range above, the others
share the opposite (nothing under `points`).

## Randomness

Every random number is a hash of (seed, game, episode, round, purpose, counter). `reset(seed=s)` begins episode 0 of game 0
under seed s, `reset()` the next episode; slot i of a vector with seed s is game i. The same four numbers name the same
cards in every face, at any batch size.

## Rules

`Rules.preset(name, **changes)` makes rules, `rules.describe()` says them in words, [rules.md](rules.md) explains them.

{fields}

### Presets

What differs from `cucumber`:

{presets}

## Versions

| version | what changed |
|---|---|
| v0 | first version |

`v0` becomes `v1` when the same agent can learn something else in it.
"""

ABOUT = """\
Trick by trick, each player plays a card at least as high as the highest on the table, or else his lowest. Only the last
trick counts: its taker pays the value of its highest card. Whoever comes to 30 points is out, and the last one in wins.
Suits never matter."""


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
    return TEMPLATE.format(
        about=ABOUT,
        observation_fact=f"`Dict(observation=Box(0, 1, (W,), int8), action_mask=Box(0, 1, (A,), int8))`; "
        f"W = {rounds.size} for rounds of four, {matches.size} for matches; the plain `Box` in Gymnasium",
        rewards_fact=", ".join(f"`{reward}`" for reward in REWARDS),
        rules_version=RULES_VERSION,
        observation_version=OBSERVATION_VERSION,
        aec_arguments=argument_table(cucumber_v0.env, cucumber_v0.env.__doc__),
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
