"""`tw.where(route_by=...)` on Spark: classes in Python workers and branches in Spark, never another answer."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import thalweg as tw
from thalweg.ordering import POLICIES, AGreedy, Profile
from thalweg.routing import ClassRouter
from thalweg.sealed import short_digest
from thalweg.spark import runs
from thalweg.spark.filters.run import FilterRun
from thalweg.spark.filters.worker.report import SUFFIX, WorkerReport
from thalweg.spark.plan_text import keys_in_plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS, SIDES = 6000, 3  # side i is dropped by predicate i
NAMES = [f"not {side}" for side in range(SIDES)]

# A classifier of each type, by side: the third is NULL or NaN, and rows of side 3, which nothing drops, are unseen.
KINDS: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "text": ("string", pa.string(), ["red", "green", None]),
    "at": ("timestamp", pa.timestamp("us", tz="UTC"), [0, 10**15, None]),
    "real": ("double", pa.float64(), [0.5, -1.5, float("nan")]),
    "price": ("decimal(9,2)", pa.decimal128(9, 2), [decimal.Decimal("1.50"), decimal.Decimal("-2.00"), None]),
    "flag": ("boolean", pa.bool_(), [True, False, None]),
    "day": ("date", pa.date32(), [dt.date(2020, 1, 1), dt.date(1969, 1, 1), None]),
}
UNSEEN = {
    "text": "'new'",
    "at": "timestamp'2040-01-01 00:00:00'",
    "real": "double('inf')",
    "price": "9.99",
    "flag": "true",
    "day": "date'2050-05-05'",
}


def sql(name: str, value: Any) -> str:  # noqa: ANN401 - of any type
    """A value as Spark's SQL."""
    if value is None:
        return "null"
    if name == "at":
        return f"timestamp_micros({value})"
    if isinstance(value, dt.date):
        return f"date'{value}'"
    return f"double('{value}')" if isinstance(value, float) else f"'{value}'" if isinstance(value, str) else str(value)


