"""Clients of the service: for coroutines and for threads, both with connections that stay open."""

from __future__ import annotations

import asyncio
import json
import threading
from http.client import HTTPConnection
from typing import Any

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_free: dict[int, list[Connection]] = {}  # connections that no call uses, by port
_of_thread = threading.local()


class ServiceError(ConnectionError):
    """The service answered with an error."""


async def ask(port: int, name: str, row: int) -> dict[str, Any]:
    """The answer of a service."""
    free = _free.setdefault(port, [])
    reader, writer = free.pop() if free else await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET /%s/%d HTTP/1.1\r\nHost: x\r\n\r\n" % (name.encode(), row))
        head = await reader.readuntil(b"\r\n\r\n")
        body = await reader.readexactly(int(head.rpartition(b": ")[2]))
    except BaseException:  # a call that was given up leaves its connection half read
        writer.close()
        raise
    free.append((reader, writer))
    return _checked(int(head[9:12]), body)


def ask_in_thread(port: int, name: str, row: int) -> dict[str, Any]:
    """The same, for a thread that waits."""
    connection = getattr(_of_thread, "connection", None)
    if connection is None or connection.port != port:
        connection = _of_thread.connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", f"/{name}/{row}")
    response = connection.getresponse()
    return _checked(response.status, response.read())


def _checked(status: int, body: bytes) -> dict[str, Any]:
    if status != 200:  # noqa: PLR2004 - HTTP's OK
        raise ServiceError(status)
    found: dict[str, Any] = json.loads(body)
    return found
