"""Reads the attributes of rows, of which classes may be made, from the columns of batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from thalweg.ordering.types import Floats, Integers
from thalweg.routing.derived import DERIVATIONS, RoutingAttribute
from thalweg.routing.partition import codes, numbers, refusal, width

MOST_ATTRIBUTES = 32
MOST_DERIVED = 8  # columns up to which attributes are derived: all are tried
MOST_NAMES = max(MOST_ATTRIBUTES, MOST_DERIVED * (1 + len(DERIVATIONS)))  # of columns and derived attributes

Columns = Mapping[str, pa.Array]


class AttributeValues(NamedTuple):
    """The values of all attributes of some rows: a row each, a column for each attribute."""

    codes: Integers
    numbers: Floats


class AttributeReader:
    """Reads attributes, and learns which of them cannot tell classes apart and how wide their values are.

    Attributes are the columns, and what is derived from them.

    >>> reader = AttributeReader(["kind", "tags"])
    >>> values = reader.read({"kind": pa.array([7, 8]), "tags": pa.array([[1], [2]])}, rows=2)
    >>> values.numbers[:, 0].tolist(), list(reader.refused), reader.widths[:2].tolist()
    ([7.0, 8.0], ['tags'], [8.0, 0.0])
    >>> reader.names[:2], reader.names[6], values.numbers[:, 6].tolist()
    (('kind', 'tags'), 'kind % 2', [1.0, 0.0])
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        if len(set(self.columns)) != len(self.columns) or not 1 <= len(self.columns) <= MOST_ATTRIBUTES:
            raise ValueError(f"attributes are 1 to {MOST_ATTRIBUTES} different column names, not {list(columns)}")
        derived = self.columns if len(self.columns) <= MOST_DERIVED else ()
        self.attributes = (
            *map(RoutingAttribute, self.columns),
            *(RoutingAttribute(column, derivation) for column in derived for derivation in DERIVATIONS),
        )
        self.names = tuple(attribute.name for attribute in self.attributes)
        self._by_name = dict(zip(self.names, self.attributes, strict=True))
        self.refused: dict[str, str] = {}  # columns whose type cannot tell classes apart, with the reason
        self.widths = np.zeros(len(self.names))  # bytes of an average value
        self.rows = 0  # rows that were read

    def column(self, columns: Columns, name: str) -> Any:  # noqa: ANN401 - an Arrow array
        """The column of an attribute, or an error that names the columns there are."""
        attribute = self._by_name[name]
        try:
            return attribute.of(columns[attribute.column])
        except KeyError:
            raise KeyError(f"the batch has no column {attribute.column!r}; it has {', '.join(columns)}") from None

    def read(self, columns: Columns, rows: int) -> AttributeValues:
        """The values of every attribute that can tell classes apart."""
        size = rows, len(self.names)
        values = AttributeValues(np.zeros(size, np.int64), np.full(size, np.nan))
        for place, attribute in enumerate(self.attributes):
            source = self.column(columns, attribute.column)
            if len(source) != rows:
                raise ValueError(f"the column {attribute.column!r} has {len(source)} values for {rows} rows")
            kind = getattr(source, "type", None)
            if kind is not None and (reason := refusal(kind)):
                self.refused[attribute.column] = reason
                continue
            if attribute.derivation is not None and (kind is None or not attribute.derivation.applies(kind)):
                continue
            column = attribute.of(source)
            values.codes[:, place], values.numbers[:, place] = codes(column), numbers(column)
            self.widths[place] += rows / (self.rows + rows) * (width(column) - self.widths[place])
        self.rows += rows
        return values


def columns_among(names: Sequence[str]) -> Sequence[str]:
    """The columns among the names of a reader's attributes, which come first.

    >>> columns_among(AttributeReader(["kind", "tags"]).names)
    ('kind', 'tags')
    """
    counts = range(1, min(len(names), MOST_ATTRIBUTES) + 1)
    found = (names[:count] for count in counts if AttributeReader(names[:count]).names == tuple(names))
    return next(found, names)
