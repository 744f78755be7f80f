"""Attributes that are derived from a column: what people tell rows apart by is often a part of a value.

The prefix of a path, the hour of a timestamp, the parity of a number. Their names are SQL, so that everybody can read
which rows a class consists of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class Derivation:
    """A way to derive an attribute from columns of some types."""

    sql: str  # with {} for the column
    applies: Callable[[pa.DataType], bool]
    of: Callable[[pa.Array], pa.Array]


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_day(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _left(letters: int) -> Derivation:
    return Derivation(f"left({{}}, {letters})", _is_text, lambda column: pc.utf8_slice_codeunits(column, 0, letters))


def _modulo(divisor: int) -> Derivation:
    def of(column: pa.Array) -> pa.Array:
        return pc.subtract(column, pc.multiply(pc.divide(column, divisor), divisor))

    return Derivation(f"{{}} % {divisor}", pa.types.is_integer, of)


DERIVATIONS = (
    _left(4),
    _left(8),
    Derivation("hour({})", pa.types.is_timestamp, pc.hour),
    Derivation("weekday({})", _is_day, pc.day_of_week),
    _modulo(2),
    _modulo(10),
)


@dataclass(frozen=True)
class RoutingAttribute:
    """A column, or something that is derived from it."""

    column: str
    derivation: Derivation | None = None

    @property
    def name(self) -> str:
        """The column's name, or SQL.

        >>> [RoutingAttribute("at", derivation).name for derivation in DERIVATIONS[1:4]]
        ['left(at, 8)', 'hour(at)', 'weekday(at)']
        """
        return self.column if self.derivation is None else self.derivation.sql.format(self.column)

    def of(self, column: pa.Array) -> pa.Array:
        """The values of the attribute.

        >>> hour = RoutingAttribute("at", DERIVATIONS[2])
        >>> hour.of(pa.array([0, 3_700_000_000, None], pa.timestamp("us", tz="UTC"))).to_pylist()
        [0, 1, None]
        """
        return column if self.derivation is None else self.derivation.of(column)
