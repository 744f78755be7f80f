"""Reads the attributes of rows, of which classes may be made, from the columns of batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from thalweg.ordering.types import Floats, Integers
from thalweg.routing.partition import codes, numbers, refusal, width

MOST_ATTRIBUTES = 32

Columns = Mapping[str, pa.Array]


class AttributeValues(NamedTuple):
    """The values of all attributes of some rows: a row each, a column for each attribute."""

    codes: Integers
    numbers: Floats


class AttributeReader:
    """Reads attributes, and learns which of them cannot tell classes apart and how wide their values are.

    >>> reader = AttributeReader(["kind", "tags"])
    >>> values = reader.read({"kind": pa.array([7, 8]), "tags": pa.array([[1], [2]])}, rows=2)
    >>> values.numbers[:, 0].tolist(), list(reader.refused), reader.widths.tolist()
    ([7.0, 8.0], ['tags'], [8.0, 0.0])
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        if len(set(self.names)) != len(self.names) or not 1 <= len(self.names) <= MOST_ATTRIBUTES:
            raise ValueError(f"attributes are 1 to {MOST_ATTRIBUTES} different column names, not {list(names)}")
        self.refused: dict[str, str] = {}  # attributes whose type cannot tell classes apart, with the reason
        self.widths = np.zeros(len(self.names))  # bytes of an average value
        self.rows = 0  # rows that were read

    def column(self, columns: Columns, name: str) -> Any:  # noqa: ANN401 - an Arrow array
        """The column of an attribute, or an error that names the columns there are."""
        try:
            return columns[name]
        except KeyError:
            raise KeyError(f"the batch has no column {name!r}; it has {', '.join(columns)}") from None

    def read(self, columns: Columns, rows: int) -> AttributeValues:
        """The values of every attribute that can tell classes apart."""
        size = rows, len(self.names)
        values = AttributeValues(np.zeros(size, np.int64), np.full(size, np.nan))
        for place, name in enumerate(self.names):
            column = self.column(columns, name)
            if len(column) != rows:
                raise ValueError(f"the column {name!r} has {len(column)} values for {rows} rows")
            kind = getattr(column, "type", None)
            if kind is not None and (reason := refusal(kind)):
                self.refused[name] = reason
                continue
            values.codes[:, place], values.numbers[:, place] = codes(column), numbers(column)
            self.widths[place] += rows / (self.rows + rows) * (width(column) - self.widths[place])
        self.rows += rows
        return values
