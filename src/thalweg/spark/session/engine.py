"""One micro-batch of a session, step by step.

1. `take_in` reads the micro-batch once, counts rows by stream and pane, and writes those that queries need    (one job)
2. watermarks, and the rounds that end, follow from the counts
3. `plan_of_rounds` asks each query's scheduler for the plan of its rounds
4. `written_files` computes the results of these rounds, all queries in one job                                (one job)
5. sinks take the files
6. the position is saved; then Spark takes note that the micro-batch is done
"""

from __future__ import annotations

import logging
import shutil
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from thalweg.charts import PlanScheduler, TupleRates
from thalweg.spark.folder import StateFolder
from thalweg.spark.interruptions import brief_interruptions, refuse_interruption
from thalweg.spark.job_descriptions import described_jobs
from thalweg.spark.session.branches import Ending
from thalweg.spark.session.condition_orders import ConditionOrders
from thalweg.spark.session.endings import (
    failed_predicates,
    last_missed,
    last_to_deliver,
    late_rows,
    late_until,
    rounds_with_rows,
)
from thalweg.spark.session.failures import reason
from thalweg.spark.session.intake import Intake, take_in
from thalweg.spark.session.key_sample import JoinKeys, sample_keys
from thalweg.spark.session.logs import (
    COMPUTE,
    LOGGED_BATCHES,
    BatchRecord,
    EndedRounds,
    RoundService,
    ServedRounds,
    SessionLog,
    divided,
    last_of,
    rows_kept,
)
from thalweg.spark.session.lower import Catalog
from thalweg.spark.session.memory import Jobs, TooLarge, expected_size, first_too_large, jobs_under, row_sizes
from thalweg.spark.session.panes import Panes, together
from thalweg.spark.session.position import (
    QueryPosition,
    SessionPosition,
    WaitingFile,
    load_position,
    save_position,
)
from thalweg.spark.session.program import Program, ProgramQuery
from thalweg.spark.session.rates import tuple_rates
from thalweg.spark.session.results import QueryResults, ResultJobs, Results
from thalweg.spark.session.schedules import plan_of_rounds, round_statistics
from thalweg.spark.session.sinks import Delivery, Sink
from thalweg.spark.session.views import RowViews, TableViews
from thalweg.spark.session.waiting import needed_after, open_panes, remove_files, still_needed, written_together
from thalweg.spark.session.worker.shared_predicates import PredicateCounts
from thalweg.sql.rounds import bounds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

log = logging.getLogger(__name__)

SAMPLING_SHARE = 0.05  # of the time that micro-batches take, which sampling join keys may take


@dataclass(frozen=True, eq=False)
class ServedQuery:
    """A query that the engine serves: what it is, where its results go, and what chooses its plans."""

    compiled: ProgramQuery
    sink: Sink
    schema: StructType  # of its results
    scheduler: PlanScheduler


@dataclass
class _Clock:
    """The seconds that the steps of a micro-batch take."""

    seconds: dict[str, float] = field(default_factory=dict)
    _last: float = field(default_factory=time.perf_counter)

    def note(self, step: str) -> None:
        now = time.perf_counter()
        self.seconds[step], self._last = now - self._last, now


