from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql.types import StructType

from thalweg.charts import ByChart, RoundStatistics, TupleRates, Weights, build_charts
from thalweg.charts.chart import Dimension
from thalweg.spark.session.input_sizes import UNREAD, default_size, input_sizes
from thalweg.spark.session.program import ProgramQuery
from thalweg.spark.session.schedules import scheduler_of
from thalweg.sql.parse import parse_query
from thalweg.sql.query import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from thalweg.charts import PlanCosts

SCHEMAS = {
    "A": StructType().add("k", "integer").add("x", "integer").add("s", "string").add("note", "string"),  # 8 + 48 bytes
    "B": StructType().add("k", "integer").add("y", "long"),
}
FAST = TupleRates(**dict.fromkeys(TupleRates().to_json(), 1e9))  # operators that keep up


def costs_of(text: str) -> PlanCosts:
    query = parse_query(text, [Source(name, tuple(schema.names)) for name, schema in SCHEMAS.items()])
    aliases = [each.alias for each in query.inputs]
    compiled = ProgramQuery("q", query, dict.fromkeys(aliases, ()), dict.fromkeys(aliases, ()))
    selected = frozenset(selection.alias for selection in query.selections)
    sizes = input_sizes(query.inputs, selected, SCHEMAS)
    return scheduler_of(ByChart, compiled, Weights(0.0, 1.0), 10, FAST, sizes).costs


def test_sizes_are_those_that_spark_assumes(spark: SparkSession) -> None:
    text = (
        "a boolean, b byte, c short, d int, e long, f float, g double, h decimal(10,2), i decimal(30,2), j string, "
        "k binary, l date, m timestamp, n timestamp_ntz, o array<int>, p map<string, long>, "
        "q struct<a: int, b: array<string>>, r interval day to second"
    )
    frame = spark.createDataFrame([], text)
    for column in frame.schema:
        assumed = frame.select(column.name)._jdf.schema().apply(0).dataType().defaultSize()  # noqa: SLF001
        if column.name != "r":  # of a rare type, which counts as a text
            assert default_size(column.dataType) == assumed, column


def test_a_row_has_the_size_of_the_columns_that_are_kept() -> None:
    query = parse_query(
        "SELECT a.k, b.y FROM A AS a, B AS b WHERE a.k = b.k AND a.x > 5 WINDOW [1]",
        [Source(name, tuple(schema.names)) for name, schema in SCHEMAS.items()],
    )
    sizes = input_sizes(query.inputs, frozenset(["a"]), SCHEMAS)
    assert sizes.rows == {"a": pytest.approx(56 / 38), "b": pytest.approx(20 / 38)}
    assert sizes.columns == {"a": {"k": 4 / 56, "x": 4 / 56, UNREAD: 40 / 56}}


def test_a_chart_of_one_stream_tells_both_orders_of_selection_and_projection_apart() -> None:
    """Projection first saves memory where most rows pass, and little of a row is kept."""
    costs = costs_of("SELECT k FROM A WHERE x > 5 WINDOW [1]")
    ranges = {
        "selectivity of A": Dimension("selectivity of A", 0.0, 1.0, 1.0),
        "rate of A": Dimension("rate of A", 1.0, 100.0, is_logarithmic=True),
    }
    charts = build_charts(costs, 20, ranges, RoundStatistics({"A": 10.0}, {"A": 0.5}))
    plans = charts.by_alias["A"].plans
    assert set(plans[:2].ravel()) == {0}  # few rows pass: selection first
    assert set(plans[-2:].ravel()) == {1}
    # Selection first holds sel tuples, then as many of 12 of 56 bytes; projection first all tuples of 16 bytes of 56.
    border = 16 / (56 + 12 - 16)
    assert [int(number) for number in plans[:, 0]] == [int((part + 0.5) / 20 > border) for part in range(20)]


def test_a_projection_that_keeps_whole_rows_never_comes_first() -> None:
    costs = costs_of("SELECT k, s, note FROM A WHERE x > 5 WINDOW [1]")
    for selectivity in (0.01, 0.5, 0.99):
        assert costs.best(RoundStatistics({"A": 50.0}, {"A": selectivity})).leaves == (0,)


def test_both_orders_count_as_one_plan() -> None:
    """Spark runs them identically: a change between them is no switch."""
    query = parse_query("SELECT k FROM A WHERE x > 5 WINDOW [1]", [Source("A", tuple(SCHEMAS["A"].names))])
    compiled = ProgramQuery("q", query, {"A": ()}, {"A": ()})
    sizes = input_sizes(query.inputs, frozenset(["A"]), SCHEMAS)
    scheduler = scheduler_of(ByChart, compiled, Weights(0.0, 1.0), 10, FAST, sizes)
    plans = []
    for selectivity in (0.05, 0.95, 0.05, 0.95):
        observed = RoundStatistics({"A": 50.0}, {"A": selectivity})
        plans.append(scheduler.choose(observed).digest)
        scheduler.observe(observed)
    assert len(set(plans)) == 2
    assert (scheduler.counts.moves, scheduler.counts.switches, scheduler.counts.hits) == (3, 0, 4)
