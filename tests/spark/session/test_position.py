from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.sealed import SavedStateError, seal, unseal
from thalweg.spark.folder import StateFolder
from thalweg.spark.session.panes import Pane
from thalweg.spark.session.position import (
    KEPT,
    KIND,
    VERSION,
    QueryPosition,
    SessionPosition,
    WaitingFile,
    load_position,
    save_position,
)
from thalweg.spark.session.worker.shared_predicates import PredicateCounts

COUNTS = st.integers(0, 2**62)
TIMES = st.integers(-(2**62), 2**62)
NUMBERS = st.floats(0, 1e12)
NAMES = st.text(min_size=1, max_size=5)

query_positions = st.builds(
    QueryPosition,
    digest=NAMES,
    delivered=st.none() | TIMES,
    rows=COUNTS,
    rounds=COUNTS,
    late=COUNTS,
    failed=st.none() | st.text(),
    is_paused=st.booleans(),
    schedule=st.none() | st.dictionaries(NAMES, st.none() | st.integers() | NAMES, max_size=2),
    waits=st.none() | st.text(),
    since=COUNTS,
)
panes = st.builds(Pane, width=st.integers(1, 2**40), rows=COUNTS, kept=st.dictionaries(NAMES, COUNTS, max_size=2))
positions = st.builds(
    SessionPosition,
    batch=st.integers(-1, 10**9),
    latest=st.dictionaries(NAMES, TIMES, max_size=2),
    queries=st.dictionaries(NAMES, query_positions, max_size=2),
    files=st.lists(
        st.builds(WaitingFile, NAMES, COUNTS.map("segments/{}/0a.parquet".format), COUNTS, TIMES, COUNTS, COUNTS),
        max_size=2,
    ).map(tuple),
    panes=st.dictionaries(NAMES, st.dictionaries(TIMES, panes, max_size=2), max_size=2),
    groups=st.dictionaries(NAMES, NUMBERS, max_size=2),
    predicates=st.dictionaries(NAMES, st.builds(PredicateCounts, NUMBERS, NUMBERS, NUMBERS), max_size=2),
    rows=COUNTS,
    without_time=COUNTS,
)

POSITION = SessionPosition(
    batch=3,
    latest={"A": 5},
    queries={"q-1": QueryPosition("q", delivered=2)},
    files=(WaitingFile("A", "segments/3/0a.parquet", rows=2, latest=5, size=40),),
    panes={"A": {10: Pane(10, 7)}},
    groups={"q-1": 2.5},
    predicates={"is:odd": PredicateCounts(8, 3, 0.25)},
)


@given(position=positions)
@settings(max_examples=30)
def test_a_position_comes_back_as_it_was(position: SessionPosition) -> None:
    assert SessionPosition.from_bytes(position.to_bytes()) == position


def test_a_position_of_an_early_version_is_read() -> None:
    """It has neither groups nor counts of predicates, nor of rows."""
    (text,) = unseal(KIND, VERSION, POSITION.to_bytes())
    values = json.loads(text)
    del values["groups"], values["predicates"], values["rows"], values["without_time"]
    del values["queries"]["q-1"]["waits"], values["queries"]["q-1"]["since"]
    early = SessionPosition.from_bytes(seal(KIND, VERSION, json.dumps(values).encode()))
    assert early == replace(POSITION, groups={}, predicates={})


@given(place=st.integers(0, len(POSITION.to_bytes()) - 1), flipped=st.integers(1, 255))
def test_a_damaged_position_is_refused(place: int, flipped: int) -> None:
    data = bytearray(POSITION.to_bytes())
    data[place] ^= flipped
    with pytest.raises(SavedStateError):
        SessionPosition.from_bytes(bytes(data))


@given(length=st.integers(0, len(POSITION.to_bytes()) - 1))
def test_a_position_that_is_cut_short_is_refused(length: int) -> None:
    with pytest.raises(SavedStateError):
        SessionPosition.from_bytes(POSITION.to_bytes()[:length])


ODD_FIELDS: list[dict[str, Any]] = [
    {"batch": None},
    {"batch": "three"},
    {"latest": None},
    {"latest": {"A": "five"}},
    {"queries": []},
    {"queries": {"q-1": {"digest": "q", "height": 3}}},
    {"queries": {"q-1": {"digest": "q", "delivered": "two"}}},
    {"queries": {"q-1": {"digest": "q", "rows": None}}},
    {"queries": {"q-1": {"digest": "q", "schedule": 7}}},
    {"files": [{"path": "segments/3/0a.parquet"}]},
    {"files": [{"stream": "A", "path": "../../elsewhere", "rows": 1, "latest": 1, "size": 8, "level": 0}]},
    {"files": [{"stream": "A", "path": 3, "rows": 1, "latest": 1, "size": 8, "level": 0}]},
    {"files": [{"stream": 3, "path": "segments/3/0a.parquet", "rows": 1, "latest": 1, "size": 8, "level": 0}]},
    {"panes": {"A": {"ten": {"width": 10, "rows": 7, "kept": {}}}}},
    {"panes": {"A": {"10": {"width": 0, "rows": 7, "kept": {}}}}},
    {"panes": {"A": {"10": {"width": 10, "rows": "7", "kept": {}}}}},
    {"panes": {"A": {"10": [10, 7]}}},
    {"groups": {"q-1": "two"}},
    {"groups": {"q-1": -1}},
    {"groups": [2]},
    {"predicates": {"is:odd": [8, 3, 0.25]}},
    {"predicates": {"is:odd": {"rows": 8, "true": None, "seconds": 0.25}}},
    {"queries": {"q-1": {"digest": "q", "waits": 7}}},
]


@pytest.mark.parametrize("fields", ODD_FIELDS, ids=str)
def test_odd_fields_are_refused(fields: dict[str, Any]) -> None:
    (text,) = unseal(KIND, VERSION, POSITION.to_bytes())
    with pytest.raises(SavedStateError, match="session position"):
        SessionPosition.from_bytes(seal(KIND, VERSION, json.dumps(json.loads(text) | fields).encode()))


@pytest.mark.parametrize("values", [[], None, {}])
def test_what_is_no_position_is_refused(values: Any) -> None:  # noqa: ANN401 - whatever JSON holds
    with pytest.raises(SavedStateError, match="session position"):
        SessionPosition.from_bytes(seal(KIND, VERSION, json.dumps(values).encode()))


def test_the_last_position_is_loaded_and_old_ones_are_removed(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    assert load_position(folder) == SessionPosition()
    for batch in range(8, 12):
        save_position(folder, SessionPosition(batch))
    assert load_position(folder) == SessionPosition(11)
    assert len(list(tmp_path.iterdir())) == KEPT
