"""skew: one key in most rows of a stream; its cell's work when the key is split, and the cost of looking for it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from thalweg.kernels import compile_kernels
from thalweg.mjoin import Cell
from thalweg.mjoin.keys import mixed
from thalweg.mjoin.layouts import PLAIN, split_by_cells
from thalweg.mjoin.marks import together
from thalweg.mjoin.shares import Shares
from thalweg.mjoin.skew import SkewReport, SkewStatistics, frequent_values
from thalweg.ordering.types import Integers
from thalweg.spark.joins.layout import HASH_PREFIX, Layout
from thalweg.spark.joins.packing import packer
from thalweg.spark.joins.splitting import Splitting
from thalweg_lab.benches.filters.race import Tick
from thalweg_lab.benches.joins.cells import prepared
from thalweg_lab.benches.joins.work import START, JoinWorkload, StreamKeys, Tables, random_batches
from thalweg_lab.results import Result, at_most

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "skew"
ROWS, WINDOW, BATCHES, ROUNDS = 20_000, 2, 8, 101
PACKED = 5  # times the rows of a batch, for a task that packs many
CELLS = 8
MOST_MILLISECONDS = 1.0  # that looking for frequent keys may take a task; a micro-batch takes hundreds
HOT = {"A": 0.6, "B": 0.01}  # the parts of the streams' rows that have one key
SHARES = Shares((CELLS,), {name: frozenset([0]) for name in HOT})


@dataclass(frozen=True)
class SkewRun:
    """The work of all cells: results and state of all batches, rows and time of each cell in the last batch."""

    results: int
    state_bytes: int
    rows: Integers
    seconds: NDArray[np.float64]

    @property
    def busiest(self) -> float:
        """New rows of the busiest cell, times the mean."""
        return float(self.rows.max() / self.rows.mean())


def measure(
    spark: SparkSession | None, tick: Tick, *, rows: int = ROWS, batches: int = BATCHES, rounds: int = ROUNDS
) -> list[Result]:
    """Cells with and without splitting, and a task that packs even keys with and without looking for heavy keys."""
    del spark  # cells and tasks are measured, without Spark
    compile_kernels()
    skewed, even = (make_workload(rows, batches, is_skewed=is_skewed) for is_skewed in (True, False))
    split, plain = drive(skewed, splits=True), drive(skewed, splits=False)
    if split.results != plain.results:
        raise AssertionError(f"{NAME}: {split.results} results with the key split, {plain.results} without")
    tick(1, 3)
    looked, unlooked = drive(even, splits=True), drive(even, splits=False)
    tick(2, 3)
    packing = {size: packing_seconds(size, rounds) for size in (rows, PACKED * rows)}
    tick(3, 3)
    note = (
        f"{rows:,} and {rows // 5:,} rows a batch, of which {HOT['A']:.0%} and {HOT['B']:.0%} have one key; "
        f"{CELLS} cells, the last of {batches} batches; unsplit {plain.busiest:.2f} times the mean"
    )
    spent = float(split.seconds.max() / plain.seconds.max())
    return [
        at_most(NAME, "new rows of the busiest cell, times the mean", split.busiest, 1.25, note),
        at_most(NAME, "processor time of the busiest cell, share of that unsplit", spent, 0.5, note),
        at_most(
            NAME,
            "state of even keys, times the bytes without looking",
            looked.state_bytes / unlooked.state_bytes,
            1,
            f"{looked.state_bytes:,} bytes",
        ),
        *(
            at_most(
                NAME,
                f"ms that looking takes a task of {size:,} rows with even keys",
                1e3 * (looking - not_looking),
                MOST_MILLISECONDS,
                f"{1e3 * looking:.2f} and {1e3 * not_looking:.2f} ms with packing; medians of {rounds} rounds",
            )
            for size, (looking, not_looking) in packing.items()
        ),
    ]


def make_workload(rows: int, batches: int, *, is_skewed: bool) -> JoinWorkload:
    """Two streams on one key."""
    made = random_batches({"A": StreamKeys({"k": rows}, rows), "B": StreamKeys({"k": rows}, rows // 5)}, batches)
    heated = [_heated(tables) for tables in made] if is_skewed else made
    return JoinWorkload(on=((("A", "k"), ("B", "k")),), window=WINDOW, batches=heated)


def _heated(tables: Tables) -> Tables:
    found = {}
    for name, table in tables.items():
        is_hot = np.random.default_rng(table.num_rows).random(table.num_rows) < HOT[name]
        found[name] = table.set_column(0, "k", pa.array(np.where(is_hot, 7, table["k"].to_numpy())))
    return found


def drive(workload: JoinWorkload, *, splits: bool) -> SkewRun:
    """Let all cells take batches in, by the layouts that a ledger decides or by the first."""
    query = workload.query
    cells = [Cell(query) for _ in range(CELLS)]
    ledger, layouts, latest, results = SkewStatistics(), PLAIN, START, 0
    rows, seconds, state = np.zeros(CELLS, np.int64), np.zeros(CELLS), 0
    for arrivals in prepared(workload):
        own: list[dict[str, list[pa.RecordBatch]]] = [{} for _ in cells]
        reports = []
        for name, batch in arrivals.items():
            hashed = _hashes(batch)
            deadline = pc.max(batch["ts"]).as_py() + workload.seconds * 1_000_000
            reports.append(SkewReport(name, batch.num_rows, deadline, {0: frequent_values(hashed)}))
            for numbers, part in split_by_cells(layouts, SHARES, name, {0: hashed}, batch):
                for number in numbers:
                    own[number].setdefault(name, []).append(part)
        state = 0
        for number, cell in enumerate(cells):
            given = {name: together(each, query.input(name).schema) for name, each in own[number].items()}
            start = time.process_time()
            step = cell.step(given, latest)
            seconds[number] = time.process_time() - start
            rows[number] = sum(step.statistics.rows.values())
            results += step.results.num_rows
            state += step.statistics.state_bytes
        if splits:
            ledger = ledger.after(layouts, reports, SHARES)
            layouts = ledger.next_layouts(latest, SHARES)
        latest = max(pc.max(batch["ts"]).as_py() for batch in arrivals.values())
    return SkewRun(results, state, rows, seconds)


def packing_seconds(rows: int, rounds: int) -> tuple[float, float]:
    """Processor time of a task that looks for frequent keys, and of a task that does not."""
    workload = make_workload(rows, 1, is_skewed=False)
    layout, batch = Layout(workload.query, SHARES), prepared(workload)[0]["A"]
    batch = batch.append_column(f"{HASH_PREFIX}0", pa.array(_hashes(batch)))
    with TemporaryDirectory() as folder:
        looks = packer(layout, "A", "key", Splitting(folder, "join", "run", SHARES))
        tasks = {"looks": looks, "does not": packer(layout, "A", "key")}
        seconds: dict[str, list[float]] = {name: [] for name in tasks}
        for _ in range(rounds):
            for name, task in tasks.items():
                start = time.process_time()
                for _ in task(iter([batch])):
                    pass
                seconds[name].append(time.process_time() - start)
    return median(seconds["looks"]), median(seconds["does not"])


def _hashes(batch: pa.RecordBatch) -> Integers:
    return mixed(batch["k"].to_numpy().view(np.uint64)).view(np.int64)
