"""Late rows that are kept aside."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from thalweg.spark.joins.late import LateRows, check_late

TIME = pa.timestamp("us", "UTC")


def test_columns_are_kept_in_the_types_that_users_know(tmp_path: Path) -> None:
    """Timestamps that are keys or event times are stored as whole numbers; a key may be wider than its column."""
    stored = pa.record_batch({"key": pa.array([7], pa.int64()), "ts": pa.array([5], pa.int64()), "n": pa.array([1])})
    types = {"A": {"key": TIME, "ts": TIME, "n": pa.int32(), "other": pa.string()}}
    LateRows(str(tmp_path), types).save({"A": stored}, "file")
    kept = parquet.read_table(tmp_path / "A" / "file.parquet")
    assert kept.schema.types == [TIME, TIME, pa.int32()]
    assert kept["key"].cast(pa.int64()).to_pylist() == [7]


def test_a_word_is_no_folder(tmp_path: Path) -> None:
    assert check_late(tmp_path) == str(tmp_path)
    assert check_late("./drop") == "./drop"
    assert check_late(Path("drop")) == "drop"
    with pytest.raises(ValueError, match=r"write './drop'"):
        check_late("drop")
