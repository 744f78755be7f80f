from __future__ import annotations

import numpy as np
import pytest

from thalweg.ordering import Profile
from thalweg.sealed import SavedStateError, seal
from thalweg.spark.filters.worker.report import KIND, VERSION, WorkerReport, merge


def learned(order: list[int], masks: list[int], at: float) -> WorkerReport:
    profile = Profile(2, window=4)
    profile.insert(masks, np.ones((len(masks), 2)), np.full(len(masks), at))
    return WorkerReport(
        "run", "signature", ["p", "q"], order, profile, rows=10, costs=[1.0, None], call_costs=[0.0, 0.1], at=at
    )


def test_a_file_is_read_as_it_was_written() -> None:
    one = learned([1, 0], [1, 2, 3], 5.0)
    read = WorkerReport.from_bytes(one.to_bytes())
    assert read.profile.masks.tolist() == [1, 2, 3]
    assert {**vars(read), "profile": None} == {**vars(one), "profile": None}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda data: b"thalweg9" + data[8:], "one of an early version; delete it"),
        (lambda data: data[:-1], "damaged or cut short; delete it"),
        (lambda data: data[:60] + bytes([data[60] ^ 1]) + data[61:], "damaged or cut short"),
        (lambda _: b"", "no saved filter report"),
    ],
)
def test_a_spoilt_file_is_refused(spoil: object, message: str) -> None:
    data = learned([1, 0], [1], 5.0).to_bytes()
    with pytest.raises(SavedStateError, match=message):
        WorkerReport.from_bytes(spoil(data))  # type: ignore[operator]


def test_merging_keeps_the_newest() -> None:
    merged = merge([learned([0, 1], [1, 1, 1], 1.0), learned([1, 0], [2, 2], 2.0)])
    assert merged.order == [1, 0]
    assert merged.profile.masks.tolist() == [1, 1, 2, 2]  # a window of four
    assert merged.rows == 0
    assert merged.run == ""


@pytest.mark.parametrize(
    "parts",
    [
        (),
        (b"", b""),
        (b"{", b"", b""),
        (b"[" * 100_000, b"", b""),
        (b"{}", b"no profile", b""),
        (b'{"run": 5}', None, b""),
        (b'{"predicates": 7}', None, b""),
        (b"[]", None, b""),
    ],
)
def test_odd_content_behind_a_right_digest_is_refused(parts: tuple[bytes | None, ...]) -> None:
    profile = Profile(2, window=4).to_bytes()
    with pytest.raises(SavedStateError):
        WorkerReport.from_bytes(seal(KIND, VERSION, *(profile if part is None else part for part in parts)))


@pytest.mark.parametrize("name", ["order", "predicates", "costs", "rows", "changes", "routing", "signature"])
@pytest.mark.parametrize("odd", [None, "text", 5, [1, 2, 3], {"a": 1}])
def test_odd_values_of_every_kind_are_refused_or_harmless(name: str, odd: object) -> None:
    report = learned([1, 0], [1], 5.0)
    setattr(report, name, odd)
    try:
        read = WorkerReport.from_bytes(report.to_bytes())
    except SavedStateError:
        return
    assert sorted(read.order) == list(range(len(read.predicates)))
