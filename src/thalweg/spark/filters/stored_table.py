"""A stored table that predicates look keys up in, and that may be refreshed while queries run.

A table is identified by a token of its own, not by its name. Copies of a predicate share its table, so that a refresh
reaches all of them, in this process and, through a file with the token as its name, in the workers.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from thalweg.spark.filters.worker.stored_keys import StoredKeys
from thalweg.spark.folder import StateFolder
from thalweg.spark.jvm import list_files_again
from thalweg.tables.keys import KeySet, KeyTableError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

SUBFOLDER = "tables"  # of a state folder, for tables that were refreshed


@dataclass(frozen=True, eq=False)
class TableVersion:
    """The content of a stored table when it was last read."""

    key_columns: tuple[str, ...]
    brought_columns: tuple[str, ...]
    table: pa.Table
    keys: KeySet
    _frames: dict[tuple[Any, ...], DataFrame] = field(default_factory=dict, repr=False)

    @cached_property
    def content(self) -> tuple[str, bytes]:
        """The keys as bytes, behind their digest."""
        content = self.keys.to_bytes()
        return hashlib.sha256(content).hexdigest(), content

    def keys_frame(self, spark: SparkSession, found: str, names: Sequence[str]) -> DataFrame:
        """The keys to broadcast, under these names, and a column that says that a key was found; made once."""
        return self._frame(spark, (found, *names), lambda: self._keys_with(found, names))

    def brought_frame(self, spark: SparkSession, names: Sequence[str], brought: Sequence[str]) -> DataFrame:
        """The keys to broadcast, under these names, with the columns to bring back; made once for a session."""
        columns = [self.table[name] for name in (*self.key_columns, *self.brought_columns)]
        return self._frame(spark, ("", *names), lambda: pa.table(columns, [*names, *brought]))

    def _frame(self, spark: SparkSession, names: tuple[str, ...], make: Any) -> DataFrame:  # noqa: ANN401 - makes a table
        from pyspark.sql.functions import broadcast

        if (spark, names) not in self._frames:
            self._frames[spark, names] = broadcast(spark.createDataFrame(make()))
        return self._frames[spark, names]

    def _keys_with(self, found: str, names: Sequence[str]) -> pa.Table:
        keys = self.table.select(list(self.key_columns)).rename_columns(list(names))
        return keys.append_column(found, pa.array(np.ones(keys.num_rows, np.bool_)))


class StoredTable:
    """A table by its source: read when it is first needed, and again when it is refreshed."""

    def __init__(
        self,
        source: Any,  # noqa: ANN401 - as in `tw.lookup`
        key_columns: tuple[str, ...],
        brought_columns: tuple[str, ...],
        predicate: str,
    ) -> None:
        check_source(source, predicate)
        self.token = uuid.uuid4().hex
        self.key_columns = key_columns
        self.brought_columns = brought_columns
        self._predicate = predicate
        self._source = source
        self._lock = threading.RLock()
        self._current: TableVersion | None = None
        self._followers: dict[str, StateFolder] = {}  # folders where workers look for a refresh
        self._fixed_plans: list[str] = []  # streaming queries whose plan holds the table's columns

    @property
    def current(self) -> TableVersion:
        """The table as it was last read."""
        with self._lock:
            if self._current is None:
                self._current = self._read(self._source)
            return self._current

    def refresh(self, source: Any = None) -> None:  # noqa: ANN401 - as in `tw.lookup`
        """Read the table again, or take another; if that fails, nothing has changed."""
        with self._lock:
            if self._fixed_plans:
                raise ValueError(
                    f"predicate {self._predicate!r} brings columns into a streaming DataFrame, whose plan is fixed: "
                    f"write tw.stream(...), which plans every micro-batch anew, or stop the query and start it again"
                )
            new_source = self._source if source is None else source
            check_source(new_source, self._predicate)
            list_files_again(new_source)
            version = self._read(new_source)
            self._check_types(version)
            for folder in self._followers.values():
                folder.write(self.token, version.content[1])
            self._source, self._current = new_source, version

    def in_workers(self, folder: str) -> StoredKeys:
        """The keys as a function for workers, which look for a refresh in a folder that they share with the driver."""
        followed = StateFolder(folder).subfolder(SUBFOLDER)
        with self._lock:
            version = self.current
            if followed.url not in self._followers:
                self._followers[followed.url] = followed
                atexit.register(_remove, followed, self.token)
        return StoredKeys(version.keys, lambda: version.content, followed.url, self.token)

    def fix_in(self, key: str) -> None:
        """Note that the plan of a streaming query holds the table's columns, so that it can follow no refresh."""
        with self._lock:
            self._fixed_plans.append(key)

    def _check_types(self, version: TableVersion) -> None:
        """Refuse columns of other types than before: a running query would fail, or give rows of another schema."""
        if self._current is None:
            return
        before, after = self._current.table.schema, version.table.schema
        try:
            version.keys.check([before.field(name).type for name in self.key_columns])
        except TypeError as error:
            raise TypeError(f"predicate {self._predicate!r}: {error}") from None
        for name in self.brought_columns:
            if before.field(name).type != after.field(name).type:
                raise TypeError(
                    f"predicate {self._predicate!r}: column {name!r} of the stored table was {before.field(name).type} "
                    f"and is {after.field(name).type}: give it the type that it had, or write a new tw.lookup(...)"
                )

    def _read(self, source: Any) -> TableVersion:  # noqa: ANN401 - as above
        columns = list(dict.fromkeys((*self.key_columns, *self.brought_columns)))
        table = read_columns(source, columns, self._predicate)
        try:
            keys = KeySet(table.select(list(self.key_columns)))
        except KeyTableError as error:
            raise KeyTableError(f"predicate {self._predicate!r}: {error}") from None
        return TableVersion(self.key_columns, self.brought_columns, table, keys)


