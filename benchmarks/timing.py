"""Rates that can be compared: several variants measured in turn, medians with their spread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

Loop = Callable[[], int]
"""A call that plays on for a while and returns the number of steps (turns, plays) it took."""


def steps_per_second(*, loop: Loop, seconds: float) -> float:
    """Rate of `loop`, called until `seconds` have passed; at least once."""
    steps = 0
    start = time.perf_counter()
    while True:
        steps += loop()
        elapsed = time.perf_counter() - start
        if elapsed >= seconds:
            return steps / elapsed


def interleaved(*, loops: Mapping[str, Loop], seconds: float, repeats: int) -> dict[str, list[float]]:
    """`repeats` rates of every loop, each called once before the clock runs.

    The loops take turns, so that a busy moment of the machine falls on all of them and the ratio of
    two rates with the same index is worth more than the ratio of two medians.
    """
    for loop in loops.values():
        loop()
    rates: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(repeats):
        for name, loop in loops.items():
            rates[name].append(steps_per_second(loop=loop, seconds=seconds))
    return rates


def summary(values: list[float]) -> dict[str, float]:
    """Median, min and max of repeated measurements, to four significant digits."""
    numbers = {"median": statistics.median(values), "min": min(values), "max": max(values)}
    return {name: float(f"{value:.4g}") for name, value in numbers.items()}


def ratio(numerators: list[float], denominators: list[float]) -> dict[str, float]:
    """Summary of the ratios of measurements taken side by side."""
    return summary([a / b for a, b in zip(numerators, denominators, strict=True)])
