"""A filter, a join and a session that run for long, with drift and changing queries: what they hold does not grow.

`THALWEG_SOAK_SECONDS` says for how long. The first part of the time is for warming up; slopes are of the rest.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.soak.processes import held_now
from tests.spark.joins.conftest import rocks

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["rocks"]  # a fixture

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3 * 3600)]

SECONDS = float(os.environ.get("THALWEG_SOAK_SECONDS", "180"))
REPORT = os.environ.get("THALWEG_SOAK_REPORT")  # a file of JSON lines, one for each look at the processes
WARM_UP = 0.5  # of the time
LOOK_SECONDS = 2.0
CHANGE_SECONDS = 15.0  # after so long a query of the session is removed, and another one added
ROWS = 2000  # a micro-batch
MOST_GROWTH = 0.15  # of what the Python processes hold after the warm-up, until the end
MOST_FILES = 20  # more at the end than after the warm-up: files, sockets and threads


@tw.predicate(on="value", takes="numpy")
def drifts(value: np.ndarray) -> np.ndarray:
    return value % 10 < value // (20 * ROWS) % 10


@tw.predicate(on="value", takes="numpy")
def is_rare(value: np.ndarray) -> np.ndarray:
    return value % 7 < 1


def rows(spark: SparkSession) -> DataFrame:
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS)
    return source.option("advanceMillisPerBatch", 1000).load().withColumn("k", _key())


def _key() -> Any:  # noqa: ANN401 - a Column of either kind of session
    from pyspark.sql import functions as f

    return f.expr("value % 50")


def test_nothing_grows(rocks: SparkSession, tmp_path: Path) -> None:
    trigger = {"processingTime": "1 second"}
    kept = tw.where(rows(rocks), drifts, is_rare, "k > 10", drift="bcs", state=tmp_path / "learnt")
    joined = tw.join(
        {name: rows(rocks).where(f"value % 3 = {place}") for place, name in enumerate("ABC")},
        on="A.k = B.k AND B.k = C.k",
        windows="1 second",
        event_time="timestamp",
        delay="2 seconds",
        select=["A.value"],
    )
    session = tw.Session(rocks, checkpoint=tmp_path / "session")
    session.stream("S", rows(rocks), event_time="timestamp")
    session.query("SELECT k, count(*) AS n FROM S GROUP BY k WINDOW [5 seconds]", to=lambda _frame, _number: None)
    queries = [
        frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / name)).trigger(**trigger).start()
        for name, frame in {"kept": kept, "joined": joined}.items()
    ]
    session.start(**trigger)

    looks, start, changed, added = [], time.monotonic(), 0.0, None
    while (now := time.monotonic() - start) < SECONDS:
        for query in queries:
            assert query.exception() is None
        if now - changed > CHANGE_SECONDS:
            changed = now
            if added is not None:
                added.remove()
            text = f"SELECT max(value) AS m FROM S WHERE k > {int(now) % 50} WINDOW [3 seconds]"  # noqa: S608 - ours
            added = session.query(text, to=lambda _frame, _number: None)
        held = held_now(os.getpid())
        looks.append((now, held))
        if REPORT:
            with Path(REPORT).open("a") as file:
                print(json.dumps({"second": now} | {role: vars(each) for role, each in held.items()}), file=file)
        time.sleep(LOOK_SECONDS)
    session.stop()
    for query in queries:
        query.stop()

    warm = [(now, held) for now, held in looks if now > WARM_UP * SECONDS]
    seconds = np.array([now for now, _ in warm])
    for role in ("driver", "workers"):
        sizes = np.array([held[role].bytes for _, held in warm], float)
        slope = np.polyfit(seconds, sizes, 1)[0]
        assert slope * (seconds[-1] - seconds[0]) < MOST_GROWTH * sizes[0], (role, slope)
    for role in ("driver", "JVM"):
        counts = np.array([held[role].files + held[role].threads for _, held in warm])
        half = counts.size // 2
        assert np.median(counts[half:]) <= np.median(counts[:half]) + MOST_FILES, role
