"""Shows an act while it runs: a table that grows in a terminal, and plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from thalweg_lab.demo.in_turns import PLAIN, THALWEG, Turn

MOST_LINES = 10  # of the table
BAR = 16  # characters of the longest bar: the table fits into 80 columns
WARM_UP = "warms up, not counted"


class TellStep(Protocol):
    """A function that shows a micro-batch."""

    def __call__(self, step: Turn, note: str) -> None:
        """Show a micro-batch, and a note on what Thalweg does."""


@contextmanager
def told_steps(console: Console) -> Iterator[TellStep]:
    """A function that shows each micro-batch of an act as it is done."""
    if not console.is_terminal:
        yield lambda step, note: console.print(Text(line_of(step, note)), soft_wrap=True)
        return
    seen: list[tuple[Turn, str]] = []
    with Live(console=console, refresh_per_second=4) as live:

        def tell(step: Turn, note: str) -> None:
            seen.append((step, note))
            live.update(_picture(seen))

        yield tell


def line_of(step: Turn, note: str) -> str:
    """A micro-batch as one line of text.

    >>> print(line_of(Turn(3, 1, 40_000, {PLAIN: 2.0, THALWEG: 0.5}), "order: a, b"))
      phase 2, micro-batch 3: plain Spark 20,000 rows/s, Thalweg 80,000 rows/s, 4.0x; order: a, b
    """
    rates = ", ".join(f"{name} {step.rate(name):,.0f} rows/s" for name in (PLAIN, THALWEG))
    ratio = f"{step.ratio:.1f}x" if step.number else WARM_UP
    return f"  phase {step.phase + 1}, micro-batch {step.number}: {rates}, {ratio}; {note}"


def _picture(seen: list[tuple[Turn, str]]) -> Group:
    table = Table("phase", f"{PLAIN}, rows/s", f"{THALWEG}, rows/s", "", box=None, padding=(0, 2, 0, 0))
    fastest = max(step.rate(name) for step, _ in seen for name in (PLAIN, THALWEG))
    for step, _ in seen[-MOST_LINES:]:
        cells = []
        for name, style in ((PLAIN, "dim"), (THALWEG, "bold cyan")):
            bar = "█" * max(round(BAR * step.rate(name) / fastest), 1)
            cells.append(Text.assemble((f"{step.rate(name):>9,.0f} ", style), (bar, style)))
        table.add_row(str(step.phase + 1), *cells, f"{step.ratio:.1f}x" if step.number else "warm-up")
    return Group(table, Text(seen[-1][1], style="italic"))
