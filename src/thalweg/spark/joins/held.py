"""Cells that worker processes hold ready to be probed, and how one process steps a cell that another one holds.

Spark gives the next step of a cell to any worker process of an executor. Making the cell anew there takes longer than
the step, and leaves a copy in every process. So a cell stays where it is: the process that has the step sends the new
rows to the one that holds the cell, and gets back what came of them. Processes that got each other's cells work for
each other, each on one core. A process that holds two cells fewer than the other takes the cell over instead, so that
none has to do the work of all.

All this is about speed. A cell is used only if it is the version that Spark has committed, and whoever does not answer
is not needed: the state has all.
"""

from __future__ import annotations

import secrets
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection, Listener, answer_challenge, deliver_challenge
from typing import Any, TypeAlias

import pyarrow as pa

from thalweg.mjoin import Cell, Step
from thalweg.mjoin.adaptation import Switch

HELD_SECONDS = 300.0  # a cell that was not stepped for so long is with others, or its query has ended
ANSWER_SECONDS = 5.0  # that one waits to be heard, as the other process may be stepping a cell for somebody else
IDLE_SECONDS = 20.0  # without a task for so long, a process begins no step: Spark ends idle ones after a minute
FEWER = 2  # cells that make a process take one over from another
WAITING = 64  # processes that may wait for an answer

Name: TypeAlias = tuple[str, str, int]  # the join, the query and the label of a cell


class Asked:
    """A cell that another process holds, for one step."""

    def __init__(self, connection: Connection[Any, Any]) -> None:
        self._connection = connection
        self._knowledge: dict[str, Any] = {}
        self.switches: list[Switch] = []

    def parts(self, arrivals: Mapping[str, pa.RecordBatch], watermark: int | None) -> Iterator[Step]:
        """Take in new rows, as `Cell.parts` does."""
        with _ended():
            self._connection.send((arrivals, watermark))
        while isinstance(found := self._received(), Step):
            yield found
        self._knowledge, self.switches = found

    def knowledge(self) -> dict[str, Any]:
        """What has been learnt, as of the last part."""
        return self._knowledge

    def let_go(self, token: str, segments: dict[int, tuple[str, int]]) -> None:
        """Tell the other process which version the cell is now."""
        with suppress(OSError):  # if it has ended, the next step makes the cell from the state
            self._connection.send(None)
            self._connection.send((token, segments))
            self._connection.close()

    def _received(self) -> Any:  # noqa: ANN401 - a part, or what comes after the last
        with _ended():
            found = self._connection.recv()
        if isinstance(found, Exception):
            raise found
        return found


@contextmanager
def _ended() -> Iterator[None]:
    """A connection that is closed means that the other process has ended."""
    try:
        yield
    except (EOFError, OSError):
        raise ConnectionError("the worker process that held a cell of the join has ended; try again") from None


@dataclass
class Held:
    """A cell that a process holds, and which version of the state it is."""

    token: str
    cell: Cell | Asked
    segments: dict[int, tuple[str, int]]  # name and bytes, by number
    holder: str  # where it is
    used: float = 0.0  # when it was last


class Holder:
    """The cells of a process. Others are answered by a thread of it, one after the other."""

    def __init__(self) -> None:
        self._held: dict[Name, Held] = {}
        self._turn = threading.Lock()  # to step a cell: a process has one core
        self._idle_since: float | None = time.monotonic()  # None while there is a task
        self._address = ""

    @property
    def address(self) -> str:
        """Where others find this process; empty where they cannot."""
        if not self._address and sys.platform == "linux":  # whose sockets need no file and end with the process
            name, key = f"thalweg-{secrets.token_hex(8)}", secrets.token_bytes(16)
            with suppress(OSError):  # where a process may have no sockets
                listener = Listener(f"\0{name}", "AF_UNIX", backlog=WAITING, authkey=key)
                threading.Thread(target=self._answer, args=(listener,), daemon=True).start()
                self._address = f"{name} {key.hex()}"
        return self._address

    def take(self, name: Name) -> Held | None:
        """A cell of this process, which is then no longer held."""
        return self._held.pop(name, None)

    def keep(self, name: Name, held: Held) -> None:
        """Hold a cell from now on, where it is; and none that nobody uses."""
        if isinstance(held.cell, Asked):
            held.cell.let_go(held.token, held.segments)
            return
        held.used = time.monotonic()
        self._held[name] = held
        for other, one in list(self._held.items()):
            if held.used - one.used > HELD_SECONDS:
                self.take(other)

    def ask(self, holder: str, name: Name, token: str) -> Asked | None:
        """A cell that another process holds; None if this one has to make it."""
        if not holder or holder == self._address:
            return None
        place, key = holder.split()
        with suppress(Exception):  # whatever fails, the state has all
            connection = Client(f"\0{place}", "AF_UNIX")
            if connection.poll(ANSWER_SECONDS):
                answer_challenge(connection, bytes.fromhex(key))
                deliver_challenge(connection, bytes.fromhex(key))
                connection.send((name, token, len(self._held)))
                if connection.recv():
                    return Asked(connection)
            connection.close()
        return None

    @contextmanager
    def stepping(self, held: Held) -> Iterator[None]:
        """While a cell is stepped: those of this process one at a time."""
        if isinstance(held.cell, Asked):
            yield
            return
        with self._turn:
            yield

    def begin_task(self) -> None:
        """Note that Spark has given this process something to do."""
        self._idle_since = None

    def end_task(self) -> None:
        """Note that it is done, once no step for another process is under way."""
        with self._turn:
            self._idle_since = time.monotonic()

    def _answer(self, listener: Listener) -> None:
        with listener:
            while True:
                with suppress(Exception), listener.accept() as connection:  # whatever fails, the next may do better
                    self._serve(connection)

    def _serve(self, connection: Connection[Any, Any]) -> None:
        """Step a cell for another process. If one of the two fails, it is not held any longer."""
        name, token, others = connection.recv()
        held = self._offered(name, token, others)
        connection.send(held is not None)
        if held is None:
            return
        with self.stepping(held):
            while (rows := connection.recv()) is not None:
                try:
                    for part in held.cell.parts(*rows):
                        connection.send(part)
                    connection.send((held.cell.knowledge(), held.cell.switches))
                except Exception as error:
                    connection.send(error)
                    raise
            held.token, held.segments = connection.recv()
            self.keep(name, held)

    def _offered(self, name: Name, token: str, others: int) -> Held | None:
        """A cell that another process, which holds so many others, may have stepped here."""
        held = self.take(name)
        if held is None or len(self._held) + 1 - others >= FEWER:
            return None
        is_idle = self._idle_since is not None and time.monotonic() - self._idle_since >= IDLE_SECONDS
        if held.token == token and not is_idle:
            return held
        self.keep(name, held)
        return None


HOLDER = Holder()  # that of this process
