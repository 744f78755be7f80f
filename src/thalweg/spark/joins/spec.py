"""The part of a join that all its workers know: how to make new cells, to report, and to keep the cells' knowledge."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from thalweg.mjoin import Cell
from thalweg.mjoin.layouts import PLAIN
from thalweg.mjoin.marks import ALWAYS, ELSEWHERE, mark, together
from thalweg.mjoin.pack import unpack
from thalweg.mjoin.place import without_null
from thalweg.sealed import SavedStateError, seal, unseal_json
from thalweg.spark.folder import StateFolder
from thalweg.spark.joins.layout import Layout, as_stored
from thalweg.spark.joins.plan import JoinPlan

KNOWLEDGE, REPORT = "knowledge of a join", "report of a join"  # kinds of files
VERSION = 1
KEPT_RUNS = 8  # of a join, whose reports stay in a folder that the user has named


@dataclass(frozen=True)
class JoinSpec:
    """All that workers need to know of a join."""

    plan: JoinPlan
    tables: Mapping[str, bytes] = field(default_factory=dict)  # inputs that are sent with the query, packed
    shown: pa.Schema | None = None  # the columns of results as the user knows them; None where results are packed

    @property
    def layout(self) -> Layout:
        """Which rows go to which cells."""
        return self.plan.layout

    def new_cell(self) -> Cell:
        """A cell without rows, which begins with the saved knowledge of another cell of the query."""
        cell, name = Cell(self.plan.query, **self.plan.options), self._knowledge_file
        with contextlib.suppress(OSError, SavedStateError):  # a cell that knows nothing gives the same results
            saved = StateFolder(self.plan.folder).read([name])
            if saved:
                cell.learn(unseal_json(KNOWLEDGE, VERSION, saved[name]))
        return cell

    def first_tables(self, cell: int) -> dict[str, pa.RecordBatch]:
        """A cell's rows of the tables that came with the query."""
        return {name: self._rows_of_cell(cell, name, unpack(packed)) for name, packed in self.tables.items()}

    def changed_tables(self, cell: int, versions: Mapping[str, str]) -> dict[str, pa.RecordBatch]:
        """A cell's rows of new versions of tables, from the names of their files."""
        return {
            name: self._rows_of_cell(cell, name, self.plan.versions[name].read(file)) for name, file in versions.items()
        }

    def _rows_of_cell(self, cell: int, name: str, table: pa.RecordBatch) -> pa.RecordBatch:
        """A cell's rows of a table: all rows, where keys may be split."""
        rows, schema = without_null(table, self.layout.required_columns(name)), self.plan.query.input(name).schema
        if self.plan.splitting:
            return mark(as_stored(rows, schema), ALWAYS | (ELSEWHERE if cell else 0))
        return together([part for cells, part in self.layout.split(name, rows, PLAIN) if cell in cells], schema)

    def report(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a report for the driver."""
        self._write(f"{self.plan.key}-{name}{report_suffix(self.layout)}", REPORT, content)

    def save(self, knowledge: Mapping[str, Any]) -> None:
        """Save a cell's knowledge for new cells."""
        self._write(self._knowledge_file, KNOWLEDGE, knowledge)

    @property
    def _knowledge_file(self) -> str:
        return f"{self.layout.digest}.learned-join"

    def _write(self, name: str, kind: str, content: Mapping[str, Any]) -> None:
        """Write a file that is good to have; where that cannot be, it is no reason to fail."""
        with contextlib.suppress(OSError):
            StateFolder(self.plan.folder).write(name, seal(kind, VERSION, json.dumps(content).encode()))


def report_suffix(layout: Layout) -> str:
    """The end of the names of all reports of a join."""
    return f".{layout.digest}.json"


def forget_old_reports(plan: JoinPlan) -> None:
    """Remove the reports of all but the latest runs of a join, as each start of a program leaves some in its folder."""
    folder = StateFolder(plan.folder)
    with contextlib.suppress(OSError):
        written: dict[str, Any] = folder.versions()
        names = sorted((name for name in written if name.endswith(report_suffix(plan.layout))), key=written.__getitem__)
        keys = dict.fromkeys(name.partition("-")[0] for name in reversed(names))  # the latest run first
        kept = set(list(keys)[:KEPT_RUNS])
        folder.delete(name for name in names if name.partition("-")[0] not in kept)


def read_reports(url: str, key: str) -> list[dict[str, Any]]:
    """The latest reports of all cells and of the ledger of a run, from its folder."""
    folder = StateFolder(url)
    names = [name for name in folder.versions() if name.startswith(f"{key}-")]
    return [unseal_json(REPORT, VERSION, data) for data in folder.read(names).values()]


def oldest_version(reports: Iterable[Mapping[str, Any]], table: str, cells: int) -> str | None:
    """The oldest version of a table that some cell has, by its file; None as long as some cell has none."""
    found = [report["tables"][table]["file"] for report in reports if table in report.get("tables", {})]
    return min(found) if len(found) == cells else None


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


def sum_counts(several: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The sums of counts with the same name, also of counts within counts.

    >>> sum_counts([{"rows": {"A": 1}, "steps": 1}, {"rows": {"A": 2, "B": 5}, "steps": 1}])
    {'rows': {'A': 3, 'B': 5}, 'steps': 2}
    """
    total: dict[str, Any] = {}
    for counts in several:
        for name, value in counts.items():
            if isinstance(value, Mapping):
                total[name] = dict(Counter(total.get(name, {})) + Counter(value))
            elif isinstance(value, int | float):
                total[name] = total.get(name, 0) + value
    return total
