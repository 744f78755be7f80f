"""Files of `thalweg run`: whatever is in them, all problems are told by a `ProgramFileError`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fuzz.inputs import changed_bytes, changed_texts, refuses_clearly, try_inputs

from thalweg.spark.session.program_file.program_text import ProgramFileError
from thalweg.spark.session.program_file.read import read_program_file

TOML = """\
checkpoint = "checkpoint"
late = "late"
[spark]
master = "local[4]"
conf = { "spark.driver.memory" = "4g" }
[trigger]
processing_time = "10 seconds"
[predicates]
is_scan = "checks:is_scan"
[streams.TCP]
format = "kafka"
options = { "kafka.bootstrap.servers" = "broker:9092", subscribe = "tcp" }
select = ["from_json(CAST(value AS STRING), 'ts timestamp, src long').*"]
event_time = "ts"
delay = "10 seconds"
[tables.hosts]
format = "csv"
path = "hosts.csv"
[queries.large]
text = \"""SELECT src FROM TCP
WINDOW [10 seconds]\"""
to = { format = "parquet", path = "results/large" }
rate_weight = 0.4
partitions = 10
"""
YAML = """\
checkpoint: checkpoint
spark: {master: "local[2]", conf: {a: 1}}
streams:
  TCP: &tcp
    format: rate
    event_time: ts
  UDP: *tcp
queries:
  large:
    text: |
      SELECT src FROM TCP
      WINDOW [10 seconds]
    to: {format: parquet, path: results}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("program")


def test_toml(folder: Path) -> None:
    try_inputs(changed_texts([TOML]), lambda text: read(folder / "session.toml", text.encode("utf-8", "replace")))


def test_yaml(folder: Path) -> None:
    try_inputs(changed_texts([YAML]), lambda text: read(folder / "session.yaml", text.encode("utf-8", "replace")))


def test_bytes(folder: Path) -> None:
    try_inputs(changed_bytes(TOML.encode()), lambda data: read(folder / "session.toml", data))


def read(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    refuses_clearly(lambda: read_program_file(path), ProgramFileError)


@pytest.mark.timeout(60)
def test_aliases_of_aliases_are_not_written_out(folder: Path) -> None:
    """Each level names the one before it ten times: a file of some lines would be a text of some terabytes."""
    levels = [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 13)]
    path = folder / "laughs.yaml"
    path.write_text("\n".join(["a0: &a0 [lol]", *levels, "checkpoint: *a12", "streams: {T: *a12}", "queries: {Q: 1}"]))
    with pytest.raises(ProgramFileError) as caught:
        read_program_file(path)
    assert len(str(caught.value)) < 10_000
