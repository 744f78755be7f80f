"""What a session remembers of its last micro-batches and rounds: in memory, and in files for a session started again.

A line of a file is a micro-batch. A log is told from, and nothing is computed by it: a line that cannot be read is left
out, and the line of the last micro-batch may be missing after a driver was killed.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from thalweg.charts import RoundRecord, RoundStatistics
from thalweg.charts.scheduler import LOGGED_ROUNDS
from thalweg.spark.folder import OWNER_FILE, make_private_folder

LOGGED_BATCHES = 1_000
SAVED_ROUNDS = 20  # of a query and micro-batch: more end together only where a session reads what waited for long
COMPUTE = "compute"  # the step of a micro-batch in which the time of queries is their own
PREFIX = "log-"
KEPT = 2  # files
FULL = 4 << 20  # bytes of a file after which another one begins, or `LOGGED_BATCHES` lines: it is read when one starts


class ServedRounds(NamedTuple):
    """What a query got in a micro-batch."""

    rounds: int  # that ended
    rows: int  # of results
    seconds: float = 0.0  # of workers, for the results of this query


@dataclass(frozen=True)
class BatchRecord:
    """One micro-batch in the service log: the seconds of its steps, and what each query got."""

    number: int
    rows: int
    seconds: Mapping[str, float]
    served: Mapping[str, ServedRounds]  # by token
    without_time: int = 0  # rows that belong to no round, because their event time is NULL
    wanted_memory: int = 0  # bytes that all queries together would have held
    held_memory: int = 0  # bytes that the largest job held
    lag: float | None = None  # seconds that the latest event time lies behind the clock; None before the first row
    jobs: tuple[tuple[str, ...], ...] = ()  # the tokens of the queries of each job
    ends: Mapping[str, int] = field(default_factory=dict)  # of the last round that ended, in microseconds, by token

    @property
    def shared_seconds(self) -> float:
        """The time of the steps that all queries share."""
        return sum(spent for step, spent in self.seconds.items() if step != COMPUTE)


@dataclass(frozen=True)
class RoundService:
    """A round of a query: how its plan was chosen, in which micro-batch it ended, and what it took."""

    batch: int
    end: int  # of event time, in microseconds
    record: RoundRecord
    rows_read: int  # of its streams
    rows: int  # of results
    seconds: float  # its share of the time that workers spent on the query alone
    shared_seconds: float  # its share of the time that all queries share


RoundServices = Mapping[str, Sequence[RoundService]]  # by token


@dataclass(frozen=True)
class EndedRounds:
    """The rounds of a query that a micro-batch has ended, before its time is divided: lists of one length."""

    ends: Sequence[int]
    records: Sequence[RoundRecord]
    rows: Sequence[int]  # of results
    seconds: float  # of all of them


def divided(batch: int, ended: Mapping[str, EndedRounds], lengths: Mapping[str, int], shared: float) -> RoundServices:
    """The services of rounds, by token: seconds are divided by the rows that rounds read.

    A query's own seconds are divided over its rounds, and `shared` seconds over the rounds of all queries.
    """
    read = {token: [rows_read(each, lengths[token]) for each in rounds.records] for token, rounds in ended.items()}
    every = sum(sum(rows) for rows in read.values()) or 1
    found: dict[str, list[RoundService]] = {}
    for token, rounds in ended.items():
        own = sum(read[token]) or 1
        found[token] = [
            RoundService(batch, end, record, taken, rows, rounds.seconds * taken / own, shared * taken / every)
            for end, record, taken, rows in zip(rounds.ends, rounds.records, read[token], rounds.rows, strict=True)
        ]
    return found


class SessionLog:
    """The last micro-batches, and the last rounds of each query."""

    def __init__(self, folder: str, last_batch: int) -> None:
        """Read what a session has logged in its folder up to the last micro-batch that counts."""
        self.batches: deque[BatchRecord] = deque(maxlen=LOGGED_BATCHES)
        self.rounds: dict[str, deque[RoundService]] = {}  # by token
        self._folder = Path(folder)
        self._file: Path | None = None  # to which the next line is added
        self._lines = self._bytes = 0
        for file in self._files():
            content = file.read_bytes()
            lines = content.splitlines()
            self._file = file if content.endswith(b"\n") else None  # a line that was cut short stays the last one
            self._lines, self._bytes = len(lines), len(content)
            for line in lines:
                with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError, RecursionError):
                    record, rounds = _loaded(line)
                    if record.number <= last_batch:
                        self._remember(record, rounds)

    def add(self, record: BatchRecord, rounds: RoundServices) -> None:
        """Log a micro-batch."""
        self._remember(record, rounds)
        if self._file is None or self._lines >= LOGGED_BATCHES or self._bytes >= FULL:
            self._file, self._lines, self._bytes = self._folder / f"{PREFIX}{record.number:012d}", 0, 0
            make_private_folder(self._folder)
            for old in self._files()[: 1 - KEPT]:
                old.unlink(missing_ok=True)
        line = _saved(record, rounds)
        with contextlib.suppress(OSError):  # a log that cannot be written stops no query
            descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, OWNER_FILE)
            with os.fdopen(descriptor, "ab") as file:
                file.write(line)
        self._lines, self._bytes = self._lines + 1, self._bytes + len(line)

    def forget(self, token: str) -> None:
        """Forget the rounds of a query that was removed."""
        self.rounds.pop(token, None)

    def _remember(self, record: BatchRecord, rounds: RoundServices) -> None:
        self.batches.append(record)
        for token, own in rounds.items():
            self.rounds.setdefault(token, deque(maxlen=LOGGED_ROUNDS)).extend(own)

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob(f"{PREFIX}*"))


def _saved(record: BatchRecord, rounds: RoundServices) -> bytes:
    last = {token: [_round_values(each) for each in own[-SAVED_ROUNDS:]] for token, own in rounds.items()}
    return json.dumps({"batch": vars(record), "rounds": last}).encode() + b"\n"


def _round_values(service: RoundService) -> dict[str, Any]:
    record = service.record
    expected = None if record.expected is None else vars(record.expected)
    return {**vars(service), "record": {**vars(record), "expected": expected, "observed": vars(record.observed)}}


def _loaded(line: bytes) -> tuple[BatchRecord, RoundServices]:
    values = json.loads(line)
    batch = values["batch"]
    record = BatchRecord(
        **{
            **batch,
            "served": {token: ServedRounds(*service) for token, service in batch["served"].items()},
            "jobs": tuple(map(tuple, batch["jobs"])),
        }
    )
    return record, {token: list(map(_round_service, own)) for token, own in values["rounds"].items()}


def _round_service(values: Mapping[str, Any]) -> RoundService:
    record = values["record"]
    expected = None if record["expected"] is None else RoundStatistics(**record["expected"])
    observed = RoundStatistics(**record["observed"])
    return RoundService(**{**values, "record": RoundRecord(**{**record, "expected": expected, "observed": observed})})


def rows_read(record: RoundRecord, length: int) -> int:
    """How many rows of its query's streams a round has; `length` is that of the window, in microseconds."""
    return round(sum(float(rate) for rate in record.observed.rates.values()) * length / 1e6)


def rows_kept(record: RoundRecord, length: int) -> int:
    """How many of these rows shared conditions keep: the results of a query that only chooses rows."""
    observed = record.observed
    kept = (float(rate * observed.selectivities.get(alias, 1.0)) for alias, rate in observed.rates.items())
    return round(sum(kept) * length / 1e6)


def last_of(records: Iterable[RoundRecord], count: int) -> list[RoundRecord]:
    """The last records of a scheduler's log, the oldest first; fewer if it remembers fewer."""
    return list(records)[-count:]
