"""A cell of a multi-way window join: the windows of all inputs, and the results that new rows make with them.

(r1..rn) is a result if all join predicates hold and, with T the greatest time among its rows, T is before the deadline
of every row: its time plus its window, or for a window by count the time of the last row that pushes it out. Results do
not depend on how rows are spread over steps, nor on the orders of probes. A row that arrives with a time before the
watermark is late and not joined. A step expires rows at the new watermark, and then takes in the new rows, one input
after the other, the busiest last: each probes the rows that are there already. Its results come in parts of bounded
size, so that a step takes memory for its new rows and for no more than a part of its results.

A table may get a new version with a step, which replaces its rows before any new row is joined. So a result has the
rows of tables that hold when the last of its other rows comes; a changelog follows the tables themselves.

The state is the rows of the windows, as segments; everything else can be made from it.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from thalweg.kernels import MJOIN, count_handled
from thalweg.mjoin.adaptation import Adaptation, DropProbes, Switch
from thalweg.mjoin.counting import count_deadlines
from thalweg.mjoin.difference import difference
from thalweg.mjoin.marks import ELSEWHERE, mark, marks_of, unmarked
from thalweg.mjoin.preserved import PreservedRows
from thalweg.mjoin.probing import Prober
from thalweg.mjoin.query import CountWindow, JoinQuery, TimeWindow
from thalweg.mjoin.result_parts import MOST_PART, ResultParts
from thalweg.mjoin.segments import check_left, pack_segment, unpack_segment
from thalweg.mjoin.step import OpenStep, ResultChange, Statistics, Step
from thalweg.mjoin.window import BEGINNING, FOREVER, LARGE_SEGMENT, Segment, Window
from thalweg.ordering.types import Integers

ROWS_PER_PROFILE_TUPLE = 80  # the unit in which `count_handled` counts: kernels save half a microsecond a row


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
        The join.
    planner
        The planner of probe orders, from measured rates and selectivities.
    policy
        The policy that orders the drop-probing of stars; "as-written" lets every order be as written.
    drift
        The detector that watches that policy's statistics; "none" for no detector.
    orders
        Fixed orders, for some inputs or all: nothing adapts.
    drop_probing
        Whether to drop-probe; by default where it is measured to pay.

    Examples
    --------
    >>> from thalweg.mjoin import Input, TimeWindow
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
        self.windows = {name: Window(query, name) for name in query.names}
        # In a changelog, preserved rows that can match nothing are results until they expire.
        has_unmatchable = query.keeps_unmatched and query.output == "changelog"
        kept = query.preserved if has_unmatchable else ()
        self._unmatchable = {name: Window(query, name, is_probed=False) for name in kept}
        self.next_segment = 0  # the number of the next segment
        self._waiting: dict[str, WaitingRows] = {}
        self._prober = Prober(query, self.windows)
        self._results = ResultParts(query, self.windows)
        self._preserved = PreservedRows(query, self._prober, self._results.with_equal_keys)
        self._adaptation = Adaptation(query, self._prober, planner, policy, drift, orders, drop_probing)

    @classmethod
    def load(
        cls,
        query: JoinQuery,
        segments: Mapping[int, bytes],
        watermark: int | None,
        left: Mapping[str, int] | None = None,
        **options: Any,  # noqa: ANN401 - the class's options
    ) -> Self:
        """A cell from its state: all segments that were added and not removed.

        `left` is `Statistics.left` of all steps: windows may be longer than before if no row has left that they need.
        """
        if left is not None and watermark is not None:
            check_left(query, left, watermark)
        if query.has_count_windows and watermark is None:
            raise ValueError("windows by count need a watermark in every step; pass the watermark of the last step")
        cell = cls(query, **options)
        cell.watermark = watermark
        joined = []  # segments of rows that do not wait
        for number, data in segments.items():
            name, rows = unpack_segment(query, data, may_be_longer=left is not None)
            latest = int(cell.windows[name].times(rows).max(initial=BEGINNING))
            if query.has_count_windows and watermark is not None and latest >= watermark:
                cell._waiting[name] = WaitingRows(number, rows, len(data))
            else:
                joined.append((latest, number, name, rows))
            cell.next_segment = max(cell.next_segment, number + 1)
        for _, number, name, rows in sorted(joined, key=lambda segment: segment[:2]):
            cell.window_of(name, rows).append(rows, number).bytes = len(segments[number])
        for window in cell.windows.values():
            count_deadlines(window)
        return cell

    @property
    def all_windows(self) -> Iterator[tuple[str, Window]]:
        """The windows of all inputs, by name, and those of preserved rows that can match nothing."""
        return itertools.chain(self.windows.items(), self._unmatchable.items())

    def window_of(self, name: str, segment: pa.RecordBatch) -> Window:
        """The window that holds the rows of a segment: all of them can match, or none can."""
        can_match, _ = self.windows[name].divide(segment.slice(0, 1))
        return self.windows[name] if can_match.num_rows or name not in self._unmatchable else self._unmatchable[name]

    @property
    def switches(self) -> list[Switch]:
        """The latest changes of orders, and why."""
        return list(self._adaptation.switches)

    def set_orders(self, orders: Mapping[str, tuple[str, ...]]) -> None:
        """Probe in these orders from now on; the orders of inputs that are not named go on as before."""
        self._adaptation.fix(orders)

    def knowledge(self) -> dict[str, Any]:
        """The statistics and orders that the cell has learnt, as plain values for JSON."""
        return self._adaptation.knowledge()

    def learn(self, knowledge: Mapping[str, Any]) -> None:
        """Begin with the knowledge of this cell or another cell of the query."""
        self._adaptation.learn(knowledge)

    def step(
        self,
        arrivals: Mapping[str, pa.RecordBatch],
        watermark: int | None,
        tables: Mapping[str, pa.RecordBatch] | None = None,
    ) -> Step:
        """Take in new rows, all at once."""
        parts = list(self.parts(arrivals, watermark, tables))
        return replace(parts[-1], results=pa.concat_batches([part.results for part in parts]))

    def parts(
        self,
        arrivals: Mapping[str, pa.RecordBatch],
        watermark: int | None,
        tables: Mapping[str, pa.RecordBatch] | None = None,
    ) -> Iterator[Step]:
        """Take in new rows, and give the results part by part; without the last part a cell is of no more use.

        Without a watermark no row is late and none expires. With windows by count that means that all rows are there,
        and this is the only step: streams that have no watermark yet have `BEGINNING`. `tables` are new versions of
        tables: all their rows, which replace the rows before.
        """
        step = self._begin(watermark)
        for name, rows in (tables or {}).items():
            yield from self._replace_table(name, rows, step)
        new = self._in_turn(self._accept(arrivals, step))
        deadlines = {name: self._deadlines(name, rows) for name, rows in new.items()}
        rest: list[ResultChange] = []
        if self.query.preserved and self.query.output == "changelog":
            yield from self._changelog_parts(new, deadlines, step)
        else:
            if self.query.keeps_unmatched:
                yield from self._unmatched_parts(step)
            if self.query.kind in {"semi", "anti"}:
                yield from self._preserved_parts(new, deadlines, step)
            else:
                rest = yield from self._results.full(self._changes(new, deadlines, step), step.statistics)
        last = self._results.part(rest, step.statistics)
        self._finish({name: rows.num_rows for name, rows in new.items()}, step)
        yield replace(last, late=step.late, added=step.added, removed=tuple(step.removed))

    def end(self) -> Iterator[Step]:
        """All rows have come, and none is late: the results of preserved rows that have no match."""
        if self.query.keeps_unmatched and self.query.output == "append":
            for name in self.query.preserved:
                window = self.windows[name]
                yield from self._unmatched_rows(name, np.arange(window.start, window.end), Statistics())

    def _unmatched_parts(self, step: OpenStep) -> Iterator[Step]:
        """The results of preserved rows that leave without a match, and of new rows that can have none."""
        for name in self.query.preserved:
            leaving = self.windows[name].expired(step.before, step.now)
            yield from self._unmatched_rows(name, leaving, step.statistics)
            for rows in step.unmatchable.get(name, []):
                yield self._rows_part(name, rows, step.statistics)

    def _unmatched_rows(self, name: str, rows: Integers, statistics: Statistics) -> Iterator[Step]:
        unmatched = self._preserved.unmatched(self._adaptation.plan(name), rows)
        for start in range(0, unmatched.size, MOST_PART):
            yield self._rows_part(name, self.windows[name].rows(unmatched[start : start + MOST_PART]), statistics)

    def _preserved_parts(
        self, new: Mapping[str, pa.RecordBatch], deadlines: Mapping[str, Integers], step: OpenStep
    ) -> Iterator[Step]:
        """Take in new rows; in a semi join, the results of preserved rows that get their first match."""
        (preserved,) = self.query.preserved
        floors = self._floors(step.now)
        for name, rows in new.items():
            if not rows.num_rows:
                continue
            segment = self._append(self.windows[name], rows, step, deadlines[name])
            if self.query.kind == "anti":
                continue
            changes = self._enter(name, segment, floors, step.statistics)
            matched = [self._preserved.matched(preserved, change.rows) for change in changes]
            if matched:
                candidates = np.unique(np.concatenate(matched))
                plan = self._adaptation.plan(preserved)
                first = self._preserved.first_matched(plan, candidates, segment, name)
                yield self._rows_part(preserved, self.windows[preserved].rows(first), step.statistics)

    def _changelog_parts(
        self, new: dict[str, pa.RecordBatch], deadlines: dict[str, Integers], step: OpenStep
    ) -> Iterator[Step]:
        """Take in new rows, and tell how combinations change, and which preserved rows have a match or none since."""
        preserved = self.query.preserved
        ends = {name: window.end for name, window in self.windows.items()}
        touched = {name: [self.windows[name].expired(step.before, step.now)] for name in preserved}

        def noted() -> Iterator[ResultChange]:
            for change in self._changes(new, deadlines, step):
                for name in preserved:
                    touched[name].append(self._preserved.matched(name, change.rows))
                yield change

        if self.query.kind == "outer":
            rest = yield from self._results.full(noted(), step.statistics)
            yield self._results.part(rest, step.statistics)
        else:
            deque(noted(), maxlen=0)  # combinations are no results, but tell which rows to look at
        for name in preserved:
            rows = np.unique(np.concatenate([*touched[name], np.arange(ends[name], self.windows[name].end)]))
            changes = self._preserved.changes(self._adaptation.plan(name), rows, ends, step.before, step.now)
            for sign, changed in ((-1, changes.ended), (1, changes.begun)):
                for start in range(0, changed.size, MOST_PART):
                    part = self.windows[name].rows(changed[start : start + MOST_PART])
                    yield self._rows_part(name, part, step.statistics, sign)
        for name, window in self._unmatchable.items():
            leaving = window.rows(window.expired(step.before, step.now))
            yield self._rows_part(name, leaving, step.statistics, -1)
            for come in step.unmatchable.get(name, []):
                self._append(window, come, step)
                yield self._rows_part(name, come, step.statistics)

    def _rows_part(self, name: str, rows: pa.RecordBatch, statistics: Statistics, sign: int = 1) -> Step:
        """A part of a step with rows of one input as results."""
        statistics.results += rows.num_rows
        return Step(self._preserved.result(name, rows, sign), {}, {}, (), statistics)

    def _replace_table(self, name: str, rows: pa.RecordBatch, step: OpenStep) -> Iterator[Step]:
        """Replace all rows of a table; in a changelog, results of rows that are gone end, and of new rows appear."""
        window, rows = self.windows[name], self._accept_input(name, rows, step)
        gone = come = np.empty(0, np.int64)
        if self.query.output == "changelog":
            before = window.expired(BEGINNING, FOREVER)  # all rows but those that a cell which caught up has let go
            places, come = difference(unmarked(window.rows(before)), unmarked(rows))
            gone = before[places]
        yield from self._changed_parts(-1, name, gone, step)
        step.removed += window.expire(FOREVER)
        first, size = window.end, max(rows.num_rows * LARGE_SEGMENT // max(rows.nbytes, 1), 1)
        for start in range(0, rows.num_rows, size):
            self._append(window, rows.slice(start, size), step)
        yield from self._changed_parts(1, name, first + come, step)

    def _changed_parts(self, sign: int, name: str, rows: Integers, step: OpenStep) -> Iterator[Step]:
        """The results that end or appear with rows of a table; all at once, for these rows are replaced next."""
        found = self._prober.run(self._adaptation.plan(name), rows, self._floors(step.before)) if rows.size else ()
        rest = yield from self._results.full((ResultChange(sign, each.rows) for each in found), step.statistics)
        if rest:
            yield self._results.part(rest, step.statistics)

    def _begin(self, watermark: int | None) -> OpenStep:
        """Move the watermark."""
        if self.query.has_count_windows and self.version and self.watermark is None:
            raise ValueError("windows by count need a watermark in every step; without any, give all rows in one step")
        before = BEGINNING if self.watermark is None else self.watermark
        if watermark is not None:
            self.watermark = max(before, watermark)
        return OpenStep(before, BEGINNING if self.watermark is None else self.watermark)

    def _accept(self, arrivals: Mapping[str, pa.RecordBatch], step: OpenStep) -> dict[str, pa.RecordBatch]:
        """The rows to join: in time, with all keys, and with windows by count passed by the watermark."""
        for name in arrivals:
            self.query.input(name)
        new = {
            name: self._accept_input(name, arrivals[name], step)
            for name in self.query.names
            if name in arrivals and arrivals[name].num_rows
        }
        count_handled(sum(rows.num_rows for rows in new.values()) // ROWS_PER_PROFILE_TUPLE, MJOIN)
        if not self.query.has_count_windows or self.watermark is None:  # without a watermark all rows are there
            return new
        released = {}
        for name in self.query.names:
            rows = self._release(name, new.get(name), self.watermark, step)
            if rows is not None:
                released[name] = rows
        step.statistics.waiting = {name: waiting.rows.num_rows for name, waiting in self._waiting.items()}
        return released

    def _in_turn(self, new: dict[str, pa.RecordBatch]) -> dict[str, pa.RecordBatch]:
        """The new rows in the order in which inputs are taken in, last the input that has most, in the shortest window.

        An input that is taken in is probed by the new rows of inputs after it. If many new rows come first, few rows
        of other inputs make many combinations with them, instead of being dropped one by one by few lookups. Weights
        are compared by powers of two, so that inputs of about the same weight stay in the order of the query.
        """

        def weight(name: str) -> int:
            rows = new[name].num_rows
            return (rows * rows // (self.windows[name].alive + rows)).bit_length() if rows else 0

        return {name: new[name] for name in sorted(new, key=weight)}

    def _accept_input(self, name: str, rows: pa.RecordBatch, step: OpenStep) -> pa.RecordBatch:
        """The rows of an input that are in time and may match."""
        window = self.windows[name]
        if unmarked(rows).schema != window.input.schema:
            raise ValueError(f"rows of {name} have the columns {window.input.schema}, not {rows.schema}")
        if window.input.time and rows[window.input.time].null_count:
            raise ValueError(f"a time of {window.input} is NULL; leave such rows out")
        if self.watermark is not None:
            is_late = window.times(rows) < (self.watermark if window.input.time else BEGINNING)
            if is_late.any():
                step.late[name] = rows.filter(pa.array(is_late))
                rows = rows.filter(pa.array(~is_late))
                step.statistics.late[name] = step.late[name].num_rows
        kept, others = window.divide(rows)
        if kept.num_rows < rows.num_rows:
            step.statistics.keyless[name] = rows.num_rows - kept.num_rows
            step.unmatchable[name] = [each for each in others if each.num_rows]
        return mark(kept, marks_of(kept) & ~ELSEWHERE)

    def _release(self, name: str, new: pa.RecordBatch | None, watermark: int, step: OpenStep) -> pa.RecordBatch | None:
        """With windows by count: the rows of an input that the watermark has passed; the others wait."""
        waiting = self._waiting.get(name)
        batches = [waiting.rows] if waiting else []
        batches += [new] if new is not None and new.num_rows else []
        if not batches:
            return None
        rows = pa.concat_batches(batches)
        is_ready = self.windows[name].times(rows) < watermark
        still = rows.filter(pa.array(~is_ready))
        if not waiting or still.num_rows != waiting.rows.num_rows or len(batches) > 1:
            if waiting:
                step.removed.append(self._waiting.pop(name).number)
            if still.num_rows:
                number, size = self._save_segment(name, still, step)
                self._waiting[name] = WaitingRows(number, still, size)
        return rows.filter(pa.array(is_ready))

    def _deadlines(self, name: str, rows: pa.RecordBatch) -> Integers:
        """When new rows expire; the rows that they push out of a window by count have their deadlines set."""
        window = self.windows[name]
        if isinstance(window.input.window, CountWindow):
            return count_deadlines(window, rows)
        return window.deadlines(window.times(rows))

    def _changes(
        self, new: dict[str, pa.RecordBatch], deadlines: dict[str, Integers], step: OpenStep
    ) -> Iterator[ResultChange]:
        """The results that end, and then the results that new rows make."""
        is_changelog = self.query.output == "changelog"
        if is_changelog and step.now > step.before:
            yield from self._leave(step.before, step.now)
        if is_changelog and self.query.has_count_windows:  # rows that have expired already never enter
            for name, floor in self._floors(step.now).items():
                if name in new:
                    is_live = deadlines[name] > floor
                    new[name], deadlines[name] = new[name].filter(pa.array(is_live)), deadlines[name][is_live]
        floors = self._floors(step.now if is_changelog or not self.query.has_count_windows else step.before)
        for name, rows in new.items():
            if rows.num_rows:
                segment = self._append(self.windows[name], rows, step, deadlines[name])
                yield from self._enter(name, segment, floors, step.statistics)

    def _leave(self, before: int, now: int) -> Iterator[ResultChange]:
        """The results that end because one of their rows expires, input by input."""
        floors, later = self._floors(before), self._floors(now)
        for name, window in self.windows.items():
            rows = window.expired(floors[name], later[name])
            if rows.size:
                for found in self._prober.run(self._adaptation.plan(name), rows, floors):
                    yield ResultChange(-1, found.rows)
            floors[name] = later[name]

    def _enter(
        self, name: str, segment: Segment, floors: Mapping[str, int], statistics: Statistics
    ) -> Iterator[ResultChange]:
        """The results that new rows make with the rows that are there."""
        self._adaptation.sample(name, segment, floors, statistics)
        for found in self._prober.run(self._adaptation.plan(name), segment.numbers, floors):
            yield ResultChange(1, found.rows)

    def _floors(self, watermark: int) -> dict[str, int]:
        """For each input, the deadline that rows must exceed to be in its window at a watermark.

        That of a window by count is the time of a row, which may be the watermark itself only later.
        """
        return {each.name: watermark - isinstance(each.window, CountWindow) for each in self.query.inputs}

    def _finish(self, rows: dict[str, int], step: OpenStep) -> None:
        """Let expired rows go, adapt the orders, and complete the statistics."""
        statistics = step.statistics
        statistics.rows = rows
        self._prune(step)
        self.version += 1
        self._adaptation.finish(statistics.rows, statistics)
        statistics.state_rows = dict.fromkeys(self.query.names, 0)
        for name, window in self.all_windows:
            statistics.state_rows[name] += window.alive
        statistics.left = {
            name: window.latest_left - window.input.window.microseconds
            for name, window in self.windows.items()
            if isinstance(window.input.window, TimeWindow) and window.latest_left > BEGINNING
        }
        segments = [
            segment for _, window in self.all_windows for segment in window.segments if segment.number is not None
        ]
        sizes = [segment.bytes for segment in segments]
        sizes += [waiting.bytes for waiting in self._waiting.values()]
        statistics.state_bytes, statistics.segments = sum(sizes), len(sizes)
        statistics.memory_bytes = sum(window.bytes for _, window in self.all_windows)

    def _prune(self, step: OpenStep) -> None:
        """Let expired rows go, and keep segments few."""
        for name, window in self.all_windows:
            kept_from = step.now - self.query.retention[name]
            step.removed += window.expire(kept_from)
            gone, rows = window.clear_out(kept_from)
            step.removed += gone
            if rows is not None and rows.num_rows:
                self._append(window, rows, step)
                count_deadlines(window)
            if merged := window.merge():
                segment = window.segments[-1]
                segment.number, segment.bytes = self._save_segment(name, window.rows(segment.numbers), step)
                step.removed += merged
        for number in [number for number in step.removed if number in step.added]:
            del step.added[number]
            step.removed.remove(number)

    def _append(
        self, window: Window, rows: pa.RecordBatch, step: OpenStep, deadlines: Integers | None = None
    ) -> Segment:
        """Add rows to a window, and to the state."""
        segment = window.append(rows, self.next_segment, deadlines)
        _, segment.bytes = self._save_segment(window.input.name, rows, step)
        return segment

    def _save_segment(self, name: str, rows: pa.RecordBatch, step: OpenStep) -> tuple[int, int]:
        """Add rows to the state as a segment; returns its number and its bytes."""
        number = self.next_segment
        step.added[number] = pack_segment(self.query, name, rows)
        self.next_segment += 1
        return number, len(step.added[number])
