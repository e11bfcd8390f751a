"""The report of a tournament as Markdown and as a page: every number, whatever the names, and nothing from outside."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from cucumber_env.arena import document, plots
from cucumber_env.arena.compare import round_robin
from cucumber_env.arena.markdown import markdown
from cucumber_env.arena.page import page
from cucumber_env.arena.results import Failure
from cucumber_env.rules import Rules

NASTY = "<b>|x"
LONG = "checkpoint:runs/cucumber-4p-seed1/last,greedy=1"
VOID = {"meta", "wbr", "br", "link", "img", "input", "hr"}


def estimate(mean: float, half: float, deals: int = 1000) -> dict[str, float]:
    return {"mean": mean, "low": mean - half, "high": mean + half, "deals": deals}


def bare(names: list[str], episode: str = "round") -> dict[str, Any]:
    """A report with what every report has; policies are the better the later they come, by made-up amounts."""
    rounds = episode == "round"
    sign = -1 if rounds else 1
    worth = {name: 1.2345 + sign * 0.0731 * place for place, name in enumerate(names)}
    return {
        "rules": Rules.of("cucumber").to_dict(),
        "rules_text": "cucumber",
        "num_players": 4,
        "episode": episode,
        "deals": 1000,
        "seed": 17,
        "score": "penalty" if rounds else "outcome",
        "better": "lower is better" if rounds else "higher is better",
        "policies": names,
        "against": [
            {
                "policy": one,
                "field": field,
                "score": estimate(worth[one] + 0.0117 * place, 0.0213),
                "own": estimate(worth[field] + 0.0009 * place, 0.0121),
                "difference": estimate(
                    0.0 if one == field else worth[one] - worth[field], 0.0 if one == field else 0.02
                ),
                "share": estimate(0.251 + 0.0013 * place, 0.0071),
            }
            for one in names
            for place, field in enumerate(names)
        ],
        "pairs": [
            {"first": one, "second": other, "difference": estimate(worth[one] - worth[other], 0.0309)}
            for one, other in combinations(names, 2)
        ],
    }


def full(names: list[str], episode: str = "round") -> dict[str, Any]:
    """A report with everything in it."""
    report = bare(names, episode)
    for place, pair in enumerate(report["pairs"]):
        pair["improvement"] = {"mean": 0.431 + 0.0011 * place, "low": 0.4203, "high": 0.4504, "deals": 1000}
    skill = {"mu": 26.54, "sigma": 0.83, "ordinal": -1.07}
    best = names[::-1]
    return {
        **report,
        "versions": {"cucumber_env": "0.1.0", "rules": 1, "observation": 1},
        "command_line": f"evaluate.py arena '{names[0]}' --seed 17",
        "confidence": 0.95,
        "ranking": [
            {"policy": name, "rank": [place, place + 1], "score": estimate(1.1 + place / 7, 0.0457), "openskill": skill}
            for place, name in enumerate(best, 1)
        ],
        "beats": "One beats another if its interval says so.",
        "openskill_games": 4321,
        "mixed": [{"policy": name, "tables": 13, "score": estimate(1.937, 0.0561)} for name in names],
        "cycles": [names[:3]] if len(names) > 2 else [],
        "distribution": {name: {"points": [0, 2, 14], "share": [0.8123, 0.1, 0.0877]} for name in names},
        "seer": [
            {"field": name, "score": estimate(0.3713, 0.0419, 250), "difference": estimate(-1.6177, 0.0511)}
            for name in names
        ],
        "suspects": [{"policy": names[0], "field": names[1], "text": "too good"}],
        "audit": [
            {
                "policy": names[0],
                "kind": "trained",
                "turns": 9_876_543,
                "deals": 54_321,
                "seed": 987,
                "gain": estimate(0.1937, 0.0123),
                "at_least": 0.1834,
            }
        ],
        "failures": [Failure(tuple(names[:2]), names[0], 765, "answered 7 | 8 <i>").to_dict()],
    }


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    return full(["highest", "lowest", LONG, NASTY])


@pytest.fixture(scope="module")
def shown(report: dict[str, Any]) -> str:
    return page(report)


class Outline(HTMLParser):
    """Elements that are open, all attributes, and text without tags; complains about tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def numbers(value: Any) -> Iterator[float]:
    """Every number of a report's results."""
    if isinstance(value, dict):
        for part in value.values():
            yield from numbers(part)
    elif isinstance(value, list):
        for part in value:
            yield from numbers(part)
    elif isinstance(value, int | float):
        yield value


