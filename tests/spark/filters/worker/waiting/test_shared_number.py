from __future__ import annotations

import threading
from pathlib import Path

from thalweg.spark.filters.worker.waiting.budget import Budget
from thalweg.spark.filters.worker.waiting.shared_number import FileNumber, OwnNumber, shared_number


def test_no_change_is_lost(tmp_path: Path) -> None:
    def count() -> None:
        number = shared_number(str(tmp_path / "new"), "count")
        for _ in range(50):
            number.change(lambda old: old + 1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shared_number(str(tmp_path / "new"), "count").change(lambda old: old) == 200


def test_a_file_with_anything_else_in_it_counts_as_zero(tmp_path: Path) -> None:
    file = tmp_path / "number"
    for content in (b"", b"\x00\xff", b"nan", b"12 monkeys"):
        file.write_bytes(content)
        assert FileNumber(str(file)).change(lambda old: old + 1.5) == 0
        assert file.read_bytes() == b"1.5"


def test_without_a_local_folder_each_process_has_its_own() -> None:
    assert isinstance(shared_number("s3://bucket/state", "rate"), OwnNumber)


def test_two_workers_share_a_budget(tmp_path: Path) -> None:
    workers = [Budget(10, shared_number(str(tmp_path), "budget")) for _ in range(2)]
    assert [workers[place % 2].set_aside(4) for place in range(4)] == [True, True, False, False]
    workers[0].correct(-3)
    assert workers[1].set_aside(4)
