"""Tasks that do not use the layouts that the ledger decided are found out, without Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from thalweg.mjoin import BEGINNING, StateError
from thalweg.mjoin.layouts import PLAIN
from thalweg.mjoin.shares import Shares
from thalweg.mjoin.skew import LEAST_ROWS
from thalweg.spark.joins.splitting import Entry, Record, Splitting

SHARES = Shares((4,), {"A": frozenset([0]), "B": frozenset([0])})
QUERY = "query"


@pytest.fixture
def splitting(tmp_path: Path) -> Splitting:
    return Splitting(str(tmp_path), "join", "first run", SHARES)


def told(entry: Entry | None, name: str = "A") -> dict[str, Any]:
    """What a task says that has sent rows of one key only."""
    rows = 10 * LEAST_ROWS
    frequent = {"0": {"7": float(rows)}}
    text = entry.text if entry else None
    return {"entry": text, "input": name, "rows": rows, "deadline": 100, "frequent": frequent}


def step(splitting: Splitting, record: Record | None, batch: int, watermark: int = BEGINNING) -> Record:
    entry = splitting.current(QUERY, batch)
    record = record or Record.new(splitting, batch)
    after = record.after(splitting, QUERY, batch, [told(entry), told(entry, "B")], watermark)
    assert Record.from_json(json.loads(json.dumps(after.to_json()))) == after
    return after


def test_the_next_micro_batch_uses_what_the_ledger_decided(splitting: Splitting) -> None:
    record = step(splitting, None, 0)
    assert record.is_split
    again = step(splitting, None, 0)  # the micro-batch is done again
    assert again == record
    entry = splitting.current(QUERY, 1)
    assert entry is not None
    assert entry.layouts.generation == 1
    assert splitting.current(QUERY, 0) == Entry(0, "", PLAIN)
    assert step(splitting, record, 1) == step(splitting, record, 1)
    later = step(splitting, step(splitting, record, 1), 2, watermark=100)
    assert later.entries[-1].layouts.before is None
    assert later.describe(SHARES)["heavy"][0]["share"] == pytest.approx(1.0)


def test_a_restart_finds_the_file_or_does_without(splitting: Splitting) -> None:
    record = step(splitting, step(splitting, None, 0), 1)
    second = replace(splitting, run="second run")
    with_file = step(second, record, 2)
    assert with_file.ledger.layouts == record.entries[-1].layouts
    splitting_elsewhere = replace(second, folder=f"{second.folder}/other")
    assert splitting_elsewhere.current(QUERY, 2) is None
    without = step(splitting_elsewhere, record, 2)
    assert without.ledger.layouts == record.ledger.layouts  # what cells know
    assert splitting_elsewhere.current(QUERY, 3) == without.entries[-1]


def test_a_change_that_no_micro_batch_used_is_decided_anew(splitting: Splitting) -> None:
    record = step(splitting, None, 0)
    elsewhere = replace(splitting, run="second run", folder=f"{splitting.folder}/other")
    after = step(elsewhere, record, 1)
    assert after.ledger.layouts == PLAIN
    assert after.entries[-1] == Entry(2, "second run", record.entries[-1].layouts)


def test_tasks_that_disagree_fail_the_micro_batch(splitting: Splitting) -> None:
    record = step(splitting, None, 0)
    right, wrong = splitting.current(QUERY, 1), Entry(0, "", PLAIN)
    for used in ([right, wrong], [right, None], [wrong, wrong], [None, None]):
        with pytest.raises(StateError, match="state= must name a folder that the driver and all workers share"):
            record.after(splitting, QUERY, 1, [told(one) for one in used], BEGINNING)


def test_a_damaged_file_is_a_lost_one(splitting: Splitting) -> None:
    step(splitting, None, 0)
    (path,) = Path(splitting.folder).iterdir()
    path.write_text("[1")
    assert splitting.current(QUERY, 1) is None


def test_a_query_that_began_without_splitting_goes_on_without(splitting: Splitting) -> None:
    record = step(splitting, None, 5)
    assert not record.is_split
    assert not step(splitting, record, 6).is_split
