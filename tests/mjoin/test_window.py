"""A window gives back the rows that were put into it, of any type, while its rings go round and grow."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from thalweg.mjoin import Input, JoinQuery, TimeWindow
from thalweg.mjoin.window import Window

VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int8(), [1, None, -3]),
    (pa.bool_(), [True, None, False]),
    (pa.float32(), [0.5, None, -1.5]),
    (pa.string(), ["", None, "long enough"]),
    (pa.large_binary(), [b"", None, b"\0\1"]),
    (pa.binary(3), [b"abc", None, b"xyz"]),
    (pa.decimal128(38, 2), [decimal.Decimal("1.25"), None, decimal.Decimal("-3.50")]),
    (pa.decimal256(60, 1), [decimal.Decimal("1.5"), None, decimal.Decimal("-3.5")]),
    (pa.date32(), [dt.date(2020, 1, 1), None, dt.date(1960, 1, 1)]),
    (pa.timestamp("us", "UTC"), [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), None, dt.datetime(1960, 1, 1, tzinfo=dt.UTC)]),
    (pa.duration("us"), [dt.timedelta(1), None, dt.timedelta(-1)]),
    (pa.month_day_nano_interval(), [pa.MonthDayNano([1, 2, 3]), None, pa.MonthDayNano([4, 5, 6])]),
    (pa.null(), [None, None, None]),
    (pa.list_(pa.int32()), [[1, 2], None, []]),
    (pa.struct([("x", pa.int8())]), [{"x": 1}, None, {"x": None}]),
    (pa.map_(pa.string(), pa.int8()), [[("a", 1)], None, []]),
]


@pytest.mark.parametrize(
    ("kind", "values"), VALUES, ids=lambda value: str(value) if isinstance(value, pa.DataType) else ""
)
def test_rows_come_back_as_they_went_in(kind: pa.DataType, values: list[Any]) -> None:
    schema = pa.schema([("key", pa.int64()), ("at", pa.int64()), ("value", kind)])
    inputs = tuple(Input(name, schema, "at", TimeWindow(300)) for name in "AB")
    window = Window(JoinQuery(inputs, (frozenset([("A", "key"), ("B", "key")]),), select=(("A", "key", "key"),)), "A")
    random, kept = np.random.default_rng(0), list[dict[str, Any]]()
    for step in range(40):
        size = int(random.integers(1, 200))
        chosen = [values[place] if step > 9 else values[0] for place in random.integers(0, 3, size)]
        columns = [pa.array(random.integers(0, 9, size)), pa.array(np.full(size, 100 * step)), pa.array(chosen, kind)]
        rows = pa.record_batch(columns, schema=schema)
        window.append(rows.slice(size // 2), step)  # with an offset
        kept += rows.slice(size // 2).to_pylist()
        window.expire(100 * step)
        kept = [row for row in kept if row["at"] + 300 > 100 * step]
        numbers = random.permutation(np.arange(window.start, window.end))
        assert window.rows(numbers).to_pylist() == [kept[number - window.start] for number in numbers]