class SessionEngine:
    """Runs the micro-batches of a session, and holds its position."""

    def __init__(
        self,
        spark: SparkSession,
        catalog: Catalog,
        checkpoint: str,
        late_folder: str | None,
        memory: int | None,
        prepare: Callable[[SessionEngine], None],
    ) -> None:
        self.folder = StateFolder(f"{checkpoint}/thalweg")
        self.position = load_position(self.folder)
        self.log: deque[BatchRecord] = deque(maxlen=LOGGED_BATCHES)  # of this process
        self.history = SessionLog(self.folder.url, self.position.batch)  # also of those before
        self._spark = spark
        self._catalog = catalog
        self._late_folder = late_folder
        self.memory = memory  # bytes that a job of queries may hold
        self._prepare = prepare  # called before each micro-batch: queries may have come, gone or changed
        self.served: dict[str, ServedQuery] = {}
        self._keys: dict[str, JoinKeys] = {}  # of the queries whose plan depends on join selectivities
        self._groups = dict(self.position.groups)  # in a round, as far as HAVING keeps them
        self._credit = 0.0  # seconds that sampling keys may take
        self._tables = TableViews(spark, catalog.table_frames)
        self._results = ResultJobs(catalog, self._tables)
        self._program = Program(())
        self.orders = ConditionOrders(catalog.streams, catalog.predicates)  # of costly conditions
        self._orders_credit = 0.0  # seconds that looking at them may take
        self._delays = {name: stream.delay for name, stream in catalog.streams.items()}
        self._predicates = dict(self.position.predicates)
        # Rows by pane, and the bytes of a row: of the last micro-batch, and before the first one of what waits.
        self._arrived: tuple[Panes, Mapping[str, float]] = (self.position.panes, row_sizes(self.position.files))
        self._shared_seconds = 0.0  # of micro-batches since the last one in which rounds ended
        self._is_first = True  # micro-batch of this process, which may have been tried by another one

    @cached_property
    def tuple_rates(self) -> TupleRates:
        """What operators can handle on this machine."""
        return tuple_rates(self._spark)

    @property
    def pressure(self) -> float:
        """How many times its cap the session wanted in the last micro-batch in which rounds ended."""
        wanted = next((record.wanted_memory for record in reversed(self.history.batches) if record.jobs), 0)
        return wanted / self.memory if self.memory is not None else 0.0

    def rounds_of(self, token: str) -> list[RoundService]:
        """The last rounds of a query, and not those of a removed query with the same text."""
        position = self.position.queries.get(token)
        rounds = list(self.history.rounds.get(token, ()))
        return [] if position is None else [each for each in rounds if each.batch >= position.since]

    def services_of(self, token: str) -> list[tuple[BatchRecord, ServedRounds]]:
        """What a query got in each of the last micro-batches in which rounds of it ended."""
        position = self.position.queries.get(token)
        batches = [] if position is None else list(self.history.batches)
        return [
            (record, record.served[token])
            for record in batches
            if token in record.served and position is not None and record.number >= position.since
        ]

    def refuse_if_too_large(self, query: ProgramQuery) -> None:
        """Refuse a new query if a round of it alone will surely hold more than the session may."""
        expected = expected_size(query, *self._arrived)
        if self.memory is not None and expected is not None and expected > self.memory:
            raise ValueError(
                f"the query is refused: a round of it holds some {expected:,.0f} bytes of rows, and the session has "
                f"memory={self.memory:,}; write a shorter WINDOW or more conditions, or start the session with more"
            )

    @property
    def program(self) -> Program:
        """What runs: all queries but those that have failed or are paused."""
        positions = self.position.queries
        queries = tuple(each.compiled for token, each in self.served.items() if positions[token].is_served)
        if queries != self._program.queries:
            self._program = Program(queries, self._program.orders)
        return self._program

    def serve(self, queries: Mapping[str, ServedQuery], positions: Mapping[str, QueryPosition]) -> None:
        """Serve these queries from the next micro-batch on."""
        for token in queries.keys() - self.served.keys():
            keys = JoinKeys(queries[token].compiled, self._catalog.streams, self._catalog.tables)
            if keys.are_needed:
                self._keys[token] = keys
            else:
                self._keys.pop(token, None)  # of a query that was removed
        for token, running in self.served.items():
            if queries.get(token) is not running:
                self.history.forget(token)
        if queries.keys() != self.served.keys():
            compiled = [query.compiled for query in queries.values()]
            called = {each.column for query in compiled for own in query.keeps.values() for each in own}
            self._groups = {token: groups for token, groups in self._groups.items() if token in queries}
            self._predicates = {column: counts for column, counts in self._predicates.items() if column in called}
        self.served = dict(queries)
        self.position = replace(self.position, queries=dict(positions))

    def run(self, batch: DataFrame, number: int) -> None:
        """Run one micro-batch; does nothing if it was run before."""
        if number <= self.position.batch:
            return
        self._prepare(self)
        description = f"thalweg session: {len(self.program.queries)} queries"
        with brief_interruptions(), described_jobs(batch.sparkSession, description):
            self._run(batch, number)

    def _run(self, batch: DataFrame, number: int) -> None:
        clock = _Clock()
        self._order_conditions(batch, number)
        before, program = self.position, self.program
        keeps_late = self._late_folder is not None
        late = late_until(program, before.queries, before.latest, self._delays) if keeps_late else {}
        needed = needed_after(program, before.queries)
        intake = take_in(batch, program, self._catalog, self.folder.url, number, needed, late, self._predicates)
        clock.note("take in")
        latest = {
            **before.latest,
            **{name: max(found, before.latest.get(name, found)) for name, found in intake.latest.items()},
        }
        panes = together(before.panes, intake.panes)
        waiting = (*before.files, *intake.files)
        failed = failed_predicates(program, before.queries, intake.failed)
        streams = list(self._catalog.streams.values())
        with RowViews(batch.sparkSession, self._tables, program, streams, self.folder.url, waiting) as views:
            selectivities = self._join_selectivities(program, views)
            sizes = row_sizes(waiting)
            endings, positions = self._endings(program, latest, panes, intake, selectivities, sizes)
            endings = [ending for ending in endings if ending.query.token not in failed]
            clock.note("plan")
            jobs = jobs_under(self.memory, endings, panes, sizes)
            results, failed_results = self._results.compute(jobs.endings, views, self._results_folder(number))
            clock.note(COMPUTE)
        self._count_groups(endings, results)
        failed |= failed_results | self._deliver(results, number)
        clock.note("deliver")
        positions = _with_results(positions, before.queries, results, failed)
        needed = needed_after(program, positions)
        kept = written_together(still_needed(waiting, needed), needed, self.folder.url, number)
        self._keep_late(batch.sparkSession, intake.late, number)
        clock.note("store")
        for column, counts in intake.predicates.items():
            self._predicates[column] = self._predicates.get(column, PredicateCounts()).decayed() + counts
        self.position = SessionPosition(
            number,
            latest,
            positions,
            kept,
            open_panes(panes, needed),
            dict(self._groups),
            dict(self._predicates),
            before.rows + intake.rows,
            before.without_time + intake.without_time,
        )
        save_position(self.folder, self.position)
        remove_files(self.folder.url, (*waiting, *intake.late), kept)
        shutil.rmtree(self._results_folder(number), ignore_errors=True)
        clock.note("save")
        self._is_first = False
        self._arrived = (intake.panes, sizes)
        self._credit = min(self._credit + SAMPLING_SHARE * sum(clock.seconds.values()), 0.0)
        self._orders_credit = min(self._orders_credit + SAMPLING_SHARE * sum(clock.seconds.values()), 0.0)
        delivered = [ending for ending in endings if ending.query.token not in failed]
        self._note(number, intake, clock, jobs, delivered, results)

    def _order_conditions(self, batch: DataFrame, number: int) -> None:
        """Let some rows tell in which order costly conditions are tested, as often as it takes little time."""
        if self._orders_credit < 0.0:
            return
        rows = {stream: sum(pane.rows for pane in ends.values()) for stream, ends in self._arrived[0].items()}
        for stream in self.orders.due(self.program, rows):
            start = time.perf_counter()
            self._program = self.orders.look(batch, number, self.program, stream, rows[stream], sum(rows.values()))
            self._orders_credit -= time.perf_counter() - start

    def _join_selectivities(self, program: Program, views: RowViews) -> Mapping[str, Mapping[str, float]]:
        """The join selectivities of the queries whose plan depends on them, as often as it takes little time."""
        joins = [self._keys[query.token] for query in program.queries if query.token in self._keys]
        if not joins or self._credit < 0.0:
            return {}
        start = time.perf_counter()
        found: Mapping[str, Mapping[str, float]] = {}
        try:
            found = sample_keys(views, joins)
        except Exception as error:  # noqa: BLE001 - a key that raises will do so again, in its query's results
            refuse_interruption(error)
        self._credit -= time.perf_counter() - start
        return found

    def _endings(
        self,
        program: Program,
        latest: Mapping[str, int],
        panes: Panes,
        intake: Intake,
        selectivities: Mapping[str, Mapping[str, float]],
        row_sizes: Mapping[str, float],
    ) -> tuple[list[Ending], dict[str, QueryPosition]]:
        """The rounds of each query that end now, and where the queries stand when these are delivered.

        A round that does not fit into the session's memory waits, and so do the rounds of the query after it.
        """
        endings: list[Ending] = []
        positions = dict(self.position.queries)
        for query in program.queries:
            position = positions[query.token]
            missed = last_missed(query, position.delivered, self.position.latest, self._delays)
            position = replace(position, late=position.late + late_rows(query, intake.panes, missed))
            last = last_to_deliver(query, latest, self._delays)
            if last is not None and (position.delivered is None or last > position.delivered):
                numbers = rounds_with_rows(query, panes, position.delivered, last)
                too_large = first_too_large(self.memory, query, numbers, panes, row_sizes)
                if too_large is not None:
                    last, numbers = too_large.number - 1, numbers[: numbers.index(too_large.number)]
                position = self._waiting(query, position, too_large)
                scheduler = self.served[query.token].scheduler
                sizes = self._keys[query.token].table_sizes if query.token in self._keys else {}
                known = selectivities.get(query.token, {})
                if numbers:
                    groups = self._groups.get(query.token, 1.0)
                    observed = round_statistics(query, panes, numbers, known, sizes, groups)
                    endings.append(Ending(query, numbers, plan_of_rounds(scheduler, observed)))
                position = replace(
                    position, delivered=last, rounds=position.rounds + len(numbers), schedule=scheduler.save()
                )
            positions[query.token] = position
        return endings, positions

    def _waiting(self, query: ProgramQuery, position: QueryPosition, too_large: TooLarge | None) -> QueryPosition:
        """The position of a query that has to wait for memory, or no more; the program's log tells when it begins."""
        waits = None if too_large is None or self.memory is None else too_large.told(query, self.memory)
        if waits is not None and position.waits is None:
            log.warning("A query of a session waits for memory: %s. %s", query.query.text.strip(), waits)
        return replace(position, waits=waits)

    def _count_groups(self, endings: Sequence[Ending], results: Results) -> None:
        """Note how many groups a round of each aggregated query has: plans are costed with it."""
        for ending in endings:
            query = ending.query
            if query.query.is_aggregated and query.token in results:
                self._groups[query.token] = max(results[query.token].rows / len(ending.rounds), 1.0)

    def _deliver(self, results: Results, number: int) -> dict[str, str]:
        """Give each sink its files; returns why sinks failed."""
        failed = {}
        for token, own in results.items():
            if not own.files:
                continue
            query = self.served[token]
            names = tuple(file for file, _ in own.files)
            try:
                query.sink.deliver(Delivery(self._spark, number, names, query.schema, self._is_first, own.rows))
            except Exception as error:
                refuse_interruption(error)
                if query.sink.must_not_miss:
                    raise
                failed[token] = reason(error)
        return failed

    def _keep_late(self, spark: SparkSession, files: Sequence[WaitingFile], number: int) -> None:
        """Write the rows that came too late for some query aside."""
        for stream in {file.stream for file in files}:
            paths = [f"{self.folder.url}/{file.path}" for file in files if file.stream == stream]
            late = spark.read.schema(self._catalog.streams[stream].schema).parquet(*paths)
            late.write.mode("overwrite").parquet(f"{self._late_folder}/{stream}/batch={number}")

    def _results_folder(self, number: int) -> str:
        return f"{self.folder.url}/results/{number}"

    def _note(
        self,
        number: int,
        intake: Intake,
        clock: _Clock,
        jobs: Jobs,
        endings: Sequence[Ending],
        results: Results,
    ) -> None:
        services = {
            ending.query.token: ServedRounds(len(ending.rounds), own.rows, own.seconds)
            for ending in endings
            for own in (results.get(ending.query.token, QueryResults()),)
        }
        ends = {
            ending.query.token: bounds(max(ending.rounds), ending.query.query.window)[1]
            for ending in endings
            if ending.rounds
        }
        record = BatchRecord(
            number,
            intake.rows,
            clock.seconds,
            services,
            intake.without_time,
            wanted_memory=jobs.wanted,
            held_memory=jobs.held,
            lag=time.time() - max(self.position.latest.values()) / 1e6 if self.position.latest else None,
            jobs=tuple(tuple(dict.fromkeys(ending.query.token for ending in job)) for job in jobs.endings),
            ends=ends,
        )
        self._shared_seconds += record.shared_seconds
        ended = {ending.query.token: self._ended_rounds(ending, results) for ending in endings}
        lengths = {ending.query.token: ending.query.query.window.length for ending in endings}
        rounds = divided(number, ended, lengths, self._shared_seconds)
        if ended:
            self._shared_seconds = 0.0
        self.log.append(record)
        self.history.add(record, rounds)

    def _ended_rounds(self, ending: Ending, results: Results) -> EndedRounds:
        """The rounds of a query that have ended, as far as its scheduler remembers them."""
        query, own = ending.query, results.get(ending.query.token)
        records = last_of(self.served[query.token].scheduler.log, len(ending.rounds))
        numbers = ending.rounds[len(ending.rounds) - len(records) :]
        if own is None:
            rows = [0] * len(numbers)  # no row is left
        elif query.is_plain:
            rows = [rows_kept(record, query.query.window.length) for record in records]
        else:
            rows = [own.by_round[number] for number in numbers]
        ends = [number * query.query.window.slide for number in numbers]
        return EndedRounds(ends, records, rows, 0.0 if own is None else own.seconds)


def _with_results(
    positions: Mapping[str, QueryPosition],
    before: Mapping[str, QueryPosition],
    results: Results,
    failed: Mapping[str, str],
) -> dict[str, QueryPosition]:
    """The positions with the rows that were delivered, and with the reasons of queries that failed.

    The rounds that end while a query fails are not delivered, and do not count.
    """
    return {
        token: replace(
            position,
            rows=position.rows + (results[token].rows if token in results and token not in failed else 0),
            rounds=before[token].rounds if token in failed else position.rounds,
            failed=failed.get(token, position.failed),
        )
        for token, position in positions.items()
    }
