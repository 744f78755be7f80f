"""The page in a real browser, with events that the tests write, and then with queries that run on Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.dashboard import samples

from thalweg.dashboard.event_log import EventLog
from thalweg.dashboard.security import Access
from thalweg.dashboard.start import PageServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BUILD = Path(__file__).parents[2] / "build"
SCREENSHOTS = BUILD / "screenshots"
AXE = BUILD / "axe-core" / "package" / "axe.min.js"
LIVE = Path(__file__).with_name("live_queries.py")
REVERSED = tuple(reversed(samples.NAMES))


def show(page: Page, title: str) -> None:
    page.get_by_role("button", name=title).first.click()
    page.get_by_role("heading", level=1, name=title).wait_for()


def rungs(page: Page) -> list[str]:
    return page.locator(".rung .name").all_text_contents()


def first_rung(page: Page, name: str) -> None:
    """Wait until a predicate comes first, without `wait_for_function`: the page forbids to evaluate text."""
    page.locator(".rung:first-child .name", has_text=name).wait_for()


def picture(page: Page, name: str) -> None:
    """Keep pictures of the whole page in light and dark."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(500)
        page.screenshot(path=SCREENSHOTS / f"{name}-{scheme}.png", full_page=True)


def faults(page: Page) -> list[str]:
    """The serious faults that axe-core finds in light and dark. The page forbids scripts of others: it is evaluated."""
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.wait_for_timeout(300)
        page.evaluate(AXE.read_text())
        result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        found += [
            f"{scheme}: {fault['id']}: {node['html'][:200]} {node['failureSummary']}"
            for fault in result["violations"]
            if fault["impact"] in {"serious", "critical"}
            for node in fault["nodes"]
        ]
    return found


@pytest.fixture
def all_kinds(folder: Path) -> Iterator[dict[str, EventLog]]:
    """A run of each kind, with all that the page can show of it."""
    now = time.time()
    described = {
        "where": samples.where(
            order=REVERSED,
            changes=[samples.change(now + 1, samples.NAMES, REVERSED)],
            drift=[samples.drift(now + 0.5, "is new", samples.NAMES, REVERSED)],
            routing=samples.routing(),
            notes=["a sample was not used: the input is small"],
        ),
        "join": samples.join(),
        "session": samples.session(),
    }
    logs = {kind: EventLog(folder, {"kind": kind, "program": f"{kind}.py", "process": 7}) for kind in described}
    for step in range(1, 5):
        for kind, log in logs.items():
            makers: dict[str, Any] = {"where": samples.where, "join": samples.join, "session": samples.session}
            counts = {"rows", "kept", "results", "inputs"}
            fresh = {key: value for key, value in makers[kind](rows=1000 * step).items() if key in counts}
            log.append(described[kind] | fresh)
        time.sleep(0.55)
    yield logs
    for log in logs.values():
        log.close()


def test_an_empty_page_says_what_to_do(page: Page, server: PageServer) -> None:
    page.goto(server.url)
    page.get_by_text("tw.dashboard()").wait_for()
    picture(page, "empty")
    assert faults(page) == []


def test_the_order_moves_on_the_screen(page: Page, server: PageServer, log: EventLog) -> None:
    log.append(samples.where())
    page.goto(server.url)
    page.locator(".rung").first.wait_for()
    assert rungs(page) == list(samples.NAMES)
    first = page.locator(".rung").first.element_handle()
    assert first is not None
    page.evaluate(
        "() => { window.moves = []; const animate = Element.prototype.animate;"
        "Element.prototype.animate = function (...given) {"
        "  moves.push(this.textContent); return animate.apply(this, given); }; }"
    )
    changed = samples.change(time.time(), samples.NAMES, REVERSED)
    log.append(samples.where(rows=2000, order=REVERSED, changes=[changed]))
    page.locator("#card-switches").get_by_text("is new drops more per cost than is suspicious").wait_for()
    assert rungs(page) == list(REVERSED)
    assert page.evaluate("moves.length") == 2  # the one in the middle stays
    assert first.evaluate("rung => [...rung.parentNode.children].indexOf(rung)") == 2  # the same element, moved


