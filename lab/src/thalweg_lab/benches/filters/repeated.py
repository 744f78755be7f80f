"""repeated: four predicates, two of them functions of a row's user agent, which is one of 1,000 in most logs.

Against the best order, fused by hand, that asks for every row: once where the user agents are distributed as words are
in texts (Zipf), and once where each row has a user agent of its own, so that nothing can be saved. Then the first again
with functions that take a user agent apart by regular expressions, as programs that read logs do: the functions of the
first take so little time that to move the rows to Python and back takes more than a third of the best order's. The job
that only moves the rows is measured beside it: no predicate could be faster. (docs/decisions/0151)
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

from thalweg.ordering import optimal_order
from thalweg.ordering.types import Booleans, Floats, Integers
from thalweg_lab.benches.filters import plain
from thalweg_lab.benches.filters.race import AGAIN, THALWEG, Tick, compete, part_of
from thalweg_lab.benches.filters.work import Test, bytes_of
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "repeated"
ROWS, ROUNDS = 1_000_000, 7
AGENTS, EXPONENT = 1000, 1.0  # user agents, the n-th of which is n ** EXPONENT times as rare as the first
VECTORISED_SECONDS = 0.2e-6  # of a row in each predicate of the row's number
KEEPS = (0.7, 0.6)  # shares of the rows that they keep
TRIED = 5000  # rows by which the best order is found
BY_HAND = "the fused optimum, by hand"
MOVED = "a job that only moves the rows to Python and back"

SYSTEMS = ("X11; Linux x86_64", "Windows NT 10.0; Win64; x64", "Macintosh; Intel Mac OS X 10_15_7", "Linux; Android 13")
BROWSERS = ("Chrome", "Firefox", "Edg", "Version")
BOTS = ("Googlebot", "bingbot", "AhrefsBot", "curl")
BOT_MARKS = ("bot", "crawl", "spider", "slurp", "curl", "wget", "python", "monitor", "preview", "scan")
RECENT = 100  # the version of a browser from which on it is recent


def is_human(agent: str) -> bool:
    """Whether a user agent names no known robot."""
    lower = agent.lower()
    return not any(mark in lower for mark in BOT_MARKS)


def is_recent(agent: str) -> bool:
    """Whether a user agent names a recent version of a browser."""
    for product in agent.split():
        name, _, version = product.partition("/")
        if name in BROWSERS:
            return int(version.partition(".")[0]) >= RECENT
    return False


ROBOT = re.compile("|".join((*BOT_MARKS, "archiver", "fetch", "http-client", "lighthouse", "uptime")), re.IGNORECASE)
PRODUCT = re.compile(r"(?P<name>[A-Za-z]+)/(?P<version>\d+)(?:\.\d+)*")
LINK = re.compile(r"https?://[^\s;)]+")


def is_no_robot(agent: str) -> bool:
    """Whether a user agent names no known robot, nor the page of its owner, as readers of logs ask it."""
    link = LINK.search(agent)
    return ROBOT.search(agent) is None and not (link and urlsplit(link.group()).hostname)


def is_new_browser(agent: str) -> bool:
    """Whether a user agent names a recent version of a browser, by all products that it names."""
    products = {found["name"]: int(found["version"]) for found in PRODUCT.finditer(agent)}
    return any(products.get(browser, 0) >= RECENT for browser in BROWSERS)


def user_agent(number: int, build: int) -> str:
    """A user agent; every fifth is a robot's, and half of the others are recent."""
    if number % 5 == 4:  # noqa: PLR2004 - every fifth
        return f"Mozilla/5.0 (compatible; {BOTS[number // 5 % len(BOTS)]}/{build}.1; +http://example.org/{number})"
    system, browser = SYSTEMS[number % len(SYSTEMS)], BROWSERS[number // 4 % len(BROWSERS)]
    version = 60 + number * 7 % 80
    return f"Mozilla/5.0 ({system}) AppleWebKit/537.36 (KHTML, like Gecko) {browser}/{version}.0.{build} Safari/537.36"


def log_table(rows: int, *, distinct: bool) -> pa.Table:
    """A log of numbered rows with user agents."""
    random = np.random.default_rng(0)
    shares = 1.0 / np.arange(1, AGENTS + 1) ** EXPONENT
    numbers = random.choice(AGENTS, rows, p=shares / shares.sum())
    agents = (
        [user_agent(number, row) for row, number in enumerate(numbers.tolist())]
        if distinct
        else pa.array([user_agent(number, number) for number in range(AGENTS)]).take(pa.array(numbers))
    )
    return pa.table({"id": pa.array(np.arange(rows)), "agent": agents})


@dataclass(frozen=True)
class ByHand:
    """The predicates in a fixed order, each on the rows that the predicates before it kept."""

    predicates: Sequence[Callable[..., Any]]
    columns: Sequence[str]  # that each predicate takes: the number or the user agent

    def keep(self, ids: pa.Array, agents: pa.Array) -> Booleans:
        """Which rows all keep."""
        alive: Integers = np.arange(len(ids))
        numbers = ids.to_numpy()
        for predicate, column in zip(self.predicates, self.columns, strict=True):
            if column == "id":
                passed = predicate(numbers[alive])
            else:
                passed = np.array(list(map(predicate, agents.take(pa.array(alive)).to_pylist())), np.bool_)
            alive = alive[passed]
        kept = np.zeros(len(ids), np.bool_)
        kept[alive] = True
        return kept

    def where(self, frame: DataFrame) -> DataFrame:
        """The rows of a DataFrame that all keep."""
        return plain.fused(frame, self.keep, ("id", "agent"))

    def best(self, table: pa.Table) -> ByHand:
        """The same predicates in the best order, by their times and outcomes on the first rows."""
        first = table.slice(0, TRIED)
        masks: Integers = np.zeros(len(first), np.int64)
        seconds: Floats = np.zeros(len(self.predicates))
        for number, (predicate, column) in enumerate(zip(self.predicates, self.columns, strict=True)):
            alone = ByHand((predicate,), (column,))
            start = time.perf_counter()
            kept = alone.keep(*(first[name].combine_chunks() for name in ("id", "agent")))
            seconds[number] = time.perf_counter() - start
            masks |= (~kept).astype(np.int64) << number
        order = optimal_order(masks[masks > 0], seconds)
        return ByHand([self.predicates[number] for number in order], [self.columns[number] for number in order])


def measure(spark: SparkSession, tick: Tick, *, rows: int = ROWS, rounds: int = ROUNDS) -> list[Result]:
    """Against the best order fused by hand, where user agents repeat and where none does, and with dearer functions."""
    import thalweg as tw

    load = round(bytes_of(VECTORISED_SECONDS))
    tests = [Test(salt, load, high=keep) for salt, keep in enumerate(KEEPS)]
    results = []
    parts = (
        ("1,000 values", (is_recent, is_human), False, 3.0),
        ("all values distinct", (is_recent, is_human), True, 0.98),
        ("1,000 values, functions as readers of logs have", (is_new_browser, is_no_robot), False, 3.0),
    )
    for part, (label, functions, distinct, target) in enumerate(parts):
        written = [
            *(tw.predicate(function, on="agent", takes="rows") for function in functions),
            *(tw.predicate(test, on="id", takes="numpy", name=f"P{test.salt}") for test in tests),
        ]
        by_hand = ByHand((*functions, *tests), ("agent", "agent", "id", "id"))
        table = log_table(rows, distinct=distinct)
        frame = spark.createDataFrame(table).repartition(2).cache()
        frame.count()

        def thalweg(frame: DataFrame, written: Sequence[Any] = written) -> DataFrame:
            return tw.where(frame, *written)

        contenders = {THALWEG: thalweg, AGAIN: thalweg, BY_HAND: by_hand.best(table).where}
        note = f"{rows:,} rows, cold, written in a bad order"
        if not distinct:
            note += f"; {MOVED}: {moving_seconds(frame, rounds):.2f} s"
        found = compete(
            NAME,
            frame,
            contenders,
            rounds,
            part_of(tick, part, len(parts)),
            note,
            small=frame.limit(rows // 20),
            label=label,
        )
        frame.unpersist()
        results += [found.faster(BY_HAND, target), found.control()]
    return results


def moving_seconds(frame: DataFrame, rounds: int) -> float:
    """The time of a job that hands the same columns to Python, which keeps every row: the median."""
    spent = []
    for _ in range(rounds):
        start = time.perf_counter()
        kept = plain.fused(frame, lambda ids, agents: np.ones(len(ids), np.bool_), ("id", "agent"))  # noqa: ARG005
        kept.selectExpr("count(*)", "sum(id)").collect()
        spent.append(time.perf_counter() - start)
    return median(spent)
