from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.spark.filters.worker import distinct_values as module
from thalweg.spark.filters.worker.distinct_values import RememberedOutcomes, can_be_found, codes_of, distinct_values

COLUMNS = [
    pa.array(["a", "", None, "a", ""]),
    pa.array([b"a", b"", None, b"a", b""]),
    pa.array([1, 0, None, 1, 0]),
    pa.array([True, False, None, True, False]),
    pa.array([1.5, -0.0, None, 1.5, -0.0]),
    pa.array([float("nan"), 0.0, None, float("nan"), 0.0]),
    pa.array([date(2026, 1, 1), date(2026, 1, 2), None, date(2026, 1, 1), date(2026, 1, 2)]),
    pa.array([datetime(2026, 1, day, tzinfo=UTC) if day else None for day in (1, 2, 0, 1, 2)]),
    pa.array([Decimal("1.50"), Decimal(0), None, Decimal("1.50"), Decimal(0)]),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_values_of_all_types_are_found_and_remembered(column: pa.Array) -> None:
    found = distinct_values([codes_of(column)])
    assert found.codes.tolist() == [0, 1, 2, 0, 1]
    assert found.first_rows.tolist() == [0, 1, 2]
    remembered = RememberedOutcomes()
    remembered.remember(remembered.keys([column])[:3], [1, 0, 2], size=0)
    assert remembered.outcomes(remembered.keys([column.slice(1)])).tolist() == [0, 2, 1, 0]


def test_zeros_of_both_signs_are_two_values() -> None:
    assert len(distinct_values([codes_of(pa.array([0.0, -0.0, 0.0]))])) == 2
    assert len(distinct_values([codes_of(pa.array([0.0, -0.0, 0.0], pa.float32()))])) == 2


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.struct({"a": pa.int64()}), pa.map_(pa.string(), pa.int64())])
def test_values_of_nested_types_cannot_be_found(kind: pa.DataType) -> None:
    assert not can_be_found(kind)


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", None]), st.booleans()), min_size=1))
def test_rows_have_the_same_number_if_all_their_values_are_equal(rows: list[tuple[int, str | None, bool]]) -> None:
    found = distinct_values([codes_of(pa.array(values)) for values in zip(*rows, strict=True)])
    firsts = [rows.index(row) for row in rows]
    assert found.first_rows[found.codes].tolist() == firsts
    assert len(found) == len(set(rows))


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_VALUES", 10)
    monkeypatch.setattr(module, "MOST_BYTES", 100)
    remembered = RememberedOutcomes()
    for start in range(0, 100, 5):
        remembered.remember(range(start, start + 5), [1] * 5, size=20)
        assert np.count_nonzero(remembered.outcomes(range(100)) == 1) <= 10
    remembered.remember([1000], [1], size=101)
    assert not (remembered.outcomes(range(1001)) == 1).any()
