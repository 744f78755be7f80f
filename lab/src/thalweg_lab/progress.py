"""Tells how far a long command is: a bar in a terminal, and plain lines elsewhere, such as in the log of a job.

Must not know what the command does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

LINE_SECONDS = 30.0  # between two lines at most, so that a reader knows that the command still works

Tell = Callable[[str, int, int, str], None]  # a part of the command, the steps done, all steps, and the step that runs


@contextmanager
def told_progress(
    console: Console,
    *,
    line_seconds: float = LINE_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Tell]:
    """A function that tells the progress of the parts of a command.

    >>> with told_progress(Console(), clock=lambda: 0.0) as tell:
    ...     tell("filters", 0, 2, "python-costly")
    ...     tell("filters", 2, 2, "")
    0:00 filters python-costly: 0 of 2
    0:00 filters: 2 of 2
    """
    if console.is_terminal:
        with _bars(console) as tell:
            yield tell
    else:
        lines = _Lines(console, line_seconds, clock)
        try:
            yield lines.tell
        finally:
            lines.close()


@contextmanager
def _bars(console: Console) -> Iterator[Tell]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        tasks = {}

        def tell(part: str, done: int, total: int, step: str = "") -> None:
            if part not in tasks:
                tasks[part] = progress.add_task(part, total=total)
            progress.update(tasks[part], completed=done, total=total, description=f"{part} {step}".strip())

        yield tell


class _Lines:
    """A line when another step begins, and else every `line_seconds`, also if nothing is told meanwhile."""

    def __init__(self, console: Console, line_seconds: float, clock: Callable[[], float]) -> None:
        self._console = console
        self._line_seconds = line_seconds
        self._clock = clock
        self._start = clock()
        self._lock = threading.Lock()
        self._latest: dict[str, tuple[int, int, str]] = {}  # by part
        self._printed_at = self._start
        self._closed = threading.Event()
        threading.Thread(target=self._repeat, daemon=True).start()

    def tell(self, part: str, done: int, total: int, step: str = "") -> None:
        with self._lock:
            before = self._latest.get(part)
            self._latest[part] = done, total, step
            is_new = before is None or before[2] != step or (done == total and before[0] != total)
            if is_new or self._clock() - self._printed_at >= self._line_seconds:
                self._print(part)

    def close(self) -> None:
        self._closed.set()

    def _repeat(self) -> None:
        while not self._closed.wait(self._line_seconds):
            with self._lock:
                unfinished = [part for part, (done, total, _) in self._latest.items() if done < total]
                if unfinished and self._clock() - self._printed_at >= self._line_seconds:
                    for part in unfinished:
                        self._print(part)

    def _print(self, part: str) -> None:
        done, total, step = self._latest[part]
        minutes, seconds = divmod(int(self._clock() - self._start), 60)
        name = f"{part} {step}".strip()
        self._printed_at = self._clock()
        line = f"{minutes}:{seconds:02d} {name}: {done:,} of {total:,}"
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)
