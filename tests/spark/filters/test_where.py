"""`tw.where` against other engines: the same rows and the same errors, whatever the order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import thalweg as tw
from thalweg.ordering import POLICIES, AGreedy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A test per example starts Spark jobs; the shared session is what function-scoped fixtures are checked for.
on_spark = settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])

NAMES = pa.table({"name": ["ant", "bee", "elk"]})
PAIRS = pa.table({"left": [0, 1, 2, 3], "right": ["ant", "bee", "cat", "dog"]})
NETS = pa.table({"net": ["10.0.0.0/8", "192.168.1.0/24"]})


@tw.predicate(on="a")
def is_even(a: pa.Array) -> pa.Array:
    return pc.equal(pc.bit_wise_and(a, 1), 0)


@tw.predicate(on=["a", "s"], takes="rows")
def is_far(a: int | None, s: str | None) -> bool | None:
    return None if a is None or s is None else a + len(s) > 5


@tw.predicate(on="a", takes="numpy", name="below 7")
def below_seven(a: np.ndarray) -> np.ndarray:
    return a < 7  # NaN, which is not below, where a is NULL


@tw.predicate(on="nested.x", takes="pandas")
def nested_is_odd(x: Any) -> Any:  # noqa: ANN401 - a pandas Series
    return x % 2 == 1


# Each with the same in DuckDB's SQL; none of them raises.
POOL: tuple[tuple[Any, str], ...] = (
    (is_even, "a % 2 = 0"),
    (is_far, "a + length(s) > 5"),
    (below_seven, "a < 7"),
    (nested_is_odd, "a IS NOT NULL AND a % 2 = 1"),
    ("a > 2", "a > 2"),
    (tw.expr("s <> 'cat'", name="no cats"), "s <> 'cat'"),
    (tw.regex("s", "^[a-d]"), "regexp_matches(s, '^[a-d]')"),
    ("s like '%e%'", "s LIKE '%e%'"),
    (tw.lookup(NAMES, on={"s": "name"}), "s IN ('ant', 'bee', 'elk')"),
    (tw.lookup(NAMES, on={"s": "name"}, negate=True, name="others"), "s NOT IN ('ant', 'bee', 'elk')"),
    (tw.lookup(PAIRS, on={"a": "left", "s": "right"}), "(a, s) IN ((0,'ant'),(1,'bee'),(2,'cat'),(3,'dog'))"),
    (tw.prefix_match(NETS, on={"ip": "net"}), "ip LIKE '10.%' OR ip LIKE '192.168.1.%'"),
    (tw.any_of("a > 8", is_even), "a > 8 OR a % 2 = 0"),
    (tw.any_of("a > 8", "s = 'bee'"), "a > 8 OR s = 'bee'"),
    (
        tw.any_of(tw.lookup(NAMES, on={"s": "name"}), "a < 3", is_far),
        "s IN ('ant', 'bee', 'elk') OR a < 3 OR a + length(s) > 5",
    ),
    (tw.not_(is_even), "NOT a % 2 = 0"),
    (tw.not_("a > 2"), "NOT a > 2"),
    (tw.not_(tw.any_of(is_even, "s = 'bee'")), "NOT (a % 2 = 0 OR s = 'bee')"),
)

table = st.lists(
    st.tuples(
        st.none() | st.integers(0, 9),
        st.none() | st.sampled_from(["ant", "bee", "cat", "dog", "elk"]),
        st.none() | st.sampled_from(["10.1.1.1", "192.168.1.9", "8.8.8.8"]),
    ),
    min_size=1,
    max_size=60,
)


def frame_of(spark: SparkSession, rows: list[tuple[Any, ...]], partitions: int) -> DataFrame:
    schema = "id long, a long, s string, ip string, nested struct<x: long>"
    data = [(number, a, s, ip, (a,)) for number, (a, s, ip) in enumerate(rows)]
    return spark.createDataFrame(data, schema).repartition(partitions)


@pytest.fixture
def batch_size(spark: SparkSession) -> Iterator[Any]:
    key = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = str(spark.conf.get(key))
    yield lambda size: spark.conf.set(key, size)
    spark.conf.set(key, before)


def ids(frame: DataFrame) -> list[int]:
    return sorted(row["id"] for row in frame.select("id").collect())


@on_spark
@given(
    rows=table,
    chosen=st.lists(st.sampled_from(range(len(POOL))), min_size=1, max_size=6, unique=True),
    policy=st.sampled_from([one.name for one in POLICIES]),
    partitions=st.integers(1, 3),
    size=st.sampled_from([1, 7, 10_000]),
    sample=st.booleans(),
    on_error=st.sampled_from(["raise", "drop"]),
    route_by=st.sampled_from([None, "auto", "s", ["a", "ip"]]),
)
def test_the_rows_are_those_of_duckdb(
    spark: SparkSession,
    batch_size: Any,  # noqa: ANN401 - sets Spark's
    rows: list[tuple[Any, ...]],
    chosen: list[int],
    policy: str,
    partitions: int,
    size: int,
    sample: bool,  # noqa: FBT001 - given by Hypothesis
    on_error: Any,  # noqa: ANN401
    route_by: Any,  # noqa: ANN401
) -> None:
    batch_size(size)
    frame = frame_of(spark, rows, partitions)
    options = {"policy": policy, "sample": sample, "on_error": on_error, "route_by": route_by}
    kept = tw.where(frame, *(POOL[one][0] for one in chosen), **options)
    data = pa.table(
        {
            "id": range(len(rows)),
            "a": pa.array([a for a, _, _ in rows], pa.int64()),
            "s": pa.array([s for _, s, _ in rows], pa.string()),
            "ip": pa.array([ip for _, _, ip in rows], pa.string()),
        }
    )
    condition = " AND ".join(f"({POOL[one][1]})" for one in chosen)
    with duckdb.connect() as connection:
        connection.register("data", data)
        expected = [row[0] for row in connection.sql(f"SELECT id FROM data WHERE {condition} ORDER BY id").fetchall()]  # noqa: S608
    assert ids(kept) == expected
    assert kept.columns == frame.columns


# ------------------------------------------------------------------------------------------ errors

OUTCOMES = (True, False, None, "fails")


def by_bits(one: int, takes: Any) -> Any:  # noqa: ANN401 - a predicate
    """A predicate that reads its outcome from two bits of the row."""

    def judge(value: int) -> bool | None:
        outcome = OUTCOMES[value >> 2 * one & 3]
        if outcome == "fails":
            raise ValueError(f"row {value}")
        return outcome  # type: ignore[return-value]

    def judge_all(values: pa.Array) -> list[bool | None]:
        return [judge(value) for value in values.to_pylist()]

    if takes == "spark":
        bits = f"(value >> {2 * one} & 3)"
        return tw.expr(
            f"CASE {bits} WHEN 0 THEN true WHEN 1 THEN false WHEN 3 THEN raise_error('row ' || value) END",
            name=f"p{one}",
        )
    return tw.predicate(judge if takes == "rows" else judge_all, on="value", takes=takes, name=f"p{one}")


def truth(values: list[int], count: int) -> tuple[list[int], list[int]]:
    """The rows that are kept, and those that no predicate rejects and some fail on."""
    kept, failing = [], []
    for row, value in enumerate(values):
        outcomes = [OUTCOMES[value >> 2 * one & 3] for one in range(count)]
        if all(one is True for one in outcomes):
            kept.append(row)
        elif "fails" in outcomes and not any(one is False or one is None for one in outcomes):
            failing.append(row)
    return kept, failing


KINDS = st.lists(st.sampled_from(["rows", "arrow", "spark"]), min_size=3, max_size=3)


def value_frame(spark: SparkSession, values: list[int]) -> DataFrame:
    rows = [(row, value, row % 5) for row, value in enumerate(values)]
    return spark.createDataFrame(rows, "id long, value long, a long").repartition(2)


@pytest.mark.thorough
@on_spark
@given(
    values=st.lists(st.integers(0, 63), min_size=1, max_size=60),
    kinds=KINDS,
    policy=st.sampled_from([one.name for one in POLICIES]),
    order=st.permutations(range(3)),
    sample=st.booleans(),
    route_by=st.sampled_from([None, "auto", "a"]),
)
def test_errors_do_not_depend_on_the_order(
    spark: SparkSession,
    values: list[int],
    kinds: list[str],
    policy: str,
    order: list[int],
    sample: bool,  # noqa: FBT001
    route_by: str | None,
) -> None:
    frame = value_frame(spark, values)
    predicates = [by_bits(one, kinds[one]) for one in order]
    kept, failing = truth(values, 3)
    assert ids(tw.where(frame, *predicates, policy=policy, on_error="drop", sample=sample, route_by=route_by)) == kept
    result = tw.where(frame, *predicates, policy=policy, sample=sample, route_by=route_by)
    if not failing:
        assert ids(result) == kept
        return
    with pytest.raises(Exception, match="row ") as caught:
        ids(result)
    named = {int(number) for number in re.findall(r"row (\d+)", str(caught.value))}
    assert named & {values[row] for row in failing}


@pytest.mark.thorough
@on_spark
@given(values=st.lists(st.integers(0, 63), min_size=1, max_size=60), kinds=KINDS, order=st.permutations(range(3)))
def test_a_lookup_rejects_before_anything_raises(
    spark: SparkSession, values: list[int], kinds: list[str], order: list[int]
) -> None:
    odd = tw.lookup(pa.table({"a": [1, 3]}), on="a")
    predicates = [by_bits(one, kinds[one]) for one in order]
    predicates.insert(1, odd)
    kept, failing = truth(values, 3)
    inside = {1, 3}
    result = tw.where(value_frame(spark, values), *predicates, sample=False)
    if any(row % 5 in inside for row in failing):
        with pytest.raises(Exception, match="row "):
            ids(result)
    else:
        assert ids(result) == [row for row in kept if row % 5 in inside]


@pytest.mark.parametrize("kinds", [["rows", "arrow", "spark"], ["spark", "spark", "spark"], ["spark", "rows", "rows"]])
def test_quarantined_rows_have_a_reason(spark: SparkSession, tmp_path: Path, kinds: list[str]) -> None:
    values = list(range(64))
    place = str(tmp_path / "quarantine")
    predicates = [by_bits(one, kind) for one, kind in enumerate(kinds)]
    result = tw.where(
        value_frame(spark, values), *predicates, on_error="quarantine", quarantine=place, quarantine_columns=["id"]
    )
    kept, failing = truth(values, 3)
    assert ids(result) == kept
    found = spark.read.parquet(place).collect()
    assert sorted(row["id"] for row in found) == failing
    for row in found:
        failed = [one for one in range(3) if OUTCOMES[values[row["id"]] >> 2 * one & 3] == "fails"]
        in_python = [one for one in failed if kinds[one] != "spark"]
        assert row["predicate"].startswith(f"p{(in_python or failed)[0]}")
        assert "row " in row["reason"] or "Spark could not evaluate" in row["reason"]


@pytest.mark.thorough
def test_what_raises_in_two_conditions_is_still_caught(spark: SparkSession) -> None:
    """Spark evaluates what two conditions have in common ahead of both."""
    rows = [(0, "1", 1), (1, "x", 5), (2, "7", 1), (3, "12", 5)]
    frame = spark.createDataFrame(rows, "id long, t string, a long")
    conditions = ["cast(t as int) > 5", "cast(t as int) < 10", "cast(t as int) <> 3", "a <> 5"]
    for order in (conditions, conditions[::-1]):
        assert ids(tw.where(frame, *order)) == [2]
    assert ids(tw.where(frame, *conditions[:3], on_error="drop")) == [2]
    assert ids(tw.where(frame, tw.any_of(*conditions[:2]), "a <> 5", sample=True)) == [0, 2]
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        ids(tw.where(frame, *conditions[:3]))


def test_a_quarantine_can_be_a_table(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(f"CREATE DATABASE IF NOT EXISTS aside LOCATION '{tmp_path}'")
    try:
        values = [0b000011, 0, 0b000001]
        result = tw.where(
            value_frame(spark, values), by_bits(0, "rows"), on_error="quarantine", quarantine="aside.failed"
        )
        assert ids(result) == [1]
        spark.catalog.refreshTable("aside.failed")
        assert [(row["value"], row["predicate"]) for row in spark.table("aside.failed").collect()] == [(3, "p0")]
    finally:
        spark.sql("DROP DATABASE aside CASCADE")


# ------------------------------------------------------------------------------- order and learning


@pytest.fixture
def numbers(spark: SparkSession) -> DataFrame:
    return spark.range(20_000, numPartitions=2).selectExpr("id", "id % 100 as a", "cast(id as string) as s")


def rare(limit: int, **options: Any) -> Any:  # noqa: ANN401
    return tw.predicate(lambda a: a < limit, on="a", takes="numpy", name=f"below {limit}", **options)


def order_of(kept: DataFrame) -> list[str]:
    names: list[str] = tw.explain(kept).to_dict()["wheres"][0]["order"]
    return names


def test_a_disjunction_in_spark_asks_first_who_accepts_most(numbers: DataFrame, tmp_path: Path) -> None:
    rarely, mostly = tw.regex("s", "77$"), tw.regex("s", "[0-8]$")
    for sample in (True, None):  # the second run knows from the first
        kept = tw.where(numbers, tw.any_of(rarely, mostly), state=tmp_path, sample=sample)
        about = tw.explain(kept).to_dict()["wheres"][0]["predicates"][0]
        assert about["members"] == [mostly.name, rarely.name]
        assert f"{mostly.name} or {rarely.name}" in str(tw.explain(kept))
        assert kept.count() == numbers.where("s rlike '77$' or s rlike '[0-8]$'").count()


@pytest.mark.parametrize(
    "conditions",
    [["NOT (a IS NULL OR 10 / k > 4)"], ["10 / k <= 4", "a IS NOT NULL"], ["NOT a <=> NULL", "10 / k <= 4"]],
)
def test_a_row_that_a_test_for_null_rejects_does_not_raise(spark: SparkSession, conditions: list[str]) -> None:
    """A filter of Spark evaluates such a test behind conditions on other columns, wherever it is written."""
    from pyspark.errors import ArithmeticException

    rows = "VALUES (true, 5), (NULL, 0), (false, 2), (NULL, 5) AS t(a, k)"
    frame = spark.sql(f"SELECT * FROM {rows}")  # noqa: S608 - ours
    assert [tuple(row) for row in tw.where(frame, *conditions).collect()] == [(True, 5)]
    with pytest.raises(ArithmeticException):
        tw.where(frame.fillna(value=True), *conditions).collect()


def test_the_order_is_learnt_and_explained(numbers: DataFrame) -> None:
    kept = tw.where(numbers, rare(90, cost=1), rare(5, cost=1), rare(50, cost=1))
    assert kept.count() == 1000
    about = tw.explain(kept).to_dict()["wheres"][0]
    assert about["order"][0] == "below 5"
    assert about["as_written"] == ["below 90", "below 5", "below 50"]
    assert about["rows"] == 20_000
    assert about["kept"] == 1000
    by_name = {one["name"]: one for one in about["predicates"]}
    assert by_name["below 5"]["dropped"] >= 18_500
    assert by_name["below 5"]["profile_drop_share"] == 1.0
    assert about["costs"][0]["now"] <= about["costs"][0]["as_written"]
    assert about["changes"][-1]["after"][0] == "below 5"
    for change in about["changes"]:  # which of both reasons depends on when workers hear from each other
        assert "drops more per cost" in change["why"] or change["why"] == "of a new sample"
    text = str(tw.explain(kept.groupBy("a").count()))  # a plan that goes on
    assert "below 5" in text
    assert "last of" in text


def test_the_next_run_starts_with_what_was_learnt(numbers: DataFrame, tmp_path: Path) -> None:
    predicates = [rare(90, cost=1), rare(5, cost=1)]
    assert tw.where(numbers, *predicates, state=tmp_path).count() == 1000
    again = tw.where(numbers, *predicates, state=tmp_path)
    assert again.count() == 1000
    about = tw.explain(again).to_dict()["wheres"][0]
    seen = {one["name"]: one["rows_seen"] for one in about["predicates"]}
    assert seen == {"below 5": 20_000, "below 90": 1000}  # from the very first row on
    assert about["rows"] == 20_000  # of this run alone
    tw.reset(tmp_path)
    assert not list(tmp_path.glob("*.learned"))


def test_a_sample_is_kept_for_the_next_run(numbers: DataFrame, tmp_path: Path) -> None:
    conditions = ["s rlike '.'", "s rlike '99$'", "a < 90"]
    first = tw.where(numbers, *conditions, state=tmp_path, sample=True)
    assert "sampled" in str(tw.explain(first))
    again = tw.where(numbers, *conditions, state=tmp_path)
    assert "as learnt" in str(tw.explain(again))
    assert order_of(again) == order_of(first)
    assert ids(again) == ids(first) == []


def test_nothing_leaks_into_another_query(numbers: DataFrame) -> None:
    predicates = [rare(90, cost=1), rare(5, cost=1)]
    first, second = tw.where(numbers, *predicates), tw.where(numbers, *predicates)
    assert first.count() == 1000
    assert tw.explain(second).to_dict()["wheres"][0]["rows"] == 0
    assert order_of(second) == ["below 90", "below 5"]


def test_conditions_are_ordered_by_a_sample(numbers: DataFrame) -> None:
    kept = tw.where(numbers, "s rlike '[0-9]'", "s rlike '^777'", "a >= 0", sample=True)
    assert order_of(kept).index("s rlike '^777'") < order_of(kept).index("s rlike '[0-9]'")
    assert kept.count() == 11


def test_lookups_and_conditions_are_ordered_together(numbers: DataFrame) -> None:
    few = tw.lookup(pa.table({"a": [1, 2]}), on="a", name="few")
    most = tw.lookup(pa.table({"a": list(range(95))}), on="a", name="most")
    kept = tw.where(numbers, most, "s rlike '(1|2|3|4|5|6|7|8|9)+$'", few, sample=True)
    assert order_of(kept)[0] == "few"
    plan = kept._jdf.queryExecution().executedPlan().toString().upper()  # noqa: SLF001 - the order is Spark's to keep
    assert plan.rindex("BROADCASTHASHJOIN") > plan.index("RLIKE")  # below it in the tree, hence before it
    assert kept.count() == 400


def test_a_stored_table_is_a_frame_or_a_path(spark: SparkSession, numbers: DataFrame, tmp_path: Path) -> None:
    table = spark.createDataFrame([(1, "x"), (2, "y")], "a long, more string")
    table.write.parquet(f"{tmp_path}/table")
    for stored in (table, f"{tmp_path}/table"):
        wanted = tw.lookup(stored, on="a")
        assert tw.where(numbers, wanted, "a < 2").count() == 200
        assert tw.where(numbers, tw.not_(wanted), rare(3)).count() == 200
    with pytest.raises(ValueError, match="has no column 'b'; it has a, more"):
        tw.where(numbers, tw.lookup(table, on={"a": "b"}))


def test_pinned_predicates_keep_their_place(numbers: DataFrame) -> None:
    kept = tw.where(numbers, rare(90, cost=1), rare(80, cost=1, pinned=True), rare(5, cost=1))
    assert kept.count() == 1000
    assert order_of(kept) == ["below 90", "below 80", "below 5"]


def test_a_python_predicate_can_be_pinned_before_a_condition(numbers: DataFrame) -> None:
    first = tw.predicate(lambda a: a < 50, on="a", takes="numpy", name="first", pinned=True)
    kept = tw.where(numbers, first, "a < 5")
    assert order_of(kept) == ["first", "a < 5"]
    assert kept.count() == 1000
    seen = tw.explain(kept).to_dict()["wheres"][0]["predicates"][0]["rows_seen"]
    assert seen == 20_000


def test_predicates_run_after_those_they_name(numbers: DataFrame) -> None:
    def needs_positive(a: np.ndarray) -> np.ndarray:
        assert (a < 50).all()
        return a < 5

    second = tw.predicate(needs_positive, on="a", takes="numpy", after="below 50", cost=1)
    assert tw.where(numbers, second, rare(50, cost=1)).count() == 1000


def test_a_policy_is_a_name_a_class_or_an_object(numbers: DataFrame) -> None:
    for policy in ("sweep", AGreedy, AGreedy(2, window=50, p=0.5)):
        assert tw.where(numbers, rare(90), rare(5), policy=policy).count() == 1000


def test_changes_in_the_data_are_explained(spark: SparkSession) -> None:
    frame = spark.range(0, 60_000, 1, 1).selectExpr("id", "if(id < 30000, id % 100, id % 10) as a")
    for drift in ("none", "bcs", "adwin"):
        kept = tw.where(frame, rare(90, cost=1), rare(5, cost=1), drift=drift)
        assert kept.count() == 1500 + 15_000
        found = tw.explain(kept).to_dict()["wheres"][0]["drift"]
        assert found[0]["kind"] == "movement"
        assert found[0]["rows"] > 30_000
        assert sorted(found[0]["order_before"]) == sorted(found[0]["order_after"]) == ["below 5", "below 90"]
        assert "changes in the data" in str(tw.explain(kept))
    with pytest.raises(ValueError, match="there is no detector 'bsc'; did you mean 'bcs'"):
        tw.where(frame, rare(5), drift="bsc")
    with pytest.raises(TypeError, match="drift is a detector or its name"):
        tw.where(frame, rare(5), drift=5)  # type: ignore[arg-type]


def test_as_written_changes_nothing(numbers: DataFrame) -> None:
    kept = tw.where(numbers, rare(90), rare(5), policy="as-written")
    assert kept.count() == 1000
    assert order_of(kept) == ["below 90", "below 5"]
    assert not tw.explain(kept).to_dict()["wheres"][0]["changes"]


def test_wheres_compose(numbers: DataFrame) -> None:
    kept = tw.where(tw.where(numbers, rare(90)).withColumnRenamed("a", "b"), "b < 5").groupBy("b").count()
    assert kept.count() == 5
    assert len(tw.explain(kept).to_dict()["wheres"]) == 2


def test_a_condition_goes_wherever_a_column_goes(numbers: DataFrame) -> None:
    both = tw.condition(rare(90), rare(5))
    flagged = numbers.withColumn("flag", both | (numbers.a == 99))
    assert flagged.where("flag").count() == 1200
    assert "below 5" in str(tw.explain(flagged))
    with pytest.raises(TypeError, match=r"'a > 1' runs in Spark: write tw\.condition"):
        tw.condition(rare(5), "a > 1")


def test_qualified_names_and_duplicates_survive(spark: SparkSession) -> None:
    frame = spark.range(10).alias("t")
    kept = tw.where(frame, "t.id > 3", "t.id > 3", tw.predicate(lambda x: x < 8, on="t.id", takes="numpy", name="x"))
    assert [row[0] for row in kept.select("t.id").collect()] == [4, 5, 6, 7]


# --------------------------------------------------------------------------------------- bad input


def test_wrong_input_is_refused_before_any_job(numbers: DataFrame, tmp_path: Path) -> None:
    def refused(kind: type[Exception], message: str, *predicates: Any, **options: Any) -> None:  # noqa: ANN401
        with pytest.raises(kind, match=message):
            tw.where(numbers, *predicates, **options)

    from pyspark.errors import AnalysisException

    refused(ValueError, "at least one predicate")
    refused(TypeError, "does not say which values it takes: write tw.predicate", lambda a: a)
    refused(TypeError, "is no predicate: pass", 5)
    refused(ValueError, "needs a column 'aa'; the DataFrame has id, a, s; did you mean 'a'", rare(5), tw.predicate(
        lambda x: x, on="aa", name="p"))  # fmt: skip
    refused(AnalysisException, "no_such", "no_such > 5")
    refused(AnalysisException, "BOOLEAN", "a + 1")
    refused(ValueError, "there is no policy 'a-gredy'; did you mean 'a-greedy'", rare(5), policy="a-gredy")
    refused(TypeError, "policy is a name", rare(5), policy=5)
    refused(ValueError, "on_error is one of raise, drop, quarantine", rare(5), on_error="ignore")
    refused(ValueError, "go together", rare(5), on_error="quarantine")
    refused(ValueError, "go together", rare(5), quarantine=str(tmp_path))
    refused(ValueError, "has to run after 'below 5', which runs in Python: with on_error='quarantine'",
            rare(5, pinned=True), "a > 1", on_error="quarantine", quarantine=str(tmp_path))  # fmt: skip
    refused(ValueError, "cost is given for some predicates but not for 'a > 1'", rare(5, cost=2), "a > 1")
    refused(ValueError, "run after 'below 9', which is not in the query", rare(5, after="below 9"))
    refused(TypeError, "key 'a' of the lookup table is string", tw.lookup(pa.table({"a": ["x"]}), on="a"))
    refused(TypeError, "cannot be sent to workers", tw.predicate(_Unpicklable().test, on="a", name="locked"))
    with pytest.raises(TypeError, match="takes a Spark DataFrame first"):
        tw.where(5, "a > 1")  # type: ignore[arg-type]


class _Unpicklable:
    def test(self, a: pa.Array) -> pa.Array:
        return a

    def __reduce__(self) -> Any:  # noqa: ANN401
        raise TypeError("it holds a lock")


def test_a_wrong_result_names_the_predicate(numbers: DataFrame) -> None:
    wrong = tw.predicate(lambda a: a[:1] > 0, on="a", takes="numpy", name="short")
    with pytest.raises(Exception, match="predicate 'short' returned 1 values for"):
        tw.where(numbers, wrong).count()


def test_there_is_nothing_to_explain_elsewhere(numbers: DataFrame) -> None:
    with pytest.raises(ValueError, match=r"no tw\.where or tw\.join of this program is in the plan"):
        tw.explain(numbers)
