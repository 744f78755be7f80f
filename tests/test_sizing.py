from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from thalweg.cli import command_line
from thalweg.sizing import BATCH, PART, ROW, TASK, Costs, Demand, read_costs, sizing

COSTS = Costs(batch=0.3, task=0.002, row=1e-6, part=1e-6)
CHAIN = {"A": frozenset([0]), "B": frozenset([0, 1]), "C": frozenset([1])}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    values = {BATCH: COSTS.batch, TASK: COSTS.task, ROW: COSTS.row, PART: COSTS.part}
    results = [{"scenario": "join", "measure": measure, "value": value} for measure, value in values.items()]
    path = tmp_path / "load.json"
    path.write_text(json.dumps({"results": results}))
    return path


@given(st.integers(1, 300), st.sampled_from([None, CHAIN]), st.floats(0, 1e-3))
def test_micro_batches_at_the_highest_rate_take_the_interval(
    cores: int, streams: dict[str, frozenset[int]] | None, own: float
) -> None:
    highest = sizing(COSTS, Demand(1.0, 3, own=own, placed_by=streams), cores).highest_rate
    assert sizing(COSTS, Demand(highest, 3, own=own, placed_by=streams), cores).batch_seconds == pytest.approx(1.0)


def test_rows_of_a_chain_are_sent_more_often_to_more_cells_and_rows_of_a_common_key_are_not() -> None:
    common = dict.fromkeys("ABC", frozenset([0]))
    sent = [Demand(1.0, 3, placed_by=streams).copies(64) for streams in (CHAIN, common)]
    assert sent[0] > 2
    assert sent[1] == 1


def test_state_is_what_windows_hold() -> None:
    assert sizing(COSTS, Demand(10.0, 1, window=60.0, row_bytes=50.0), 2).state_bytes == 10 * 60 * 50


def test_costs_are_read(file: Path) -> None:
    assert read_costs(file, "join") == COSTS


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(command_line([]), ["size", *words])
    return result.exit_code, result.output


def test_the_command_says_what_breaks_first(file: Path) -> None:
    code, output = run(str(file), "--rate", "50000", "--on", "A.k = B.k AND B.l = C.l", "--cores", "8")
    assert code == 0
    assert "What breaks first: the driver" in output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--on", "A.k = B.k", "--queries", "3"], "give one of --predicates, --on and --queries"),
        (["--queries", "3"], "has no costs of session: run `thalweg bench load"),
        (["--on", "A.k"], "A.k"),
    ],
)
def test_wrong_options(file: Path, words: list[str], message: str) -> None:
    code, output = run(str(file), "--rate", "5", *words)
    assert code == 1
    assert message in output


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    code, output = run(str(tmp_path / "load.json"), "--rate", "5", "--queries", "3")
    assert code == 1
    assert "cannot be read" in output
