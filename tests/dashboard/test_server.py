from __future__ import annotations

import asyncio
import http.client
import json
import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.dashboard import samples

from thalweg.dashboard.event_log import EventLog
from thalweg.dashboard.security import COOKIE, Access
from thalweg.dashboard.server import PAGE, Broadcast
from thalweg.dashboard.start import PageServer
from thalweg.dashboard.store import EventStore

TOKEN = "a-token-of-more-than-sixteen-letters"  # noqa: S105 - a test's
MAKES_ELEMENTS = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(")
DOCS = Path(__file__).parents[2] / "docs"


@dataclass(frozen=True)
class PageAnswer:
    status: int
    headers: Mapping[str, str]
    text: str


def ask(server: PageServer, path: str, headers: Mapping[str, str] | None = None, method: str = "GET") -> PageAnswer:
    """Ask a server, with the headers as they are given: also those that a browser would never send."""
    place = urlsplit(server.url)
    connection = http.client.HTTPConnection("127.0.0.1", place.port or 0, timeout=30)
    connection.putrequest(method, path, skip_host=True)
    for name, value in ({"host": place.netloc} | dict(headers or {})).items():
        connection.putheader(name, value.replace("HERE", place.netloc))
    connection.endheaders()
    answer = connection.getresponse()
    text = "" if answer.getheader("content-type", "").startswith("text/event-stream") else answer.read().decode()
    connection.close()
    return PageAnswer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, text)


@pytest.fixture(scope="module")
def module_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("events")
    log = EventLog(folder, {"kind": "where", "program": "screen.py"})
    log.append(samples.where(order=[samples.HOSTILE, "b", "c"]))
    for kind, description in (("join", samples.join()), ("session", samples.session(names=["a", "a"]))):
        EventLog(folder, {"kind": kind, "program": 'a "quoted" name\n'}).append(description)
    return folder


@pytest.fixture(scope="module")
def here(module_folder: Path) -> Iterator[PageServer]:
    """A server for this machine alone, with a run of each kind."""
    server = PageServer(module_folder, "127.0.0.1", 0, Access.to("127.0.0.1"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def guarded(module_folder: Path) -> Iterator[PageServer]:
    """A server with the rules of an address that others can reach; it listens on this machine alone."""
    server = PageServer(module_folder, "127.0.0.1", 0, Access.to("0.0.0.0", TOKEN))  # noqa: S104
    yield server
    server.close()


def test_the_page_brings_all_that_it_needs(here: PageServer) -> None:
    text = ask(here, "/").text
    assets = re.findall(r'(?:src|href)="(/[^"]+)"', text)
    assert len(assets) > 3
    modules = [f"/static/{file.relative_to(PAGE)}" for file in PAGE.rglob("*.js")]
    assert all(ask(here, asset).status == 200 for asset in [*assets, *modules])


def test_no_file_of_the_page_names_another_site() -> None:
    for file in PAGE.rglob("*"):
        if file.suffix in {".js", ".css", ".html"} and "vendor" not in file.parts:
            assert set(re.findall(r"https?://[^\s\"']+", file.read_text())) <= {"http://www.w3.org/2000/svg"}, file


def test_no_file_of_the_page_makes_elements_of_text() -> None:
    for file in PAGE.rglob("*.js"):
        if "vendor" not in file.parts:
            assert not MAKES_ELEMENTS.search(file.read_text()), file


def test_runs_have_their_history(here: PageServer) -> None:
    runs = json.loads(ask(here, "/api/runs").text)["runs"]
    by_kind = {run["kind"]: run for run in runs}
    assert by_kind["where"]["values"]["order"][0] == samples.HOSTILE
    assert all(run["points"] for run in runs)


def test_answers_forbid_scripts_of_others(here: PageServer) -> None:
    for path in ("/", "/api/runs", "/static/app.js", "/nowhere"):
        headers = ask(here, path).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers
    assert ask(here, "/api/runs").headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "localhost:8642"}, 200),
        ({"host": "[::1]:8642"}, 200),
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example:8642"}, 421),
        ({"host": ""}, 421),
        ({"host": "[::"}, 421),
        ({"origin": "http://HERE"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:9"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://["}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 200),
    ],
)
def test_hosts_and_origins_are_checked(here: PageServer, headers: dict[str, str], status: int) -> None:
    assert ask(here, "/api/runs", headers).status == status


def test_nothing_can_be_changed(here: PageServer, guarded: PageServer) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
        refused = ask(here, "/api/runs", method=method)
        assert refused.status == 405
        assert refused.headers["allow"] == "GET, HEAD"
        assert ask(guarded, "/api/runs", method=method).status == 401


