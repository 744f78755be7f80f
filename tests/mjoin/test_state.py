"""The state is the rows of the windows and little more, and is never misread."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.mjoin import BEGINNING, Cell, CountWindow, Input, JoinQuery, TimeWindow
from thalweg.mjoin.segments import KIND, VERSION, pack_segment, unpack_segment
from thalweg.sealed import SavedStateError, seal

SCHEMA = pa.schema([("key", pa.int64()), ("at", pa.int64()), ("text", pa.string())])
NAMES = ("A", "B")
QUERY = JoinQuery(
    tuple(Input(name, SCHEMA, "at", TimeWindow(1000)) for name in NAMES),
    (frozenset((name, "key") for name in NAMES),),
    select=(("A", "key", "key"), ("A", "text", "a"), ("B", "text", "b")),
)
ROW_BYTES = 8 + 8 + 4 + 7  # of two numbers, and of a string with its offset


def rows(random: np.random.Generator, size: int, begin: int, end: int, keys: int = 10_000) -> pa.RecordBatch:
    texts = [f"{number:07d}" for number in random.integers(0, 10**6, size)]
    columns = [random.integers(0, keys, size), random.integers(begin, end, size), texts]
    return pa.record_batch(columns, schema=SCHEMA)


def run(cell: Cell, steps: int, size: int, length: int, *, ahead: bool = False) -> tuple[dict[int, bytes], list[int]]:
    """Steps of so many rows and microseconds; with `ahead`, one row of each comes long before its time."""
    random, state, counts = np.random.default_rng(0), dict[int, bytes](), []
    for step in range(steps):
        batches = {name: rows(random, size, step * length, step * length + length) for name in NAMES}
        if ahead:
            early = rows(random, 1, step * length + 50_000, step * length + 50_001)
            batches = {name: pa.concat_batches([batch, early]) for name, batch in batches.items()}
        done = cell.step(batches, step * length - length)
        for number in done.removed:
            del state[number]
        state |= done.added
        counts.append(len(state))
        assert done.statistics.state_bytes == sum(map(len, state.values()))
        assert done.statistics.segments == len(state)
    return state, counts


def test_the_state_is_little_more_than_the_rows_of_the_windows() -> None:
    state, _ = run(Cell(QUERY), 30, 1000, 100)
    window = 2 * ROW_BYTES * 1000 * 11  # the watermark is a step behind
    assert window * 0.9 < sum(map(len, state.values())) < window * 1.2


def test_segments_stay_few_however_small_the_steps() -> None:
    state, counts = run(Cell(QUERY), 600, 20, 2)
    assert max(counts) < 400  # of 1000 that a window has of each input
    assert sum(unpack_segment(QUERY, data)[1].num_rows for data in state.values()) < 2 * 20 * 510 * 1.2
    table = replace(QUERY, inputs=(Input("A", SCHEMA), *QUERY.inputs[1:]))
    cell, sizes = Cell(table), []
    random, numbers = np.random.default_rng(0), set[int]()
    for _ in range(300):  # segments that never expire are merged without limit
        done = cell.step({"A": rows(random, 5, 0, 1)}, 0)
        numbers = (numbers - set(done.removed)) | set(done.added)
        sizes.append(len(numbers))
    assert max(sizes) < 30


def test_rows_ahead_of_their_time_do_not_keep_the_others() -> None:
    cell = Cell(QUERY)
    state, _ = run(cell, 200, 500, 100, ahead=True)
    kept = sum(unpack_segment(QUERY, data)[1].num_rows for data in state.values())
    alive = 2 * (11 * 500 + 200)
    assert kept < 2.2 * alive
    again = Cell.load(QUERY, state, cell.watermark)
    batches = {name: rows(np.random.default_rng(1), 500, 20_000, 20_100) for name in NAMES}
    before, after = (each.step(batches, 19_900).results.to_pylist() for each in (cell, again))
    assert sorted(map(str, before)) == sorted(map(str, after))


def test_memory_stays_bounded_and_is_given_back() -> None:
    cell, random = Cell(QUERY), np.random.default_rng(0)
    sizes = []
    for step in range(60):
        size = 20_000 if step < 10 else 10
        batches = {name: rows(random, size, step * 100, step * 100 + 100, 10**6) for name in NAMES}
        sizes.append(cell.step(batches, step * 100 - 100).statistics.memory_bytes)
    assert sizes[-1] < max(sizes) / 50


def test_another_query_is_refused() -> None:
    batch = rows(np.random.default_rng(0), 3, 0, 10)
    data = pack_segment(QUERY, "A", batch)
    assert unpack_segment(QUERY, data)[0] == "A"
    assert unpack_segment(QUERY, data)[1].equals(batch)
    first, second = QUERY.inputs
    others = (
        replace(QUERY, inputs=(replace(first, window=TimeWindow(10**6)), second)),
        replace(QUERY, inputs=(replace(first, window=TimeWindow(1)), second), output="changelog"),
        replace(QUERY, inputs=(replace(first, window=None), second)),
        replace(QUERY, inputs=(replace(first, schema=SCHEMA.append(pa.field("more", pa.int8()))), second)),
        replace(QUERY, inputs=(replace(first, schema=SCHEMA.set(2, pa.field("text", pa.large_string()))), second)),
        replace(QUERY, equalities=(frozenset([("A", "at"), ("B", "key")]),)),
    )
    for query in others:
        with pytest.raises(SavedStateError, match=r"another query.*restore .*, or start"):
            Cell.load(query, {0: data}, None)
    Cell.load(
        replace(QUERY, select=QUERY.select[:1], output="changelog"), {0: data}, None
    )  # which the state does not depend on


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda data: data[:0], "no saved segment of a join"),
        (lambda data: b"x" + data, "no saved segment of a join"),
        (lambda _: b"thalweg join\0\1\0\0" + bytes(100), "no saved segment of a join, or one of an early version"),
        (lambda data: data[:20], "no saved segment of a join"),
        (lambda _: seal(KIND, VERSION + 1, b"A"), "has version 4, and this Thalweg reads version 3"),
        (lambda data: data[: len(data) // 2], "damaged"),
    ],
)
def test_damaged_state_is_refused(spoil: object, message: str) -> None:
    assert callable(spoil)
    data = pack_segment(QUERY, "A", rows(np.random.default_rng(0), 300, 0, 10))
    with pytest.raises(SavedStateError, match=f"{message}.*start the query with a new checkpoint"):
        Cell.load(QUERY, {0: spoil(data)}, None)


def test_state_with_more_columns_and_longer_windows_is_taken_over() -> None:
    random = np.random.default_rng(1)
    batches = [{name: rows(random, 40, 10 * step, 10 * step + 10, 5) for name in NAMES} for step in range(4)]
    first, second = QUERY.inputs
    fewer = pa.schema([SCHEMA.field("at"), SCHEMA.field("key")])
    changed = replace(
        QUERY,
        inputs=(replace(first, schema=fewer, window=TimeWindow(5)), second),
        select=(("A", "key", "key"), ("B", "text", "b")),
    )
    before, state = Cell(QUERY), dict[int, bytes]()
    whole = Cell(changed)
    for step, batch in enumerate(batches[:3]):
        state |= before.step(batch, 10 * step - 10).added
        whole.step({"A": batch["A"].select(fewer.names), "B": batch["B"]}, 10 * step - 10)
    last = {"A": batches[3]["A"].select(fewer.names), "B": batches[3]["B"]}
    found = Cell.load(changed, state, 10).step(last, 20).results.to_pylist()
    assert found
    assert sorted(map(str, found)) == sorted(map(str, whole.step(last, 20).results.to_pylist()))


small_rows = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), max_size=3)


@settings(max_examples=40)
@given(st.lists(st.tuples(small_rows, small_rows), min_size=2, max_size=6), st.integers(1, 60), st.data())
def test_longer_windows_have_all_results_or_are_refused(
    steps: list[tuple[list[tuple[int, int]], list[tuple[int, int]]]], longer: int, data: st.DataObject
) -> None:
    """Windows of 20 microseconds are changed before some step; a row's number is its text."""
    change, length = data.draw(st.integers(1, len(steps) - 1)), 10
    query = replace(QUERY, inputs=tuple(replace(each, window=TimeWindow(20)) for each in QUERY.inputs))
    changed = replace(query, inputs=tuple(replace(each, window=TimeWindow(longer)) for each in query.inputs))
    cell, state, left = Cell(query), dict[int, bytes](), dict[str, int]()
    history: dict[str, list[tuple[int, int, str]]] = {name: [] for name in NAMES}
    for number, new in enumerate(steps):
        if number == change:
            needed = (number - 1) * length - length - longer  # rows that are later must be there
            try:
                cell = Cell.load(changed, state, cell.watermark, left)
            except SavedStateError as error:
                assert "rows that it needs have left the window of before" in str(error)  # noqa: PT017 - may be right
                assert max(left.values()) > needed
                return
            assert max(left.values(), default=needed) <= needed
        before = {name: len(rows) for name, rows in history.items()}
        batches = {}
        for name, keys_and_times in zip(NAMES, new, strict=True):
            own = [
                (key, number * length + time, f"{name}{number}{place}")
                for place, (key, time) in enumerate(keys_and_times)
            ]
            history[name] += own
            batches[name] = pa.RecordBatch.from_pylist(
                [dict(zip(SCHEMA.names, row, strict=True)) for row in own], SCHEMA
            )
        done = cell.step(batches, number * length - length)
        state = {each: data for each, data in (state | dict(done.added)).items() if each not in done.removed}
        left |= done.statistics.left
        reach = longer if number >= change else 20
        expected = [
            (a[2], b[2])
            for (i, a), (j, b) in product(enumerate(history["A"]), enumerate(history["B"]))
            if a[0] == b[0] and abs(a[1] - b[1]) < reach and (i >= before["A"] or j >= before["B"])
        ]
        assert sorted((row["a"], row["b"]) for row in done.results.to_pylist()) == sorted(expected)


