"""The messages that come to a cell in a micro-batch, as rows that the cell can take in at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from math import inf

import pyarrow as pa

from thalweg.mjoin import BEGINNING
from thalweg.mjoin.layouts import ActiveLayouts
from thalweg.mjoin.marks import together
from thalweg.mjoin.pack import unpack
from thalweg.spark.joins.layout import Layout
from thalweg.spark.joins.messages import Message, MessageKind

ARRIVING_BYTES = 32 << 20  # of new rows that a cell takes in at once; a larger micro-batch is taken in piece by piece


class Arrivals:
    """The messages to a cell in a micro-batch.

    `layouts` are the active layouts by which the latest rows were sent: the layouts in the cell's state, until a
    message brings others. `latest_times` are the latest times of inputs that messages have told.
    """

    def __init__(self, layout: Layout, cell: int, layouts: ActiveLayouts, messages: Iterable[Message]) -> None:
        self.layouts = layouts
        self.latest_times: dict[str, int] = {}
        self._layout, self._cell, self._messages = layout, cell, messages
        self._layouts_before = layouts

    def pieces(self) -> Iterator[dict[str, pa.RecordBatch]]:
        """Rows by input, so many that they can be taken in at once; at least one piece, which may have no rows.

        With windows by count all rows wait in the cell anyway, so there they are one piece.
        """
        most = inf if self._layout.query.has_count_windows else ARRIVING_BYTES
        waiting, size = dict[str, list[pa.RecordBatch]](), 0
        for message in self._messages:
            if message.kind == MessageKind.LAYOUTS:
                self.layouts = ActiveLayouts.from_json(json.loads(message.payload))
            if message.kind == MessageKind.LATEST_TIME:
                self.latest_times[message.input] = max(
                    int(message.payload), self.latest_times.get(message.input, BEGINNING)
                )
            if message.kind not in {MessageKind.ROWS, MessageKind.UNPLACED_ROWS}:
                continue
            if waiting and size + len(message.payload) > most:
                yield self._as_one_piece(waiting)
                waiting, size = {}, 0
            size += len(message.payload)
            waiting.setdefault(message.input, []).extend(self._own_rows(message))
        yield self._as_one_piece(waiting)

    def _own_rows(self, message: Message) -> list[pa.RecordBatch]:
        """The rows of a message that belong to this cell."""
        rows = unpack(message.payload)
        if message.kind == MessageKind.ROWS:
            return [rows]
        parts = self._layout.split(message.input, rows, self._layouts_before)
        return [part for cells, part in parts if self._cell in cells]

    def _as_one_piece(self, waiting: Mapping[str, list[pa.RecordBatch]]) -> dict[str, pa.RecordBatch]:
        return {name: together(batches, self._layout.query.input(name).schema) for name, batches in waiting.items()}