@pytest.mark.parametrize("path", ["/", "/api/runs", "/api/events", "/metrics", "/static/app.js", "/nowhere"])
def test_everything_needs_the_token(guarded: PageServer, path: str) -> None:
    assert ask(guarded, path).status == 401
    assert ask(guarded, path, {"authorization": f"Bearer {TOKEN}x"}).status == 401
    assert ask(guarded, path, {"authorization": TOKEN}).status == 401
    assert ask(guarded, path, {"cookie": f"{COOKIE}=wrong"}).status == 401
    assert ask(guarded, f"{path}?token=").status == 401
    assert TOKEN not in ask(guarded, path).text


def test_the_token_opens_by_header_cookie_and_address(guarded: PageServer) -> None:
    assert ask(guarded, "/api/runs", {"authorization": f"Bearer {TOKEN}"}).status == 200
    answer = ask(guarded, f"/?token={TOKEN}")
    assert (answer.status, answer.headers["location"]) == (303, "/")
    cookie, *attributes = answer.headers["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict"} <= set(attributes)
    assert ask(guarded, "/", {"cookie": cookie}).status == 200


def test_a_path_does_not_lead_out_of_the_page(here: PageServer) -> None:
    for path in ("/static/../server.py", "/static/%2e%2e/server.py", "/static//etc/passwd", "/static/..%2fserver.py"):
        assert ask(here, path).status == 404


def test_an_address_of_others_needs_a_token() -> None:
    assert Access.to("127.0.0.1").token is None
    assert Access.to("::1").token is None
    assert len(Access.to("192.0.2.1").token or "") > 30
    with pytest.raises(ValueError, match="16 letters or more"):
        Access.to("0.0.0.0", "short")  # noqa: S104 - nothing listens


def test_a_server_at_all_addresses_is_called_by_the_machines_name_or_by_any_address() -> None:
    everywhere, here = Access.to("0.0.0.0", TOKEN), Access.to("192.0.2.1", TOKEN)  # noqa: S104 - nothing listens
    token = {"authorization": f"Bearer {TOKEN}"}

    def status(access: Access, host: str) -> int | None:
        refusal = access.refusal("GET", {"host": host, **token}, {})
        return refusal and refusal[0]

    assert [status(everywhere, host) for host in (f"{socket.gethostname()}:80", "192.0.2.7", "[2001:db8::1]:80")] == [
        None
    ] * 3
    assert [status(everywhere, "evil.example"), status(here, "192.0.2.7")] == [421, 421]
    assert everywhere.refusal("GET", {"host": "192.0.2.7"}, {}) is not None


def test_prometheus_reads_every_kind(here: PageServer) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    answer = ask(here, "/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    assert sorted(sample.value for sample in families["thalweg_rows"].samples) == [1000.0, 1000.0, 4000.0]
    positions = families["thalweg_predicate_position"].samples
    assert {sample.labels["predicate"]: sample.value for sample in positions}[samples.HOSTILE] == 1.0
    assert [sample.labels["query"] for sample in families["thalweg_query_fidelity"].samples] == ["a", "a (2)"]


def test_documented_names_are_the_names_that_prometheus_gets() -> None:
    from thalweg.dashboard.prometheus import METRICS

    documented = set(re.findall(r"^\| `(thalweg_\w+)`", (DOCS / "dashboard.md").read_text(), re.MULTILINE))
    assert documented == {f"{name}_total" if grows else name for name, grows, _, _ in METRICS}
    used = set(re.findall(r"thalweg_\w+", json.dumps(json.loads((DOCS / "grafana.json").read_text())["panels"])))
    assert used
    assert used <= documented


async def _messages_of_a_slow_page(folder: Path) -> list[str]:
    broadcast = Broadcast(EventStore(folder))
    messages: Any = broadcast.messages()
    found = [await anext(messages)]
    for number in range(100):  # meanwhile the page reads nothing
        broadcast.send(f"update {number}")
    found += [await anext(messages) for _ in range(2)]
    await messages.aclose()
    return found


def test_a_slow_page_gets_a_snapshot_of_what_it_missed(module_folder: Path) -> None:
    first, then, last = asyncio.run(_messages_of_a_slow_page(module_folder))
    assert first.startswith("event: snapshot\n")
    assert then.startswith("event: snapshot\n")
    assert last.startswith("update ")


def test_a_server_streams_updates_and_stops_while_a_page_is_open(log: EventLog, folder: Path) -> None:
    server = PageServer(folder, "127.0.0.1", 0, Access.to("127.0.0.1"))
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(server.url).port or 0, timeout=30)
    connection.request("GET", "/api/events")
    answer = connection.getresponse()
    assert answer.readline() == b"event: snapshot\n"
    log.append({"rows": 77})
    line = next(line for line in iter(answer.readline, b"") if b'"rows":77' in line)
    assert json.loads(line.removeprefix(b"data: "))["runs"][0]["values"] == {"rows": 77}
    server.close()
    connection.close()
