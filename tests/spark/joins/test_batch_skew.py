"""A batch job splits the keys that are frequent among the first rows of its inputs, and gives the same results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import thalweg as tw
from thalweg.spark import first_rows
from thalweg.spark.joins import batch_skew

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS, CELLS, HOT = {"A": 6000, "B": 600}, 4, 7


def write(folder: Path) -> dict[str, pa.Table]:
    """Two inputs, of which most rows of the first have one key."""
    random, tables = np.random.default_rng(0), {}
    for name, rows in ROWS.items():
        keys = np.where(random.random(rows) < (0.7 if name == "A" else 0.0), HOT, random.integers(0, 300, rows))
        times = pa.array(random.integers(0, 10**8, rows), pa.timestamp("us", "UTC"))
        tables[name] = pa.table({"k": keys, "v": np.arange(rows), "ts": times})
        parquet.write_table(tables[name], folder / f"{name}.parquet")
    return tables


def test_frequent_keys_of_a_batch_job_are_split(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_skew, "LEAST_BYTES", 0)
    monkeypatch.setattr(first_rows, "SAMPLE_SECONDS", 60.0)  # the machine may be busy
    tables = write(tmp_path)
    frames = {name: spark.read.parquet(str(tmp_path / f"{name}.parquet")) for name in ROWS}
    joined = tw.join(frames, "A.k = B.k", "1000 seconds", "ts", cells=CELLS, select=["A.v AS a", "B.v AS b"])
    found = sorted(map(tuple, joined.select("a", "b").toArrow().to_pandas().itertuples(index=False)))
    pairs = tables["A"].join(tables["B"].rename_columns(["k", "b", "tb"]), "k", join_type="inner")
    assert found == sorted(zip(pairs["v"].to_pylist(), pairs["b"].to_pylist(), strict=True))
    about = tw.explain(joined).to_dict()["joins"][0]
    assert "1 frequent keys are split over cells" in about["notes"]
    assert about["heaviest"] < 1.5
    assert {name: each["rows"] for name, each in about["inputs"].items()} == ROWS


def test_an_input_whose_first_rows_cost_as_much_as_all_is_not_sampled(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_skew, "LEAST_BYTES", 0)
    write(tmp_path)
    frames = {name: spark.read.parquet(str(tmp_path / f"{name}.parquet")) for name in ROWS}
    frames["A"] = frames["A"].orderBy("v")
    joined = tw.join(frames, "A.k = B.k", "1000 seconds", "ts", cells=CELLS)
    assert any(
        note.startswith("frequent keys of A are not known")
        for note in tw.explain(joined).to_dict()["joins"][0]["notes"]
    )
