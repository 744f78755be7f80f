"""A number that all workers of a query change together: in a file where they share a local folder, else for itself.

A file is locked for the microseconds that a change takes, so that no change of another process is lost.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from thalweg.spark.folder import StateFolder

SUFFIX = ".shared"  # of the files of such numbers
LONGEST_TEXT = 64  # bytes of a number that was written here


class SharedNumber(Protocol):
    """A number, 0 at first."""

    def change(self, function: Callable[[float], float]) -> float:
        """Replace the number by a function of it; returns the number before."""
        ...


class OwnNumber:
    """A number of one process.

    >>> number = OwnNumber()
    >>> number.change(lambda old: old + 2), number.change(lambda old: old + 2)
    (0.0, 2.0)
    """

    def __init__(self) -> None:
        self._value = 0.0

    def change(self, function: Callable[[float], float]) -> float:
        """Replace the number by a function of it; returns the number before."""
        before = self._value
        self._value = function(before)
        return before


class FileNumber:
    """A number in a file, as text. A file with anything else in it counts as 0."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def change(self, function: Callable[[float], float]) -> float:
        """Replace the number by a function of it; returns the number before."""
        import fcntl

        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)  # closing the file unlocks it
            before = _number(os.read(file, LONGEST_TEXT))
            text = repr(function(before)).encode()
            os.pwrite(file, text, 0)
            os.ftruncate(file, len(text))
        finally:
            os.close(file)
        return before


def shared_number(folder: str, name: str) -> SharedNumber:
    """The number of this name in a folder; a number of this process alone where files cannot be locked."""
    path = StateFolder(folder).local_path(f"{name}{SUFFIX}")
    if path is None or not can_lock():
        return OwnNumber()
    return FileNumber(path)


def can_lock() -> bool:
    """Whether this system locks files for processes."""
    try:
        import fcntl  # noqa: F401 - whether it is there
    except ImportError:
        return False
    return True


def _number(text: bytes) -> float:
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if math.isfinite(value) else 0.0