@pytest.fixture(scope="module")
def frame(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    columns = [
        f"cast(case side when 0 then {sql(name, values[0])} when 1 then {sql(name, values[1])} "
        f"when 2 then {sql(name, values[2])} else {UNSEEN[name]} end as {kind}) as {name}"
        for name, (kind, _, values) in KINDS.items()
    ]
    sides = spark.range(0, ROWS, 1, 2).selectExpr("id", f"pmod(xxhash64(id), {SIDES + 1}) as side")
    path = str(tmp_path_factory.mktemp("sides"))
    sides.selectExpr("id", "side", "concat('side-', side) as s", *columns).write.mode("overwrite").parquet(path)
    return spark.read.parquet(path)


def predicates(**options: Any) -> list[Any]:  # noqa: ANN401
    def test(side: int) -> Any:  # noqa: ANN401
        return tw.predicate(
            lambda values: values != side, on="side", takes="numpy", name=NAMES[side], cost=1, **options
        )

    return [test(side) for side in range(SIDES)]


def filter_of(kept: DataFrame) -> str:
    """The filter that Spark runs."""
    plan = str(kept._jdf.queryExecution().executedPlan().toString())  # noqa: SLF001 - what Spark makes of it
    return next(line for line in plan.splitlines() if " Filter " in line)


def ids(frame: DataFrame) -> list[int]:
    return sorted(row["id"] for row in frame.select("id").collect())


def train(folder: Path, *names: str) -> None:
    """Leave what a worker has learnt, which knows classes by one of these columns."""
    sides = np.random.default_rng(0).integers(0, SIDES, 1000)
    columns = {
        name: pa.array([KINDS[name][2][side] for side in sides], KINDS[name][1]) for name in names if name in KINDS
    }
    columns |= {"side": pa.array(sides), "s": pa.array([f"side-{side}" for side in sides])}
    router = ClassRouter(lambda order: AGreedy(SIDES, order=order), names)
    router.learn(1 << sides, None, columns)
    assert len(router.in_use) == 1
    learned = WorkerReport(
        "before",
        short_digest([predicate.signature for predicate in predicates()]),
        NAMES,
        list(router.overall.order),
        Profile(SIDES, 10, costs=[1.0] * SIDES),
        costs=[1.0] * SIDES,
        call_costs=[0.0] * SIDES,
        router=router.to_bytes(),
    )
    folder.mkdir(exist_ok=True)
    (folder / f"before{SUFFIX}").write_bytes(learned.to_bytes())


@pytest.mark.thorough
@pytest.mark.parametrize("name", KINDS)
def test_classes_of_every_type_change_no_answer(frame: DataFrame, tmp_path: Path, name: str) -> None:
    train(tmp_path, name)
    kept = tw.where(frame, *predicates(), route_by=name, state=tmp_path)
    assert ids(kept) == ids(frame.where("side = 3"))
    about = tw.explain(kept).to_dict()["wheres"][0]
    [stage] = about["routing"]["stages"]
    assert stage["classifier"]["attributes"] == [name]
    assert stage["rows_by"] == [{"attributes": [name], "rows": ROWS}]
    seen = sum(line["rows_seen"] for line in about["predicates"])
    dropped = sum(line["dropped"] for line in about["predicates"])
    # One predicate for each row that is dropped: rows have been told apart. True is also what unseen flags are.
    assert seen == dropped + SIDES * (ROWS - dropped)
    assert stage["memory_bytes"] > 0
    assert len(stage["classes"]) == SIDES + 1
    tw.reset(tmp_path)
    assert not list(tmp_path.glob(f"*{SUFFIX}"))


def test_classes_are_explained_and_kept(frame: DataFrame, tmp_path: Path) -> None:
    considered = ["side", "s", "text", "flag", "day"]
    train(tmp_path, *considered)
    for _ in range(2):  # the second run goes on with what the workers of the first have saved
        kept = tw.where(frame, *predicates(), route_by=considered, state=tmp_path)
        assert ids(kept) == ids(frame.where("side = 3"))
        explained = tw.explain(kept)
        routing = json.loads(json.dumps(explained.to_dict()))["wheres"][0]["routing"]
        assert routing["considered"] == considered
        [stage] = routing["stages"]
        assert len(stage["classifier"]["attributes"]) == 1
        assert {tuple(one["attributes"]) for one in stage["candidates"]} >= {("side",), ("s",), ("text",), ("day",)}
        assert all(one["gain_ratio"] >= 0 for one in stage["candidates"])
        assert routing["memory_bytes"] == stage["memory_bytes"] < 20_000_000
        assert sum(one["rows"] for one in stage["rows_by"]) == ROWS  # from the first row on
        text = str(explained)
        assert f"classes: {len(stage['classes']) - 1} by {stage['classifier']['attributes'][0]}" in text
        assert "gain ratio" in text
    chosen = tw.explain(tw.where(frame, *predicates(), route_by="auto"))
    routing = chosen.to_dict()["wheres"][0]["routing"]
    assert routing["considered"] == ["side"]  # the predicates' own column
    assert "no sample found it promising; write route_by='text'" in routing["left_out"]["text"]
    assert "write route_by='real'" in routing["left_out"]["real"]
    assert "not considered: real" in str(chosen)


@pytest.mark.parametrize("policy", [one.name for one in POLICIES])
@pytest.mark.parametrize("drift", ["none", "bcs"])
def test_every_policy_takes_it(frame: DataFrame, policy: str, drift: str) -> None:
    kept = tw.where(frame, *predicates(), policy=policy, drift=drift, route_by="auto")
    assert kept.count() == frame.where("side = 3").count()
    off = tw.explain(kept).to_dict()["wheres"][0]["routing"]["off"]
    assert (off is None) == (policy in {"a-greedy", "independent"})


def test_wrong_columns_are_refused_before_any_job(frame: DataFrame) -> None:
    with pytest.raises(ValueError, match=r"route_by needs a column 'txet'.*did you mean 'text'"):
        tw.where(frame, *predicates(), route_by="txet")
    with pytest.raises(ValueError, match="'both' cannot tell classes apart: it is a struct"):
        tw.where(frame.selectExpr("side", "struct(side, s) as both"), *predicates(), route_by=["side", "both"])


# ------------------------------------------------------------------------------------------ branches

CONDITIONS = [f"s rlike '^.*s?i?d?e-[^{side}]$'" for side in range(SIDES)]


def branches_of(kept: DataFrame) -> list[Any]:
    [run] = runs.find(keys_in_plan(kept))
    assert isinstance(run, FilterRun)
    return [branching.branches for branching in run.plan.branchings if branching.branches is not None]


@pytest.mark.parametrize("name", [*KINDS, "side", "s"])
def test_conditions_get_a_branch_for_each_class(frame: DataFrame, tmp_path: Path, name: str) -> None:
    kept = tw.where(frame, "id >= 10", *CONDITIONS, route_by=name, sample=True, state=tmp_path)
    [stage] = tw.explain(kept).to_dict()["wheres"][0]["routing"]["stages"]
    assert stage["classifier"]["attributes"] == [name]
    assert stage["benefit"]["saving"] > 0.1
    assert stage["predicates"] == CONDITIONS
    assert len({tuple(one["order"]) for one in stage["classes"]}) > 1
    assert ids(kept) == ids(frame.where("id >= 10 and side = 3"))
    plan = filter_of(kept)
    assert plan.count("WHEN") == len(stage["classes"]) - 1
    assert plan.count("RLIKE") == SIDES * len(stage["classes"])  # no branch is taken apart
    assert plan.index(">= 10") < plan.index("CASE")  # what is cheap stays ahead
    again = tw.where(frame, "id >= 10", *CONDITIONS, route_by=name, state=tmp_path)
    assert str(branches_of(again)) == str(branches_of(kept))  # as texts: NaN equals nothing
    assert ids(again) == ids(kept)
    other = tw.where(frame, "id >= 10", *CONDITIONS, route_by="id", state=tmp_path)
    assert "of another query" in str(tw.explain(other))
    assert not branches_of(other)


def test_branches_are_not_made_where_they_save_nothing(frame: DataFrame) -> None:
    kept = tw.where(frame, "s rlike '^side-[0-2]'", "s rlike '.*[a-z]-[0-9]$'", route_by="auto", sample=True)
    [stage] = tw.explain(kept).to_dict()["wheres"][0]["routing"]["stages"]
    assert stage["classifier"] is None
    assert "CASE" not in filter_of(kept)
    assert "one order is best" in str(tw.explain(kept))
    assert kept.count() == frame.where("side < 3").count()


@pytest.mark.thorough
def test_errors_do_not_depend_on_branches(frame: DataFrame) -> None:
    raising = [
        f"case when side = 3 and id % 100 = {side} then raise_error('row ' || id) else s rlike '^.*e-[^{side}]$' end"
        for side in range(SIDES)
    ]
    for on_error, route_by in (("drop", "text"), ("drop", None)):
        kept = tw.where(frame, *raising, route_by=route_by, sample=True, on_error=on_error)  # type: ignore[arg-type]
        assert bool(branches_of(kept)) == (route_by is not None)
        assert ids(kept) == ids(frame.where("side = 3 and id % 100 > 2"))
    for route_by in ("text", None):
        with pytest.raises(Exception, match="row "):
            ids(tw.where(frame, *raising, route_by=route_by, sample=True))


def test_no_condition_runs_as_written_in_a_branch(frame: DataFrame) -> None:
    # Overall the second comes last, and could run as written: it raises on rows that the first rejects. In the branch
    # of sides 0 and 1 it comes first.
    first = "concat(side, '-', id % 50) NOT rlike '^([23]-.*|[01]-7)$'"
    second = "CASE WHEN side < 2 THEN 1 / CASE id % 50 WHEN 7 THEN 0 WHEN 8 THEN 0.5 ELSE 1 END > 1 ELSE true END"
    conditions = [tw.expr(first, cost=1), tw.expr(second, cost=1.2)]
    kept = tw.where(frame, *conditions, route_by="side", sample=True)
    [branches] = branches_of(kept)
    assert (1, 0) in [branch.order for branch in branches.branches]
    assert ids(kept) == ids(frame.where("side < 2 AND id % 50 = 8"))


@pytest.mark.thorough
def test_a_driven_stream_branches_and_goes_on_so_after_a_restart(
    spark: SparkSession, frame: DataFrame, tmp_path: Path
) -> None:
    copies = 2  # in a file: a tenth of a micro-batch is looked at
    large = frame.crossJoin(spark.range(copies).toDF("copy")).drop("copy").coalesce(1)
    for number in range(2):
        large.write.parquet(f"{tmp_path}/in/{number}")
    # After all conditions, or a slow moment of the machine may put it between them.
    anything = tw.predicate(lambda number: number >= 0, on="id", takes="numpy", name="anything", after=CONDITIONS)

    def run() -> tuple[dict[str, Any], dict[str, Any]]:
        source = spark.readStream.schema(frame.schema).option("maxFilesPerTrigger", 1).parquet(f"{tmp_path}/in/*")
        metrics = tw.Metrics(spark)
        stream = tw.stream(source, *CONDITIONS, anything, checkpoint=tmp_path / "checkpoint", route_by="auto")
        planned: dict[str, Any] = tw.explain(stream).to_dict()["wheres"][0]
        query = stream.to_files(tmp_path / "out", availableNow=True)
        assert query.awaitTermination(120)
        metrics.close()
        about: dict[str, Any] = tw.explain(query).to_dict()["wheres"][0]
        if metrics.latest:
            assert metrics.latest[query.id]["wheres"][0]["routing"]["considered"] == about["routing"]["considered"]
        return planned, about

    def branches(about: dict[str, Any]) -> list[Any]:
        return [stage["classes"] for stage in about["routing"]["stages"] if stage["runs_in"] == "Spark"]

    before, first = run()
    assert "nothing sampled" in before["why"]
    assert "sampled" in first["why"]
    [classes] = branches(first)
    assert len(classes) > 1
    large.write.parquet(f"{tmp_path}/in/2")
    again, _ = run()
    assert "as learnt" in again["why"]
    assert branches(again) == [classes]
    found = sorted(row["id"] for row in spark.read.parquet(f"{tmp_path}/out").collect())
    assert found == sorted(3 * copies * ids(frame.where("side = 3")))
