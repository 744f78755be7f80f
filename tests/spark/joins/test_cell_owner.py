"""Processes that step each other's cells; here they are objects, which talk as processes do."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping
from multiprocessing import Pipe
from types import TracebackType

import pyarrow as pa
import pytest

from thalweg.mjoin import Cell, Input, JoinQuery, Statistics, Step, TimeWindow
from thalweg.spark.joins import cell_owner as module
from thalweg.spark.joins.cell_owner import CellId, CellOwner, OwnedCell, OwnerEndedError, RemoteCell
from thalweg.spark.joins.state import StoredSegment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes find each other on Linux only")

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.int64())])
QUERY = JoinQuery(
    (Input("A", SCHEMA, "t", TimeWindow(100)), Input("B", SCHEMA, "t", TimeWindow(100))),
    (frozenset([("A", "k"), ("B", "k")]),),
    select=(("A", "t", "a"), ("B", "t", "b")),
)
CELL = CellId("join", "query", 0)
OTHER = CELL._replace(label=1)


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


def watch_lock(owner: CellOwner, monkeypatch: pytest.MonkeyPatch) -> WatchedLock:
    lock = WatchedLock()
    monkeypatch.setattr(owner, "_step_lock", lock)
    return lock


def rows(*times: int) -> pa.RecordBatch:
    return pa.record_batch([[1] * len(times), list(times)], schema=SCHEMA)


def owner_of(*labels: int, version: str = "v1") -> CellOwner:
    """A process that owns some cells, in each of which A has a row."""
    owner = CellOwner()
    for label in labels:
        cell = Cell(QUERY)
        step = cell.step({"A": rows(10)}, 0)
        segments = {number: StoredSegment(f"{number}-{version}", len(data)) for number, data in step.added.items()}
        owner.keep(CELL._replace(label=label), OwnedCell(version, cell, segments, owner.address))
    return owner


def step(remote: RemoteCell, arrivals: Mapping[str, pa.RecordBatch]) -> list[dict[str, int]]:
    results = [row for part in remote.parts(arrivals, 0) for row in part.results.to_pylist()]
    return sorted(results, key=lambda row: row["b"])


def request(asking: CellOwner, owner: CellOwner, version: str = "v1") -> RemoteCell | None:
    return asking.request(owner.address, CELL, version)


def wait_for(owner: CellOwner) -> OwnedCell:
    """The cell that a process owns, as soon as its thread has put it back; the suite's timeout ends the wait."""
    while (owned := owner.take(CELL)) is None:
        time.sleep(0.001)
    return owned


def test_a_cell_is_stepped_by_its_owner() -> None:
    here, there = CellOwner(), owner_of(0)
    remote = request(here, there)
    assert remote is not None
    assert there.take(CELL) is None  # it is in use
    assert step(remote, {"B": rows(20, 30)}) == [{"a": 10, "b": 20}, {"a": 10, "b": 30}]
    assert step(remote, {"A": rows(40), "B": rows(500)}) == [{"a": 40, "b": 20}, {"a": 40, "b": 30}]
    assert remote.knowledge()["orders"] == {"A": ["B"], "B": ["A"]}
    here.keep(CELL, OwnedCell("v2", remote, {7: StoredSegment("7-v2", 99)}, there.address))
    assert here.take(CELL) is None
    owned = wait_for(there)
    assert (owned.token, owned.segments) == ("v2", {7: StoredSegment("7-v2", 99)})
    assert isinstance(owned.cell, Cell)


def test_an_owner_refuses_another_version_of_the_state() -> None:
    there = owner_of(0)
    assert request(CellOwner(), there, "v2") is None
    assert there.take(CELL) is not None  # it can catch up


def test_a_process_with_two_cells_fewer_takes_a_cell_over() -> None:
    assert request(owner_of(5), owner_of(0, 1)) is not None
    there = owner_of(0, 1)
    assert request(CellOwner(), there) is None
    assert there.take(CELL) is None


def test_a_process_that_may_be_ended_soon_begins_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    there = owner_of(0)
    there.begin_task()
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.0)
    assert request(CellOwner(), there) is not None  # Spark ends no process that has a task
    there = owner_of(0)
    there.end_task()
    assert request(CellOwner(), there) is None


