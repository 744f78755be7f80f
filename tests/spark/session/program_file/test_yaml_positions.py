from __future__ import annotations

import sys

import pytest

from thalweg.spark.session.program_file.positions import FieldPosition, TextStart
from thalweg.spark.session.program_file.yaml_positions import read_yaml

TEXT = """\
checkpoint: here
streams:
  TCP:
    select:
      - a
      - b
queries:
  web:
    text: |
      SELECT a
      FROM TCP
    to: {format: "json", path: out}
    folded: >
      one
      two
"""


def test_every_field_has_its_line() -> None:
    pytest.importorskip("yaml")
    values, positions = read_yaml(TEXT)
    assert values["queries"]["web"]["text"] == "SELECT a\nFROM TCP\n"
    assert positions["checkpoint",] == FieldPosition(1, TextStart(1, 12))
    assert positions["streams", "TCP", "select", 1] == FieldPosition(6)
    assert positions["queries", "web", "text"] == FieldPosition(9, TextStart(10, 6, 6))
    assert positions["queries", "web", "to", "format"] == FieldPosition(12, TextStart(12, 18))
    assert positions["queries", "web", "folded"] == FieldPosition(13)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: [", "at line 2"),
        ("a: 1\na: 2", "'a' is written twice in one table (at lines 1 and 2)"),
        ("a: !!python/object:os.system {}", "could not determine a constructor"),
    ],
)
def test_what_is_wrong(text: str, message: str) -> None:
    pytest.importorskip("yaml")
    with pytest.raises(ValueError, match="line") as caught:
        read_yaml(text)
    assert message in str(caught.value)


def test_a_table_that_contains_itself_is_no_endless_loop() -> None:
    pytest.importorskip("yaml")
    _, positions = read_yaml("a: &a\n  b: *a")
    assert positions["a", "b"] == FieldPosition(2)


def test_without_pyyaml_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ValueError, match=r"pip install 'thalweg\[yaml\]'"):
        read_yaml("a: 1")
