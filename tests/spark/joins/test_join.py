"""`tw.join` against DuckDB: the query over the whole history."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from itertools import combinations, count, pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from tests.spark.joins.harness import BATCH_SECONDS, SECOND, START, answer, given, made, run, stream, write

import thalweg as tw
from thalweg.drift import DETECTORS
from thalweg.joinorder import PLANNERS
from thalweg.ordering import POLICIES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

LONG_SECONDS = 90.0  # of a long run
CHAIN = "A.k = B.k AND B.l = C.l"


def test_a_chain_of_streams_with_a_residual_and_a_filter(rocks: SparkSession, tmp_path: Path) -> None:
    batches = made("ABC", 3, 50)
    write(batches, tmp_path)
    on = f"{CHAIN} AND A.v < C.v + 100 AND B.v > 50"
    windows = {"A": 8, "B": 5, "C": 12}
    joined = tw.join(
        {name: stream(rocks, tmp_path, name) for name in "ABC"},
        on=on,
        windows={name: f"{seconds} seconds" for name, seconds in windows.items()},
        event_time="ts",
        delay="4 seconds",
        cells=4,
    )
    assert joined.columns[:2] == ["A_k", "A_l"]
    query = run(joined, tmp_path)
    rows = rocks.read.parquet(str(tmp_path / "out")).collect()
    expected = answer(batches, on, windows)
    assert expected
    assert given(rows, "ABC") == expected
    about = tw.explain(query).to_dict()["joins"][0]
    assert about["shape"] == "linear"
    assert [share["size"] for share in about["shares"]] == [2, 2]
    assert about["results"] == len(rows)
    assert {name: source["copies"] for name, source in about["inputs"].items()} == {"A": 2, "B": 1, "C": 2}
    nulls = sum(table["k"].null_count for table in batches["A"])
    assert about["inputs"]["A"]["without_key_or_time"] == nulls
    assert about["inputs"]["A"]["rows"] == 150 - nulls
    assert "4 cells: 2 by A.k = B.k × 2 by B.l = C.l" in str(tw.explain(joined))


def test_a_changelog_sums_to_the_current_join_after_each_batch(rocks: SparkSession, tmp_path: Path) -> None:
    batches = made("ABC", 3, 40)
    write(batches, tmp_path)
    on, windows = "A.k = B.k AND B.k = C.k", {"A": 6, "B": 9, "C": 6}
    joined = tw.join(
        {name: stream(rocks, tmp_path, name) for name in "ABC"},
        on=on,
        windows={name: f"{seconds} seconds" for name, seconds in windows.items()},
        event_time="ts",
        delay="4 seconds",
        cells=3,
        output="changelog",
        select=["A.v", "B.v", "C.v"],
    )
    changes: dict[int, list[Any]] = {}

    def take(frame: DataFrame, number: int) -> None:
        changes[number] = frame.collect()

    query = joined.writeStream.foreachBatch(take).trigger(availableNow=True).start()
    query.awaitTermination()
    current: Counter[tuple[Any, ...]] = Counter()
    history = {name: tables[:0] for name, tables in batches.items()}
    for progress in query.recentProgress:
        number = progress.batchId
        history = {name: tables[: number + 1] for name, tables in batches.items()}
        for row in changes[number]:
            current[row["A_v"], row["B_v"], row["C_v"]] += row["change"]
        moment = datetime.fromisoformat(progress.eventTime["watermark"])
        watermark = round(moment.timestamp() * SECOND) or None
        expected = answer(history, on, windows, current_at=watermark or START - 100 * SECOND)
        assert +current == expected
        assert min(current.values()) >= 0
    assert len(query.recentProgress) == 4  # the last without new rows: results whose rows expire then are taken back
    assert any(row["change"] == -1 for row in changes[3])


def test_late_rows_are_counted_once_and_kept_aside(rocks: SparkSession, tmp_path: Path) -> None:
    batches = made("ABC", 3, 30)
    late = batches["A"][0].slice(0, 7)
    late = late.set_column(0, "k", pa.array([None, 1, 2, 3, 4, 5, 1], pa.int64()))
    batches["A"][2] = pa.concat_tables([batches["A"][2], late])
    write(batches, tmp_path)
    windows = dict.fromkeys("ABC", BATCH_SECONDS)
    joined = tw.join(
        {name: stream(rocks, tmp_path, name).withWatermark("ts", "4 seconds") for name in "ABC"},
        on=CHAIN,
        windows="10 seconds",
        event_time="ts",
        cells=4,
        select=["A.v", "B.v", "C.v"],
        late=tmp_path / "late",
    )
    query = run(joined, tmp_path)
    without = batches | {"A": [*batches["A"][:2], batches["A"][2].slice(0, 30)]}
    assert given(rocks.read.parquet(str(tmp_path / "out")).collect(), "ABC") == answer(without, CHAIN, windows)
    assert tw.explain(query).to_dict()["joins"][0]["inputs"]["A"]["late"] == 6  # the seventh has no key
    kept = rocks.read.parquet(str(tmp_path / "late" / "A"))
    assert kept.dtypes == [("k", "bigint"), ("v", "bigint"), ("ts", "timestamp")]
    assert Counter(row["v"] for row in kept.collect()) == Counter(late["v"].to_pylist()[1:])


@pytest.mark.thorough
def test_a_static_table_and_a_restart(rocks: SparkSession, tmp_path: Path) -> None:
    batches = made("AB", 4, 40)
    table = made("T", 1, 12, seed=5)["T"][0]
    for part, folder in ((0, "first"), (2, "second")):
        write({name: tables[part : part + 2] for name, tables in batches.items()}, tmp_path / folder)
    on, windows = "A.k = B.k AND B.l = T.l AND A.v > T.v", {"A": 8, "B": 8, "T": None}

    def joined(cells: int, condition: str = on) -> DataFrame:
        return tw.join(
            {"A": stream(rocks, tmp_path / "in", "A"), "B": stream(rocks, tmp_path / "in", "B"),
             "T": rocks.createDataFrame(table)},
            on=condition,
            windows="8 seconds",
            event_time="ts",
            delay="4 seconds",
            select=["A.v", "B.v", "T.v"],
            cells=cells,
        )  # fmt: skip

    write({name: tables[:2] for name, tables in batches.items()}, tmp_path / "in")
    run(joined(2), tmp_path)
    write(batches, tmp_path / "in")
    with pytest.raises(Exception, match="the same cells="):
        run(joined(3), tmp_path)
    for condition in (f"{on} AND A.v < 990", on.replace("A.v > T.v", "A.v % 2 < T.v")):
        with pytest.raises(Exception, match=r"conditions were .* and would be .*on="):
            run(joined(2, condition), tmp_path)
    query = run(joined(2), tmp_path)
    rows = rocks.read.parquet(str(tmp_path / "out")).collect()
    expected = answer(batches | {"T": [table]}, on, windows)
    assert expected
    assert given(rows, "ABT") == expected
    about = tw.explain(query).to_dict()["joins"][0]
    assert about["results"] == len(rows)  # also the results of the first run
    assert about["inputs"]["T"]["rows"] == 12


@pytest.mark.parametrize(
    ("on", "cells"),
    [
        ("A.k = B.k AND B.l = C.l AND C.m = A.m", 4),
        ("A.k = B.k AND A.l = C.l AND A.m = D.m", 6),
        ("A.k = B.k AND B.k = C.k AND C.k = D.k", 3),
        ("A.k = B.k AND A.l = B.l AND B.m = C.m", 1),
    ],
)
def test_batch_jobs(rocks: SparkSession, on: str, cells: int) -> None:
    names = [name for name in "ABCD" if f"{name}." in on]
    batches = made(names, 1, 60, seed=cells)
    windows: dict[str, int | None] = dict.fromkeys(names, 5) | {"C": None}
    joined = tw.join(
        {name: rocks.createDataFrame(tables[0]) for name, tables in batches.items()},
        on=on,
        windows={name: None if seconds is None else f"{seconds} seconds" for name, seconds in windows.items()},
        event_time={name: "ts" for name in names if name != "C"},
        cells=cells,
    )
    expected = answer(batches, on, windows)
    assert expected
    assert given(joined.collect(), names) == expected
    assert tw.explain(joined).to_dict()["joins"][0]["results"] == expected.total()


@pytest.mark.thorough
def test_windows_by_count_wait_for_the_watermark(rocks: SparkSession, tmp_path: Path) -> None:
    batches = made("AB", 3, 30)
    write(batches, tmp_path)
    options: dict[str, Any] = {
        "on": "A.k = B.k",
        "windows": {"A": "2 rows", "B": "6 seconds"},
        "event_time": "ts",
        "select": ["A.v", "B.v"],
        "cells": 2,
    }
    streams = {name: stream(rocks, tmp_path, name) for name in "AB"}
    query = run(tw.join(streams, **options, delay="4 seconds"), tmp_path)
    rows = rocks.read.parquet(str(tmp_path / "out")).collect()
    watermark = query.recentProgress[-1].eventTime["watermark"]
    passed = {name: rocks.read.parquet(str(tmp_path / name)).where(f"ts < timestamp'{watermark}'") for name in "AB"}
    expected = tw.join(passed, **options).collect()
    assert expected
    assert given(rows, "AB") == given(expected, "AB")


@pytest.mark.thorough
def test_keys_of_all_types_match_as_in_spark(rocks: SparkSession) -> None:
    left = rocks.sql(
        "SELECT * FROM VALUES (1, double('NaN'), 'a', DATE'2020-01-01', X'01', 1.5BD, true), "
        "(2, double('-0.0'), 'b', NULL, X'02', 2.5BD, false) "
        "AS t(i, d, s, day, bin, dec, flag)"
    ).selectExpr("*", "cast(i as smallint) as small", "timestamp_micros(i) as ts")
    right = left.withColumn("d", left["d"] + 0.0).withColumn("small", left["i"])
    joined = left
    for key, matches in (("d", 2), ("s", 2), ("day", 1), ("bin", 2), ("dec", 2), ("flag", 2), ("small", 2), ("ts", 2)):
        joined = tw.join({"L": left, "R": right}, on=f"L.{key} = R.{key}", windows="1 day", event_time="ts", cells=2)
        assert joined.count() == matches, key
    assert dict(joined.dtypes)["L_small"] == "smallint"
    assert {row["L_day"] for row in joined.collect()} == {row["day"] for row in left.collect()}


def test_names_and_columns_of_the_result(rocks: SparkSession) -> None:
    left = rocks.sql("SELECT 1 AS Id, 'x' AS `a b`, timestamp_micros(5) AS ts, 9 AS unused")
    right = rocks.sql("SELECT 1L AS id, array(1, 2) AS list, timestamp_micros(7) AS ts")
    joined = tw.join(
        {"L": left, "R": right},
        on="L.ID = R.id AND R.ts >= L.ts + INTERVAL 2 MICROSECONDS",
        windows="1 second",
        event_time="ts",
        select=["L.`a b` AS text", "R.*", "L.id"],
    )
    assert joined.dtypes == [
        ("text", "string"),
        ("R_id", "bigint"),
        ("R_list", "array<int>"),
        ("R_ts", "timestamp"),
        ("L_Id", "int"),
        ("event_time", "timestamp"),
    ]
    assert [
        tuple(row) for row in joined.selectExpr("text", "R_id", "R_list", "unix_micros(R_ts)", "L_Id").collect()
    ] == [("x", 1, [1, 2], 7, 1)]
    about = tw.explain(joined).to_dict()["joins"][0]
    assert about["inputs"]["L"]["columns"] == ["Id", "a b", "ts"]
    assert json.dumps(about)


def column(name: str) -> Callable[[SparkSession], Column]:
    """A Column of Spark, which needs a session."""

    def made_in(_spark: SparkSession) -> Column:
        from pyspark.sql import functions as f

        return f.col(name)

    return made_in


GOOD: dict[str, Any] = {"on": "a.k = b.k", "windows": "1 minute", "event_time": "ts"}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"on": "a.k = c.k"}, "'c.k' is of no stream in the join.* There are: a, b"),
        ({"on": "a.key = b.k"}, "a has no column 'key'.*It has: k, s, ts, n, list"),
        ({"on": "k = b.k"}, "of which stream is 'k'"),
        ({"on": "a.k = a.n"}, "a self-join needs a name for each use"),
        ({"on": "a.k = b.s"}, "a.k is bigint, b.s is string. Cast one"),
        ({"on": "a.k < b.k"}, "no equality connects a and b. 'a.k < b.k' is no equality of a value of one input"),
        ({"on": "a.k = b.k AND"}, "does not parse"),
        ({"on": "a.k = b.k AND a.s < b.n"}, r"'a.s < b.n' compares text with a whole number; say how: try_cast\(a.s"),
        ({"on": "a.k = b.k AND a.ts - b.ts < 5"}, "Spark refuses 'a.ts - b.ts < 5' in on=: .*INTERVAL"),
        ({"on": "a.k = b.k AND a.n + b.n"}, "Spark refuses 'a.n .* b.n' in on="),
        ({"on": "a.k = b.k AND rand() < a.n - b.n"}, "has another answer each time"),
        ({"on": "a.k = b.k AND a.ts < b.ts + (now() - a.ts)"}, "asks for the present time"),
        ({"on": "a.k = b.k AND a.n = (SELECT 1)"}, "on= has a subquery, '.*'; give its result as an input"),
        ({"on": "array(a.k) = b.list"}, "the key a.`array.k.` is array<bigint>, and keys are single values"),
        ({"on": "a.k = b.k AND a.s > 5 + 'x' || a.nope"}, "a has no column 'nope'"),
        ({"on": "a.k = b.k AND a.s + DATE'2020-01-01' = 5"}, "Spark refuses .* in on="),
        ({"on": "a.k = b.k AND a.x.y = b.k"}, "is a part of a column"),
        ({"windows": None}, "what is the window of a"),
        ({"windows": {"a": "1 minute"}}, "what is the window of b"),
        ({"windows": {"a": "1 minute", "c": "1 minute"}}, "windows names 'c'"),
        ({"windows": "1 fortnight"}, "the window of a is '1 fortnight'; write it like '10 minutes'"),
        ({"event_time": {"a": "ts"}}, "what is the event time of b"),
        ({"event_time": "time"}, "the event time of a is 'time', which it does not have"),
        ({"event_time": "k"}, "the event time a.k is bigint; make it a timestamp"),
        ({"select": "a.k"}, r"write select=\['a.k'\]"),
        ({"select": ["a.k + 1"]}, "is no column"),
        ({"select": ["a.k AS x", "b.k AS x"]}, "would be called 'x'"),
        ({"output": "complete"}, "'append' or 'changelog'"),
        ({"planner": "best"}, "there is no planner 'best'"),
        ({"policy": "best"}, "there is no policy 'best'"),
        ({"cells": 0}, "cells is a whole number from 1 to 4096, not 0"),
        ({"cells": 2.5}, "cells is a whole number from 1 to 4096, not 2.5"),
        ({"cells": True}, "cells is a whole number from 1 to 4096, not True"),
        ({"cells": 10**6}, "cells is a whole number from 1 to 4096, not 1000000"),
        ({"output": "changelog", "select": ["a.n AS Change"]}, "a changelog has a column 'change' of its own"),
        ({"on": None}, "on= is a condition as text, not None; write it like"),
        ({"on": column("k")}, "on= is a condition as text, not a Column of Spark; write it like"),
        ({"event_time": ["ts"]}, "event_time is the name of a column, or names by stream, not .'ts'."),
        ({"windows": "2.7 rows"}, "write a whole number of rows, like '100 rows'"),
        ({"on": "a.k = b.k OR a.n = b.n"}, "'a.k = b.k OR a.n = b.n' is no equality of a value of one input and"),
        ({"delay": "-1 minute"}, "delay is '-1 minute'; it cannot be less than 0"),
        ({"late": "drop"}, "late is 'count', or a folder for late rows; for a folder of that name write './drop'"),
        ({"rates": {"c": 1}}, "rates names 'c'"),
        ({"rates": {"a": 0}}, "the rate of a is a number above 0"),
    ],
)
def test_errors_say_what_to_write(spark: SparkSession, changed: dict[str, Any], message: str) -> None:
    frame = spark.sql("SELECT 1L AS k, 's' AS s, current_timestamp() AS ts, 2L AS n, array(1L) AS list")
    changed = {name: value(spark) if callable(value) else value for name, value in changed.items()}
    with pytest.raises((ValueError, TypeError), match=message):
        tw.join({"a": frame, "b": frame}, **GOOD | changed)


def test_errors_of_streams_say_what_to_write(spark: SparkSession) -> None:
    table = spark.sql("SELECT 1L AS value, current_timestamp() AS timestamp, current_timestamp() AS other")
    rate = spark.readStream.format("rate").load()
    good: dict[str, Any] = {"on": "a.value = b.value", "event_time": "timestamp"}
    with pytest.raises(
        ValueError, match=r"write tw\.configure\(spark\).*spark\.conf\.set\('.*providerClass', '.*Rocks"
    ):
        tw.join({"a": rate, "b": rate}, windows="1 minute", **good)
    with pytest.raises(ValueError, match="b is static in a streaming query"):
        tw.join({"a": rate, "b": table}, windows={"a": "1 minute", "b": "1 minute"}, **good)
    marked = rate.selectExpr("*", "timestamp AS other").withWatermark("other", "1 minute")
    with pytest.raises(ValueError, match="a has a watermark on 'other'"):
        tw.join({"a": marked, "b": rate}, windows="1 minute", **good)
    with pytest.raises(ValueError, match="two or more DataFrames"):
        tw.join({"a": rate}, windows="1 minute", **good)
    with pytest.raises(TypeError, match=r"tw\.join takes DataFrames by name, not a list"):
        tw.join([rate, rate], windows="1 minute", **good)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"no tw\.where or tw\.join"):
        tw.explain(table)


@pytest.mark.thorough
def test_columns_with_any_names(rocks: SparkSession, tmp_path: Path) -> None:
    """As in the logs of Zeek; and with a backtick, a dot in the event time, and other cases than the columns have."""
    names = {"k": "id.orig_h", "l": "a`b", "m": "select", "v": "v", "ts": "conn.ts"}
    batches = made("AB", 2, 30)
    renamed = {
        name: [table.rename_columns([names[column] for column in table.column_names]) for table in tables]
        for name, tables in batches.items()
    }
    write(renamed, tmp_path)
    joined = tw.join(
        {name: stream(rocks, tmp_path, name) for name in "AB"},
        on="a.`id.orig_h` = b.`ID.orig_h` AND A.`a``b` < B.`a``b` AND B.`id.orig_h` > 0 "
        "AND A.`select` % 2 = B.`select` % 2",
        windows="8 seconds",
        event_time="CONN.ts",
        delay="4 seconds",
        cells=2,
    )
    assert joined.columns[:3] == ["A_id.orig_h", "A_a`b", "A_select"]
    run(joined, tmp_path)
    rows = rocks.read.parquet(str(tmp_path / "out")).collect()
    on = "A.k = B.k AND A.l < B.l AND B.k > 0 AND A.m % 2 = B.m % 2"
    expected = answer(batches, on, dict.fromkeys("AB", 8))
    assert expected
    assert given(rows, "AB") == expected


@pytest.mark.thorough
def test_all_of_sql_between_streams_and_expressions_as_keys(rocks: SparkSession, tmp_path: Path) -> None:
    batches = made("ABC", 2, 40)
    write(batches, tmp_path)
    on = (
        "A.k + 1 = B.k AND upper(B.l) = C.l AND A.m % 2 = (B.m + 1) % 2 AND A.v / 2 < C.v + 100.5 "
        "AND coalesce(A.l, 'x') || 'a' LIKE '%a' AND CASE WHEN A.v > C.v THEN B.v > 10 ELSE greatest(A.m, C.m) > 0 END"
    )
    joined = tw.join(
        {name: stream(rocks, tmp_path, name) for name in "ABC"},
        on=on,
        windows="8 seconds",
        event_time="ts",
        delay="4 seconds",
        cells=2,
        select=["A.v", "B.v", "C.v"],
    )
    run(joined, tmp_path)
    expected = answer(batches, on, dict.fromkeys("ABC", 8))
    assert expected
    assert given(rocks.read.parquet(str(tmp_path / "out")).collect(), "ABC") == expected


def pairs_of(shape: str, names: str) -> list[tuple[str, str]]:
    """The inputs that have a key in common."""
    linear = list(pairwise(names))
    return {
        "linear": linear,
        "common": linear,
        "star": [(names[0], name) for name in names[1:]],
        "cyclic": [*linear, *([(names[-1], names[0])] if len(names) > 2 else [])],
        "complete": list(combinations(names, 2)),
    }[shape]


def keys(random: np.random.Generator, rows: int, kind: str, domain: int) -> pa.Array:
    """Keys of a type, some of them NULL."""
    numbers, mask = random.integers(0, domain, rows), random.random(rows) < 0.05
    if kind == "string":
        return pa.array(numbers.astype(str).astype(object), pa.string(), mask=mask)
    if kind == "double":
        pool = np.array([np.nan, 0.0, -0.0, *np.arange(1.5, domain)])
        return pa.array(pool[numbers % pool.size], mask=mask, from_pandas=False)
    return pa.array(numbers, pa.int64(), mask=mask).cast(pa.int32() if kind == "int" else pa.int64())


def check_any_query(spark: SparkSession, folder: Path, seed: int) -> None:
    """A random graph, windows, rows, micro-batches, cells and policy: results are the results of SQL."""
    random = np.random.default_rng(seed)
    names, jitter = "ABCDEF"[: random.integers(2, 7)], int(random.integers(0, 8 * SECOND))
    shape = str(random.choice(["linear", "star", "cyclic", "complete", "common"]))
    pairs = pairs_of(shape, names)
    columns = {pair: "k0" if shape == "common" else f"k{number}" for number, pair in enumerate(pairs)}
    kinds = {column: str(random.choice(["long", "int", "string", "double"])) for column in columns.values()}
    windows = {name: int(random.integers(3, 25)) for name in names}
    domain = max(2, round((35.0 ** len(names) / 200) ** (1 / len(pairs))))  # for some 200 results, if windows are long
    batches: dict[str, list[pa.Table]] = {name: [] for name in names}
    values = count()
    for number, name in product(range(int(random.integers(2, 5))), names):
        rows = int(random.integers(0, 20))
        own = sorted({column for pair, column in columns.items() if name in pair})
        times = START + number * BATCH_SECONDS * SECOND + random.integers(0, BATCH_SECONDS * SECOND + jitter, rows)
        table = {column: keys(random, rows, kinds[column], domain) for column in own}
        table |= {"v": pa.array([next(values) // 2 for _ in range(rows)], pa.int64())}  # each twice
        batches[name].append(pa.table(table | {"ts": pa.array(times, pa.timestamp("us", "UTC"))}))
    write(batches, folder)
    on = " AND ".join(f"{left}.{column} = {right}.{column}" for (left, right), column in columns.items())
    output = str(random.choice(["append", "changelog"]))
    options: dict[str, Any] = {
        "cells": int(random.integers(1, 9)),
        "output": output,
        "policy": str(random.choice([kind.name for kind in POLICIES])),
        "planner": str(random.choice([kind.name for kind in PLANNERS])),
        "drift": str(random.choice([kind.name for kind in DETECTORS])),
    }
    joined = tw.join(
        {name: stream(spark, folder, name, int(random.integers(1, 4))) for name in names},
        on=on,
        windows={name: f"{seconds} seconds" for name, seconds in windows.items()},
        event_time="ts",
        delay=f"{jitter + SECOND} microseconds",
        select=[f"{name}.v" for name in names],
        **options,
    )
    about = f"seed {seed}: {shape} of {len(names)}, {options}"
    query = run(joined, folder)
    found: Counter[tuple[Any, ...]] = Counter()
    for row in spark.read.parquet(str(folder / "out")).collect():
        found[tuple(row[f"{name}_v"] for name in names)] += row["change"] if output == "changelog" else 1
    moment = datetime.fromisoformat(query.recentProgress[-1].eventTime["watermark"])
    current_at = round(moment.timestamp() * SECOND) or START - 100 * SECOND if output == "changelog" else None
    assert +found == answer(batches, on, windows, current_at=current_at), about
    assert min(found.values(), default=0) >= 0, about


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [1, 2])
def test_any_query(rocks: SparkSession, tmp_path: Path, seed: int) -> None:
    check_any_query(rocks, tmp_path, seed)


@pytest.mark.long
def test_any_query_for_a_while(rocks: SparkSession, tmp_path: Path) -> None:
    """Other queries each time; a query that fails names its seed."""
    begun, seed = time.monotonic(), time.time_ns() // SECOND
    while time.monotonic() < begun + LONG_SECONDS:
        seed += 1
        check_any_query(rocks, tmp_path / str(seed), seed)


@pytest.mark.thorough
def test_structs_with_any_names_of_fields(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(1, 0)], "k int, t int").selectExpr(
        "k", "timestamp_seconds(t) AS ts", "named_struct('a b', k, 'c:d', 'x') AS `odd name`"
    )
    joined = tw.join({"l": rows, "r": rows}, "l.k = r.k", "1 minute", "ts", select=["l.`odd name` AS s"])
    assert [row["s"].asDict() for row in joined.collect()] == [{"a b": 1, "c:d": "x"}]