def test_windows_by_count_take_all_rows_at_once_or_a_watermark_with_each_step() -> None:
    query = replace(QUERY, inputs=tuple(replace(source, window=CountWindow(1)) for source in QUERY.inputs))
    columns = {"A": [[1, 1], [5, 6], ["x", "y"]], "B": [[1], [7], ["z"]]}
    batches = {name: pa.record_batch(each, schema=SCHEMA) for name, each in columns.items()}
    cell = Cell(query)
    assert cell.step(batches, None).results.to_pylist() == [{"key": 1, "a": "y", "b": "z"}]
    with pytest.raises(ValueError, match="need a watermark in every step"):
        cell.step(batches, None)
    with pytest.raises(ValueError, match="pass the watermark of the last step"):
        Cell.load(query, {}, None)
    cell, found = Cell(query), list[int]()
    for watermark in (BEGINNING, BEGINNING, 7, 8):
        found.append(cell.step({} if found else batches, watermark).results.num_rows)
    assert found == [0, 0, 0, 1]


def test_rows_have_the_columns_of_their_input() -> None:
    cell = Cell(QUERY)
    with pytest.raises(ValueError, match="no input 'a'; there are A, B"):
        cell.step({"a": rows(np.random.default_rng(0), 1, 0, 1)}, None)
    with pytest.raises(ValueError, match="rows of A have the columns"):
        cell.step({"A": pa.record_batch({"key": [1]})}, None)
    with pytest.raises(ValueError, match=r"a time of A\.at is NULL; leave such rows out"):
        cell.step({"A": pa.record_batch([[1], pa.array([None], pa.int64()), ["x"]], schema=SCHEMA)}, None)