def written(value: float) -> set[str]:
    """The ways of writing a number that the report may use: decimals, per cent, thousands, or with the sign turned."""
    texts = {f"{value:.3f}", f"{-value:.3f}", f"{value:.2f}", f"{100 * value:.1f}", f"{100 * value:.2f} %"}
    texts |= {f"{100 * (1 - value):.1f}"}
    return {text.replace("-", "−") for text in texts} | ({f"{value:,}"} if isinstance(value, int) else set())


@pytest.mark.parametrize(
    "write", [markdown, lambda report: "".join(Outline(page(report)).words)], ids=["markdown", "page"]
)
@pytest.mark.parametrize("episode", ["round", "match"])
def test_every_number_is_there(write: Any, episode: str) -> None:
    report = full(["highest", "lowest", LONG, NASTY], episode)
    text = write(report)
    for key in ("against", "pairs", "ranking", "mixed", "distribution", "seer", "audit", "failures", "deals", "seed"):
        for value in numbers(report[key]):
            assert any(way in text for way in written(value)), (key, value)


def test_numbers_stand_where_they_belong() -> None:
    rows = [
        line for line in markdown(full(["highest", "lowest"])).splitlines() if line.startswith("| `lowest` | `highest`")
    ]
    pair, against = rows
    # `lowest` is 0.0731 better and ranks first: the pair is turned round, and with it the probability.
    assert pair == "| `lowest` | `highest` | −0.073 (−0.104 to −0.042) | 56.9 % (55.0 to 58.0) | first |"
    assert against.startswith("| `lowest` | `highest` | 1.161 (1.140 to 1.183) | 1.234 (1.222 to 1.247) | −0.073 (")


def test_colours_say_better_and_worse() -> None:
    """Of penalties less is better, of outcomes more: by the sign of the difference, at the strength of its size."""
    for episode in ("round", "match"):
        text = page(bare(["highest", "lowest"], episode))
        matrix = text[text.index('<table class="matrix"') :]
        rows = re.findall(r"<tr><th[^>]*><code>(\w+)</code></th>(.*?)</tr>", matrix)
        for name, cells in rows[:2]:
            assert ('class="good"' in cells) == (name == "lowest")
            assert ('class="bad"' in cells) == (name == "highest")


def test_the_diagonal_and_undecided_cells_have_no_colour() -> None:
    report = bare(["highest", "lowest"])
    for row in report["against"]:
        row["difference"] = estimate(0.01 if row["policy"] != row["field"] else 0, 0.02)
    text = page(report)
    assert 'class="good"' not in text.split("<tbody>")[-3]
    assert "undecided" in text


def test_names_and_messages_are_escaped(report: dict[str, Any], shown: str) -> None:
    assert "<b>|x" not in shown
    assert html.escape(NASTY) in shown
    text = markdown(report)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert "`<b>\\|x`" in text
    assert "answered 7 \\| 8 &lt;i&gt;" in text
    for row, after in pairwise(rows):
        if after.startswith("| ---"):
            columns = len(re.findall(r"(?<!\\)\|", row))
        if row.startswith("| `"):
            assert len(re.findall(r"(?<!\\)\|", row)) == columns, row


@pytest.mark.parametrize(
    "name", ["a`b", "``", "$x_1$ ]]>", "牌 🂡", "two\nlines\x00", "\udc80", "*_[a](b)_*", "</svg><script>", "   "]
)
def test_any_name(name: str) -> None:
    report = full(["highest", name])
    text = page(report)
    Outline(text)
    ElementTree.fromstring(re.findall(r"<svg.*?</svg>", text, re.DOTALL)[0])
    assert "<script" not in text
    text.encode()
    table = markdown(report).encode().decode()
    shown = "".join(letter if letter.isprintable() else " " for letter in name).strip()
    assert shown in table
    if "`" in name:
        assert f"{'`' * 3 if name == '``' else '``'} {name} " in table


