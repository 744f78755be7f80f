"""The other texts that a user writes about a join, as values: its columns, windows and durations.

Texts are parsed by sqlglot; names are checked against the columns there are, and errors say what to write instead. This
module knows the names of columns, and no rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import timedelta

from thalweg.durations import UNITS, microseconds_in
from thalweg.joinorder.text import Attribute
from thalweg.mjoin.query import CountWindow, TimeWindow
from thalweg.spark.joins.condition import Columns, resolve, resolve_stream

ResultColumn = tuple[str, str, str]  # an input, a column of it, and the name in the result
MOST_DIGITS = 18  # of a number of rows
DURATION = re.compile(r"\s*([-+]?\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)
WINDOW_EXAMPLE = "'10 minutes', or {'R1': '10 minutes', 'R2': '1 hour', 'T': None} with None for rows that never expire"
LONGEST = 2**62  # microseconds: a sum of two of them fits into 64 bits


def parse_select(
    select: Sequence[str] | None, columns: Columns, shown: Sequence[str] | None = None
) -> tuple[ResultColumn, ...]:
    """The columns of the result; without a selection, all of the inputs that may be shown.

    A column without a name of its own is called after its input and column: `R1.size` becomes `R1_size`.

    >>> parse_select(["R1.size", "R2.size AS s2"], {"R1": ["size"], "R2": ["size", "id"]})
    (('R1', 'size', 'R1_size'), ('R2', 'size', 's2'))
    >>> parse_select(["R2.*"], {"R1": ["size"], "R2": ["size", "id"]})
    (('R2', 'size', 'R2_size'), ('R2', 'id', 'R2_id'))
    """
    import sqlglot
    from sqlglot import expressions as e
    from sqlglot.errors import SqlglotError

    from thalweg.sql.dialect import VerbatimSpark

    if isinstance(select, str):
        raise TypeError(f"select is a list of columns, not a text: write select=[{select!r}]")
    if not isinstance(select, Sequence | None):
        raise TypeError(f"select is a list of columns, not {select!r}: write select=['R1.size', 'R2.size AS s2']")
    selected: list[ResultColumn] = []
    for text in _everything(shown or tuple(columns)) if select is None else select:
        try:
            expression = sqlglot.parse_one(text, dialect=VerbatimSpark)
        except (SqlglotError, TypeError, RecursionError) as error:
            raise ValueError(
                f"{text!r} in select does not parse; write it like 'R1.size' or 'R2.size AS s2'"
            ) from error
        column = expression.this if isinstance(expression, e.Alias) else expression
        if not isinstance(column, e.Column):
            raise ValueError(  # noqa: TRY004 - it is the text that is wrong
                f"{text!r} in select is no column; select columns, and compute with the result: joined.selectExpr(...)"
            )
        if isinstance(column.this, e.Star):
            stream = resolve_stream(column, columns)
            selected += [(stream, name, f"{stream}_{name}") for name in columns[stream]]
            continue
        stream, name = resolve(column, columns)
        alias = expression.alias if isinstance(expression, e.Alias) else f"{stream}_{name}"
        selected.append((stream, name, alias))
    if not selected:
        raise ValueError("select names no column; leave it out for all columns")
    _check_aliases(selected)
    return tuple(selected)


def _everything(names: Sequence[str]) -> list[str]:
    """The text of all columns of some inputs."""
    return ["`{}`.*".format(name.replace("`", "``")) for name in names]


def _check_aliases(selected: Sequence[ResultColumn]) -> None:
    aliases = [alias.lower() for *_, alias in selected]
    for stream, name, alias in selected:
        if aliases.count(alias.lower()) > 1:
            raise ValueError(
                f"two columns of the result would be called {alias!r}; give one of them another name: "
                f"select=['{Attribute(stream, name)} AS other', ...]"
            )


def parse_window(window: object, name: str) -> TimeWindow | CountWindow | None:
    """A window of an input.

    >>> parse_window("10 minutes", "R1"), parse_window("100 rows", "R1"), parse_window(None, "R1")
    (TimeWindow(microseconds=600000000), CountWindow(rows=100), None)
    """
    if window is None:
        return None
    if isinstance(window, str) and (match := DURATION.fullmatch(window)) and match[2].lower() in {"row", "rows"}:
        if not match[1].isdecimal() or len(match[1]) > MOST_DIGITS:
            raise ValueError(f"the window of {name} is {window!r}; write a whole number of rows, like '100 rows'")
        return CountWindow(int(match[1]))
    return TimeWindow(microseconds(window, f"the window of {name}"))


def microseconds(duration: object, noun: str) -> int:
    """A duration as microseconds.

    >>> microseconds("1.5 hours", "the window of R1"), microseconds(timedelta(seconds=2), "the delay")
    (5400000000, 2000000)
    >>> microseconds("5 min", "the delay"), microseconds("0 s", "the delay")
    (300000000, 0)
    """
    found = None
    if isinstance(duration, timedelta):
        found = duration // timedelta(microseconds=1)
    elif isinstance(duration, str) and (match := DURATION.fullmatch(duration)):
        exact = float(match[1]) * (microseconds_in(match[2]) or math.nan)
        found = round(exact) if abs(exact) <= LONGEST else None
    if found is None:
        units = ", ".join(f"{unit}s" for unit in UNITS)
        raise ValueError(f"{noun} is {duration!r}; write it like '10 minutes', with a unit of {units}")
    if found < 0:
        raise ValueError(f"{noun} is {str(duration)!r}; it cannot be less than 0")
    return found
