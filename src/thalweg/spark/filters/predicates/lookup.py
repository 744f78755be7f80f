"""Predicates that look keys up in a stored table."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from thalweg.keywords import checks_keywords
from thalweg.spark.arrow_types import arrow_type
from thalweg.spark.filters.forms import LookupJoin, PythonForm
from thalweg.spark.filters.predicates.base import OPTIONS, Analysis, Predicate, checked_options, column_names
from thalweg.spark.filters.predicates.function import function_judge
from thalweg.spark.filters.stored_table import StoredTable, check_not_collated

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

    from thalweg.tables.keys import KeySet


@dataclass(frozen=True, kw_only=True, eq=False)
class LookupPredicate(Predicate):
    """Whether a row's key is in a stored table."""

    table: StoredTable
    on: tuple[str, ...]  # columns of the stream, in the order of the table's key columns
    brought: Mapping[str, str] = field(default_factory=dict)  # more of the table's columns, for the kept rows
    negate: bool = False

    @property
    def columns(self) -> tuple[str, ...]:  # noqa: D102 - as the base has it
        return self.on

    @property
    def brings(self) -> Mapping[str, str]:  # noqa: D102
        return self.brought

    @property
    def stored_table(self) -> StoredTable:  # noqa: D102
        return self.table

    @property
    def details(self) -> tuple[object, ...]:  # noqa: D102
        return self.on, self.table.key_columns, self.negate

    @property
    def keys(self) -> KeySet:
        """The table's keys; read once, and again after `refresh`."""
        return self.table.current.keys

    def refresh(self, table: Any = None) -> None:  # noqa: ANN401 - as in `lookup`
        """Read the table again, or take another; a running stream follows with its next micro-batch."""
        self.table.refresh(table)

    def check_types(self, types: Sequence[DataType]) -> None:
        """Refuse columns that cannot be compared with the table's."""
        for column, kind in zip(self.on, types, strict=True):
            check_not_collated(column, kind)
        self.keys.check([arrow_type(kind) for kind in types])

    def as_join(self) -> LookupJoin:  # noqa: D102
        return LookupJoin(self)

    def in_python(self, analysis: Analysis) -> PythonForm:  # noqa: D102
        keys = self.table.in_workers(analysis.folder)
        return PythonForm(self.on, (), partial(function_judge, self.name, keys, "arrow", negate=self.negate))


@checks_keywords("tw.lookup", *OPTIONS)
def lookup(
    table: Any,  # noqa: ANN401 - see below
    *,
    on: str | Sequence[str] | Mapping[str, str],
    columns: str | Sequence[str] | Mapping[str, str] = (),
    negate: bool = False,
    name: str | None = None,
    **options: Any,  # noqa: ANN401 - those of every predicate
) -> LookupPredicate:
    """Whether a row's key is in a stored table: a semi-join, or with ``negate=True`` an anti-join.

    With `columns` it is a join: the kept rows get these columns of the table. First all predicates decide which rows
    are kept, this lookup by the keys alone; columns are brought to the kept rows only.

    A row whose key is NULL is kept by neither. `refresh` on the predicate reads the table again.

    Parameters
    ----------
    table
        A DataFrame, an Arrow or pandas table, or the path of Parquet files. Its keys must be unique and not NULL.
    on
        The key column or columns; ``{"src_ip": "ip"}`` where the table calls them otherwise.
    columns
        Columns of the table to bring back; ``{"name": "customer"}`` to call them otherwise.

    Examples
    --------
    >>> blocked = lookup(pa.table({"ip": ["10.0.0.1"]}), on={"src": "ip"}, negate=True)
    >>> blocked.name, len(blocked.keys)
    ('src not in lookup', 1)
    """
    pairs = dict(on) if isinstance(on, Mapping) else {column: column for column in column_names(on, "on")}
    if not pairs:
        raise ValueError("tw.lookup needs key columns: on='ip', or on={'src_ip': 'ip'} for other names in the table")
    brought = (
        dict(columns)
        if isinstance(columns, Mapping)
        else {column: column for column in columns and column_names(columns, "columns")}
    )
    if brought and negate:
        raise ValueError("rows that are not in the table have no columns of it: leave out columns= or negate=True")
    if len(set(brought.values())) < len(brought):
        raise ValueError(f"columns= brings two columns under one name: {', '.join(brought.values())}")
    called = os.path.basename(os.fspath(table)) if isinstance(table, str | os.PathLike) else "lookup"  # noqa: PTH119
    shown = name or f"{', '.join(pairs)} {'not in' if negate else 'in'} {called}"
    found = LookupPredicate(
        name=shown,
        table=StoredTable(table, tuple(pairs.values()), tuple(brought), shown),
        on=tuple(pairs),
        brought=brought,
        negate=negate,
        **checked_options(options),
    )
    if isinstance(table, pa.Table):
        _ = found.keys  # so that errors in the table show at once
    return found
