"""Figures of a report as SVG that stands in a page: no outside files, the same bytes for the same numbers.

Text stays text, in the font of the page. Colours are CSS variables of the page with a fallback, so that figures
follow it into the dark; their names say what they mean (`better`, `worse`). Drawn 440 px wide with letters of
12.5 px: on a phone of 390 px they are still above 10.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from itertools import takewhile
from typing import Any

from cucumber_env.arena.optional import optional

WIDTH = 440
LETTERS = 12.5
COLOURS = {
    "ink": "#1b1f24",
    "muted": "#59636e",
    "line": "#d3d8de",
    "bar": "#64748b",
    "better": "#1d65a6",
    "worse": "#b8520a",
    "even": "#6e7781",
}
"""By the name of the page's CSS variable. Blue and orange are told apart with any colour vision."""

_SETTINGS = {"svg.fonttype": "none", "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"]}
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif"


@dataclass(frozen=True)
class Row:
    """A line of a forest plot: an interval from `low` to `high` round `mean`.

    `colour` is a name of `COLOURS`, `text` the numbers printed beside.
    """

    label: str
    mean: float
    low: float
    high: float
    colour: str
    text: str


@dataclass(frozen=True)
class Bars:
    """A line of a plot of distributions: `shares[i]` of the time `points[i]`; `text` is printed at the right."""

    label: str
    points: Sequence[float]
    shares: Sequence[float]
    text: str = ""


def shorten(label: str, letters: int) -> str:
    """`label` with its middle left out if it is longer than so many letters.

    >>> shorten("checkpoint:runs/demo/last,greedy=1", 20)
    'checkpoint…,greedy=1'
    """
    if len(label) <= letters:
        return label
    tail = (letters - 1) // 2
    return f"{label[: letters - 1 - tail]}…{label[len(label) - tail :]}"


def short_names(names: Iterable[str], letters: int) -> dict[str, str]:
    """Different names in so many letters: those that are longer begin where they begin to differ.

    >>> short_names(["lowest", "checkpoint:runs/demo-1/last", "checkpoint:runs/demo-2/last"], 12)
    {'lowest': 'lowest', 'checkpoint:runs/demo-1/last': '…demo-1/last', 'checkpoint:runs/demo-2/last': '…demo-2/last'}
    """
    distinct = list(dict.fromkeys(names))
    long = [name for name in distinct if len(name) > letters]
    columns = takewhile(lambda letters: len(set(letters)) == 1, zip(*long, strict=False))
    alike = len(list(columns)) if len(long) > 1 else 0
    short = {name: name for name in distinct}
    for number, name in enumerate(long, 1):
        start = max(0, min(alike, len(name) - letters + 1))
        short[name] = f"…{shorten(name[start:], letters - 1)}" if start else shorten(name, letters)
        if list(short.values()).count(short[name]) > 1:
            mark = f"#{number} "
            short[name] = mark + shorten(name, letters - len(mark))
    return short


def draw_forest(groups: Sequence[tuple[str, Sequence[Row]]], *, title: str, axis: str, lower_is_better: bool) -> str:
    """Intervals round means on one axis with zero marked, under a heading for each group.

    Args:
        groups: Headings and their rows, from the top.
        title: What it shows; names the figure for screen readers and in the page's identifiers.
        axis: Label of the axis, with the unit.
        lower_is_better: Whether left of zero is better.
    """
    with _settings(title):
        return _svg(_forest(groups, axis, lower_is_better), title)


