"""The messages that tasks send to the cells and the ledger of a join, as rows of a Spark DataFrame.

Messages live within one micro-batch: one task writes them, the stateful operator reads them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from thalweg.mjoin.skew import SkewReport
from thalweg.spark.joins.splitting import LayoutEntry

MESSAGES = "cell int, kind string, input string, payload binary"  # as Spark has it
SCHEMA = pa.schema([("cell", pa.int32()), ("kind", pa.string()), ("input", pa.string()), ("payload", pa.binary())])

LEDGER = -1  # the address of the ledger, which is a key like a cell's label and joins nothing


class MessageKind(StrEnum):
    """The subject of a message."""

    ROWS = "rows"  # packed rows of an input, for this cell
    UNPLACED_ROWS = "unplaced rows"  # packed rows of an input with their hashes, of which each cell picks its own
    WAKE_UP = "wake up"  # nothing but that the cell exists
    LAYOUTS = "layouts"  # the active layouts, as JSON, by which the rows of this micro-batch were sent
    TABLE_VERSION = "table version"  # the name of a file with all rows of a table, from this micro-batch on
    LATEST_TIME = "latest time"  # of an input's rows, in microseconds, where streams may be idle
    TASK_REPORT = "task report"  # on the rows that a task has sent, for the ledger


@dataclass(frozen=True)
class Message:
    """A message to a cell or to the ledger."""

    kind: MessageKind
    input: str = ""  # whose rows these are
    payload: bytes = b""

    def to(self, address: int) -> pa.RecordBatch:
        """The message as a row for Spark."""
        values = ([address], [self.kind.value], [self.input], [self.payload])
        columns = [pa.array(value, field.type) for value, field in zip(values, SCHEMA, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


@dataclass(frozen=True)
class TaskReport:
    """The report of a task to the ledger, on the rows of an input that it has sent.

    >>> report = TaskReport("grid", "A", 3, LayoutEntry.first(), SkewReport("A", 10))
    >>> TaskReport.from_bytes(report.to_bytes()) == report
    True
    """

    layout: str  # as `Layout.text` gives it
    input: str
    without_key_or_time: int  # rows that were not sent
    entry: LayoutEntry | None = None  # by which rows were sent; None where it is lost, or no key can be split
    skew: SkewReport | None = None  # None where no key can be split

    def to_bytes(self) -> bytes:
        """The report as JSON."""
        values = {
            "layout": self.layout,
            "input": self.input,
            "without_key_or_time": self.without_key_or_time,
            "entry": self.entry.to_json() if self.entry else None,
            "skew": self.skew.to_json() if self.skew else None,
        }
        return json.dumps(values).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> TaskReport:
        """The report that `to_bytes` was called on."""
        values = json.loads(data)
        entry = LayoutEntry.from_json(values["entry"]) if values["entry"] else None
        skew = SkewReport.from_json(values["skew"]) if values["skew"] else None
        return cls(values["layout"], values["input"], values["without_key_or_time"], entry, skew)
