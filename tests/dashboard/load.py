"""Measures the live page under load: 1,000 events a second to five open pages, for a minute by default.

    python -m tests.dashboard.load [SECONDS]

`make load` runs it. The runs have a history as long as a page keeps it, so that a page does not grow because history is
short. Prints the share of a core that the server takes, the memory of a page over time, and how many events are
missing in the log; exits with 1 if one of them misses its bound.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright
from tests.dashboard import samples

from thalweg.dashboard.event_log import EventLog
from thalweg.dashboard.store import EventStore

EVENTS_A_SECOND = 1000
PAGES = 5
RUNS = 5
BURSTS_A_SECOND = 20
POINTS_BEFORE = 1740  # of the history of each run, two a second; the page keeps 900 to 1,200 of them
OTHER_EVENTS = 3  # of each run: that it began, its first description, and that it ended
MOST_OF_A_CORE = 0.15
MOST_GROWTH = 1.1  # of the memory of a page


def seconds_of_processor(process: int) -> float:
    """The processor's time that a process has taken."""
    numbers = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(page: Page) -> float:
    """The megabytes of a page's objects, without garbage."""
    client = page.context.new_cdp_session(page)
    client.send("HeapProfiler.collectGarbage")
    used: float = client.send("Runtime.getHeapUsage")["usedSize"]
    client.detach()
    return used / 1e6


def log_with_history(folder: Path, number: int) -> EventLog:
    """The log of a run that has been going on for some time, with an event every half second."""
    ages = itertools.chain((age / 2 for age in range(POINTS_BEFORE, 0, -1)), itertools.repeat(0.0))
    about = {"kind": "where", "program": f"load{number}.py", "process": 1}
    log = EventLog(folder, about, clock=lambda: time.time() - next(ages))
    log.append(samples.where())
    for point in range(POINTS_BEFORE):
        log.append({"rows": point, "kept": point // 2})
    return log


def measure(seconds: int, folder: Path) -> dict[str, object]:
    """Run a server, five pages and a writer."""
    command = [sys.executable, "-c", "from thalweg.cli import main; main()", "dashboard", "--folder", str(folder)]
    logs = [log_with_history(folder, number) for number in range(RUNS)]
    with (
        subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE, text=True) as server,
        sync_playwright() as p,
    ):
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            arguments = ["--no-sandbox"] if os.getuid() == 0 else []
            browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
            pages = [browser.new_page() for _ in range(PAGES)]
            for page in pages:
                page.goto(url)
                page.locator(".rung").first.wait_for()
            memories, written, rows = [memory_of(pages[0])], 0, itertools.count(POINTS_BEFORE)
            taken, start = seconds_of_processor(server.pid), time.monotonic()
            for burst in range(seconds * BURSTS_A_SECOND):
                for number in range(EVENTS_A_SECOND // BURSTS_A_SECOND):
                    logs[number % RUNS].append({"rows": next(rows), "kept": written})
                    written += 1
                if burst % (10 * BURSTS_A_SECOND) == 10 * BURSTS_A_SECOND - 1:
                    memories.append(memory_of(pages[0]))
                pages[0].wait_for_timeout(max(0.0, 1000 * (start + (burst + 1) / BURSTS_A_SECOND - time.monotonic())))
            passed = time.monotonic() - start
            share = (seconds_of_processor(server.pid) - taken) / passed
            browser.close()
        finally:
            server.terminate()
    for log in logs:
        log.close()
    store = EventStore(folder)
    while store.poll():
        pass
    lost = sum(run.lost for run in store.runs)
    missing = written - sum(run.events - POINTS_BEFORE - OTHER_EVENTS for run in store.runs)
    return {
        "events": written,
        "events a second": round(written / passed),
        "share of a core of the server": round(share, 3),
        "megabytes of a page, every 10 s": [round(memory, 2) for memory in memories],
        "events that are missing in the log": missing + lost,
        "holds": share <= MOST_OF_A_CORE and memories[-1] <= MOST_GROWTH * memories[0] and missing == lost == 0,
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        measured = measure(int(sys.argv[1]) if len(sys.argv) > 1 else 60, Path(scratch) / "runs")
    print(json.dumps(measured, indent=2))  # noqa: T201
    sys.exit(not measured["holds"])
