"""What people see on a terminal, and plainly in a pipe: the progress of a training, and tables."""

from __future__ import annotations

import time
from types import TracebackType

import rich.box
import rich.table
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.text import Text

from cucumber_env.arena import SCORES, Table

SECONDS_BETWEEN_LINES = 10.0


class Progress:
    """Shows updates done, rate, time left, entropy and strength.

    Args:
        total: Updates of the run.
        done: Updates done before.
        field: The policy among which strength is measured.
        console: Where to show it.
    """

    def __init__(self, total: int, *, done: int = 0, field: str = "highest", console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self.total, self.first, self.field = total, done, field
        self.strength = "strength –"
        self.started = self.shown = time.monotonic()
        self.bar = Bar(
            TextColumn("training"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        self.task = self.bar.add_task("training", total=total, completed=done)
        self.live = Live(self.bar, console=self.console, transient=False) if self.console.is_terminal else None

    def __enter__(self) -> Progress:
        if self.live:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live:
            self.live.stop()

    def show(self, done: int, metrics: dict[str, float]) -> None:
        """Bring the display to `done` updates with the latest metrics."""
        for score in SCORES.values():
            if f"eval/{score}" in metrics:
                mean, half_width = metrics[f"eval/{score}"], metrics["eval/half_width"]
                self.strength = f"{score} against {self.field} {mean:.2f} ± {half_width:.2f}"
        facts = f"{metrics['charts/SPS']:,.0f} turns/s · entropy {metrics['losses/entropy']:.2f} · {self.strength}"
        self.bar.update(self.task, completed=done)
        if self.live:
            self.live.update(Group(self.bar, Text(facts, style="dim")))
            return
        now = time.monotonic()
        if now - self.shown < SECONDS_BETWEEN_LINES and done < self.total:
            return
        self.shown = now
        left = (now - self.started) / max(done - self.first, 1) * (self.total - done)
        self.console.print(f"update {done}/{self.total} · {facts} · {left:.0f} s left", soft_wrap=True)


def show(table: Table, console: Console | None = None) -> None:
    """A table on stdout (or on `console`): drawn to fit a terminal, plain lines elsewhere."""
    console = console or Console()
    if not console.is_terminal:
        print(table, file=console.file)
        return
    numbers = [max(map(len, column)) for column in zip(*table.rows, strict=True)][table.left :]
    too_wide = sum(numbers) + 2 * len(numbers) + 20 > console.width
    drawn = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column, head in enumerate(table.heads):
        if column < table.left:
            drawn.add_column(head, overflow="fold")
        else:
            drawn.add_column(head, justify="right", no_wrap=True)
    for row in table.rows:  # as Text: a policy's name may look like markup
        drawn.add_row(*(Text(cell.replace(" ± ", "\n± ") if too_wide else cell) for cell in row))
    console.print(Text(table.title), drawn)
