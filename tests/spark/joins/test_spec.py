"""Runs of a join that share a folder: their worker processes, and the reports that they leave."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from thalweg.mjoin import Input, JoinQuery, TimeWindow
from thalweg.mjoin.shares import Shares
from thalweg.spark.joins.layout import Layout
from thalweg.spark.joins.plan import JoinPlan
from thalweg.spark.joins.spec import KEPT_RUNS, JoinSpec, forget_old_reports, read_reports

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.int64())])


def layout_of(window: int) -> Layout:
    query = JoinQuery(
        tuple(Input(name, SCHEMA, "t", TimeWindow(window)) for name in "AB"),
        (frozenset([("A", "k"), ("B", "k")]),),
        select=(("A", "t", "a"), ("B", "t", "b")),
    )
    return Layout(query, Shares((2,), dict.fromkeys("AB", frozenset([0]))))


@pytest.fixture
def plan(tmp_path: Path) -> JoinPlan:
    return JoinPlan("first", layout_of(100), str(tmp_path))


def test_a_join_that_starts_again_has_the_same_worker_processes(plan: JoinPlan, tmp_path: Path) -> None:
    assert replace(plan, key="second").workers == plan.workers
    assert replace(plan, folder=str(tmp_path / "other")).workers != plan.workers
    assert replace(plan, layout=layout_of(200)).workers != plan.workers


def test_the_reports_of_old_runs_are_removed(plan: JoinPlan, tmp_path: Path) -> None:
    other = replace(plan, key="other", layout=layout_of(200))
    runs = [replace(plan, key=f"run{number}") for number in range(KEPT_RUNS + 2)]
    for moment, run in enumerate([other, *runs]):
        for cell in range(2):
            JoinSpec(run, {}).report(f"cell-{cell}", {"cell": cell})
        for file in tmp_path.glob(f"{run.key}-*"):
            os.utime(file, (moment, moment))
    forget_old_reports(plan)
    assert [len(read_reports(run.folder, run.key)) for run in [other, *runs]] == [2, 0, 0, *[2] * KEPT_RUNS]
