"""Outer, semi and anti joins of a cell, against plain SQL over the whole history."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mjoin.test_cell import CONNECTION, Oracle, Run, Scenario, scenarios

from thalweg.mjoin import Cell, CountWindow, Input, JoinQuery, TimeWindow
from thalweg.mjoin.query import JoinKind


class PreservingOracle(Oracle):
    """The answer of SQL to joins that preserve rows."""

    def results(self, *, current: bool = False) -> Counter[tuple[Any, ...]]:
        """The results so far: preserved rows without a match as soon as they can have none; or the current results."""
        query = self.query
        inner = replace(query, kind="inner", preserved=(), select=query.select)
        self.query = inner
        try:
            combinations = super().results(current=current) if query.kind == "outer" else Counter()
        finally:
            self.query = query
        for name in query.preserved:
            combinations += self._alone(name, current=current)
        return combinations

    def _alone(self, name: str, *, current: bool) -> Counter[tuple[Any, ...]]:
        """The rows of an input that are results by themselves."""
        query = self.query
        others = [other for other in query.names if other != name]
        conditions = self.conditions(current=current)
        source = query.input(name)
        keys = [column for columns in query.key_columns[name].values() for column in columns]
        twins = [(columns[0], other) for columns in query.key_columns[name].values() for other in columns[1:]]
        hopeless = [f"{name}.{column} IS NULL" for column in keys]
        hopeless += [f"{name}.{first} IS DISTINCT FROM {name}.{other}" for first, other in twins]
        assert isinstance(source.window, TimeWindow)
        decided = f"({' OR '.join(hopeless)} OR {name}.at + {source.window.microseconds} <= {self.watermark})"
        exists = f"EXISTS (SELECT 1 FROM {', '.join(others)} WHERE {' AND '.join(conditions)})"  # noqa: S608 - ours
        if current:
            decided = f"{name}.at + {source.window.microseconds} > {self.watermark}"
        where = exists if query.kind == "semi" else f"NOT {exists} AND {decided}"
        selected = ", ".join(f"{own}.{column}" if own == name else "NULL" for own, column, _ in query.select)
        for each, rows in self.history.items():
            CONNECTION.register(each, rows)
        return Counter(map(tuple, CONNECTION.execute(f"SELECT {selected} FROM {name} WHERE {where}").fetchall()))  # noqa: S608


@st.composite
def preserving(draw: st.DrawFn, *, output: Literal["append", "changelog"] = "append") -> Scenario:
    scenario = draw(scenarios(output=output))
    query = scenario.query
    kind: JoinKind = draw(st.sampled_from(["outer", "semi", "anti"]))
    is_full = (
        kind == "outer" and len(query.inputs) == 2 and all(each.time for each in query.inputs) and draw(st.booleans())
    )
    preserved = query.names if is_full else (draw(st.sampled_from([each.name for each in query.inputs if each.time])),)
    inputs = tuple(
        replace(each, window=each.window or TimeWindow(25)) if each.name in preserved else each for each in query.inputs
    )
    select = query.select if kind == "outer" else tuple(each for each in query.select if each[0] in preserved)
    query = replace(query, inputs=inputs, kind=kind, preserved=tuple(preserved), select=select)
    return replace(scenario, query=query)


@pytest.mark.thorough
@settings(max_examples=60)
@given(scenario=preserving())
def test_as_sql_says_after_each_step(scenario: Scenario) -> None:
    run, oracle = Run(scenario), PreservingOracle(scenario.query)
    for batches, watermark in scenario.steps:
        assert run.step(batches, watermark) == oracle.take(batches, watermark)
        assert run.sums == oracle.results()


@pytest.mark.thorough
@settings(max_examples=60)
@given(scenario=preserving(output="changelog"))
def test_a_changelog_has_the_current_results_after_each_step(scenario: Scenario) -> None:
    run, oracle = Run(scenario), PreservingOracle(scenario.query)
    for batches, watermark in scenario.steps:
        assert run.step(batches, watermark) == oracle.take(batches, watermark)
        assert run.sums == oracle.results(current=True)


SCHEMA = pa.schema([("key", pa.int64()), ("at", pa.int64())])


def query_of(kind: JoinKind = "outer", preserved: tuple[str, ...] = ("A",), **changes: Any) -> JoinQuery:  # noqa: ANN401 - its fields
    return JoinQuery(
        tuple(Input(name, SCHEMA, "at", TimeWindow(10)) for name in "AB"),
        (frozenset([("A", "key"), ("B", "key")]),),
        **{"select": (("A", "at", "a"),), "kind": kind, "preserved": preserved} | changes,
    )


def test_at_the_end_of_a_batch_job_all_rows_are_decided() -> None:
    cell = Cell(query_of(event_time_of=("A", "B"), select=(("A", "at", "a"), ("B", "at", "b"))))
    rows = pa.record_batch([[1, 2], [100, 101]], schema=SCHEMA)
    assert cell.step({"A": rows, "B": rows.slice(0, 1)}, None).results.to_pylist() == [
        {"a": 100, "b": 100, "event_time": 100}
    ]
    (end,) = cell.end()
    assert end.results.to_pylist() == [{"a": 101, "b": None, "event_time": 101}]


def test_a_match_that_left_its_window_long_ago_still_counts() -> None:
    """The row of B leaves at 102, that of A at 150; until then the row of B is kept, and then both go."""
    inputs = (Input("A", SCHEMA, "at", TimeWindow(50)), Input("B", SCHEMA, "at", TimeWindow(2)))
    cell = Cell(replace(query_of("anti"), inputs=inputs))
    row = pa.record_batch([[1], [100]], schema=SCHEMA)
    cell.step({"A": row, "B": row}, 90)
    assert cell.step({}, 149).statistics.state_rows == {"A": 1, "B": 1}
    step = cell.step({}, 152)
    assert step.results.num_rows == 0
    assert step.statistics.state_rows == {"A": 0, "B": 0}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "inner"}, "only inner joins preserve none"),
        ({"preserved": ()}, "only inner joins preserve none"),
        ({"kind": "semi", "select": (("B", "at", "b"),)}, "semi joins have the columns of A only, not of B"),
        ({"inputs": tuple(Input(name, SCHEMA, "at", CountWindow(2)) for name in "AB")}, "needs windows by time"),
        (
            {
                "inputs": tuple(Input(name, SCHEMA, "at", TimeWindow(10)) for name in "ABC"),
                "equalities": (frozenset((name, "key") for name in "ABC"),),
                "preserved": ("A", "B"),
            },
            "a full outer join has two inputs",
        ),
    ],
)
def test_queries_that_are_not_well_defined(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(query_of(), **changes)
