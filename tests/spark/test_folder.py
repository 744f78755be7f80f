from __future__ import annotations

import os
from pathlib import Path

import pytest

from thalweg.spark.folder import StateFolder


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_folder_is_local_or_a_url(tmp_path: Path, scheme: str) -> None:
    folder = StateFolder(f"{scheme}{tmp_path}/new")
    assert folder.read() == {}
    folder.write("one", b"1")
    folder.write("two", b"2")
    folder.write("one", b"3")
    assert folder.read() == {"one": b"3", "two": b"2"}
    assert set(folder.versions()) == {"one", "two"}
    assert folder.read(["two", "gone"]) == {"two": b"2"}
    folder.delete(["two", "gone"])
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["one"]


def test_a_folder_on_another_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow's own file systems are used for whatever is not local; its local one stands in for them here."""
    folder = StateFolder(f"file://{tmp_path}/new")
    monkeypatch.setattr(folder, "_is_local", False)
    folder.write("one", b"1")
    assert folder.read() == {"one": b"1"}
    assert set(folder.versions()) == {"one"}
    folder.delete(["one", "gone"])
    assert folder.read() == {}


def test_a_home_folder_is_meant_by_its_sign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    StateFolder("~/learnt").write("one", b"1")
    assert (tmp_path / "learnt" / "one").read_bytes() == b"1"


def test_what_is_in_the_way_is_no_file(tmp_path: Path) -> None:
    """A file in place of the folder, and a folder named like a file."""
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "folder" / "x.learned").mkdir(parents=True)
    for url in (tmp_path / "file", tmp_path / "folder"):
        folder = StateFolder(url)
        assert folder.versions() == {}
        assert folder.read(["x.learned"]) == {}
        assert folder.version("absent") is None
        folder.delete(["x.learned"])


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "new")
    before = os.umask(0)
    try:
        folder.write("learnt", b"values of rows")
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "new" / "learnt").stat().st_mode & 0o777 == 0o600
