from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from thalweg.mjoin.place import by_cell, without_null


@given(st.lists(st.tuples(st.integers(0, 6), st.integers())), st.integers(7, 9))
def test_each_row_goes_to_its_cell_in_order(rows: list[tuple[int, int]], count: int) -> None:
    cells = np.array([cell for cell, _ in rows], np.int64)
    batch = pa.record_batch({"v": pa.array([str(value) for _, value in rows], pa.string())})
    parts = dict(by_cell(batch, cells, count))
    assert all(part.num_rows for part in parts.values())
    for cell in range(count):
        expected = [str(value) for own, value in rows if own == cell]
        assert (parts[cell]["v"].to_pylist() if cell in parts else []) == expected


@given(st.lists(st.tuples(st.none() | st.integers(0, 3), st.none() | st.integers(0, 3), st.none() | st.just(1))))
def test_rows_without_a_key_go_nowhere(rows: list[tuple[int | None, int | None, int | None]]) -> None:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    batch = pa.record_batch({name: pa.array(list(each), pa.int64()) for name, each in zip("abc", columns, strict=True)})
    kept = without_null(batch, ["a", "b"])
    assert [tuple(row.values()) for row in kept.to_pylist()] == [row for row in rows if None not in row[:2]]
