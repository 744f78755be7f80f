"""The server of the page: the page's files, the histories of runs, and a stream of their updates.

It only reads. A single task follows the folder of events; all open pages share what it finds. A page that is too slow
gets a new snapshot instead of the updates that it missed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Response
from fastapi.responses import FileResponse, StreamingResponse
from fastapi.staticfiles import StaticFiles

from thalweg.dashboard.prometheus import CONTENT_TYPE, exposition
from thalweg.dashboard.security import Access, Guard
from thalweg.dashboard.store import EventStore

PAGE = Path(__file__).parent / "page"
TICK_SECONDS = 0.5  # between two looks at the folder, and two updates of a page
ALIVE_SECONDS = 5.0  # between two signs of life to a page
MOST_WAITING = 40  # messages that a slow page may leave unread


class Broadcast:
    """Follows a store, and hands each message to all open pages."""

    def __init__(self, store: EventStore) -> None:
        self.store = store
        self._closing = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._pages: set[asyncio.Queue[str]] = set()

    async def run(self) -> None:
        """Follow the store until the server closes."""
        told = 0.0
        while not self._closing.is_set():
            parts = await asyncio.to_thread(self.store.poll)
            now = time.monotonic()
            if parts and self._pages:
                self.send(message("update", {"now": time.time(), "runs": parts}))
                told = now
            elif now - told > ALIVE_SECONDS:
                self.send(message("alive", {"now": time.time()}))
                told = now
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), TICK_SECONDS)
        self.send("")

    def close(self) -> None:
        """Let all open pages go, from any thread: the server waits for them when it stops."""
        self._loop.call_soon_threadsafe(self._closing.set)

    async def messages(self) -> AsyncIterator[str]:
        """The messages for a page: a snapshot, then updates."""
        queue: asyncio.Queue[str] = asyncio.Queue(MOST_WAITING)
        self._pages.add(queue)
        try:
            yield self._snapshot()
            while not self._closing.is_set():
                yield await queue.get()
        finally:
            self._pages.discard(queue)

    def send(self, text: str) -> None:
        """Hand a message to all open pages."""
        for queue in self._pages:
            if queue.full():
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(self._snapshot())
            else:
                queue.put_nowait(text)

    def _snapshot(self) -> str:
        return message("snapshot", {"now": time.time(), "runs": self.store.whole()})


def message(event: str, content: Any) -> str:  # noqa: ANN401 - plain values
    r"""A message of a stream of server-sent events.

    >>> message("alive", {"now": 5})
    'event: alive\ndata: {"now":5}\n\n'
    """
    return f"event: {event}\ndata: {json.dumps(content, separators=(',', ':'))}\n\n"


def make_app(store: EventStore, access: Access) -> FastAPI:
    """The application that serves the page."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        broadcast = app.state.broadcast = Broadcast(store)
        await asyncio.to_thread(store.poll)
        following = asyncio.create_task(broadcast.run())
        yield
        broadcast.close()
        await following

    app = FastAPI(title="Thalweg", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(Guard, access=access)

    @app.get("/")
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html", media_type="text/html; charset=utf-8")

    @app.get("/api/runs")
    async def runs() -> Response:
        return Response(json.dumps({"now": time.time(), "runs": store.whole()}), media_type="application/json")

    @app.get("/api/events")
    async def events() -> StreamingResponse:
        return StreamingResponse(app.state.broadcast.messages(), media_type="text/event-stream")

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(exposition(store), media_type=CONTENT_TYPE)

    app.mount("/static", StaticFiles(directory=PAGE))
    return app
