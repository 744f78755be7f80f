"""python-costly-page: the query of python-costly with the live page on, and with it off.

The page is served by the program of the query, as `tw.dashboard()` does it, and a reader has it open. The page is there
before the query begins: its start is not part of the time.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

from thalweg_lab.benches.filters.python_costly import ROWS, note_on, worst_and_best
from thalweg_lab.benches.filters.race import Measurement, Tick, race
from thalweg_lab.benches.filters.work import predicates_of
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "python-costly-page"
ROUNDS = 31  # a difference of 1% shows in the median of many rounds only
PAUSE_SECONDS = 1.0  # before each run, in which the page settles
WITH, WITHOUT, AGAIN = "the page on", "the page off", "the page off again"
MOST_TIMES, CONTROL = 1.01, (0.99, 1.01)


def measure(
    spark: SparkSession, tick: Tick, *, rows: int = ROWS, rounds: int = ROUNDS, pause: float = PAUSE_SECONDS
) -> list[Result]:
    """The time with the page on, against the time with the page off."""
    import thalweg as tw

    written = predicates_of(worst_and_best()[0])
    frame = spark.range(0, rows, 1, 2)

    def run(page: AbstractContextManager[None]) -> Measurement:
        with page:
            time.sleep(pause)
            start = time.perf_counter()
            kept, checksum = tw.where(frame, *written).selectExpr("count(*)", "sum(id)").collect()[0]
            return Measurement(kept, checksum, time.perf_counter() - start)

    contenders = {
        WITH: lambda: run(open_page()),
        WITHOUT: lambda: run(nullcontext()),
        AGAIN: lambda: run(nullcontext()),
    }
    note = f"{note_on(rows)}; the page is served by the program, and open once"
    race(NAME, contenders, 1, lambda _done, _total: None, note)  # untimed
    found = race(NAME, contenders, rounds, tick, note)
    return [found.slower(WITHOUT, MOST_TIMES, WITH), found.control(WITHOUT, AGAIN, CONTROL)]


@contextmanager
def open_page() -> Iterator[None]:
    """Serve the live page, and read all updates that a browser would get."""
    import thalweg as tw

    with tempfile.TemporaryDirectory() as folder:
        page = tw.dashboard(folder=Path(folder) / "runs", port=0)
        reader = threading.Thread(target=_read, args=(f"{page.url}api/events",))
        reader.start()
        try:
            yield
        finally:
            page.close()
            reader.join()


def _read(url: str) -> None:
    with urlopen(url) as updates:  # noqa: S310 - an address of this program
        for _ in updates:
            pass
