"""Conditions on candidates, against DuckDB, which has Spark's NaN and NULL."""

from __future__ import annotations

import math
import pickle
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.spark.joins.residuals import CandidateTest

NUMBERS = st.none() | st.integers(-3, 3)
FLOATS = st.none() | st.sampled_from([math.nan, -1.5, -0.0, 0.0, 1.0, math.inf])
CONDITIONS = [
    "A.i < B.i",
    "A.i <= B.i + 1",
    "NOT (A.i > B.i OR A.f = B.f)",
    "A.f < B.f",
    "A.f >= B.f",
    "A.f <> B.f",
    "A.i * B.i BETWEEN -2 AND 4",
    "A.i IN (1, 2, B.i)",
    "A.i IS NULL OR B.f IS NOT NULL",
    "abs(A.i - B.i) < 2",
    "-A.i = B.i",
    "A.f > B.i",
]


@pytest.mark.parametrize("condition", CONDITIONS)
@settings(max_examples=20)
@given(rows=st.lists(st.tuples(NUMBERS, FLOATS, NUMBERS, FLOATS), min_size=1, max_size=20))
def test_as_sql_says(condition: str, rows: list[tuple[Any, ...]]) -> None:
    columns = [("A", "i"), ("A", "f"), ("B", "i"), ("B", "f")]
    arrays = [
        pa.array([row[place] for row in rows], pa.float64() if name == "f" else pa.int32())
        for place, (_, name) in enumerate(columns)
    ]
    test = pickle.loads(pickle.dumps(CandidateTest(condition, tuple(columns))))  # noqa: S301 - pickled just now
    table = pa.table({"ai": arrays[0], "af": arrays[1], "bi": arrays[2], "bf": arrays[3]})
    text = condition.replace("A.", "a").replace("B.", "b")
    with duckdb.connect() as connection:
        connection.register("candidates", table)
        expected = connection.execute(f"SELECT {text} FROM candidates").fetchall()  # noqa: S608 - ours
    assert test(*arrays).to_pylist() == [row[0] for row in expected]


def test_times_and_intervals() -> None:
    test = CandidateTest("A.t < B.t + INTERVAL 5 MINUTES", (("A", "t"), ("B", "t")), frozenset([("A", "t")]))
    minutes = 60_000_000
    given_times = pa.array([4 * minutes, 5 * minutes, None], pa.int64())
    assert test(given_times, pa.array([0, 0, 0], pa.timestamp("us", "UTC"))).to_pylist() == [True, False, None]


def test_what_overflows_is_computed_exactly() -> None:
    large = pa.array([2**62, 3], pa.int64())
    assert CandidateTest("A.i * B.i > 10", (("A", "i"), ("B", "i")))(large, large).to_pylist() == [True, False]
    assert CandidateTest("A.i + B.i > 10", (("A", "i"), ("B", "i")))(large, large).to_pylist() == [True, False]
