"""ablation: drop-probing against plain nested probing on a star, as more and more rows survive (property 8.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thalweg_lab.benches.filters.race import Tick
from thalweg_lab.benches.joins.cells import drive, prepared
from thalweg_lab.benches.joins.work import JoinWorkload, StreamKeys, random_batches
from thalweg_lab.results import Result, at_most

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "ablation"
ROWS, WINDOW, BATCHES, MATCHES = 10_000, 5, 10, 4.0
SURVIVING = (0.01, 0.05, 0.2, 0.5)  # shares of the hub's rows
LEAVES = ("B", "C", "D")


def measure(spark: SparkSession | None, tick: Tick, *, rows: int = ROWS, batches: int = BATCHES) -> list[Result]:
    """Probes and intermediate combinations of a hub with three leaves, with and without drop-probing."""
    del spark  # the cell's work is counted, without Spark
    results = []
    for number, share in enumerate(SURVIVING):
        workload = make_workload(rows, batches, share)
        query, taken = workload.query, prepared(workload)
        with_drops = drive(query, taken, drop_probing=True)
        nested = drive(query, taken, drop_probing=False)
        if (with_drops.results, with_drops.checksum) != (nested.results, nested.checksum):
            raise AssertionError(f"{NAME}: different results with {share:.0%} surviving")
        tick(number + 1, len(SURVIVING))
        note = f"{share:.0%} of the hub's rows survive; {MATCHES:g} matches in each leaf where there are any"
        for counted, with_drop_probing, nested_probing in (
            ("intermediate combinations", with_drops.intermediate, nested.intermediate),
            ("probes", with_drops.probes, nested.probes),
        ):
            ratio = with_drop_probing / max(nested_probing, 1)
            text = f"{note}; {with_drop_probing:,} and {nested_probing:,}"
            results.append(
                at_most(NAME, f"{counted}, share of those of nested probing, {share:.0%} survive", ratio, 1, text)
            )
    return results


def make_workload(rows: int, batches: int, share: float) -> JoinWorkload:
    """A hub whose every key matches in a leaf with a probability, independently, so that a share survives them all."""
    each = share ** (1 / len(LEAVES))
    values = round(rows * WINDOW / MATCHES)  # that a leaf has
    hub = {leaf.lower(): round(values / each) for leaf in LEAVES}
    streams = {"A": StreamKeys(hub, rows)} | {leaf: StreamKeys({leaf.lower(): values}, rows) for leaf in LEAVES}
    return JoinWorkload(
        on=tuple((("A", leaf.lower()), (leaf, leaf.lower())) for leaf in LEAVES),
        window=WINDOW,
        batches=random_batches(streams, batches, [WINDOW]),
    )
