"""`tw.Session`: shared streams and standing queries, written as text, run as one streaming query."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from thalweg.charts import TupleRates, Weights, plan_space
from thalweg.charts.candidates import PlanChoice
from thalweg.sealed import SavedStateError
from thalweg.spark.filters.predicates.function import FunctionPredicate
from thalweg.spark.joins.text import microseconds
from thalweg.spark.session.engine import ServedQuery, SessionEngine
from thalweg.spark.session.lower import ROUND, Catalog, QueryLowering, Rounds
from thalweg.spark.session.position import QueryPosition
from thalweg.spark.session.program import Program, ProgramQuery, program_query
from thalweg.spark.session.rows import shared_rows
from thalweg.spark.session.schedules import scheduler_of
from thalweg.spark.session.sinks import FolderSink, FunctionSink, MemorySink, Sink, WriterSink
from thalweg.spark.session.sources import SharedStream, StaticTable, all_streams
from thalweg.spark.session.worker.result_files import ROUND_COLUMNS
from thalweg.sql.parse import parse_query
from thalweg.sql.rounds import first_unseen

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

DELAY = "0 seconds"


class Session:
    """Many standing queries over shared streams, as one streaming query of Spark.

    Parameters
    ----------
    spark
        A classic Spark session.
    checkpoint
        A folder, shared by driver and workers, for the position of the session. A session that is started again with
        the same folder goes on where it was, with those of its queries that are still there, by their text.

    Examples
    --------
    >>> s = Session(spark, checkpoint="checkpoints/traffic")  # doctest: +SKIP
    >>> s.stream("TCP", tcp, event_time="ts", delay="10 seconds")  # doctest: +SKIP
    >>> q = s.query("SELECT src, dest FROM TCP WHERE dest = 2 WINDOW [1]")  # doctest: +SKIP
    >>> s.start()  # doctest: +SKIP
    """

    def __init__(self, spark: SparkSession, *, checkpoint: str | os.PathLike[str]) -> None:
        if not hasattr(spark, "_jsparkSession"):
            raise TypeError(
                "tw.Session needs a classic Spark session: with Spark Connect run each query with tw.stream"
            )
        self.spark = spark
        self.checkpoint = os.path.abspath(os.path.expanduser(os.fspath(checkpoint)))  # noqa: PTH100, PTH111
        self._streams: dict[str, SharedStream] = {}
        self._tables: dict[str, StaticTable] = {}
        self._predicates: dict[str, FunctionPredicate] = {}
        self._queries: dict[str, StandingQuery] = {}
        self._engine: SessionEngine | None = None
        self._running: StreamingQuery | None = None
        self._lock = threading.RLock()

    # ------------------------------------------------------------------------------------------- what there is

    def stream(self, name: str, frame: DataFrame, *, event_time: str, delay: str = DELAY) -> None:
        """Give a streaming DataFrame a name, under which queries read it.

        `event_time` is its column of event time, of type timestamp. `delay` is how late rows may come: a round ends
        when a row is seen that is later than its end by more than that.
        """
        self._refuse_if_running("stream")
        self._check_name(name)
        stream = SharedStream(name, frame, event_time, microseconds(delay, "delay"))
        stream.check()
        self._streams[name] = stream

    def table(self, name: str, frame: DataFrame) -> None:
        """Give a static DataFrame a name, under which queries join with it."""
        self._refuse_if_running("table")
        self._check_name(name)
        if frame.isStreaming:
            raise TypeError(f"table {name!r} is a stream: write session.stream({name!r}, df, event_time='...')")
        self._tables[name] = StaticTable(name, frame)

    def predicate(self, name: str, predicate: FunctionPredicate) -> None:
        """Give a Python predicate a name, under which the text of a query calls it on columns."""
        if not isinstance(predicate, FunctionPredicate):
            raise TypeError(f"{predicate!r} is no predicate: write session.predicate({name!r}, tw.predicate(function))")
        if not name.isidentifier():
            raise ValueError(f"the name of a predicate is an identifier, not {name!r}")
        self._predicates[name] = predicate

    def query(
        self,
        text: str,
        *,
        name: str | None = None,
        to: Sink | str | os.PathLike[str] | Callable[[DataFrame, int], Any] | None = None,
        rate_weight: float = 0.4,
        memory_weight: float = 0.6,
        partitions: int = 10,
    ) -> StandingQuery:
        """Add a standing query; results of a round are delivered once, after the watermark has passed its end.

        `to` is where results go: a folder of Parquet files, a function of a DataFrame and the micro-batch's number, or
        what `tw.Session.files` and `tw.Session.writer` make. By default they are kept in memory, for `results`.
        """
        sources = [*(each.source for each in self._streams.values()), *(each.source for each in self._tables.values())]
        parsed = parse_query(text, sources, list(self._predicates))
        with self._lock:
            taken = Counter(each.compiled.query.digest for each in self._queries.values())
            token = f"{parsed.digest}-{taken[parsed.digest] + 1}"
            compiled = program_query(token, parsed, list(self._streams.values()))
            schema = self._schema(compiled)
            weights = Weights(rate_weight, memory_weight)
            called = name or f"query {len(self._queries) + 1}"
            query = StandingQuery(self, compiled, called, as_sink(to), schema, weights, partitions)
            self._queries[token] = query
        return query

    @staticmethod
    def files(path: str | os.PathLike[str], format: str = "parquet", **options: str) -> Sink:  # noqa: A002
        """A folder of files, each result in it exactly once."""
        return FolderSink(path, format, options)

    @staticmethod
    def writer(format: str, **options: str) -> Sink:  # noqa: A002 - Spark's word
        """Any writer of Spark, such as ``writer("kafka", topic="alarms", ...)``."""
        return WriterSink(format, options)

    # ------------------------------------------------------------------------------------------- running

    def start(self, **trigger: Any) -> StreamingQuery:  # noqa: ANN401 - as Spark takes it
        """Start; `trigger` is what Spark's ``DataStreamWriter.trigger`` takes."""
        self._refuse_if_running("start")
        if not self._queries:
            raise ValueError(
                "a session needs a query before it starts: session.query('SELECT ... WINDOW [10 seconds]')"
            )
        engine = SessionEngine(self.spark, self._catalog(), self.checkpoint)
        for query in self._queries.values():
            query.sink.claim(self.spark, f"{self.checkpoint}/thalweg/sinks/{query.compiled.token}")
        self._serve(engine)
        self._engine = engine
        writer = (
            all_streams(list(self._streams.values()))
            .writeStream.foreachBatch(lambda batch, number: engine.run(batch, number))
            .option("checkpointLocation", f"{self.checkpoint}/spark")
        )
        self._running = (writer.trigger(**trigger) if trigger else writer).start()
        return self._running

    def stop(self) -> None:
        """Stop after the micro-batch that runs."""
        if self._running is not None:
            self._running.stop()
            self._running = None

    def await_termination(self, timeout: float | None = None) -> bool | None:
        """Wait until the session ends, as Spark's ``awaitTermination`` does."""
        assert self._running is not None  # noqa: S101
        return self._running.awaitTermination(timeout)  # type: ignore[arg-type]

    # ------------------------------------------------------------------------------------------- inside

    def _serve(self, engine: SessionEngine) -> None:
        """Tell an engine which queries there are, and where each of them stands."""
        served, positions = {}, {}
        for token, query in self._queries.items():
            known = engine.position.queries.get(token)
            positions[token] = known or query.first_position(engine.position.latest)
            served[token] = query.served(positions[token])
        engine.serve(served, positions)

    def _catalog(self) -> Catalog:
        return Catalog(dict(self._streams), dict(self._tables), dict(self._predicates))

    def _schema(self, compiled: ProgramQuery) -> StructType:
        """The columns of a query's results; Spark refuses here what it cannot run."""
        from pyspark.sql.types import StructField, StructType, TimestampType

        streams = list(self._streams.values())
        batch = all_streams(streams)
        empty = self.spark.createDataFrame([], batch.schema)
        rows = shared_rows(empty, Program((compiled,)), streams)
        lowering = QueryLowering(compiled, rows, self._catalog(), Rounds((0,)))
        found = lowering.results(first_plan(compiled).root).drop(ROUND).schema
        bounds = [StructField(name, TimestampType(), nullable=False) for name in ROUND_COLUMNS]
        return StructType([*bounds, *found.fields])

    def _check_name(self, name: str) -> None:
        if not name.isidentifier():
            raise ValueError(f"the name of a stream or table is an identifier, not {name!r}")
        taken = [*self._streams, *self._tables]
        if name.lower() in (each.lower() for each in taken):
            raise ValueError(f"there is a stream or table {name!r} already")

    def _refuse_if_running(self, what: str) -> None:
        if self._running is not None and self._running.isActive:
            raise RuntimeError(f"the session is running: stop it before {what}")


