"""Cells that worker processes keep ready to be probed, and how one process steps a cell that another process owns.

Spark gives the next step of a cell to any worker process of an executor. Making the cell anew there takes longer than
the step, and leaves a copy in every process. So a cell stays with its owner: the process that has the step sends the
new rows to the owner, and gets back the results. Processes that got each other's cells work for each other, each on its
core. A process that owns two cells fewer than the other takes the cell over instead, so that no process has to do the
work of all.

All this is about speed. A cell is used only if it is the version that Spark has committed, and an owner that does not
answer is not needed: the state has all rows.

Messages are pickled, so a process hears only processes of its own user that know its key: the system tells who is at
the other end of a socket before anything is unpickled.
"""

from __future__ import annotations

import os
import secrets
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection, Listener, answer_challenge, deliver_challenge
from typing import Any, NamedTuple

import pyarrow as pa

from thalweg.mjoin import Cell, Step
from thalweg.mjoin.adaptation import Switch
from thalweg.spark.joins.state import StoredSegment

UNUSED_SECONDS = 300.0  # a cell that was not stepped for so long has another owner, or its query has ended
ANSWER_SECONDS = 5.0  # that a process waits for an answer, as the owner may be stepping a cell for another process
IDLE_SECONDS = 20.0  # without a task for so long, a process begins no step: Spark ends idle processes after a minute
FEWER = 2  # cells that make a process take a cell over from its owner
WAITING = 64  # processes that may wait for an answer
MOST_HELD = 64 << 20  # bytes of results that wait for the end of a step
CREDENTIALS = struct.Struct("iII")  # of the process at the other end of a socket: its number, user and group


class CellId(NamedTuple):
    """The name of a cell that all processes know it by."""

    join: str  # the key of the join
    query: str  # Spark's id of the streaming query
    label: int  # of the cell


# ------------------------------------------------------------------ messages between two processes, in this order


@dataclass(frozen=True)
class StepRequest:
    """Asks the owner of a cell to step this version of it."""

    cell: CellId
    token: str
    owned_cells: int  # of the process that asks


@dataclass(frozen=True)
class RequestAnswer:
    """Whether the owner will step the cell."""

    is_accepted: bool


@dataclass(frozen=True)
class NewRows:
    """Rows for the cell to take in; the owner answers with the parts of a `Step`, and then `RowsTaken`."""

    arrivals: Mapping[str, pa.RecordBatch]
    watermark: int | None
    tables: Mapping[str, pa.RecordBatch]


@dataclass(frozen=True)
class RowsTaken:
    """The cell has taken in the rows: its knowledge and its latest switches now."""

    knowledge: dict[str, Any]
    switches: list[Switch]


@dataclass(frozen=True)
class StepFailed:
    """The cell could not take in the rows, and is no longer owned."""

    error: Exception


@dataclass(frozen=True)
class StepDone:
    """There are no more rows: this is the version of the state that the cell is now."""

    token: str
    segments: dict[int, StoredSegment]


# ---------------------------------------------------------------------------------------------------------- cells


class OwnerEndedError(ConnectionError):
    """The process that owned a cell has ended before it gave any part of a step: the rows can be taken in again."""


class RemoteCell:
    """A cell that another process owns, for one step."""

    def __init__(self, connection: Connection[Any, Any]) -> None:
        self._connection = connection
        self._knowledge: dict[str, Any] = {}
        self.switches: list[Switch] = []

    def parts(
        self,
        arrivals: Mapping[str, pa.RecordBatch],
        watermark: int | None,
        tables: Mapping[str, pa.RecordBatch] | None = None,
    ) -> Iterator[Step]:
        """Take in new rows, as `Cell.parts` does. Parts come when all are there, so that the step can be done again.

        If their results are large, they come before that; then the task fails if the owner ends.
        """
        held, size = list[Step](), 0
        try:
            self._connection.send(NewRows(arrivals, watermark, tables or {}))
            while isinstance(answer := self._receive(), Step):
                held.append(answer)
                size += answer.results.nbytes
                if size > MOST_HELD:
                    yield from held
                    held.clear()
        except (EOFError, OSError):  # a closed connection
            if size > MOST_HELD:
                raise ConnectionError("the worker process that owned a cell of the join has ended; try again") from None
            raise OwnerEndedError from None
        yield from held
        self._knowledge, self.switches = answer.knowledge, answer.switches

    def knowledge(self) -> dict[str, Any]:
        """The cell's knowledge, as of the last part."""
        return self._knowledge

    def finish(self, token: str, segments: dict[int, StoredSegment]) -> None:
        """Tell the owner which version the cell is now."""
        with suppress(OSError):  # if the owner has ended, the next step makes the cell from the state
            self._connection.send(StepDone(token, segments))
            self._connection.close()

    def _receive(self) -> Step | RowsTaken:
        answer: Step | RowsTaken | StepFailed = self._connection.recv()
        if isinstance(answer, StepFailed):
            raise answer.error
        return answer


@dataclass
class OwnedCell:
    """A cell that is ready to be stepped, the version of the state that it is, and its owner."""

    token: str
    cell: Cell | RemoteCell
    segments: dict[int, StoredSegment]
    owner: str  # the address of the process that owns it
    last_used: float = 0.0  # on the monotonic clock


