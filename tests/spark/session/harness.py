"""Sessions that are run micro-batch by micro-batch, and DuckDB as the oracle of their results.

A test gives rows, micro-batch by micro-batch, and episodes: the micro-batches in which a query is served without a
break. The oracle knows the definition of rounds alone, and runs the text of a query over the rows of every round.
"""

from __future__ import annotations

import csv
import datetime as dt
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import sqlglot
from pyarrow import parquet

import thalweg as tw
from thalweg.spark.session.engine import SessionEngine
from thalweg.spark.session.sources import SharedStream, all_streams
from thalweg.spark.session.standing import StandingQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SECOND = 1_000_000  # microseconds
TIMESTAMP = pa.timestamp("us", "UTC")
SPARK_TYPES = {pa.int32(): "int", pa.int64(): "bigint", pa.string(): "string", TIMESTAMP: "timestamp"}

# Every stream has columns of its own and an event time `ts`. The keys of C have another type than the others.
STREAMS: Mapping[str, pa.Schema] = {
    "A": pa.schema({"k": pa.int32(), "x": pa.int32(), "s": pa.string(), "ts": TIMESTAMP}),
    "B": pa.schema({"k": pa.int32(), "y": pa.int32(), "ts": TIMESTAMP}),
    "C": pa.schema({"k": pa.int64(), "z": pa.int32(), "ts": TIMESTAMP}),
}
DELAYS = {"A": 2, "B": 0, "C": 5}  # seconds
TABLE = pa.table(
    {"k": pa.array([0, 1, 1, 2, None], pa.int32()), "label": pa.array(["zero", "one", "uno", None, "none"])}
)

Row = tuple[Any, ...]  # the columns of a stream; the event time, in microseconds, is the last of them
Batch = Mapping[str, Sequence[Row]]  # the rows of a micro-batch, by stream
Result = tuple[Any, ...]  # bounds of the round in microseconds, and outputs


@tw.predicate(takes="numpy", name="is_odd")
def is_odd(value: Any) -> Any:  # noqa: ANN401 - an array of NumPy
    return value % 2 == 1


@dataclass(frozen=True)
class QueryText:
    """The text of a query in two parts, of which the oracle needs both apart."""

    body: str
    length: float  # seconds
    slide: float | None = None

    def __str__(self) -> str:
        slide = "" if self.slide is None else f" SLIDE {self.slide} seconds"
        return f"{self.body} WINDOW [{self.length} seconds{slide}]"

    @property
    def window(self) -> tuple[int, int]:
        """Length and slide in microseconds."""
        length = round(self.length * SECOND)
        return length, length if self.slide is None else round(self.slide * SECOND)

    @property
    def streams(self) -> set[str]:
        """The streams that the query reads."""
        return {table.name for table in sqlglot.parse_one(self.body).find_all(sqlglot.exp.Table)} & STREAMS.keys()


@dataclass(frozen=True)
class Episode:
    """The micro-batches, from `first` and before `end`, in which a query is served without a break."""

    first: int
    end: int


# ------------------------------------------------------------------------------------------------------- the session


