"""A cap for the memory of a session: queries that do not fit into it together are computed one job after the other.

A round that does not fit alone is not computed: its query waits, and its rows stay on disk.

What counts is the rows that a job holds: those of the rounds of its joins, aggregates and distinct rows, as they were
counted when they came. Rows that only pass through, on their way to a file, and rows that wait on disk do not count.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from thalweg.charts import Weights
from thalweg.spark.session.branches import Ending
from thalweg.spark.session.endings import rows_in_rounds
from thalweg.spark.session.panes import Panes
from thalweg.spark.session.position import WaitingFile
from thalweg.spark.session.program import ProgramQuery
from thalweg.sql.rounds import bounds

UNITS = {"": 1, "b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True)
class Jobs:
    """The endings of a micro-batch, job by job, and the bytes that each job holds."""

    endings: tuple[tuple[Ending, ...], ...]
    sizes: tuple[int, ...]

    @property
    def wanted(self) -> int:
        """The bytes that all endings together would hold."""
        return sum(self.sizes)

    @property
    def held(self) -> int:
        """The bytes that the largest job holds."""
        return max(self.sizes, default=0)


def memory_cap(memory: str | int) -> int:
    """The bytes of a cap as users write it, as Spark takes them.

    >>> memory_cap("64MB"), memory_cap("1.5g"), memory_cap(1000)
    (67108864, 1610612736, 1000)
    >>> memory_cap("much")
    Traceback (most recent call last):
    ValueError: memory is a number of bytes such as "512MB" or 1000000, not 'much'
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", str(memory).lower())
    size = float(found[1]) * UNITS[found[2]] if found and found[2] in UNITS else 0.0
    if not 1 <= size < math.inf or isinstance(memory, bool):
        raise ValueError(f'memory is a number of bytes such as "512MB" or 1000000, not {memory!r}')
    return int(size)


def row_sizes(files: Sequence[WaitingFile]) -> dict[str, float]:
    """The bytes of a row of each stream, as it is in memory."""
    rows: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for file in files:
        rows[file.stream] = rows.get(file.stream, 0) + file.rows
        sizes[file.stream] = sizes.get(file.stream, 0) + file.size
    return {stream: sizes[stream] / count for stream, count in rows.items() if count}


def round_sizes(query: ProgramQuery, panes: Panes, sizes: Mapping[str, float]) -> dict[int, int]:
    """The bytes of the rows that each round of a query holds while it is computed; 0 for rounds without an entry."""
    held: dict[int, int] = {}
    for each in () if query.is_plain else query.streams:
        size = sizes.get(each.source, 0.0)
        rounds = rows_in_rounds(panes.get(each.source, {}), query.query.window, query.conjunctions[each.alias].name)
        for number, (_, kept) in rounds.items():
            held[number] = held.get(number, 0) + int(kept * size)
    return held


@dataclass(frozen=True)
class TooLarge:
    """A round of a query that does not fit into the memory of its session, and the bytes that it would hold."""

    number: int
    size: int

    def told(self, query: ProgramQuery, cap: int) -> str:
        """Why the query waits, and what a user can do about it."""
        start, end = bounds(self.number, query.query.window)
        return (
            f"its round from {_moment(start)} to {_moment(end)} holds {self.size:,} bytes of rows, and the session has "
            f"memory={cap:,}: this round and those after it wait on disk. Start the session again with more memory; or "
            "remove the query, and add it with a shorter WINDOW or more conditions; or resume() it, which leaves these "
            "rounds out"
        )


def _moment(microseconds: int) -> str:
    return f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds):%Y-%m-%d %H:%M:%S} UTC"


def first_too_large(
    cap: int | None, query: ProgramQuery, numbers: Sequence[int], panes: Panes, sizes: Mapping[str, float]
) -> TooLarge | None:
    """The first of some rounds of a query that holds more than the cap; None if all of them fit."""
    if cap is None or not numbers:
        return None
    held = round_sizes(query, panes, sizes)
    return next((TooLarge(number, held[number]) for number in numbers if held.get(number, 0) > cap), None)


def expected_size(query: ProgramQuery, panes: Panes, sizes: Mapping[str, float]) -> float | None:
    """The bytes that a round of a new query will hold if rows go on to come as in some panes; None if not known.

    It is known if the conditions on each of its streams are those of a query that is there already, or none.
    """
    held = 0.0
    for each in query.streams:
        own = list(panes.get(each.source, {}).values())
        rows = sum(pane.rows for pane in own)
        conjunction = query.conjunctions[each.alias]
        kept = [pane.kept.get(conjunction.name) if conjunction.columns else pane.rows for pane in own]
        if not rows or None in kept or any(query.own.values()):
            return None
        seconds_of_rows = sum(pane.width for pane in own)
        kept_rows = sum(count for count in kept if count is not None)
        held += kept_rows / seconds_of_rows * query.query.window.length * sizes.get(each.source, 0.0)
    return 0.0 if query.is_plain else held


def weights_under(weights: Weights, pressure: float) -> Weights:
    """Weights for a session that wants `pressure` times its cap: memory counts the more, in steps of two.

    >>> weights_under(Weights(0.4, 0.6), 0.8), weights_under(Weights(0.4, 0.6), 3.0)
    (Weights(rate=0.4, memory=0.6), Weights(rate=0.4, memory=2.4))
    """
    steps = math.ceil(math.log2(pressure)) if pressure > 1.0 else 0
    return replace(weights, memory=weights.memory * 2**steps)


def jobs_under(cap: int | None, endings: Sequence[Ending], panes: Panes, sizes: Mapping[str, float]) -> Jobs:
    """The endings in as few jobs as the order of queries allows; a round that does not fit alone has a job alone."""
    jobs: list[list[tuple[Ending, list[int]]]] = [[]]  # endings, and those of their rounds that a job computes
    held = [0]
    for ending in endings:
        round_size = round_sizes(ending.query, panes, sizes)
        for number in ending.rounds:
            size = round_size.get(number, 0)
            if cap is not None and held[-1] and held[-1] + size > cap:
                jobs.append([])
                held.append(0)
            held[-1] += size
            if not jobs[-1] or jobs[-1][-1][0] is not ending:
                jobs[-1].append((ending, []))
            jobs[-1][-1][1].append(number)
    listed = [tuple(replace(ending, rounds=tuple(rounds)) for ending, rounds in job) for job in jobs if job]
    return Jobs(tuple(listed), tuple(held) if endings else ())
