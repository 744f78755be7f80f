"""A folder of small files that a driver and its workers share: learnt state of queries, stored keys, reports.

Each file is written whole or not at all, and may be on any file system that Arrow knows. On a local file system,
folders that are made here and all files are for their owner only: learnt state has values of users' rows in it.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

OWNER_FILE, OWNER_FOLDER = 0o600, 0o700  # permissions: for the owner, and nobody else


class StateFolder:
    """A folder of files, by path or by URL.

    >>> import tempfile
    >>> folder = StateFolder(tempfile.mkdtemp())
    >>> folder.write("greeting", b"good morning")
    >>> folder.read()
    {'greeting': b'good morning'}
    """

    def __init__(self, url: str | os.PathLike[str]) -> None:
        self.url = os.path.expanduser(os.fspath(url))  # noqa: PTH111 - may be a URL
        split = urlsplit(self.url)
        self._local = Path(split.path if split.scheme == "file" else self.url)
        self._is_local = split.scheme in {"", "file"} or re.match(r"^[A-Za-z]:\\", self.url) is not None

    def write(self, name: str, content: bytes) -> None:
        """Write one file, whole or not at all."""
        scratch_name = f".{name}.{uuid.uuid4().hex[:8]}.tmp"  # another name for each thread and process
        if self._is_local:
            make_private_folder(self._local)
            scratch_file = self._local / scratch_name
            try:
                scratch_file.touch(mode=OWNER_FILE)
                scratch_file.write_bytes(content)
                scratch_file.replace(self._local / name)
            except OSError:  # the disk may be full
                scratch_file.unlink(missing_ok=True)
                raise
            return
        system, path = self._system()
        system.create_dir(path, recursive=True)
        with system.open_output_stream(f"{path}/{scratch_name}") as file:
            file.write(content)
        system.move(f"{path}/{scratch_name}", f"{path}/{name}")

    def versions(self) -> dict[str, object]:
        """Every file with a value that changes when the file is written again; nothing if there is no such folder."""
        if self._is_local:
            try:
                with os.scandir(self._local) as entries:
                    return {
                        entry.name: (status.st_mtime_ns, status.st_ino)
                        for entry in entries
                        if _is_visible(entry.name) and entry.is_file() and (status := entry.stat())
                    }
            except (FileNotFoundError, NotADirectoryError):
                return {}
        import pyarrow.fs

        system, path = self._system()
        found = system.get_file_info(pyarrow.fs.FileSelector(path, allow_not_found=True))
        return {file.base_name: file.mtime_ns for file in found if file.is_file and _is_visible(file.base_name)}

    def version(self, name: str) -> object:
        """A value that changes when the file is written again; None if there is no such file."""
        if self._is_local:
            try:
                status = (self._local / name).stat()
            except (FileNotFoundError, NotADirectoryError):
                return None
            return status.st_mtime_ns, status.st_ino
        system, path = self._system()
        file = system.get_file_info(f"{path}/{name}")
        return file.mtime_ns if file.is_file else None

    def read(self, names: Iterable[str] | None = None) -> dict[str, bytes]:
        """The files' contents; a file that is being replaced or removed at this moment is left out."""
        contents = {}
        for name in self.versions() if names is None else names:
            try:
                contents[name] = self._read(name)
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
                continue
        return contents

    def delete(self, names: Iterable[str]) -> None:
        """Remove files; files that are gone already are left out."""
        for name in names:
            try:
                if self._is_local:
                    (self._local / name).unlink()
                else:
                    system, path = self._system()
                    system.delete_file(f"{path}/{name}")
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
                continue

    def local_path(self, name: str) -> str | None:
        """The path of a file on a local or mounted disk; None in a folder of another kind."""
        return str(self._local / name) if self._is_local else None

    def subfolder(self, name: str) -> StateFolder:
        """A folder within this folder."""
        return StateFolder(f"{self.url.rstrip('/')}/{name}")

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


def _is_visible(name: str) -> bool:
    return not name.startswith(".")


def make_private_folder(path: Path) -> None:
    """Make a folder for its owner only, with the folders above it; a folder that is there already stays as it is."""
    path.mkdir(mode=OWNER_FOLDER, parents=True, exist_ok=True)


def folder_for(key: str, state: str | os.PathLike[str] | None) -> StateFolder:
    """The folder that the user names, or a folder for one run that is kept as long as this program runs."""
    return StateFolder(f"{scratch()}/{key}" if state is None else state)


@cache
def scratch() -> str:
    """A folder that is removed when this program ends."""
    folder = tempfile.mkdtemp(prefix="thalweg-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
