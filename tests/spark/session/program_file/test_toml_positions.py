from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.spark.session.program_file.positions import FieldPath, FieldPosition, TextStart
from thalweg.spark.session.program_file.toml_positions import toml_positions

STRINGS = (
    '"plain"',
    "'literal \\ ] }'",
    '"escaped \\" # ] \\\\"',
    '"""\nSELECT a, \'b\'\n[w] # } = "c"\n"""',
    "'''\nfirst\n\"\"\" = [second]\n'''",
    '"""quotes at the end"""""',
    '""',
    "''''''",
)
SCALARS = ("1", "-2.5e3", "true", "1979-05-27T07:32:00Z", *STRINGS)
KEYS = st.sampled_from(("a", "b-c", "1", '"quoted . key"', "'literal # key'", 'x."y = z"', " d . e "))


def values() -> st.SearchStrategy[str]:
    def lists(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        separators = st.sampled_from((", ", ",\n", " , # a ] comment\n"))
        return st.builds(lambda found, comma: f"[\n{comma.join(found)}]", st.lists(inner, max_size=3), separators)

    def tables(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        pairs = st.lists(inner, max_size=3).map(enumerate)
        return pairs.map(lambda found: "{ " + ", ".join(f"k{number} = {value}" for number, value in found) + " }")

    return st.recursive(st.sampled_from(SCALARS), lambda inner: lists(inner) | tables(inner), max_leaves=6)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """TOML with tables, lists of tables and values of all kinds."""
    lines = []
    for table in range(draw(st.integers(0, 3))):
        header = draw(st.sampled_from((f"[t{table}]", f'[ "t{table}" . inner ]  # comment', "[[several]]")))
        names = draw(st.lists(KEYS, unique=True, max_size=3))
        lines += [header, *(f"{name} = {draw(values())}  # comment = 1" for name in names), ""]
    return "\n".join(lines)


def fields_of(value: Any, field: FieldPath = ()) -> dict[FieldPath, Any]:  # noqa: ANN401 - any value of TOML
    found: dict[FieldPath, Any] = {field: value} if field else {}
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in inner:
        found |= fields_of(each, (*field, name))
    return found


@given(documents())
def test_every_field_is_found_where_its_text_stands(text: str) -> None:
    positions = toml_positions(text)
    lines = text.split("\n")
    for field, value in fields_of(tomllib.loads(text)).items():
        start = positions[field].text
        if isinstance(value, str) and start is not None:
            written = [lines[start.line - 1][start.first_indent :], *lines[start.line :]]
            assert "\n".join(written).startswith(value)


@pytest.mark.parametrize(
    ("text", "field", "position"),
    [
        ("a = 1\nb = 2", ("b",), FieldPosition(2)),
        ('# a = 0\n\na = "x"', ("a",), FieldPosition(3, TextStart(3, 5))),
        ('[s."T C"]\nq.to = { f = "x" }', ("s", "T C", "q", "to", "f"), FieldPosition(2, TextStart(2, 14))),
        ('a = """\nSELECT\n"""', ("a",), FieldPosition(1, TextStart(2, 0))),
        ('a = """SELECT\n"""', ("a",), FieldPosition(1, TextStart(1, 7))),
        ('a = "\\u0041"', ("a",), FieldPosition(1)),
        ("a = [\n  1,\n  [2],\n]\nb = 0", ("a", 1, 0), FieldPosition(3)),
        ("a = [\n  1,\n  [2],\n]\nb = 0", ("b",), FieldPosition(5)),
        ("[[a]]\nb = 1\n[[a]]\nb = 2", ("a", 1), FieldPosition(3)),
        ("[[a]]\nb = 1\n[[a]]\nb = 2", ("a", 1, "b"), FieldPosition(4)),
    ],
)
def test_positions_by_hand(text: str, field: FieldPath, position: FieldPosition) -> None:
    assert toml_positions(text)[field] == position
