"""How a training run shows itself: a live line on a terminal, plain lines in a pipe."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

SECONDS_BETWEEN_LINES = 10.0


class Progress:
    """Shows updates done, rate, time left, entropy and strength.

    Args:
        total: Updates of the run.
        done: Updates done before.
        console: Where to show it.
    """

    def __init__(self, total: int, *, done: int = 0, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self.total, self.first = total, done
        self.strength = "strength –"
        self.started = self.shown = time.monotonic()
        self.bar = Bar(
            TextColumn("training"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[facts]}"),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.task = self.bar.add_task("training", total=total, completed=done, facts="")

    def __enter__(self) -> Progress:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    def show(self, done: int, metrics: dict[str, float]) -> None:
        """Bring the display to `done` updates with the latest metrics."""
        if "eval/penalty" in metrics:
            self.strength = f"against highest {metrics['eval/penalty']:.2f} ± {metrics['eval/half_width']:.2f}"
        facts = f"{metrics['charts/SPS']:,.0f} turns/s · entropy {metrics['losses/entropy']:.2f} · {self.strength}"
        self.bar.update(self.task, completed=done, facts=facts)
        now = time.monotonic()
        if self.console.is_terminal or (now - self.shown < SECONDS_BETWEEN_LINES and done < self.total):
            return
        self.shown = now
        left = (now - self.started) / max(done - self.first, 1) * (self.total - done)
        self.console.print(f"update {done}/{self.total} · {facts} · {left:.0f} s left", soft_wrap=True)
