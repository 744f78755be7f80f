from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.dashboard import samples

from thalweg.dashboard.history import RunHistory
from thalweg.dashboard.recorder import ALIVE_SECONDS, Recorder
from thalweg.dashboard.store import EventStore
from thalweg.spark import runs


class SampleRun:
    """A run whose description a test sets."""

    kind: ClassVar[str] = "where"

    def __init__(self) -> None:
        self.key = runs.new_key()
        self.description: dict[str, Any] | None = samples.where() | {"key": self.key}
        self.looks = 0

    def describe(self) -> dict[str, Any]:
        self.looks += 1
        if self.description is None:
            raise RuntimeError("not now")
        return self.description

    def text(self, description: dict[str, Any]) -> str:
        return ""


@pytest.fixture
def run() -> Iterator[SampleRun]:
    run = SampleRun()
    runs.record(run)
    yield run
    runs._runs.pop(run.key)  # noqa: SLF001 - the registry of the tests' process


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def recorder(run: SampleRun, folder: Path, clock: Clock) -> Iterator[Recorder]:
    recorder = Recorder(folder, [run.key], clock=clock)
    yield recorder
    recorder.close()


def history_in(folder: Path) -> RunHistory:
    store = EventStore(folder)
    store.poll()
    (history,) = store.runs
    return history


def test_changed_descriptions_are_written(run: SampleRun, recorder: Recorder, folder: Path, clock: Clock) -> None:
    recorder.look()
    clock.now += 1
    run.description = samples.where(rows=5000) | {"key": run.key}
    recorder.look()
    assert history_in(folder).values["rows"] == 5000
    recorder.close()
    assert history_in(folder).ended


def test_a_run_that_does_not_change_is_looked_at_less_often(run: SampleRun, recorder: Recorder, clock: Clock) -> None:
    for _ in range(100):
        recorder.look()
        clock.now += 1
    assert 8 <= run.looks <= 15


def test_a_program_says_that_it_is_alive_while_looking_has_had_its_share(
    run: SampleRun, recorder: Recorder, folder: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def describe_slowly() -> dict[str, Any]:
        clock.now += 1.0
        run.looks += 1
        return samples.where()

    monkeypatch.setattr(run, "describe", describe_slowly)
    monkeypatch.setattr(recorder, "_listen", lambda: None)
    for _ in range(100):
        recorder.tick()
        clock.now += 1.0
    assert run.looks == 1
    assert history_in(folder).events > 100 / ALIVE_SECONDS


def test_a_run_that_cannot_be_described_disturbs_nobody(
    run: SampleRun, recorder: Recorder, folder: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    description, run.description = run.description, None
    for _ in range(3):
        recorder.look()
        clock.now += 1
    assert caplog.text.count("not now") == 1
    run.description = description
    recorder.look()
    assert history_in(folder).values["rows"] == 1000


def test_a_micro_batch_and_the_end_of_a_query_are_told(run: SampleRun, recorder: Recorder, folder: Path) -> None:
    told = {"wheres": [run.description], "joins": [], "sessions": []}
    recorder.progress({"batch": 3, "query": "screen", "lag_seconds": 2.5, **told})
    recorder.ended(told, "division by zero")
    recorder.look(everything=True)
    history = history_in(folder)
    assert (history.title, history.values["progress"]["lag_seconds"]) == ("where: screen", 2.5)
    assert (history.state(0.0), history.error) == ("failed", "division by zero")


def test_only_the_runs_that_were_named_are_written(run: SampleRun, recorder: Recorder, folder: Path) -> None:
    other = SampleRun()
    runs.record(other)
    recorder.look()
    runs._runs.pop(other.key)  # noqa: SLF001 - as above
    assert history_in(folder).about["key"] == run.key


def test_a_started_recorder_ends_when_it_is_closed(run: SampleRun, folder: Path) -> None:
    recorder = Recorder(folder, [run.key])
    recorder.start()
    recorder.close()
    recorder.close()
    assert history_in(folder).ended
