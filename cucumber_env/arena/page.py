"""The report of a tournament as one HTML file: no scripts, nothing fetched from anywhere.

Readable on a phone and a desk, in the light and the dark, and on paper. Figures are drawn by matplotlib, of the extra
`arena` of the package.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from html import escape
from importlib import resources
from typing import Any

from cucumber_env.arena.contents import sections, title
from cucumber_env.arena.document import (
    Block,
    Bullets,
    Cell,
    Facts,
    Figure,
    Grid,
    Legend,
    Listing,
    Number,
    Paragraph,
    Section,
    Text,
    Verbatim,
)

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
{body}
</main>
</body>
</html>
"""


_LONG = 18
"""Letters of a name that takes more than one line on a phone."""

_BREAKS = re.compile(r"(?<=[_:/,=-])(?=[^_:/,=-])")


def page(report: Mapping[str, Any]) -> str:
    """The report as a page of HTML, to be written as UTF-8; the same report gives the same bytes.

    Args:
        report: As `evaluate.py arena --json` writes it; see `cucumber_env.arena.contents`.

    Raises:
        ValueError: the report lacks what every report has.
        ImportError: matplotlib is not installed; says what to install.
    """
    return as_page(title(report), sections(report))


def as_page(title: str, parts: Sequence[Section]) -> str:
    """Any document as a page of HTML; the first part stands before the list of contents."""
    links = "\n".join(f'<li><a href="#{part.name}">{escape(part.title)}</a></li>' for part in parts[1:])
    first, *rest = map(_section, parts)
    body = "\n".join([first, f'<nav aria-label="Contents">\n<ul>\n{links}\n</ul>\n</nav>', *rest])
    return _PAGE.format(title=escape(title), style=_style(), body=body)


@cache
def _style() -> str:
    return (resources.files("cucumber_env.arena") / "page.css").read_text(encoding="utf-8")


def _section(section: Section) -> str:
    blocks = "\n".join(map(_block, section.blocks))
    return f'<section id="{section.name}">\n<h2>{escape(section.title)}</h2>\n{blocks}\n</section>'


def _block(block: Block) -> str:
    writer: Callable[[Any], str] = _WRITERS[type(block)]
    return writer(block)


def _paragraph(block: Paragraph) -> str:
    return f'<p class="alert" role="note">{_text(block.text)}</p>' if block.alert else f"<p>{_text(block.text)}</p>"


def _bullets(block: Bullets) -> str:
    return "<ul>\n" + "\n".join(f"<li>{_text(item)}</li>" for item in block.items) + "\n</ul>"


def _facts(block: Facts) -> str:
    rows = (f"<div><dt>{escape(term)}</dt><dd>{_text(text)}</dd></div>" for term, text in block.rows)
    return "<dl>\n" + "\n".join(rows) + "\n</dl>"


def _listing(block: Listing) -> str:
    return f"<pre><code>{escape(block.text)}</code></pre>"


def _figure(block: Figure) -> str:
    return f"<figure>\n{block.draw()}\n<figcaption>{_text(block.text)}</figcaption>\n</figure>"


def _legend(block: Legend) -> str:
    """Words, and swatches from worst to best."""
    swatches = "".join(f"<span{_shade(shade)}>{escape(label)}</span>" for label, shade in block.steps)
    words = f"<p>{_text(block.text)}</p>"
    return f'{words}\n<p class="legend"><b>worse</b> <span class="scale">{swatches}</span> <b>better</b></p>'


def _grid(block: Grid) -> str:
    """A table in a box of its own, which scrolls sideways if it must."""
    words = frozenset(range(block.left)) | block.words
    heads = "".join(
        f'<th scope="col"{_class(number in words)}>{_inline(head)}</th>' for number, head in enumerate(block.heads)
    )
    widths = [0 if block.matrix else _room(column) for column in zip(*block.rows, strict=True)]
    rows = "\n".join(
        "<tr>" + "".join(_cell(cell, number, block.left, words, widths) for number, cell in enumerate(row)) + "</tr>"
        for row in block.rows
    )
    title = escape(block.title)
    long = any(len(cell) > _LONG for row in block.rows for cell in row[: block.left] if isinstance(cell, Verbatim))
    kinds = " ".join(["matrix"] * block.matrix + ["long"] * long)
    caption = "" if block.folded else f"<caption><span>{title}</span></caption>\n"
    table = (
        f'<div class="scroll" role="region" aria-label="{title}" tabindex="0">\n<table class="{kinds}">\n{caption}'
        f"<thead>\n<tr>{heads}</tr>\n</thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n</div>"
    )
    return f"<details>\n<summary>{title}</summary>\n{table}\n</details>" if block.folded else table


_WRITERS: dict[type, Callable[[Any], str]] = {
    Paragraph: _paragraph,
    Bullets: _bullets,
    Facts: _facts,
    Listing: _listing,
    Grid: _grid,
    Figure: _figure,
    Legend: _legend,
}


def _room(column: Sequence[Cell]) -> int:
    """Digits in which every interval of a column finds room, so that the numbers before them align."""
    return max(len(cell.interval) if isinstance(cell, Number) else 0 for cell in column) - 1


def _cell(cell: Cell, column: int, left: int, words: frozenset[int], widths: Sequence[int]) -> str:
    if isinstance(cell, Number):
        room = f' style="--room:{widths[column]}ch"' if widths[column] > 0 else ""
        interval = f"<small{room}>{escape(cell.interval)}</small>" if cell.interval else ""
        return f"<td{_shade(cell.shade)}>{escape(cell.text)}{interval}</td>"
    if column < left:
        return f'<th scope="row"{_class(True)}>{_inline(cell)}</th>'
    return f"<td{_class(column in words)}>{_inline(cell)}</td>"


def _class(words: bool) -> str:
    return ' class="words"' if words else ""


def _shade(shade: float) -> str:
    """Class and strength of the colour of a cell."""
    if not shade:
        return ""
    return f' class="{"good" if shade > 0 else "bad"}" style="--shade:{abs(shade):.2f}"'


def _text(text: Text) -> str:
    return "".join(map(_inline, text))


def _inline(text: str) -> str:
    """Text for HTML; names may break after marks such as ``_`` and ``/`` before they break anywhere."""
    if not isinstance(text, Verbatim):
        return escape(text)
    return f"<code>{'<wbr>'.join(map(escape, re.split(_BREAKS, text)))}</code>"
