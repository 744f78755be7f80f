import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.sealed import SavedStateError, dump_table, seal
from thalweg.tables import keys as keys_module
from thalweg.tables.codes import Words
from thalweg.tables.keys import KIND, VERSION, KeySet, KeyTableError

UTC = dt.UTC
MICROSECONDS = st.datetimes(dt.datetime(1600, 1, 1), dt.datetime(9999, 1, 1))  # noqa: DTZ001  # a naive one is meant
DECIMALS = st.integers(-(10**18) + 1, 10**18 - 1).map(lambda units: Decimal(units).scaleb(-2))

TYPES: dict[Any, st.SearchStrategy[Any]] = {
    pa.int8(): st.integers(-128, 127),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint32(): st.integers(0, 2**32 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=20),
    pa.large_string(): st.text(max_size=20),
    pa.string_view(): st.text(max_size=20),
    pa.binary(): st.binary(max_size=40),
    pa.binary_view(): st.binary(max_size=40),
    pa.binary(11): st.binary(min_size=11, max_size=11),
    pa.date32(): st.dates(),
    pa.date64(): st.dates(),
    pa.time32("ms"): st.integers(0, 86_399_999).map(
        lambda ms: (dt.datetime(2000, 1, 1, tzinfo=UTC) + dt.timedelta(milliseconds=ms)).time()
    ),
    pa.timestamp("us"): MICROSECONDS,
    pa.timestamp("us", "Europe/Paris"): MICROSECONDS.map(lambda moment: moment.replace(tzinfo=UTC)),
    pa.duration("us"): st.timedeltas(dt.timedelta(-(10**8)), dt.timedelta(10**8)),
    pa.decimal128(18, 2): DECIMALS,
    pa.decimal256(40, 2): DECIMALS,
    pa.dictionary(pa.int16(), pa.string()): st.text(max_size=3),
}


def canonical(value: object) -> object:
    """Spark's equality: NaN equals NaN (and -0.0 equals 0.0, as in Python)."""
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def expected(keys: list[tuple[Any, ...]], rows: list[tuple[Any, ...]]) -> list[bool | None]:
    known = {tuple(map(canonical, key)) for key in keys}
    return [None if None in row else tuple(map(canonical, row)) in known for row in rows]


def array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """An array that is a slice from the middle of another."""
    padded = [*values[:1], *values, *values[-1:]]
    if pa.types.is_dictionary(kind):
        return pa.array(padded, kind.value_type).dictionary_encode().cast(kind).slice(len(values[:1]), len(values))
    return pa.array(padded, kind).slice(len(values[:1]), len(values))


