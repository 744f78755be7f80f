"""Processes that step each other's cells; here they are objects, which talk as processes do."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping
from multiprocessing import Pipe
from types import TracebackType

import pyarrow as pa
import pytest

from thalweg.mjoin import Cell, Input, JoinQuery, TimeWindow
from thalweg.spark.joins import held as module
from thalweg.spark.joins.held import Asked, Held, Holder, Name

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes find each other on Linux only")

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.int64())])
QUERY = JoinQuery(
    (Input("A", SCHEMA, "t", TimeWindow(100)), Input("B", SCHEMA, "t", TimeWindow(100))),
    (frozenset([("A", "k"), ("B", "k")]),),
    select=(("A", "t", "a"), ("B", "t", "b")),
)
NAME: Name = "join", "query", 0


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may keep a thread from answering for a while, which is no refusal."""
    monkeypatch.setattr(module, "ANSWER_SECONDS", 300.0)


class WatchedLock:
    """A lock that tells when a thread has to wait for it, so that a test need not guess how long that takes."""

    def __init__(self) -> None:
        self.has_waiting = threading.Event()
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self.has_waiting.set()
            self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._lock.release()


def watch_lock(holder: Holder, monkeypatch: pytest.MonkeyPatch) -> WatchedLock:
    lock = WatchedLock()
    monkeypatch.setattr(holder, "_turn", lock)
    return lock


def rows(*times: int) -> pa.RecordBatch:
    return pa.record_batch([[1] * len(times), list(times)], schema=SCHEMA)


def holding(*labels: int, version: str = "v1") -> Holder:
    """A process that holds some cells, in each of which A has a row."""
    holder = Holder()
    for label in labels:
        cell = Cell(QUERY)
        step = cell.step({"A": rows(10)}, 0)
        segments = {number: (f"{number}-{version}", len(data)) for number, data in step.added.items()}
        holder.keep((*NAME[:2], label), Held(version, cell, segments, holder.address))
    return holder


def step(asked: Asked, arrivals: Mapping[str, pa.RecordBatch]) -> list[dict[str, int]]:
    results = [row for part in asked.parts(arrivals, 0) for row in part.results.to_pylist()]
    return sorted(results, key=lambda row: row["b"])


def ask(one: Holder, other: Holder, version: str = "v1") -> Asked | None:
    return one.ask(other.address, NAME, version)


def take(holder: Holder) -> Held:
    """The cell that a process holds, as soon as its thread has put it back; the suite's timeout ends the wait."""
    while (held := holder.take(NAME)) is None:
        time.sleep(0.001)
    return held


def test_a_cell_is_stepped_where_it_is() -> None:
    here, there = Holder(), holding(0)
    asked = ask(here, there)
    assert asked is not None
    assert there.take(NAME) is None  # it is in use
    assert step(asked, {"B": rows(20, 30)}) == [{"a": 10, "b": 20}, {"a": 10, "b": 30}]
    assert step(asked, {"A": rows(40), "B": rows(500)}) == [{"a": 40, "b": 20}, {"a": 40, "b": 30}]
    assert asked.knowledge()["orders"] == {"A": ["B"], "B": ["A"]}
    here.keep(NAME, Held("v2", asked, {7: ("7-v2", 99)}, there.address))
    assert here.take(NAME) is None
    held = take(there)
    assert (held.token, held.segments) == ("v2", {7: ("7-v2", 99)})
    assert isinstance(held.cell, Cell)


def test_only_the_version_of_the_state_is_given() -> None:
    there = holding(0)
    assert ask(Holder(), there, "v2") is None
    assert there.take(NAME) is not None  # it can catch up


def test_two_cells_fewer_take_one_over() -> None:
    assert ask(holding(5), holding(0, 1)) is not None
    there = holding(0, 1)
    assert ask(Holder(), there) is None
    assert there.take(NAME) is None


def test_who_may_be_ended_soon_begins_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    there = holding(0)
    there.begin_task()
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.0)
    assert ask(Holder(), there) is not None  # Spark ends nobody who has a task
    there = holding(0)
    there.end_task()
    assert ask(Holder(), there) is None


def test_a_task_ends_after_the_steps_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    there = holding(0)
    lock = watch_lock(there, monkeypatch)
    there.begin_task()
    asked = ask(Holder(), there)
    assert asked is not None
    assert step(asked, {"B": rows(20)})
    ending = threading.Thread(target=there.end_task)
    ending.start()
    lock.has_waiting.wait()
    assert ending.is_alive()
    asked.let_go("v2", {})
    ending.join()


def test_steps_of_a_process_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    there, found = holding(0, 1), list[dict[str, int]]()
    lock = watch_lock(there, monkeypatch)
    own = there.take((*NAME[:2], 1))
    assert own is not None
    with there.stepping(own):
        asked = ask(Holder(), there)
        assert asked is not None
        waiting = threading.Thread(target=lambda: found.extend(step(asked, {"B": rows(20)})))
        waiting.start()
        lock.has_waiting.wait()
        assert not found
    waiting.join()
    assert found


def test_errors_come_back_and_the_cell_is_made_anew() -> None:
    there = holding(0)
    asked = ask(Holder(), there)
    assert asked is not None
    with pytest.raises(ValueError, match="'C'"):
        step(asked, {"C": rows(20)})
    assert there.take(NAME) is None
    assert ask(Holder(), there) is None  # and it still answers


def test_who_asks_may_vanish() -> None:
    there = holding(0)
    asked = ask(Holder(), there)
    assert asked is not None
    del asked
    assert ask(Holder(), there) is None
    there.keep(NAME, Held("v3", Cell(QUERY), {}, there.address))
    assert ask(Holder(), there, "v3") is not None


@pytest.mark.parametrize("reads_rows", [True, False])
def test_who_is_asked_may_vanish(*, reads_rows: bool) -> None:
    """A process ends, before or while it steps the cell: all that the other one sees is a closed connection."""
    here, there = Pipe()

    def end() -> None:
        if reads_rows:
            there.recv()
        there.close()

    ending = threading.Thread(target=end)
    ending.start()
    if not reads_rows:
        ending.join()
    asked = Asked(here)
    with pytest.raises(ConnectionError, match="try again"):
        step(asked, {"B": rows(20)})
    ending.join()
    asked.let_go("v2", {})  # nobody hears it


@pytest.mark.parametrize("holder", ["", "thalweg-nobody 00"])
def test_nobody_is_there(holder: str) -> None:
    assert Holder().ask(holder, NAME, "v1") is None


def test_strangers_get_no_answer() -> None:
    there = holding(0)
    place, _ = there.address.split()
    assert Holder().ask(f"{place} {b'wrong'.hex()}", NAME, "v1") is None
    assert ask(Holder(), there) is not None  # who belongs here still does


def test_who_is_busy_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    there = holding(0, 1)
    serving = ask(holding(5), there)
    assert serving is not None
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.0)
    assert holding(5).ask(there.address, (*NAME[:2], 1), "v1") is None
    serving.let_go("v2", {})
    assert take(there).segments == {}


def test_what_nobody_uses_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    holder = holding(0)
    monkeypatch.setattr(module, "HELD_SECONDS", -1.0)
    holder.keep((*NAME[:2], 1), Held("v1", Cell(QUERY), {}, ""))
    assert holder.take(NAME) is None
