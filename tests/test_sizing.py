from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from thalweg.cli import command_line
from thalweg.sizing import (
    Costs,
    Demand,
    first_to_break,
    least_cores,
    read_costs,
    shortest_interval,
    sizing,
    where_measured,
)

COSTS = Costs(
    batch=0.3,
    batch_part=0.01,
    task=0.002,
    tasks=2.0,
    row=1e-6,
    part=1e-6,
    kept=1e-8,
    sent_bytes=10.0,
    kept_bytes=80.0,
)
CHAIN = {"A": frozenset([0]), "B": frozenset([0, 1]), "C": frozenset([1])}
COMMON = dict.fromkeys("ABC", frozenset([0]))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    results = [{"scenario": "join", "measure": name, "value": value} for name, value in asdict(COSTS).items()]
    path = tmp_path / "load.json"
    path.write_text(json.dumps({"machine": {"cores": 2, "cpu": "a chip"}, "results": results}))
    return path


@given(st.integers(1, 120), st.sampled_from([None, CHAIN]), st.floats(0, 1e-3), st.floats(0, 100))
def test_micro_batches_at_the_rate_that_cores_allow_take_the_interval(
    cores: int, streams: dict[str, frozenset[int]] | None, own: float, window: float
) -> None:
    demand = Demand(1.0, 3, own=own, window=window, placed_by=streams)
    found = sizing(COSTS, demand, cores)
    highest = found.rates.get("cores") or found.rates["driver"]
    assert sizing(COSTS, replace(demand, rate=highest), cores).batch_seconds == pytest.approx(1.0)


def test_rows_of_a_chain_are_sent_more_often_to_more_cells_and_rows_of_a_common_key_are_not() -> None:
    sent = [Demand(1.0, 3, placed_by=streams).copies(64) for streams in (CHAIN, COMMON)]
    assert sent[0] > 2
    assert sent[1] == 1


def test_copies_are_shuffled_and_kept() -> None:
    chain, common = (
        sizing(COSTS, Demand(10.0, 3, window=60.0, row_bytes=50.0, placed_by=streams), 64)
        for streams in (CHAIN, COMMON)
    )
    assert common.shuffle_bytes == 10 * (50 + COSTS.sent_bytes)
    assert common.state_bytes == 10 * 60 * (50 + COSTS.kept_bytes)
    assert chain.shuffle_bytes == pytest.approx(chain.copies * common.shuffle_bytes)
    assert chain.state_bytes == pytest.approx(chain.copies * common.state_bytes)


def test_rows_in_windows_and_parts_take_time() -> None:
    short, long, many = (
        sizing(COSTS, Demand(1e5, parts, window=window, placed_by=COMMON), 4)
        for parts, window in ((3, 1.0), (3, 100.0), (6, 1.0))
    )
    assert long.batch_seconds - short.batch_seconds == pytest.approx(1e5 * 99 * COSTS.kept / 4)
    assert many.driver_seconds - short.driver_seconds == pytest.approx(3 * COSTS.batch_part)


@pytest.mark.parametrize(
    ("demand", "reason"),
    [
        (Demand(1e5, 8), "the driver: "),
        (Demand(1e5, 3, placed_by=COMMON, network=1e3), "the network: a core sends 0 MB a second, each row 1.0 times"),
        (Demand(1e5, 3, window=600.0, placed_by=COMMON, memory=1e6), "memory: windows fill the 0.001 GB of each core"),
    ],
)
def test_what_breaks_first(demand: Demand, reason: str) -> None:
    assert first_to_break(COSTS, demand)[1].startswith(reason)


def test_copies_and_tasks_together_break_first_where_planning_takes_no_time() -> None:
    planned = replace(COSTS, batch=0.0, batch_part=0.0)
    assert first_to_break(planned, Demand(1e3, 3, placed_by=CHAIN))[1].startswith("the shuffle: each row is sent ")
    assert first_to_break(replace(planned, task=0.0), Demand(1e3, 8))[1] == "nothing in this model"


def test_no_cores_keep_up_if_the_driver_takes_the_interval() -> None:
    assert least_cores(COSTS, Demand(1e3, 8, interval=0.2)) is None
    assert sizing(COSTS, Demand(1e3, 8, interval=0.2), 4).highest_rate == 0
    assert sizing(COSTS, Demand(1e3, 8, interval=0.2), 4).limit == "driver"


def test_the_driver_takes_half_of_the_shortest_interval() -> None:
    demand = Demand(1e3, 8)
    interval = shortest_interval(COSTS, demand, 1_000)
    assert sizing(COSTS, demand, 1_000).driver_seconds == pytest.approx(interval / 2)


def test_costs_are_read(file: Path) -> None:
    assert read_costs(file, "join") == COSTS
    assert where_measured(file) == "2 cores (a chip)"


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(command_line([]), ["size", *words], env={"COLUMNS": "200"})
    return result.exit_code, result.output


def test_the_command_says_what_breaks_first(file: Path) -> None:
    code, output = run("--costs", str(file), "--rate", "50000", "--on", "A.k = B.k AND B.l = C.l", "--cores", "8")
    assert code == 0
    assert "What breaks first: the driver" in output
    assert "MB a second are shuffled" in output
    assert "measured on 2 cores (a chip)" in output


def test_a_condition_may_have_more_than_equalities(file: Path) -> None:
    words = "--costs", str(file), "--rate", "50000", "--on", "A.k = B.k AND b.l = C.l AND A.x < B.x AND C.v > 5"
    assert run(*words) == run(*words[:-1], "A.k = B.k AND B.l = C.l")


def test_a_rate_that_no_cores_keep_up_with(file: Path) -> None:
    code, output = run("--costs", str(file), "--rate", "1e12", "--on", "A.k = B.k")
    assert code == 0
    assert "No number of cores keeps up" in output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--on", "A.k = B.k", "--queries", "3"], "give one of --predicates, --on and --queries"),
        (["--queries", "3"], "has no costs of session: run `thalweg bench load session --json FILE`"),
        (["--on", "A.k"], "A.k"),
    ],
)
def test_wrong_options(file: Path, words: list[str], message: str) -> None:
    code, output = run("--costs", str(file), "--rate", "5", *words)
    assert code == 1
    assert message in output


@pytest.mark.parametrize(
    ("content", "message"), [(None, "cannot be read"), ("[]", "is no file of"), ("{", "is no file of")]
)
def test_a_file_that_has_no_costs(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "load.json"
    if content is not None:
        path.write_text(content)
    code, output = run("--costs", str(path), "--rate", "5", "--queries", "3")
    assert code == 1
    assert message in output
