"""Predicates that match addresses and texts against stored prefixes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa  # noqa: F401 - for the doctest

from thalweg.keywords import checks_keywords
from thalweg.spark.arrow_types import arrow_type
from thalweg.spark.filters.forms import PythonForm
from thalweg.spark.filters.predicates.base import OPTIONS, Analysis, Predicate, checked_options, column_names
from thalweg.spark.filters.predicates.function import function_judge
from thalweg.spark.filters.stored_table import check_not_collated, read_columns
from thalweg.tables.prefixes import Prefixes

if TYPE_CHECKING:
    from pyspark.sql.types import DataType


@dataclass(frozen=True, kw_only=True, eq=False)
class PrefixPredicate(Predicate):
    """Whether a stored prefix matches a row's address or text."""

    prefixes: Prefixes
    on: str
    negate: bool = False

    @property
    def columns(self) -> tuple[str, ...]:  # noqa: D102 - as the base has it
        return (self.on,)

    @property
    def details(self) -> tuple[object, ...]:  # noqa: D102
        return self.on, self.negate

    def check_types(self, types: Sequence[DataType]) -> None:
        """Refuse a column that is no text."""
        check_not_collated(self.on, types[0])
        self.prefixes.check(arrow_type(types[0]))

    def in_python(self, analysis: Analysis) -> PythonForm:  # noqa: D102
        make = partial(function_judge, self.name, self.prefixes.matches, "arrow", negate=self.negate)
        return PythonForm((self.on,), (), make)


@checks_keywords("tw.prefix_match", *OPTIONS)
def prefix_match(
    table: Any,  # noqa: ANN401 - as in `lookup`
    *,
    on: str | Mapping[str, str],
    kind: Literal["ip", "string"] = "ip",
    negate: bool = False,
    name: str | None = None,
    **options: Any,  # noqa: ANN401 - those of every predicate
) -> PrefixPredicate:
    """Whether a stored prefix matches: networks such as ``10.0.0.0/8`` for addresses, or plain text prefixes.

    >>> inside = prefix_match(pa.table({"net": ["10.0.0.0/8"]}), on={"dest": "net"})
    >>> inside.prefixes.matches(pa.array(["10.1.2.3", "11.0.0.1"])).to_pylist()
    [True, False]
    """
    pairs = dict(on) if isinstance(on, Mapping) else {column: column for column in column_names(on, "on")}
    if len(pairs) != 1:
        raise ValueError("tw.prefix_match takes one column: on='dest', or on={'dest': 'net'}")
    ((column, table_column),) = pairs.items()
    shown = name or f"{column} {'outside' if negate else 'inside'} prefixes"
    prefixes = Prefixes(read_columns(table, (table_column,), shown).column(0), kind=kind)
    return PrefixPredicate(name=shown, prefixes=prefixes, on=column, negate=negate, **checked_options(options))
