from __future__ import annotations

from pathlib import Path

import pytest

from thalweg.dashboard import store as module
from thalweg.dashboard.event_log import EventLog
from thalweg.dashboard.store import EventStore


def test_several_programs_are_followed(log: EventLog, folder: Path) -> None:
    store = EventStore(folder)
    log.append({"rows": 1})
    assert len(store.poll()) == 1
    other = EventLog(folder, {"kind": "join", "program": "traffic.py"})
    other.append({"results": 5})
    log.append({"rows": 2})
    assert sorted(part["kind"] for part in store.poll()) == ["join", "where"]
    assert store.poll() == []
    other.close()


def test_a_folder_that_is_not_there_has_no_runs(tmp_path: Path) -> None:
    assert EventStore(tmp_path / "nowhere").poll() == []


def test_history_survives_the_end_of_the_program_and_of_the_server(log: EventLog, folder: Path) -> None:
    log.append({"rows": 1})
    log.close()
    for _ in range(2):
        store = EventStore(folder)
        store.poll()
        (run,) = store.whole()
        assert (run["state"], run["values"]["rows"], len(run["points"])) == ("ended", 1, 1)


def test_half_a_line_waits_for_the_other_half(log: EventLog, folder: Path) -> None:
    store = EventStore(folder)
    store.poll()
    line = b'{"sequence": 2, "at": 5.0, "changed": {"rows": 9}}\n'
    with log.file.open("ab") as file:
        file.write(line[:20])
        file.flush()
        assert store.poll() == []
        file.write(line[20:])
    assert store.poll()[0]["values"] == {"rows": 9}


def test_lines_that_are_no_events_are_counted_and_left_out(log: EventLog, folder: Path) -> None:
    with log.file.open("ab") as file:
        file.write(b'garbage\n[1, 2]\n{"at": 1}\n"text"\n{"sequence": 2, "at": "x", "changed": {}}\n')
    log.append({"rows": 3})
    store = EventStore(folder)
    store.poll()
    assert store.unreadable == 5
    assert store.runs[0].values == {"rows": 3}


@pytest.mark.parametrize(
    "part", ['"about": 5', '"at": NaN', '"at": 1e999', '"changed": {"progress": 5}', '"changed": {"as_written": 7}']
)
def test_an_event_that_does_not_fit_changes_nothing(log: EventLog, folder: Path, part: str) -> None:
    log.append({"rows": 10})
    store = EventStore(folder)
    store.poll()
    before = store.whole()[0] | {"heard_at": 0}
    with log.file.open("a") as file:
        file.write(f'{{"sequence": 9, "at": 1, "changed": {{}}, {part}}}\n')
    store.poll()
    assert store.unreadable == 1
    assert store.whole()[0] | {"heard_at": 0} == before


@pytest.mark.usefixtures("log")
def test_other_files_and_folders_are_left_alone(folder: Path) -> None:
    (folder / "readme.txt").write_text("hello")
    (folder / "some-name").mkdir()
    store = EventStore(folder)
    store.poll()
    assert len(store.runs) == 1


def test_long_histories_are_read_in_parts(log: EventLog, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READ_BYTES", 1000)
    for rows in range(200):
        log.append({"rows": rows})
    log.close()
    store = EventStore(folder)
    polls = 0
    while store.poll():
        polls += 1
    assert polls > 5
    assert store.runs[0].values["rows"] == 199
    assert store.runs[0].ended
    assert store.runs[0].lost == 0


def test_a_run_that_falls_silent_is_told_to_be_stale(log: EventLog, folder: Path) -> None:
    late = 0.0
    store = EventStore(folder, clock=lambda: log.file.stat().st_mtime + late)
    assert [part["state"] for part in store.poll()] == ["running"]
    late = 60.0
    assert [part["state"] for part in store.poll()] == ["stale"]
    assert store.poll() == []
