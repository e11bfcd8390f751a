"""The pictures of `docs/exact.md`, drawn from the results of `benchmarks.exact_study`; for narrow screens too."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from cucumber_env.baselines import BASELINES

Results = dict[str, dict[str, Any]]

WIDTH = 4.6
"""Inches: text of ten points is then readable on a telephone."""

STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "figure.dpi": 150,
    "figure.constrained_layout.use": True,
}

INKS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")
"""Colours that colour-blind people tell apart."""


def draw(results: Results, folder: Path) -> None:
    """All pictures, as PNG files in `folder`."""
    with plt.rc_context(STYLE):
        for name, (picture, sections) in PICTURES.items():
            figure = picture({section: results[section] for section in sections})
            save(figure, folder / f"{name}.png", digest(results, name))
            plt.close(figure)


def digest(results: Results, name: str) -> str:
    """SHA-256 of the results that a picture is drawn from; its file holds it under `DIGEST`."""
    shown = {section: results[section] for section in PICTURES[name][1]}
    return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()


def save(figure: plt.Figure, path: Path, digest: str) -> None:
    """A small PNG file, 255 colours are enough, that says from which results it was drawn."""
    drawn, facts = io.BytesIO(), PngInfo()
    facts.add_text(DIGEST, digest)
    figure.savefig(drawn, format="png")
    Image.open(drawn).convert("RGB").quantize(255).save(path, optimize=True, pnginfo=facts)


DIGEST = "results_sha256"
"""Keyword of the text in a PNG file by which a stale picture is known."""


def values(results: Results) -> plt.Figure:
    """Value to the leader by hand size, for every game that a preset is, and for the small deck."""
    figure, axes = plt.subplots(figsize=(WIDTH, 4.0))
    lines: dict[str, dict[int, float]] = {}
    for key, found in results["values"].items():
        name, cards = key.rsplit(" ", 1)
        if "=" not in name:
            lines.setdefault(name, {})[int(cards)] = (found["low"] + found["high"]) / 2
    for (name, line), ink in zip(lines.items(), INKS, strict=True):
        axes.plot(
            list(line), list(line.values()), "o-", color=ink, label=name, linewidth=2 if name == "cucumber" else 1
        )
    small = {int(cards): (found["low"] + found["high"]) / 2 for cards, found in results["reduced"].items()}
    axes.plot(list(small), list(small.values()), "s--", color="black", label="cucumber, 7 to A", linewidth=1)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set(xlabel="cards each", ylabel="points to the leader", xticks=range(1, 6))
    figure.legend(fontsize=8, ncols=3, loc="outside upper center")
    return figure


def curves(results: Results) -> plt.Figure:
    """NashConv of the average strategy against iterations, and their seconds, for all schemes."""
    lines: dict[int, dict[str, list[dict[str, float]]]] = {}
    for key, points in results["curves"].items():
        scheme, cards = key.split(" ")
        lines.setdefault(int(cards), {})[scheme] = points
    figure, panels = plt.subplots(len(lines), 1, figsize=(WIDTH, 3.2 * len(lines)))
    for axes, (cards, schemes) in zip(np.atleast_1d(panels), sorted(lines.items()), strict=True):
        for (scheme, points), ink in zip(schemes.items(), INKS, strict=False):
            x, y = ([point[name] for point in points] for name in ("iterations", "nash_conv"))
            axes.loglog(x, y, "o-", color=ink, label=scheme, markersize=4)
        axes.set(xlabel=f"iterations, {cards} cards", ylabel="NashConv (points)")
        last = schemes["dcfr"][-1]
        each = last["seconds"] / last["iterations"]
        upper = axes.secondary_xaxis("top", functions=(lambda n, each=each: n * each, lambda s, each=each: s / each))
        upper.set_xlabel("seconds (dcfr)")
        axes.legend(fontsize=9)
    return figure


def policies(results: Results) -> plt.Figure:
    """NashConv of every scripted policy by hand size, and what it loses to the solution."""
    figure, panels = plt.subplots(2, 1, figsize=(WIDTH, 5.0), sharex=True)
    names = BASELINES[::-1]
    for axes, fact in zip(panels, ("nash_conv", "loss"), strict=True):
        for cards, ink, mark in zip((2, 3, 4), INKS, "os^", strict=False):
            found = [max(results["policies"][f"{name} {cards}"][fact], LEAST) for name in names]
            axes.plot(found, range(len(names)), mark, color=ink, label=f"{cards} cards", alpha=0.85)
        axes.set(xscale="log", xlim=(LEAST * 0.8, 40), ylim=(-0.6, len(names) - 0.4))
        axes.set_yticks(range(len(names)), names)
        axes.set_xticks((LEAST, 0.1, 1, 10), ("0", "0.1", "1", "10"))
    panels[0].set_title("NashConv", fontsize=10)
    panels[1].set_title("loss to the solution", fontsize=10)
    panels[1].set_xlabel("points a round")
    panels[0].legend(fontsize=8, loc="upper left")
    return figure


LEAST = 0.01
"""Points at which zero is drawn on logarithmic axes; nothing else is below."""


def styles(results: Results) -> plt.Figure:
    """Which of the legal cards the solution plays, by hand size, trick and role."""
    rows: list[tuple[str, list[float]]] = []
    for cards in ("2", "3", "4", "small deck 5"):
        for trick, roles in sorted(results["play"][cards]["styles"].items()):
            for role in sorted(roles, key=("leads", "follows").index):
                shares = [share / sum(roles[role]) for share in roles[role]]
                rows.append((f"{cards[-1]} cards, trick {trick}, {role}", shares))
    figure, axes = plt.subplots(figsize=(WIDTH, 0.27 * len(rows) + 0.9))
    for row, (_, shares) in enumerate(reversed(rows)):
        left = 0.0
        for share, ink in zip(shares, ("#56b4e9", "#e0c060", "#d55e00"), strict=True):
            axes.barh(row, share, left=left, color=ink)
            left += share
    axes.set_yticks(range(len(rows)), [name for name, _ in reversed(rows)], fontsize=8)
    axes.set(xlim=(0, 1), ylim=(-0.6, len(rows) - 0.4), xlabel="share of its decisions")
    axes.grid(visible=False)
    for place, (word, ink) in enumerate(
        zip(("lowest legal", "between", "highest legal"), ("#56b4e9", "#e0c060", "#d55e00"), strict=True)
    ):
        axes.text(place * 0.4 - 0.35, 1.01, f"■ {word}", color=ink, transform=axes.transAxes, fontsize=9, va="bottom")
    return figure


def leading(results: Results) -> plt.Figure:
    """What leading rather than following is worth, by lowest and highest card of the hand."""
    figure, panels = plt.subplots(3, 1, figsize=(WIDTH, 11.4))
    for axes, cards in zip(panels, ("2", "3", "4"), strict=True):
        heat_map(axes, results["play"][cards]["leading"], f"{cards} cards: points gained by leading")
    return figure


def heat_map(axes: Axes, found: dict[str, Any], title: str) -> None:
    """One panel of `leading`."""
    mean = np.array(found["by_lowest_and_highest"], float).T
    axes.imshow(mean, cmap="RdBu", vmin=-13, vmax=13, origin="lower", aspect="auto")
    for (high, low), value in np.ndenumerate(mean):
        if not np.isnan(value):
            ink = "white" if abs(value) > 8 else "black"
            axes.text(low, high, f"{round(value, 1) + 0.0:.1f}", ha="center", va="center", fontsize=6.5, color=ink)
    ticks = range(len(found["ranks"]))
    axes.set_xticks(ticks, list(found["ranks"]))
    axes.set_yticks(ticks, list(found["ranks"]))
    axes.set(xlabel="lowest card", ylabel="highest card")
    axes.set_title(title, fontsize=10)
    axes.grid(visible=False)


PICTURES = {
    "values": (values, ("values", "reduced")),
    "curves": (curves, ("curves",)),
    "policies": (policies, ("policies",)),
    "styles": (styles, ("play",)),
    "leading": (leading, ("play",)),
}
"""What draws each file, from which sections of the results."""
