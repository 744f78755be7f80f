"""The page: whatever is asked of its server, and whatever the files of events hold, it answers and goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.dashboard import samples
from tests.fuzz.inputs import changed_texts, changed_values, try_inputs

from thalweg.dashboard.event_log import EventLog
from thalweg.dashboard.prometheus import exposition
from thalweg.dashboard.security import Access
from thalweg.dashboard.server import Broadcast, make_app
from thalweg.dashboard.store import EventStore

TOKEN = "a-token-of-more-than-sixteen-letters"  # noqa: S105 - a test's
HOST = ("host", "127.0.0.1:8080")
HEADERS = ("authorization", "cookie", "host", "if-modified-since", "if-none-match", "origin", "range", "sec-fetch-site")
VALUES = [
    *("127.0.0.1:8080", "http://127.0.0.1:8080", f"Bearer {TOKEN}", f"thalweg-token={TOKEN}; a=b", "cross-site"),
    *("bytes=0-5,9-", "Mon, 16 Nov 2026 17:00:00 GMT", 'W/"1"', "[::1]:80"),
]
PATHS = ["/", "/api/runs", "/api/events", "/metrics", "/static/main.js", "/static/../server.py", "/static//etc/passwd"]
ANY_PATH, ANY_VALUE = changed_texts(PATHS), changed_texts(VALUES)
ANY_QUERY = changed_texts([f"token={TOKEN}", "a=1&b=%ff&&token"])
ACCESSES = (Access(), Access.to("0.0.0.0", TOKEN))  # noqa: S104
TELLS_SOURCE = b"import annotations"  # in a file of Python, which no request may get
RUN = "0" * 32
EVENTS = [
    [
        {"sequence": 1, "at": 5.0, "about": {"kind": kind, "program": "screen.py"}, "changed": {}},
        {"sequence": 2, "at": 6.0, "changed": description},
        {"sequence": 3, "at": 7.0, "ended": True, "error": "no", "changed": {}},
    ]
    for kind, description in {
        "where": samples.where() | {"changes": [samples.change(1.0, "ab", "ba")], "routing": samples.routing()},
        "join": samples.join(),
        "session": samples.session(),
    }.items()
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("events")
    EventLog(folder, {"kind": "where", "program": "screen.py"}).append(samples.where())
    return folder


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


async def ask(store: EventStore, access: Access, scope: dict[str, Any]) -> tuple[list[int], bytes]:
    """The statuses of a request, and the text."""
    app = make_app(store, access)
    app.state.broadcast = Broadcast(store)
    statuses, body = [], b""

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:  # noqa: ANN401 - a message of ASGI
        nonlocal body
        if message["type"] == "http.response.start":
            statuses.append(message["status"])
        body += message.get("body", b"")

    request = {"type": "http", "http_version": "1.1", "asgi": {"version": "3.0"}, "scheme": "http", "root_path": ""}
    await app(request | scope, receive, send)
    return statuses, body


def request(random: Random) -> tuple[Access, dict[str, Any]]:
    """A request, and the access that is needed."""
    path = ANY_PATH(random) if random.randint(0, 1) else random.choice(PATHS)
    headers = [
        (random.choice(HEADERS), ANY_VALUE(random) if random.randint(0, 1) else random.choice(VALUES))
        for _ in range(random.randint(0, 4))
    ]
    scope = {
        "method": random.choice(["GET", "HEAD", "POST", "OPTIONS", "get", ""]),
        "path": path,
        "raw_path": path.encode("utf-8", "replace"),
        "query_string": ANY_QUERY(random).encode("utf-8", "replace"),
        "headers": [(name.encode(), value.encode("utf-8", "replace")) for name, value in [HOST, *headers]],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 8080),
    }
    return random.choice(ACCESSES), scope


def test_requests(folder: Path, loop: asyncio.Runner) -> None:
    store = EventStore(folder)
    store.poll()

    def check(asked: tuple[Access, dict[str, Any]]) -> None:
        statuses, body = loop.run(ask(store, *asked))
        assert len(statuses) == 1
        assert statuses[0] < 500
        assert TELLS_SOURCE not in body

    try_inputs(request, check)


def test_events(tmp_path: Path, loop: asyncio.Runner) -> None:
    file = tmp_path / RUN / "000000.jsonl"
    file.parent.mkdir()
    headers = [(HOST[0].encode(), HOST[1].encode())]
    scope = {"method": "GET", "path": "/api/runs", "raw_path": b"/api/runs", "query_string": b"", "headers": headers}
    changed = [changed_values(events) for events in EVENTS]

    def check(events: Any) -> None:  # noqa: ANN401 - any value of JSON
        lines = events if isinstance(events, list) else [events]
        file.write_text("".join(json.dumps(event) + "\n" for event in lines))
        store = EventStore(tmp_path)
        json.dumps([store.poll(), store.whole()], allow_nan=False)
        exposition(store)
        statuses, _ = loop.run(ask(store, Access(), scope))
        assert statuses == [200]

    try_inputs(lambda random: random.choice(changed)(random), check)
