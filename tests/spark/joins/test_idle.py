"""Streams that send nothing for a while."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.spark.joins.harness import BATCH_SECONDS, SECOND, made, run, stream, write

import thalweg as tw
from thalweg.spark.joins.idle import IdleRule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RULE = IdleRule(10_000, {"A": 0, "B": SECOND})


def test_an_idle_stream_holds_the_watermark_for_a_while() -> None:
    times = RULE.after({}, {"A": 100 * SECOND, "B": 50 * SECOND}, 1_000, "run")
    times = RULE.after(times, {"A": 110 * SECOND}, 11_000, "run")
    assert RULE.watermark(times) == 49_000
    times = RULE.after(times, {"A": 120 * SECOND}, 11_001, "run")
    assert RULE.watermark(times) == 120_000
    times = RULE.after(times, {"B": 60 * SECOND}, 12_000, "run")  # B is back
    assert RULE.watermark(times) == 59_000


def test_a_stream_that_never_sent_anything_is_idle_after_a_while_too() -> None:
    times = RULE.after({}, {"A": 100 * SECOND}, 1_000, "run")
    assert RULE.watermark(times) == 0
    times = RULE.after(times, {"A": 101 * SECOND}, 11_001, "run")
    assert RULE.watermark(times) == 101_000


def test_time_in_which_the_query_does_not_run_does_not_count() -> None:
    times = RULE.after({}, {"A": 100 * SECOND, "B": 50 * SECOND}, 1_000, "first")
    times = RULE.after(times, {"A": 100 * SECOND}, 900_000, "second")
    assert RULE.watermark(times) == 49_000
    times = RULE.after(times, {"A": 100 * SECOND}, 910_001, "second")
    assert RULE.idle_streams(times) == ["B"]


@given(st.lists(st.tuples(st.sampled_from("AB"), st.integers(0, 100), st.integers(0, 30_000))))
def test_the_watermark_is_that_of_some_stream_which_is_not_idle(rows: list[tuple[str, int, int]]) -> None:
    times, now = RULE.at_start({}, 0, "run"), 0
    for name, latest, wait in rows:
        now += wait
        times = RULE.after(times, {name: latest * SECOND}, now, "run")
        active = set(times) - set(RULE.idle_streams(times))
        assert name in active
        of_streams = {each: times[each].latest - RULE.delays[each] for each in active}
        assert RULE.watermark(times) == max(min(of_streams.values()) // 1000, 0)


@pytest.mark.thorough
def test_rows_expire_though_a_stream_is_idle(rocks: SparkSession, tmp_path: Path) -> None:
    """B sends rows in the first micro-batch only, and some of the same time in the last: these are late."""
    batches = made("AB", 5, 30)
    batches["B"] = [batches["B"][0], *[pa.Table.from_batches([], batches["B"][0].schema)] * 3, batches["B"][0]]
    write(batches, tmp_path)
    counts = {}
    for idle in (None, "0 seconds"):
        joined = tw.join(
            {name: stream(rocks, tmp_path, name) for name in "AB"},
            on="A.k = B.k",
            windows=f"{BATCH_SECONDS} seconds",
            event_time="ts",
            delay="4 seconds",
            idle=idle,
            cells=2,
            select=["A.v", "B.v"],
        )
        query = run(joined, tmp_path / str(idle))
        about = tw.explain(query).to_dict()["joins"][0]
        counts[idle] = about["inputs"]["A"]["rows_in_state"], about["inputs"]["B"]["late"]
    rows = sum(table["k"].is_valid().to_numpy().sum() for table in batches["A"])
    keys = int(batches["B"][0]["k"].is_valid().to_numpy().sum())
    assert counts[None][0] == rows
    assert counts[None][1] < keys
    assert counts["0 seconds"][0] < rows / 2
    assert counts["0 seconds"][1] == keys