@dataclass
class Driver:
    """Runs sessions over one folder, one after the other: each goes on where the one before was."""

    spark: SparkSession
    folder: Path
    memory: int | None = None  # a cap, in bytes
    late: Path | None = None  # where late rows are kept
    number: int = 0  # of the next micro-batch
    session: tw.Session = field(init=False)
    engine: SessionEngine | None = None
    _streams: dict[str, DataFrame] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, schema in STREAMS.items():
            (self.folder / "in" / name).mkdir(parents=True)
            columns = ", ".join(f"{each.name} {SPARK_TYPES[each.type]}" for each in schema)
            reader = self.spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
            self._streams[name] = reader.parquet(str(self.folder / "in" / name))
        self.open()

    def open(self) -> tw.Session:
        """A new session on the same checkpoint, without queries."""
        late = "count" if self.late is None else self.late
        self.session = tw.Session(self.spark, checkpoint=self.folder / "checkpoint", late=late, memory=self.memory)
        for name, frame in self._streams.items():
            self.session.stream(name, frame, event_time="ts", delay=f"{DELAYS[name]} seconds")
        self.session.table("T", self.spark.createDataFrame(TABLE))
        self.session.predicate("is_odd", is_odd)
        self.engine = None
        return self.session

    def run(self, *batches: Batch) -> None:
        """Run micro-batches. An exception leaves the micro-batch to be run again."""
        if self.engine is None:
            self.engine = self.session.make_engine()
        for batch in batches:
            self.engine.run(self._frame(batch), self.number)
            self.number += 1

    def _frame(self, batch: Batch) -> DataFrame:
        streams = [
            SharedStream(name, self.spark.createDataFrame(table_of(name, batch.get(name, ()))), "ts", 0)
            for name in STREAMS
        ]
        return all_streams(streams).coalesce(1)


