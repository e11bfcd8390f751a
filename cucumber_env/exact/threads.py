"""Work on independent pieces of a tree in several threads; compiled code runs outside of the interpreter lock."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np

Job = TypeVar("Job")
Result = TypeVar("Result")


def check_threads(threads: int | None) -> int:
    """How many threads to work in: as asked, or one for each core that this process may use.

    Raises:
        ValueError: not an integer from 1 on.
    """
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise ValueError(f"threads={threads!r} must be an integer ≥ 1, or None for one a core")
    return int(threads)


def in_order(work: Callable[[Job], Result], jobs: Iterable[Job], threads: int) -> Iterator[Result]:
    """The results of `work` on all jobs, in their order.

    The jobs are made in the thread of the caller, a few ahead of the work.
    """
    if threads == 1:
        yield from map(work, jobs)
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for job in jobs:
            waiting.append(pool.submit(work, job))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
