"""How Spark writes the checkpoint of a session to a disk of this machine.

Spark writes each file of a checkpoint under another name, and renames it. By default it asks Hadoop's `FileContext` to
rename, which starts the program `readlink` eight times for each file where Hadoop's native library is missing, as
it is in Spark's Python package. Hadoop's `FileSystem` renames without any. On a local disk, both look whether the file
is there, and then rename (decision 0190). Logs of file sources are made when the query has started, by the settings of
the user's session: so the setting stays until the sources are there (decision 0220).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from thalweg.spark.jvm import java_class, paths_are_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SETTING = "spark.sql.streaming.checkpointFileManagerClass"
STREAMING = "org.apache.spark.sql.execution.streaming"
CLASSES = (  # the first one since Spark 4.1
    f"{STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager",
    f"{STREAMING}.FileSystemBasedCheckpointFileManager",
)


MILLISECONDS = 10_000  # that a query has to make its sources: with other sources than files nothing is lost by less


@contextmanager
def renamed_by_file_system(spark: SparkSession) -> Iterator[None]:
    """Let a streaming query that is started within the context rename so, unless the user has chosen another way."""
    found = _known_class(spark) if spark.conf.get(SETTING, None) is None and paths_are_local(spark) else None
    if found is None:
        yield
        return
    spark.conf.set(SETTING, found)
    try:
        yield
    finally:
        spark.conf.unset(SETTING)


def await_sources(query: StreamingQuery) -> None:
    """Wait until a streaming query that was started has made its sources, or has failed to."""
    with contextlib.suppress(Exception):  # the query itself tells why it failed
        query._jsq.streamingQuery().awaitInitialization(MILLISECONDS)  # noqa: SLF001 - Python has no other way


def _known_class(spark: SparkSession) -> str | None:
    """The class of this version of Spark; None if there is none by a known name."""
    from py4j.java_gateway import JavaClass

    jvm = spark.sparkContext._jvm  # noqa: SLF001 - classes have no other way from Python
    return next((name for name in CLASSES if isinstance(java_class(jvm, name), JavaClass)), None)
