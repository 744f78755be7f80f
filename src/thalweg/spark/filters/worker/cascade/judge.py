"""The judge of a cascade."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.ordering.types import Booleans, Floats
from thalweg.spark.filters.worker.cascade.proxy import Proxy, ProxyDecision
from thalweg.spark.filters.worker.judges import Counts, Judge, PredicateError, Takes, Verdict, verdict_of
from thalweg.spark.filters.worker.values import python_values
from thalweg.spark.filters.worker.view import View
from thalweg.spark.filters.worker.waiting.futures import then
from thalweg.spark.filters.worker.waiting.judge import Waited, Waits
from thalweg.spark.filters.worker.waiting.options import Waiting


class Score:
    """A function that scores rows: the higher, the likelier the costly predicate keeps the row."""

    def __init__(self, name: str, function: Callable[..., Any], takes: Takes, columns: Sequence[int]) -> None:
        self.name = name
        self.function = function
        self._takes = takes
        self._columns = tuple(columns)

    def __call__(self, view: View) -> Floats:
        """A score for each row; NaN where there is none, or where the function raises: there the score is not sure."""
        columns = [view.column(number) for number in self._columns]
        try:
            values = self._call(columns)
        except Exception:  # noqa: BLE001 - any error of the user's function
            if len(view) == 1:
                return np.array([np.nan])
            half = len(view) // 2
            return np.concatenate([self(view[:half]), self(view[half : len(view)])])
        return self._checked(values, len(view))

    def _call(self, columns: Sequence[pa.Array]) -> Any:  # noqa: ANN401 - of the user's function
        if self._takes == "rows":
            return [self.function(*row) for row in zip(*map(python_values, columns), strict=True)]
        if self._takes == "numpy":
            return self.function(*(column.to_numpy(zero_copy_only=False) for column in columns))
        return self.function(*(column.to_pandas() if self._takes == "pandas" else column for column in columns))

    def _checked(self, values: Any, count: int) -> Floats:  # noqa: ANN401 - of the user's function
        if isinstance(values, pa.ChunkedArray | pa.Array):
            values = values.to_numpy(zero_copy_only=False)
        try:
            scores = np.asarray(values, np.float64)  # None becomes NaN
        except (TypeError, ValueError) as error:
            raise PredicateError(f"the score {self.name!r} returned values that are no numbers: {error}") from None
        if scores.shape != (count,):
            returned = "a single value" if scores.ndim == 0 else f"values of shape {scores.shape}"
            raise PredicateError(
                f"the score {self.name!r} returned {returned} for {count} rows: return a number for each row, or "
                f"declare it with tw.predicate(..., takes='rows') if it scores one row at a time"
            )
        return scores


class CascadeJudge:
    """A score where it is sure, else a judge."""

    def __init__(self, name: str, score: Score, costly: Judge, proxy: Proxy) -> None:
        self.name = name
        self.score = score
        self.costly = costly
        self.proxy = proxy

    @property
    def repeated(self) -> int:
        """Rows for which the costly judge did not ask."""
        return self.costly.repeated

    def adopt(self, fresh: CascadeJudge) -> None:
        """Go on with the functions of a new task; the thresholds stay as learnt."""
        self.score = fresh.score
        self.costly.adopt(fresh.costly)

    def begin_task(self) -> None:
        """Let the costly judge prepare."""
        self.costly.begin_task()

    def counts(self) -> Counts:
        """What the score decided, and what the costly judge tells."""
        return {self.name: self.proxy.report()} | self.costly.counts()

    def judge(self, view: View) -> Verdict:
        """Judge each row."""
        scores = self.score(view)
        split = self.proxy.split(scores)
        if not split.asked.any():
            return Verdict(split.accepted)
        return self._together(scores, split, self.costly.judge(view[np.flatnonzero(split.asked)]))

    def _together(self, scores: Floats, split: ProxyDecision, verdict: Verdict) -> Verdict:
        """The verdicts of both; the proxy learns from the costly judge's."""
        places = np.flatnonzero(split.asked)
        true = split.accepted.copy()
        true[places] = verdict.true
        null: Booleans | None = None
        if verdict.null is not None:
            null = np.zeros(true.size, np.bool_)
            null[places] = verdict.null
        answered = slice(None) if verdict.failed is None else ~verdict.failed
        self.proxy.note(scores[places][answered], verdict.true[answered])
        reasons = {int(places[row]): reason for row, reason in (verdict.reasons or {}).items()}
        return verdict_of(true, null, reasons)


class WaitingCascadeJudge(CascadeJudge):
    """A cascade whose costly predicate waits for a service."""

    costly: Waits

    @property
    def waiting(self) -> Waiting:
        """How the costly predicate is asked."""
        return self.costly.waiting

    def begin(self, view: View) -> Future[Waited]:
        """Score all rows, and begin to ask for those that the score does not decide."""
        scores = self.score(view)
        split = self.proxy.split(scores)
        if not split.asked.any():
            done: Future[Waited] = Future()
            done.set_result(Waited(Verdict(split.accepted), 0.0, None))
            return done
        return then(
            self.costly.begin(view[np.flatnonzero(split.asked)]),
            lambda waited: waited._replace(verdict=self._together(scores, split, waited.verdict)),
        )

    def report(self) -> dict[str, Any]:
        """The counts of calls and of the score together."""
        return self.costly.report() | self.proxy.report()

    def counts(self) -> Counts:
        """The calls of the costly predicate under the name of the cascade."""
        return {self.name: self.report()}