def _remove(folder: StateFolder, token: str) -> None:
    try:
        folder.delete([token])
    except OSError:  # the folder is gone, and the file with it
        return


def check_source(table: Any, predicate: str) -> None:  # noqa: ANN401 - as in `tw.lookup`
    """Refuse an argument that is no table, and say what to write instead."""
    if isinstance(table, str | os.PathLike):
        text = os.fspath(table).lower().removesuffix(".gz")
        for suffix in ("csv", "json", "txt", "tsv"):
            if text.endswith(f".{suffix}"):
                raise ValueError(
                    f"predicate {predicate!r}: the path of a stored table names Parquet files; read {table} first: "
                    f"tw.lookup(spark.read.{'json' if suffix == 'json' else 'csv'}({os.fspath(table)!r}, ...), ...)"
                )
        return
    if isinstance(table, list | tuple | set | dict):
        raise TypeError(
            f"predicate {predicate!r}: a stored table is a DataFrame, an Arrow or pandas table, or a path, not a "
            f"{type(table).__name__}: write pa.table({{'key': [...]}})"
        )
    if not isinstance(table, pa.Table) and not hasattr(table, "columns"):
        raise TypeError(
            f"predicate {predicate!r}: a stored table is a DataFrame, an Arrow or pandas table, or a path, not "
            f"{table!r}"
        )


def read_columns(table: Any, columns: Sequence[str], predicate: str) -> pa.Table:  # noqa: ANN401 - as in `tw.lookup`
    """Some columns of a stored table, from wherever it is."""
    check_source(table, predicate)
    if isinstance(table, str | os.PathLike):
        from thalweg.spark.start import spark_session

        table = spark_session().read.load(os.fspath(table))
    elif type(table).__module__.startswith("pandas."):
        table = pa.Table.from_pandas(table, preserve_index=False)
    names = table.column_names if isinstance(table, pa.Table) else table.columns
    for column in columns:
        if column not in names:
            raise ValueError(
                f"predicate {predicate!r}: the stored table has no column {column!r}; it has {', '.join(names)}. "
                f"Write on={{'column of the stream': 'column of the table'}} where the names differ"
            )
    found: pa.Table = table.select(list(columns)) if isinstance(table, pa.Table) else table.select(*columns).toArrow()
    return found


def check_not_collated(column: str, kind: DataType) -> None:
    """Refuse texts that Spark compares by a collation: stored keys are compared by their bytes."""
    if "collate" in kind.simpleString().lower():
        raise TypeError(
            f"column {column!r} is a {kind.simpleString()}, and stored keys are compared byte by byte: look up a "
            f"column such as collate({column}, 'UTF8_BINARY'), or lower({column}) in a table of lower-case keys"
        )
