"""How the workers of a query learn from each other and from earlier runs: each writes a file, and reads the others'.

A folder that cannot be read or written costs the sharing, never the query.
"""

from __future__ import annotations

import os
import socket
import uuid

import numpy as np

from thalweg.ordering.types import Booleans
from thalweg.sealed import SavedStateError
from thalweg.spark.filters.worker.report import SUFFIX, WorkerReport
from thalweg.spark.folder import StateFolder


class Exchange:
    """The side of a worker process in the exchange."""

    def __init__(self, folder: str, signature: str) -> None:
        self.notes: list[str] = []
        self._folder = StateFolder(folder)
        self._signature = signature
        self._own_file = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:6]}{SUFFIX}"
        self._versions: dict[str, object] = {}
        self._newest_stamps: dict[str, float] = {}  # of the profile tuples that were taken in, by file

    def publish(self, report: WorkerReport) -> None:
        """Write the report for the other workers and the driver."""
        try:
            self._folder.write(self._own_file, report.to_bytes())
        except OSError as error:
            self._note(f"workers do not share what they learn: {error}")

    def news(self) -> list[tuple[WorkerReport, Booleans]]:
        """The reports of others on the same predicates since the last look, and which profile tuples are new."""
        try:
            versions = self._folder.versions()
            changed = [
                name
                for name, version in versions.items()
                if name.endswith(SUFFIX) and name != self._own_file and self._versions.get(name) != version
            ]
            contents = self._folder.read(changed)
        except OSError as error:
            self._note(f"the reports of other workers are not used: {error}")
            return []
        self._versions = versions
        found = []
        for name, content in contents.items():
            try:
                report = WorkerReport.from_bytes(content)
            except SavedStateError:
                continue  # the driver notes it
            if report.signature == self._signature:
                found.append((report, self._is_new(name, report)))
        return found

    def _is_new(self, name: str, report: WorkerReport) -> Booleans:
        stamps = report.profile.stamps
        new: Booleans = stamps > self._newest_stamps.get(name, -np.inf)
        if new.any():
            self._newest_stamps[name] = float(stamps.max())
        return new

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)
