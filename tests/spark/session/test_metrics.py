"""`tw.Metrics` of a session beside its results and logs, while queries come, go, fail and the session starts again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.session.harness import (
    SECOND,
    Batch,
    Driver,
    Episode,
    QueryText,
    expected,
    late_rows,
    read_all,
    rows_in_folder,
    with_end,
    write_files,
)

import thalweg as tw
from thalweg.spark.session import logs

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

LARGE = QueryText("SELECT k, x FROM A WHERE x > 3", 5)
GROUPS = QueryText("SELECT k, count(*) AS n FROM A GROUP BY k", 4)
JOINED = QueryText("SELECT A.x, B.y FROM A JOIN B ON A.k = B.k WHERE is_odd(x)", 10)
FAILING = QueryText("SELECT 10 DIV (x - 11) AS tenth FROM A", 4)


def batch(number: int) -> Batch:
    """Rows of four seconds each, some of them late; a division fails for a row of the third."""
    times = [(4 * number + offset) * SECOND for offset in (1, 2, 3, -7, 4)]
    rows = [((number + place) % 3, (5 * place + number) % 10, "a", time) for place, time in enumerate(times)]
    fails = [(1, 11, "a", times[0])] if number == 2 else []
    return {
        "A": [*rows, *fails, (1, 5, "a", None)],
        "B": [((number + place) % 3, place, time) for place, time in enumerate(times)],
    }


BATCHES = with_end([batch(number) for number in range(6)])


def rows_with_time(batches: Sequence[Batch]) -> int:
    return sum(row[-1] is not None for each in batches for stream in "AB" for row in each.get(stream, ()))


def sums(log: Sequence[Row], query: str) -> tuple[int, int]:
    """The rounds and rows of a query by a log of rounds."""
    own = [each for each in log if each.query == query]
    return len(own), sum(each.rows for each in own)


@pytest.mark.thorough
def test_metrics_are_exact_while_queries_come_go_and_fail(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver(spark, tmp_path)

    def add(name: str, text: QueryText) -> tw.StandingQuery:
        return driver.session.query(str(text), name=name, to=tmp_path / name)

    told: list[dict[str, Any]] = []
    metrics = tw.Metrics(spark, told.append)
    large, _, _ = add("large", LARGE), add("joined", JOINED), add("failing", FAILING)
    write_files(tmp_path, BATCHES[:3])
    running = driver.session.start()
    read_all(running)
    large.remove()
    add("again", LARGE)  # which begins anew
    add("groups", GROUPS)
    write_files(tmp_path, BATCHES[3:5], 3)
    read_all(running)
    driver.session.stop()

    driver.open()
    monkeypatch.setattr(logs, "LOGGED_BATCHES", 4)  # as after a thousand micro-batches: sums over them tell too little
    for name, text in (("failing", FAILING), ("again", LARGE), ("joined", JOINED), ("groups", GROUPS)):
        add(name, text)
    running = driver.session.start()
    write_files(tmp_path, BATCHES[5:], 5)
    read_all(running)
    log, services = driver.session.log().collect(), driver.session.service_log().collect()
    driver.session.stop()
    metrics.close()

    # Files come while the session runs, so that a micro-batch may have those of one stream only.
    numbers = [each["batch"] for each in told]
    assert numbers == sorted(numbers)
    about = told[-1]["sessions"][0]
    assert about["batches"] == numbers[-1] + 1
    assert about["rows"] == rows_with_time(BATCHES)
    assert about["rows_without_time"] == 6
    queries = {query["name"]: query for query in about["queries"]}
    assert list(queries) == ["failing", "again", "joined", "groups"]  # of the session that runs now
    results = {name: rows_in_folder(tmp_path / name) for name in ("large", *queries)}
    assert results["large"] == expected(LARGE, BATCHES, [Episode(0, 3)])
    for name, query in queries.items():
        assert query["rows"] == results[name].total(), name
        assert query["status"].startswith("failed: [DIVIDE_BY_ZERO]" if name == "failing" else "served"), name
        rounds = {result[:2] for result in results[name]}
        assert query["rounds"] >= len(rounds), name
    assert queries["joined"]["late_rows"] >= late_rows(JOINED, BATCHES[:3]) > 0
    for name in ("again", "joined", "groups"):
        assert sums(log, name) == (queries[name]["rounds"], queries[name]["rows"]), name
    assert min(row.batch for row in services if row.query == "again") >= 3  # not those of the removed query
    assert min(each["batch"] for each in queries["again"]["last_rounds"]) >= 3
