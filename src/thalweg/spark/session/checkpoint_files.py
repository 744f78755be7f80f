"""How Spark writes the checkpoint of a session to a disk of this machine.

Spark writes each file of a checkpoint under another name, and renames it. By default it asks Hadoop's `FileContext` to
rename, which starts the program `readlink` eight times for each file where Hadoop's native library is missing, as
it is in Spark's Python package. Hadoop's `FileSystem` renames without any. On a local disk, both look whether the file
is there, and then rename (decision 0190). That is so for offsets and commits; logs of file sources follow the
settings of the user's session.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from thalweg.spark.jvm import java_class, paths_are_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING = "spark.sql.streaming.checkpointFileManagerClass"
BY_FILE_SYSTEM = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


@contextmanager
def renamed_by_file_system(spark: SparkSession) -> Iterator[None]:
    """Let a streaming query that is started within the context rename so, unless the user has chosen another way."""
    if spark.conf.get(SETTING, None) is not None or not paths_are_local(spark) or not _is_known(spark):
        yield
        return
    spark.conf.set(SETTING, BY_FILE_SYSTEM)
    try:
        yield
    finally:
        spark.conf.unset(SETTING)


def _is_known(spark: SparkSession) -> bool:
    """Whether this version of Spark has the class; no setting of Spark tells."""
    from py4j.java_gateway import JavaClass

    return isinstance(java_class(spark.sparkContext._jvm, BY_FILE_SYSTEM), JavaClass)  # noqa: SLF001 - no other way
