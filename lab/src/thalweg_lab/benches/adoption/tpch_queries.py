"""tpch-queries: the 22 queries of TPC-H through `tw.adapt(spark.sql(query))`, which must cost none of them anything.

By itself `tw.adapt` leaves all of them as they are: their filters have cheap conditions, or one that takes time. With
`sample=True` it makes the filters of ten adaptive, which are measured as well: their jobs, without the samples.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import truediv
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from thalweg_lab.benches.filters.race import THALWEG, Measurement, Race, Tick, part_of, race
from thalweg_lab.results import Result, at_most
from thalweg_lab.tpch import create_views, drop_views, generate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

NAME = "tpch-queries"
SCALE, ROUNDS = 0.1, 20
MOST_ROUNDS = 45  # where plain Spark is apart from itself; more would take more than twenty minutes
GROUP = 5  # rounds of which the fastest run counted by an earlier rule, for comparison
CALLS = 15  # of tw.adapt
MOST_TIMES = 1.1  # the time of plain Spark that a query may take

PLAIN, PLAIN_AGAIN = "plain Spark", "plain Spark again"
FORCED = "tw.adapt(sample=True)"
DIGITS = 6  # of a floating-point number that do not depend on the order of a sum's operands


def measure(
    spark: SparkSession,
    tick: Tick,
    *,
    numbers: Sequence[int] = range(1, 23),
    scale: float = SCALE,
    rounds: int = ROUNDS,
    most_rounds: int = MOST_ROUNDS,
) -> list[Result]:
    """Each query, from its text to its rows on the driver, against the same in plain Spark."""
    import thalweg as tw

    races: list[Race] = []
    forced: list[Race] = []  # of the queries that `sample=True` makes adaptive
    adding: list[Result | None] = []
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
            ticks, note = part_of(tick, place, len(numbers)), f"scale {scale}"
            control = PLAIN, PLAIN_AGAIN
            run = partial(race, NAME, rounds=rounds, label=f"query {number}", most_rounds=most_rounds, control=control)
            races.append(run(contenders, tick=ticks, note=note))
            adding.append(_added(races[-1], plain))
            forced += _forced(plain, note, run)
        drop_views(spark)
    together = _together(races, (THALWEG, PLAIN, PLAIN_AGAIN), rounds, scale)
    return [
        *map(_slower, races),
        *(added for added in adding if added is not None),
        together.slower(PLAIN, MOST_TIMES),
        together.control(PLAIN, PLAIN_AGAIN),
        *(_slower(found, FORCED) for found in forced),
        *([_together(forced, (FORCED, PLAIN), rounds, scale).slower(PLAIN, MOST_TIMES, FORCED)] if forced else []),
    ]


def _together(races: Sequence[Race], names: Sequence[str], rounds: int, scale: float) -> Race:
    """The sums of the times of some queries, in the rounds that all of them have."""
    times = {name: [found.seconds[name][:rounds] for found in races] for name in names}
    sums = {name: [sum(each) for each in zip(*seconds, strict=True)] for name, seconds in times.items()}
    return Race(NAME, sums, f"scale {scale}, {len(races)} queries", "together")


def _forced(make: Callable[[], DataFrame], note: str, run: Callable[..., Race]) -> list[Race]:
    """The job of a query whose filters are adaptive against plain Spark's; none if no filter can be.

    Both DataFrames are made before, so that a job that is planned anew is all that is measured: a sample takes as long
    as such a query, and `tw.adapt` takes none by itself where the job is so short.
    """
    import thalweg as tw

    written = make()
    start = time.perf_counter()
    adapted = tw.adapt(written, sample=True)
    seconds = time.perf_counter() - start
    if adapted is written:
        return []
    contenders = {
        FORCED: _answer(lambda: adapted.select("*")),
        PLAIN: _answer(lambda: written.select("*")),
        PLAIN_AGAIN: _answer(lambda: written.select("*")),
    }
    race(NAME, contenders, 1, lambda _done, _total: None, "")
    note = f"{note}; the call with its samples {seconds:.2f} s"
    return [run(contenders, tick=lambda _done, _total: None, note=note)]


def _slower(found: Race, contender: str = THALWEG) -> Result:
    """How many times the time of plain Spark a query takes, how exact that is, and the ratio by an earlier rule."""
    result = found.slower_than_both(PLAIN, PLAIN_AGAIN, MOST_TIMES, contender)
    before = median(map(truediv, _fastest(found, contender), _fastest(found, PLAIN)))
    return replace(result, note=f"{result.note}; the fastest of {GROUP} rounds each, median: {before:.2f}")


def _fastest(found: Race, contender: str) -> list[float]:
    """The fastest run of each group of rounds."""
    seconds = found.seconds[contender]
    return [min(seconds[start : start + GROUP]) for start in range(0, max(len(seconds) - GROUP, 0) + 1, GROUP)]


def _added(found: Race, make: Callable[[], DataFrame]) -> Result | None:
    """The same, by the time of tw.adapt itself: where it returns the very DataFrame, nothing else differs.

    None where it returns another. A query of 0.2 s differs from itself by more than the target allows, and the call of
    some milliseconds is measured well.
    """
    import thalweg as tw

    seconds = []
    for _ in range(CALLS):
        frame = make()
        start = time.perf_counter()
        adapted = tw.adapt(frame)
        seconds.append(time.perf_counter() - start)
        if adapted is not frame:
            return None
    call, plain = median(seconds), min(found.seconds[PLAIN] + found.seconds[PLAIN_AGAIN])
    measure = f"{found.label}: {PLAIN} and the call of tw.adapt, which changes nothing, times the time of {PLAIN}"
    note = f"tw.adapt {1e3 * call:.1f} ms, median of {CALLS}; {PLAIN} {plain:.3f} s, the fastest run"
    return at_most(NAME, measure, 1 + call / plain, MOST_TIMES, note)


def _answer(make: Callable[[], DataFrame]) -> Callable[[], Measurement]:
    def run() -> Measurement:
        start = time.perf_counter()
        rows = make().collect()
        seconds = time.perf_counter() - start
        return Measurement(len(rows), zlib.crc32("\n".join(sorted(map(_text, rows))).encode()), seconds)

    return run


def _text(row: Row) -> str:
    return str([f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value) for value in row])
