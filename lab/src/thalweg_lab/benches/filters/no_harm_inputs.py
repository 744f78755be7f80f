"""Inputs and conditions on which Thalweg has nothing to gain, and could lose push-down, run the input twice, or worse.

Each case is the plan that a user would write without Thalweg, and the same with it; the call of `tw.where` counts.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from thalweg.ordering.types import Booleans, Integers
from thalweg_lab.benches.filters import plain
from thalweg_lab.benches.filters.race import Make

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DAYS = 20
SCREENED_HOSTS = 1000
REGEXES = ("s rlike '[1-9]'", "s rlike '^[0-9a-f]+$'")
WIDE_COLUMNS = 6


@dataclass(frozen=True)
class Case:
    """An input, the plan with Thalweg, and the plan that it must not be slower than."""

    label: str
    rows: int
    frame: Callable[[SparkSession, int], DataFrame]
    with_thalweg: Make
    without: Make


@dataclass(frozen=True)
class Divides:
    """Keeps the rows whose number, divided by `by`, leaves a remainder below `below`; costs next to nothing.

    >>> Divides(3, 2)(np.arange(4)).tolist()
    [True, True, False, True]
    """

    by: int
    below: int

    def __call__(self, rows: Integers) -> Booleans:
        """Which rows are kept."""
        return np.asarray(rows % self.by < self.below)


def cases() -> tuple[Case, ...]:
    """All cases; the sizes make jobs of one to three seconds on two cores."""
    import thalweg as tw

    test = Divides(10, 9)
    kept = tw.predicate(test, on="id", takes="numpy", name="kept")
    recent = "day >= current_date() - 7"
    casts = ("(id & 7) <> 3", "cast(s AS bigint) >= 0")
    tests = (Divides(10, 9), Divides(7, 6), Divides(11, 10))
    predicates = [tw.predicate(each, on="id", takes="numpy", name=f"{each}") for each in tests]
    mixed = tw.any_of(tw.predicate(Divides(10, 5), on="id", takes="numpy", name="half"), "s rlike '7'")
    return (
        Case(
            "partitioned table",
            40_000_000,
            _partitioned,
            lambda frame: tw.where(frame, recent, kept),
            lambda frame: plain.chain(frame.where(recent), [test]),
        ),
        Case(
            "aggregated input",
            20_000_000,
            lambda spark, rows: _texts(spark, rows).groupBy("s").agg({"id": "max"}).withColumnRenamed("max(id)", "id"),
            lambda frame: tw.where(frame, *REGEXES),
            lambda frame: frame.where(" AND ".join(REGEXES)),
        ),
        Case(
            "sorted input",
            6_000_000,
            lambda spark, rows: _texts(spark, rows).sort("s"),
            lambda frame: tw.where(frame, *REGEXES),
            lambda frame: frame.where(" AND ".join(REGEXES)),
        ),
        Case(
            "one condition that may raise",
            60_000_000,
            _digits,
            lambda frame: tw.where(frame, *casts),
            lambda frame: frame.where(" AND ".join(casts)),
        ),
        Case(
            "mixed any_of, sampled against not sampled",
            8_000_000,
            _texts,
            lambda frame: tw.where(frame, *REGEXES, mixed),
            lambda frame: tw.where(frame, *REGEXES, mixed, sample=False),
        ),
        Case(
            "mixed any_of, with a sample against without",
            20_000_000,
            _texts,
            lambda frame: tw.where(frame, *REGEXES, mixed, sample=True),
            lambda frame: tw.where(frame, *REGEXES, mixed, sample=False),
        ),
        Case(
            "route_by='auto' without classes",
            8_000_000,
            _wide,
            lambda frame: tw.where(frame, *predicates, route_by="auto"),
            lambda frame: tw.where(frame, *predicates),
        ),
        _screening(),
    )


def _screening() -> Case:
    """A pipeline as it stands over real logs, written best first."""
    import thalweg as tw

    hosts = pa.table({"host": [f"host-{number}" for number in range(SCREENED_HOSTS)]})
    known = tw.lookup(hosts, on="host")
    robot = Divides(10, 8)
    person = tw.predicate(robot, on="id", takes="numpy", name="a person")

    def without(frame: DataFrame) -> DataFrame:
        screened = plain.in_table(frame.where("status >= 400 AND path rlike '^/api/v[12]/'"), hosts, "host")
        return plain.chain(screened, [robot])

    return Case(
        "screening pipeline, written best first",
        12_000_000,
        _log,
        lambda frame: tw.where(frame, "status >= 400", tw.regex("path", "^/api/v[12]/"), known, person),
        without,
    )


def _texts(spark: SparkSession, rows: int) -> DataFrame:
    return spark.range(0, rows, 1, 2).selectExpr("id", "substr(md5(cast(id % 1000000 AS string)), 1, 12) AS s")


def _digits(spark: SparkSession, rows: int) -> DataFrame:
    return spark.range(0, rows, 1, 2).selectExpr("id", "cast(id AS string) AS s")


def _wide(spark: SparkSession, rows: int) -> DataFrame:
    columns = [f"concat('value-', (id * {7 + number}) % {5 + number}) AS c{number}" for number in range(WIDE_COLUMNS)]
    return spark.range(0, rows, 1, 2).selectExpr("id", *columns)


def _log(spark: SparkSession, rows: int) -> DataFrame:
    return spark.range(0, rows, 1, 2).selectExpr(
        "id",
        "if(id % 20 = 0, 404, 200) AS status",
        "concat('/', if(id % 3 = 0, 'static', 'api'), '/v', id % 4, '/', id % 977) AS path",
        f"concat('host-', id % {3 * SCREENED_HOSTS}) AS host",
        "concat('agent/', id % 50) AS agent",
    )


_folders: list[str] = []


def _partitioned(spark: SparkSession, rows: int) -> DataFrame:
    """A table with a partition for each of some days."""
    folder = tempfile.mkdtemp(prefix="thalweg-bench-")
    _folders.append(folder)
    days = spark.range(0, rows, 1, 2).selectExpr(
        "id", "id % 1000 AS a", f"date_sub(current_date(), cast(id % {DAYS} AS int)) AS day"
    )
    days.repartition("day").write.partitionBy("day").mode("overwrite").parquet(folder)
    return spark.read.parquet(folder)


@contextmanager
def folders_removed() -> Iterator[None]:
    """Remove the files that the cases have written."""
    try:
        yield
    finally:
        while _folders:
            shutil.rmtree(_folders.pop(), ignore_errors=True)
