import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from thalweg.spark import doctor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("check", doctor.CHECKS)
def test_nothing_is_wrong_where_tests_run(check: Callable[[], doctor.Finding]) -> None:
    assert check().fix == ""


def test_a_missing_java_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert doctor.java() == doctor.Finding(
        "Java", f"there is no java in JAVA_HOME ({tmp_path})", "install a JDK 17 or later, or set JAVA_HOME"
    )


def test_an_old_java_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("""#!/bin/sh\necho 'openjdk version "11.0.2" 2019-01-15' >&2\n""")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert doctor.java().text == f"{java} is version 11"


def test_a_folder_that_cannot_be_written_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "missing"))
    assert "SPARK_LOCAL_DIRS" in doctor.disk().fix


def test_a_container_with_little_memory_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(doctor, "CONTAINER_LIMITS", (limit, tmp_path / "missing"))
    limit.write_text("max\n")
    assert doctor.memory().fix == ""
    limit.write_text(f"{1 << 30}\n")
    assert doctor.memory().text.startswith("1.0 GiB in this container; ")
    assert "spark.driver.memory" in doctor.memory().fix


def test_spark_is_not_started_where_something_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    parts = [finding.part for finding in doctor.examine()]
    assert parts == ["Java", "Spark", "Arrow", "memory", "disk", "ports"]


def test_workers_and_state_store_are_tried(spark: "SparkSession") -> None:
    workers, store = (check(spark) for check in doctor.CHECKS_ON_SPARK)
    assert workers.text.startswith(f"Python {sys.version.split()[0]}, pyarrow ")
    assert not workers.fix
    assert not store.fix
