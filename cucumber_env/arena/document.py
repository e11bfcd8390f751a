"""What a report is made of before it is Markdown or HTML: sections of paragraphs, tables and figures.

Text is a tuple of parts; a part that is `Verbatim` (names, commands) is set in a typewriter font. Nothing here is
escaped: whoever writes it out does that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


class Verbatim(str):
    """Text that is shown letter by letter in a typewriter font."""

    __slots__ = ()


Text = tuple[str, ...]
"""Parts of running text, `Verbatim` or plain."""


@dataclass(frozen=True)
class Number:
    """A number in a table.

    Attributes:
        text: The number.
        interval: The interval it comes with, or empty.
        shade: How good (to 1) or bad (to -1) it is; 0 leaves the cell uncoloured.
    """

    text: str
    interval: str = ""
    shade: float = 0.0


Cell = str | Number


@dataclass(frozen=True)
class Paragraph:
    """Running text; `alert` sets off what a reader must not miss."""

    text: Text
    alert: bool = False


@dataclass(frozen=True)
class Bullets:
    """A list of points."""

    items: Sequence[Text]


@dataclass(frozen=True)
class Facts:
    """Terms and what there is to say of them."""

    rows: Sequence[tuple[str, Text]]


@dataclass(frozen=True)
class Listing:
    """Lines for a shell."""

    text: str


@dataclass(frozen=True)
class Grid:
    """A table.

    Attributes:
        title: What it shows.
        heads: Names of the columns.
        rows: Cells by row, as many as heads.
        left: The first columns, which name the row.
        words: Numbers of the other columns that hold words.
        matrix: Whether columns are named by policies as rows are, and cells are coloured.
        folded: Whether a page shows it only when asked to.
    """

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    left: int = 1
    words: frozenset[int] = frozenset()
    matrix: bool = False
    folded: bool = False


@dataclass(frozen=True)
class Figure:
    """A picture, drawn when it is needed.

    Attributes:
        title: What it shows.
        text: How to read it, and what it says in words for who cannot see it.
        draw: Returns it as SVG.
    """

    title: str
    text: Text
    draw: Callable[[], str]


@dataclass(frozen=True)
class Legend:
    """What the colours of a matrix mean: in words, and labels and shades from worst to best."""

    text: Text
    steps: Sequence[tuple[str, float]]


Block = Paragraph | Bullets | Facts | Listing | Grid | Figure | Legend


@dataclass(frozen=True)
class Section:
    """A part of a report: an identifier for links, a title and what it holds."""

    name: str
    title: str
    blocks: Sequence[Block] = field(default_factory=tuple)


def printable(text: str) -> str:
    """`text` on one line, without what no file or page should hold: control characters and halves of pairs."""
    return "".join(letter if letter.isprintable() else " " for letter in text).strip() or "(no name)"


def listed(names: Sequence[str]) -> Text:
    """Names in a sentence: one, two and three."""
    parts: list[str] = []
    for number, name in enumerate(names):
        if number:
            parts.append(" and " if number == len(names) - 1 else ", ")
        parts.append(Verbatim(name))
    return tuple(parts)


def named(name: str) -> Verbatim:
    """A policy's name."""
    return Verbatim(printable(name))


def all_named(names: Sequence[str]) -> list[str]:
    """Names of policies."""
    return [named(name) for name in names]


def place(rank: Sequence[int]) -> str:
    """A rank, or the ranks of a tie, from the first and the last."""
    return str(rank[0]) if rank[0] == rank[1] else f"{rank[0]}–{rank[1]}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """So many of something."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def minus(value: float, digits: int = 3) -> str:
    """A number with a true minus sign and never a negative zero."""
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")


def signed(value: float, digits: int = 3) -> str:
    """The same with a plus sign if it is positive."""
    text = minus(value, digits)
    return text if value <= 0 or not round(value, digits) else f"+{text}"


def number(found: Mapping[str, float], *, plus: bool = False) -> Number:
    """An estimate with its interval."""
    write = signed if plus else minus
    return Number(write(found["mean"]), f"{write(found['low'])} to {write(found['high'])}")


def half(found: Mapping[str, float]) -> str:
    """Half the width of an interval, or both ends where it leans to one side."""
    low, high = found["mean"] - found["low"], found["high"] - found["mean"]
    return f"± {high:.3f}" if abs(high - low) < 5e-4 else f"{minus(found['low'])} to {minus(found['high'])}"


def percent(found: Mapping[str, float]) -> Number:
    """An estimate of a share, in per cent."""
    low, mean, high = (f"{100 * found[key]:.1f}" for key in ("low", "mean", "high"))
    return Number(f"{mean} %", f"{low} to {high}")
