"""The versions of a table of a join that changes: files that the driver writes and cells read.

Each version of a table is a file in the folder `state=`: all rows as the join needs them. A stream of Spark lists the
files, so Spark's checkpoint says with which micro-batch a version comes, also when that micro-batch is repeated. A
version holds from the start of the micro-batch that it comes with. Cells keep the rows in their state, so a file is not
needed any more once a later version has come.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from thalweg.mjoin.pack import unpack
from thalweg.sealed import seal, short_digest, unseal
from thalweg.spark.folder import StateFolder
from thalweg.spark.joins.layout import Layout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KIND, VERSION = "version of a table", 1
SUBFOLDER = "join-tables"  # of the folder `state=`
SECOND = 1_000_000  # microseconds; the number of a version is the time at which it was read
NEEDED_SECONDS = 3600  # that a file is kept though all cells have a later version, as another query may just read it
UNCLAIMED_SECONDS = 7 * 24 * 3600  # that a file of an earlier run is kept, whose last micro-batch may be repeated
REMEDY = "call refresh() on the table, and start the query with a new checkpoint"
FILES = "path string, modificationTime timestamp, length bigint, content binary"  # as Spark lists them


@dataclass(frozen=True)
class VersionFiles:
    """Where the versions of a table of a join are; part of the join's plan, which workers know."""

    folder: str  # of all versions of all joins
    join: str  # a name that the same join has in each run
    run: str  # the key of the run
    position: int  # of the table among the inputs

    @property
    def prefix(self) -> str:
        """The beginning of the names of all versions of this run."""
        return f"{self.join}-{self.position}-{self.run}-"

    def write(self, number: int, rows: bytes) -> None:
        """Publish a version."""
        StateFolder(self.folder).write(f"{self.prefix}{number:020d}", seal(KIND, VERSION, rows))

    def read(self, name: str) -> pa.RecordBatch:
        """The rows of a version by the name of its file."""
        content = StateFolder(self.folder).read([name])
        if name not in content:
            raise FileNotFoundError(
                f"the version {name} of a table is no longer in {self.folder}, which the driver and all workers must "
                f"share; {REMEDY}"
            )
        (rows,) = unseal(KIND, VERSION, content[name], REMEDY)
        return unpack(rows)

    def retire(self, taken: str | None, now: int) -> None:
        """Delete versions that no micro-batch needs any more: `taken` is the oldest version that some cell has."""
        own, any_run = self.prefix, f"{self.join}-{self.position}-"
        old = [
            name
            for name in StateFolder(self.folder).versions()
            if (name.startswith(own) and taken and name < taken and now - number_of(name) > NEEDED_SECONDS * SECOND)
            or (
                name.startswith(any_run)
                and not name.startswith(own)
                and now - number_of(name) > UNCLAIMED_SECONDS * SECOND
            )
        ]
        StateFolder(self.folder).delete(old)

    def listed(self, spark: SparkSession) -> DataFrame:
        """A stream of the paths of versions, each with the micro-batch in which Spark first sees it."""
        place = StateFolder(self.folder).local_path("")
        pattern = re.sub(r"([\[\]{}*?\\])", r"\\\1", f"file://{place}" if place else self.folder)
        return spark.readStream.format("binaryFile").schema(FILES).load(f"{pattern}/{self.prefix}*").select("path")


def number_of(name: str) -> int:
    """The number of a version, the time at which it was read in microseconds, from the name of its file."""
    return int(name.rpartition("-")[2])


def version_files(folder: str, layout: Layout, run: str, name: str) -> VersionFiles:
    """Where the versions of a table are."""
    join = short_digest([layout.text(), *map(str, layout.query.select)])
    of_tables = StateFolder(folder).subfolder(SUBFOLDER)
    place = of_tables.local_path("")
    url = str(Path(place).absolute()) if place else of_tables.url  # Spark may have another working folder
    return VersionFiles(url, join, run, layout.query.names.index(name))
