"""One micro-batch of a session, step by step:

1. `shared_rows` reads the micro-batch once, with every shared condition as a column, and keeps it in memory
2. `count_panes` counts rows by stream and pane: the watermarks, and the rounds that end, follow     (one job)
3. `written_files` computes the results of these rounds, all queries in one job                      (one job)
4. sinks take the files
5. rows whose rounds have not ended are written to a segment                                         (one job, if any)
6. the position is saved; then Spark takes note that the micro-batch is done
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from thalweg.spark.folder import StateFolder
from thalweg.spark.session.branches import Ending, branches_of, files_by_query, written_files
from thalweg.spark.session.lower import Catalog, Rounds
from thalweg.spark.session.position import SessionPosition, QueryPosition, WaitingSegment, load_position, save_position
from thalweg.spark.session.program import Program, ProgramQuery
from thalweg.spark.session.rows import Pane, PaneCounts, count_panes, needed, shared_rows
from thalweg.spark.session.sinks import Delivery, Sink
from thalweg.spark.session.sources import STREAM, TIME
from thalweg.sql.rounds import bounds, first_round, last_ended, last_round

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from thalweg.charts.plan import QueryPlan

MOST_SEGMENTS = 8  # folders of waiting rows, above which they are written together


class SessionEngine:
    """Runs the micro-batches of a session, and holds its position."""

    def __init__(self, spark: SparkSession, catalog: Catalog, checkpoint: str) -> None:
        self.spark = spark
        self.catalog = catalog
        self.checkpoint = checkpoint
        self.folder = StateFolder(f"{checkpoint}/thalweg")
        self.position = load_position(self.folder)
        self.program = Program(())
        self.sinks: dict[str, Sink] = {}
        self.schemas: dict[str, StructType] = {}
        self.plans: dict[str, QueryPlan] = {}
        self._is_first = True

    def run(self, batch: DataFrame, number: int) -> None:
        """Run one micro-batch; does nothing if it was run before."""
        if number <= self.position.batch:
            return
        streams = list(self.catalog.streams.values())
        rows = shared_rows(batch, self.program, streams).persist()
        try:
            counts = count_panes(rows, self.program, streams)
            before = self.position
            latest = {name: max(time, before.latest.get(name, time)) for name, time in counts.latest.items()}
            latest = {**before.latest, **latest}
            panes = _with_panes(before.panes, counts)
            endings, after = self._endings(latest, panes, counts)
            waiting = self._waiting_rows(rows)
            files = self._compute(endings, waiting, number)
            self._deliver(files, number)
            keep_from = {stream.name: self._keep_from(stream.name, after) for stream in streams}
            segments = self._store(rows, counts, keep_from, number)
            self.position = SessionPosition(
                batch=number,
                latest=latest,
                queries=_with_results(after, files),
                segments=segments,
                panes=self._open_panes(panes, keep_from),
            )
            save_position(self.folder, self.position)
            self._remove_old(before, number)
        finally:
            rows.unpersist()
        self._is_first = False

    # ------------------------------------------------------------------------------------------- rounds

    def _endings(
        self, latest: Mapping[str, int], panes: Mapping[str, Mapping[int, Pane]], counts: PaneCounts
    ) -> tuple[list[Ending], dict[str, QueryPosition]]:
        """The rounds of each query that end now, and where the queries stand when these are delivered."""
        endings = []
        after = dict(self.position.queries)
        for query in self.program.queries:
            at = self.position.queries[query.token]
            if at.failed is not None or at.is_paused:
                continue
            at = replace(at, late=at.late + self._late(query, at, counts))
            watermark = self._watermark(query, latest)
            last = None if watermark is None else last_ended(watermark, query.query.window)
            if last is not None and (at.delivered is None or last > at.delivered):
                with_rows = self._rounds_with_rows(query, panes, at.delivered, last)
                if with_rows:
                    rounds = Rounds(with_rows[0], last, tuple(with_rows))
                    endings.append(Ending(query, rounds, self.plans[query.token]))
                    at = replace(at, rounds=at.rounds + len(with_rows))
                at = replace(at, delivered=last)
            after[query.token] = at
        return endings, after

    def _watermark(self, query: ProgramQuery, latest: Mapping[str, int]) -> int | None:
        """The time before which no more rows of any stream of a query come; None while a stream has none."""
        sources = {each.source for each in query.streams}
        if not sources <= latest.keys():
            return None
        return min(latest[name] - self.catalog.streams[name].delay for name in sources)

    def _rounds_with_rows(
        self, query: ProgramQuery, panes: Mapping[str, Mapping[int, Pane]], delivered: int | None, last: int
    ) -> list[int]:
        window = query.query.window
        found: set[int] = set()
        for source in {each.source for each in query.streams}:
            width = self.program.pane(source)
            for pane in panes.get(source, {}):
                time = pane * width
                first = first_round(time, window) if delivered is None else max(first_round(time, window), delivered + 1)
                found.update(range(first, min(last_round(time, window), last) + 1))
        return sorted(found)

    def _late(self, query: ProgramQuery, at: QueryPosition, counts: PaneCounts) -> int:
        """How many rows came after a round of theirs was delivered."""
        if at.delivered is None:
            return 0
        late = 0
        for source in {each.source for each in query.streams}:
            width = self.program.pane(source)
            late += sum(
                pane.rows
                for number, pane in counts.panes.get(source, {}).items()
                if first_round(number * width, query.query.window) <= at.delivered
            )
        return late

    # ------------------------------------------------------------------------------------------- results

    def _compute(self, endings: Sequence[Ending], rows: DataFrame, number: int) -> dict[str, list[tuple[str, int]]]:
        """Write the results of all queries whose rounds end, in one job."""
        if not endings:
            return {}
        folder = f"{self.folder.url}/results/{number}"
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder)
        Path(folder).mkdir(parents=True)
        written = written_files(branches_of(endings), rows, self.catalog, folder).toArrow().to_pydict()
        return {
            token: [(f"{folder}/{file}", count) for file, count in files]
            for token, files in files_by_query(written).items()
        }

    def _deliver(self, files: Mapping[str, Sequence[tuple[str, int]]], number: int) -> None:
        for token, listed in files.items():
            delivery = Delivery(
                spark=self.spark,
                number=number,
                files=tuple(file for file, _ in listed),
                schema=self.schemas[token],
                may_be_repeated=self._is_first,
            )
            self.sinks[token].deliver(delivery)

    # ------------------------------------------------------------------------------------------- waiting rows

    def _waiting_rows(self, rows: DataFrame) -> DataFrame:
        """The rows of the micro-batch, and those of earlier ones that wait."""
        if not self.position.segments:
            return rows
        stored = self.spark.read.parquet(*(f"{self.folder.url}/{each.folder}" for each in self.position.segments))
        return rows.unionByName(stored, allowMissingColumns=True)

    def _keep_from(self, stream: str, after: Mapping[str, QueryPosition]) -> int | None:
        """The time after which rows of a stream are still needed; None for all of them."""
        times = []
        for query, _ in self.program.readers(stream):
            at = after[query.token]
            if at.failed is not None or at.is_paused:
                continue
            if at.delivered is None:
                return None
            times.append(bounds(at.delivered + 1, query.query.window)[0])
        return min(times, default=1 << 62)

    def _store(
        self, rows: DataFrame, counts: PaneCounts, keep_from: Mapping[str, int | None], number: int
    ) -> tuple[WaitingSegment, ...]:
        """Write the rows of the micro-batch that are still needed to a segment; drop segments that nobody needs."""
        kept = tuple(each for each in self.position.segments if _is_needed(each.latest, keep_from))
        latest = {
            stream: time for stream, time in counts.latest.items() if _is_needed({stream: time}, keep_from)
        }
        if not latest:
            return kept
        waiting = rows.where(self._is_waiting(keep_from))
        if len(kept) >= MOST_SEGMENTS:
            stored = self.spark.read.parquet(*(f"{self.folder.url}/{each.folder}" for each in kept))
            stored = stored.where(self._is_waiting(keep_from, stored=True))
            waiting = waiting.unionByName(stored, allowMissingColumns=True)
            for each in kept:
                latest = {name: max(time, latest.get(name, time)) for name, time in each.latest.items()} | {
                    name: time for name, time in latest.items() if name not in each.latest
                }
            kept = ()
        folder = f"segments/{number}"
        waiting.write.mode("overwrite").parquet(f"{self.folder.url}/{folder}")
        return (*kept, WaitingSegment(folder, latest))

    def _is_waiting(self, keep_from: Mapping[str, int | None], *, stored: bool = False) -> Column:
        from pyspark.sql import functions as f

        conditions = []
        for stream, time in keep_from.items():
            if not self.program.readers(stream):
                continue
            condition = (f.col(STREAM) == stream) if stored else needed(self.program, stream)
            conditions.append(condition if time is None else condition & (f.col(TIME) > time))
        return reduce(lambda left, right: left | right, conditions, f.lit(False))  # noqa: FBT003

    def _open_panes(
        self, panes: Mapping[str, Mapping[int, Pane]], keep_from: Mapping[str, int | None]
    ) -> dict[str, dict[int, tuple[int, Mapping[str, int]]]]:
        found: dict[str, dict[int, tuple[int, Mapping[str, int]]]] = {}
        for stream, numbered in panes.items():
            time = keep_from.get(stream)
            if not self.program.readers(stream):
                continue
            width = self.program.pane(stream)
            found[stream] = {
                number: (pane.rows, pane.kept)
                for number, pane in numbered.items()
                if time is None or number * width > time
            }
        return found

    def _remove_old(self, before: SessionPosition, number: int) -> None:
        """Remove what no position needs: results that sinks have taken, and segments of the position before."""
        kept = {each.folder for each in self.position.segments}
        for segment in before.segments:
            if segment.folder not in kept:
                shutil.rmtree(f"{self.folder.url}/{segment.folder}", ignore_errors=True)
        shutil.rmtree(f"{self.folder.url}/results/{number}", ignore_errors=True)


def _is_needed(latest: Mapping[str, int], keep_from: Mapping[str, int | None]) -> bool:
    for stream, time in latest.items():
        bound = keep_from.get(stream, 1 << 62)
        if bound is None or time > bound:
            return True
    return False


def _with_panes(
    before: Mapping[str, Mapping[int, tuple[int, Mapping[str, int]]]], counts: PaneCounts
) -> dict[str, dict[int, Pane]]:
    """The panes that wait together with those of a micro-batch."""
    panes = {stream: {number: Pane(*pane) for number, pane in numbered.items()} for stream, numbered in before.items()}
    for stream, numbered in counts.panes.items():
        own = panes.setdefault(stream, {})
        for number, pane in numbered.items():
            old = own.get(number, Pane(0, {}))
            kept = {name: count + old.kept.get(name, 0) for name, count in pane.kept.items()}
            own[number] = Pane(old.rows + pane.rows, kept)
    return panes


def _with_results(
    after: Mapping[str, QueryPosition], files: Mapping[str, Sequence[tuple[str, int]]]
) -> dict[str, QueryPosition]:
    return {
        token: replace(at, rows=at.rows + sum(count for _, count in files.get(token, ())))
        for token, at in after.items()
    }
