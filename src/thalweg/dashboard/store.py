"""Follows the folder of events: the histories of all runs of this user's programs, the newest runs only."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from thalweg.dashboard.event_log import SUFFIX, run_folders
from thalweg.dashboard.history import RunHistory

MOST_RUNS = 100  # that are shown
READ_BYTES = 4 << 20  # that are read of a run at a time, so that a long history does not hold up the others


class EventStore:
    """The histories of runs, as far as their files have been read.

    Parameters
    ----------
    folder
        The folder of events.
    clock
        The time, in seconds since 1970.

    Examples
    --------
    >>> import tempfile
    >>> from thalweg.dashboard.event_log import EventLog
    >>> folder = Path(tempfile.mkdtemp())
    >>> log, store = EventLog(folder, {"kind": "where"}), EventStore(folder)
    >>> log.append({"rows": 10})
    >>> [part["values"] for part in store.poll()]
    [{'rows': 10}]
    >>> log.close()
    >>> [part["state"] for part in store.poll()], store.poll()
    (['ended'], [])
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self.unreadable = 0  # lines
        self._clock = clock
        self._readers: dict[str, _LogReader] = {}
        self._states: dict[str, str] = {}
        self._lock = threading.Lock()

    @property
    def runs(self) -> list[RunHistory]:
        """All runs, the newest first."""
        with self._lock:
            found = [reader.history for reader in self._readers.values() if reader.history.kind]
        return sorted(found, key=lambda history: -history.began_at)

    def poll(self) -> list[dict[str, Any]]:
        """Read what was written since the last time; returns the new part of each run that has a new part."""
        with self._lock:
            self._find_runs()
            now, parts = self._clock(), []
            for token, reader in self._readers.items():
                history = reader.history
                if not history.ended or not reader.is_done:
                    self.unreadable += reader.read()
                update = history.take_update()
                state = history.state(now)
                if history.kind and (update is not None or self._states.get(token) != state):
                    self._states[token] = state
                    parts.append(history.head(now) if update is None else history.part(update, now))
            return parts

    def whole(self) -> list[dict[str, Any]]:
        """The whole histories of all runs, the newest first."""
        now, runs = self._clock(), self.runs
        with self._lock:
            return [history.whole(now) for history in runs]

    def _find_runs(self) -> None:
        known = self._readers
        folders = {folder.name: folder for folder in run_folders(self.folder)}
        for token in known.keys() - folders.keys():
            del known[token]
        new = [folder for token, folder in folders.items() if token not in known]
        if len(folders) > MOST_RUNS:
            newest = sorted(folders.values(), key=_changed_at, reverse=True)[:MOST_RUNS]
            kept = {folder.name for folder in newest}
            new = [folder for folder in new if folder.name in kept]
            for token in known.keys() - kept:
                del known[token]
        for folder in new:
            known[folder.name] = _LogReader(folder)


class _LogReader:
    """Reads the files of one run, from where it stopped."""

    def __init__(self, folder: Path) -> None:
        self.history = RunHistory(folder.name)
        self.is_done = False  # whether all files have been read to their ends
        self._folder = folder
        self._file: Path | None = None
        self._offset = 0

    def read(self) -> int:
        """Fold the events that are new into the history; returns how many lines could not be read."""
        unreadable, left = 0, READ_BYTES
        while left > 0:
            later = self._next_file()  # looked for first: a file before another file is not written any longer
            read, bad = (0, 0) if self._file is None else self._read_file(self._file, left)
            unreadable += bad
            left -= read
            if not read:
                if later is None:
                    self.is_done = True
                    return unreadable
                self._file, self._offset = later, 0
        self.is_done = False
        return unreadable

    def _read_file(self, path: Path, most: int) -> tuple[int, int]:
        """How many bytes of whole lines were read, and how many lines were unreadable."""
        try:
            with path.open("rb") as file:
                file.seek(self._offset)
                content = file.read(most)
                if len(content) == most:
                    content += file.readline()
        except OSError:  # removed meanwhile
            return 0, 0
        end = content.rfind(b"\n") + 1  # an event that is being written is read the next time
        self._offset += end
        bad = 0
        for line in content[:end].splitlines():
            try:
                self.history.fold(json.loads(line, parse_constant=_refuse))
            except Exception:  # noqa: BLE001 - whatever another program has written, the others are shown
                bad += 1
        return end, bad

    def _next_file(self) -> Path | None:
        files = sorted(self._folder.glob(f"*{SUFFIX}"))
        return next((file for file in files if self._file is None or file.name > self._file.name), None)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _changed_at(folder: Path) -> float:
    try:
        return max((file.stat().st_mtime for file in folder.glob(f"*{SUFFIX}")), default=0.0)
    except OSError:
        return 0.0
