"""The events of runs, in files of JSON lines that are only appended to.

A run has a folder of its own, whose name is a random token: names that users give occur in files, never in paths. Only
the owner may read it. The first event of a run says what it is, each later event has the values that have changed since
the event before, and the last event says that the run has ended. When a file is full, the next file begins with all
values, so that a reader can begin there, and the oldest file of a very long run is removed.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from thalweg.output import finite

MOST_BYTES = 16 << 20  # of a file; then the next file begins
MOST_FILES = 8  # of a run
KEPT_SECONDS = 7 * 24 * 3600.0  # that the events of a run are kept after the last event
SUFFIX = ".jsonl"
TOKEN_BYTES = 16


def default_folder() -> Path:
    """The folder for the events of this user's programs, by the convention for state that programs keep.

    It is ``$XDG_STATE_HOME/thalweg/runs``, by default ``~/.local/state/thalweg/runs``.
    """
    home = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(home).expanduser() / "thalweg" / "runs"


class EventLog:
    """Writes the events of one run.

    >>> import tempfile
    >>> log = EventLog(Path(tempfile.mkdtemp()), {"kind": "where"})
    >>> log.append({"rows": 10})
    >>> log.append({"rows": 10})
    >>> log.close()
    >>> [event["changed"] for event in map(json.loads, log.file.read_text().splitlines())]
    [{}, {'rows': 10}, {}, {}]
    """

    def __init__(
        self,
        folder: Path,
        about: Mapping[str, Any],
        *,
        most_bytes: int = MOST_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.token = secrets.token_hex(TOKEN_BYTES)
        self._folder = folder / self.token
        self._most_bytes = most_bytes
        self._clock = clock
        self._number = 0
        self._sequence = 0
        self._written: dict[str, str] = {}  # the last value of each name, as JSON
        self._is_closed = False
        self._about = dict(about)
        make_private_folder(folder)
        make_private_folder(self._folder)
        self._open()
        self._write({"about": self._about}, {})

    @property
    def file(self) -> Path:
        """The file that is written now."""
        return self._folder / f"{self._number:06d}{SUFFIX}"

    def append(self, values: Mapping[str, Any]) -> None:
        """Write an event with the values that have changed; an event without any says that the run is alive."""
        texts = {name: _as_json(value) for name, value in values.items()}
        changed = {name: text for name, text in texts.items() if self._written.get(name) != text}
        self._written |= changed
        self._write({}, changed)

    def close(self, error: str | None = None) -> None:
        """Write that the run has ended, with its error if it failed; more events are then ignored."""
        if not self._is_closed:
            self._write({"ended": True, "error": error}, {})
            self._is_closed = True
            os.close(self._descriptor)

    def _write(self, about: Mapping[str, Any], changed: Mapping[str, str]) -> None:
        if self._is_closed:
            return
        self._sequence += 1
        line = self._line(about, changed)
        if self._size and self._size + len(line) > self._most_bytes:
            self._begin_next_file()
            line = self._line({"about": self._about, **about}, self._written)
        written = 0
        while written < len(line):  # a full disk raises, but a signal may cut a write short
            written += os.write(self._descriptor, line[written:])
        self._size += len(line)

    def _line(self, about: Mapping[str, Any], changed: Mapping[str, str]) -> bytes:
        head = _as_json({"sequence": self._sequence, "at": round(self._clock(), 3), **about})
        values = ",".join(f"{json.dumps(name)}:{text}" for name, text in changed.items())
        return f'{head[:-1]},"changed":{{{values}}}}}\n'.encode()

    def _begin_next_file(self) -> None:
        os.close(self._descriptor)
        self._number += 1
        self._open()
        if self._number >= MOST_FILES:
            (self._folder / f"{self._number - MOST_FILES:06d}{SUFFIX}").unlink(missing_ok=True)

    def _open(self) -> None:
        self._descriptor = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._size = 0


def make_private_folder(folder: Path) -> None:
    """Make a folder that only its owner may read; refuse a folder of another user."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user: name a folder of your own with folder=")
    folder.chmod(0o700)


def remove_old_runs(folder: Path, *, now: float | None = None, kept_seconds: float = KEPT_SECONDS) -> None:
    """Remove the runs whose last event is older than that."""
    oldest = (time.time() if now is None else now) - kept_seconds
    for run in run_folders(folder):
        files = list(run.glob(f"*{SUFFIX}"))
        if files and max(file.stat().st_mtime for file in files) < oldest:
            shutil.rmtree(run, ignore_errors=True)


def run_folders(folder: Path) -> list[Path]:
    """The folders of all runs."""
    return [each for each in folder.iterdir() if is_token(each.name) and each.is_dir()] if folder.is_dir() else []


def is_token(name: str) -> bool:
    """Whether a name may be the token of a run.

    >>> is_token("0123456789abcdef0123456789abcdef"), is_token("../etc")
    (True, False)
    """
    return len(name) == 2 * TOKEN_BYTES and all(letter in "0123456789abcdef" for letter in name)


def _as_json(value: Any) -> str:  # noqa: ANN401 - plain values
    """A value as JSON that every reader takes: no NaN, no infinity, and text for values that JSON does not know."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"), default=str)
    except ValueError:
        return json.dumps(finite(value), separators=(",", ":"), default=str)
