"""A step of a cell: its results, the changes of the state, and its statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from thalweg.mjoin.adaptation import Switch
from thalweg.ordering.types import Integers


@dataclass
class Statistics:
    """The counts of a step, and the estimates and orders after it."""

    rows: dict[str, int] = field(default_factory=dict)  # new rows that were joined
    late: dict[str, int] = field(default_factory=dict)  # rows that came too late
    keyless: dict[str, int] = field(default_factory=dict)  # rows that can match nothing: a key is NULL
    waiting: dict[str, int] = field(default_factory=dict)  # rows that wait for the watermark, with windows by count
    results: int = 0
    probes: int = 0  # lookups in an index
    visited: int = 0  # rows that were found there
    intermediate: int = 0  # combinations of rows that were made on the way to results
    state_rows: dict[str, int] = field(default_factory=dict)  # rows in the windows
    left: dict[str, int] = field(default_factory=dict)  # the latest time of rows that have left their window by time
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
        """The statistics as plain values for JSON."""
        return asdict(self)


@dataclass
class Step:
    """The results of a step, and how it changed the state; or a part of it: all but the last have results only."""

    results: pa.RecordBatch
    late: Mapping[str, pa.RecordBatch]
    added: Mapping[int, bytes]  # segments that are new
    removed: tuple[int, ...]  # numbers of segments that are no longer needed
    statistics: Statistics


@dataclass
class OpenStep:
    """A step that is under way: its watermarks, and its changes so far."""

    before: int  # the watermark of the last step
    now: int  # and of this step
    statistics: Statistics = field(default_factory=Statistics)
    late: dict[str, pa.RecordBatch] = field(default_factory=dict)
    added: dict[int, bytes] = field(default_factory=dict)
    removed: list[int] = field(default_factory=list)
    unmatchable: dict[str, list[pa.RecordBatch]] = field(default_factory=dict)  # new rows that can match nothing


class ResultChange(NamedTuple):
    """Results that appear or end."""

    sign: int  # 1 or -1
    rows: dict[str, Integers]  # the numbers of their rows, by input
