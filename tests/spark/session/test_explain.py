from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.spark.session.harness import SECOND, Batch, Driver, QueryText, expected, with_end, write_files

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL = QueryText("SELECT k, x FROM A WHERE x > 3", 5)
JOINED = QueryText("SELECT A.x, B.y FROM A JOIN B ON A.k = B.k WHERE x > 3 AND is_odd(x)", 10)
BATCHES: list[Batch] = with_end(
    [
        {"A": [(1, 5, "a", SECOND)], "B": [(1, 6, SECOND)]},
        {"A": [(1, 7, "b", 12 * SECOND)]},
        {"A": [(1, 1, "c", SECOND)]},  # late, after the round of its first row has ended
    ]
)


def test_a_session_tells_what_it_does(spark: SparkSession, tmp_path: Path) -> None:
    """By explain, and by metrics after every micro-batch."""
    driver = Driver(spark, tmp_path)
    write_files(tmp_path, BATCHES)
    session = driver.session
    for text, name in [(ALL, "all"), (JOINED, "joined")]:
        session.query(str(text), name=name)
    before: dict[str, Any] = session.explain().to_dict()["sessions"][0]
    assert [query["status"] for query in before["queries"]] == ["not started"] * 2
    told: list[dict[str, Any]] = []
    metrics = tw.Metrics(spark, told.append)
    session.start(availableNow=True)
    assert session.await_termination(240)
    metrics.close()
    assert [each["batch"] for each in told] == [0, 1, 2, 3]
    about: dict[str, Any] = session.explain().to_dict()["sessions"][0]
    assert told[-1]["sessions"][0]["queries"] == about["queries"]
    assert about["batches"] == 4
    assert about["rows"] == sum(len(rows) for batch in BATCHES for stream, rows in batch.items() if stream in "AB")
    assert (about["written_conditions"], about["shared_conditions"]) == (3, 2)
    single, joined = about["queries"]
    assert single | {"rounds": 2, "rows": expected(ALL, BATCHES).total(), "late_rows": 1, "plans": 2} == single
    assert joined | {"rounds": 2, "rows": expected(JOINED, BATCHES).total(), "conditions_of_its_own": 0} == joined
    assert joined["decisions"] == joined["rounds"]
    assert about["memory"]["cap"] is None
    assert about["memory"]["held"] > 0
    assert about["lag_seconds"] > 0
    assert 0 <= joined["fidelity"] <= 1
    shown = str(session.explain())
    for words in ["session: 2 queries, 4 micro-batches", "all: served", "1 late rows", "Join on `A`.`k` = `B`.`k`"]:
        assert words in shown


def test_the_service_log_tells_of_every_query(spark: SparkSession, tmp_path: Path) -> None:
    """However heavy one of them is, every query is served in every micro-batch in which a round of its own ends."""
    driver = Driver(spark, tmp_path)
    rows = [(key % 2, 9, "a", SECOND) for key in range(60)]
    batches = with_end([{"A": rows}, {"A": [(*row[:-1], 9 * SECOND) for row in rows]}])
    heavy = driver.session.query("SELECT p.k FROM A AS p, A AS q WHERE p.k = q.k WINDOW [5]").compiled.token
    light = driver.session.query(str(ALL)).compiled.token
    driver.run(*batches)
    assert driver.engine is not None
    log = [record.served for record in driver.engine.log]
    assert log == [{}, {heavy: (1, 1800), light: (1, 60)}, {heavy: (1, 1800), light: (1, 60)}]
    assert [record.rows for record in driver.engine.log] == [60, 60, 1]
