"""A program whose predicate leaks in workers of bounded memory; prints the error, then the answer of a good query."""

from __future__ import annotations

from typing import Any

import numpy as np
from pyspark.errors import PySparkException

import thalweg as tw
from thalweg.spark.start import spark_session

BOUND = "3g"  # address space: the libraries of a worker reserve more than a gigabyte of it
LEAK_BYTES = 1 << 28  # for each batch of rows
ROWS = 20_000
leaked: list[bytearray] = []


@tw.predicate(on="id", takes="numpy")
def leaks(number: np.ndarray) -> np.ndarray:
    leaked.append(bytearray(LEAK_BYTES))
    return number % 2 < 1


@tw.predicate(on="id", takes="numpy")
def is_even(number: np.ndarray) -> np.ndarray:
    return number % 2 < 1


def main() -> None:
    settings: dict[str, Any] = {
        "spark.executor.pyspark.memory": BOUND,
        "spark.sql.execution.arrow.maxRecordsPerBatch": 500,
    }
    spark = spark_session("leaking", cores=1, **settings)
    try:
        tw.where(spark.range(ROWS), leaks).count()
    except PySparkException as error:
        print(error)  # noqa: T201 - for the test
    print("kept", tw.where(spark.range(ROWS), is_even).count())  # noqa: T201 - for the test
    spark.stop()


if __name__ == "__main__":
    main()
