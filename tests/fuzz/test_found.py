"""Inputs that fuzzing has found: each once ended with an error that nobody had written, and is refused clearly now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.fuzz.inputs import refuses_clearly
from tests.fuzz.test_query_text import SOURCES
from tests.fuzz.test_saved_state import QUERY, SEGMENT

import thalweg as tw
from thalweg.drift import BCS, GLR
from thalweg.mjoin.segments import unpack_segment
from thalweg.ordering import AGreedy
from thalweg.sealed import SavedStateError, refusing_odd_values, seal, unseal
from thalweg.spark.joins.condition import parse_on
from thalweg.spark.joins.text import parse_select, parse_window
from thalweg.spark.session.program_file.program_text import ProgramFileError
from thalweg.spark.session.program_file.read import read_program_file
from thalweg.sql.parse import parse_query

DEEP = "(" * 3000
HUGE = 10**400


async def wait(a: object) -> object:
    return a


@pytest.mark.parametrize(
    "call",
    [
        lambda: parse_on(f"{DEEP}A.k = B.k", {"A": ["k"], "B": ["k"]}),
        lambda: parse_select([DEEP], {"A": ["k"]}),
        lambda: parse_window(f"{'9' * 5000} rows", "A"),
        lambda: parse_query("ELSE src WINDOW [2 hours]", SOURCES, []),
        lambda: parse_query("SELECT src FROM TCP WINDOW [2E hours]", SOURCES, []),
        lambda: parse_query("SELECT src FROM TCP WINDOW [1E999999999 hours]", SOURCES, []),
        lambda: AGreedy(2, order=[1.0, 0]),  # type: ignore[list-item]
        lambda: BCS(h=HUGE),
        lambda: GLR(quiet=HUGE),
        lambda: tw.expr("a > 1", cost=HUGE),
        lambda: tw.predicate(on="a", takes="async", timeout=HUGE)(wait),
    ],
)
def test_texts_and_options(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the next line looks at it
        call()
    refuses_clearly(call, ValueError)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.toml", f"a = {'[' * 3000}"),
        ("a.yaml", "10: {a: 1}\nstreams: {}\nqueries: {}"),
        ("a.toml", f'checkpoint = "{"9" * 3000}"'),
    ],
)
def test_program_files(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ProgramFileError):
        read_program_file(tmp_path / name)


def test_errors_of_arrow_in_saved_state() -> None:
    with pytest.raises(SavedStateError, match="Integers with more than 64 bits"), refusing_odd_values("segment"):
        raise NotImplementedError("Integers with more than 64 bits not implemented")


@pytest.mark.parametrize("window", [b"\x07I00 microseconds", b"9" * 5000 + b" microseconds"])
def test_the_window_of_a_segment(window: bytes) -> None:
    name, digest, _, rows = unseal(*SEGMENT.header, SEGMENT.good)
    with pytest.raises(SavedStateError, match="the window of A was"):
        unpack_segment(QUERY, seal(*SEGMENT.header, name, digest, window, rows))
