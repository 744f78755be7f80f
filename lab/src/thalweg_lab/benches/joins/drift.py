"""drift: every twenty batches the two arms of a hub change parts, in selectivity and in rate.

Five streams, B2 - B1 - A - C1 - C2: the hub A has most rows and a short window, the arms have long windows, like
payments that are joined with the sessions and offers of the last minutes. In each phase a row of the hub matches many
rows of one arm, whose streams are busy then, and hardly any of the other arm. So a row of the hub that walks the right
arm first is dropped at once, and in the wrong order makes many combinations, with drop-probing as without it.

The time of a batch is the sum of the times of each stream's rows, and the time of a stream depends on its own order
only. So the best orders are found stream by stream, from runs with every order that the stream can have: over all
batches for the best fixed orders, and over the batches of each phase for the clairvoyant; on fewer rows, as all orders
have to be tried. Neither measures anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from thalweg.mjoin import JoinQuery, TimeWindow
from thalweg_lab.benches.filters.race import AGAIN, THALWEG, Measurement, Tick, part_of, race
from thalweg_lab.benches.joins.cells import Orders, drive, orders_of, prepared
from thalweg_lab.benches.joins.work import SECOND, JoinWorkload, StreamKeys, Tables, later, random_batches
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "drift"
HUB, ARMS = "A", ("B", "C")
PHASE, PHASES = 20, 4  # batches, and how often the arms change parts
TRIES = 2  # of each order, the faster of which counts, in the search for the best orders
HUB_SECONDS, ARM_WINDOW = 2, 6  # how long a row of the hub stays; batches for which a row of an arm stays
ARM_SHARE = 10  # the hub sends so many times the rows of an arm's stream
BUSY = 2  # times the rows that a stream of the other arm sends
OFTEN = 30  # matches that a row of the hub has in the window of the busy arm
CLAIRVOYANT, FIXED = "a clairvoyant", "the best fixed orders"


@dataclass(frozen=True)
class DriftSetting:
    """A workload with drift, and what is asked of a cell that adapts."""

    name: str
    rows: int  # of the hub, in a batch
    fewer: int  # times fewer rows tell which orders are best
    rarely: float  # matches that a row of the hub has in the window of the other arm
    is_hub_first: bool  # among the inputs; where it is last, it finds the rows that came with it
    than_fixed: float  # times as fast as the best fixed orders
    than_clairvoyant: float
    rounds: int


HUB_LAST = DriftSetting(NAME, 100_000, 5, 0.002, False, 1.5, 0.95, 3)  # noqa: FBT003 - a table of settings


def make_workload(rows: int, phase: int, setting: DriftSetting = HUB_LAST) -> JoinWorkload:
    """Phases in turn; the window is that of the arms."""
    batches: list[Tables] = []
    for number in range(PHASES):
        busy, rare = (ARMS[(number + at) % len(ARMS)] for at in range(len(ARMS)))
        sent = {busy: BUSY * rows // ARM_SHARE, rare: rows // ARM_SHARE}
        matches = {busy: OFTEN, rare: setting.rarely}
        near = {arm: max(round(sent[arm] * ARM_WINDOW / matches[arm]), 1) for arm in ARMS}
        arms = dict[str, StreamKeys]()
        for arm in ARMS:
            far = sent[arm] * ARM_WINDOW  # one match
            arms[f"{arm}1"] = StreamKeys({arm.lower(): near[arm], f"{arm.lower()}_far": far}, sent[arm])
            arms[f"{arm}2"] = StreamKeys({f"{arm.lower()}_far": far}, sent[arm])
        hub = {HUB: StreamKeys({arm.lower(): near[arm] for arm in ARMS}, rows)}
        streams = hub | arms if setting.is_hub_first else arms | hub
        batches += later(random_batches(streams, phase, seed=number), number * phase)
    on = [((HUB, arm.lower()), (f"{arm}1", arm.lower())) for arm in ARMS]
    on += [((f"{arm}1", f"{arm.lower()}_far"), (f"{arm}2", f"{arm.lower()}_far")) for arm in ARMS]
    return JoinWorkload(on=tuple(on), window=ARM_WINDOW, batches=batches)


def make_query(workload: JoinWorkload) -> JoinQuery:
    """The join, in which the hub has a shorter window."""
    short = TimeWindow(HUB_SECONDS * SECOND)
    inputs = (replace(each, window=short) if each.name == HUB else each for each in workload.query.inputs)
    return replace(workload.query, inputs=tuple(inputs))


def measure(
    spark: SparkSession | None,
    tick: Tick,
    *,
    rows: int | None = None,
    phase: int = PHASE,
    rounds: int | None = None,
    setting: DriftSetting = HUB_LAST,
) -> list[Result]:
    """A cell that adapts against the best orders that never change, and the best orders of each phase."""
    del spark  # the orders are measured, without Spark
    rows, rounds = rows or setting.rows, rounds or setting.rounds
    workload = make_workload(rows, phase, setting)
    query, taken = make_query(workload), prepared(workload)
    few = prepared(make_workload(max(rows // setting.fewer, ARM_SHARE), phase, setting))
    drive(query, few[:phase])  # compiles all kernels
    fixed, best = _searched(query, few, phase, part_of(tick, 0, 2))

    def best_at(number: int) -> Orders | None:
        return best[number // phase] if number % phase == 0 else None

    def knowing() -> Measurement:
        return drive(query, taken, best_at, orders=best[0], drop_probing=True).measurement()

    def adapting() -> Measurement:
        return drive(query, taken).measurement()

    contenders: dict[str, Callable[[], Measurement]] = {
        THALWEG: adapting,
        AGAIN: adapting,
        CLAIRVOYANT: knowing,
        FIXED: lambda: drive(query, taken, orders=fixed, drop_probing=True).measurement(),
    }
    note = f"one cell, {PHASES} phases of {phase} batches with {rows:,} rows of the hub; processor time"
    found = race(setting.name, contenders, rounds, part_of(tick, 1, 2), note)
    return [
        found.faster(FIXED, setting.than_fixed),
        found.faster(CLAIRVOYANT, setting.than_clairvoyant),
        found.control(),
    ]


def _searched(
    query: JoinQuery, batches: Sequence[Mapping[str, pa.RecordBatch]], phase: int, tick: Tick
) -> tuple[Orders, list[Orders]]:
    """The best orders for all batches, and for the batches of each phase."""
    choices = orders_of(query)
    first = {name: orders[0] for name, orders in choices.items()}
    seconds: dict[str, dict[tuple[str, ...], list[float]]] = {name: {} for name in choices}
    runs = [(name, order) for name, orders in choices.items() for order in orders]
    for number, (name, order) in enumerate(runs):
        tries = [drive(query, batches, orders=first | {name: order}, drop_probing=True).seconds for _ in range(TRIES)]
        starts = range(0, len(batches), phase)
        seconds[name][order] = [min(sum(batch_seconds[at : at + phase]) for batch_seconds in tries) for at in starts]
        tick(number + 1, len(runs))

    def best(phases: Sequence[int]) -> Orders:
        return {
            name: min(found, key=lambda order: sum(found[order][at] for at in phases))
            for name, found in seconds.items()
        }

    return best(range(PHASES)), [best([at]) for at in range(PHASES)]
