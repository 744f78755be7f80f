"""A driver that is killed goes on from its checkpoint: no result is lost, and none is there twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.spark.programs.session_files import QUERIES
from tests.spark.session.harness import (
    SECOND,
    Batch,
    Episode,
    QueryText,
    Result,
    expected,
    late_rows_in_folder,
    rows_in_folder,
    rows_kept_aside,
    with_end,
    write_files,
)

PROGRAM = Path(__file__).parent.parent / "programs" / "session_files.py"
SECONDS = 240  # that a test waits on a busy machine
WINDOWS = {"large": (4, None), "groups": (10, 5), "joined": (4, None), "removed": (5, None), "added": (5, None)}
TEXTS = {name: QueryText(text.partition(" WINDOW")[0], *WINDOWS[name]) for name, text in QUERIES.items()}


def batches(count: int = 7) -> list[Batch]:
    """Rows of four seconds in each micro-batch, of which some come a micro-batch later, and some too late."""
    numbers = random.Random(15)  # noqa: S311 - no secret
    found: list[Batch] = []
    for number in range(count):
        times = [round((4 * number + numbers.uniform(-5, 4)) * SECOND) for _ in range(30)]
        found.append(
            {
                "A": [(numbers.randrange(4), numbers.randrange(9), "a", moment) for moment in times],
                "B": [(numbers.randrange(4), numbers.randrange(9), moment) for moment in times],
            }
        )
    return with_end(found)


def start(folder: Path, environment: dict[str, str], *words: str) -> subprocess.Popen[bytes]:
    """Start the program; `words` are the format of some results, and the moment at which it waits to be killed."""
    with (folder / "program.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, str(PROGRAM), "local[2]", str(folder), *words],
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def kill_when(ready: Callable[[], bool], folder: Path, environment: dict[str, str], *words: str) -> None:
    """Start the program, and kill it and all its processes as soon as it is ready for that."""
    process = start(folder, environment, *words)
    deadline = time.monotonic() + SECONDS
    while not ready():
        assert process.poll() is None, (folder / "program.log").read_text()[-3000:]
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def begun(folder: Path) -> int:
    """How many micro-batches have begun."""
    return len([path for path in (folder / "checkpoint" / "spark" / "offsets").glob("*") if path.name.isdigit()])


def as_read(folder: Path, rows: list[Batch]) -> list[Batch]:
    """The rows of each micro-batch, as Spark has read them.

    A source of files notes a file before Spark notes the micro-batch. If the driver is killed in between, the source
    reads that file together with the next file, and the other source does not: rows may be late then that were not.
    """
    found, before = list[Batch](), [-1, -1]
    for number in range(begun(folder)):
        text = (folder / "checkpoint" / "spark" / "offsets" / str(number)).read_text()
        offsets = [json.loads(line)["logOffset"] for line in text.splitlines()[2:]]
        read = zip("AB", before, offsets, strict=True)
        found.append(
            {
                name: [row for batch in rows[first + 1 : last + 1] for row in batch.get(name, ())]
                for name, first, last in read
            }
        )
        before = offsets
    return found


def from_round(results: Counter[Result], start: int) -> Counter[Result]:
    return Counter({result: count for result, count in results.items() if result[0] >= start})


@pytest.mark.parametrize(
    ("moments", "file_format"),
    [
        pytest.param(("switched",), "parquet", id="switched"),
        pytest.param(("adding", "removed"), "csv", id="adding"),
        pytest.param(("added", "removed-served"), "parquet", id="added"),
        pytest.param(("added-served", "removed"), "csv", id="added-served"),
    ],
)
def test_the_driver_is_killed(
    tmp_path: Path, environment: dict[str, str], moments: tuple[str, ...], file_format: str
) -> None:
    """Right after a plan was switched; in the middle of an addition, after it, after a micro-batch with the new query;
    after a removal, and a micro-batch without the query; and then at a random point, the same whenever this runs."""
    rows = batches()
    write_files(tmp_path, rows)
    for moment in moments:
        kill_when((tmp_path / moment).exists, tmp_path, environment, file_format, moment)
    assert (tmp_path / "added").exists() == (moments[0] not in ("adding", "switched"))
    wanted = begun(tmp_path) + 1
    pause = random.Random("/".join(moments)).uniform(0, 2)  # noqa: S311 - no secret

    def at_random() -> bool:
        if begun(tmp_path) < wanted:
            return False
        time.sleep(pause)
        return True

    kill_when(at_random, tmp_path, environment, file_format)
    process = start(tmp_path, environment, file_format)
    assert process.wait(SECONDS) == 0, (tmp_path / "program.log").read_text()[-3000:]
    check(tmp_path, rows)


def check(folder: Path, rows: list[Batch]) -> None:
    """Compare the results of all queries with DuckDB's."""
    rows = as_read(folder, rows)
    found = {name: rows_in_folder(folder / "out" / name) for name in TEXTS}
    for name in ("large", "groups", "joined"):
        assert found[name] == expected(TEXTS[name], rows), name
    first = min(result[0] for result in found["added"])  # it began when it was added, whenever that was
    assert found["added"] == from_round(expected(TEXTS["added"], rows), first)
    steady = [TEXTS[name] for name in ("large", "groups", "joined")]
    for stream in "AB":
        late = late_rows_in_folder(folder / "late" / stream)
        assert rows_kept_aside(steady, rows, stream) <= late  # and others may be late for the other queries
        assert late <= rows_kept_aside(TEXTS.values(), rows, stream)
    last = max(int(path.name.split("-")[1]) for path in (folder / "out" / "removed").glob("batch-*"))
    assert expected(TEXTS["removed"], rows, [Episode(0, last)]) <= found["removed"]
    assert found["removed"] <= expected(TEXTS["removed"], rows, [Episode(0, last + 1)])
