"""`tw.join`: a window join of any number of streams and tables as one stateful operator, in probe orders that adapt.

The passes are listed in `join`, in their order: DataFrames and texts become a frozen `JoinQuery`, the query a frozen
`JoinPlan`, and the plan a DataFrame.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from thalweg.drift import DETECTORS
from thalweg.joinorder import PLANNERS
from thalweg.keywords import checks_keywords
from thalweg.mjoin.layouts import PLAIN
from thalweg.ordering import POLICIES
from thalweg.registry import find
from thalweg.spark import runs
from thalweg.spark.folder import folder_for
from thalweg.spark.joins.batch_skew import find_heavy_values
from thalweg.spark.joins.condition import parse_on
from thalweg.spark.joins.event_time import LATEST_TIME, MILLISECOND, choose_result_time
from thalweg.spark.joins.explain import JoinRun
from thalweg.spark.joins.how import check_conditions, choose_join_type, keep_preserved_rows, shown_inputs
from thalweg.spark.joins.idle import choose_idle_rule
from thalweg.spark.joins.inputs import apply_condition, check_inputs
from thalweg.spark.joins.late import COUNT, LateRows, check_late
from thalweg.spark.joins.lower import lower, pack_tables, prepare_frames
from thalweg.spark.joins.plan import (
    JoinPlan,
    check_rates,
    check_spark,
    choose_layout,
    choose_splitting,
    is_local,
    suggest_settings,
)
from thalweg.spark.joins.publish import check_changing, publish_tables
from thalweg.spark.joins.query import Output, build_query, check_output, choose_casts
from thalweg.spark.joins.ranges import narrow_windows
from thalweg.spark.joins.spark_conditions import divide_residuals
from thalweg.spark.joins.spec import forget_old_reports
from thalweg.spark.joins.table import ChangingTable
from thalweg.spark.joins.text import microseconds, parse_select
from thalweg.spark.worker_python import check_worker_python

if TYPE_CHECKING:
    from datetime import timedelta

    from pyspark.sql import DataFrame

__all__ = ["COUNT", "DELAY", "join"]

DELAY = "1 minute"  # costs state, not speed: results do not wait for the watermark, unless windows are by count


@checks_keywords("tw.join")
def join(
    streams: Mapping[str, DataFrame | ChangingTable],
    on: str,
    windows: str | timedelta | Mapping[str, str | timedelta | None],
    event_time: str | Mapping[str, str],
    *,
    how: str = "inner",
    delay: str | timedelta = DELAY,
    idle: str | timedelta | None = None,
    planner: str = "q-aware",
    policy: str = "a-greedy",
    drift: str = "bcs",
    output: Output = "append",
    select: Sequence[str] | None = None,
    cells: int | None = None,
    rates: Mapping[str, float] | None = None,
    event_time_of: str | None = LATEST_TIME,
    late: str | os.PathLike[str] = COUNT,
    state: str | os.PathLike[str] | None = None,
) -> DataFrame:
    """Join windows of streams, and tables, all at once.

    A combination of rows is a result if the condition holds for it and, with T the latest event time in it, each row is
    younger than its stream's window at T. That depends on nothing else: not on batches, cells or the order of probing.

    Parameters
    ----------
    streams
        DataFrames by the names they have in `on`. In a streaming query a static DataFrame is a table, whose rows never
        expire; it is read now and travels with the query, so it may have 64 MB. A table that changes while the query
        runs, or is larger, is given as `tw.table`. If all are static, it is a batch job.
    on
        A conjunction: equalities of two columns, ``"R1.pid = R2.pid AND R2.ip = T.ip"``, must connect all inputs; other
        conditions on one input filter it, and conditions on several inputs are applied to candidates.
    windows
        How long rows stay: ``"10 minutes"`` for all streams, or for each by name; ``"100 rows"`` of the same key, where
        one key joins all; None for an input whose rows never expire.
    event_time
        The column of event time, of all streams or of each by name.
    how
        ``"inner"``; ``"left"`` or ``"right"``, where rows of the first or the last input without a match of all others
        are results, too, with NULL for the others; ``"full"`` for both of two inputs; ``"semi"``, the rows of the first
        input that have a match; ``"anti"``, those that have none.
    delay
        How late rows may come, for streams that have no ``withWatermark`` of their own.
    idle
        How long a stream may send nothing before the watermark goes on without it; by default it holds the watermark.
    planner, policy, drift
        They choose probe orders: a planner of `thalweg.joinorder`; a policy of `thalweg.ordering` and a detector of
        `thalweg.drift` for star joins.
    output
        ``"append"`` gives each result once, when it appears. ``"changelog"`` adds a column ``change``: 1 when a result
        appears and -1 when one of its rows leaves its window, so that its sum counts the current join.
    select
        The result's columns: ``["R1.size", "R2.size AS s2"]``. All by default; only needed columns are sent and kept.
        Without a name of its own ``R1.size`` is called ``R1_size``.
    cells
        Into how many parts the work is cut; by default as many as there are shuffle partitions, at most two a core. A
        restarted query keeps its number of cells.
    rates
        Rows a second of each stream, roughly; only their ratios matter, and only where no single key joins all.
    event_time_of
        Which time the column ``event_time`` of the result has: ``"latest"``, the latest time of its rows, or that of a
        stream. The column has a watermark, so that Spark's stateful operators and other joins can follow. None for no
        such column.
    late
        ``"count"`` counts rows that come after the delay; a folder keeps them there as well, for each stream.
    state
        A folder, shared by driver and workers, where to keep learnt statistics, so that the next run starts with them.

    Examples
    --------
    >>> joined = join({"a": clicks, "b": views}, "a.user = b.user", "10 minutes", "ts")  # doctest: +SKIP
    """
    # The arguments.
    check_worker_python()
    inputs = check_inputs(streams, windows, event_time)
    late_folder = check_late(late)
    columns = {each.name: each.frame.columns for each in inputs}
    spark = inputs[0].frame.sparkSession
    is_streaming = any(each.frame.isStreaming for each in inputs)
    parsed = parse_on(on, columns)
    if is_streaming and output == "append":  # a changelog says when results leave the windows that the user knows
        inputs = narrow_windows(inputs, parsed, spark.conf.get("spark.sql.session.timeZone") or "")
    join_type = choose_join_type(how, inputs)
    condition = keep_preserved_rows(parsed, join_type)
    selected = parse_select(select, columns, shown_inputs(join_type, columns))
    check_output(output, selected)
    result_time = choose_result_time(event_time_of, inputs, selected, join_type)
    check_changing(inputs, state)
    find(planner, PLANNERS, "planner")
    find(policy, POLICIES, "policy")
    find(drift, DETECTORS, "detector")
    if is_streaming:
        check_spark(spark)

    # The query.
    delay_of_streams = microseconds(delay, "delay")
    idle_rule = choose_idle_rule(idle, inputs, delay_of_streams) if is_streaming else None
    given_inputs = inputs
    inputs = apply_condition(inputs, condition, delay_of_streams + result_time.shift * MILLISECOND)
    casts = choose_casts(inputs, condition)
    conditions = divide_residuals(condition.residuals, inputs, spark)
    check_conditions(conditions, join_type)
    query = build_query(inputs, condition, conditions, selected, casts, result_time.streams, join_type, output)

    # The plan.
    table_names = tuple(each.name for each in inputs if each.is_table)
    weights = check_rates(query, rates, table_names)
    texts = [text for _, text in (*condition.filters, *condition.computed)] + [text for text, _ in condition.residuals]
    layout = choose_layout(query, texts, weights, cells, spark, result_time.shift)
    frames = prepare_frames(inputs, layout, casts)
    tables = pack_tables(frames, layout, [each.name for each in inputs if each.is_table and not each.changing])
    key = runs.new_key()
    folder = folder_for(key, state).url
    versions, version_bytes = publish_tables(given_inputs, condition, layout, casts, folder, key)
    splitting, notes = choose_splitting(
        layout,
        [*map(len, tables.values()), *version_bytes],
        key=key,
        folder=folder,
        is_streaming=is_streaming,
        is_shared=state is not None or is_local(spark),
    )
    layouts, findings = (PLAIN, ()) if is_streaming else find_heavy_values(frames, layout)
    plan = JoinPlan(
        key=key,
        layout=layout,
        folder=folder,
        options={"planner": planner, "policy": policy, "drift": drift},
        rates=weights,
        result_filters=conditions.in_spark,
        tables=table_names,
        versions=versions,
        late=LateRows(late_folder, {each.name: each.arrow_types for each in inputs}) if late_folder else None,
        is_streaming=is_streaming,
        idle_rule=idle_rule,
        splitting=splitting,
        layouts=layouts,
        notes=(*suggest_settings(spark, layout.shares.cells, is_streaming=is_streaming), *notes, *findings),
    )

    # The run.
    if state is not None:
        forget_old_reports(plan)
    runs.record(JoinRun(key, plan, {each.name: each.changing for each in inputs if each.changing}))
    return lower(plan, inputs, frames, tables)
