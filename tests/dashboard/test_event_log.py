from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from thalweg.dashboard.event_log import MOST_FILES, EventLog, default_folder, make_private_folder, remove_old_runs
from thalweg.dashboard.store import EventStore


def events(log: EventLog) -> list[dict[str, Any]]:
    files = sorted(log.file.parent.iterdir())
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_only_the_owner_may_read(log: EventLog, folder: Path) -> None:
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(log.file.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(log.file.stat().st_mode) == 0o600


def test_a_path_holds_no_name_of_a_user(log: EventLog, folder: Path) -> None:
    log.append({"order": ["a secret name"]})
    assert not any("secret" in str(path) or "screen" in str(path) for path in folder.rglob("*"))


def test_an_event_has_what_changed(log: EventLog) -> None:
    log.append({"rows": 1, "order": ["a", "b"]})
    log.append({"rows": 2, "order": ["a", "b"]})
    assert [event["changed"] for event in events(log)[1:]] == [{"rows": 1, "order": ["a", "b"]}, {"rows": 2}]


def test_numbers_that_json_does_not_have_are_null(log: EventLog) -> None:
    log.append({"cost": float("nan"), "costs": {"now": float("inf"), "at": Path("x")}})
    assert events(log)[-1]["changed"] == {"cost": None, "costs": {"now": None, "at": "x"}}


def test_a_full_file_is_followed_by_another_and_nothing_is_lost(folder: Path) -> None:
    log = EventLog(folder, {"kind": "where"}, most_bytes=500)
    for rows in range(40):
        log.append({"rows": rows, "same": "always"})
    log.close()
    files = sorted(log.file.parent.iterdir())
    assert 1 < len(files) <= MOST_FILES
    assert all(json.loads(file.read_text().splitlines()[0])["about"] == {"kind": "where"} for file in files)
    store = EventStore(folder)
    store.poll()
    (history,) = store.runs
    assert (history.values["rows"], history.values["same"], history.ended) == (39, "always", True)


def test_a_very_long_run_loses_its_oldest_file_alone(folder: Path) -> None:
    log = EventLog(folder, {"kind": "where"}, most_bytes=200)
    for rows in range(60):
        log.append({"rows": rows})
    assert len(list(log.file.parent.iterdir())) == MOST_FILES
    sequence = [event["sequence"] for event in events(log)]
    assert sequence == list(range(sequence[0], 62))
    log.close()


def test_events_after_the_end_are_ignored(log: EventLog) -> None:
    log.close("out of memory")
    log.append({"rows": 5})
    log.close()
    assert events(log)[-1]["error"] == "out of memory"


def test_old_runs_are_removed(log: EventLog, folder: Path) -> None:
    (folder / "not a run").mkdir()
    remove_old_runs(folder, now=log.file.stat().st_mtime + 50, kept_seconds=100)
    assert log.file.exists()
    remove_old_runs(folder, now=log.file.stat().st_mtime + 150, kept_seconds=100)
    assert [path.name for path in folder.iterdir()] == ["not a run"]


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(PermissionError, match="belongs to another user"):
        make_private_folder(tmp_path)


def test_the_folder_follows_the_convention(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/somewhere")
    assert default_folder() == Path("/somewhere/thalweg/runs")
