"""Cells together give the results of a single cell: any graph, one to eight cells, without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.mjoin import Cell, Input, JoinQuery, TimeWindow
from thalweg.mjoin.pack import pack, unpack
from thalweg.mjoin.shares import choose_shares
from thalweg.spark.joins.layout import HASH_PREFIX, Layout, as_stored
from thalweg.spark.joins.messages import MessageKind
from thalweg.spark.joins.packing import packer, unpacker

HASHES = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 4)  # of the keys 0 to 3
GRAPHS = {
    "common": [["A.x", "B.x", "C.x", "D.x"]],
    "linear": [["A.x", "B.x"], ["B.y", "C.y"], ["C.z", "D.z"]],
    "star": [["A.x", "B.x"], ["A.y", "C.y"], ["A.z", "D.z"]],
    "cyclic": [["A.x", "B.x"], ["B.y", "C.y"], ["C.z", "D.z"], ["D.x", "A.y"]],
    "complete": [["A.x", "B.x"], ["B.y", "C.y"], ["C.z", "A.z"]],
}


def query_of(graph: str) -> JoinQuery:
    classes = [frozenset((text[0], text[2]) for text in equal) for equal in GRAPHS[graph]]
    names = sorted({name for equal in classes for name, _ in equal})
    schema = pa.schema([(column, pa.int64()) for column in ("x", "y", "z", "t")])
    return JoinQuery(
        inputs=tuple(Input(name, schema, "t", TimeWindow(30)) for name in names),
        equalities=tuple(classes),
        select=tuple((name, "t", name) for name in names),
    )


def layout_of(query: JoinQuery, cells: int) -> Layout:
    placed_by = {name: frozenset(own) for name, own in query.key_columns.items()}
    return Layout(query, choose_shares(placed_by, dict.fromkeys(query.names, 1.0), cells))


def rows_of(layout: Layout, name: str, random: np.random.Generator, at: int) -> pa.RecordBatch:
    """Rows as Spark sends them: keys, some NULL, and their hashes."""
    size = int(random.integers(0, 15))
    columns = {
        column: pa.array(random.integers(0, 4, size), mask=random.random(size) < 0.05) for column in ("x", "y", "z")
    }
    columns["t"] = pa.array(at + random.integers(0, 10, size))
    for number, column in layout.hashed_columns(name).items():
        columns[f"{HASH_PREFIX}{number}"] = pa.array(HASHES[columns[column].fill_null(0).to_numpy()])
    return pa.record_batch(columns)


def counted(results: Iterable[pa.RecordBatch]) -> Counter[tuple[int, ...]]:
    return Counter(tuple(row.values()) for batch in results for row in batch.to_pylist())


@pytest.mark.parametrize("graph", GRAPHS)
@settings(max_examples=8)
@given(cells=st.integers(1, 8), seed=st.integers(0, 10**6))
def test_cells_together_give_what_one_gives(graph: str, cells: int, seed: int) -> None:
    query, random = query_of(graph), np.random.default_rng(seed)
    layout = layout_of(query, cells)
    alone, several = Cell(query), {label: Cell(query) for label in layout.labels}
    for number in range(5):
        watermark = number * 10
        batches = {name: rows_of(layout, name, random, watermark) for name in query.names}
        arrivals: dict[int, dict[str, pa.RecordBatch]] = {label: {} for label in layout.labels}
        for name, batch in batches.items():
            for packed in packer(layout, name, "key")(iter([batch])):
                (message,) = packed.to_pylist()
                if message["kind"] == MessageKind.ROWS:
                    arrivals[message["cell"]][name] = unpack(message["payload"])
        expected = alone.step(
            {name: as_stored(batch, query.input(name).schema) for name, batch in batches.items()}, watermark
        )
        found = [cell.step(arrivals[label], watermark).results for label, cell in several.items()]
        assert counted(found) == counted([expected.results])


def test_results_come_back_in_the_types_users_know() -> None:
    shown = pa.schema([("id", pa.int32()), ("ts", pa.timestamp("us", "UTC"))])
    packed = pack(pa.record_batch({"id": pa.array([1, None], pa.int64()), "ts": pa.array([5, 6], pa.int64())}))
    (batch,) = unpacker(shown, "key")(iter([pa.record_batch({"payload": pa.array([packed], pa.binary())})]))
    assert batch.schema == shown
    assert batch.column("id").to_pylist() == [1, None]
    assert batch.column("ts").cast(pa.int64()).to_pylist() == [5, 6]
