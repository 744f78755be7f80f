"""filters: `tw.where` with two to eight cheap predicates, of which each keeps most rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import thalweg as tw
from thalweg_lab.benches.filters.race import Tick
from thalweg_lab.benches.load.micro_batches import Stream, measured
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

NAME = "filters"
PREDICATES, HELD_OUT = (2, 8), 4


def measure(spark: SparkSession, tick: Tick) -> list[Result]:
    """The costs of filters."""
    return measured(NAME, spark, tick, start, PREDICATES, HELD_OUT)


def start(_spark: SparkSession, stream: Stream, rows: int, predicates: int, folder: str) -> StreamingQuery:
    """Start a stream of filtered rows."""
    kept = tw.where(stream(rows), *(keeps_most(number) for number in range(predicates)))
    writer = kept.writeStream.format("noop").option("checkpointLocation", f"{folder}/checkpoint")
    return writer.trigger(availableNow=True).start()


def keeps_most(number: int) -> Any:  # noqa: ANN401 - a predicate
    """A predicate that drops a row of twenty."""

    @tw.predicate(on="value", takes="numpy", name=f"keeps most {number}")
    def keeps(value: np.ndarray) -> np.ndarray:
        return (value + number) % 20 > 0

    return keeps
