"""How Spark writes the checkpoint of a streaming query to a disk of this machine.

Spark writes each file of a checkpoint under another name, and renames it. By default it asks Hadoop's `FileContext` to
rename, which starts the program `readlink` eight times for each file where Hadoop's native library is missing, as
it is in Spark's Python package. Hadoop's `FileSystem` renames without any. On a local disk, both look whether the file
is there, and then rename (decision 0190). `tw.configure` sets it for all queries that start from then on (decision
0270), and a session for its own query: logs of file sources are made when the query has started, by the settings of
the user's session, so the setting stays until the sources are there (decision 0220).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from thalweg.spark.jvm import java_class, paths_are_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SETTING = "spark.sql.streaming.checkpointFileManagerClass"
BY_FILE_SYSTEM = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
MILLISECONDS = 10_000  # that a query has to make its sources: with other sources than files nothing is lost by less


@contextmanager
def renamed_by_file_system(spark: SparkSession) -> Iterator[None]:
    """Let a streaming query that is started within the context rename so, unless the user has chosen another way."""
    if not may_rename_by_file_system(spark):
        yield
        return
    spark.conf.set(SETTING, BY_FILE_SYSTEM)
    try:
        yield
    finally:
        spark.conf.unset(SETTING)


def may_rename_by_file_system(spark: SparkSession) -> bool:
    """Whether checkpoints are on a local disk by default, and the user has not chosen how their files are renamed."""
    return spark.conf.get(SETTING, None) is None and paths_are_local(spark) and _is_known(spark)


def await_sources(query: StreamingQuery) -> None:
    """Wait until a streaming query that was started has made its sources, or has failed to."""
    with suppress(Exception):  # the query itself tells why it failed
        query._jsq.streamingQuery().awaitInitialization(MILLISECONDS)  # noqa: SLF001 - Python has no other way


def _is_known(spark: SparkSession) -> bool:
    """Whether this version of Spark has the class; no setting of Spark tells."""
    from py4j.java_gateway import JavaClass

    return isinstance(java_class(spark.sparkContext._jvm, BY_FILE_SYSTEM), JavaClass)  # noqa: SLF001 - no other way