def test_nothing_moves_for_those_who_asked_for_less_motion(page: Page, server: PageServer, log: EventLog) -> None:
    page.emulate_media(reduced_motion="reduce")
    log.append(samples.where())
    page.goto(server.url)
    page.locator(".rung").first.wait_for()
    page.evaluate("() => { window.moves = 0; Element.prototype.animate = () => { moves += 1; }; }")
    log.append(samples.where(rows=2000, order=REVERSED))
    first_rung(page, "is new")
    assert page.evaluate("moves") == 0


@pytest.mark.usefixtures("all_kinds")
def test_every_kind_is_shown_readably(page: Page, server: PageServer) -> None:
    page.goto(server.url)
    cards = {
        "where": ["throughput", "ladder", "matrix", "timeline", "switches", "classes", "evaluations", "notes"],
        "join": ["rows-and-results", "memory", "lag", "graph", "cells", "switches"],
        "session": ["rows-and-results", "memory", "lag", "fidelity", "queries", "chart", "switches"],
    }
    for kind, names in cards.items():
        show(page, kind)
        for name in names:
            page.locator(f"#card-{name}").wait_for()
        picture(page, kind)
        assert faults(page) == []


@pytest.mark.usefixtures("all_kinds")
def test_a_narrow_screen_needs_no_scrolling_sideways(page: Page, server: PageServer) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(server.url)
    for kind in ("where", "join", "session"):
        show(page, kind)
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        picture(page, f"{kind}-phone")
    assert faults(page) == []


@pytest.mark.usefixtures("all_kinds")
def test_the_keyboard_is_enough(page: Page, server: PageServer) -> None:
    page.goto(server.url)
    page.locator(".run").first.wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    titles = page.locator(".run-title").all_text_contents()
    heading = page.locator("h1")
    for title in titles[1:]:
        page.keyboard.press("j")
        page.get_by_role("heading", level=1, name=title).wait_for()
        page.locator(".run[aria-current]:focus").wait_for()
    page.keyboard.press("k")
    page.get_by_role("heading", level=1, name=titles[-2]).wait_for()
    place = next(number for number, title in enumerate(titles) if title.startswith("where"))
    page.locator(".run").nth(place).focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", level=1, name="where").wait_for()
    page.locator(".mark.drift").focus()
    page.keyboard.press("Space")
    page.locator(".detail").get_by_text("Drift at").wait_for()
    assert heading.count() == 1
    for theme in ("light", "dark"):
        page.keyboard.press("t")
        assert page.evaluate("document.documentElement.dataset.theme") == theme


def test_hostile_names_stay_text(page: Page, server: PageServer, folder: Path) -> None:
    hostile = samples.HOSTILE
    about = {"program": hostile, "process": hostile}
    order = [hostile, f"{hostile}2", "c"]
    changes = [samples.change(time.time(), order, order)]
    drifts = [samples.drift(time.time(), hostile, order, order)]
    described = {
        "where": samples.where(
            order=order, written=order, changes=changes, drift=drifts, routing=samples.routing(order), notes=[hostile]
        ),
        "join": samples.join(inputs=[hostile, f"{hostile}2", f"{hostile}3"]),
        "session": samples.session(names=[hostile, hostile]),
    }
    for kind, description in described.items():
        log = EventLog(folder, {"kind": kind, **about})
        log.append(description | {"progress": {"query": hostile}})
        log.close(hostile)
    page.goto(server.url)
    for kind in described:
        page.locator(".run", has_text=f"{kind}:").click()
        page.get_by_role("heading", level=1).get_by_text(f"{kind}: <img").wait_for()
        page.wait_for_timeout(300)
        assert page.locator("main img, main script, nav img, nav script").count() == 0
    assert page.title() == "Thalweg"


def test_history_survives_a_reload_and_the_end_of_a_query(page: Page, server: PageServer, log: EventLog) -> None:
    log.append(samples.where(changes=[samples.change(time.time(), samples.NAMES, REVERSED)]))
    log.close()
    page.goto(server.url)
    for _ in range(2):
        page.locator(".head .state", has_text="ended").wait_for()
        page.locator("#card-switches li").first.wait_for()
        assert rungs(page) == list(samples.NAMES)
        page.reload()


