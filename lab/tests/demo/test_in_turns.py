from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from thalweg_lab.demo.in_turns import (
    LEAST_STEPS,
    PLAIN,
    THALWEG,
    Contender,
    Turn,
    overall,
    steps_of,
    stopped_at_the_end,
)


class Fed:
    """A contender that takes a fixed time."""

    def __init__(self, name: str, seconds: float, order: list[str]) -> None:
        self.name, self.seconds, self.order = name, seconds, order

    def feed(self, tables: Mapping[str, pa.Table], number: int) -> float:
        del tables, number
        self.order.append(self.name)
        return self.seconds


def played(seconds: float, clock_step: float) -> tuple[list[Turn], list[str]]:
    order: list[str] = []
    contenders = cast("list[Contender]", [Fed(PLAIN, 2.0, order), Fed(THALWEG, 0.5, order)])
    now = iter(range(10_000))
    table = pa.table({"id": [1, 2, 3]})
    steps = list(steps_of(contenders, lambda _n, _p: {"rows": table}, seconds, clock=lambda: next(now) * clock_step))
    return steps, order


def test_contenders_take_turns_in_going_first() -> None:
    _, order = played(seconds=1.0, clock_step=0.1)
    assert order[:4] == [PLAIN, THALWEG, THALWEG, PLAIN]


def test_a_short_act_has_its_least_micro_batches_and_all_phases() -> None:
    steps, _ = played(seconds=1e-9, clock_step=0.1)
    assert len(steps) == LEAST_STEPS
    assert steps[-1].phase == 2


def test_phases_follow_the_time() -> None:
    steps, _ = played(seconds=30.0, clock_step=0.5)
    phases = [step.phase for step in steps]
    assert phases == sorted(phases)
    assert set(phases) == {0, 1, 2}


def test_the_first_micro_batch_is_not_counted() -> None:
    steps = [Turn(0, 0, 100, {PLAIN: 50.0, THALWEG: 50.0}), Turn(1, 0, 100, {PLAIN: 4.0, THALWEG: 1.0})]
    assert overall(steps) == {PLAIN: 25.0, THALWEG: 100.0}


class Query:
    """A streaming query that notes what it is told."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.seen, self.is_stopped = folder, [], False

    seen: list[str]

    def processAllAvailable(self) -> None:  # noqa: N802 - Spark's name
        self.seen += sorted(path.name for path in self.folder.iterdir())

    def stop(self) -> None:
        self.is_stopped = True


def test_files_appear_whole_and_queries_stop_whatever_happens(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    query: Any = Query(tmp_path / "rows")
    contender = Contender(PLAIN, tmp_path, [query])
    contender.feed({"rows": pa.table({"id": [1]})}, 0)
    with pytest.raises(KeyboardInterrupt), stopped_at_the_end(contender):
        raise KeyboardInterrupt
    assert query.seen == ["00000.parquet"]
    assert query.is_stopped
