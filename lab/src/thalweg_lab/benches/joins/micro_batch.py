"""micro-batch: where the time of a micro-batch goes, in common-key and in two-way, and of the first micro-batch.

Spark tells the phases of a micro-batch and the times of its stages: tasks that read and pack rows, tasks that join
them, and the task that sums up results, which is the benchmark's own. The table in
docs/guides/joins.md has these figures.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from thalweg_lab.benches.filters.race import Tick
from thalweg_lab.benches.joins import common_key, two_way
from thalweg_lab.benches.joins.streams import configured, files, stream_of, thalweg_join
from thalweg_lab.benches.joins.work import FILL, JoinWorkload
from thalweg_lab.results import Result, claim

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "micro-batch"
ROWS, BATCHES = 100_000, 8
SCENARIOS = (two_way, common_key)
STAGES = ("read and pack rows", "join, and commit the state", "sum up the results")


@dataclass(frozen=True)
class MicroBatch:
    """The times of a micro-batch, in milliseconds."""

    phases: Mapping[str, float]  # by Spark's names
    stages: list[float]  # in their order
    commit: float  # of the state, in all tasks


def measure(spark: SparkSession, tick: Tick, *, rows: int = ROWS, batches: int = BATCHES) -> list[Result]:
    """The medians of micro-batches with full windows, and the first micro-batch of a query."""
    results: list[Result] = []
    for number, scenario in enumerate(SCENARIOS):
        workload = scenario.make_workload(rows, batches)
        with files(workload) as folder:
            first, *_ = profiled(spark, folder, workload)
            _, *measured = profiled(spark, folder, workload)
        results += report(scenario.NAME, first, measured[len(FILL) - 1 : -1])
        tick(number + 1, len(SCENARIOS))
    return results


def report(scenario: str, first: MicroBatch, measured: list[MicroBatch]) -> list[Result]:
    """The figures of a scenario; nothing is asked of them."""

    def row(measure: str, milliseconds: float, note: str = "") -> Result:
        return claim(NAME, f"{scenario}: {measure}, ms", round(milliseconds), "is shown", holds=True, note=note)

    note = f"median of {len(measured)} micro-batches"
    total = median(batch.phases["triggerExecution"] for batch in measured)
    added = median(batch.phases["addBatch"] for batch in measured)
    stages = {name: median(batch.stages[place] for batch in measured) for place, name in enumerate(STAGES)}
    return [
        row("a micro-batch", total, note),
        row("Spark plans it and writes its logs", total - added, note),
        *(row(name, milliseconds, note) for name, milliseconds in stages.items()),
        row("of which the commit of the state, in all tasks", median(batch.commit for batch in measured), note),
        row("Spark starts jobs and tasks", added - sum(stages.values()), note),
        row("the first micro-batch of a query", first.phases["triggerExecution"], "three batches of rows"),
        *(
            row(f"the first: {name}", milliseconds, "three batches of rows")
            for name, milliseconds in zip(STAGES, first.stages, strict=True)
        ),
    ]


def profiled(spark: SparkSession, folder: str, workload: JoinWorkload) -> list[MicroBatch]:
    """Run a join, and tell the times of its micro-batches."""
    stages: dict[int, list[float]] = {}
    total = " + ".join(f"{name}_v" for name in workload.names)

    def take(results: DataFrame, number: int) -> None:
        before = _last_stage(spark)
        results.selectExpr("count(*)", f"sum({total})").collect()
        stages[number] = _stage_times(spark, before)

    with configured(spark), tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as checkpoint:
        frames = {name: stream_of(spark, f"{folder}/{name}") for name in workload.names}
        joined = thalweg_join(spark, frames, workload)
        writer = joined.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        progress = query.recentProgress
    return [
        MicroBatch(
            dict(each.durationMs), stages[each.batchId], sum(state.commitTimeMs for state in each.stateOperators)
        )
        for each in progress
        if each.numInputRows
    ]


def _last_stage(spark: SparkSession) -> int:
    return max((stage.stageId() for stage in _all_stages(spark)), default=-1)


def _stage_times(spark: SparkSession, after: int) -> list[float]:
    """The milliseconds of the stages that have run after a stage."""
    stages = [stage for stage in _all_stages(spark) if stage.stageId() > after and stage.completionTime().isDefined()]
    return [
        float(stage.completionTime().get().getTime() - stage.submissionTime().get().getTime())
        for stage in sorted(stages, key=lambda stage: int(stage.stageId()))
    ]


def _all_stages(spark: SparkSession) -> list[Any]:
    """The stages that Spark knows of."""
    context, gateway = spark.sparkContext._jsc.sc(), spark.sparkContext._gateway  # noqa: SLF001 - no public way
    assert gateway is not None  # noqa: S101 - the session has started
    context.listenerBus().waitUntilEmpty()
    quantiles = gateway.new_array(gateway.jvm.double, 0)
    found = context.statusStore().stageList(None, False, False, quantiles, None)  # noqa: FBT003 - Spark's signature
    return [found.apply(place) for place in range(found.size())]
