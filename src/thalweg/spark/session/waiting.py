"""Rows that wait for their rounds to end: files that are written once, and read by all queries that need them.

Small files of a stream are put together to larger files, level by level, so that a long window is not many files,
and no row is written more often than there are levels.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.spark.session.panes import Panes
from thalweg.spark.session.position import QueryPosition, WaitingFile
from thalweg.spark.session.program import Program
from thalweg.spark.session.worker.take_in import TIME
from thalweg.sql.rounds import bounds

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_FILES = 16  # of a stream and level, above which they are written together
READ_FOR_EACH = 25  # rows that are read at most for each row that is wanted: to decode a column takes little time
NEVER = 1 << 62  # microseconds: later than any event time
ALWAYS = -NEVER

NeededAfter = Mapping[str, int]  # by stream, the time after which rows are still needed


def needed_after(program: Program, positions: Mapping[str, QueryPosition]) -> dict[str, int]:
    """For each stream that is read, the time after which some query still needs its rows."""
    times: dict[str, int] = {}
    for query in program.queries:
        position = positions[query.token]
        if not position.is_served:
            continue
        begins = ALWAYS if position.delivered is None else bounds(position.delivered + 1, query.query.window)[0]
        for each in query.streams:
            times[each.source] = min(times.get(each.source, NEVER), begins)
    return times


def open_panes(panes: Panes, needed: NeededAfter) -> Panes:
    """The panes with rows that are still needed."""
    return {
        stream: {end: pane for end, pane in ends.items() if end > needed[stream]}
        for stream, ends in panes.items()
        if stream in needed
    }


def still_needed(files: Iterable[WaitingFile], needed: NeededAfter) -> list[WaitingFile]:
    """The files with rows that are still needed."""
    return [file for file in files if file.latest > needed.get(file.stream, NEVER)]


def written_together(
    files: Sequence[WaitingFile], needed: NeededAfter, folder: str, number: int
) -> tuple[WaitingFile, ...]:
    """The files of a stream and level as one file of the next level, where there are many."""
    found: list[WaitingFile] = []
    by_level = sorted(files, key=lambda file: (file.stream, file.level))
    for (stream, level), several in groupby(by_level, key=lambda file: (file.stream, file.level)):
        group = list(several)
        if len(group) <= MOST_FILES:
            found += group
            continue
        path = f"segments/{number}/{uuid.uuid4().hex}.parquet"
        rows, size = _write_together([f"{folder}/{file.path}" for file in group], needed[stream], f"{folder}/{path}")
        found.append(WaitingFile(stream, path, rows, max(file.latest for file in group), size, level + 1))
    return tuple(found)


def remove_files(folder: str, files: Iterable[WaitingFile], kept: Iterable[WaitingFile]) -> None:
    """Remove files but those that are kept, and folders that are empty then."""
    for path in {file.path for file in files} - {file.path for file in kept}:
        file = Path(folder, path)
        file.unlink(missing_ok=True)
        if file.parent.is_dir() and not any(file.parent.iterdir()):
            file.parent.rmdir()


def some_rows(paths: Sequence[str], columns: Sequence[str], rows: int) -> pa.Table:
    """About so many rows of files, or all if there are less, spread evenly; a column that no file has is NULL.

    Of very many rows, some groups are read, spread evenly.
    """
    import pyarrow.parquet as pq

    files = [pq.ParquetFile(path) for path in paths]
    groups = [(file, group) for file in files for group in range(file.num_row_groups)]
    step = max(sum(file.metadata.num_rows for file in files) // (READ_FOR_EACH * rows), 1)
    wanted = list(dict.fromkeys(columns))
    empty = pa.table({name: pa.nulls(0) for name in wanted})  # of the type NULL, which gives way to any other
    read = [file.read_row_group(group, columns=wanted) for file, group in groups[::step]]
    found = pa.concat_tables([empty, *read], promote_options="default")
    every = max(found.num_rows // rows, 1)
    return found.take(pa.array(np.arange(0, found.num_rows, every)))


def _write_together(paths: Sequence[str], after: int, target: str) -> tuple[int, int]:
    """Write the rows of several files that are later than a time to one file; returns how many, and their bytes."""
    import pyarrow.parquet as pq

    columns = pa.unify_schemas([pq.read_schema(path) for path in paths])
    schema = pa.schema([column.with_nullable(True) for column in columns])  # noqa: FBT003 - rows of others have none
    rows = size = 0
    with pq.ParquetWriter(target, schema, compression="snappy") as writer:
        for batch in _batches(paths):
            chosen = batch.filter(pc.greater(batch.column(TIME), after))
            missing = [pa.nulls(chosen.num_rows, each.type) for each in schema if each.name not in batch.schema.names]
            names = [each.name for each in schema if each.name not in batch.schema.names]
            whole = pa.table([*chosen.columns, *missing], names=[*batch.schema.names, *names]).select(schema.names)
            writer.write_table(whole.cast(schema))
            rows += chosen.num_rows
            size += chosen.nbytes
    return rows, size


def _batches(paths: Sequence[str]) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    for path in paths:
        yield from pq.ParquetFile(path).iter_batches()
