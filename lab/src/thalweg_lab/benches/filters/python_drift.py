"""python-drift: six Python predicates whose costs and keep rates change places every 500,000 rows.

Two partitions hold half of each phase, so that each of two workers sees every change.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import permutations
from statistics import fmean
from typing import TYPE_CHECKING, Any

from thalweg_lab.benches.filters import plain
from thalweg_lab.benches.filters.race import AGAIN, THALWEG, Make, Tick, compete, part_of
from thalweg_lab.benches.filters.work import ByPhase, InOrder, bytes_of, expected_cost, predicates_of, tests_of
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "python-drift"
PHASE_ROWS, ROUNDS, TRIES = 500_000, 5, 2
UNIT_SECONDS = 0.3e-6
COSTS = (40, 4, 20, 2, 10, 1)
KEEPS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
SHIFTS = (0, 3, 1, 4)  # a phase each: predicate i has the cost and the keep rate of number i + shift
PARTITIONS = 2

STATIC = "the best single static order"
CLAIRVOYANT = "a clairvoyant"
WATCHED = "Thalweg with drift='bcs'"
AS_GOOD = 0.98  # times as fast: two runs of the same differ by as much
WITHIN = 0.99  # where nothing changes


def measure(spark: SparkSession, tick: Tick, *, rows: int = PHASE_ROWS, rounds: int = ROUNDS) -> list[Result]:
    """Against the best order for the whole stream and a clairvoyant; with and without a detector; `rows` a phase."""
    import thalweg as tw

    total = rows * len(SHIFTS)
    phases = [(_shifted(COSTS, shift), _shifted(KEEPS, shift)) for shift in SHIFTS]
    orders = list(permutations(range(len(COSTS))))
    static = min(orders, key=lambda order: fmean(expected_cost(order, *phase) for phase in phases))
    ideal = [min(orders, key=lambda order: expected_cost(order, *phase)) for phase in phases]
    unit = bytes_of(UNIT_SECONDS)
    tests = [tests_of(*phase, unit) for phase in phases]
    by_phase = partial(ByPhase, span=total // PARTITIONS)
    drifting = [by_phase(parts) for parts in zip(*tests, strict=True)]
    knowing = by_phase([InOrder([part[number] for number in order]) for part, order in zip(tests, ideal, strict=True)])
    written = predicates_of(drifting)

    def thalweg(frame: DataFrame, drift: str = "glr", predicates: Sequence[Any] = written) -> DataFrame:
        return tw.where(frame, *predicates, drift=drift)

    contenders: dict[str, Make] = {
        THALWEG: thalweg,
        AGAIN: thalweg,
        WATCHED: partial(thalweg, drift="bcs"),
        STATIC: lambda frame: plain.chain(frame, [InOrder([drifting[number] for number in static])]),
        CLAIRVOYANT: lambda frame: plain.chain(frame, [knowing]),
    }
    note = f"{len(SHIFTS)} phases of {rows:,} rows over {PARTITIONS} partitions, cold, both others fused by hand"
    frame, small = (spark.range(0, size, 1, PARTITIONS) for size in (total, total // 20))

    found = compete(NAME, frame, contenders, rounds, part_of(tick, 0, 2), note, small=small, tries=TRIES)
    quiet = predicates_of(tests[0])
    steady: dict[str, Make] = {
        THALWEG: partial(thalweg, predicates=quiet),
        AGAIN: partial(thalweg, predicates=quiet),
        WATCHED: partial(thalweg, drift="bcs", predicates=quiet),
    }
    note = f"{total:,} rows over {PARTITIONS} partitions, cold"
    label, steps = "nothing changes", part_of(tick, 1, 2)
    still = compete(NAME, frame, steady, 2 * rounds, steps, note, small=small, label=label, tries=TRIES)
    return [
        found.faster(STATIC, 1.5),
        found.faster(CLAIRVOYANT, 0.95),
        found.faster(THALWEG, AS_GOOD, contender=WATCHED),
        found.control(),
        still.faster(THALWEG, WITHIN, contender=WATCHED),
        still.control(),
    ]


def _shifted(values: tuple[float, ...], shift: int) -> tuple[float, ...]:
    return values[shift:] + values[:shift]
