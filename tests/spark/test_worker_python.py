import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import thalweg as tw
from thalweg.spark.worker_python import WorkerPythonError, problem_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def bare_python(tmp_path: Path) -> str:
    """A Python that has no packages, as the system's has where a virtual environment is not activated."""
    path = tmp_path / "python3"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    path.chmod(0o755)
    return str(path)


def test_the_drivers_own_python_is_fine() -> None:
    assert problem_of(sys.executable) is None


def test_a_python_without_packages_is_told_with_the_variable_to_set(bare_python: str) -> None:
    problem = problem_of(bare_python)
    assert problem is not None
    assert f"Spark's workers run {bare_python}, which has no numba, numpy, pyarrow, thalweg" in problem
    assert problem.endswith(f"set the environment variable PYSPARK_PYTHON={sys.executable} before Spark starts")
    assert "\n" not in problem


def test_packages_that_were_added_to_the_context_count(bare_python: str) -> None:
    places = tuple(path for path in sys.path if path)
    assert problem_of(bare_python, places) is None


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 3", "does not start"),
        ("""echo '{"version": [3, 2], "missing": []}'""", "Python 3.2, and this program"),
    ],
)
def test_a_python_that_fails_or_has_another_version_is_told(tmp_path: Path, script: str, said: str) -> None:
    path = tmp_path / "python3"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    problem = problem_of(str(path))
    assert problem is not None
    assert said in problem


def test_a_python_that_is_not_there_is_told() -> None:
    assert "which is not there" in (problem_of("/nowhere/python3") or "")


def is_even(id: Any) -> Any:  # noqa: A002, ANN401 - the column's name
    return id % 2 == 0


ENTRIES: dict[str, Callable[[Any], object]] = {
    "where": lambda frame: tw.where(frame, "id > 3", tw.predicate(is_even, on="id", takes="numpy")),
    "join": lambda frame: tw.join({"a": frame, "b": frame}, "a.id = b.id", "1 minute", "ts"),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_entry_points_refuse_before_any_job(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch, bare_python: str, entry: str
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", bare_python)
    with pytest.raises(WorkerPythonError, match="PYSPARK_PYTHON="):
        ENTRIES[entry](spark.range(10).selectExpr("id", "timestamp_seconds(id) AS ts"))


def test_conditions_that_run_in_spark_need_no_python(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch, bare_python: str
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", bare_python)
    assert tw.where(spark.range(10), "id > 3", "id < 6", sample=False).count() == 2
