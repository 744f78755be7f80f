from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from thalweg.mjoin.marks import together
from thalweg.mjoin.pack import pack, unpack

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string())])
ROWS = st.lists(st.tuples(st.none() | st.integers(-5, 5), st.none() | st.text(max_size=3)), max_size=20)


def batch_of(rows: list[tuple[int | None, str | None]]) -> pa.RecordBatch:
    columns = [[row[place] for row in rows] for place in range(2)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


@given(ROWS, st.integers(0, 10), st.integers(0, 10))
def test_what_is_packed_comes_back(rows: list[tuple[int | None, str | None]], start: int, length: int) -> None:
    part = batch_of(rows).slice(start, length)
    assert unpack(pack(part)).equals(part)


@given(st.lists(ROWS, max_size=4))
def test_several_become_one(several: list[list[tuple[int | None, str | None]]]) -> None:
    whole = together([unpack(pack(batch_of(rows))) for rows in several], SCHEMA)
    assert whole.equals(batch_of([row for rows in several for row in rows]))
