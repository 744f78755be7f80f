"""Writes the events of this program's runs: what `tw.explain` says of each, whenever it has changed.

A thread looks at the runs about once a second, and at a run whose description does not change less and less often. It
never takes more than a small share of the time. Every micro-batch is told in addition, by Spark's listener.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thalweg.dashboard.event_log import EventLog, default_folder, remove_old_runs
from thalweg.spark import runs

if TYPE_CHECKING:
    from thalweg.spark.metrics import Metrics

TICK_SECONDS = 0.25  # between two ticks of the thread
LOOK_SECONDS = 1.0  # between two looks at a run that changes
LONGEST_WAIT = 16.0  # seconds between two looks at a run that does not change
SHARE = 0.005  # of the time, that looking may take
ALIVE_SECONDS = 5.0  # without an event, after which a run says that its program is alive

log = logging.getLogger(__name__)


@dataclass
class _Recorded:
    """A run, its log, and when it is looked at again."""

    run: runs.Run
    events: EventLog
    last: dict[str, Any]
    look_at: float = 0.0
    wait: float = LOOK_SECONDS
    written_at: float = 0.0
    has_ended: bool = False


class Recorder:
    """Writes the events of runs until it is closed.

    Parameters
    ----------
    folder
        Where to; by default the folder of this user.
    only
        The keys of the runs to write; by default all runs of this program, those that come later as well.
    """

    def __init__(
        self,
        folder: Path | None = None,
        only: Sequence[str] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder = default_folder() if folder is None else folder
        self._only = frozenset(only)
        self._clock = clock
        self._recorded: dict[str, _Recorded] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._metrics: Metrics | None = None
        self._thread = threading.Thread(target=self._run, name="thalweg-recorder", daemon=True)
        self._failures: set[str] = set()
        self._look_at = 0.0  # not before: looking has its share of the time

    def start(self) -> None:
        """Begin; what is written so far is looked at from now on."""
        remove_old_runs(self.folder)
        self._thread.start()
        atexit.register(self.close)

    def close(self) -> None:
        """Write the last events, and that the runs have ended with this program's interest in them."""
        if self._closing.is_set():
            return
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()
        self.look(everything=True)
        if self._metrics is not None:
            with contextlib.suppress(Exception):  # Spark may have been stopped; errors of ours were logged as they came
                self._metrics.close()
        with self._lock:
            for recorded in self._recorded.values():
                recorded.events.close()
        atexit.unregister(self.close)

    def look(self, *, everything: bool = False) -> None:
        """Write the changes of the runs that are due, or of all runs."""
        for run in runs.recorded():
            if not self._only or run.key in self._only:
                recorded = self._recorded_of(run)
                if not recorded.has_ended and (everything or recorded.look_at <= self._clock()):
                    self._guarded(f"run {run.key}", partial(self._write_now, run))

    def progress(self, told: dict[str, Any]) -> None:
        """A micro-batch is done: write the descriptions that came with it."""
        progress = {name: value for name, value in told.items() if name not in {"wheres", "joins", "sessions"}}
        for run, description in self._described(told):
            self._write(run, description | {"progress": progress})

    def ended(self, told: dict[str, Any], error: str | None) -> None:
        """A streaming query has ended: write its last description."""
        for run, description in self._described(told):
            self._write(run, description)
            with self._lock:
                recorded = self._recorded[run.key]
                recorded.has_ended = True
                recorded.events.close(error)

    def _described(self, told: dict[str, Any]) -> list[tuple[runs.Run, dict[str, Any]]]:
        descriptions = [each for kind in ("wheres", "joins", "sessions") for each in told[kind]]
        by_key = {description["key"]: description for description in descriptions}
        chosen = [key for key in by_key if not self._only or key in self._only]
        return [(run, by_key[run.key]) for run in runs.find(chosen)]

    def _recorded_of(self, run: runs.Run) -> _Recorded:
        with self._lock:
            recorded = self._recorded.get(run.key)
            if recorded is None or recorded.run is not run:
                program = Path(sys.argv[0]).name or "python"
                about = {"kind": run.kind, "key": run.key, "program": program, "process": os.getpid()}
                recorded = self._recorded[run.key] = _Recorded(run, EventLog(self.folder, about), {})
            return recorded

    def _write_now(self, run: runs.Run) -> None:
        self._write(run, run.describe())

    def _write(self, run: runs.Run, description: dict[str, Any]) -> None:
        recorded, now = self._recorded_of(run), self._clock()
        with self._lock:
            if recorded.has_ended:
                return
            has_changed = any(recorded.last.get(name) != value for name, value in description.items())
            if has_changed or now - recorded.written_at >= ALIVE_SECONDS:
                recorded.events.append(description)
                recorded.last |= description
                recorded.written_at = now
            recorded.wait = LOOK_SECONDS if has_changed else min(2 * recorded.wait, LONGEST_WAIT)
            recorded.look_at = now + recorded.wait

    def tick(self) -> None:
        """Look at the runs, unless looking has had its share of the time, and say that the program is alive."""
        start = self._clock()
        if start >= self._look_at:
            if self._metrics is None:
                self._guarded("the listener", self._listen)
            self.look()
            end = self._clock()
            self._look_at = end + (end - start) / SHARE
        self._say_alive()

    def _run(self) -> None:
        while not self._closing.wait(TICK_SECONDS):
            self.tick()

    def _say_alive(self) -> None:
        """Let runs that do not change say that their program is alive."""
        now = self._clock()
        with self._lock:
            for recorded in self._recorded.values():
                if not recorded.has_ended and now - recorded.written_at >= ALIVE_SECONDS:
                    recorded.events.append({})
                    recorded.written_at = now

    def _listen(self) -> None:
        from thalweg.spark.metrics import Metrics

        self._metrics = Metrics.of_active_session(self.progress, self.ended)

    def _guarded(self, what: str, function: Callable[[], object]) -> None:
        """Call a function; a failure is logged once, since the page must never disturb the query that it shows."""
        try:
            function()
        except Exception as error:
            if what not in self._failures:
                log.warning("the page is not told of %s: %s", what, error, exc_info=log.isEnabledFor(logging.DEBUG))
            self._failures.add(what)
