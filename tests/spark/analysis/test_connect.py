from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from thalweg.spark.analysis.connect import is_simple_test, may_be_random

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCHEMA = (
    "k bigint, d double, m decimal(10,2), w decimal(38,10), s string, day date, at timestamp, t boolean, a array<int>"
)
SIMPLE = [
    "k > 100",
    "100 <= k",
    "k > -5 AND NOT (d < 2.5 OR m = 3)",
    "k IN (1, 2, 3)",
    "k NOT IN (1, 2)",
    "k BETWEEN 1 AND 5",
    "k IS NULL",
    "a IS NOT NULL",
    "s = 'x' AND s <> 'y'",
    "s <=> 'x'",
    "S in ('a', 'b')",
    "day >= '2024-01-01'",
    "day >= date'2024-01-01'",
    "at < timestamp'2024-01-01 10:00:00'",
    "at BETWEEN '2024-01-01' AND '2024-01-01 10:00:00.5'",
    "t AND NOT t",
    "t = true",
]
OTHER = [
    "k > d",
    "k + 1 > 2",
    "s > 5",
    "w > 1.5",  # the type that holds both is too small for some
    "k > 1234567890123456789",
    "k > 'abc'",
    "day > 'soon'",
    "day > '2024-02-30'",
    "day > timestamp'2024-01-01 00:00:00'",  # makes a timestamp of the column
    "at > '10:00'",
    "cast(s AS int) > 1",
    "k IN (SELECT 1)",
    's = "x"',  # a column, in some sessions
    "a = array(1)",
    "missing > 1",
    "x.k > 1",
    "k > (",
]


class Frame:
    """A Connect frame without its server: the schema and the number of its plan."""

    def __init__(self) -> None:
        self.schema = self
        self.fields = [Field(*column.split(" ")) for column in SCHEMA.split(", ")]
        self._plan = self
        self._plan_id = 7


class Field:
    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind, self.dataType = name, kind, self

    def simpleString(self) -> str:  # noqa: N802 - as Spark names it
        return self.kind


@pytest.fixture
def frame() -> DataFrame:
    found: Any = Frame()
    return found  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("condition", "simple"), [*((text, True) for text in SIMPLE), *((text, False) for text in OTHER)]
)
def test_texts(frame: DataFrame, condition: str, simple: bool) -> None:  # noqa: FBT001
    from pyspark.sql.connect.functions import expr

    assert is_simple_test(frame, expr(condition)) is simple


def test_columns(frame: DataFrame) -> None:
    from pyspark.sql.connect.functions import col, current_date, lower

    simple = [
        col("k") > 100,
        (col("k") >= 1) & (col("d") < 2.5) | ~(col("m") == Decimal("1.5")),
        col("k").isin(1, 2),
        col("k").between(1, 5),
        col("a").isNotNull(),
        col("day") >= dt.date(2024, 1, 1),
        col("at") >= dt.datetime(2024, 1, 1),  # noqa: DTZ001 - as Spark takes it
        col("s") != "x",
        col("t") == True,  # noqa: E712 - a column
    ]
    other: list[Any] = [
        col("k") + 1 > 2,
        col("s") > 5,
        lower(col("s")) == "x",
        col("day") >= dt.datetime(2024, 1, 1),  # noqa: DTZ001 - as above
        col("k") > col("d"),
        col("k").cast("int") > 5,
        col("k") == None,  # noqa: E711 - a column
        col("day") < current_date(),
    ]
    assert [is_simple_test(frame, condition) for condition in simple] == [True] * len(simple)
    assert [is_simple_test(frame, condition) for condition in other] == [False] * len(other)


@pytest.mark.parametrize(
    ("condition", "is_random"),
    [
        ("RAND(1) < 0.5", True),
        ("k > 1 AND Rand (1) < 0.5", True),
        ("`rand`(1) < 0.5", True),
        ("rand /* from 0 */ (1) < 0.5", True),
        ("input_file_block_start() > 3", True),
        ("try_reflect('java.util.UUID', 'randomUUID') = s", True),
        ("brand(k) < 0.5 AND uuid = 'x' AND random > 1", False),
    ],
)
def test_functions_that_are_not_deterministic(condition: str, is_random: bool) -> None:  # noqa: FBT001
    from pyspark.sql.connect.functions import expr

    assert may_be_random(expr(condition)) is is_random


def test_columns_of_another_frame(frame: DataFrame) -> None:
    from pyspark.sql.connect.column import Column
    from pyspark.sql.connect.expressions import ColumnReference

    of_frame, of_other = (Column(ColumnReference("k", plan_id)) > 1 for plan_id in (7, 8))
    assert is_simple_test(frame, of_frame)
    assert not is_simple_test(frame, of_other)
