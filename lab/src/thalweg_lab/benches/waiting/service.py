"""A local HTTP service with set latencies, errors, hangs and outages, which counts the calls that it gets.

Run as a process of its own: `python -m thalweg_lab.benches.waiting.service`. It prints its port, and serves on loopback
until its standard input is closed. `GET /name/row` answers whether the row is kept; `POST /setup` sets the services,
and `GET /counts` tells what has come since.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http.client import HTTPConnection
from typing import Any

from thalweg_lab.benches.waiting.outcomes import share_of

HANG_SECONDS = 3600.0


@dataclass(frozen=True)
class Behaviour:
    """How a service answers."""

    keeps: float  # share of the rows
    seconds: float  # until it answers
    tokens: int = 0  # that an answer costs
    errors: float = 0.0  # share of the calls that fail
    hangs: float = 0.0  # share of the calls that are never answered
    outage: tuple[float, float] | None = None  # from and until, in seconds after the first call: all calls fail at once


class Services:
    """All services, by name."""

    def __init__(self) -> None:
        self.set_up({})

    def set_up(self, behaviours: Mapping[str, Behaviour]) -> None:
        """Begin anew with these services."""
        self.behaviours = dict(behaviours)
        self.attempts: dict[str, Counter[int]] = {name: Counter() for name in behaviours}
        self.answers: dict[str, Counter[int]] = {name: Counter() for name in behaviours}
        self.arrivals: dict[str, list[float]] = {name: [] for name in behaviours}
        self.failures: Counter[str] = Counter()
        self.tokens = 0
        self._began: float | None = None

    async def answer(self, name: str, row: int) -> tuple[int, dict[str, Any]]:
        """The status and the body of an answer."""
        now = asyncio.get_running_loop().time()
        self._began = now if self._began is None else self._began
        behaviour = self.behaviours[name]
        self.attempts[name][row] += 1
        self.arrivals[name].append(now)
        chance = share_of(f"{name} fault {self.attempts[name][row]}", row)
        if behaviour.outage is not None and behaviour.outage[0] <= now - self._began < behaviour.outage[1]:
            self.failures[name] += 1
            return 503, {}
        if chance < behaviour.hangs:
            self.failures[name] += 1
            await asyncio.sleep(HANG_SECONDS)
        await asyncio.sleep(behaviour.seconds)
        if chance < behaviour.hangs + behaviour.errors:
            self.failures[name] += 1
            return 500, {}
        self.answers[name][row] += 1
        self.tokens += behaviour.tokens
        return 200, {"keep": share_of(name, row) < behaviour.keeps, "tokens": behaviour.tokens}

    def counts(self) -> dict[str, Any]:
        """What has come since the services were set up."""
        return {
            name: {
                "calls": self.attempts[name].total(),
                "failures": self.failures[name],
                "rows": len(self.attempts[name]),
                "most_attempts": max(self.attempts[name].values(), default=0),
                "most_answers": max(self.answers[name].values(), default=0),
                "most_in_a_second": _most_in_a_second(self.arrivals[name]),
            }
            for name in self.behaviours
        } | {"tokens": self.tokens}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, one after the other."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                method, path, _ = head.split("\r\n", 1)[0].split(" ")
                length = next(
                    (int(line[16:]) for line in head.split("\r\n") if line.lower().startswith("content-length: ")), 0
                )
                body = await reader.readexactly(length)
                status, found = 200, dict[str, Any]()
                if path == "/counts":
                    found = self.counts()
                elif method == "POST":
                    self.set_up({name: Behaviour(**values) for name, values in json.loads(body).items()})
                else:
                    _, name, row = path.split("/")
                    status, found = await self.answer(name, int(row))
                content = json.dumps(found).encode()
                writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(content), content))
                await writer.drain()
        writer.close()


def _most_in_a_second(arrivals: list[float]) -> int:
    most = first = 0
    for last, at in enumerate(arrivals):
        while arrivals[first] <= at - 1:
            first += 1
        most = max(most, last - first + 1)
    return most


class RunningService:
    """A service that runs in a process of its own."""

    def __init__(self, port: int) -> None:
        self.port = port

    def set_up(self, **behaviours: Behaviour) -> None:
        """Begin anew with these services."""
        self._ask("POST", "/setup", json.dumps({name: asdict(each) for name, each in behaviours.items()}))

    def counts(self) -> dict[str, Any]:
        """What has come since the services were set up."""
        return self._ask("GET", "/counts")

    def _ask(self, method: str, path: str, body: str | None = None) -> dict[str, Any]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body)
            found: dict[str, Any] = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return found


@contextmanager
def running_service() -> Iterator[RunningService]:
    """A service for as long as the block runs."""
    command = [sys.executable, "-m", "thalweg_lab.benches.waiting.service"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        try:
            yield RunningService(int(process.stdout.readline()))
        finally:
            process.terminate()


async def _main() -> None:
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        loop.call_soon_threadsafe(done.set)

    threading.Thread(target=wait_for_end, daemon=True).start()
    server = await asyncio.start_server(Services().serve, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201 - for the process that started it
    await done.wait()


if __name__ == "__main__":
    asyncio.run(_main())
