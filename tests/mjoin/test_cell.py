"""A cell gives the results of plain SQL over the whole history, whatever the steps, orders and restarts."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Literal
from unittest.mock import patch

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.joinorder import PLANNERS
from thalweg.mjoin import (
    Cell,
    CountWindow,
    Input,
    JoinQuery,
    Residual,
    Statistics,
    TimeWindow,
    measuring,
    probing,
    window,
)
from thalweg.mjoin import index as index_module
from thalweg.ordering import POLICIES
from thalweg.ordering.types import Integers
from thalweg.tables import codes

STEP = 10  # microseconds between two steps
KINDS = (
    pa.int64(),
    pa.int8(),
    pa.string(),
    pa.float64(),
    pa.float32(),
    pa.decimal128(10, 2),
    pa.decimal128(30, 2),
    pa.timestamp("us", "UTC"),
    pa.date32(),
    pa.binary(),
    pa.bool_(),
    pa.uint64(),
)
NEVER = -(10**9)  # a watermark before all others
CONNECTION = duckdb.connect(config={"threads": 1})  # for all examples: to open a connection takes longer than a query
SHAPES = ("linear", "star", "cyclic", "complete", "common", "tree", "double")


@dataclass(frozen=True)
class Scenario:
    """A query, and the rows and the watermark of each step."""

    query: JoinQuery
    steps: tuple[tuple[dict[str, pa.RecordBatch], int | None], ...]
    seed: int


def classes_of(shape: str, names: tuple[str, ...], random: np.random.Generator) -> list[set[str]]:
    """The inputs of each class of equal columns."""
    linear = [set(pair) for pair in itertools.pairwise(names)]
    return {
        "linear": linear,
        "star": [{names[0], name} for name in names[1:]],
        "cyclic": [*linear, {names[-1], names[0]}],
        "complete": [set(pair) for pair in itertools.combinations(names, 2)],
        "common": [set(names)],
        "tree": [{names[place], names[int(random.integers(place))]} for place in range(1, len(names))],
        "double": [{names[0], names[1]}, {names[0], names[1]}, set(names)],  # two columns between two inputs
    }[shape]


def values(random: np.random.Generator, size: int, kind: pa.DataType, domain: int) -> pa.Array:
    """Keys, a few of them NULL."""
    numbers = random.integers(0, domain, size)
    mask = random.random(size) < 0.05
    if pa.types.is_floating(kind):
        pool = np.array([np.nan, 0.0, -0.0, 1.5, -2.25, np.inf, 1e-30])
        return pa.array(pool[numbers % pool.size], pa.float64(), mask=mask, from_pandas=False).cast(kind)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        pool = np.array(["", "a", "aa", "b", "ab", "ba", "a" * 40], object)
        return pa.array(pool[numbers % pool.size], pa.string(), mask=mask).cast(kind)
    if pa.types.is_boolean(kind):
        return pa.array(numbers % 2 == 0, mask=mask)
    if pa.types.is_decimal(kind):
        return pa.array(numbers, pa.int64(), mask=mask).cast(pa.decimal128(21, 2)).cast(kind)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return (
            pa.array(numbers.astype(np.int32), mask=mask)
            .cast(pa.int64() if kind.bit_width == 64 else pa.int32())
            .cast(kind)
        )
    return pa.array(numbers, pa.int64(), mask=mask).cast(kind)


@st.composite
def scenarios(
    draw: st.DrawFn, *, by_count: bool = False, output: Literal["append", "changelog"] = "append"
) -> Scenario:
    seed = draw(st.integers(0, 2**32))
    random = np.random.default_rng(seed)
    names = tuple(f"R{number}" for number in range(draw(st.integers(2, 6))))
    shape = "common" if by_count else draw(st.sampled_from(SHAPES))
    groups = classes_of(shape, names, random)
    kinds = [draw(st.sampled_from(KINDS)) for _ in groups]
    has_twin = draw(st.booleans())  # whether an input has two columns that must be equal
    has_table = draw(st.booleans()) and not by_count
    inputs = []
    for place, name in enumerate(names):
        own_keys = [(f"k{number}", kind) for number, kind in enumerate(kinds) if name in groups[number]]
        own_keys += [("twin", kinds[0])] if name == names[0] and has_twin else []
        own = [("at", pa.int64()), ("id", pa.int64()), ("text", pa.string()), ("small", pa.int32())]
        if has_table and place == len(names) - 1:
            inputs.append(Input(name, pa.schema([*own_keys, *own[1:]])))
            continue
        windows: tuple[TimeWindow | CountWindow | None, ...] = (
            TimeWindow(60),
            TimeWindow(25),
            TimeWindow(25),
            TimeWindow(60),
            TimeWindow(7),
            None,
        )
        lasting = draw(
            st.sampled_from(
                windows if not by_count else (CountWindow(1), CountWindow(2), CountWindow(5), TimeWindow(25))
            )
        )
        inputs.append(Input(name, pa.schema([*own_keys, *own]), "at", lasting))
    if by_count and not any(isinstance(source.window, CountWindow) for source in inputs):
        inputs[0] = replace(inputs[0], window=CountWindow(2))
    pair = (names[0], names[-1])
    residual = Residual(pair, ((pair[0], "small"), (pair[1], "small")), pc.less_equal)
    query = JoinQuery(
        tuple(inputs),
        tuple(
            frozenset((name, f"k{number}") for name in group)
            | ({(names[0], "twin")} if has_twin and number == 0 else set())
            for number, group in enumerate(groups)
        ),
        (residual,) if draw(st.booleans()) else (),
        tuple(
            (source.name, column, f"{source.name}_{column}") for source in inputs for column in ("id", "text", "small")
        ),
        output,
    )
    steps = tuple(arrivals(query, random, draw(st.integers(1, 9)), draw(st.sampled_from([0, 5, 30]))))
    return Scenario(query, steps, seed)


def arrivals(
    query: JoinQuery, random: np.random.Generator, count: int, delay: int
) -> Iterator[tuple[dict[str, pa.RecordBatch], int | None]]:
    """Rows out of order, some of them late, in steps of any size."""
    numbers, domain = itertools.count(), int(random.integers(*((2, 8) if len(query.equalities) < 3 else (2, 4))))
    greatest, watermark = None, NEVER if query.has_count_windows else None
    for step in range(count):
        batches = {}
        for source in query.inputs:
            size = int(random.integers(0, 9 if len(query.inputs) < 4 else 5))
            if source.time is None and step:
                continue
            columns = []
            at = step * STEP + random.integers(-delay, STEP + 1, size)
            for field in source.schema:
                match field.name:
                    case "at":
                        columns.append(pa.array(at))
                        if size:
                            greatest = max(int(at.max()), greatest if greatest is not None else NEVER)
                    case "id":
                        columns.append(pa.array([next(numbers) for _ in range(size)], pa.int64()))
                    case "text":
                        columns.append(
                            pa.array([None if random.random() < 0.1 else f"text {n}" for n in range(size)], pa.string())
                        )
                    case "small":
                        small = random.integers(0, 4, size).astype(np.int32)
                        columns.append(pa.array(small, pa.int32(), mask=random.random(size) < 0.1))
                    case _:
                        columns.append(values(random, size, field.type, domain))
            batches[source.name] = pa.record_batch(columns, schema=source.schema)
        yield batches, watermark
        if greatest is not None and random.random() < 0.8:
            watermark = max(greatest - delay, watermark if watermark is not None else NEVER)


class Oracle:
    """The rows so far, and the answer of SQL."""

    def __init__(self, query: JoinQuery) -> None:
        self.query = query
        self.history = {source.name: source.schema.empty_table() for source in query.inputs}
        self.watermark = NEVER

    def take(self, batches: dict[str, pa.RecordBatch], watermark: int | None) -> dict[str, Counter[int]]:
        """Add the rows that are not late; returns the late rows."""
        late = {}
        self.watermark = max(self.watermark, self.watermark if watermark is None else watermark)
        for name, rows in batches.items():
            if self.query.input(name).time:
                is_late = pc.less(rows["at"], self.watermark)
                late[name] = Counter(rows.filter(is_late)["id"].to_pylist())
                rows = rows.filter(pc.invert(is_late))  # noqa: PLW2901 - the rest of them
            self.history[name] = pa.concat_tables([self.history[name], pa.Table.from_batches([rows])])
        return {name: each for name, each in late.items() if each}

    def conditions(self, *, current: bool = False) -> list[str]:
        """The conditions for which a combination is a result."""
        released = self.query.has_count_windows
        conditions = [
            f"{first[0]}.{first[1]} = {other[0]}.{other[1]}"
            for equal in self.query.equalities
            for first, other in itertools.pairwise(sorted(equal))
        ]
        streams = [source for source in self.query.inputs if source.time]
        latest = f"greatest({', '.join(f'{source.name}.at' for source in streams)})"
        for source in streams:
            if released:
                conditions.append(f"{source.name}.at < {self.watermark}")
            if isinstance(source.window, TimeWindow):
                conditions.append(f"{latest} - {source.name}.at < {source.window.microseconds}")
                if current:
                    conditions.append(f"{source.name}.at > {self.watermark} - {source.window.microseconds}")
            elif isinstance(source.window, CountWindow):
                until = f"{self.watermark} - 1" if current else latest
                name = source.name
                later = f"FROM {name} AS x WHERE x.k0 = {name}.k0 AND x.at > {name}.at AND x.at <= {until}"
                later += " AND x.k0 = x.twin" if "twin" in source.schema.names else ""
                conditions.append(f"(SELECT count(*) {later}) < {source.window.rows}")
        for residual in self.query.residuals:
            (left, column), (right, other) = residual.columns
            conditions.append(f"{left}.{column} <= {right}.{other}")
        return conditions

    def results(self, *, current: bool = False) -> Counter[tuple[Any, ...]]:
        """All results, or the results that are current at the watermark; with windows by count, of rows before it."""
        conditions = self.conditions(current=current)
        selected = ", ".join(f"{name}.{column} AS {alias}" for name, column, alias in self.query.select)
        text = f"SELECT {selected} FROM {', '.join(self.query.names)} WHERE {' AND '.join(conditions)}"  # noqa: S608
        for name, rows in self.history.items():
            CONNECTION.register(name, rows)
        return Counter(map(tuple, CONNECTION.execute(text).fetchall()))


def options(random: np.random.Generator) -> dict[str, Any]:
    return {
        "policy": str(random.choice([kind.name for kind in POLICIES])),
        "planner": str(random.choice([kind.name for kind in PLANNERS])),
        "drift": str(random.choice(["none", "bcs"])),
        "drop_probing": [True, False, "auto"][int(random.integers(3))],
    }


def any_order(query: JoinQuery, name: str, random: np.random.Generator) -> tuple[str, ...]:
    """Some legal order."""
    order, waiting = [name], [other for other in query.names if other != name]
    while waiting:
        ready = [
            other
            for other in waiting
            if any((other, near) in query.pairs or (near, other) in query.pairs for near in order)
        ]
        order.append(ready[int(random.integers(len(ready)))])
        waiting.remove(order[-1])
    return tuple(order[1:])


class Run:
    """A cell, with the state that its steps leave behind; it may be reloaded and change orders at any time."""

    def __init__(self, scenario: Scenario) -> None:
        self.query, self.random = scenario.query, np.random.default_rng(scenario.seed)
        self.options = options(self.random)
        self.cell = Cell(self.query, **self.options)
        self.state: dict[int, bytes] = {}
        self.sums: Counter[tuple[Any, ...]] = Counter()
        self.statistics: list[Statistics] = []

    def step(self, batches: dict[str, pa.RecordBatch], watermark: int | None) -> dict[str, Counter[int]]:
        if self.statistics and self.random.random() < 0.3:
            knowledge = json.loads(json.dumps(self.cell.knowledge()))
            self.cell = Cell.load(self.query, self.state, self.cell.watermark, **self.options)
            self.cell.learn(knowledge)
        if self.random.random() < 0.3:
            name = str(self.random.choice(self.query.names))
            self.cell.set_orders({name: any_order(self.query, name, self.random)})
        step = self.cell.step(batches, watermark)
        for number in step.removed:
            del self.state[number]
        assert not self.state.keys() & step.added.keys()
        self.state |= step.added
        assert step.results.schema == self.query.result_schema
        rows = list(zip(*(column.to_pylist() for column in step.results.columns), strict=True))
        if self.query.output == "changelog":
            for row in rows:
                self.sums[row[:-1]] += row[-1]
            assert all(count >= 0 for count in self.sums.values())
            self.sums = +self.sums
        else:
            self.sums.update(rows)
        json.dumps(step.statistics.to_dict())
        assert step.statistics.state_bytes == sum(map(len, self.state.values()))
        self.statistics.append(step.statistics)
        return {name: Counter(late["id"].to_pylist()) for name, late in step.late.items()}


def check(scenario: Scenario) -> None:
    """Run a scenario, with NumPy or with kernels as they are before compilation, and compare after every step."""
    with (
        patch.object(index_module, "compiled", lambda _group: scenario.seed % 2 == 0),
        patch.object(index_module, "BLOCK", 7),
    ):
        run, oracle = Run(scenario), Oracle(scenario.query)
        changelog = scenario.query.output == "changelog"
        for batches, watermark in scenario.steps:
            late = run.step(batches, watermark)
            assert late == oracle.take(batches, watermark)
            if changelog:
                assert run.sums == oracle.results(current=True)
        if not changelog:
            assert run.sums == oracle.results()


@given(scenarios())
@settings(max_examples=80)
def test_results_are_those_of_sql(scenario: Scenario) -> None:
    check(scenario)


@pytest.mark.thorough
@given(scenarios(output="changelog"))
@settings(max_examples=40)
def test_a_changelog_sums_to_the_current_join_after_every_step(scenario: Scenario) -> None:
    check(scenario)


@given(scenarios(by_count=True))
@settings(max_examples=30)
def test_windows_by_count(scenario: Scenario) -> None:
    check(scenario)


@pytest.mark.thorough
@given(scenarios(by_count=True, output="changelog"))
@settings(max_examples=30)
def test_a_changelog_of_windows_by_count(scenario: Scenario) -> None:
    check(scenario)


@given(scenarios())
@settings(max_examples=25)
def test_hashes_that_collide_change_nothing(scenario: Scenario) -> None:
    def collide(columns: list[Integers]) -> Integers:
        return columns[0] if len(columns) == 1 else np.zeros(columns[0].size, np.int64)

    with ExitStack() as patches:
        for module in (window, probing, measuring):
            patches.enter_context(patch.object(module, "combined", collide))
        patches.enter_context(patch.object(codes, "hash_bytes", lambda column: np.zeros(len(column), np.uint64)))
        check(scenario)
