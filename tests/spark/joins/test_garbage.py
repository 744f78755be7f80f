"""Workers of a join do not walk through all modules when they collect garbage."""

from __future__ import annotations

import gc
from unittest.mock import Mock, patch

import pytest
from pyspark import TaskContext

from thalweg.spark.joins import garbage
from thalweg.spark.joins.garbage import Work, exclude_modules


@pytest.mark.parametrize(
    ("tasks", "freezes"),
    [
        (["packs rows", "packs rows"], 1),
        (["joins", "joins", "packs rows"], 1),  # the process has cells when it packs rows
        (["packs rows", "joins", "packs rows", "joins"], 2),  # the first task that joins loads more modules
    ],
)
def test_modules_are_excluded_when_the_first_task_of_a_kind_begins(tasks: list[Work], freezes: int) -> None:
    with (
        patch.object(TaskContext, "get", return_value=Mock()),
        patch.object(garbage, "_excluded", set()),
        patch.object(gc, "collect") as collect,
        patch.object(gc, "freeze") as freeze,
    ):
        for work in tasks:
            exclude_modules(work)
    assert collect.call_count == freeze.call_count == freezes


def test_a_process_that_is_no_worker_stays_as_it_is() -> None:
    with patch.object(gc, "freeze") as freeze:
        exclude_modules("joins")
    freeze.assert_not_called()
