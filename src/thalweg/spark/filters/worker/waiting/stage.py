"""A predicate that waits as a filter of a pipeline."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from thalweg.ordering.overlap import WaitedFor
from thalweg.ordering.types import Booleans
from thalweg.spark.filters.worker.judges import Verdict
from thalweg.spark.filters.worker.view import View
from thalweg.spark.filters.worker.waiting.judge import Waited, Waits


class WaitingStage:
    """Begins to ask for rows, and finishes when the answers are there."""

    def __init__(self, judge: Waits, remaining: Callable[[View, Verdict], Booleans]) -> None:
        self._judge = judge
        self._remaining = remaining  # which rows go on, by a verdict

    @property
    def concurrency(self) -> int:
        """How many rows are asked for at once."""
        return self._judge.waiting.rows_at_once

    def begin(self, rows: View) -> Future[Waited]:
        """Begin to ask for rows."""
        return self._judge.begin(rows)

    def finish(self, rows: View, answers: Waited) -> WaitedFor:
        """Which rows go on."""
        return WaitedFor(self._remaining(rows, answers.verdict), answers.seconds, answers.cost)
