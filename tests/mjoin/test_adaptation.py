"""Orders follow the measures, for a reason that is reported, and never change results."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from thalweg.mjoin import Cell, Input, JoinQuery, Statistics, TimeWindow, adaptation

ROWS, STEPS = 600, 5  # a step and input; steps in a window
Keys = dict[str, dict[str, int]]  # for each input and column, from how many values its keys are


def query(columns: dict[str, str]) -> JoinQuery:
    """A join of inputs by columns of the same name, each a letter."""
    schemas = {
        name: pa.schema([(column, pa.int64()) for column in (*keys, "at", "id")]) for name, keys in columns.items()
    }
    classes = {key: frozenset((name, key) for name, keys in columns.items() if key in keys) for key in "abxy"}
    return JoinQuery(
        tuple(Input(name, schema, "at", TimeWindow(STEPS * 100)) for name, schema in schemas.items()),
        tuple(equal for equal in classes.values() if equal),
        select=tuple((name, "id", name) for name in columns),
    )


def run(cell: Cell, steps: range, domain: Callable[[str, str], int]) -> tuple[list[Statistics], pa.Table]:
    """Steps of random rows, with keys from domains that an input and a column have."""
    statistics, results = [], []
    for step in steps:
        random, batches = np.random.default_rng(step), {}
        for source in cell.query.inputs:
            keys = [random.integers(0, domain(source.name, column), ROWS) for column in source.schema.names[:-2]]
            columns = [*keys, random.integers(step * 100, step * 100 + 100, ROWS), step * ROWS + np.arange(ROWS)]
            batches[source.name] = pa.record_batch(columns, schema=source.schema)
        done = cell.step(batches, step * 100 - 100)
        statistics.append(done.statistics)
        results.append(done.results)
    return statistics, pa.Table.from_batches(results)


def in_one_order(results: pa.Table) -> pa.Table:
    return results.sort_by([(name, "ascending") for name in results.schema.names])


STAR = query(dict.fromkeys("ABCD", "a"))
TREE = query({"C": "ab", "A": "ax", "D": "x", "B": "by", "E": "y"})
FEW, MANY = 300, 60_000


def rare(name: str) -> Callable[[str, str], int]:
    """One input whose rows match few others."""
    return lambda other, _: MANY if other == name else FEW


def branch(column: str) -> Callable[[str, str], int]:
    """One branch of the tree drops almost everything, the other multiplies it."""
    return lambda _, key: MANY if key == column else 100 if key in "ab" else 2 * ROWS * STEPS


def test_drop_probing_follows_the_input_that_drops_most() -> None:
    cell = Cell(STAR)
    run(cell, range(8), rare("D"))
    assert cell.knowledge()["orders"]["A"][0] == "D"
    statistics, _ = run(cell, range(8, 20), rare("C"))
    assert statistics[-1].orders["A"][0] == statistics[-1].orders["B"][0] == "C"
    [*_, last] = [switch for switch in cell.switches if switch.input == "A" and switch.kind == "drop-probing order"]
    assert last.before[0] != last.after[0] == "C"
    assert last.reason.startswith("a row needs fewer probes: ")
    assert statistics[-1].survivors["A"] < 0.2


def test_other_orders_follow_selectivities() -> None:
    cell = Cell(TREE)
    run(cell, range(8), branch("a"))
    assert cell.knowledge()["orders"]["C"][0] == "A"
    statistics, _ = run(cell, range(8, 16), branch("b"))
    assert statistics[-1].orders["C"][0] == "B"
    [*_, last] = [switch for switch in cell.switches if switch.input == "C"]
    assert (last.kind, last.before[0], last.after[0]) == ("order", "A", "B")
    costs = last.reason.removeprefix("a step makes fewer combinations of rows: ").removesuffix(", as estimated")
    before, after = map(float, costs.split("→"))
    assert after < before
    shares = statistics[-1].selectivities
    assert shares["C B"] < 1e-3 < shares["C A"]


def test_a_change_is_followed_before_the_rows_that_show_it_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {}
    for least in (0.0, inf):  # that must be saved not to wait for the end of the step
        monkeypatch.setattr(adaptation, "AT_ONCE", least)
        cell = Cell(TREE)
        run(cell, range(8), branch("a"))
        statistics, results = run(cell, range(8, 14), branch("b"))
        made[least] = sum(each.intermediate for each in statistics), in_one_order(results)
    assert made[0.0][1] == made[inf][1]
    assert made[0.0][0] < made[inf][0]


@pytest.mark.parametrize("options", [{"policy": "as-written"}, {"orders": {"C": ("B", "A", "D", "E")}}])
def test_fixed_orders_stay(options: dict[str, Any]) -> None:
    cell = Cell(TREE, **options)
    statistics, results = run(cell, range(8), branch("a"))
    assert not cell.switches
    assert statistics[-1].orders["C"] == options.get("orders", {"C": ("A", "D", "B", "E")})["C"]
    assert in_one_order(results) == in_one_order(run(Cell(TREE), range(8), branch("a"))[1])


def test_an_order_that_is_given_holds_from_then_on() -> None:
    cell = Cell(STAR)
    run(cell, range(4), rare("D"))
    cell.set_orders({"A": ("B", "C", "D")})
    statistics, _ = run(cell, range(4, 10), rare("D"))
    assert {each.orders["A"] for each in statistics} == {("B", "C", "D")}
    assert statistics[-1].orders["B"][0] == "D"


@pytest.mark.parametrize(("domain", "share"), [(12_000, 0.2), (4_000, 0.6)])
def test_drop_probing_saves_probes_and_combinations(domain: int, share: float) -> None:
    """On a star where few rows survive, against plain nested probing in an order that adapts as well."""
    counted = {}
    for choice in (True, False):
        statistics, results = run(Cell(STAR, drop_probing=choice), range(12), lambda *_: domain)
        assert all(each.drop_probing["A"] == choice for each in statistics)
        late = statistics[STEPS + 2 :]
        probes, combinations = sum(each.probes for each in late), sum(each.intermediate for each in late)
        counted[choice] = probes, combinations, in_one_order(results)
    assert counted[True][2] == counted[False][2]
    assert counted[True][0] < counted[False][0]
    assert counted[True][1] < share * counted[False][1]


def test_drop_probing_ends_where_all_rows_survive_and_returns_where_they_do_not() -> None:
    cell = Cell(STAR)
    statistics, _ = run(cell, range(20), lambda *_: 700)
    assert not any(statistics[-1].drop_probing.values())
    assert {switch.kind for switch in cell.switches} >= {"drop-probing off"}
    assert "of rows survive all probes" in next(
        switch.reason for switch in cell.switches if switch.kind == "drop-probing off"
    )
    statistics, _ = run(cell, range(20, 40), rare("D"))
    assert statistics[-1].drop_probing["A"]


def test_knowledge_makes_another_cell_start_warm() -> None:
    cell = Cell(TREE)
    run(cell, range(8), branch("b"))
    other = Cell(TREE)
    other.learn(json.loads(json.dumps(cell.knowledge())))
    assert other.knowledge() == cell.knowledge()
    other.learn({})
    assert other.knowledge()["orders"]["C"][0] == "B"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"policy": "greedy"}, "no policy 'greedy'; did you mean 'a-greedy'"),
        ({"planner": "aware"}, "no planner 'aware'"),
        ({"drift": "bbs"}, "no detector 'bbs'; did you mean 'bcs'"),
        ({"orders": {"F": ("A",)}}, "no input 'F'"),
        ({"orders": {"C": ("A", "B")}}, "names each other input once, not A, B"),
        ({"orders": {"C": ("D", "A", "B", "E")}}, "reaches D before any input that it shares a key with"),
    ],
)
def test_what_does_not_exist_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Cell(TREE, **wrong)
