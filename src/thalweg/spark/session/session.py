"""`tw.Session`: shared streams and standing queries, written as text, run as one streaming query."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from thalweg.charts.draw import HeatMap
from thalweg.keywords import checks_keywords
from thalweg.spark import runs
from thalweg.spark.checkpoint_files import await_sources, renamed_by_file_system
from thalweg.spark.explain import Explanation, explanation_of
from thalweg.spark.filters.predicates.function import FunctionPredicate
from thalweg.spark.joins.late import COUNT, check_late
from thalweg.spark.joins.text import microseconds
from thalweg.spark.session.engine import SessionEngine
from thalweg.spark.session.explain import SessionRun, heat_maps
from thalweg.spark.session.input_sizes import input_sizes
from thalweg.spark.session.logs import RoundService
from thalweg.spark.session.lower import Catalog, QueryLowering
from thalweg.spark.session.memory import memory_cap
from thalweg.spark.session.no_rows import views_of_no_rows
from thalweg.spark.session.program import ProgramQuery, program_query
from thalweg.spark.session.refusals import check_calls, told_by_position
from thalweg.spark.session.sinks import FolderSink, FunctionSink, MemorySink, Sink, WriterSink
from thalweg.spark.session.sources import SharedStream, StaticTable, all_streams
from thalweg.spark.session.standing import QueryOptions, StandingQuery
from thalweg.spark.session.views import TableViews
from thalweg.spark.session.worker.result_files import ROUND_COLUMNS
from thalweg.spark.triggers import TRIGGERS, check_trigger
from thalweg.spark.worker_python import check_worker_python
from thalweg.sql.parse import parse_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

DELAY = "0 seconds"
LOG = (
    "query string, round bigint, plan string, is_move boolean, is_switch boolean, is_hit boolean, batch bigint, "
    "round_end timestamp, rows_read bigint, rows bigint, seconds double, shared_seconds double"
)
SERVICE_LOG = (
    "batch bigint, query string, rounds bigint, rows bigint, seconds double, shared_rows bigint, shared_seconds double"
)


class Session:
    """Many standing queries over shared streams, as one streaming query of Spark.

    Parameters
    ----------
    spark
        A classic Spark session.
    checkpoint
        A folder, shared by driver and workers, for the position of the session. A session that is started again with
        the same folder goes on where it was, with those of its queries that are still there, by their text.
    late
        ``"count"`` counts rows that come when a round of theirs was delivered already; a folder keeps them there as
        well, with all their columns, for each stream.
    memory
        A cap such as ``"512MB"`` for the rows that a job of the session holds at a time. Queries that do not fit into
        it together are computed in turns, one job after the other: later, but all of them and every time. A query of
        which a single round does not fit waits, and its rows stay on disk; `explain` says so.

    Examples
    --------
    >>> s = Session(spark, checkpoint="checkpoints/traffic")  # doctest: +SKIP
    >>> s.stream("TCP", tcp, event_time="ts", delay="10 seconds")  # doctest: +SKIP
    >>> q = s.query("SELECT src, dest FROM TCP WHERE dest = 2 WINDOW [1]")  # doctest: +SKIP
    >>> s.start()  # doctest: +SKIP
    """

    @checks_keywords("tw.Session")
    def __init__(
        self,
        spark: SparkSession,
        *,
        checkpoint: str | os.PathLike[str],
        late: str | os.PathLike[str] = COUNT,
        memory: str | int | None = None,
    ) -> None:
        if not hasattr(spark, "_jsparkSession"):
            raise TypeError(
                "tw.Session needs a classic session: with Spark Connect write each query as a streaming query of its "
                "own, with tw.where or tw.join"
            )
        if "://" in os.fspath(checkpoint):
            raise ValueError(
                f"the checkpoint of a session is a folder that driver and workers share, not {checkpoint!r}"
            )
        self.spark = spark
        self.checkpoint = os.path.abspath(os.path.expanduser(os.fspath(checkpoint)))  # noqa: PTH100, PTH111
        late_folder = check_late(late)
        self._late_folder = None if late_folder is None else os.path.expanduser(late_folder)  # noqa: PTH111
        self.memory = None if memory is None else memory_cap(memory)
        self._streams: dict[str, SharedStream] = {}
        self._tables: dict[str, StaticTable] = {}
        self._predicates: dict[str, FunctionPredicate] = {}
        self._queries: dict[str, StandingQuery] = {}
        self.engine: SessionEngine | None = None
        self.thalweg_run = SessionRun(self)
        self._running: StreamingQuery | None = None
        self._lock = threading.RLock()
        runs.record(self.thalweg_run)

    # ------------------------------------------------------------------------------------------- what there is

    @checks_keywords("session.stream")
    def stream(self, name: str, frame: DataFrame, *, event_time: str, delay: str = DELAY) -> None:
        """Give a streaming DataFrame a name, under which queries read it.

        `event_time` is its column of event time, of type timestamp. `delay` is how late rows may come: a round ends
        when a row is seen that is later than its end by more than that.
        """
        self._refuse_if_running("stream")
        self._check_name(name)
        _check_frame(frame)
        stream = SharedStream(name, frame, event_time, microseconds(delay, "delay"))
        stream.check()
        if self._late_folder is not None:
            stream.check_read(frame.columns)
        self._streams[name] = stream

    @checks_keywords("session.table")
    def table(self, name: str, frame: DataFrame) -> None:
        """Give a static DataFrame a name, under which queries join with it."""
        self._refuse_if_running("table")
        self._check_name(name)
        _check_frame(frame)
        if frame.isStreaming:
            raise TypeError(f"table {name!r} is a stream: write session.stream({name!r}, df, event_time='...')")
        self._tables[name] = StaticTable(name, frame)

    @checks_keywords("session.predicate")
    def predicate(self, name: str, predicate: FunctionPredicate) -> None:
        """Give a Python predicate a name, under which the text of a query calls it on columns."""
        if not isinstance(predicate, FunctionPredicate):
            raise TypeError(f"{predicate!r} is no predicate: write session.predicate({name!r}, tw.predicate(function))")
        if not name.isidentifier():
            raise ValueError(f"the name of a predicate is an identifier, not {name!r}")
        if name.lower() in (each.lower() for each in self._predicates):  # queries that call it mean the first predicate
            raise ValueError(f"there is a predicate {name!r} already: give this predicate another name")
        self._predicates[name] = predicate

    @checks_keywords("session.query")
    def query(
        self,
        text: str,
        *,
        name: str | None = None,
        to: Sink | str | os.PathLike[str] | Callable[[DataFrame, int], Any] | None = None,
        rate_weight: float = 0.4,
        memory_weight: float = 0.6,
        partitions: int = 10,
        scheduler: str = "by-chart",
    ) -> StandingQuery:
        """Add a standing query; results of a round are delivered once, after the watermark has passed its end.

        `to` is where results go: a folder of Parquet files, a function of a DataFrame and the micro-batch's number, or
        what `tw.Session.files` and `tw.Session.writer` make. By default they are kept in memory, for `results`.

        `rate_weight` and `memory_weight` say how much output rate and memory count when a plan is chosen, `partitions`
        into how many parts each dimension of a chart is cut. `scheduler` is what chooses plans: ``"by-chart"``, or
        a baseline: ``"at-random"``, ``"by-first-estimate"`` or ``"clairvoyant"``.
        """
        if not isinstance(text, str):
            raise TypeError(f"a query is a text such as 'SELECT x FROM s WINDOW [10 seconds]', not {text!r}")
        called = self._query_name(name)
        sources = [*(each.source for each in self._streams.values()), *(each.source for each in self._tables.values())]
        parsed = parse_query(text, sources, list(self._predicates))
        check_calls(parsed, self._predicates)
        for each in parsed.inputs:
            if each.is_stream:
                self._streams[each.source].check_read(each.columns)
        options, sink = QueryOptions.checked(rate_weight, memory_weight, partitions, scheduler), as_sink(to)
        sink.check(self.spark)
        with self._lock:
            numbered = (f"{parsed.digest}-{number}" for number in itertools.count(1))
            token = next(token for token in numbered if token not in self._queries)
            known: list[SharedStream | StaticTable] = [*self._streams.values(), *self._tables.values()]
            with told_by_position(parsed, {source.name: source.frame for source in known}, self._predicates):
                compiled = program_query(token, parsed, known, self._predicates)
                schema = self._schema(compiled)
            if self.engine is not None:
                self.engine.refuse_if_too_large(compiled)
                self._claim(token, sink)
            selected = frozenset(selection.alias for selection in parsed.selections)
            sizes = input_sizes(parsed.inputs, selected, {source.name: source.frame.schema for source in known})
            query = StandingQuery(compiled, called, sink, schema, sizes, options, self._remove)
            self._queries[token] = query
        return query

    @property
    def queries(self) -> tuple[StandingQuery, ...]:
        """All queries that are in the session."""
        with self._lock:
            return tuple(self._queries.values())

    @staticmethod
    def files(path: str | os.PathLike[str], format: str = "parquet", **options: str) -> Sink:  # noqa: A002
        """A folder of files, each result in it exactly once."""
        return FolderSink(path, format, options)

    @staticmethod
    def writer(format: str, **options: str) -> Sink:  # noqa: A002 - Spark's word
        """Any writer of Spark, such as ``writer("kafka", topic="alarms", ...)``."""
        return WriterSink(format, options)

    # ------------------------------------------------------------------------------------------- running

    @checks_keywords("session.start", *TRIGGERS)
    def start(self, **trigger: Any) -> StreamingQuery:  # noqa: ANN401 - as Spark takes it
        """Start; `trigger` is what Spark's ``DataStreamWriter.trigger`` takes."""
        self._refuse_if_running("start")
        check_worker_python()
        check_trigger(trigger, "session.start")
        if not self._queries:
            raise ValueError(
                "a session needs a query before it starts: session.query('SELECT ... WINDOW [10 seconds]')"
            )
        engine = self.make_engine()
        writer = (
            all_streams(list(self._streams.values()))
            .writeStream.foreachBatch(engine.run)
            .option("checkpointLocation", f"{self.checkpoint}/spark")
        )
        with renamed_by_file_system(self.spark):
            self._running = (writer.trigger(**trigger) if trigger else writer).start()
            runs.attach(str(self._running.id), self.thalweg_run)  # before metrics ask for it
            await_sources(self._running)
        return self._running

    def make_engine(self) -> SessionEngine:
        """What runs the micro-batches, from where the session stood last. `start` gives it to Spark's streaming."""
        engine = SessionEngine(
            self.spark, self._catalog(), self.checkpoint, self._late_folder, self.memory, self._serve
        )
        for query in self.queries:
            self._claim(query.compiled.token, query.sink)
        self._serve(engine)
        self.engine = engine
        return engine

    def stop(self) -> None:
        """Stop. A micro-batch that runs is cut off, and run again when the session is started again."""
        if self._running is not None:
            self._running.stop()
            self._running = None

    def explain(self) -> Explanation:
        """What the session does, and why: of each query the plan, its moves and switches, rows and rounds."""
        return explanation_of([self.thalweg_run])

    def charts(self, query: StandingQuery) -> list[HeatMap]:
        """The charts by which a query chooses its plan, each with the point of the last round and its trail.

        ``print(chart)`` draws a chart with letters, ``chart.save("chart.svg")`` or ``chart.save("chart.png")`` as an
        image. There is none before the first round, and for a query that has one candidate plan alone.
        """
        token = query.compiled.token
        served = self.engine.served.get(token) if self.engine is not None else None
        return [] if served is None else heat_maps(served.scheduler)

    def log(self) -> DataFrame:
        """The last rounds of each query: how its plan was chosen, what it read and gave, and the time that it took.

        The seconds of its own that a query took in a micro-batch are divided over its rounds that ended, by the rows
        of its streams that each of them read; shared seconds over the rounds of all queries. Shared seconds of a
        micro-batch in which no round ends count for the next one.
        """
        engine = self.engine
        records = [
            (query.name, *_logged(service))
            for query in self.queries
            if engine is not None
            for service in engine.rounds_of(query.compiled.token)
        ]
        return self.spark.createDataFrame(records, LOG)

    def service_log(self) -> DataFrame:
        """What each query got in each of the last micro-batches: rounds, result rows, seconds, and what is shared.

        Seconds of its own are those in which workers computed and wrote results of the query. Queries whose rows came
        together share them evenly. All queries share the rows that came, and the seconds of the other steps.
        """
        engine = self.engine
        records = [
            (record.number, query.name, *service, record.rows, record.shared_seconds)
            for query in self.queries
            if engine is not None
            for record, service in engine.services_of(query.compiled.token)
        ]
        return self.spark.createDataFrame(sorted(records, key=lambda each: each[0]), SERVICE_LOG)

    def await_termination(self, timeout: float | None = None) -> bool | None:
        """Wait until the session ends, as Spark's ``awaitTermination`` does."""
        if self._running is None:
            raise RuntimeError("the session is not running: session.start()")
        return self._running.awaitTermination(timeout)  # type: ignore[arg-type]

    # ------------------------------------------------------------------------------------------- inside

    def _serve(self, engine: SessionEngine) -> None:
        """Tell an engine which queries there are now, and where each of them stands."""
        with self._lock:
            known, running = dict(engine.position.queries), dict(engine.served)
            for token, query in self._queries.items():
                if token in running and running[token].compiled is not query.compiled:
                    del known[token], running[token]  # of a query with the same text that was removed
            latest = engine.position.latest
            number = engine.position.batch + 1
            positions = {
                token: query.position(known.get(token), latest, number) for token, query in self._queries.items()
            }
            served = {
                token: query.served(
                    running.get(token),
                    positions[token],
                    lambda: engine.tuple_rates,
                    engine.pressure,
                    [each for each in engine.history.rounds.get(token, ()) if each.batch >= positions[token].since],
                )
                for token, query in self._queries.items()
            }
            engine.serve(served, positions)

    def _remove(self, query: StandingQuery) -> None:
        with self._lock:
            self._queries.pop(query.compiled.token, None)

    def _claim(self, token: str, sink: Sink) -> None:
        sink.claim(self.spark, f"{self.checkpoint}/thalweg/sinks/{token}")

    def _catalog(self) -> Catalog:
        # Predicates are added while the session runs, for queries that are added then.
        return Catalog(dict(self._streams), dict(self._tables), self._predicates)

    def _schema(self, compiled: ProgramQuery) -> StructType:
        """The columns of a query's results; Spark refuses here what it cannot run."""
        from pyspark.sql.types import StructField, StructType, TimestampType

        bounds = [StructField(name, TimestampType(), nullable=False) for name in ROUND_COLUMNS]
        if compiled.chosen_columns is not None:  # Spark has analysed its conditions, and takes long for a text
            columns = self._streams[compiled.streams[0].source].frame.schema
            return StructType(
                [*bounds, *(StructField(name, columns[column].dataType) for column, name in compiled.chosen_columns)]
            )
        catalog = self._catalog()
        with views_of_no_rows(compiled, self.spark, TableViews(self.spark, catalog.table_frames), catalog) as views:
            lowering = QueryLowering(compiled, views, catalog, (0,))
            found = self.spark.sql(lowering.results(compiled.space.candidates[0].root)).schema
        outputs = [
            StructField(output.name, found[str(place)].dataType, found[str(place)].nullable)
            for place, output in enumerate(compiled.query.outputs)
        ]
        return StructType([*bounds, *outputs])

    def _query_name(self, name: object) -> str:
        """The name of a new query, by which logs and `explain` tell it from the others."""
        taken = {query.name for query in self.queries}
        if name is None:
            numbered = (f"query {number}" for number in itertools.count(len(taken) + 1))
            return next(each for each in numbered if each not in taken)
        if not isinstance(name, str) or not name.strip():
            raise TypeError(f"the name of a query is a text, not {name!r}")
        if name in taken:
            raise ValueError(f"there is a query {name!r} already: give this query another name")
        return name

    def _check_name(self, name: str) -> None:
        if not name.isidentifier():
            raise ValueError(f"the name of a stream or table is an identifier, not {name!r}")
        taken = [*self._streams, *self._tables]
        if name.lower() in (each.lower() for each in taken):
            raise ValueError(f"there is a stream or table {name!r} already")

    def _refuse_if_running(self, what: str) -> None:
        if self._running is not None and self._running.isActive:
            raise RuntimeError(f"the session is running: stop it before {what}")


def _logged(service: RoundService) -> tuple[Any, ...]:
    """A round as a row of the log."""
    record = service.record
    end = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=service.end)
    chosen = (record.number, record.plan, record.is_move, record.is_switch, record.is_hit)
    return (*chosen, service.batch, end, service.rows_read, service.rows, service.seconds, service.shared_seconds)


def _check_frame(frame: object) -> None:
    if not hasattr(frame, "isStreaming"):
        raise TypeError(f"a stream or table is a DataFrame, not {frame!r}: write spark.readStream or spark.read")


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
