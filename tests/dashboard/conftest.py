from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from thalweg.dashboard.event_log import EventLog
from thalweg.dashboard.security import Access
from thalweg.dashboard.start import PageServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def log(folder: Path) -> Iterator[EventLog]:
    """The log of a `tw.where`."""
    log = EventLog(folder, {"kind": "where", "key": "0123456789ab", "program": "screen.py", "process": 7})
    yield log
    log.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium: Debian's package."""
    executable = shutil.which("chromium")
    assert executable is not None, "run `make test-browser`, which installs Chromium"
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.getuid() == 0 else []  # which root has to do without
        browser = playwright.chromium.launch(executable_path=executable, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page on which nothing may go wrong: an error on the console fails the test."""
    errors: list[str] = []
    page = browser.new_page(viewport={"width": 1360, "height": 1000})
    page.on("console", lambda message: errors.append(message.text) if message.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    page.close()
    assert errors == []


@pytest.fixture
def server(folder: Path) -> Iterator[PageServer]:
    server = PageServer(folder, "127.0.0.1", 0, Access.to("127.0.0.1"))
    yield server
    server.close()
