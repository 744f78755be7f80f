"""A key that most rows have is split over all cells while the query runs, and results stay the same."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.spark.joins.harness import run as run_to_the_end

import thalweg as tw
import thalweg.spark.joins.join as join_module

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SECOND = 1_000_000
BATCH_SECONDS = 10
CELLS = 4
HOT = range(1, 7)  # the batches in which most rows have one key; also the first after the second restart
RESTARTS = (2, 6, 10)  # batches after which a run ends: the key is found, it is split, it is no longer
SIZES = {"A": 1500, "B": 300}
ANSWER = """
    SELECT A.v, B.v FROM A, B
    WHERE A.k = B.k AND greatest(A.ts, B.ts) - least(A.ts, B.ts) < INTERVAL 5 SECONDS
"""


def made(name: str, number: int) -> pa.Table:
    random = np.random.default_rng([number, ord(name)])
    size = SIZES[name]
    keys = random.integers(0, 500, size)
    if number in HOT:
        keys = np.where(random.random(size) < (0.65 if name == "A" else 0.05), 7, keys)
    times = (10**9 + number * BATCH_SECONDS) * SECOND + random.integers(0, BATCH_SECONDS * SECOND, size)
    columns = {"k": keys, "v": random.integers(0, 10**9, size), "ts": pa.array(times, pa.timestamp("us", "UTC"))}
    return pa.table(columns)


def write(folder: Path, numbers: range) -> None:
    """A file of each stream for each batch, oldest first."""
    for name in SIZES:
        for number in numbers:
            path = folder / name / f"{number}.parquet"
            path.parent.mkdir(exist_ok=True)
            parquet.write_table(made(name, number), path)
            os.utime(path, (10**9 + number, 10**9 + number))


def run(spark: SparkSession, folder: Path, state: Path | None) -> dict[str, Any]:
    """Run the query, from its checkpoint, to the end of the files; returns its description then."""

    def stream(name: str) -> DataFrame:
        reader = spark.readStream.schema("k long, v long, ts timestamp").option("maxFilesPerTrigger", 1)
        return reader.parquet(str(folder / name))

    joined = tw.join(
        {name: stream(name) for name in SIZES},
        on="A.k = B.k",
        windows="5 seconds",
        event_time="ts",
        delay="1 second",
        select=["A.v", "B.v"],
        cells=CELLS,
        state=state,
    )
    query = run_to_the_end(joined, folder)
    about: dict[str, Any] = tw.explain(query).to_dict()["joins"][0]
    return about | {"text": str(tw.explain(query))}


@pytest.mark.thorough
@pytest.mark.parametrize("keeps_folder", [True, False])
def test_a_key_that_most_rows_have(rocks: SparkSession, tmp_path: Path, *, keeps_folder: bool) -> None:
    state = tmp_path / "state" if keeps_folder else None
    runs, before = [], 0
    for number in RESTARTS:
        write(tmp_path, range(before, number))
        runs.append(run(rocks, tmp_path, state))
        before = number
    found, split, after = (each["split"] for each in runs)
    assert [len(each["heavy"]) for each in (found, split, after)] == [1, 1, 0]
    assert found["old_rows"]
    assert not split["old_rows"]
    assert split["heavy"][0]["spread"] == "A"
    assert split["heavy"][0]["columns"] == ["A.k", "B.k"]
    assert after["generation"] == 2
    assert "a value of A.k = B.k that" in runs[1]["text"]
    assert runs[1]["heaviest"] < 1.2  # all its rows came when the key was split
    given = Counter(tuple(row) for row in rocks.read.parquet(str(tmp_path / "out")).select("A_v", "B_v").collect())
    with duckdb.connect() as connection:
        for name in SIZES:
            connection.register(name, parquet.read_table(tmp_path / name))
        expected = Counter(connection.execute(ANSWER).fetchall())
    assert given == expected
    assert {name: source["rows"] for name, source in runs[-1]["inputs"].items()} == {
        name: size * RESTARTS[-1] for name, size in SIZES.items()
    }
    if not keeps_folder:
        write(tmp_path, range(before, before + 1))
        with (
            patch.object(join_module, "is_local", lambda _: False),
            pytest.raises(Exception, match=r"frequent keys are split in this checkpoint.*write state="),
        ):
            run(rocks, tmp_path, None)


def test_without_a_shared_folder_a_note_says_what_to_write(rocks: SparkSession) -> None:
    rate = rocks.readStream.format("rate").load()
    with patch.object(join_module, "is_local", lambda _: False):
        joined = tw.join({"a": rate, "b": rate}, "a.value = b.value", "1 minute", "timestamp", cells=2)
    notes = tw.explain(joined).to_dict()["joins"][0]["notes"]
    assert any("split if state= names a shared folder" in note for note in notes)
