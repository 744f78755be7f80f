from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from thalweg.spark.session.worker.take_in import StreamIntake, TakeIn

SCHEMA = pa.schema({"stream": pa.string(), "time": pa.int64(), "0": pa.int32(), "1": pa.int64()})
A, B = 0, 1  # conditions, which are bits 5 and 0 of the last column
LATE, NEEDED = 5, 2  # times
ROWS = st.lists(
    st.tuples(st.sampled_from("RS"), st.none() | st.integers(-30, 30), st.integers(0, 9), st.booleans(), st.booleans())
)


def intake(name: str, *conjunctions: tuple[int, ...], late_until: int | None = None) -> StreamIntake:
    conditions = ((3, 5, "is a"), (3, 0, "is b"))
    late = ((2, "x of late rows"), (1, "time of late rows"))
    return StreamIntake(name, 10, ((2, "x"),), conditions, conjunctions, NEEDED, late_until, late)


def batches_of(rows: Iterable[tuple[Any, ...]], size: int) -> list[pa.RecordBatch]:
    listed = [{"stream": stream, "time": time, "0": x, "1": 32 * is_a + is_b} for stream, time, x, is_a, is_b in rows]
    return [pa.RecordBatch.from_pylist(listed[start : start + size], SCHEMA) for start in range(0, len(listed), size)]


def told(folder: Path, streams: tuple[StreamIntake, ...], batches: list[pa.RecordBatch]) -> dict[str, Any]:
    (batch,) = list(TakeIn(str(folder), streams)(iter(batches)))
    return {report["stream"]: report for report in map(json.loads, batch.column(0).to_pylist())}


def rows_of(folder: Path, report: dict[str, Any] | None, *names: str) -> list[tuple[int, int]]:
    if report is None:
        return []
    table = parquet.read_table(folder / report["name"])
    assert table.num_rows == report["rows"]
    assert max(table.column(names[0]).to_pylist()) == report["latest"]
    return sorted(zip(*(table.column(name).to_pylist() for name in names), strict=True))


@given(ROWS, st.integers(1, 5))
def test_rows_are_counted_and_written_as_a_plain_loop_would(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, int | None, int, bool, bool]], size: int
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    streams = (intake("R", (A,), (A, B), late_until=LATE), intake("S", ()))
    found = told(folder, streams, batches_of(rows, size))
    for name in "RS":
        own = [row for row in rows if row[0] == name]
        assert (name in found) == bool(own)
        if not own:
            continue
        report = found[name]
        timed = [(time, x, is_a, is_b) for _, time, x, is_a, is_b in own if time is not None]
        assert report["without_time"] == len(own) - len(timed)
        assert report["latest"] == max((time for time, *_ in timed), default=None)
        panes: dict[int, np.ndarray] = {}
        for time, _, is_a, is_b in timed:
            kept = [is_a, is_a and is_b] if name == "R" else [True]
            end = -(-time // 10) * 10
            panes[end] = panes.get(end, np.zeros(1 + len(kept), int)) + np.array([1, *kept])
        assert {end: counts for end, *counts in report["panes"]} == {
            end: counts.tolist() for end, counts in panes.items()
        }
        needed = [(time, x) for time, x, is_a, _ in timed if time > NEEDED and (is_a or name == "S")]
        assert rows_of(folder, report["needed"], "time", "x") == sorted(needed)
        late = [(time, x) for time, x, *_ in timed if name == "R" and time <= LATE]
        assert rows_of(folder, report["late"], "time of late rows", "x of late rows") == sorted(late)


def test_a_stream_that_no_query_reads_is_looked_at_for_its_time_only(tmp_path: Path) -> None:
    report = told(tmp_path, (intake("R"),), batches_of([("R", 7, 1, True, True)], 1))["R"]
    assert (report["latest"], report["needed"], report["late"]) == (7, None, None)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_micro_batch_has_no_report(tmp_path: Path) -> None:
    assert told(tmp_path, (intake("R", ()),), []) == {}
