"""tpch-queries: the 22 queries of TPC-H through `tw.adapt(spark.sql(query))`, which must cost none of them anything."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from thalweg_lab.benches.filters.race import THALWEG, Measurement, Race, Tick, part_of, race
from thalweg_lab.results import Result
from thalweg_lab.tpch import create_views, drop_views, generate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

NAME = "tpch-queries"
SCALE, ROUNDS, TRIES = 0.1, 3, 5  # more tries than rounds: a slow moment of the machine is longer than a query
CALLS = 5  # of tw.adapt, whose time a note tells
MOST_TIMES = 1.1  # the time of plain Spark that a query may take

PLAIN, PLAIN_AGAIN = "plain Spark", "plain Spark again"
DIGITS = 6  # of a floating-point number that do not depend on the order of a sum's operands


def measure(
    spark: SparkSession,
    tick: Tick,
    *,
    numbers: Sequence[int] = range(1, 23),
    scale: float = SCALE,
    rounds: int = ROUNDS,
    tries: int = TRIES,
) -> list[Result]:
    """Each query, from its text to its rows on the driver, against the same in plain Spark."""
    import thalweg as tw

    races = []
    with TemporaryDirectory(prefix="thalweg-tpch-") as folder:
        queries = generate(Path(folder), scale)
        create_views(spark, Path(folder))
        for place, number in enumerate(numbers):

            def plain(text: str = queries[number]) -> DataFrame:
                return spark.sql(text)

            def adapted(text: str = queries[number]) -> DataFrame:
                return tw.adapt(spark.sql(text))

            contenders = {THALWEG: _answer(adapted), PLAIN: _answer(plain), PLAIN_AGAIN: _answer(plain)}
            race(NAME, contenders, 1, lambda _done, _total: None, "")  # untimed: the JVM compiles, files are read
            ticks, note = part_of(tick, place, len(numbers)), f"scale {scale}; {_adaptation(plain)}"
            races.append(race(NAME, contenders, rounds, ticks, note, label=f"query {number}", tries=tries))
        drop_views(spark)
    names = (THALWEG, PLAIN, PLAIN_AGAIN)
    sums = {name: [sum(each) for each in zip(*(found.seconds[name] for found in races), strict=True)] for name in names}
    together = Race(NAME, sums, f"scale {scale}, {len(races)} queries", "together")
    return [
        *(found.slower(PLAIN, MOST_TIMES) for found in races),
        *(found.slower_at_best(PLAIN, MOST_TIMES) for found in races),
        *(found.control_at_best(PLAIN, PLAIN_AGAIN) for found in races),
        together.slower(PLAIN, MOST_TIMES),
        together.control(PLAIN, PLAIN_AGAIN),
    ]


def _adaptation(make: Callable[[], DataFrame]) -> str:
    """What tw.adapt does to a query, and how long that takes."""
    import thalweg as tw

    seconds, is_same = [], True
    for _ in range(CALLS):
        frame = make()
        start = time.perf_counter()
        is_same = tw.adapt(frame) is frame
        seconds.append(time.perf_counter() - start)
    return f"tw.adapt takes {1e3 * median(seconds):.1f} ms and {'changes nothing' if is_same else 'changes the plan'}"


def _answer(make: Callable[[], DataFrame]) -> Callable[[], Measurement]:
    def run() -> Measurement:
        start = time.perf_counter()
        rows = make().collect()
        seconds = time.perf_counter() - start
        return Measurement(len(rows), zlib.crc32("\n".join(sorted(map(_text, rows))).encode()), seconds)

    return run


def _text(row: Row) -> str:
    return str([f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value) for value in row])