def distinct(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return list({tuple(map(canonical, row)): row for row in rows}.values())


def keys_of(rows: list[tuple[Any, ...]], kinds: list[pa.DataType]) -> KeySet:
    return KeySet(pa.table([array([row[i] for row in rows], kind) for i, kind in enumerate(kinds)], names(kinds)))


def names(kinds: list[pa.DataType]) -> list[str]:
    return [f"k{i}" for i in range(len(kinds))]


@st.composite
def lookups(draw: st.DrawFn, kinds: list[pa.DataType]) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Distinct keys, and rows to look up: half of them keys, some with NULL."""
    key = st.tuples(*(TYPES[kind] for kind in kinds))
    keys = distinct(draw(st.lists(key, max_size=40)))
    row = st.tuples(*(st.none() | TYPES[kind] for kind in kinds))
    return keys, draw(st.lists(st.sampled_from(keys) | row if keys else row, max_size=40))


@pytest.mark.parametrize("kind", TYPES, ids=str)
@settings(max_examples=25)
@given(data=st.data())
def test_contains_is_what_a_set_says(kind: pa.DataType, data: st.DataObject) -> None:
    keys, rows = data.draw(lookups([kind]))
    found = keys_of(keys, [kind]).contains([array([row[0] for row in rows], kind)])
    found.validate(full=True)
    assert found.type == pa.bool_()
    assert found.to_pylist() == expected(keys, rows)


@settings(max_examples=40)
@given(data=st.data())
def test_long_keys_are_compared_as_bytes(data: st.DataObject) -> None:
    keys, rows = data.draw(lookups([pa.string(), pa.int8()]))
    keys.append(("long" * 20, 1))
    columns = [array([row[0] for row in rows], pa.string()), array([row[1] for row in rows], pa.int8())]
    assert keys_of(keys, [pa.string(), pa.int8()]).contains(columns).to_pylist() == expected(keys, rows)
    assert keys_of(keys, [pa.string(), pa.int8()]).contains(
        [pa.array(["long" * 20] * 2), pa.array([1, 2])]
    ).to_pylist() == [True, False]


@given(data=st.data())
def test_keys_of_several_columns_are_one_key(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(list(TYPES)), min_size=2, max_size=4))
    keys, rows = data.draw(lookups(kinds))
    columns = [array([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]
    keyset = keys_of(keys, kinds)
    assert keyset.contains(columns).to_pylist() == expected(keys, rows)
    assert KeySet.from_bytes(keyset.to_bytes()).contains(columns).to_pylist() == expected(keys, rows)


def test_parts_of_a_key_do_not_run_into_each_other() -> None:
    keys = KeySet(pa.table({"a": ["ab", "", "a"], "b": ["c", "abc", "\0"]}))
    columns = [pa.array(["a", "ab", "abc", "", "a", "a\0"]), pa.array(["bc", "c", "", "abc", "\0", ""])]
    assert keys.contains(columns).to_pylist() == [False, True, False, True, True, False]


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 15, 16, 17, 64, 65, 1000])
def test_strings_around_the_length_of_a_word(size: int) -> None:
    keys = KeySet(pa.table({"k": ["x" * size]}))
    others = ["x" * size, "x" * (size + 1), "x" * max(size - 1, 0), "x" * size + "\0", "y" * size]
    assert keys.contains([pa.array(others)]).to_pylist() == [other == "x" * size for other in others]


@pytest.mark.parametrize("size", [1, 10, 10_000])
def test_many_keys(size: int) -> None:
    rng = np.random.default_rng(0)
    numbers = np.unique(rng.integers(0, 40_000, 20_000))
    rows = rng.integers(0, 40_000, size)
    answer = np.isin(rows, numbers).tolist()
    assert KeySet(pa.table({"k": numbers})).contains([pa.array(rows)]).to_pylist() == answer
    texts = KeySet(pa.table({"k": pa.array(numbers).cast(pa.string())}))
    assert texts.contains([pa.array(rows).cast(pa.string())]).to_pylist() == answer


def test_keys_whose_hashes_are_equal_get_another_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    mix = keys_module.mix

    def weak(hashes: Words, words: Words) -> Words:
        return np.zeros_like(hashes) if hashes[0] == 0 else mix(hashes, words)

    monkeypatch.setattr(keys_module, "mix", weak)
    keys = KeySet(pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]}))
    rows = [pa.array([1, 2, 3, 1]), pa.array(["x", "y", "z", "y"])]
    assert keys.contains(rows).to_pylist() == [True, True, True, False]


@pytest.mark.parametrize("key", ["only", "only" * 20])
def test_a_hash_of_another_key_is_no_match(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys_module, "mix", lambda hashes, _: hashes)
    keys = KeySet(pa.table({"k": [key]}))
    assert keys.contains([pa.array([key, "other", None])]).to_pylist() == [True, False, None]


@pytest.mark.parametrize(
    ("key", "column", "answer"),
    [
        (pa.array([1, -1], pa.int32()), pa.array([2**32 + 1, 1, -1, None]), [False, True, True, None]),
        (pa.array([1, 2]), pa.array([1, 3], pa.int8()), [True, False]),
        (pa.array([0.5]), pa.array([0.5, 0.1], pa.float32()), [True, False]),
        (pa.array([0.0, math.nan]), pa.array([-0.0, -math.nan, 1.0]), [True, True, False]),
        (pa.array(["a"]), pa.array(["a", "b", None]).dictionary_encode(), [True, False, None]),
        (pa.array(["a"]).dictionary_encode(), pa.array(["a", "b"], pa.string_view()), [True, False]),
        (pa.array(["a"], pa.large_string()), pa.array(["a", "b"]), [True, False]),
        (pa.array([b"ab"], pa.binary(2)), pa.array([b"ab", b"a", b"abc"]), [True, False, False]),
        (pa.array([5], pa.timestamp("s")), pa.array([5_000, 5_001], pa.timestamp("ms")), [True, False]),
        (
            pa.array([5], pa.timestamp("us", "UTC")),
            pa.array([5_000, 6_000], pa.timestamp("ns", "Asia/Tokyo")),
            [True, False],
        ),
        (
            pa.array([Decimal("1.50"), Decimal(2)], pa.decimal128(10, 2)),
            pa.array([Decimal("1.5"), Decimal("2.000"), Decimal("1.501")], pa.decimal128(38, 3)),
            [True, True, False],
        ),
        (
            pa.array([Decimal("1.50")], pa.decimal128(10, 2)),
            pa.array([Decimal("1.50"), Decimal(10**15)], pa.decimal128(20, 2)),
            [True, False],
        ),
        (pa.array([1]), pa.nulls(2), [None, None]),
    ],
)
def test_columns_of_a_related_type_are_compared_by_value(key: pa.Array, column: pa.Array, answer: list[Any]) -> None:
    assert KeySet(pa.table({"k": key})).contains([column]).to_pylist() == answer


@pytest.mark.parametrize(
    ("key", "column", "remedy"),
    [
        (pa.int64(), pa.string(), r"int64.*string.*cast\('bigint'\)"),
        (pa.int64(), pa.float64(), r"int64.*double.*cast\('bigint'\)"),
        (pa.string(), pa.binary(), r"string.*binary.*cast\('string'\)"),
        (pa.date32(), pa.timestamp("us"), r"date32.*timestamp.*cast\('date'\)"),
        (pa.timestamp("us", "UTC"), pa.timestamp("us"), r"UTC.*cast\('timestamp'\)"),
        (pa.decimal128(10, 2), pa.int64(), r"decimal128\(10, 2\).*int64.*cast\('decimal\(38,2\)'\)"),
        (pa.int64(), pa.list_(pa.int64()), r"list.*cast\('bigint'\)"),
    ],
    ids=str,
)
def test_columns_of_another_type_are_refused(key: pa.DataType, column: pa.DataType, remedy: str) -> None:
    keys = KeySet(pa.table({"k": pa.array([], key)}))
    keys.check([key])
    with pytest.raises(TypeError, match=remedy):
        keys.check([column])
    with pytest.raises(TypeError, match=remedy):
        keys.contains([pa.array([], column)])


def test_the_columns_are_as_many_and_as_long_as_the_keys() -> None:
    keys = KeySet(pa.table({"a": [1], "b": [2]}))
    with pytest.raises(TypeError, match="2 columns, not 1: a, b"):
        keys.contains([pa.array([1])])
    with pytest.raises(ValueError, match=r"one length, not \[1, 2\]"):
        keys.contains([pa.array([1]), pa.array([1, 2])])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.table({}), "at least one key column"),
        (pa.table({"ip": ["a", None, None]}), r"2 of the 3 keys .*'ip'.*table\.dropna\(subset=\['ip'\]\)"),
        (pa.table({"ip": ["b", "a", "a", "a"]}), r"2 of the 4 .*{'ip': 'a'}: write table\.dropDuplicates\(\['ip'\]\)"),
        (pa.table({"a": [1, 1, 1], "b": [1, 2, 1]}), r"1 of the 3 .*{'a': 1, 'b': 1}.*dropDuplicates\(\['a', 'b'\]\)"),
        (pa.table({"x": [0.0, -0.0]}), "1 of the 2"),
        (pa.table({"x": [math.nan, -math.nan]}), "1 of the 2"),
        (pa.table({"x": [[1]]}), r"'x'.*list<.*col\('x\.part'\)"),
        (pa.table({"x": [{"y": 1}]}), r"'x'.*struct.*col\('x\.part'\)"),
        (pa.table({"x": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))}), r"map<.*col\('x\.part'\)"),
        (pa.table({"x": pa.nulls(0)}), "give the key a type"),
        (pa.table({"x": pa.array([1], pa.uint64())}), r"uint64.*cast\('string'\)"),
        (pa.table({"x": pa.array([1], pa.timestamp("ns"))}), "would lose data"),
    ],
)
def test_tables_that_cannot_be_looked_up_in(table: pa.Table, message: str) -> None:
    with pytest.raises(KeyTableError, match=message):
        KeySet(table)


def test_no_keys_and_no_rows() -> None:
    empty = KeySet(pa.table({"k": pa.array([], pa.string())}))
    assert len(empty) == 0
    assert empty.contains([pa.array(["a", None])]).to_pylist() == [False, None]
    assert KeySet.from_bytes(empty.to_bytes()).contains([pa.array([], pa.string())]).to_pylist() == []
    bare = pa.Array.from_buffers(pa.string(), 0, [None, pa.py_buffer(b""), pa.py_buffer(b"")])
    for column in (pa.array([], pa.string()), bare, pa.array(["a"]).slice(1), pa.chunked_array([], pa.string())):
        assert KeySet(pa.table({"k": ["a"]})).contains([column]).to_pylist() == []


def test_chunks_are_one_column() -> None:
    table = pa.concat_tables(
        [pa.table({"k": ["a", "b"]}), pa.table({"k": pa.array([], pa.string())}), pa.table({"k": ["c"]})]
    )
    keys = KeySet(table)
    assert len(keys) == 3
    assert keys.contains([pa.chunked_array([["c"], ["d", None], ["a"]])]).to_pylist() == [True, False, None, True]
    with pytest.raises(KeyTableError, match="1 of the 4"):
        KeySet(pa.concat_tables([table, table.slice(1, 1)]))


def test_saved_keys_keep_their_types() -> None:
    table = pa.table({"k": pa.array(["a"]).dictionary_encode(), "t": pa.array([1], pa.timestamp("ms", "UTC"))})
    assert KeySet.from_bytes(KeySet(table).to_bytes()).table.equals(table)


@settings(max_examples=40)
@given(st.data())
def test_damaged_keys_are_refused(data: st.DataObject) -> None:
    saved = bytearray(KeySet(pa.table({"k": [1, 2, 3]})).to_bytes())
    saved[data.draw(st.integers(0, len(saved) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(SavedStateError):
        KeySet.from_bytes(bytes(saved))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no saved key table"),
        (seal("profile", VERSION), "a saved profile, not a saved key table"),
        (seal(KIND, VERSION + 1), f"has version {VERSION + 1}, and this Thalweg reads version {VERSION}"),
        (seal(KIND, VERSION), "0 parts"),
        (seal(KIND, VERSION, b"no table"), "from Arrow"),
        (seal(KIND, VERSION, dump_table(pa.table({}))), "at least one key column"),
        (seal(KIND, VERSION, dump_table(pa.table({"k": [1, None]}))), "NULL"),
        (seal(KIND, VERSION, dump_table(pa.table({"k": [1, 1]}))), "more than once"),
        (seal(KIND, VERSION, dump_table(pa.table({"k": [[1]]}))), "cannot be looked up"),
    ],
)
def test_what_is_no_saved_key_table_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(SavedStateError, match=message):
        KeySet.from_bytes(data)
