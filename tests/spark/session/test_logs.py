from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.charts import RoundRecord, RoundStatistics
from thalweg.spark.session import logs
from thalweg.spark.session.logs import (
    LOGGED_BATCHES,
    SAVED_ROUNDS,
    BatchRecord,
    EndedRounds,
    RoundService,
    ServedRounds,
    SessionLog,
    divided,
    rows_kept,
)

SECOND = 1_000_000


def round_record(number: int, rows: int = 10, selectivity: float = 0.5) -> RoundRecord:
    observed = RoundStatistics({"A": float(rows)}, {"A": selectivity}, {"`A`.`k` = `B`.`k`": 0.1}, {"T": 5.0}, 2.0)
    expected = None if number == 1 else observed
    return RoundRecord(number, "plan", expected, observed, is_move=False, is_switch=True, is_hit=False)


def service(batch: int, number: int = 2) -> RoundService:
    return RoundService(batch, SECOND * batch, round_record(number), 10, 5, 0.25, 0.5)


def batch(number: int) -> BatchRecord:
    return BatchRecord(
        number, 7, {"take in": 0.5, "compute": 1.0}, {"q": ServedRounds(1, 5, 0.25)}, 1, 20, 10, 0.5, (("q",),)
    )


def test_a_log_goes_on_when_a_session_is_started_again(tmp_path: Path) -> None:
    log = SessionLog(str(tmp_path / "log"), -1)
    for number in range(3):
        log.add(batch(number), {"q": [service(number, 1), service(number)]})
    again = SessionLog(str(tmp_path / "log"), 1)  # the third micro-batch does not count
    assert list(again.batches) == [batch(0), batch(1)]
    assert list(again.rounds["q"]) == [service(number, place) for number in (0, 1) for place in (1, 2)]
    again.add(batch(2), {})
    assert [record.number for record in SessionLog(str(tmp_path / "log"), 2).batches][-1] == 2
    again.forget("q")
    assert not again.rounds


@pytest.mark.parametrize("damage", [b"no line", b"[]", b"{}", b'{"batch": {"number": 1}, "rounds": {}}', b"\xff\xfe"])
def test_lines_that_cannot_be_read_are_left_out(tmp_path: Path, damage: bytes) -> None:
    log = SessionLog(str(tmp_path), -1)
    log.add(batch(0), {})
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes() + damage)  # cut short: without its end of line
    again = SessionLog(str(tmp_path), 5)
    again.add(batch(1), {})
    assert [record.number for record in SessionLog(str(tmp_path), 5).batches] == [0, 1]


def test_a_log_stays_small(tmp_path: Path) -> None:
    log = SessionLog(str(tmp_path), -1)
    for number in range(2 * LOGGED_BATCHES + 1):
        log.add(batch(number), {})
    assert len(list(tmp_path.iterdir())) == 2
    log.add(batch(number + 1), {"q": [service(number + 1) for _ in range(SAVED_ROUNDS + 50)]})
    again = SessionLog(str(tmp_path), 10**9)
    assert len(again.batches) == LOGGED_BATCHES
    assert len(log.rounds["q"]) == SAVED_ROUNDS + 50
    assert len(again.rounds["q"]) == SAVED_ROUNDS


def test_a_file_that_is_large_is_the_last_but_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "FULL", 2_000)
    log = SessionLog(str(tmp_path), -1)
    for number in range(50):
        log.add(batch(number), {"q": [service(number)]})
    assert len(list(tmp_path.iterdir())) == 2
    assert all(file.stat().st_size < 3_000 for file in tmp_path.iterdir())
    again = SessionLog(str(tmp_path), 50)
    assert [record.number for record in again.batches] == list(range(50 - len(again.batches), 50))
    assert len(again.batches) > 2


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    log = SessionLog(str(tmp_path / "log"), -1)
    log.add(batch(0), {})
    (file,) = (tmp_path / "log").iterdir()
    file.unlink()
    file.mkdir()
    log.add(batch(1), {})
    assert len(log.batches) == 2


@given(
    st.dictionaries(st.sampled_from("abc"), st.lists(st.integers(0, 1000), min_size=1, max_size=4), min_size=1),
    st.floats(0, 100),
)
def test_the_seconds_of_rounds_add_up_to_those_of_their_micro_batch(rows: dict[str, list[int]], shared: float) -> None:
    ended = {
        token: EndedRounds(range(len(own)), [round_record(2, each) for each in own], own, seconds=3.0)
        for token, own in rows.items()
    }
    found = divided(7, ended, dict.fromkeys(rows, SECOND), shared)
    assert {token: [each.rows_read for each in own] for token, own in found.items()} == rows
    for token, own in rows.items():
        assert sum(each.seconds for each in found[token]) == pytest.approx(3.0 if any(own) else 0.0)
    every = [each for own in found.values() for each in own]
    assert sum(each.shared_seconds for each in every) == pytest.approx(shared if any(map(any, rows.values())) else 0.0)


def test_rows_that_conditions_keep_are_counted() -> None:
    assert rows_kept(round_record(1, 7, 3 / 7), SECOND) == 3