def _forest(groups: Sequence[tuple[str, Sequence[Row]]], axis: str, lower_is_better: bool) -> Any:
    lines = sum(1 + len(rows) for _, rows in groups)
    left, right, top, bottom = 148, 330, 30, 52
    height = 24 * lines + top + bottom
    figure, axes = _canvas(height, left, right, top, bottom)
    axes.set_ylim(lines - 0.5, -0.5)
    low, high = _limits([end for _, rows in groups for row in rows for end in (row.low, row.high)])
    axes.set_xlim(low, high)
    axes.set_xlabel(axis, fontsize=LETTERS, color=COLOURS["muted"])
    _directions(figure, left, right, height, lower_is_better)
    short = short_names([row.label for _, rows in groups for row in rows], 18)
    line = 0
    ticks = [tick for tick in axes.get_xticks() if low < tick < high]
    for heading, rows in groups:
        ends = line + 0.5, line + 0.5 + len(rows)  # no lines through the heading
        axes.vlines(ticks, *ends, color=COLOURS["line"], linewidth=0.8, zorder=1)
        axes.vlines(0, *ends, color=COLOURS["muted"], linewidth=1, zorder=1)
        _text(figure, 0, height - top - 24 * (line + 0.5), shorten(heading, 58), weight="bold")
        for row in rows:
            line += 1
            colour = COLOURS[row.colour]
            y = height - top - 24 * (line + 0.5)
            axes.plot([row.low, row.high], [line, line], color=colour, linewidth=2.5, solid_capstyle="butt")
            axes.plot([row.mean], [line], "o", color=colour, markersize=6, markeredgewidth=0)
            _text(figure, 10, y, short[row.label])
            _text(figure, WIDTH, y, row.text, ha="right", color=colour)
        line += 1
    return figure


def draw_distribution(rows: Sequence[Bars], *, title: str, axis: str, mark: tuple[float, str] | None = None) -> str:
    """Bars of shares over points, a line for each row, all to one scale.

    Args:
        rows: From the top.
        title: What it shows.
        axis: Label of the axis, with the unit.
        mark: A point that matters, and what it is called.
    """
    with _settings(title):
        return _svg(_distribution(rows, axis, mark), title)


def _distribution(rows: Sequence[Bars], axis: str, mark: tuple[float, str] | None) -> Any:
    row_height, right, top, bottom = 72, WIDTH - 40, 26 if mark else 4, 52
    height = row_height * len(rows) + top + bottom
    figure, axes = _canvas(height, 0, right, top, bottom, ticks=9)
    axes.set_ylim(len(rows), 0)
    points = [point for row in rows for point in row.points]
    axes.set_xlim(min(points, default=0) - 0.7, max(points, default=1) + 0.7)
    axes.set_xlabel(axis, fontsize=LETTERS, color=COLOURS["muted"])
    scale = _round_down(0.75 * max((share for row in rows for share in row.shares), default=1))
    unit = 0.5 / max([share for row in rows for share in row.shares] or [1]) if scale else 0
    if mark:
        axes.axvline(mark[0], color=COLOURS["muted"], linewidth=1, linestyle=(0, (3, 3)))
        axes.text(mark[0], -6 / row_height, mark[1], ha="center", va="bottom", fontsize=LETTERS, color=COLOURS["muted"])
    low, high = axes.get_xlim()
    ticks = [tick for tick in axes.get_xticks() if low < tick < high]
    short = short_names([row.label for row in rows], 32)
    for number, row in enumerate(rows):
        base = number + 0.98
        axes.vlines(ticks, base - 0.5, base, color=COLOURS["line"], linewidth=0.8, zorder=1)
        axes.axhline(base, color=COLOURS["line"], linewidth=1)
        if scale:
            axes.axhline(base - scale * unit, color=COLOURS["line"], linewidth=1, zorder=1)
            y = height - top - row_height * (base - scale * unit)
            _text(figure, right + 6, y, f"{100 * scale:g} %", color=COLOURS["muted"])
        heights = [-share * unit for share in row.shares]
        axes.bar(row.points, heights, 0.78, bottom=base, color=COLOURS["bar"], linewidth=0, zorder=2)
        y = height - top - row_height * (number + 0.26)
        _text(figure, 0, y, short[row.label], weight="bold")
        _text(figure, right, y, row.text, ha="right", color=COLOURS["muted"])
    return figure


