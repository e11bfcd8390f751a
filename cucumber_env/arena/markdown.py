"""The report of a tournament as Markdown (GitHub's kind): text and tables, without pictures."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
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


def markdown(report: Mapping[str, Any]) -> str:
    """The report as Markdown.

    Args:
        report: As `evaluate.py arena --json` writes it; see `cucumber_env.arena.contents`.

    Raises:
        ValueError: the report lacks what every report has.
    """
    return as_markdown(title(report), sections(report))


def as_markdown(title: str, parts: Sequence[Section]) -> str:
    """Any document as Markdown."""
    lines = [f"# {_escape(title)}"]
    for section in parts:
        lines.append(f"## {_escape(section.title)}")
        lines += [text for block in section.blocks if (text := _block(block))]
    return "\n\n".join(lines) + "\n"


def _block(block: Block) -> str:
    writer: Callable[[Any], str] = _WRITERS[type(block)]
    return writer(block)


def _paragraph(block: Paragraph) -> str:
    return f"> {_text(block.text)}" if block.alert else _text(block.text)


def _bullets(block: Bullets) -> str:
    return "\n".join(f"- {_text(item)}" for item in block.items)


def _facts(block: Facts) -> str:
    return "\n".join(f"- **{_escape(term)}**: {_text(text)}" for term, text in block.rows)


def _listing(block: Listing) -> str:
    return "\n".join(f"    {line}" for line in block.text.splitlines())


def _grid(block: Grid) -> str:
    columns = range(len(block.heads))
    lines = [[_cell(head) for head in block.heads]]
    lines.append(["---" if column < block.left or column in block.words else "---:" for column in columns])
    lines += [[_cell(cell) for cell in row] for row in block.rows]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{_escape(block.title)}:\n\n{table}"


def _figure(block: Figure) -> str:
    return ""


def _legend(block: Legend) -> str:
    return ""


_WRITERS: dict[type, Callable[[Any], str]] = {
    Paragraph: _paragraph,
    Bullets: _bullets,
    Facts: _facts,
    Listing: _listing,
    Grid: _grid,
    Figure: _figure,
    Legend: _legend,
}


def _cell(cell: Cell) -> str:
    """Text of a cell; a bar would end it even inside of code."""
    if isinstance(cell, Number):
        interval = cell.interval if cell.interval.startswith("±") else f"({cell.interval})"
        return f"{cell.text} {interval}" if cell.interval else cell.text
    return _code(cell).replace("|", "\\|") if isinstance(cell, Verbatim) else _escape(cell)


def _text(text: Text) -> str:
    """Running text on one line."""
    return "".join(_code(part) if isinstance(part, Verbatim) else _escape(part) for part in text).strip()


def _code(text: str) -> str:
    """A code span, fenced by more backticks than it holds in a row."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    room = " " if len(fence) > 1 else ""
    return f"{fence}{room}{text}{room}{fence}"


def _escape(text: str) -> str:
    """Text in which no letter means anything to Markdown or HTML."""
    return re.sub(r"([\\`*_\[\]|~#])", r"\\\1", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
