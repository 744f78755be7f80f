"""A cell of a multi-way window join: the windows of all inputs, and the results that new rows make with them.

(r1..rn) is a result if all join predicates hold and, with T the greatest time among its rows, T is before the deadline
of every row: its time plus its window, or for a window by count the time of the last row that pushes it out. Results do
not depend on how rows are spread over steps, nor on the orders of probes. A row that arrives with a time before the
watermark is late and not joined. A step expires rows at the new watermark, and then takes in the new rows, one input
after the other: each probes what is there already. Its results come in parts of bounded size, so that a step takes
memory for its new rows and no more than a part of what they give.

The state is the rows of the windows, as segments; everything else can be made from it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import pyarrow as pa

from thalweg.kernels import MJOIN, count_handled
from thalweg.mjoin.adaptation import Adaptation, DropProbes, Switch
from thalweg.mjoin.counting import count_deadlines
from thalweg.mjoin.keys import equal, is_exact
from thalweg.mjoin.marks import ELSEWHERE, all_meet_here, mark, marks_of, meet_here, unmarked
from thalweg.mjoin.probing import Prober
from thalweg.mjoin.query import CountWindow, JoinQuery
from thalweg.mjoin.segments import pack_segment, unpack_segment
from thalweg.mjoin.window import BEGINNING, Segment, Window
from thalweg.ordering.types import Integers

PART_BYTES = 8 << 20  # of results at once, roughly: enough to forget what it costs to send them on
FIRST_PART, MOST_PART = 1 << 12, 1 << 17  # results at once: while it is not known how wide they are, and at most
Changed: TypeAlias = tuple[int, dict[str, Integers]]  # 1 or -1, and the numbers of rows of results by input
ROWS_PER_PROFILE_TUPLE = 80  # the unit in which `count_handled` counts: kernels save half a microsecond a row


@dataclass
class Statistics:
    """What a step did, and what is known after it."""

    rows: dict[str, int] = field(default_factory=dict)  # new rows that were joined
    late: dict[str, int] = field(default_factory=dict)  # rows that came too late
    keyless: dict[str, int] = field(default_factory=dict)  # rows that can match nothing: a key is NULL
    held: dict[str, int] = field(default_factory=dict)  # rows that wait for the watermark, with windows by count
    results: int = 0
    probes: int = 0  # looks into an index
    visited: int = 0  # rows that were found there
    intermediate: int = 0  # combinations of rows that were made on the way to results
    state_rows: dict[str, int] = field(default_factory=dict)  # rows in the windows
    state_bytes: int = 0
    segments: int = 0
    memory_bytes: int = 0  # of the windows, with their indexes
    rates: dict[str, float] = field(default_factory=dict)  # rows a step
    selectivities: dict[str, float] = field(default_factory=dict)  # share of matching pairs, by "input input"
    survivors: dict[str, float] = field(default_factory=dict)  # share of rows that no single probe drops
    orders: dict[str, tuple[str, ...]] = field(default_factory=dict)
    drop_probing: dict[str, bool] = field(default_factory=dict)
    switches: list[Switch] = field(default_factory=list)  # of this step

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


@dataclass
class Step:
    """What a step gave, and how it changed the state; or a part of it: all but the last have results only."""

    results: pa.RecordBatch
    late: Mapping[str, pa.RecordBatch]
    added: Mapping[int, bytes]  # segments that are new
    removed: tuple[int, ...]  # and numbers of those that are no longer needed
    statistics: Statistics


class WaitingRows(NamedTuple):
    """Rows that wait for the watermark, and their segment."""

    number: int
    rows: pa.RecordBatch
    bytes: int


class Cell:
    """The windows of a join.

    Parameters
    ----------
    query
        What is joined.
    planner
        Who plans probe orders from measured rates and selectivities.
    policy
        Who orders the drop-probing of stars; "as-written" lets every order be as written.
    drift
        Who watches that policy's statistics; "none" for nobody.
    orders
        Fixed orders, for some inputs or all: nothing adapts.
    drop_probing
        Whether to drop-probe; by default where it is measured to pay.

    Examples
    --------
    >>> from thalweg.mjoin import Input, Time
    >>> schema = pa.schema([("key", pa.int64()), ("at", pa.int64())])
    >>> query = JoinQuery(
    ...     (Input("A", schema, "at", TimeWindow(10)), Input("B", schema, "at", TimeWindow(10))),
    ...     (frozenset([("A", "key"), ("B", "key")]),),
    ...     select=(("A", "key", "key"), ("A", "at", "a"), ("B", "at", "b")),
    ... )
    >>> cell = Cell(query)
    >>> step = cell.step({"A": pa.record_batch([[1, 2], [100, 101]], schema=schema)}, watermark=90)
    >>> step = cell.step({"B": pa.record_batch([[1, 2, 2], [109, 109, 111]], schema=schema)}, watermark=95)
    >>> step.results.to_pylist()
    [{'key': 1, 'a': 100, 'b': 109}, {'key': 2, 'a': 101, 'b': 109}]
    """

    def __init__(
        self,
        query: JoinQuery,
        *,
        planner: str = "q-aware",
        policy: str = "a-greedy",
        drift: str = "bcs",
        orders: Mapping[str, tuple[str, ...]] | None = None,
        drop_probing: DropProbes = "auto",
    ) -> None:
        self.query = query
        self.version = 0  # steps so far
        self.watermark: int | None = None
        self._windows = {name: Window(query, name) for name in query.names}
        self._held: dict[str, WaitingRows] = {}
        self._next = 0  # the number of the next segment
        self._part = FIRST_PART  # results to give at once
        self._prober = Prober(query, self._windows)
        self._adaptation = Adaptation(query, self._prober, planner, policy, drift, orders, drop_probing)

    @classmethod
    def load(cls, query: JoinQuery, segments: Mapping[int, bytes], watermark: int | None, **options: Any) -> Self:  # noqa: ANN401 - those of the class
        """A cell from its state: all segments that were added and not removed."""
        if query.has_count_windows and watermark is None:
            raise ValueError("windows by count need a watermark in every step; what was that of the last?")
        cell = cls(query, **options)
        cell.watermark = watermark
        found = []
        for number, data in segments.items():
            name, rows = unpack_segment(query, data)
            times = cell._windows[name].times(rows)
            if query.has_count_windows and watermark is not None and times.max(initial=BEGINNING) >= watermark:
                cell._held[name] = WaitingRows(number, rows, len(data))
            else:
                found.append((int(times.max(initial=BEGINNING)), number, name, rows))
            cell._next = max(cell._next, number + 1)
        for _, number, name, rows in sorted(found, key=lambda one: one[:2]):
            cell._windows[name].append(rows, number).bytes = len(segments[number])
        for window in cell._windows.values():
            count_deadlines(window)
        return cell

    @property
    def switches(self) -> list[Switch]:
        """The latest changes of orders, and why."""
        return list(self._adaptation.switches)

    def set_orders(self, orders: Mapping[str, tuple[str, ...]]) -> None:
        """Probe in these orders from now on; those of inputs that are not named go on as before."""
        self._adaptation.fix(orders)

    def knowledge(self) -> dict[str, Any]:
        """What has been learnt, as JSON has it."""
        return self._adaptation.knowledge()

    def learn(self, knowledge: Mapping[str, Any]) -> None:
        """Begin with what this or another cell of the query has learnt."""
        self._adaptation.learn(knowledge)

    def step(self, arrivals: Mapping[str, pa.RecordBatch], watermark: int | None) -> Step:
        """Take in new rows, all at once."""
        parts = list(self.parts(arrivals, watermark))
        return replace(parts[-1], results=pa.concat_batches([one.results for one in parts]))

    def parts(self, arrivals: Mapping[str, pa.RecordBatch], watermark: int | None) -> Iterator[Step]:
        """Take in new rows, and give what comes of it part by part; without the last part a cell is of no more use.

        Without a watermark no row is late and none expires. With windows by count that means that all rows are there,
        and this is the only step: streams that have no watermark yet have `BEGINNING`.
        """
        if self.query.has_count_windows and self.version and self.watermark is None:
            raise ValueError("windows by count need a watermark in every step; without any, give all rows in one step")
        before = BEGINNING if self.watermark is None else self.watermark
        if watermark is not None:
            self.watermark = max(before, watermark)
        now = BEGINNING if self.watermark is None else self.watermark
        statistics, late = Statistics(), dict[str, pa.RecordBatch]()
        added, removed = dict[int, bytes](), list[int]()
        new = self._accepted(arrivals, statistics, late)
        count_handled(sum(rows.num_rows for rows in new.values()) // ROWS_PER_PROFILE_TUPLE, MJOIN)
        if self.query.has_count_windows:
            new = self._released(new, statistics, added, removed)
        deadlines = {name: self._due(name, rows) for name, rows in new.items()}
        rest = yield from self._given(self._found(new, deadlines, before, now, added, statistics), statistics)
        last = self._some(rest, statistics)
        statistics.rows = {name: rows.num_rows for name, rows in new.items()}
        self._prune(now, added, removed)
        self.version += 1
        self._adaptation.finish(statistics.rows, statistics)
        statistics.state_rows = {name: window.alive for name, window in self._windows.items()}
        sizes = [*(one.bytes for one in self._segments()), *(one.bytes for one in self._held.values())]
        statistics.state_bytes, statistics.segments = sum(sizes), len(sizes)
        statistics.memory_bytes = sum(window.bytes for window in self._windows.values())
        yield replace(last, late=late, added=added, removed=tuple(removed))

    def _found(
        self,
        new: dict[str, pa.RecordBatch],
        deadlines: dict[str, Integers],
        before: int,
        now: int,
        added: dict[int, bytes],
        statistics: Statistics,
    ) -> Iterator[Changed]:
        """The results that end, and then those that new rows make."""
        if self.query.output == "changelog" and now > before:
            yield from self._leave(before, now)
        if self.query.output == "changelog" and self.query.has_count_windows:  # what has expired already never enters
            for name, floor in self._floors(now).items():
                if name in new:
                    stays = deadlines[name] > floor
                    new[name], deadlines[name] = new[name].filter(pa.array(stays)), deadlines[name][stays]
        floors = self._floors(now if self.query.output == "changelog" or not self.query.has_count_windows else before)
        for name, rows in new.items():
            if rows.num_rows:
                segment = self._append(name, rows, added, deadlines[name])
                yield from self._enter(name, segment, floors, statistics)

    def _given(self, found: Iterable[Changed], statistics: Statistics) -> Generator[Step, None, list[Changed]]:
        """Results as parts of a step, but for the last ones."""
        waiting, size = list[Changed](), 0
        for change, rows in found:
            start, end = 0, rows[self.query.names[0]].size
            while start < end:
                stop = min(start + self._part - size, end)
                waiting.append((change, {name: each[start:stop] for name, each in rows.items()}))
                size, start = size + stop - start, stop
                if size == self._part:
                    yield self._some(waiting, statistics)
                    waiting, size = [], 0
        return waiting

    def _some(self, results: list[Changed], statistics: Statistics) -> Step:
        """A part of a step."""
        batch = self._gather(results)
        statistics.results += batch.num_rows
        if batch.num_rows:
            self._part = min(max(PART_BYTES * batch.num_rows // max(batch.nbytes, 1), 1), MOST_PART)
        return Step(batch, {}, {}, (), statistics)

    def _segments(self) -> Iterable[Segment]:
        return (one for window in self._windows.values() for one in window.segments if one.number is not None)

    def _accepted(
        self, arrivals: Mapping[str, pa.RecordBatch], statistics: Statistics, late: dict[str, pa.RecordBatch]
    ) -> dict[str, pa.RecordBatch]:
        """The rows that are in time and may match."""
        accepted = {}
        for name in arrivals:
            self.query.input(name)
        for name in self.query.names:
            rows, window = arrivals.get(name), self._windows[name]
            if rows is None or not rows.num_rows:
                continue
            if unmarked(rows).schema != window.input.schema:
                raise ValueError(f"rows of {name} have the columns {window.input.schema}, not {rows.schema}")
            if window.input.time and rows[window.input.time].null_count:
                raise ValueError(f"a time of {window.input} is NULL; leave such rows out")
            if self.watermark is not None:
                is_late = window.times(rows) < (self.watermark if window.input.time else BEGINNING)
                if is_late.any():
                    late[name] = rows.filter(pa.array(is_late))
                    rows = rows.filter(pa.array(~is_late))
                    statistics.late[name] = late[name].num_rows
            kept = window.keep(rows)
            if kept.num_rows < rows.num_rows:
                statistics.keyless[name] = rows.num_rows - kept.num_rows
            accepted[name] = mark(kept, marks_of(kept) & ~ELSEWHERE)
        return accepted

    def _released(
        self,
        new: Mapping[str, pa.RecordBatch],
        statistics: Statistics,
        added: dict[int, bytes],
        removed: list[int],
    ) -> dict[str, pa.RecordBatch]:
        """With windows by count: the rows that the watermark has passed; the others wait."""
        if self.watermark is None:  # all rows are there
            return dict(new)
        released = {}
        for name in self.query.names:
            waiting = self._held.get(name)
            batches = [waiting.rows] if waiting else []
            batches += [new[name]] if name in new and new[name].num_rows else []
            if not batches:
                continue
            rows = pa.concat_batches(batches)
            is_ready = self._windows[name].times(rows) < self.watermark
            released[name] = rows.filter(pa.array(is_ready))
            still = rows.filter(pa.array(~is_ready))
            if not waiting or still.num_rows != waiting.rows.num_rows or len(batches) > 1:
                if waiting:
                    removed.append(self._held.pop(name).number)
                if still.num_rows:
                    added[self._next] = pack_segment(self.query, name, still)
                    self._held[name] = WaitingRows(self._next, still, len(added[self._next]))
                    self._next += 1
        statistics.held = {name: waiting.rows.num_rows for name, waiting in self._held.items()}
        return released

    def _due(self, name: str, rows: pa.RecordBatch) -> Integers:
        """When new rows expire; those that they push out of a window by count do so from now on."""
        window = self._windows[name]
        if isinstance(window.input.window, CountWindow):
            return count_deadlines(window, rows)
        return window.deadlines(window.times(rows))

    def _append(
        self, name: str, rows: pa.RecordBatch, added: dict[int, bytes], deadlines: Integers | None = None
    ) -> Segment:
        segment = self._windows[name].append(rows, self._next, deadlines)
        added[self._next] = pack_segment(self.query, name, rows)
        segment.bytes = len(added[self._next])
        self._next += 1
        return segment

    def _leave(self, before: int, now: int) -> Iterable[Changed]:
        """The results that end because one of their rows expires, input by input."""
        floors, later = self._floors(before), self._floors(now)
        for name, window in self._windows.items():
            rows = window.expired(floors[name], later[name])
            if rows.size:
                yield from ((-1, one.rows) for one in self._prober.run(self._adaptation.plan(name), rows, floors))
            floors[name] = later[name]

    def _floors(self, watermark: int) -> dict[str, int]:
        """For each input, the deadline that rows must exceed to be in its window at a watermark.

        That of a window by count is the time of a row, which may be the watermark itself only later.
        """
        return {one.name: watermark - isinstance(one.window, CountWindow) for one in self.query.inputs}

    def _enter(
        self, name: str, segment: Segment, floors: Mapping[str, int], statistics: Statistics
    ) -> Iterable[Changed]:
        """The results that new rows make with those that are there."""
        self._adaptation.sample(name, segment, floors, statistics)
        yield from ((1, one.rows) for one in self._prober.run(self._adaptation.plan(name), segment.numbers, floors))

    def _gather(self, results: list[Changed]) -> pa.RecordBatch:
        """Results as rows."""
        query, nothing = self.query, np.empty(0, np.int64)
        rows = {name: np.concatenate([nothing, *(each[name] for _, each in results)]) for name in query.names}
        changes = np.repeat(
            np.array([change for change, _ in results], np.int8), [each[query.names[0]].size for _, each in results]
        )
        for those in (self._equal, self._meeting):
            some = those(rows)
            if some is not None:
                rows, changes = {name: each[some] for name, each in rows.items()}, changes[some]
        columns = [self._windows[name].take(rows[name], column) for name, column, _ in query.select]
        if query.output == "changelog":
            columns.append(pa.array(changes))
        return pa.record_batch(columns, schema=query.result_schema)

    def _equal(self, rows: Mapping[str, Integers]) -> Integers | None:
        """Which results have equal keys where those were joined by hash; None if all surely have."""
        same = None
        for one in self.query.equalities:
            columns = dict(sorted(one))
            (first, column), *others = columns.items()
            if not is_exact(self.query.input(first).schema.field(column).type):
                values = self._windows[first].take(rows[first], column)
                for name, other in others:
                    agree = equal(values, self._windows[name].take(rows[name], other))
                    same = agree if same is None else same & agree
        return None if same is None or same.all() else np.flatnonzero(same)

    def _meeting(self, rows: Mapping[str, Integers]) -> Integers | None:
        """Which results count in this cell, where rows of several layouts meet; None if all surely do."""
        if all_meet_here(one.mark for window in self._windows.values() for one in window.segments):
            return None
        return np.flatnonzero(meet_here([self._windows[name].marks(each) for name, each in rows.items()]))

    def _prune(self, now: int, added: dict[int, bytes], removed: list[int]) -> None:
        """Let expired rows go, and keep segments few."""
        for name, window in self._windows.items():
            removed += window.expire(now)
            gone, rows = window.clear_out(now)
            removed += gone
            if rows is not None and rows.num_rows:
                self._append(name, rows, added)
                count_deadlines(window)
            if merged := window.merge():
                segment = window.segments[-1]
                segment.number = self._next
                added[self._next] = pack_segment(self.query, name, window.rows(segment.numbers))
                segment.bytes = len(added[self._next])
                self._next += 1
                removed += merged
        for number in [one for one in removed if one in added]:
            del added[number]
            removed.remove(number)
