from __future__ import annotations

import contextlib
import io
import threading
from typing import TYPE_CHECKING, Any

import pytest

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def kept(spark: SparkSession) -> DataFrame:
    return tw.where(spark.range(10), "id > 3")


def test_threads_keep_their_output(kept: DataFrame) -> None:
    """Explaining prints nothing and catches nothing of what others print."""
    printed, found, stop = io.StringIO(), list[Any](), threading.Event()

    def explain() -> None:
        while not stop.is_set():
            found.append(tw.explain(kept).to_dict()["wheres"][0]["order"])

    with contextlib.redirect_stdout(printed):
        threads = [threading.Thread(target=explain) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(200):
            print(number)  # noqa: T201 - what is tested
        while len(found) < 20:
            pass
        stop.set()
        for thread in threads:
            thread.join()
    assert printed.getvalue().split() == [str(number) for number in range(200)]
    assert all(order == ["id > 3"] for order in found)


def test_a_filter_that_fails_while_spark_plans_it_is_explained(spark: SparkSession) -> None:
    from pyspark.errors import ArithmeticException

    few = spark.sql("SELECT * FROM VALUES (0, 1), (5, 2) AS few(x, y)")
    kept = tw.where(few, "10 / x > 1 AND y > 0")
    with pytest.raises(ArithmeticException):
        kept.collect()
    (explained,) = tw.explain(kept).to_dict()["wheres"]
    assert len(explained["predicates"]) == 2


@pytest.mark.parametrize("wrong", [None, 5, "a > 1", [1]])
def test_what_cannot_be_explained_is_refused(wrong: object) -> None:
    with pytest.raises(TypeError, match=r"tw\.explain takes a DataFrame, a streaming query, or what tw\.stream gave"):
        tw.explain(wrong)
