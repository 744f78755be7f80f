"""Finds the frequent keys of a batch job before it starts, from the first rows of its inputs.

A batch job has no micro-batches to learn from: its rows are sent once. So some rows of each large input are looked at
when the join is defined, where that costs little (`costly_step`). A sample that misleads costs time and no result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from thalweg.mjoin.layouts import PLAIN, ActiveLayouts
from thalweg.mjoin.skew import LEAST_ROWS, SkewReport, SkewStatistics, frequent_values
from thalweg.spark.first_rows import NoSampleError, costly_step, estimated_size, first_rows
from thalweg.spark.joins.layout import Layout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LEAST_BYTES = 64 << 20  # of all inputs together: below that the job is over before splitting pays
SAMPLE_ROWS = 20_000  # of each input
COLUMN_BYTES = 8  # as Spark estimates most columns


def find_heavy_values(frames: Mapping[str, DataFrame], layout: Layout) -> tuple[ActiveLayouts, tuple[str, ...]]:
    """The layout of a batch job with its frequent keys split, and notes on it."""
    if layout.shares.cells == 1 or layout.query.has_count_windows or layout.query.kind != "inner":
        return PLAIN, ()
    sizes = {name: estimated_size(frame) for name, frame in frames.items()}
    if sum(size or 0 for size in sizes.values()) < LEAST_BYTES:
        return PLAIN, ()
    reports, notes = [], []
    for name, frame in frames.items():
        rows = max((sizes[name] or 0) // (COLUMN_BYTES * len(frame.columns)), LEAST_ROWS)
        try:
            reports.append(report_on(name, frame, layout, rows))
        except NoSampleError as error:
            notes.append(f"frequent keys of {name} are not known: {error}")
    heavy = SkewStatistics().after(PLAIN, reports, layout.shares).next_layouts(0, layout.shares).heavy
    if heavy:
        notes.append(f"{len(heavy)} frequent keys are split over cells")
    return ActiveLayouts(heavy=heavy), tuple(notes)


def report_on(name: str, frame: DataFrame, layout: Layout, rows: int) -> SkewReport:
    """The frequent values among the first rows of an input, as if all of its rows were like these."""
    from pyspark.sql import functions as f

    step = costly_step(frame)
    if step is not None:
        raise NoSampleError(f"its first rows cost as much as all ({step})")
    hashed = list(layout.hashed_columns(name))
    columns = frame.columns[len(frame.columns) - len(hashed) :]  # as `prepare_frames` orders them
    if not hashed:
        return SkewReport(name, rows)
    sample = first_rows(frame, [f.col(column) for column in columns], SAMPLE_ROWS)
    scale = rows / max(sample.num_rows, 1)
    frequent = {
        number: {
            value: count * scale
            for value, count in frequent_values(sample.column(place).combine_chunks().drop_null().to_numpy()).items()
        }
        for place, number in enumerate(hashed)
    }
    return SkewReport(name, rows, 0, frequent)
