"""small-calls: a call of `tw.where`, and a job of 100 rows with it, for conditions as people write them."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from thalweg_lab.benches.filters.race import THALWEG, Measurement, Tick, part_of, race
from thalweg_lab.results import Result, at_most

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "small-calls"
ROWS, CALLS, ROUNDS, WARM_ROUNDS = 100, 40, 20, 5
CALL_MILLISECONDS, MORE_MILLISECONDS = 10, 30  # that a call may take, and a job more than plain Spark's

PLAIN, PLAIN_AGAIN = "plain Spark", "plain Spark again"
TEXT = "a > 5 AND b < 9 AND length(s) < 3 AND d < 20"

Make = Callable[[], list[Any]]  # the conditions of a call, made anew


def measure(
    spark: SparkSession, tick: Tick, *, rows: int = ROWS, calls: int = CALLS, rounds: int = ROUNDS
) -> list[Result]:
    """The time of calls, repeated and on new DataFrames, and of jobs with the call in it, by kind of conditions."""
    import thalweg as tw

    def made_anew() -> DataFrame:
        columns = ("id AS a", "id * 7 % 13 AS b", "cast(id AS string) AS s", "id / 3 AS d")
        return spark.range(0, rows, 1, 2).selectExpr(*columns)

    frame = made_anew().localCheckpoint()
    found = kinds()
    results = []
    for place, (kind, (ours, theirs)) in enumerate(found.items()):

        def filtered(ours: Make = ours) -> DataFrame:
            return tw.where(frame, *ours())

        def plain(theirs: Make = theirs) -> DataFrame:
            (condition,) = theirs()
            return frame.where(condition)

        jobs = {THALWEG: _job(filtered), PLAIN: _job(plain), PLAIN_AGAIN: _job(plain)}
        race(
            NAME, jobs, min(rounds, WARM_ROUNDS), lambda _done, _total: None, ""
        )  # untimed: the JVM compiles, workers start
        for measure, is_new in (("ms of a call", False), ("ms of a call on a new DataFrame", True)):
            frames = [made_anew() if is_new else frame for _ in range(calls)]
            seconds = [_seconds(tw.where, each, *ours()) for each in frames]
            frames = [made_anew() if is_new else frame for _ in range(calls)]
            plainly = [_seconds(each.where, *theirs()) for each in frames]
            note = f"median of {calls}; a call of df.where takes {1e3 * median(plainly):.1f} ms"
            results.append(at_most(NAME, f"{kind}: {measure}", 1e3 * median(seconds), CALL_MILLISECONDS, note))
        done = race(NAME, jobs, rounds, part_of(tick, place, len(found)), f"{rows} rows", label=kind)
        results += [done.later(PLAIN, MORE_MILLISECONDS), done.apart(PLAIN, PLAIN_AGAIN, MORE_MILLISECONDS)]
    return results


def kinds() -> dict[str, tuple[Make, Make]]:
    """Conditions as they go to `tw.where`, and the same for plain Spark, by their kind."""
    from pyspark.sql import functions

    import thalweg as tw

    def short(s: pd.Series) -> pd.Series:
        return s.str.len() < 3  # noqa: PLR2004 - any number

    def small(b: pa.Array) -> pa.Array:
        return pc.less(b, 9)

    f: Any = functions
    is_even, is_short = f.udf(lambda a: a % 2 == 0, "boolean"), f.pandas_udf(short, "boolean")
    is_small = f.arrow_udf(small, "boolean")
    predicates = [tw.predicate(small), tw.predicate(short, takes="pandas")]

    def column() -> Any:  # noqa: ANN401 - a Column
        return (f.col("a") > 5) & (f.col("b") < 9) & (f.length("s") < 3)  # noqa: PLR2004 - any numbers

    def udfs() -> Any:  # noqa: ANN401 - as above
        return is_even("a") & is_small("b") & is_short("s")

    return {
        "SQL text": (lambda: [TEXT], lambda: [TEXT]),
        "Column": (lambda: [column()], lambda: [column()]),
        "predicates": (lambda: predicates, lambda: [is_small("b") & is_short("s")]),
        "UDFs": (lambda: [udfs()], lambda: [udfs()]),
        "mixed": (lambda: [TEXT, is_even("a"), *predicates], lambda: [f.expr(TEXT) & udfs()]),
    }


def _job(make: Callable[[], DataFrame]) -> Callable[[], Measurement]:
    def run() -> Measurement:
        start = time.perf_counter()
        rows = make().collect()
        return Measurement(len(rows), sum(row["a"] for row in rows), time.perf_counter() - start)

    return run


def _seconds(call: Callable[..., Any], *arguments: Any) -> float:  # noqa: ANN401 - as the call takes them
    start = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - start
