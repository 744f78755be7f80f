"""Workers of a join do not walk through all modules when they collect garbage."""

from __future__ import annotations

import gc
from unittest.mock import Mock, patch

import pytest
from pyspark import TaskContext

from thalweg.spark.joins.garbage import exclude_modules


@pytest.mark.parametrize(("context", "frozen", "calls"), [(Mock(), 0, 1), (Mock(), 90_000, 0), (None, 0, 0)])
def test_modules_are_excluded_once_and_in_workers_only(context: Mock | None, frozen: int, calls: int) -> None:
    with (
        patch.object(TaskContext, "get", return_value=context),
        patch.object(gc, "get_freeze_count", return_value=frozen),
        patch.object(gc, "collect") as collect,
        patch.object(gc, "freeze") as freeze,
    ):
        exclude_modules()
    assert collect.call_count == freeze.call_count == calls
