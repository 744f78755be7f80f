"""Conditions on candidates, against Spark on edge values of every pair of types, and against DuckDB."""

from __future__ import annotations

import math
import pickle
from datetime import date
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.spark.joins.kinds import NotExactError, SparkRules
from thalweg.spark.joins.residuals import CandidateTest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
    "A.i IS NOT DISTINCT FROM B.i",
]


@pytest.mark.parametrize("condition", CONDITIONS)
@settings(max_examples=20)
@given(rows=st.lists(st.tuples(NUMBERS, FLOATS, NUMBERS, FLOATS), min_size=1, max_size=20))
def test_as_sql_says(condition: str, rows: list[tuple[Any, ...]]) -> None:
    columns = (("A", "i"), ("A", "f"), ("B", "i"), ("B", "f"))
    types = (pa.int32(), pa.float64(), pa.int32(), pa.float64())
    arrays = [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(types)]
    test = pickle.loads(pickle.dumps(CandidateTest(condition, columns, types)))  # noqa: S301 - pickled just now
    table = pa.table({"ai": arrays[0], "af": arrays[1], "bi": arrays[2], "bf": arrays[3]})
    text = condition.replace("A.", "a").replace("B.", "b")
    with duckdb.connect() as connection:
        connection.register("candidates", table)
        expected = connection.execute(f"SELECT {text} FROM candidates").fetchall()  # noqa: S608 - ours
    assert test(*arrays).to_pylist() == [row[0] for row in expected]


EDGES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "tiny": (pa.int8(), [None, 0, 1, -1, 127, -128]),
    "small": (pa.int16(), [None, 0, 1, 300, 32767, -32768]),
    "int": (pa.int32(), [None, 0, 2**24 + 1, 16777216, 2**31 - 1, -(2**31)]),
    "big": (pa.int64(), [None, 2**53 + 1, 2**53, 2**63 - 1, -(2**63), 16777217]),
    "float": (pa.float32(), [None, math.nan, -0.0, 16777216.0, math.inf, 0.1]),
    "double": (pa.float64(), [None, math.nan, 2.0**53, 0.1, -math.inf, 16777217.0]),
    "dec": (pa.decimal128(10, 2), [None, *map(Decimal, ("0.10", "99999999.99", "-1.00", "1.00", "300.00"))]),
    "wide": (pa.decimal128(38, 0), [None, *map(Decimal, (10**38 - 1, 2**53 + 1, 2**63, -1, 0))]),
    "fine": (pa.decimal128(38, 38), [None, *map(Decimal, ("0.1", "0", "1e-38", "-0.1", "0.99"))]),
    "text": (pa.string(), [None, "", "a", "é", "Z", "\U0001f600"]),
    "bytes": (pa.binary(), [None, b"", b"\x00", b"\xff", b"a", b"aa"]),
    "flag": (pa.bool_(), [None, True, False, True, False, True]),
    "day": (pa.date32(), [None, *(date(year, 1, 2) for year in (1, 1970, 2024, 9999, 1582))]),
    "ts": (pa.timestamp("us", "UTC"), [None, -(2**55), 0, 1711848600 * 10**6, 1711852200 * 10**6, 2**55]),
    "ntz": (pa.timestamp("us"), [None, -(2**55), 0, 1711848600 * 10**6, 1711852200 * 10**6, 2**55]),
}
FAMILIES = [
    ["tiny", "small", "int", "big", "float", "double", "dec", "wide", "fine"],
    ["text"],
    ["bytes"],
    ["flag"],
    ["day", "ts", "ntz"],
]
SUMS = [
    "A.double < B.float + 1.5",
    "A.float * 3 > B.double",
    "A.double - B.int >= 0.1",
    "A.float + B.float = B.double",
    "A.dec + B.dec > 1.005",
    "A.dec * B.dec <= 90",
    "A.int > B.dec + 1.5",
    "A.tiny * 100 - 5 < B.small",
    "A.big > 9223372036854775808",
    "A.big < B.double + 1e3",
    "A.dec > B.double * 1.1",
    "A.ts < B.ts + INTERVAL '5' MINUTES",
    "A.ntz > B.ntz - INTERVAL '1 day 2 hours'",
    "A.ts >= B.ts - INTERVAL 1 DAY",
    "A.ts - B.ts < INTERVAL '400' DAYS",
    "A.day > DATE'2024-01-02' AND B.flag",
    "A.int IN (1, B.int, 2)",
    "A.dec BETWEEN B.tiny AND B.big",
    "A.text >= 'a' OR B.text < 'b'",
    "abs(A.dec) > B.dec AND -A.double < B.double",
]


