"""Ranges between event times make windows shorter, and no result is lost."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.spark.joins import harness

import thalweg as tw
from thalweg.spark.joins.condition import parse_on
from thalweg.spark.joins.ranges import TimeBound, needed_windows, time_bounds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECOND, DAY = 1_000_000, 86_400_000_000
TIMES = {"a": "ts", "b": "ts"}


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("b.ts BETWEEN a.ts AND a.ts + INTERVAL 10 SECONDS", {("b", "a"): 0, ("a", "b"): 10 * SECOND}),
        ("a.ts >= b.ts - INTERVAL 1 MINUTE", {("a", "b"): 60 * SECOND}),
        ("a.ts + INTERVAL 5 SECONDS < (b.ts - INTERVAL 2 SECONDS) + INTERVAL 3 SECONDS", {("b", "a"): -4 * SECOND}),
        ("INTERVAL 5 SECONDS + a.ts >= b.ts", {("a", "b"): 5 * SECOND}),
        ("b.ts < a.ts + INTERVAL 1 DAY", {("a", "b"): 2 * DAY}),
        ("a.ts = b.ts", {("a", "b"): 0, ("b", "a"): 0}),
        ("b.ts < a.ts + INTERVAL 1 MONTH", {}),
        ("(b.ts < a.ts OR b.ts > a.ts)", {}),
        ("b.other < a.ts", {}),
        ("NOT (b.ts < a.ts)", {}),
    ],
)
def test_bounds_that_a_condition_sets(text: str, bounds: dict[tuple[str, str], int]) -> None:
    condition = parse_on(f"a.k = b.k AND {text}", {"a": ["k", "ts"], "b": ["k", "ts", "other"]})
    found = time_bounds(condition, TIMES, days_vary=True)
    assert {(bound.earlier, bound.later): bound.microseconds for bound in found} == bounds


def test_days_are_exact_where_clocks_do_not_change() -> None:
    condition = parse_on("a.k = b.k AND b.ts < a.ts + INTERVAL 1 DAY", {"a": ["k", "ts"], "b": ["k", "ts"]})
    assert time_bounds(condition, TIMES, days_vary=False) == [TimeBound("a", "b", DAY)]


@settings(max_examples=60)
@given(
    windows=st.lists(st.one_of(st.none(), st.integers(1, 6)), min_size=3, max_size=3),
    bounds=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc"), st.integers(-3, 4)), max_size=4),
)
def test_needed_windows_keep_every_result_and_no_row_longer(
    windows: list[int | None], bounds: list[tuple[str, str, int]]
) -> None:
    given_windows = dict(zip("abc", windows, strict=True))
    known = [TimeBound(*bound) for bound in bounds if bound[0] != bound[1]]
    needed = needed_windows(given_windows, known)
    ages: dict[str, list[int]] = {name: [] for name in "abc"}
    for values in product(range(-14, 15), repeat=2):
        times = dict(zip("abc", (0, *values), strict=True))
        latest = max(times.values())
        in_windows = all(window is None or latest - times[name] < window for name, window in given_windows.items())
        if in_windows and all(times[bound.later] - times[bound.earlier] <= bound.microseconds for bound in known):
            for name, time in times.items():
                ages[name].append(latest - time)
    for name, window in needed.items():
        if ages[name]:
            assert max(ages[name]) == window - 1


def test_rows_leave_the_state_by_the_range(rocks: SparkSession, tmp_path: Path) -> None:
    batches = harness.made("AB", 3, 40)
    harness.write(batches, tmp_path)
    on = "A.k = B.k AND B.ts BETWEEN A.ts AND A.ts + INTERVAL 5 SECONDS"
    streams = {name: harness.stream(rocks, tmp_path, name) for name in "AB"}
    joined = tw.join(streams, on, {"A": None, "B": "1 hour"}, "ts", delay="5 seconds", select=["A.v", "B.v"])
    query = harness.run(joined, tmp_path)
    description = tw.explain(query).to_dict()["joins"][0]
    assert [each["window"] for each in description["inputs"].values()] == ["0:00:05.000001", "0:00:00.000001"]
    assert all(each["rows_in_state"] < 100 for each in description["inputs"].values())
    rows = rocks.read.parquet(str(tmp_path / "out")).collect()
    assert harness.given(rows, "AB") == harness.answer(batches, on, {"A": 10**6, "B": 3600})
