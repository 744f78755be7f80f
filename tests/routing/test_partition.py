import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from thalweg.routing.partition import NULL, HashPartition, codes, numbers, paired, refusal

COLUMNS = {
    "int8": pa.array([1, None, 2, 1], pa.int8()),
    "uint64": pa.array([2**64 - 1, None, 5, 2**64 - 1], pa.uint64()),
    "float": pa.array([1.5, None, float("nan"), 1.5]),
    "half": pa.array(np.array([1.5, 2.5, 0.0, 1.5], np.float16)),
    "string": pa.array(["a", None, "", "a"]),
    "large": pa.array(["a", None, "b", "a"], pa.large_string()),
    "view": pa.array(["a", None, "b", "a"], pa.string_view()),
    "binary": pa.array([b"\xff", None, b"", b"\xff"]),
    "fixed": pa.array([b"ab", None, b"cd", b"ab"], pa.binary(2)),
    "boolean": pa.array([True, None, False, True]),
    "timestamp": pa.array([dt.datetime(2024, 1, 1), None, dt.datetime(1969, 1, 1), dt.datetime(2024, 1, 1)]),  # noqa: DTZ001
    "zoned": pa.array([0, None, 1, 0], pa.timestamp("us", tz="UTC")),
    "date": pa.array([dt.date(2024, 1, 1), None, dt.date(1900, 1, 1), dt.date(2024, 1, 1)]),
    "date64": pa.array([0, None, 86_400_000, 0], pa.date64()),
    "time": pa.array([dt.time(1), None, dt.time(2), dt.time(1)]),
    "time32": pa.array([1, None, 2, 1], pa.time32("s")),
    "duration": pa.array([dt.timedelta(1), None, dt.timedelta(2), dt.timedelta(1)]),
    "decimal": pa.array([Decimal("1.10"), None, Decimal("2.20"), Decimal("1.10")]),
    "dictionary": pa.array(["a", None, "b", "a"]).dictionary_encode(),
}
every_type = pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS.keys())


@every_type
def test_equal_values_and_only_they_have_equal_codes(column: pa.Array) -> None:
    found = codes(column)
    assert found.dtype == np.int64
    assert found[0] == found[3]
    assert len(set(found[:3].tolist())) == 3
    if column.null_count:
        assert found[1] == NULL


@every_type
def test_slices_and_chunks_are_as_the_whole(column: pa.Array) -> None:
    whole, line = codes(column), numbers(column)
    assert codes(column[1:3]).tolist() == whole[1:3].tolist()
    assert codes(pa.chunked_array([column[:1], column[1:]])).tolist() == whole.tolist()
    assert codes(pa.chunked_array([], column.type)).size == 0
    assert np.array_equal(numbers(column[1:3]), line[1:3], equal_nan=True)
    assert np.isnan(line[1]) or not column.null_count


@every_type
def test_every_type_has_buckets(column: pa.Array) -> None:
    assert set(HashPartition(8).of(column).tolist()) <= set(range(8))


def test_codes_do_not_depend_on_the_width_of_a_type_nor_on_its_encoding() -> None:
    assert codes(COLUMNS["string"][:1]) == codes(COLUMNS["large"][:1]) == codes(COLUMNS["dictionary"][:1])
    assert codes(pa.array([1], pa.int8())) == codes(pa.array([1], pa.int64())) == codes(np.array([1]))
    assert codes(pa.array([0.0])) == codes(pa.array([-0.0]))
    assert codes(pa.nulls(2)).tolist() == [NULL, NULL]


def test_codes_are_the_same_in_every_process_and_version() -> None:
    assert codes(pa.array(["thalweg"])).tolist() == [-1861152565197312530]
    assert codes(pa.array([42])).tolist() == [-4767286540954276203]


def test_pairs_are_told_apart() -> None:
    first, second = (codes(pa.array(each)) for each in np.indices((50, 50)).reshape(2, -1))
    assert np.unique(paired(first, second)).size == 2500


@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.int8()), pa.struct({"a": pa.int8()}), pa.map_(pa.int8(), pa.int8()), pa.month_day_nano_interval()],
)
def test_types_that_cannot_classify_are_refused_by_name(kind: pa.DataType) -> None:
    reason = refusal(kind)
    assert reason is not None
    assert str(kind) in reason
    with pytest.raises(TypeError, match="cannot be a classifier"):
        codes(pa.nulls(1, kind))


def test_too_few_parts_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 part"):
        HashPartition(0)
