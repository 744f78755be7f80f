"""bursty: rates and selectivities change every 20 rounds, and with them the join order that is the best.

In each phase another stream is scarce: few of its rows come, and few of these are selected. A join that begins with the
two other streams has a large intermediate result, of which the last join keeps little. So every fixed join order is bad
in some phase. A micro-batch holds whole rounds of one phase.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import TYPE_CHECKING

from thalweg_lab.benches.filters.race import AGAIN, THALWEG, Tick, part_of, race
from thalweg_lab.benches.session.contenders import run_session
from thalweg_lab.benches.session.work import SECONDS, STREAMS, Packets, files
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "bursty"
ROWS, PHASES, ROUNDS = 200_000, 6, 3  # rows a micro-batch, of a stream that is not scarce; ROUNDS of the race
TRIES = 2  # of each contender in a round: single runs of some ten seconds differ by a tenth
BATCHES = 2  # micro-batches of a phase
PHASE_ROUNDS = BATCHES * SECONDS  # windows of a second
HOSTS = 250
USUAL, SCARCE = (1.0, 0.9), (0.01, 0.02)  # the share of ROWS that come, and the share of large packets among them

FIXED, CLAIRVOYANT = "the best fixed set of plans", "a clairvoyant"
# Output rate counts, and memory decides between plans that all keep up with the streams.
OPTIONS = {"rate_weight": 1.0, "memory_weight": 1e-12, "partitions": 40}
QUERIES = {
    "same source": (
        "SELECT TCP.src AS host, UDP.size AS udp_size, SF.size AS sf_size FROM TCP, UDP, SF "
        "WHERE TCP.src = UDP.src AND UDP.src = SF.src AND TCP.size > 1000 AND UDP.size > 1000 AND SF.size > 1000 "
        "WINDOW [1]"
    ),
    "forwarded": (
        "SELECT TCP.src AS host, UDP.size AS udp_size, SF.size AS sf_size FROM TCP, UDP, SF "
        "WHERE TCP.dest = UDP.src AND UDP.dest = SF.src AND TCP.size > 1000 AND UDP.size > 1000 AND SF.size > 1000 "
        "WINDOW [1]"
    ),
}


def measure(
    spark: SparkSession, tick: Tick, *, rows: int = ROWS, phases: int = PHASES, rounds: int = ROUNDS
) -> list[Result]:
    """The time of a session against that of fixed plans and of plans that are chosen with hindsight."""
    with files(bursts(rows // 20, 1)) as folder:
        best_fixed_set(spark, folder, lambda _done, _total: None)  # compiles what there is to compile
    note = (
        f"{len(QUERIES)} joins of {len(STREAMS)} streams, {phases} phases of {PHASE_ROUNDS} rounds, {BATCHES} "
        f"micro-batches a phase, of {rows:,} rows a stream or of {rows * SCARCE[0]:,.0f} rows of a scarce one; "
        + ", ".join(f"{option} {value:g}" for option, value in OPTIONS.items())
    )
    with files(bursts(rows, phases)) as folder:
        fixed, tried = best_fixed_set(spark, folder, part_of(tick, 0, 2))
        run = partial(run_session, spark, folder, QUERIES)
        contenders = {
            THALWEG: partial(run, OPTIONS),
            AGAIN: partial(run, OPTIONS),
            FIXED: partial(run, OPTIONS, fixed),
            CLAIRVOYANT: partial(run, {**OPTIONS, "scheduler": "clairvoyant"}),
        }
        found = race(NAME, contenders, rounds, part_of(tick, 1, 2), f"{note}; {tried}", tries=TRIES)
    return [found.faster(FIXED, 1.2), found.faster(CLAIRVOYANT, 0.95), found.control()]


def bursts(rows: int, phases: int) -> Packets:
    """Streams of which another one is scarce in each phase."""
    counts: dict[str, list[int]] = {name: [] for name in STREAMS}
    large: dict[str, list[float]] = {name: [] for name in STREAMS}
    for phase, name in product(range(phases), STREAMS):
        share, large_share = SCARCE if name == STREAMS[phase % len(STREAMS)] else USUAL
        counts[name] += [max(round(share * rows), 1)] * BATCHES
        large[name] += [large_share] * BATCHES
    return Packets(counts, large, HOSTS, ends_rounds=True)


def best_fixed_set(spark: SparkSession, folder: str, tick: Tick) -> tuple[dict[str, int], str]:
    """The fastest join tree of each query, found by one run for each of its trees; and a sentence about them.

    The queries are tried one after the other: they are branches of one job, so that their times add up.
    """
    from thalweg_lab.benches.session.fixed_plan import join_trees
    from thalweg_lab.benches.session.plain import parsed

    trees = {name: join_trees(parsed(text)) for name, text in QUERIES.items()}
    fixed = dict.fromkeys(QUERIES, 0)
    spent: list[str] = []
    for place, (name, numbers) in enumerate(trees.items()):
        contenders = {
            order: partial(run_session, spark, folder, QUERIES, OPTIONS, {**fixed, name: number})
            for order, number in numbers.items()
        }
        tried = race(NAME, contenders, 1, part_of(tick, place, len(trees)), "")
        best = tried.best(*numbers)
        fixed[name] = numbers[best]
        others = ", ".join(f"{order} {tried.seconds[order][0]:.2f} s" for order in numbers)
        spent.append(f"best fixed plan of {name!r}: {best} ({others})")
    return fixed, "; ".join(spent)
