"""What a worker does with classes of rows: the same answers and errors, and learning that is shared and kept."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.drift import BCS
from thalweg.ordering import AGreedy, Independent
from thalweg.routing import RoutedPipeline
from thalweg.routing.classifier import Cells, Classifier
from thalweg.routing.partition import codes, numbers
from thalweg.spark.filters.worker.filter_pass import FilterPass
from thalweg.spark.filters.worker.judges import FunctionJudge, Judge, PredicateError
from thalweg.spark.filters.worker.quarantine import QuarantineSpec
from thalweg.spark.filters.worker.report import SUFFIX, WorkerReport, merge
from thalweg.spark.filters.worker.spec import Answer, PassSpec, PolicySpec

OUTCOMES = (True, False, None, "fails")
PREDICATES = 3
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "integers": (pa.int32(), st.integers(-3, 3)),
    "floats": (pa.float64(), st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf"), -7.25])),
    "strings": (pa.string(), st.sampled_from(["", "a", "ä", "long " * 5])),
    "timestamps": (pa.timestamp("us", tz="UTC"), st.integers(-(10**6), 10**6)),
    "booleans": (pa.bool_(), st.booleans()),
    "dates": (pa.date32(), st.integers(-3, 3)),
    "decimals": (pa.decimal128(9, 2), st.sampled_from([decimal.Decimal("1.50"), decimal.Decimal(-3)])),
}


def by_bits(one: int) -> Callable[[int], bool | None]:
    def judge(value: int) -> bool | None:
        outcome = OUTCOMES[value >> 2 * one & 3]
        if outcome == "fails":
            raise ValueError(f"row {value}")
        return outcome  # type: ignore[return-value]

    return judge


def judges() -> Sequence[Judge]:
    return [FunctionJudge(f"p{one}", by_bits(one), "rows", [0]) for one in range(PREDICATES)]


def spec(state: object, policy: PolicySpec | None = None, **more: Any) -> PassSpec:  # noqa: ANN401
    attributes = more.pop("attributes", {"a": 1, "b": 2})
    return PassSpec(
        key="query.0",
        signature="three by bits",
        judges=judges,
        columns=("value",),
        policy=policy or PolicySpec(AGreedy, PREDICATES, {"costs": [1.0] * PREDICATES}),
        folder=str(state),
        names=("p0", "p1", "p2"),
        numbers=(0, 1, 2),
        attributes=attributes,
        **more,
    )


def with_classes(one: FilterPass, columns: dict[str, pa.Array], cells: Cells) -> None:
    """Put in a classifier by hand, under which some values have no class."""
    assert isinstance(one.pipeline, RoutedPipeline)
    router, used = one.pipeline.router, [columns["ab"[at]] for at in cells.attributes]
    keys = np.unique(cells.of([codes(each) for each in used], [numbers(each) for each in used]))[::2]
    orders = ((0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1))
    router.policies += [router.learners.make(order) for order in orders[1:]]
    router.classifier = Classifier(cells, keys, np.arange(keys.size) % 3 + 1, orders)
    one.pipeline.warm_up([1.0] * PREDICATES, [0.0] * PREDICATES)


def outcome(one: FilterPass, batches: list[tuple[pa.Array, ...]]) -> object:
    """All that a run gives, or the error that it raises."""
    try:
        return [array.to_pylist() for array in one.run(batches)]
    except PredicateError as error:
        return str(error)


@given(data=st.data())
@settings(max_examples=100)
def test_answers_and_errors_are_those_without_classes(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    kind, values = KINDS[data.draw(st.sampled_from(sorted(KINDS)))]
    rows = data.draw(st.lists(st.integers(0, 63), min_size=1, max_size=80))
    drawn = data.draw(st.lists(st.none() | values, min_size=len(rows), max_size=len(rows)))
    columns = (pa.array(rows), pa.array(drawn, kind), pa.array([row % 3 for row in rows]))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    batches = [
        tuple(column[start:stop] for column in columns)
        for start, stop in zip([0, *cuts], [*cuts, len(rows)], strict=True)
    ]
    edges = data.draw(st.sampled_from([None, (0.0,), (-1.0, 1.0)]))
    cells = data.draw(st.sampled_from([Cells((0,), (edges,)), Cells((1, 0), (None, edges)), Cells((1,), (None,))]))
    how: dict[str, Any] = data.draw(st.sampled_from([{}, {"on_error": "drop"}, {"answer": Answer.KEEP_OR_REASON}]))
    policy = data.draw(
        st.sampled_from([
            PolicySpec(AGreedy, PREDICATES, {"costs": [1.0] * PREDICATES}),
            PolicySpec(Independent, PREDICATES, {"p": 0.5}, BCS()),
        ])
    )  # fmt: skip
    routed = FilterPass(spec(tmp_path_factory.mktemp("state"), policy, **how))
    with_classes(routed, {"a": columns[1], "b": columns[2]}, cells)
    plain = FilterPass(spec(tmp_path_factory.mktemp("state"), policy, attributes={}, **how))
    assert outcome(routed, batches) == outcome(plain, batches)
    assert (routed.report().kept, routed.failed.tolist()) == (plain.report().kept, plain.failed.tolist())


def test_quarantined_rows_are_those_without_classes(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    rows = list(range(64))
    columns = (pa.array(rows), pa.array(["x", "y"] * 32), pa.array([row % 3 for row in rows]))
    found = []
    for name in ("routed", "plain"):
        aside = str(tmp_path / f"{name}-aside")
        one = FilterPass(
            spec(
                tmp_path / name,
                on_error="quarantine",
                quarantine=QuarantineSpec(aside, "run", "query", "predicate", "reason"),
            )
        )
        if name == "routed":
            with_classes(one, {"a": columns[1], "b": columns[2]}, Cells((0,), (None,)))
        kept = outcome(one, [columns])
        found.append((kept, sorted(map(str, pq.read_table(aside).to_pylist()))))
    assert found[0] == found[1]
    assert found[0][1]


def learnt(folder: Path) -> FilterPass:
    """A worker that has found classes: even rows are dropped by p0, others by p1."""
    one = FilterPass(spec(folder))
    line = one.pipeline
    assert isinstance(line, RoutedPipeline)
    line.warm_up([1.0] * PREDICATES, [0.0] * PREDICATES)
    side = np.random.default_rng(0).integers(0, 2, 1000)
    columns = {"a": pa.array(side), "b": pa.array(np.zeros(1000, np.int64))}
    line.router.learn(1 << side, None, columns)
    assert line.router.in_use == ("a",)
    one._exchange.publish(one.report())  # noqa: SLF001 - as at the end of a task
    return one


def keep(one: FilterPass) -> None:
    side = np.random.default_rng(1).integers(0, 2, 500)
    kept, failures = one.keep((pa.array(np.where(side == 0, 0b01, 0b0100)), pa.array(side), pa.array(side * 0)))
    assert not kept.any()
    assert not failures


def test_workers_share_their_classes(tmp_path: Path) -> None:
    first, second = learnt(tmp_path), FilterPass(spec(tmp_path))
    second.learn_from_others()
    line = second.pipeline
    assert isinstance(line, RoutedPipeline)
    assert line.router.in_use == ("a",)
    keep(second)
    assert line.evaluations == 500  # one predicate a row, from the first row on
    assert dict(line.rows_by) == {("a",): 500}
    told = second.report()
    assert told.routing is not None
    assert told.routing["classifier"]["attributes"] == ["a"]
    assert sorted(one["values"] for one in told.routing["classes"]) == [[], ["0"], ["1"]]
    assert told.routing["memory_bytes"] == line.router.nbytes
    # One that has seen something takes the classes over as well.
    third = FilterPass(spec(tmp_path / "elsewhere"))
    keep(third)
    report = WorkerReport.from_bytes(first.report().to_bytes())
    (tmp_path / "elsewhere").mkdir(exist_ok=True)
    (tmp_path / "elsewhere" / f"first{SUFFIX}").write_bytes(report.to_bytes())
    third.learn_from_others()
    assert isinstance(third.pipeline, RoutedPipeline)
    assert third.pipeline.router.in_use == ("a",)
    keep(third)


def test_classes_are_kept_when_runs_are_merged(tmp_path: Path) -> None:
    old = learnt(tmp_path).report()
    merged = merge([old, replace(old, router=b"", at=old.at + 1)])
    (tmp_path / "next").mkdir()
    (tmp_path / "next" / f"warm{SUFFIX}").write_bytes(merged.to_bytes())
    again = FilterPass(spec(tmp_path / "next"))
    again.learn_from_others()
    assert isinstance(again.pipeline, RoutedPipeline)
    assert again.pipeline.router.in_use == ("a",)


def test_classes_by_other_columns_are_learnt_anew_and_it_is_said(tmp_path: Path) -> None:
    learnt(tmp_path)
    other = FilterPass(spec(tmp_path, attributes={"b": 2}))
    other.learn_from_others()
    assert isinstance(other.pipeline, RoutedPipeline)
    assert other.pipeline.router.classifier is None
    assert "classes are learnt anew: the saved routing state is of 3 filters and the columns ['a', 'b']" in str(
        other.report().notes
    )
    keep(other)
    plain = FilterPass(spec(tmp_path, attributes={}))
    plain.learn_from_others()
    keep(plain)
