"""What workers know of a join, and what they have in common: the rows that come to a cell, and what is told of it."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

import pyarrow as pa

from thalweg.mjoin import Cell
from thalweg.mjoin.layouts import PLAIN, ActiveLayouts
from thalweg.mjoin.marks import ALWAYS, ELSEWHERE, mark, together
from thalweg.mjoin.pack import unpack
from thalweg.mjoin.place import without_null
from thalweg.spark.folder import StateFolder
from thalweg.spark.joins.packing import GREETING, UNPLACED, Layout, stored
from thalweg.spark.joins.splitting import Splitting

ARRIVING_BYTES = 32 << 20  # of new rows that a cell takes in at once; a larger micro-batch is taken in piece by piece


@dataclass(frozen=True)
class JoinSpec:
    """What workers need to know of a join."""

    key: str
    layout: Layout
    options: Mapping[str, Any]  # of cells: planner, policy, drift
    folder: str  # where to report
    late: str | None = None  # where to keep late rows
    tables: Mapping[str, bytes] = field(default_factory=dict)  # inputs that are sent with the query, packed
    splitting: Splitting | None = None  # where frequent keys may be split

    def new_cell(self) -> Cell:
        """A cell without rows, that knows what some cell of the query has learnt before."""
        cell = Cell(self.layout.query, **self.options)
        try:
            saved = StateFolder(self.folder).read([self.learned])
        except OSError:
            saved = {}
        if saved:
            cell.learn(json.loads(saved[self.learned])["knowledge"])
        return cell

    @property
    def learned(self) -> str:
        """The file of what was learnt last."""
        return f"{self.layout.digest}.learned-join"

    def table_rows(self, cell: int) -> dict[str, pa.RecordBatch]:
        """What a cell has of the tables that came with the query: all, where keys may be split."""
        found = {}
        for name, packed in self.tables.items():
            rows = without_null(unpack(packed), self.layout.present(name))
            if self.splitting:
                found[name] = mark(
                    stored(rows, self.layout.query.input(name).schema), ALWAYS | (ELSEWHERE if cell else 0)
                )
            else:
                found.update((name, part) for cells, part in self.layout.split(name, rows, PLAIN) if cell in cells)
        return found

    def arrivals(
        self, packed: Iterable[tuple[int, bytes]], cell: int, layouts: ActiveLayouts, greetings: list[bytes]
    ) -> Iterator[dict[str, pa.RecordBatch]]:
        """Packed rows, put together by input, so many that they can be taken in at once; at least one such piece.

        Of rows that came to all cells, those that are its own by the active layouts are taken. Greetings are put
        aside. With windows by count all rows wait in the cell anyway, so there they are one piece.
        """
        waiting, size, most = (
            dict[str, list[pa.RecordBatch]](),
            0,
            inf if self.layout.query.has_count_windows else ARRIVING_BYTES,
        )
        names = self.layout.query.names
        for number, payload in packed:
            if number == GREETING:
                greetings.append(payload)
                continue
            if waiting and size + len(payload) > most:
                yield self._together(waiting)
                waiting, size = {}, 0
            size += len(payload)
            if number <= UNPLACED:
                name = names[UNPLACED - number]
                own = [part for cells, part in self.layout.split(name, unpack(payload), layouts) if cell in cells]
                waiting.setdefault(name, []).extend(own)
            else:
                waiting.setdefault(names[number], []).append(unpack(payload))
        yield self._together(waiting)

    def _together(self, waiting: Mapping[str, list[pa.RecordBatch]]) -> dict[str, pa.RecordBatch]:
        return {name: together(several, self.layout.query.input(name).schema) for name, several in waiting.items()}

    def report(self, name: str, content: Mapping[str, Any]) -> None:
        """Tell the driver something."""
        self._write(f"{self.key}-{name}.json", content)

    def save(self, knowledge: Mapping[str, Any]) -> None:
        """Let new cells know what a cell has learnt."""
        self._write(self.learned, {"knowledge": knowledge})

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        """Write what is good to know; where that cannot be, it is no reason to fail."""
        with contextlib.suppress(OSError):
            StateFolder(self.folder).write(name, json.dumps(content).encode())


class WindowTooLargeError(MemoryError):
    """A cell whose windows are more than a worker can hold."""

    def __init__(self, cell: int, rows: Mapping[str, int]) -> None:
        taken = ", ".join(f"{name} {number:,}" for name, number in rows.items()) or "none"
        super().__init__(
            f"cell {cell} does not fit into the memory of a worker (new rows taken in until then: {taken}). Give it "
            f"less: more cells=, shorter windows=, fewer columns in select=, fewer rows a micro-batch "
            f"(maxFilesPerTrigger, maxBytesPerTrigger, maxOffsetsPerTrigger); or more: spark.executor.pyspark.memory, "
            f"fewer cores an executor"
        )


def added_up(several: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts of one kind summed, also those within counts.

    >>> added_up([{"rows": {"A": 1}, "steps": 1}, {"rows": {"A": 2, "B": 5}, "steps": 1}])
    {'rows': {'A': 3, 'B': 5}, 'steps': 2}
    """
    total: dict[str, Any] = {}
    for one in several:
        for name, value in one.items():
            if isinstance(value, Mapping):
                total[name] = dict(Counter(total.get(name, {})) + Counter(value))
            elif isinstance(value, int | float):
                total[name] = total.get(name, 0) + value
    return total
