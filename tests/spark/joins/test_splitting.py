"""Tasks that do not use the layouts that the ledger decided are found out, without Spark."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from thalweg.mjoin import BEGINNING
from thalweg.mjoin.layouts import PLAIN
from thalweg.mjoin.shares import Shares
from thalweg.mjoin.skew import LEAST_ROWS, SkewReport
from thalweg.sealed import SavedStateError
from thalweg.spark.joins.splitting import LayoutEntry, Splitting, SplittingRecord

SHARES = Shares((4,), {"A": frozenset([0]), "B": frozenset([0])})
QUERY = "query"
FIRST = LayoutEntry.first()
ROWS = 10 * LEAST_ROWS
REPORTS = [SkewReport(name, ROWS, 100, {0: {7: float(ROWS)}}) for name in "AB"]  # all rows have one key


@pytest.fixture
def splitting(tmp_path: Path) -> Splitting:
    return Splitting(str(tmp_path), "join", "first run", SHARES)


def step(
    splitting: Splitting, record: SplittingRecord | None, batch: int, watermark: int = BEGINNING
) -> SplittingRecord:
    entry = splitting.read_entry(QUERY, batch)
    record = record or SplittingRecord.new(splitting, batch)
    after = record.after(splitting, QUERY, batch, {entry}, REPORTS, watermark)
    assert SplittingRecord.from_json(json.loads(json.dumps(after.to_json()))) == after
    return after


def test_the_next_micro_batch_uses_what_the_ledger_decided(splitting: Splitting) -> None:
    record = step(splitting, None, 0)
    assert record.is_split
    again = step(splitting, None, 0)  # the micro-batch is repeated
    assert again == record
    entry = splitting.read_entry(QUERY, 1)
    assert entry is not None
    assert entry.layouts.generation == 1
    assert splitting.read_entry(QUERY, 0) == FIRST
    assert step(splitting, record, 1) == step(splitting, record, 1)
    later = step(splitting, step(splitting, record, 1), 2, watermark=100)
    assert later.entries[-1].layouts.before is None
    assert later.describe(SHARES)["heavy"][0]["share"] == pytest.approx(1.0)


def test_a_restart_finds_the_file_or_does_without(splitting: Splitting) -> None:
    record = step(splitting, step(splitting, None, 0), 1)
    second = replace(splitting, run="second run")
    with_file = step(second, record, 2)
    assert with_file.statistics.layouts == record.entries[-1].layouts
    splitting_elsewhere = replace(second, folder=f"{second.folder}/other")
    assert splitting_elsewhere.read_entry(QUERY, 2) is None
    without = step(splitting_elsewhere, record, 2)
    assert without.statistics.layouts == record.statistics.layouts  # which the cells know
    assert splitting_elsewhere.read_entry(QUERY, 3) == without.entries[-1]


def test_a_change_that_no_micro_batch_used_is_decided_anew(splitting: Splitting) -> None:
    record = step(splitting, None, 0)
    elsewhere = replace(splitting, run="second run", folder=f"{splitting.folder}/other")
    after = step(elsewhere, record, 1)
    assert after.statistics.layouts == PLAIN
    assert after.entries[-1] == LayoutEntry(2, "second run", record.entries[-1].layouts)


def test_tasks_that_disagree_fail_the_micro_batch(splitting: Splitting) -> None:
    record = step(splitting, None, 0)
    right, wrong = splitting.read_entry(QUERY, 1), FIRST
    disagreeing: list[set[LayoutEntry | None]] = [{right, wrong}, {right, None}, {wrong}, {wrong, None}]
    for used in disagreeing:
        with pytest.raises(SavedStateError, match="state= must name a folder that the driver and all workers share"):
            record.after(splitting, QUERY, 1, used, REPORTS, BEGINNING)


def test_a_file_that_is_lost_is_written_again(splitting: Splitting) -> None:
    record = step(splitting, step(splitting, None, 0), 1)
    before = record.statistics.layouts
    shutil.rmtree(splitting.folder)
    after = step(splitting, record, 2)  # cells pick their rows by the layouts that they know
    assert after.statistics.layouts == before
    assert splitting.read_entry(QUERY, 3) == after.entries[-1]
    assert step(splitting, after, 3).statistics.layouts == after.entries[-1].layouts


def test_tasks_that_began_before_the_file_was_lost_agree_with_the_others(splitting: Splitting) -> None:
    record = step(splitting, step(splitting, None, 0), 1)
    entry = splitting.read_entry(QUERY, 2)
    assert entry is not None
    assert entry.layouts == record.statistics.layouts
    assert record.after(splitting, QUERY, 2, {entry, None}, REPORTS, BEGINNING).statistics.layouts == entry.layouts


def test_layouts_stay_as_long_as_the_file_cannot_be_written(splitting: Splitting) -> None:
    record = step(splitting, step(splitting, None, 0), 1)
    shutil.rmtree(splitting.folder)
    Path(splitting.folder).touch()
    for batch in (2, 3):
        later = step(splitting, record, batch, watermark=100)
        assert later.entries == record.entries
        assert later.statistics.layouts == record.statistics.layouts
        record = later
    Path(splitting.folder).unlink()
    record = step(splitting, record, 4, watermark=100)
    assert splitting.read_entry(QUERY, 5) == record.entries[-1]
    assert record.entries[-1].layouts.before is None


def test_a_damaged_file_is_a_lost_one(splitting: Splitting) -> None:
    step(splitting, None, 0)
    (path,) = Path(splitting.folder).iterdir()
    path.write_text("[1")
    assert splitting.read_entry(QUERY, 1) is None


def test_a_query_that_began_without_splitting_goes_on_without(splitting: Splitting) -> None:
    record = step(splitting, None, 5)
    assert not record.is_split
    assert not step(splitting, record, 6).is_split
