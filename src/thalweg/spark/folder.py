"""A folder of small files that a driver and its workers share: what a query has learnt, stored keys, reports.

Each file is written whole or not at all, and may be on any file system that Arrow knows.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class StateFolder:
    """A folder of such files, by path or by URL.

    >>> import tempfile
    >>> folder = StateFolder(tempfile.mkdtemp())
    >>> folder.write("greeting", b"good morning")
    >>> folder.read()
    {'greeting': b'good morning'}
    """

    def __init__(self, url: str | os.PathLike[str]) -> None:
        self.url = os.fspath(url)
        split = urlsplit(self.url)
        self._local = Path(split.path if split.scheme == "file" else self.url)
        self._is_local = split.scheme in {"", "file"} or re.match(r"^[A-Za-z]:\\", self.url) is not None

    def write(self, name: str, content: bytes) -> None:
        """Write one file, whole or not at all."""
        if self._is_local:
            self._local.mkdir(parents=True, exist_ok=True)
            scratch = self._local / f".{name}.{os.getpid()}.tmp"
            scratch.write_bytes(content)
            scratch.replace(self._local / name)
            return
        system, path = self._system()
        system.create_dir(path, recursive=True)
        scratch_path = f"{path}/.{name}.{os.getpid()}.tmp"
        with system.open_output_stream(scratch_path) as file:
            file.write(content)
        system.move(scratch_path, f"{path}/{name}")

    def versions(self) -> dict[str, object]:
        """Every file with something that changes when it is written again."""
        if self._is_local:
            try:
                with os.scandir(self._local) as entries:
                    return {entry.name: entry.stat().st_mtime_ns for entry in entries if _is_ours(entry.name)}
            except FileNotFoundError:
                return {}
        import pyarrow.fs

        system, path = self._system()
        selector = pyarrow.fs.FileSelector(path, allow_not_found=True)
        return {file.base_name: file.mtime_ns for file in system.get_file_info(selector) if _is_ours(file.base_name)}

    def read(self, names: Iterable[str] | None = None) -> dict[str, bytes]:
        """The files' contents; one that is being replaced or removed at this moment is left out."""
        contents = {}
        for name in self.versions() if names is None else names:
            try:
                contents[name] = self._read(name)
            except FileNotFoundError:
                continue
        return contents

    def delete(self, names: Iterable[str]) -> None:
        """Remove files; those that are gone already are no matter."""
        for name in names:
            try:
                if self._is_local:
                    (self._local / name).unlink()
                else:
                    system, path = self._system()
                    system.delete_file(f"{path}/{name}")
            except FileNotFoundError:
                continue

    def _read(self, name: str) -> bytes:
        if self._is_local:
            return (self._local / name).read_bytes()
        system, path = self._system()
        with system.open_input_stream(f"{path}/{name}") as file:
            content: bytes = file.read()
        return content

    def _system(self) -> tuple[Any, str]:
        import pyarrow.fs

        system, path = pyarrow.fs.FileSystem.from_uri(self.url)
        return system, path


def _is_ours(name: str) -> bool:
    return not name.startswith(".")


@cache
def scratch() -> str:
    """A folder for what is learnt, as long as this program runs."""
    folder = tempfile.mkdtemp(prefix="thalweg-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
