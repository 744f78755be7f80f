"""filters: `tw.where` with 2 to 32 cheap predicates, of which each keeps most rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import thalweg as tw
from thalweg_lab.benches.filters.race import Tick
from thalweg_lab.benches.load.loaded_query import QueryKind, Setting
from thalweg_lab.benches.load.sweep import Effort, swept
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PREDICATES, HELD_OUT = (2, 4, 16, 32), (8,)
EFFORT = Effort(rows=(20_000, 400_000), interval=1.0, intervals=10, load_intervals=20)


def start(
    _spark: SparkSession, frames: Sequence[DataFrame], setting: Setting, folder: str, trigger: dict[str, Any]
) -> StreamingQuery:
    """Start a stream of filtered rows."""
    kept = tw.where(frames[0], *(keeps_most(number) for number in range(setting.parts)))
    writer = kept.writeStream.format("noop").option("checkpointLocation", f"{folder}/checkpoint")
    return writer.trigger(**trigger).start()


def keeps_most(number: int) -> Any:  # noqa: ANN401 - a predicate
    """A predicate that drops a row of a hundred, so that most rows meet all of 32 predicates."""

    @tw.predicate(on="value", takes="numpy", name=f"keeps most {number}")
    def keeps(value: np.ndarray) -> np.ndarray:
        return (value + number) % 100 > 0

    return keeps


FILTERS = QueryKind("filters", ("predicate", "predicates"), start)


def measure(spark: SparkSession, tick: Tick, *, effort: Effort = EFFORT) -> list[Result]:
    """The costs of filters, and how their rate and latency change with the number of predicates."""
    fitted, held_out = ([Setting(number) for number in numbers] for numbers in (PREDICATES, HELD_OUT))
    return swept(spark, FILTERS, fitted, held_out, effort, tick)
