from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from thalweg.ordering import Profile
from thalweg.spark.filters.learned import Learned, StateError, digest, merge
from thalweg.spark.folder import StateFolder


def learned(order: list[int], masks: list[int], at: float) -> Learned:
    profile = Profile(2, window=4)
    profile.insert(masks, np.ones((len(masks), 2)), np.full(len(masks), at))
    return Learned("run", ["p", "q"], order, profile, rows=10, costs=[1.0, None], call_costs=[0.0, 0.1], at=at)


def test_a_file_is_read_as_it_was_written() -> None:
    one = learned([1, 0], [1, 2, 3], 5.0)
    read = Learned.from_bytes(one.to_bytes())
    assert read.profile.masks.tolist() == [1, 2, 3]
    assert {**vars(read), "profile": None} == {**vars(one), "profile": None}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda data: b"thalweg9" + data[8:], "one of another version; delete it"),
        (lambda data: data[:-1], "damaged or cut short; delete it"),
        (lambda data: data[:60] + bytes([data[60] ^ 1]) + data[61:], "damaged or cut short"),
        (lambda _: b"", "no saved state"),
    ],
)
def test_a_spoilt_file_is_refused(spoil: object, message: str) -> None:
    data = learned([1, 0], [1], 5.0).to_bytes()
    with pytest.raises(StateError, match=message):
        Learned.from_bytes(spoil(data))  # type: ignore[operator]


def test_merging_keeps_the_newest() -> None:
    merged = merge([learned([0, 1], [1, 1, 1], 1.0), learned([1, 0], [2, 2], 2.0)])
    assert merged.order == [1, 0]
    assert merged.profile.masks.tolist() == [1, 1, 2, 2]  # a window of four
    assert merged.rows == 0
    assert merged.run == ""


def test_names_tell_lists_apart() -> None:
    assert digest(["a", "b"]) != digest(["a b"]) != digest(["b", "a"])


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
