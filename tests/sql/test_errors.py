"""Errors of queries: their text, and that copies of them are whole."""

import pickle

from thalweg.sql.errors import QueryError
from thalweg.sql.query import Position


def test_the_caret_stands_under_the_place_also_behind_tabs() -> None:
    error = QueryError("there is no column 'x'", "SELECT y,\n\t\tx FROM s", Position(2, 3), "write y")
    assert str(error).splitlines()[1:] == ["  \t\tx FROM s", "  \t\t^"]
    assert (error.line, error.column, error.hint) == (2, 3, "write y")


def test_a_pickled_error_says_the_same() -> None:
    error = QueryError("the query is empty", "", Position(1, 1), "write a query")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301 - its own bytes
