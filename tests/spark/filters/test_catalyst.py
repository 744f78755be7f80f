from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from thalweg.spark.filters.catalyst import facts_of
from thalweg.spark.filters.native import condition_of, estimated_size, sample_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    return spark.range(3000).selectExpr(
        "id",
        "cast(id as int) as i",
        "cast(id as string) as s",
        "cast(id as double) as d",
        "named_struct('x', id) as nested",
        "timestamp_seconds(id) as at",
    )


@pytest.mark.parametrize(
    ("condition", "safe", "cheap"),
    [
        ("id > 5", True, True),
        ("i > 5 and d < 3.5 or s is null", True, True),
        ("id in (1, 2, 3)", True, True),
        ("id between 1 and 3", True, True),
        ("id % 3 = 0", True, True),
        ("nested.x > 3", True, True),
        ("at > timestamp'2020-01-01'", True, True),
        ("s = 'x'", True, True),
        ("s rlike '^1'", True, False),
        ("s like '%1'", True, False),
        ("upper(s) = 'X' and length(s) > 3", True, False),
        ("s rlike s", False, False),  # a pattern that may be malformed in some row
        ("s > 5", False, False),  # a text that may be no number
        ("cast(s as int) > 5", False, False),
        ("1 / id > 5", False, False),
        ("id % i = 0", False, False),
        ("id + 1 > 5", False, False),  # may overflow
        ("cast(raise_error('no') as boolean)", False, False),
    ],
)
def test_what_can_raise_and_what_is_cheap_is_known(
    frame: DataFrame,
    condition: str,
    safe: bool,  # noqa: FBT001
    cheap: bool,  # noqa: FBT001
) -> None:
    (facts,) = facts_of(frame, [condition_of(condition)])
    assert (facts.safe, facts.cheap) == (safe, cheap)
    assert facts.deterministic


def test_what_is_random_is_known(frame: DataFrame) -> None:
    from pyspark.sql import functions as f

    python = f.udf(lambda x: x > 3, "boolean")("id")  # Spark runs it where it likes
    conditions = [condition_of("id > 3"), condition_of("rand() < 0.5"), python, condition_of("id > 3 and i > 4")]
    facts = facts_of(frame, conditions)
    assert [one.deterministic for one in facts] == [True, False, False, True]
    assert [one.cheap for one in facts] == [True, False, False, True]
    assert facts_of(frame, []) == []


def test_a_sample_says_what_each_condition_does(frame: DataFrame) -> None:
    conditions = [condition_of(text) for text in ("id % 2 = 0", "if(id = 7, null, id > 5)", "cast(s || if(id = 9, 'x', '') as int) >= 0")]  # noqa: E501 # fmt: skip
    sampled = sample_rows(frame, conditions, ["id", "nested.x"], estimated_size(frame))
    ids = sampled.columns["id"].to_pylist()
    assert len(ids) == 3000  # as small as that, all of them
    assert sampled.columns["nested.x"].to_pylist() == ids
    assert sampled.codes[:, 0].tolist() == [1 if number % 2 == 0 else 0 for number in ids]
    assert sampled.codes[:, 1].tolist() == [2 if number == 7 else int(number > 5) for number in ids]
    assert sampled.codes[:, 2].tolist() == [-1 if number == 9 else 1 for number in ids]
    assert (sampled.seconds > 0).all()
    assert sampled.how == "of the first ones of every partition"


def test_a_large_input_is_sampled_at_its_front(frame: DataFrame) -> None:
    sampled = sample_rows(frame, [condition_of("id >= 0")], ["id"], None)
    assert 0 < len(sampled.codes) < 600
    assert "not representative if the input is sorted" in sampled.how


def test_an_empty_input_is_no_trouble(frame: DataFrame) -> None:
    sampled = sample_rows(frame.where("id < 0"), [condition_of("id >= 0")], ["id"], None)
    assert len(sampled.codes) == 0
    assert (sampled.seconds > 0).all()