class CellOwner:
    """The cells of a process. Its own thread answers other processes, one after the other."""

    def __init__(self) -> None:
        self._cells: dict[CellId, OwnedCell] = {}
        self._step_lock = threading.Lock()  # a process steps one cell at a time, as it has one core
        self._idle_since: float | None = time.monotonic()  # None while there is a task
        self._address = ""

    @property
    def address(self) -> str:
        """Where other processes find this process; empty where they cannot."""
        if not self._address and sys.platform == "linux":  # whose sockets need no file and end with the process
            name, key = f"thalweg-{secrets.token_hex(8)}", secrets.token_bytes(16)
            with suppress(OSError):  # where a process may have no sockets
                listener = Listener(f"\0{name}", "AF_UNIX", backlog=WAITING)
                threading.Thread(target=self._answer, args=(listener, key), daemon=True).start()
                self._address = f"{name} {key.hex()}"
        return self._address

    def take(self, cell_id: CellId) -> OwnedCell | None:
        """A cell of this process, which no longer owns it then."""
        return self._cells.pop(cell_id, None)

    def keep(self, cell_id: CellId, owned: OwnedCell) -> None:
        """Leave a cell with its owner until its next step; cells that have not been used for long are dropped."""
        if isinstance(owned.cell, RemoteCell):
            owned.cell.finish(owned.token, owned.segments)
            return
        owned.last_used = time.monotonic()
        self._cells[cell_id] = owned
        for other_id, other in list(self._cells.items()):
            if owned.last_used - other.last_used > UNUSED_SECONDS:
                self.take(other_id)

    def request(self, owner: str, cell_id: CellId, token: str) -> RemoteCell | None:
        """A cell of another process; None if its owner refuses or does not answer, so this process has to make it."""
        if not owner or owner == self._address:
            return None
        place, key = owner.split()
        with suppress(Exception):  # after any failure, the state still has all rows
            connection = Client(f"\0{place}", "AF_UNIX")
            if is_own_user(connection) and connection.poll(ANSWER_SECONDS):
                answer_challenge(connection, bytes.fromhex(key))
                deliver_challenge(connection, bytes.fromhex(key))
                connection.send(StepRequest(cell_id, token, len(self._cells)))
                if connection.recv().is_accepted:
                    return RemoteCell(connection)
            connection.close()
        return None

    @contextmanager
    def stepping(self, owned: OwnedCell) -> Iterator[None]:
        """While a cell is stepped: the cells of this process take turns."""
        if isinstance(owned.cell, RemoteCell):
            yield
            return
        with self._step_lock:
            yield

    def begin_task(self) -> None:
        """Note that Spark has given this process a task."""
        self._idle_since = None

    def end_task(self) -> None:
        """Note that the task is done, once no step for another process is under way."""
        with self._step_lock:
            self._idle_since = time.monotonic()

    def _answer(self, listener: Listener, key: bytes) -> None:
        with listener:
            while True:
                with suppress(Exception), listener.accept() as connection:  # if it fails, the next may do better
                    if is_own_user(connection):  # first of all: another user could keep this thread waiting
                        deliver_challenge(connection, key)
                        answer_challenge(connection, key)
                        self._serve(connection)

    def _serve(self, connection: Connection[Any, Any]) -> None:
        """Step a cell for another process. If one of the two processes fails, the cell is no longer owned."""
        request: StepRequest = connection.recv()
        owned = self._accept(request)
        connection.send(RequestAnswer(owned is not None))
        if owned is None:
            return
        with self.stepping(owned):
            while isinstance(message := connection.recv(), NewRows):
                self._take_in(owned, message, connection)
            done: StepDone = message
            owned.token, owned.segments = done.token, done.segments
            self.keep(request.cell, owned)

    def _take_in(self, owned: OwnedCell, rows: NewRows, connection: Connection[Any, Any]) -> None:
        try:
            for part in owned.cell.parts(rows.arrivals, rows.watermark, rows.tables):
                connection.send(part)
            connection.send(RowsTaken(owned.cell.knowledge(), owned.cell.switches))
        except Exception as error:
            connection.send(StepFailed(error))
            raise

    def _accept(self, request: StepRequest) -> OwnedCell | None:
        """The cell that a process asks for; None if this process refuses to step it."""
        owned = self.take(request.cell)
        if owned is None or len(self._cells) + 1 - request.owned_cells >= FEWER:
            return None
        is_idle = self._idle_since is not None and time.monotonic() - self._idle_since >= IDLE_SECONDS
        if owned.token == request.token and not is_idle:
            return owned
        self.keep(request.cell, owned)
        return None


def is_own_user(connection: Connection[Any, Any]) -> bool:
    """Whether the process at the other end of a local socket belongs to the user of this process."""
    with socket.socket(fileno=os.dup(connection.fileno())) as end:
        _process, user, _group = CREDENTIALS.unpack(
            end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
        )
    return bool(user == os.geteuid())


CELL_OWNER = CellOwner()  # of this process