def test_a_task_ends_after_the_steps_for_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    there = owner_of(0)
    lock = watch_lock(there, monkeypatch)
    there.begin_task()
    remote = request(CellOwner(), there)
    assert remote is not None
    assert step(remote, {"B": rows(20)})
    ending = threading.Thread(target=there.end_task)
    ending.start()
    lock.has_waiting.wait()
    assert ending.is_alive()
    remote.finish("v2", {})
    ending.join()


def test_steps_of_a_process_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    there, results = owner_of(0, 1), list[dict[str, int]]()
    lock = watch_lock(there, monkeypatch)
    own = there.take(OTHER)
    assert own is not None
    with there.stepping(own):
        remote = request(CellOwner(), there)
        assert remote is not None
        waiting = threading.Thread(target=lambda: results.extend(step(remote, {"B": rows(20)})))
        waiting.start()
        lock.has_waiting.wait()
        assert not results
    waiting.join()
    assert results


def test_errors_come_back_and_the_cell_is_made_anew() -> None:
    there = owner_of(0)
    remote = request(CellOwner(), there)
    assert remote is not None
    with pytest.raises(ValueError, match="'C'"):
        step(remote, {"C": rows(20)})
    assert there.take(CELL) is None
    assert request(CellOwner(), there) is None  # and the owner still answers


def test_the_asking_process_may_vanish() -> None:
    there = owner_of(0)
    remote = request(CellOwner(), there)
    assert remote is not None
    del remote
    assert request(CellOwner(), there) is None
    there.keep(CELL, OwnedCell("v3", Cell(QUERY), {}, there.address))
    assert request(CellOwner(), there, "v3") is not None


@pytest.mark.parametrize("reads_rows", [True, False])
def test_who_is_asked_may_vanish(*, reads_rows: bool) -> None:
    """A process ends, before or while it steps the cell: all that the other process sees is a closed connection."""
    here, there = Pipe()

    def end() -> None:
        if reads_rows:
            there.recv()
        there.close()

    ending = threading.Thread(target=end)
    ending.start()
    if not reads_rows:
        ending.join()
    remote = RemoteCell(here)
    with pytest.raises(OwnerEndedError):
        step(remote, {"B": rows(20)})
    ending.join()
    remote.finish("v2", {})  # no process hears it


@pytest.mark.parametrize(("most_held", "given"), [(1 << 20, 0), (0, 1)])
def test_parts_come_when_all_are_there_unless_they_are_large(
    most_held: int, given: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_HELD", most_held)
    here, there = Pipe()

    def give_a_part_and_end() -> None:
        there.recv()
        there.send(Step(rows(20), {}, {}, (), Statistics()))
        there.close()

    ending = threading.Thread(target=give_a_part_and_end)
    ending.start()
    parts = list[Step]()
    with pytest.raises(ConnectionError) as refused:
        parts.extend(RemoteCell(here).parts({}, 0))
    ending.join()
    assert (refused.type is OwnerEndedError) == (given == 0)
    assert len(parts) == given


@pytest.mark.parametrize("owner", ["", "thalweg-absent 00"])
def test_no_process_is_there(owner: str) -> None:
    assert CellOwner().request(owner, CELL, "v1") is None


def test_strangers_get_no_answer() -> None:
    there = owner_of(0)
    place, _ = there.address.split()
    assert CellOwner().request(f"{place} {b'wrong'.hex()}", CELL, "v1") is None
    assert request(CellOwner(), there) is not None  # other processes still get one


def test_processes_of_other_users_get_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    there = owner_of(0)
    own_user = module.is_own_user
    monkeypatch.setattr(module, "is_own_user", lambda _connection: False)
    assert request(CellOwner(), there) is None
    monkeypatch.setattr(module, "is_own_user", own_user)
    assert request(CellOwner(), there) is not None


def test_the_user_at_the_other_end_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = Pipe()
    assert module.is_own_user(here)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert not module.is_own_user(there)


def test_a_busy_owner_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    there = owner_of(0, 1)
    serving = request(owner_of(5), there)
    assert serving is not None
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.0)
    assert owner_of(5).request(there.address, OTHER, "v1") is None
    serving.finish("v2", {})
    assert wait_for(there).segments == {}


def test_cells_that_are_not_used_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = owner_of(0)
    monkeypatch.setattr(module, "UNUSED_SECONDS", -1.0)
    owner.keep(OTHER, OwnedCell("v1", Cell(QUERY), {}, ""))
    assert owner.take(CELL) is None
