from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from thalweg.spark.session.position import WaitingFile
from thalweg.spark.session.waiting import MOST_FILES, remove_files, some_rows, still_needed, written_together


def waiting_file(folder: Path, number: int, stream: str = "A", level: int = 0, **columns: object) -> WaitingFile:
    path = f"segments/{number}/{number:x}.parquet"
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"time": [number, number + 100], **columns})
    never_null = [field.with_nullable(table.column(field.name).null_count > 0) for field in table.schema]
    parquet.write_table(table.cast(pa.schema(never_null)), folder / path)
    return WaitingFile(stream, path, rows=2, latest=number + 100, size=32, level=level)


def test_files_are_needed_as_long_as_a_row_is() -> None:
    early, late = WaitingFile("A", "a", 1, latest=5, size=8), WaitingFile("A", "b", 1, latest=6, size=8)
    unread = WaitingFile("B", "c", 1, latest=6, size=8)
    assert still_needed([early, late, unread], {"A": 5}) == [late]


def test_many_files_of_a_level_become_one_of_the_next(tmp_path: Path) -> None:
    small = [waiting_file(tmp_path, number, x=pa.array([number, None], pa.int32())) for number in range(MOST_FILES)]
    assert written_together(small, {"A": -1}, str(tmp_path), 99) == tuple(small)
    newer = waiting_file(tmp_path, MOST_FILES, x=pa.array([7, 8], pa.int32()), y=["a", "b"])  # a query came
    other = waiting_file(tmp_path, 50, stream="B")
    larger = waiting_file(tmp_path, 60, level=1)
    (tmp_path / "segments/99").mkdir()
    files = written_together([*small, newer, other, larger], {"A": 3, "B": 0}, str(tmp_path), 99)
    one = next(file for file in files if file not in (other, larger))
    assert set(files) == {one, other, larger}
    assert (one.stream, one.level, one.latest) == ("A", 1, MOST_FILES + 100)
    table = parquet.read_table(tmp_path / one.path)
    assert table.num_rows == one.rows == 2 * (MOST_FILES + 1) - 4
    assert min(table.column("time").to_pylist()) == 4
    assert table.column("y").to_pylist()[-2:] == ["a", "b"]
    assert table.column("y").null_count == one.rows - 2


def test_files_that_are_not_kept_are_removed_with_their_folders(tmp_path: Path) -> None:
    first, second = waiting_file(tmp_path, 1), waiting_file(tmp_path, 2)
    remove_files(str(tmp_path), [first, second], [second])
    assert [path.name for path in (tmp_path / "segments").iterdir()] == ["2"]
    remove_files(str(tmp_path), [first], [second])  # again, after a restart


def test_some_rows_are_spread_over_all_files(tmp_path: Path) -> None:
    files = [waiting_file(tmp_path, number, x=[number, number]) for number in range(10)]
    newer = waiting_file(tmp_path, 10, x=[10, 10], y=["a", "b"])
    paths = [str(tmp_path / file.path) for file in (*files, newer)]
    found = some_rows(paths, ["x", "y", "x"], 7)
    assert found.column("x").to_pylist() == [0, 1, 3, 4, 6, 7, 9, 10]  # of 22 rows, every third
    assert some_rows(paths, ["y"], 100).column("y").drop_null().to_pylist() == ["a", "b"]
    assert some_rows(paths[:2], ["y"], 100).column("y").null_count == 4
    assert some_rows([], ["x"], 100).num_rows == 0


def test_of_very_many_rows_some_groups_are_read(tmp_path: Path) -> None:
    table = pa.table({"x": range(1000)})
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=10)
    found = some_rows([str(tmp_path / "rows.parquet")], ["x"], 4).column("x").to_pylist()
    assert len(found) == 4
    assert found[-1] > 700