def test_a_program_that_was_killed_is_stale(page: Page, server: PageServer, folder: Path) -> None:
    log = EventLog(folder, {"kind": "where", "program": "gone.py", "process": 7})
    log.append(samples.where())
    events = [json.loads(line) for line in log.file.read_text().splitlines()]
    log.file.write_text("".join(json.dumps(event | {"at": event["at"] - 60}) + "\n" for event in events))
    page.goto(server.url)
    page.get_by_text("Stale: the program was last heard of").wait_for()
    picture(page, "stale")
    log.close()


def test_a_long_error_leaves_room_for_the_rest(page: Page, server: PageServer, log: EventLog) -> None:
    log.append(samples.where())
    log.close("\n".join(f"line {number} of <b>Spark's</b> error" for number in range(300)))
    page.goto(server.url)
    page.get_by_text("The query has failed: line 0").wait_for()
    assert page.locator(".stale").evaluate("told => told.clientHeight") <= 200
    picture(page, "failed")
    assert faults(page) == []


def test_a_server_that_is_gone_is_told(browser: Browser, folder: Path, log: EventLog) -> None:
    log.append(samples.where())
    server = PageServer(folder, "127.0.0.1", 0, Access.to("127.0.0.1"))
    page = browser.new_page()  # its console has the failed requests
    page.clock.install()
    page.goto(server.url)
    page.locator(".rung").first.wait_for()
    server.close()
    page.clock.fast_forward(30_000)
    page.get_by_role("alert").get_by_text("The server has been silent since").wait_for()
    assert rungs(page) == list(samples.NAMES)
    page.close()


def test_the_token_is_asked_for_and_leaves_the_address(browser: Browser, folder: Path, log: EventLog) -> None:
    log.append(samples.where())
    server = PageServer(folder, "127.0.0.1", 0, Access.to("0.0.0.0"))  # noqa: S104 - only the rules of that address
    plain, _, token = server.url.partition("?")
    context = browser.new_context()
    page = context.new_page()
    answer = page.goto(plain)
    assert answer is not None
    assert answer.status == 401
    assert page.locator(".rung").count() == 0
    page.goto(f"{plain}?{token}")
    page.locator(".rung").first.wait_for()
    assert page.url.rstrip("/") == plain.rstrip("/")
    assert page.evaluate("document.cookie") == ""
    page.reload()
    page.locator(".rung").first.wait_for()
    context.close()
    server.close()


@pytest.mark.timeout(1500)
def test_live_queries_of_all_kinds(page: Page, server: PageServer, folder: Path, tmp_path: Path) -> None:
    """On Spark, in a program of its own: the order changes after the drift, with its reason."""
    name = "<b>first</b> digits"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, str(LIVE), str(folder), str(tmp_path / "work"), name]
    with (
        (tmp_path / "log").open("wb") as output,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output, env=environment) as program,
    ):
        try:
            page.set_default_timeout(300_000)  # the three queries share two cores, perhaps with other programs
            page.goto(server.url)
            for kind in ("where", "join", "session"):
                page.locator(".run", has_text=f"{kind}:").first.wait_for()
            show(page, "where")
            first_rung(page, "last digits")
            first_rung(page, name)  # after the drift
            page.locator("#card-switches").get_by_text("drops more per cost than").first.wait_for()
            page.locator("#card-matrix").wait_for()
            picture(page, "live-where")
            show(page, "join")
            page.locator(".edge-text").nth(1).wait_for()
            page.locator(".bars span").first.wait_for()
            picture(page, "live-join")
            show(page, "session")
            page.locator("#card-queries").get_by_text("odd 1").wait_for()
            picture(page, "live-session")
        finally:
            assert program.stdin is not None
            program.stdin.close()
            program.wait(60)
    page.locator(".head .state", has_text="ended").wait_for()
    assert program.returncode == 0, (tmp_path / "log").read_text()[-3000:]
