"""Filters numbers by all kinds of predicates on the Spark that its argument names, and prints what came of it as JSON.

A program of its own, because a process has one kind of Spark session: the tests of the cluster and of Connect run it.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
import warnings
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@tw.predicate(on="a", takes="numpy")
def below_ninety(a: np.ndarray) -> np.ndarray:
    return a < 90


@tw.predicate(on="s")
def ends_in_seven(s: pa.Array) -> pa.Array:
    return pc.ends_with(s, "7")


@tw.predicate(on="id", takes="rows")
def is_not_77(number: int) -> bool:
    if number == 77:
        raise ValueError("seventy-seven")
    return True


def session(master: str) -> SparkSession:
    from pyspark.sql import SparkSession

    if master == "connect":
        builder = SparkSession.builder.remote("local[2]")
    else:
        builder = SparkSession.builder.master(master)
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
        builder = builder.config("spark.ui.enabled", value=False)
    return builder.config("spark.sql.shuffle.partitions", 2).getOrCreate()


def ids(frame: DataFrame) -> list[int]:
    return sorted(row["id"] for row in frame.select("id").collect())


def written_as_people_do(numbers: DataFrame) -> list[int]:
    """UDFs and conditions joined by & and by AND."""
    from pyspark.sql import functions as f

    is_even = f.udf(lambda number: number % 2 == 0, "boolean")
    score = f.udf(lambda number: number / 100, "double")
    condition = is_even("id") & (score(numbers.a) > 0.5) & ~(is_even("a") & (numbers.id < 3000))
    kept = tw.where(numbers, condition, "s RLIKE '6' AND NOT (id = 3056 OR length(s) < 4)")
    explained = tw.explain(kept).to_dict()["wheres"][0]
    runs_in = [line["runs_in"] for line in explained["predicates"]]
    return ids(kept) if sorted(runs_in) == ["Python"] * 3 + ["Spark"] * 3 else []


def of_dropped_columns(numbers: DataFrame) -> bool:
    """Conditions on columns that the DataFrame no longer has, which Spark finds below the filter."""
    from pyspark.sql import functions as f

    few = numbers.where("id < 500")
    kept = few.select("id", "s")
    is_even = f.udf(lambda number: number % 2 == 0, "boolean")
    conditions = [
        few.a > 50,
        is_even(few.a),
        is_even(few.a) & kept.s.rlike("7") & is_even("id"),
        (100 / (few.a + 1) > 3) & is_even("id"),
        (few.a > 50) | is_even("id"),
    ]
    mixed = tw.where(kept, ends_in_seven, few.a > 50, is_even("id") | (few.a < 90))
    plain = kept.where(few.a > 50).where(is_even("id") | (few.a < 90)).where(kept.s.endswith("7"))
    return ids(mixed) == ids(plain) and all(
        ids(tw.where(kept, condition)) == ids(kept.where(condition)) for condition in conditions
    )


def adapted(numbers: DataFrame) -> bool:
    """Filters below a join and an aggregation, and columns that are named by their DataFrame."""
    from pyspark.sql import functions as f

    is_even = f.udf(lambda number: number % 2 == 0, "boolean")
    score = f.udf(lambda number: number / 100, "double")
    kept = numbers.where(is_even("id") & (score(numbers.a) > 0.5)).where(numbers.s.rlike("6"))
    joined = kept.join(numbers.select("id", f.col("s").alias("t")), "id").where(kept.a < 90)
    written = joined.groupBy("a").agg(f.count("*").alias("c")).where("c > 1")
    found = tw.adapt(written)
    explained = tw.explain(found).to_dict()["wheres"]
    single = numbers.where("id > 3")
    return (
        sorted(map(str, found.collect())) == sorted(map(str, written.collect()))
        and len(explained) == 1
        and len(explained[0]["predicates"]) >= 3
        and tw.adapt(single) is single
        and [each["reason"] for each in tw.explain(single).left] == ["it has a single condition"]
        and _tells_of_texts(numbers)
    )


def _tells_of_texts(numbers: DataFrame) -> bool:
    """Filters in the text of `spark.sql`, which only a classic session sees: explain tells what became of them."""
    numbers.createOrReplaceTempView("written_numbers")
    queried = tw.adapt(numbers.sparkSession.sql("SELECT * FROM written_numbers WHERE id > 3 AND a < 9"))
    (left,) = tw.explain(queried).left
    return "id > 3" in left["filter"] and ("all its conditions are cheap" in left["reason"]) == hasattr(queried, "_jdf")


def enabled(numbers: DataFrame) -> bool:
    """Plain `where` and `filter`, on top of one another, of a session that is enabled."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as f

    is_even = f.udf(lambda number: number % 2 == 0, "boolean")

    def program() -> DataFrame:
        return numbers.where(is_even("id")).filter(numbers.s.rlike("6") & (numbers.a > 50)).select("id")

    tw.enable(numbers.sparkSession)
    found = program()
    with warnings.catch_warnings(record=True) as told, contextlib.suppress(AnalysisException):
        warnings.simplefilter("always")
        numbers.where("missing > 1").count()  # Spark's own error, and nothing else
    tw.disable(numbers.sparkSession)
    plain = program()
    (explained,) = tw.explain(found).to_dict()["wheres"]
    return (
        sorted(line["runs_in"] for line in explained["predicates"]) == ["Python", "Spark", "Spark"]
        and "thalweg" not in plan_of(plain)
        and not any("tw.adapt" in str(warning.message) for warning in told)
        and ids(found) == ids(plain)
    )


