"""Hypothesis profiles and one Spark session, for all tests.

Imports no pyspark while tests are collected, so that tests without Spark stay fast.
"""

from __future__ import annotations

import gc
import os
from argparse import ArgumentTypeError
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Programs that tests start, which have no doctests: they find their modules only when they are run.
collect_ignore = ["tests/python_daemon", "tests/spark/programs"]

# No deadlines: the first call of a kernel may compile it.
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("dev", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))

# The tests of `tw.join`, and some of those of sessions: `scripts/run-tests.sh` runs them in the process that has few
# others on Spark.
JOINS = (
    "tests/spark/joins",
    "tests/spark/session/test_common_joins.py",
    "tests/spark/session/test_guards.py",
    "tests/spark/session/test_late.py",
    "tests/spark/session/test_memory.py",
    "tests/spark/session/test_rates.py",
    "tests/spark/session/test_results.py",
    "tests/spark/session/test_standing.py",
    "tests/examples/test_common_traffic.py",
    "tests/examples/test_traffic.py",
    "lab/tests/benches/joins",
)


# Thousands of tests stay in memory: looking for cycles among them as often as usual takes a seventh of the time.
gc.set_threshold(100_000, 50, 50)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option by which CI runs a part of the slow suites, another with each commit."""
    parser.addoption(
        "--share",
        type=_share,
        metavar="K/N",
        help="run each N-th test only, from the K-th on; all N shares together are all tests",
    )


def _share(text: str) -> tuple[int, int]:
    """The share that a text such as 2/3 means.

    >>> _share("2/3")
    (2, 3)
    """
    first, slash, count = text.partition("/")
    if not (slash and first.isdecimal() and count.isdecimal() and 1 <= int(first) <= int(count)):
        raise ArgumentTypeError(f"a share is written as 2/3, not {text!r}")
    return int(first), int(count)


def pytest_configure(config: pytest.Config) -> None:
    """Let PySpark 4.1 leave the sockets of its results to the collector of garbage; other warnings are errors."""
    with suppress(metadata.PackageNotFoundError):
        if metadata.version("pyspark").startswith("4.1."):
            config.addinivalue_line("filterwarnings", "ignore:unclosed <socket.socket:ResourceWarning")


@pytest.hookimpl(trylast=True)  # when tests with other marks are deselected
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the tests of a share."""
    share = config.getoption("--share")
    if share is not None:
        first, count = share
        config.hook.pytest_deselected(items=[item for place, item in enumerate(items) if place % count != first - 1])
        items[:] = items[first - 1 :: count]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Let a share without any test pass: there are fewer tests than shares."""
    if session.config.getoption("--share") is not None and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Note how many tests passed, failed and were skipped, for `.ci/run`, which adds up its runs of pytest."""
    if counts := os.environ.get("THALWEG_TEST_COUNTS"):
        outcomes = [("passed",), ("failed", "error"), ("skipped",)]
        numbers = [sum(len(terminalreporter.stats.get(name, [])) for name in names) for names in outcomes]
        with Path(counts).open("a", encoding="utf-8") as file:
            print(*numbers, file=file)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests that use Spark or start their own, those of joins, of their cells and orders, and the lab's."""
    place = item.path.relative_to(Path(__file__).parent)
    if place.parts[0] == "lab":
        item.add_marker(pytest.mark.lab)
    if any(place.is_relative_to(folder) for folder in JOINS):
        item.add_marker(pytest.mark.joins)
    if any(place.is_relative_to(folder) for folder in ("tests/mjoin", "tests/joinorder")):
        item.add_marker(pytest.mark.mjoin)
    fixtures = getattr(item, "fixturenames", ())
    if "spark" in fixtures or "environment" in fixtures:
        item.add_marker(pytest.mark.spark)
    if "browser" in fixtures:
        item.add_marker(pytest.mark.browser)
    if "environment" in fixtures:
        item.add_marker(pytest.mark.cluster)


def pytest_collection_finish() -> None:
    """Leave what was collected out of later searches for cycles."""
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let Python delete everything at its end, else libraries report leaks."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A small local Spark session, started by the first test that asks for it."""
    from tests.fast_spark import fast_session

    with fast_session("thalweg-tests") as session:
        yield session