def test_nothing_comes_from_outside(shown: str) -> None:
    assert "http" not in shown
    assert "@import" not in shown
    assert set(re.findall(r"url\(([^)]*)\)", shown)) <= {f"#{name}" for name in re.findall(r' id="([^"]*)"', shown)}
    links = [value for tag, attrs in Outline(shown).seen for key, value in attrs.items() if key in ("href", "src")]
    assert links
    assert all(link and link.startswith("#") for link in links)
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in Outline(shown).seen}


def test_the_page_is_well_formed(shown: str) -> None:
    outline = Outline(shown)
    identifiers = [attrs["id"] for _, attrs in outline.seen if "id" in attrs]
    assert len(identifiers) == len(set(identifiers))
    targets = [attrs["href"] for tag, attrs in outline.seen if tag in ("a", "use")]
    assert {f"#{name}" for name in identifiers} >= set(targets)
    assert shown.startswith("<!DOCTYPE html>")
    assert ("meta", {"charset": "utf-8"}) in outline.seen
    assert any(attrs.get("name") == "viewport" for _, attrs in outline.seen)
    assert all(attrs.get("scope") in ("col", "row") for tag, attrs in outline.seen if tag == "th")
    assert all(attrs.get("aria-label") for tag, attrs in outline.seen if tag == "svg")
    assert "prefers-color-scheme: dark" in shown


def test_figures_are_xml_in_colours_of_the_page(shown: str) -> None:
    figures = re.findall(r"<svg.*?</svg>", shown, re.DOTALL)
    assert len(figures) == 2
    for figure in figures:
        tree = ElementTree.fromstring(figure)
        assert tree.find("title") is not None
        words = " ".join(element.text or "" for element in tree.iter("text"))
        assert NASTY in words
        assert "…" in words  # the long name
    assert not re.findall(r"(?:fill|stroke): (?!none|var\()[^;\"]*", "".join(figures))


def test_letters_are_large_enough_for_a_phone(shown: str) -> None:
    """362 px are left of a phone's 390: nothing is below 10 px there."""
    for figure in re.findall(r"<svg.*?</svg>", shown, re.DOTALL):
        width = float(re.findall(r'viewBox="0 0 (\d+)', figure)[0])
        sizes = [float(size) for size in re.findall(r"font[^\"]*?([\d.]+)px", figure)]
        assert sizes
        assert min(sizes) * 362 / width >= 10