PLACES = list(product(range(6), range(6)))
CANDIDATES = {
    f"{side}{name}": pa.array([values[place[number]] for place in PLACES], kind)
    for name, (kind, values) in EDGES.items()
    for number, side in enumerate("AB")
}


@pytest.mark.parametrize(("ansi", "zone"), [("true", "UTC"), ("false", "Europe/Berlin")])
def test_as_spark_says_on_edge_values(rocks: SparkSession, ansi: str, zone: str) -> None:
    """Every pair of types that Spark compares; conditions that Arrow has no exact kernel for are left to Spark."""
    pairs = [pair for family in FAMILIES for pair in product(family, family)]
    comparisons = [f"A.{left} {op} B.{right}" for left, right in pairs for op in ("<", "=", "<=>", ">=")]
    before = {name: rocks.conf.get(name) for name in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone")}
    frame = rocks.createDataFrame(pa.table(CANDIDATES))  # before the zone is another
    rocks.conf.set("spark.sql.ansi.enabled", ansi)
    rocks.conf.set("spark.sql.session.timeZone", zone)
    try:
        _check_as_spark_says(frame, [*comparisons, *SUMS], SparkRules(is_ansi=ansi == "true", is_utc=zone == "UTC"))
    finally:
        for name, value in before.items():
            rocks.conf.set(name, str(value))


def _check_as_spark_says(frame: DataFrame, conditions: list[str], rules: SparkRules) -> None:
    columns = tuple((side, name) for name in EDGES for side in "AB")
    tests = {}
    for condition in conditions:
        test = CandidateTest(condition, columns, tuple(EDGES[name][0] for _, name in columns), rules)
        try:
            test.check()
        except NotExactError:
            continue
        tests[condition] = test
    assert len(tests) > len(conditions) / 2
    texts = [text.replace("A.", "A").replace("B.", "B") for text in tests]
    expected = frame.selectExpr(*(f"{text} AS c{number}" for number, text in enumerate(texts))).collect()
    for number, (condition, test) in enumerate(tests.items()):
        found = test(*(CANDIDATES[f"{side}{name}"] for side, name in columns)).to_pylist()
        wrong = [
            place
            for place, ours, row in zip(PLACES, found, expected, strict=True)
            if bool(ours) != bool(row[number])  # NULL means no
        ]
        assert not wrong, condition


BIG = (("A", "i"), ("B", "i"))


@pytest.mark.parametrize("condition", ["A.i * B.i > 10", "A.i + B.i > 10", "A.i * B.i * A.i > 10", "-A.i - B.i < 0"])
def test_whole_numbers_that_overflow_are_computed_exactly(condition: str) -> None:
    large = pa.array([2**62, -3, 0], pa.int64())
    found = CandidateTest(condition, BIG, (pa.int64(), pa.int64()))(large, large).to_pylist()
    text = condition.replace("A.i", "{0}").replace("B.i", "{0}")
    assert found == [eval(text.format(f"({value})")) for value in large.to_pylist()]  # noqa: S307 - arithmetic


@pytest.mark.parametrize(
    "condition", ["A.i * B.i * A.i * B.i > 1", "A.i % 2 = B.i", "A.i > coalesce(B.i, 0)", "A.i + B.i"]
)
def test_other_conditions_are_left_to_spark(condition: str) -> None:
    with pytest.raises(NotExactError):
        CandidateTest(condition, BIG, (pa.int64(), pa.int64())).check()


def test_times_come_as_microseconds_or_as_timestamps() -> None:
    time = pa.timestamp("us", "UTC")
    test = CandidateTest("A.t < B.t + INTERVAL 5 MINUTES", (("A", "t"), ("B", "t")), (time, time))
    minutes = 60_000_000
    given_times = pa.array([4 * minutes, 5 * minutes, None], pa.int64())
    assert test(given_times, pa.array([0, 0, 0], time)).to_pylist() == [True, False, None]


def test_text_is_not_compared_with_numbers() -> None:
    test = CandidateTest("A.s < B.v", (("A", "s"), ("B", "v")), (pa.string(), pa.float64()))
    with pytest.raises(ValueError, match=r"'A\.s < B\.v' compares text with a double; say how: try_cast\(A\.s AS DOUB"):
        test.check()
