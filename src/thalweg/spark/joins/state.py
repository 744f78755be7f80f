"""The state of a join as Spark stores it: a value for each cell, a value for the ledger, and the cells' segments.

Each value is sealed with its kind and version, so Spark's own schema of the state never changes, and a checkpoint of
another version is refused with a message that says what to do. Segments are sealed by `thalweg.mjoin.segments`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from thalweg.mjoin.layouts import ActiveLayouts
from thalweg.mjoin.segments import NEW_CHECKPOINT
from thalweg.sealed import refusing_odd_values, seal, unseal_json
from thalweg.spark.joins.idle import StreamTime
from thalweg.spark.joins.splitting import SplittingRecord

CELL, LEDGER = "state of a cell", "state of a join's ledger"  # kinds
VERSION = 2  # 1 was not sealed


class TableInCell(NamedTuple):
    """The version of a table that a cell has."""

    file: str
    batch: int  # the micro-batch from which on it holds


class StoredSegment(NamedTuple):
    """A segment in Spark's state store."""

    name: str  # used once, even if a task is repeated
    bytes: int


@dataclass(frozen=True)
class CellState:
    """The state of a cell, without the content of its segments."""

    token: str  # the name of this version of the state
    watermark: int  # milliseconds, 0 for none yet
    segments: Mapping[int, StoredSegment]
    counts: Mapping[str, Any]
    layouts: ActiveLayouts  # by which the last rows were sent
    knowledge: Mapping[str, Any]  # of the cell: it makes the cell fast, and results do not depend on it
    owner: str  # the address of the process that holds this version of the cell
    timer: int | None = None  # when the cell is woken, by Spark's watermark; None in the state of an early version
    stream_times: Mapping[str, StreamTime] = field(default_factory=dict)  # where streams may be idle
    tables: Mapping[str, TableInCell] = field(default_factory=dict)  # tables that may change
    left: Mapping[str, int] | None = None  # the latest time of rows that have left, by input; None if it is not known

    def to_bytes(self) -> bytes:
        """The state, sealed."""
        return _sealed(
            CELL,
            {
                "token": self.token,
                "watermark": self.watermark,
                "segments": {str(number): list(segment) for number, segment in self.segments.items()},
                "counts": self.counts,
                "layouts": self.layouts.to_json(),
                "knowledge": self.knowledge,
                "owner": self.owner,
                "timer": self.timer,
                "stream_times": self.stream_times,
                "tables": self.tables,
                "left": self.left,
            },
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> CellState:
        """The state that `to_bytes` was called on."""
        saved = unseal_json(CELL, VERSION, data, NEW_CHECKPOINT)
        with refusing_odd_values(CELL, NEW_CHECKPOINT):
            segments = {int(number): StoredSegment(*segment) for number, segment in saved.pop("segments").items()}
            layouts = ActiveLayouts.from_json(saved.pop("layouts"))
            times = {name: StreamTime(*time) for name, time in saved.pop("stream_times", {}).items()}
            tables = {name: TableInCell(*table) for name, table in saved.pop("tables", {}).items()}
            return cls(segments=segments, layouts=layouts, stream_times=times, tables=tables, **saved)


@dataclass(frozen=True)
class LedgerState:
    """The state of the ledger."""

    layout: str  # as `Layout.text` gives it
    without_key_or_time: Mapping[str, int]  # rows that were not sent, by input
    splitting: SplittingRecord | None = None  # None where no key can be split

    def to_bytes(self) -> bytes:
        """The state, sealed."""
        splitting = self.splitting.to_json() if self.splitting else None
        values = {"layout": self.layout, "without_key_or_time": self.without_key_or_time, "splitting": splitting}
        return _sealed(LEDGER, values)

    @classmethod
    def from_bytes(cls, data: bytes) -> LedgerState:
        """The state that `to_bytes` was called on."""
        saved = unseal_json(LEDGER, VERSION, data, NEW_CHECKPOINT)
        with refusing_odd_values(LEDGER, NEW_CHECKPOINT):
            splitting = SplittingRecord.from_json(saved["splitting"]) if saved["splitting"] else None
            return cls(saved["layout"], saved["without_key_or_time"], splitting)


def _sealed(kind: str, values: Mapping[str, Any]) -> bytes:
    return seal(kind, VERSION, json.dumps(values).encode())
