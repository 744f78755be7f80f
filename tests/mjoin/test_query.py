"""A query that makes no sense is refused with what to write instead."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from thalweg.mjoin import CountWindow, Input, JoinQuery, Residual, TimeWindow

SCHEMA = pa.schema([("key", pa.int64()), ("name", pa.string()), ("at", pa.int64())])
A, B, C = (Input(name, SCHEMA, "at", TimeWindow(10)) for name in "ABC")
ALL = frozenset((name, "key") for name in "ABC")
SELECT = (("A", "key", "key"),)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"inputs": (A,)}, "at least two inputs"),
        ({"inputs": (A, A, B)}, "a name of its own; A appears more than once"),
        ({"select": ()}, "select at least one column"),
        ({"select": (("D", "key", "x"),)}, "no input 'D'; there are A, B, C"),
        ({"select": (("A", "kee", "x"),)}, "A has no column 'kee'; it has key, name, at"),
        ({"output": "update"}, "'append' or 'changelog', not 'update'"),
        ({"equalities": (frozenset([("A", "key"), ("B", "name"), ("C", "key")]),)}, "cast them to one"),
        ({"equalities": (frozenset([("A", "key"), ("B", "key")]),)}, "do not connect all inputs"),
        (
            {"equalities": (ALL, frozenset([("A", "key"), ("B", "at")]))},
            "a column is in two classes of equal columns; make them one",
        ),
        (
            {"inputs": (Input("A", SCHEMA, "at", CountWindow(3)), B, Input("C", SCHEMA))},
            "all inputs must be streams with one common key; use windows by time",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        JoinQuery(**{"inputs": (A, B, C), "equalities": (ALL,), "select": SELECT, **wrong})


def test_windows_and_times_are_checked() -> None:
    with pytest.raises(ValueError, match="for 1 to"):
        TimeWindow(0)
    with pytest.raises(ValueError, match="1 row or more"):
        CountWindow(0)
    with pytest.raises(ValueError, match=r"the time A\.name is of int64 microseconds, not string"):
        Input("A", SCHEMA, "name")
    with pytest.raises(ValueError, match="A has a window but no time"):
        Input("A", SCHEMA, window=TimeWindow(1))
    with pytest.raises(ValueError, match="a residual's columns are of its inputs"):
        Residual(("A", "B"), (("A", "key"),), pc.is_valid)


def test_the_graph_has_all_equalities_that_follow() -> None:
    query = JoinQuery((A, B, C), (ALL, frozenset([("A", "name"), ("B", "name")])), select=SELECT)
    graph = query.graph({"A": 2.0, "B": 3.0, "C": 4.0}, {"A": 20.0, "B": 30.0, "C": 40.0}, {("A", "B"): 0.01})
    assert graph.sizes.tolist() == [20.0, 30.0, 40.0]
    assert [str(predicate) for predicate in graph.predicates] == [
        "A.key = B.key",
        "A.name = B.name",
        "A.key = C.key",
        "B.key = C.key",
    ]
    assert graph.selectivities[0, 1] == pytest.approx(0.01)  # of both equalities together
