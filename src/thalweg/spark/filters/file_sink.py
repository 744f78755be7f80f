"""Writes the kept rows of a stream to one folder of files, each row exactly once, with no column but the user's.

A micro-batch is written aside first, and then its files are moved in, under names that begin with its number. If it
comes again after a failure, its files are replaced. The folder belongs to one query, by a token in its checkpoint.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thalweg.spark.jvm import java_class, paths_are_local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ASIDE = "_thalweg"  # a folder whose name begins like this is invisible to Spark's readers
OWNER = "owner.json"


class FileSink:
    """A folder of files that one query writes."""

    def __init__(
        self, spark: SparkSession, path: str, checkpoint: str, file_format: str, options: Mapping[str, str]
    ) -> None:
        # Hadoop's file systems have no other way from Python.
        self._new_path = java_class(spark.sparkContext._jvm, "org.apache.hadoop.fs.Path")  # noqa: SLF001
        self._settings = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
        # Where Hadoop's native library is missing, Hadoop starts a process for each file and folder that it makes.
        self._is_local = paths_are_local(spark)
        self._path = path.rstrip("/")
        self._checkpoint = checkpoint
        self._format = file_format
        self._options = dict(options)

    def claim(self) -> None:
        """Make sure that no other query writes to the folder."""
        token = self._read(f"{self._checkpoint}/thalweg/{OWNER}").get("token")
        if token is None:
            token = uuid.uuid4().hex
            self._create(f"{self._checkpoint}/thalweg/{OWNER}", {"token": token})
        owned = f"{self._path}/{ASIDE}/{OWNER}"
        owner = self._read(owned)
        if not owner:
            self._create(owned, {"token": token, "checkpoint": self._checkpoint})
            owner = self._read(owned)  # of two queries that came at once, either was first
        if owner.get("token") != token:
            raise ValueError(
                f"{self._path} is written by another query, with the checkpoint {owner.get('checkpoint')}: write to "
                f"another folder, or remove {self._path}/{ASIDE} if that query will not run again"
            )

    def write(self, kept: DataFrame, number: int) -> None:
        """Write the rows of a micro-batch, in place of the rows that an earlier try has written."""
        aside = f"{self._path}/{ASIDE}/batch-{number}"
        kept.write.format(self._format).options(**self._options).mode("overwrite").save(aside)
        system, target = self._system(self._path)
        prefix = f"batch-{number:09d}-"
        for file in system.listStatus(target):
            if file.getPath().getName().startswith(prefix):
                system.delete(file.getPath(), True)  # noqa: FBT003 - Java takes it by position
        for file in system.listStatus(self._new_path(aside)):
            name = file.getPath().getName()
            if not name.startswith(("_", ".")):
                moved = self._new_path(target, f"{prefix}{name}")
                if not system.rename(file.getPath(), moved):
                    raise OSError(f"{file.getPath()} could not be moved to {moved}")
        system.delete(self._new_path(aside), True)  # noqa: FBT003

    def _read(self, file: str) -> dict[str, Any]:
        """A small JSON file; nothing if it is not there."""
        content = self._content(file)
        found: dict[str, Any] = json.loads(content) if content is not None else {}
        return found

    def _content(self, file: str) -> bytes | None:
        if self._is_python_path(file):
            return Path(file).read_bytes() if Path(file).exists() else None
        system, path = self._system(file)
        if not system.exists(path):
            return None
        stream = system.open(path)
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def _create(self, file: str, content: Mapping[str, str]) -> None:
        """Write a small JSON file, unless somebody has written it meanwhile."""
        from py4j.protocol import Py4JJavaError

        if self._is_python_path(file):
            _create_locally(Path(file), content)
            return
        system, path = self._system(file)
        try:
            stream = system.create(path, False)  # noqa: FBT003 - overwrite nothing
        except Py4JJavaError as error:
            if "FileAlreadyExists" in str(error):
                return
            raise OSError(f"{file} cannot be written: {error.java_exception.getMessage()}") from None
        try:
            stream.write(bytearray(json.dumps(dict(content)).encode()))
        finally:
            stream.close()

    def _is_python_path(self, file: str) -> bool:
        return self._is_local and "://" not in file

    def _system(self, place: str) -> tuple[Any, Any]:
        path = self._new_path(place)
        return path.getFileSystem(self._settings), path


def _create_locally(file: Path, content: Mapping[str, str]) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x") as stream:
            json.dump(dict(content), stream)
    except OSError as error:
        if not (isinstance(error, FileExistsError) and file.exists()):
            raise OSError(f"{file} cannot be written: {error}") from None