class StandingQuery:
    """A query of a session."""

    def __init__(
        self,
        session: Session,
        compiled: ProgramQuery,
        name: str,
        sink: Sink,
        schema: StructType,
        weights: Weights,
        partitions: int,
    ) -> None:
        self.name = name
        self.compiled = compiled
        self.sink = sink
        self.schema = schema
        self.weights = weights
        self.partitions = partitions
        self._session = session

    def first_position(self, latest: Mapping[str, int]) -> QueryPosition:
        """Where the query stands at first: its first round is the first of which no row has come yet."""
        known = [latest[each.source] for each in self.compiled.streams if each.source in latest]
        delivered = first_unseen(max(known), self.compiled.query.window) - 1 if known else None
        return QueryPosition(self.compiled.query.digest, delivered)

    def served(self, position: QueryPosition) -> ServedQuery:
        """The query as the engine serves it, with what its scheduler had learnt."""
        scheduler = scheduler_of(self.compiled, self.weights, self.partitions, TupleRates())
        if position.schedule is not None:
            with contextlib.suppress(SavedStateError):  # of other plans: it learns anew
                scheduler.load(position.schedule)
        return ServedQuery(self.compiled, self.sink, self.schema, scheduler)

    def results(self) -> pa.Table | None:
        """The results so far, of a query that keeps them in memory."""
        if not isinstance(self.sink, MemorySink):
            raise TypeError(f"the results of {self.name!r} are not kept in memory: read them where they are written")
        return self.sink.table()


def first_plan(compiled: ProgramQuery) -> Any:  # noqa: ANN401
    """The first candidate plan."""
    space = plan_space(compiled.query)
    return space.plan(PlanChoice(0, tuple(0 for _ in space.leaves)))


def as_sink(to: Sink | str | os.PathLike[str] | Callable[[DataFrame, int], Any] | None) -> Sink:
    """Where results go."""
    if to is None:
        return MemorySink()
    if isinstance(to, Sink):
        return to
    if isinstance(to, str | os.PathLike):
        return FolderSink(to)
    if callable(to):
        return FunctionSink(to)
    raise TypeError(f"to= is a folder, a function of a DataFrame and a number, or a sink, not {to!r}")
