"""A standing query of a session, as the user holds it: what it is, and what it is told to do while it runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from thalweg.charts import SCHEDULERS, ByChart, PlanScheduler, TupleRates, Weights
from thalweg.registry import find
from thalweg.sealed import SavedStateError
from thalweg.spark.session.engine import ServedQuery
from thalweg.spark.session.input_sizes import InputSizes
from thalweg.spark.session.logs import RoundService
from thalweg.spark.session.memory import weights_under
from thalweg.spark.session.position import QueryPosition
from thalweg.spark.session.program import ProgramQuery
from thalweg.spark.session.schedules import scheduler_of
from thalweg.spark.session.sinks import MemorySink, Sink
from thalweg.sql.rounds import first_unseen

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

Remove = Callable[["StandingQuery"], None]


@dataclass(frozen=True)
class QueryOptions:
    """How the plans of a query are chosen."""

    weights: Weights
    partitions: int
    scheduler: type[PlanScheduler]

    @classmethod
    def checked(cls, rate_weight: float, memory_weight: float, partitions: object, scheduler: str) -> QueryOptions:
        """The options that a user wrote."""
        kind = find(scheduler, SCHEDULERS, "scheduler")
        return cls(Weights(rate_weight, memory_weight), checked_partitions(partitions), kind)


class StandingQuery:
    """A query of a session. What it is told takes effect with the next micro-batch.

    `session.query` makes it.
    """

    def __init__(
        self,
        compiled: ProgramQuery,
        name: str,
        sink: Sink,
        schema: StructType,
        sizes: InputSizes,
        options: QueryOptions,
        remove: Remove,
    ) -> None:
        self.name = name
        self.compiled = compiled
        self.sink = sink
        self.schema = schema
        self.sizes = sizes
        self.weights = options.weights
        self.partitions = options.partitions
        self.is_paused = False
        self._scheduler = options.scheduler
        self._is_resumed = False
        self._is_known = False  # whether it was compared with where a session before has left it
        self._is_removed = False
        self._remove = remove

    @property
    def text(self) -> str:
        """The query as it was written."""
        return self.compiled.query.text

    def results(self) -> pa.Table | None:
        """The results so far, of a query that keeps them in memory; None while there are none."""
        if not isinstance(self.sink, MemorySink):
            raise TypeError(f"the results of {self.name!r} are not kept in memory: read them where they are written")
        return self.sink.table()

    def pause(self) -> None:
        """Stop serving the query. Rounds that end meanwhile are not computed, and their rows are not kept for it.

        A query that was paused stays so in a session that is started again.
        """
        self._refuse_if_removed()
        self.is_paused = True

    def resume(self) -> None:
        """Serve a query again that was paused, has failed or waits for memory.

        It goes on with the first round of which no row has come yet.
        """
        self._refuse_if_removed()
        self.is_paused = False
        self._is_resumed = True

    def remove(self) -> None:
        """Take the query out of its session. What it has delivered stays."""
        self._refuse_if_removed()
        self._is_removed = True
        self._remove(self)

    def change(
        self, *, rate_weight: float | None = None, memory_weight: float | None = None, partitions: int | None = None
    ) -> None:
        """Weigh output rate and memory differently, or cut charts into another number of parts."""
        self._refuse_if_removed()
        parts = self.partitions if partitions is None else checked_partitions(partitions)
        self.weights = Weights(
            self.weights.rate if rate_weight is None else rate_weight,
            self.weights.memory if memory_weight is None else memory_weight,
        )
        self.partitions = parts

    def _refuse_if_removed(self) -> None:
        if self._is_removed:
            raise RuntimeError(f"{self.name!r} was removed from its session: add it again with session.query(text)")

    # ------------------------------------------------------------------------------------------- for the engine

    def position(self, known: QueryPosition | None, latest: Mapping[str, int], batch: int) -> QueryPosition:
        """Where the query stands when the next micro-batch comes, which has this number."""
        position = known or QueryPosition(self.compiled.query.digest, self._before_unseen(latest), since=batch)
        if position.is_paused and not self._is_known and not self._is_resumed:
            self.is_paused = True  # as it was when the session ended
        if self._is_resumed and (position.failed is not None or position.waits is not None):
            position = replace(position, failed=None, waits=None, delivered=self._before_unseen(latest))
        if position.is_paused and not self.is_paused:  # rows were not kept
            position = replace(position, delivered=self._before_unseen(latest))
        if self.is_paused:
            position = replace(position, waits=None)
        self._is_resumed, self._is_known = False, True
        return replace(position, is_paused=self.is_paused)

    def served(
        self,
        running: ServedQuery | None,
        position: QueryPosition,
        rates: Callable[[], TupleRates],
        pressure: float = 0.0,
        rounds: Iterable[RoundService] = (),
    ) -> ServedQuery:
        """The query as the engine serves it, with what its scheduler has learnt.

        `pressure` is how many times its cap the session wants, `rounds` are those that the session remembers.
        """
        if running is None:
            scheduler = self.scheduler(self._scheduler, rates())
            if position.schedule is not None:
                with contextlib.suppress(SavedStateError):  # of other plans: it learns anew
                    scheduler.load(position.schedule)
                    scheduler.log.extend(each.record for each in rounds)
            running = ServedQuery(self.compiled, self.sink, self.schema, scheduler)
        scheduler = running.scheduler
        weights = weights_under(self.weights, pressure)
        if scheduler.costs.weights != weights:
            scheduler.reweigh(weights)
        if isinstance(scheduler, ByChart) and scheduler.parts != self.partitions:
            scheduler.divide(self.partitions)
        return running

    def scheduler(self, kind: type[PlanScheduler], rates: TupleRates) -> PlanScheduler:
        """A scheduler for the plans of the query, which has learnt nothing yet."""
        return scheduler_of(kind, self.compiled, self.weights, self.partitions, rates, self.sizes)

    def _before_unseen(self, latest: Mapping[str, int]) -> int | None:
        """The round before the first round of which no row has come yet; None if no row has come at all."""
        known = [latest[each.source] for each in self.compiled.streams if each.source in latest]
        return first_unseen(max(known), self.compiled.query.window) - 1 if known else None


def checked_partitions(partitions: object) -> int:
    """How many parts each dimension of a chart has."""
    if not isinstance(partitions, int) or isinstance(partitions, bool) or not 1 <= partitions <= 1000:  # noqa: PLR2004
        raise ValueError(f"partitions is a whole number from 1 to 1000, not {partitions!r}")
    return partitions
