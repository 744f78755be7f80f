"""`tw.table`: a table of a join that changes while the query runs.

The driver reads the table, again and again or when it is told to, and writes each version to a file (`table_versions`)
for every join that follows the table. This module is the driver's side only: workers do not know it.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from thalweg.keywords import checks_keywords
from thalweg.mjoin.pack import pack
from thalweg.spark.joins.table_versions import SECOND, VersionFiles, number_of
from thalweg.spark.joins.text import microseconds
from thalweg.spark.jvm import list_files_again

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    Source = DataFrame | Callable[[], DataFrame]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Follower:
    """A join that follows a table."""

    files: VersionFiles
    prepare: Callable[[DataFrame], DataFrame]  # from the table to the columns that the join needs
    columns: list[str]  # their names in the join
    oldest_taken: Callable[[], str | None]  # the oldest version that some cell of the join has


class ChangingTable:
    """A table of a join that is read anew while queries run: made by `tw.table`."""

    def __init__(self, source: Source, refresh: str | timedelta | None = None) -> None:
        self._source = source
        self.interval = None if refresh is None else microseconds(refresh, "refresh")
        if self.interval == 0:
            raise ValueError("refresh is a time above 0, such as '10 minutes'; leave it out to call refresh() yourself")
        self.failure: str | None = None  # of the last refresh
        self._lock = threading.Lock()
        self._followers: list[Follower] = []
        self._published: dict[str, tuple[int, str]] = {}  # by prefix: the last version's number, and its digest
        self.frame = self._current(source)

    def refresh(self, source: Source | None = None) -> None:
        """Read the table again, or another table from now on; if that fails, nothing has changed.

        A running query takes the new version over with its next micro-batch.
        """
        with self._lock:
            new_source = self._source if source is None else source
            frame = self._current(new_source)
            if _columns(frame) != _columns(self.frame):
                raise ValueError(
                    f"the new table has the columns {_columns(frame)}, and queries need those of before: "
                    f"{_columns(self.frame)}"
                )
            versions = [(follower, _read(frame, follower)) for follower in self._followers]
            for follower, rows in versions:
                self._publish(follower, rows)
            self._source, self.frame, self.failure = new_source, frame, None

    def follow(self, follower: Follower) -> int:
        """Publish the table for a join, now and whenever it is refreshed; gives the bytes of the first version."""
        with self._lock:
            rows = _read(self._current(self._source), follower)
            self._publish(follower, rows)
            self._followers.append(follower)
            if self.interval is not None and len(self._followers) == 1:
                threading.Thread(target=self.keep_fresh, args=(self.interval / SECOND,), daemon=True).start()
        return len(rows)

    def _publish(self, follower: Follower, rows: bytes) -> None:
        """Write a version, unless it has the same bytes as the last; delete files that nothing needs any more."""
        files, digest = follower.files, hashlib.sha256(rows).hexdigest()
        number, last_digest = self._published.get(files.prefix, (0, ""))
        if digest == last_digest:
            return
        number = max(number + 1, time.time_ns() // 1000)
        files.write(number, rows)
        files.retire(follower.oldest_taken(), number)
        self._published[files.prefix] = number, digest

    def keep_fresh(self, seconds: float) -> None:
        """Refresh the table again and again, as long as the program runs."""
        while True:
            time.sleep(seconds)
            try:
                self.refresh()
            except Exception as error:  # noqa: BLE001 - whatever it is: the table may be there the next time
                self.failure = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
                log.warning("a table of a join could not be refreshed, and stays as it is: %s", self.failure)

    @staticmethod
    def _current(source: Source) -> DataFrame:
        """The table, with its list of files as it is now."""
        frame: Any = source() if callable(source) and not hasattr(source, "isStreaming") else source
        if not hasattr(frame, "isStreaming"):
            raise TypeError(
                f"tw.table takes a static DataFrame, or a function that gives a DataFrame, not {type(frame).__name__}: "
                f"tw.table(spark.read.parquet(...), refresh='10 minutes')"
            )
        if frame.isStreaming:
            raise TypeError("tw.table takes a static DataFrame: a stream is an input of tw.join as it is")
        list_files_again(frame)
        return frame.select("*")  # type: ignore[no-any-return]  # planned anew, with the new list of files


@checks_keywords("tw.table")
def table(source: Source, refresh: str | timedelta | None = None) -> ChangingTable:
    """A table for `tw.join` that may change while the query runs.

    The query takes a new version over with its next micro-batch, and all results of that micro-batch and of later
    micro-batches have rows of it. The same holds if a micro-batch is repeated after a restart. `tw.join` needs
    `state=` for it.

    Parameters
    ----------
    source
        A static DataFrame, or a function that gives a DataFrame, which is called for every version.
    refresh
        How often the table is read again: ``"10 minutes"``. If None, it is read when `refresh()` is called on it.

    Examples
    --------
    >>> customers = table(spark.read.parquet("customers"), refresh="10 minutes")  # doctest: +SKIP
    >>> joined = join({"a": orders, "c": customers}, "a.customer = c.id", ..., state="state")  # doctest: +SKIP
    >>> customers.refresh()  # doctest: +SKIP
    """
    return ChangingTable(source, refresh)


def describe_table(table_of_join: ChangingTable, version: Mapping[str, Any] | None) -> dict[str, Any]:
    """The version that cells have, for `tw.explain`."""
    every = None if table_of_join.interval is None else str(timedelta(microseconds=table_of_join.interval))
    read_at = datetime.fromtimestamp(number_of(version["file"]) / SECOND, UTC).isoformat(" ") if version else None
    return {
        "refresh": every,
        "read_at": read_at,
        "from_batch": version["batch"] if version else None,
        "failure": table_of_join.failure,
    }


def _read(frame: DataFrame, follower: Follower) -> bytes:
    """The rows of a table as a join needs them, packed."""
    rows = follower.prepare(frame).toArrow().rename_columns(follower.columns).combine_chunks()
    return pack(rows.to_batches()[0] if rows.num_rows else pa.RecordBatch.from_pylist([], rows.schema))


def _columns(frame: DataFrame) -> str:
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in frame.schema.fields)