def _canvas(height: int, left: int, right: int, top: int, bottom: int, *, ticks: int = 4) -> tuple[Any, Any]:
    """A figure of `WIDTH` × `height` px and axes that leave so many px free; `right` is where they end."""
    figure = optional("matplotlib.figure").Figure(figsize=(WIDTH / 72, height / 72), dpi=72)
    box = (left / WIDTH, bottom / height, (right - left) / WIDTH, (height - top - bottom) / height)
    axes = figure.add_axes(box)
    figure.patch.set_visible(False)
    axes.patch.set_visible(False)
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(COLOURS["muted"])
    axes.xaxis.set_major_locator(optional("matplotlib.ticker").MaxNLocator(ticks, steps=[1, 2, 5, 10]))
    axes.tick_params(axis="x", color=COLOURS["muted"], labelcolor=COLOURS["muted"], labelsize=LETTERS)
    axes.tick_params(axis="y", left=False, labelleft=False)
    return figure, axes


def _text(figure: Any, x: float, y: float, text: str, **style: Any) -> None:
    """Text at so many px from the left and the bottom; dollar signs are dollar signs."""
    place = optional("matplotlib.transforms").IdentityTransform()
    style = {"va": "center_baseline", "fontsize": LETTERS, "color": COLOURS["ink"], **style}
    figure.text(x, y, text, transform=place, parse_math=False, **style)


def _directions(figure: Any, left: int, right: int, height: int, lower_is_better: bool) -> None:
    """Which side of zero is better, above the axes."""
    first, second = ("better", "worse") if lower_is_better else ("worse", "better")
    _text(figure, left, height - 14, f"← {first}", color=COLOURS[first])
    _text(figure, right, height - 14, f"{second} →", color=COLOURS[second], ha="right")


def _limits(ends: Sequence[float]) -> tuple[float, float]:
    """Ends of an axis that holds all of them and zero, with some room."""
    low, high = min([0.0, *ends]), max([0.0, *ends])
    room = 0.06 * (high - low) or 1.0
    return low - room, high + room


def _round_down(share: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten that is no larger; 0 for 0."""
    steps = [step * 10.0**power for power in range(0, -7, -1) for step in (5, 2, 1)]
    return next((round(step, 7) for step in steps if step <= share), 0.0)


@contextmanager
def _settings(title: str) -> Iterator[None]:
    """Matplotlib's own defaults and ours, whatever the user has set; identifiers are hashes salted with `title`."""
    matplotlib = optional("matplotlib")
    plain = {name: value for name, value in matplotlib.rcParamsDefault.items() if "backend" not in name}
    with matplotlib.rc_context({**plain, **_SETTINGS, "svg.hashsalt": title}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # measured as a box; the browser has other fonts
        yield


def _svg(figure: Any, title: str) -> str:
    """The figure as one SVG element, without prolog, namespaces and numbered groups."""
    out = io.StringIO()
    canvas = optional("matplotlib.backends.backend_svg").FigureCanvasSVG(figure)
    canvas.print_svg(out, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", out.getvalue(), flags=re.DOTALL)
    body = re.sub(r"<[^>]*>", lambda tag: _clean(tag[0]), body[body.index("<svg") :])
    head = f'<svg viewBox="0 0 {WIDTH} {figure.get_figheight() * 72:.0f}" role="img" aria-label="{escape(title)}">'
    return re.sub(r"<svg[^>]*>", lambda _: f"{head}\n<title>{escape(title)}</title>", body, count=1).strip()


def _clean(tag: str) -> str:
    """A tag without a number of its own, with the page's fonts and colours."""
    tag = re.sub(r'<g id="[^"]*"', "<g", tag).replace("xlink:href", "href")
    tag = re.sub(r"font-family: [^;\"]*", f"font-family: {_FONT}", tag)
    for name, colour in COLOURS.items():
        tag = tag.replace(f": {colour}", f": var(--{name}, {colour})")
    return tag