def table_of(stream: str, rows: Sequence[Row]) -> pa.Table:
    schema = STREAMS[stream]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [pa.array(values, each.type) for values, each in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def write_files(folder: Path, batches: Sequence[Batch], first: int = 0) -> None:
    """Rows as files, one for each stream and micro-batch, which Spark reads in this order; a file appears whole."""
    for name in STREAMS:
        (folder / "in" / name).mkdir(parents=True, exist_ok=True)
        for number, batch in enumerate(batches, first):
            hidden = folder / "in" / name / f".{number}.parquet"
            parquet.write_table(table_of(name, batch.get(name, ())), hidden)
            os.utime(hidden, (10**9 + number, 10**9 + number))
            hidden.rename(hidden.with_name(f"{number}.parquet"))


def read_all(running: StreamingQuery) -> None:
    """Wait until a stream has read all files.

    The first wait may end with a look at the folder that began before the last file was there.
    """
    running.processAllAvailable()
    running.processAllAvailable()


def rows_in_memory(query: StandingQuery) -> Counter[Result]:
    """The results of a query that keeps them in memory."""
    table = query.results()
    return Counter() if table is None else results_of(table)


def rows_in_folder(folder: Path) -> Counter[Result]:
    """The results of a query that writes Parquet files, or CSV files of whole numbers."""
    files = sorted(folder.glob("*.parquet"))
    found = sum((results_of(parquet.read_table(file, partitioning=None)) for file in files), Counter[Result]())
    for file in folder.glob("*.csv"):
        with file.open(newline="") as lines:
            for start, end, *values in csv.reader(lines):
                outputs = (int(value) if value else None for value in values)
                found[_microseconds(start), _microseconds(end), *outputs] += 1
    return found


def _microseconds(text: str) -> int:
    return (dt.datetime.fromisoformat(text) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)


def results_of(table: pa.Table) -> Counter[Result]:
    """The rows of a table as a multiset; its first two columns are the bounds of rounds."""
    bounds = [table.column(place).cast(TIMESTAMP).cast(pa.int64()).to_pylist() for place in (0, 1)]
    outputs = [column.to_pylist() for column in table.columns[2:]]
    return Counter(zip(*bounds, *outputs, strict=True))


# -------------------------------------------------------------------------------------------------------- the oracle


def expected(query: QueryText, batches: Sequence[Batch], episodes: Sequence[Episode] = ()) -> Counter[Result]:
    """All that a query delivers. By default it is served in all micro-batches."""
    served = episodes or [Episode(0, len(batches))]
    return sum((_in_episode(query, batches, episode) for episode in served), Counter())


def late_rows(query: QueryText, batches: Sequence[Batch]) -> int:
    """How many rows come after a round of theirs was delivered."""
    return sum(len(late_places(query, batches, stream)) for stream in query.streams)


def late_places(query: QueryText, batches: Sequence[Batch], stream: str) -> set[tuple[int, int]]:
    """The rows of a stream that come after a round of theirs was delivered: numbers of micro-batches, and places."""
    places = set()
    for number, batch in enumerate(batches):
        ended = _watermark(query, batches[:number])
        for place, row in enumerate(batch.get(stream, ())):
            if ended is not None and row[-1] is not None and min(rounds_of(row[-1], query)) * query.window[1] < ended:
                places.add((number, place))
    return places


def rows_kept_aside(queries: Iterable[QueryText], batches: Sequence[Batch], stream: str) -> Counter[Row]:
    """The rows of a stream that come too late for at least one of some queries."""
    places = set().union(*(late_places(query, batches, stream) for query in queries if stream in query.streams))
    return Counter(batches[number][stream][place] for number, place in places)


def late_rows_in_folder(folder: Path) -> Counter[Row]:
    """The late rows of a stream that a session has kept."""
    tables = [parquet.read_table(file, partitioning=None) for file in sorted(folder.glob("*/*.parquet"))]
    columns = [[*table.columns[:-1], table.columns[-1].cast(TIMESTAMP).cast(pa.int64())] for table in tables]
    return Counter(row for each in columns for row in zip(*(column.to_pylist() for column in each), strict=True))


def rounds_of(time: int, query: QueryText) -> list[int]:
    """The rounds that hold a row of a time, by their definition."""
    length, slide = query.window
    around = range(time // slide - 1, (time + length) // slide + 2)
    return [number for number in around if number * slide - length < time <= number * slide]


def _in_episode(query: QueryText, batches: Sequence[Batch], episode: Episode) -> Counter[Result]:
    length, slide = query.window
    seen = _latest(batches[: episode.first])
    known = [seen[stream] for stream in query.streams if stream in seen]
    rows: dict[int, dict[str, list[Row]]] = {}  # by the number of a round, and stream
    for number in range(episode.first, episode.end):
        ended = _watermark(query, batches[:number]) if number > episode.first else None
        for stream in query.streams:
            for row in batches[number].get(stream, ()):
                for each in rounds_of(row[-1], query) if row[-1] is not None else ():
                    is_late = ended is not None and each * slide < ended
                    is_unseen = not known or each * slide - length >= max(known)
                    if is_unseen and not is_late:
                        rows.setdefault(each, {}).setdefault(stream, []).append(row)
    ended = _watermark(query, batches[: episode.end])
    found: Counter[Result] = Counter()
    for number, by_stream in rows.items():
        if ended is not None and number * slide < ended:
            bounds = (number * slide - length, number * slide)
            found.update((*bounds, *outputs) for outputs in _answers(query.body, by_stream))
    return found


def _latest(batches: Sequence[Batch]) -> dict[str, int]:
    times: dict[str, int] = {}
    for batch in batches:
        for stream, rows in batch.items():
            found = [row[-1] for row in rows if row[-1] is not None]
            if found:
                times[stream] = max(*found, times.get(stream, found[0]))
    return times


def _watermark(query: QueryText, batches: Sequence[Batch]) -> int | None:
    latest = _latest(batches)
    if not query.streams <= latest.keys():
        return None
    return min(latest[stream] - DELAYS[stream] * SECOND for stream in query.streams)


def _answers(body: str, rows: Mapping[str, Sequence[Row]]) -> Iterator[Result]:
    (sql,) = sqlglot.transpile(body, read="spark", write="duckdb")
    with duckdb.connect() as connection:
        connection.execute("CREATE MACRO is_odd(value) AS value % 2 = 1")
        connection.register("T", TABLE)
        for stream in STREAMS:
            connection.register(stream, table_of(stream, rows.get(stream, ())))
        yield from connection.execute(sql).fetchall()


def with_end(batches: Sequence[Batch]) -> list[Batch]:
    """The micro-batches, and then one with a row of each stream that is much later: all rounds before it end."""
    latest = max(_latest(batches).values(), default=0) + 1000 * SECOND
    rows = {"A": (None, None, None, latest), "B": (None, None, latest), "C": (None, None, latest)}
    return [*batches, {name: [row] for name, row in rows.items()}]