def explained_although_it_fails(spark: SparkSession) -> bool:
    """A filter that Spark evaluates, and that fails, while it plans the query: tw.explain tells of it all the same."""
    few = spark.sql("SELECT * FROM VALUES (0, 1), (5, 2) AS few(x, y)")
    kept = tw.where(few, "10 / x > 1 AND y > 0")
    try:
        kept.collect()
    except Exception:  # noqa: BLE001 - whatever this Spark makes of it
        return len(tw.explain(kept).to_dict()["wheres"][0]["predicates"]) == 2
    return False


def plan_of(frame: DataFrame) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as text:
        frame.explain()
    return text.getvalue()


def refuses_other_values(numbers: DataFrame) -> bool:
    """Whether Spark refuses single conditions that are no truth values, as in `df.where`."""
    from pyspark.errors import AnalysisException

    for condition in ("NULL", "s", numbers.a + 1):
        try:
            tw.where(numbers, condition).count()
        except AnalysisException as error:
            if "FILTER_NOT_BOOLEAN" in str(error):
                continue
        return False
    return True


def order_with_a_registered_function(numbers: DataFrame) -> list[str]:
    """The order of conditions around a function of which only the server knows whether it is deterministic."""
    numbers.sparkSession.udf.register("is_small", lambda number: number < 30, "boolean")
    kept = tw.where(numbers, "is_small(a) AND id > 5 AND s RLIKE '1'", sample=False)
    return list(tw.explain(kept).to_dict()["wheres"][0]["order"])


def refused_on_connect(spark: SparkSession, stream: DataFrame, folder: str) -> list[str]:
    """What `tw.Session` and `tw.stream` say, which need a classic session."""
    said = []
    for call in (
        lambda: tw.Session(spark, checkpoint=f"{folder}/session"),
        lambda: tw.stream(stream, below_ninety, checkpoint=f"{folder}/filter"),
    ):
        try:
            call()
        except TypeError as error:
            said.append(str(error))
    return said


def main(master: str) -> None:
    spark = session(master)
    numbers = spark.range(0, 4000, numPartitions=4).selectExpr("id", "id % 100 as a", "cast(id as string) as s")
    wanted = tw.lookup(pa.table({"a": list(range(0, 100, 7))}), on="a")
    kept = tw.where(
        numbers, below_ninety, ends_in_seven, "id > 100", tw.regex("s", "[1-3]"), wanted, is_not_77, sample=True
    )
    about: dict[str, object] = {"kept": ids(kept)}
    explained = tw.explain(kept).to_dict()["wheres"][0]
    about |= {"rows": explained["rows"], "workers": explained["workers"], "order": explained["order"]}
    again = tw.where(numbers, below_ninety, ends_in_seven, "id > 100", tw.regex("s", "[1-3]"), wanted, is_not_77,
                     route_by=["a", "s"], sample=True)  # fmt: skip
    about["routed"] = ids(again) == about["kept"] and tw.explain(again).to_dict()["wheres"][0]["routing"]["off"] is None
    try:
        ids(tw.where(numbers, is_not_77, ends_in_seven))
    except Exception as error:  # noqa: BLE001 - whatever this Spark makes of it
        about["error"] = "predicate 'is_not_77' failed with ValueError: seventy-seven" in str(error)
    unasked = tw.where(numbers, tw.regex("s", "[1-3]"), tw.regex("s", "7$"), "id > 100")
    about["too_small"] = "too small" in str(tw.explain(unasked).to_dict()["wheres"][0]["notes"])
    about["dropped"] = len(ids(tw.where(numbers, is_not_77, ends_in_seven, on_error="drop")))
    about["cast"] = ids(tw.where(numbers, "cast(concat(s, if(a = 5, 'x', '')) as int) > 3990", "a <> 5"))
    about["split"] = written_as_people_do(numbers)
    about["dropped_columns"] = of_dropped_columns(numbers)
    about["adapted"] = adapted(numbers)
    about["enabled"] = enabled(numbers)
    about["explained"] = explained_although_it_fails(spark)
    about["refuses_other_values"] = refuses_other_values(numbers)
    with tempfile.TemporaryDirectory() as folder:
        numbers.write.parquet(f"{folder}/in")
        stream = spark.readStream.schema(numbers.schema).parquet(f"{folder}/in")
        if master == "connect":
            about["refused"] = refused_on_connect(spark, stream, folder)
            about["registered"] = order_with_a_registered_function(numbers)
        query = (
            tw.where(stream, below_ninety, wanted, ends_in_seven, route_by="auto", state=f"{folder}/state")
            .writeStream.format("parquet")
            .option("checkpointLocation", f"{folder}/checkpoint")
            .trigger(availableNow=True)
            .start(f"{folder}/out")
        )
        query.awaitTermination(120)
        about["streamed"] = ids(spark.read.parquet(f"{folder}/out"))
        about["stream_rows"] = tw.explain(query).to_dict()["wheres"][0]["rows"]
    print(json.dumps(about))  # noqa: T201 - what the test reads
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
