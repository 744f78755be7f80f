"""A cell of a multi-way window join: the windows of all inputs, and what new rows join with in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.mjoin.keys import codes, combined
from thalweg.mjoin.query import CHANGE, JoinQuery, Time
from thalweg.mjoin.segments import pack, unpack

FOREVER = 1 << 62


@dataclass
class Statistics:
    """What a step did, and what is known."""

    rows: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"rows": self.rows}


@dataclass
class Step:
    """What a step gave."""

    results: pa.RecordBatch
    late: Mapping[str, pa.RecordBatch]
    added: Mapping[int, bytes]
    removed: tuple[int, ...]
    statistics: Statistics


class Cell:
    """The first, simple form: windows are tables, every step sorts them."""

    def __init__(
        self,
        query: JoinQuery,
        *,
        planner: str = "q-aware",
        policy: str = "a-greedy",
        drift: str = "bcs",
        orders: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        if query.counts:
            raise NotImplementedError("windows by count are not there yet")
        self.query = query
        self.version = 0
        self.watermark: int | None = None
        self._segments: dict[int, tuple[str, pa.RecordBatch]] = {}
        self._next = 0
        if orders:
            self.set_orders(orders)

    def set_orders(self, orders: Mapping[str, tuple[str, ...]]) -> None:
        """Probe in these orders from now on."""

    def knowledge(self) -> dict[str, Any]:
        """What has been learnt."""
        return {}

    def learn(self, knowledge: Mapping[str, Any]) -> None:
        """Begin with what another cell has learnt."""

    @classmethod
    def load(cls, query: JoinQuery, segments: Mapping[int, bytes], watermark: int | None, **options: Any) -> Self:
        """A cell from its state."""
        cell = cls(query, **options)
        cell.watermark = watermark
        for number, data in segments.items():
            cell._segments[number] = unpack(query, data)
            cell._next = max(cell._next, number + 1)
        return cell

    def step(self, arrivals: Mapping[str, pa.RecordBatch], watermark: int | None) -> Step:
        """Take in new rows."""
        query, late, statistics = self.query, {}, Statistics()
        before = self.watermark
        self.watermark = watermark if before is None or watermark is None else max(before, watermark)
        floor = -FOREVER if self.watermark is None else self.watermark
        windows = {name: self._window(name) for name in query.names}
        results: list[tuple[int, pa.Table]] = []
        if query.output == "changelog":
            for name in query.names:
                gone = self._deadlines(name, windows[name]) <= floor
                results.append((-1, self._join(name, windows[name].filter(pa.array(gone)), windows)))
                windows[name] = windows[name].filter(pa.array(~gone))
        added: dict[int, bytes] = {}
        for name in query.names:
            one = query.input(name)
            rows = arrivals.get(name)
            if rows is None or not rows.num_rows:
                continue
            if one.time and self.watermark is not None:
                is_late = pc.less(rows[one.time], self.watermark)
                if pc.any(is_late).as_py():
                    late[name] = rows.filter(is_late)
                    rows = rows.filter(pc.invert(is_late))
            for columns in query.key_columns[name].values():
                for column in columns:
                    rows = rows.filter(rows[column].is_valid())
                for column in columns[1:]:
                    rows = rows.filter(pa.array(codes(rows[columns[0]]) == codes(rows[column])))
            statistics.rows[name] = rows.num_rows
            new = pa.Table.from_batches([rows])
            results.append((1, self._join(name, new, windows)))
            windows[name] = pa.concat_tables([windows[name], new])
            self._segments[self._next] = (name, rows)
            added[self._next] = pack(query, name, rows)
            self._next += 1
        removed = []
        for number, (name, rows) in list(self._segments.items()):
            if not (self._deadlines(name, rows) > floor).any():
                removed.append(number)
                del self._segments[number]
                added.pop(number, None)
        self.version += 1
        tables = [
            table.append_column(pa.field(CHANGE, pa.int8()), pa.array(np.full(table.num_rows, change, np.int8)))
            if query.output == "changelog"
            else table
            for change, table in results
        ]
        whole = pa.concat_tables([query.result_schema.empty_table(), *tables]).combine_chunks()
        batch = whole.to_batches()[0] if whole.num_rows else pa.RecordBatch.from_pylist([], query.result_schema)
        return Step(batch, late, added, tuple(removed), statistics)

    def _window(self, name: str) -> pa.Table:
        schema = self.query.input(name).schema
        return pa.Table.from_batches([rows for one, rows in self._segments.values() if one == name], schema)

    def _deadlines(self, name: str, rows: pa.Table | pa.RecordBatch) -> Any:
        one = self.query.input(name)
        if one.time is None or not isinstance(one.window, Time):
            return np.full(rows.num_rows, FOREVER)
        return rows[one.time].to_numpy() + one.window.microseconds

    def _times(self, name: str, rows: pa.Table) -> Any:
        time = self.query.input(name).time
        return np.full(rows.num_rows, -FOREVER) if time is None else rows[time].to_numpy()

    def _join(self, name: str, rows: pa.Table, windows: Mapping[str, pa.Table]) -> pa.Table:
        query = self.query
        bound = {name: np.arange(rows.num_rows)}
        tables = {**windows, name: rows}
        while len(bound) < len(query.names):
            other = next(
                one
                for one in query.names
                if one not in bound and any(set(query.key_columns[one]) & set(query.key_columns[each]) for each in bound)
            )
            shared = [
                (number, next((each for each in bound if number in query.key_columns[each]), None))
                for number in query.key_columns[other]
            ]
            left, right = [], []
            for number, each in shared:
                if each is not None:
                    mine = codes(tables[each][query.key_columns[each][number][0]].combine_chunks())
                    left.append(mine[bound[each]])
                    right.append(codes(tables[other][query.key_columns[other][number][0]].combine_chunks()))
            keys, others = combined(left), combined(right)
            order = np.argsort(others, kind="stable")
            first = np.searchsorted(others[order], keys, "left")
            count = np.searchsorted(others[order], keys, "right") - first
            origin = np.repeat(np.arange(keys.size), count)
            place = np.arange(origin.size) - np.repeat(np.cumsum(count) - count, count) + first[origin]
            bound = {each: found[origin] for each, found in bound.items()}
            bound[other] = order[place]
        latest = np.max([self._times(each, tables[each])[found] for each, found in bound.items()], axis=0)
        first = np.min([self._deadlines(each, tables[each])[found] for each, found in bound.items()], axis=0)
        keep = latest < first
        for residual in query.residuals:
            columns = [tables[each][column].take(pa.array(bound[each])) for each, column in residual.columns]
            test = residual.test(*(one.combine_chunks() for one in columns))
            keep &= pc.fill_null(test, False).to_numpy(zero_copy_only=False)
        taken = [tables[each][column].take(pa.array(bound[each][keep])) for each, column, _ in query.select]
        names = [alias for *_, alias in query.select]
        return pa.table(taken, names=names)
