"""A small Spark for the short queries of tests, which spend most of their time on starting things."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# To optimize the code of short queries takes the JVM longer than to run it, and so does verifying the classes of Spark.
# Enough room for classes and for young objects spares collections of garbage.
JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m -Xmn400m "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
DAEMON = Path(__file__).parent / "python_daemon" / "preloaded_daemon.py"


@contextmanager
def fast_session(name: str, **more: Any) -> Iterator[SparkSession]:  # noqa: ANN401 - what Spark takes as a setting
    """A local session with more settings, which is stopped at the end."""
    from thalweg.spark.checkpoint_files import BY_FILE_SYSTEM, SETTING
    from thalweg.spark.start import QUIET, spark_session

    java_options = "spark.driver.extraJavaOptions"
    settings: dict[str, Any] = {
        java_options: f"{QUIET[java_options]} {JAVA_OPTIONS}",
        "spark.python.daemon.module": DAEMON.stem,
        "spark.sql.streaming.checkpoint.fileChecksum.enabled": False,  # twice the files for each micro-batch
        SETTING: BY_FILE_SYSTEM,  # instead of eight processes for each file of a checkpoint
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(DAEMON.parent), prepend=os.pathsep)  # where the JVM's workers look for modules
        session = spark_session(name, **settings | more)
    yield session
    session.stop()