def luminance(colour: tuple[float, ...]) -> float:
    """Relative luminance as WCAG 2.1 defines it, of sRGB from 0 to 255."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (part / 255 for part in colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_text_is_readable_in_the_light_and_the_dark() -> None:
    """Contrast of at least 4.5 (WCAG AA), on the darkest and lightest cells of the matrix too."""
    style = (Path(plots.__file__).parent / "page.css").read_text(encoding="utf-8")
    for theme in re.findall(r":root \{(.*?--strength.*?)\}", style, re.DOTALL):
        values = dict(re.findall(r"--(\w+): ([^;]*);", theme))
        colour = {name: tuple(bytes.fromhex(value[1:])) for name, value in values.items() if value.startswith("#")}
        for name in ("ink", "muted", "better", "worse", "even"):
            assert contrast(colour[name], colour["paper"]) >= 4.5, name
        assert contrast(colour["ink"], colour["tint"]) >= 4.5
        alpha = float(values["strength"])
        for name in ("good", "bad"):
            full = [float(part) for part in values[name].split()]
            cell = tuple(alpha * c + (1 - alpha) * paper for c, paper in zip(full, colour["paper"], strict=True))
            small = tuple(0.85 * c + 0.15 * under for c, under in zip(colour["ink"], cell, strict=True))
            assert contrast(small, cell) >= 4.5, name


def test_figures_and_page_agree_on_colours() -> None:
    style = (Path(plots.__file__).parent / "page.css").read_text(encoding="utf-8")
    light = dict(re.findall(r"--(\w+): ([^;]*);", style[: style.index("}")]))
    assert {name: light[name] for name in plots.COLOURS} == plots.COLOURS


def test_the_same_report_gives_the_same_bytes(report: dict[str, Any], shown: str) -> None:
    assert page(report) == shown
    assert markdown(report) == markdown(report)


def test_user_settings_of_matplotlib_change_nothing(report: dict[str, Any], shown: str) -> None:
    import matplotlib as mpl

    with mpl.rc_context({"axes.grid": True, "font.size": 30, "svg.fonttype": "path", "axes.facecolor": "red"}):
        assert page(report) == shown


@pytest.mark.parametrize("episode", ["round", "match"])
def test_empty_parts_are_said_to_be_empty(episode: str) -> None:
    report = bare(["highest", "lowest"], episode)
    empty = {key: [] for key in ("ranking", "cycles", "mixed", "seer", "suspects", "audit", "failures")}
    for version in (report, {**report, **empty, "distribution": {}, "command_line": None}):
        for text in (markdown(version), page(version)):
            assert "No ranking was made." in text
            assert "No cycles found" in text
            assert "No best responses were sought" in text
            assert "None: every table was played to its end." in text
            assert "No distribution was recorded." in text
            assert "Not compared with an agent that sees all cards." in text
    assert page(report).count("<svg") == 1


def test_policies_whose_tables_failed_have_gaps() -> None:
    report = full(["highest", "lowest", "random"])
    report["against"] = [row for row in report["against"] if "random" not in (row["policy"], row["field"])]
    report["pairs"] = [pair for pair in report["pairs"] if "random" not in (pair["first"], pair["second"])]
    report["ranking"] = [row for row in report["ranking"] if row["policy"] != "random"]
    report["distribution"]["random"] = {"points": [], "share": []}
    text = markdown(report)
    assert "| `random` | – | – | – |" in text
    Outline(page(report))
    none = {**bare(["highest", "lowest"]), "against": [], "pairs": []}
    assert "No pairs were compared." in markdown(none)
    Outline(page(none))


def test_twenty_policies_with_long_names() -> None:
    names = [f"checkpoint:runs/cucumber-4p-seed{number}/last,greedy=1" for number in range(20)]
    text = page(full(names))
    assert text.count("<summary>All pairs") == 1
    forest = re.findall(r"<svg.*?</svg>", text, re.DOTALL)[0]
    # every policy beside the next two, and no more
    assert forest.count("±") == 19 + 18
    labels = re.findall(r">\s*(…[^<]*)</text>", forest)
    assert len(set(labels)) == 19


def test_comparisons_of_the_arena_make_a_report() -> None:
    found = round_robin(["highest", "lowest"], rules="three_card", num_players=2, deals=20, seed=3)
    report = {**bare(["highest", "lowest"]), "num_players": 2, "deals": 20, "seed": 3, **found.to_dict()}
    score = found.against[0][1].score
    for text in (markdown(report), page(report)):
        assert f"{score.mean:.3f}" in text
        assert f"{score.low:.3f} to {score.high:.3f}" in text
        assert "20 duplicate deals × 2 rotations = 40 games" in text


def test_rules_of_another_version_are_shown_field_by_field() -> None:
    report = full(["highest", "lowest"])
    assert "The seat left of the dealer leads the first trick." in markdown(report)
    report["versions"] = {"rules": 99}
    report["rules"] = {"colour": "green"}
    text = markdown(report)
    assert "The seat left of the dealer leads" not in text
    assert "`colour: green`" in text


def test_a_report_that_lacks_something_is_refused() -> None:
    report = bare(["highest", "lowest"])
    del report["pairs"], report["seed"]
    with pytest.raises(ValueError, match="the report lacks seed, pairs"):
        page(report)
    with pytest.raises(ValueError, match="the report lacks seed, pairs"):
        markdown(report)


def test_intervals_that_lean_to_one_side_show_both_ends() -> None:
    assert document.half({"mean": 1.0, "low": 0.9, "high": 1.3}) == "0.900 to 1.300"
    assert document.half({"mean": 1.0, "low": 0.9, "high": 1.1}) == "± 0.100"


def test_short_names_differ() -> None:
    names = ["x" * 30 + end + "y" * 30 for end in "abc"] + ["z" * 40 + "1" + "z" * 40, "plain"]
    short = plots.short_names(names, 18)
    assert len(set(short.values())) == 5
    assert all(len(name) <= 18 for name in short.values())


def test_only_the_page_needs_matplotlib() -> None:
    code = """
import sys
sys.modules['matplotlib'] = None
from test_arena_page import bare, markdown, page
assert markdown(bare(['highest', 'lowest']))
try:
    page(bare(['highest', 'lowest']))
except ImportError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=Path(__file__).parent
    )
    assert done.returncode == 0, done.stderr
    assert "needs matplotlib, which is not installed: pip install 'cucumber-env[arena]'" in done.stdout
