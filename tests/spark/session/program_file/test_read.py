from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from thalweg.spark.session.program_file.program_text import ProgramFileError
from thalweg.spark.session.program_file.read import read_program_file

GOOD = """\
checkpoint = "checkpoint"

[streams.TCP]
format = "parquet"
path = "tcp"
schema = "ts timestamp, src long, dest long"
event_time = "ts"

[queries.web]
text = "SELECT src FROM TCP WHERE dest = 2 WINDOW [1]"
to = "memory"
"""


def problems_of(folder: Path, text: str, name: str = "session.toml") -> list[str]:
    (folder / "tcp").mkdir(exist_ok=True)
    (folder / "file").touch()
    (folder / name).write_text(text)
    with pytest.raises(ProgramFileError) as caught:
        read_program_file(folder / name)
    return [problem.message.replace(f"{folder}/", "") for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("written", "instead", "message"),
    [
        ('checkpoint = "checkpoint"', "", "session.toml: checkpoint is missing: write checkpoint ="),
        ('event_time = "ts"', "", 'session.toml:3: streams.TCP: event_time is missing: write event_time = "ts"'),
        ('format = "parquet"', "", ":3: streams.TCP: format is missing"),
        ('path = "tcp"', "", ':3: streams.TCP: path is missing: write path = "data/tcp"'),
        ('path = "tcp"', 'path = "udp"', ":5: streams.TCP.path: there is no udp: write the path of files"),
        ('schema = "ts', 'shema = "ts', ":6: streams.TCP.shema: there is no such field; did you mean 'schema'?"),
        ('schema = "ts timestamp, src long, dest long"', "", ":3: streams.TCP: schema is missing"),
        ('path = "tcp"', 'path = "tcp"\ndelay = "soon"', ":6: streams.TCP.delay: the delay is 'soon'; write it like"),
        ('path = "tcp"', 'path = "tcp"\nselect = []', ":6: streams.TCP.select: [] is not a list of texts"),
        ('path = "tcp"', 'path = "tcp"\noptions.a = [1]', ":6: streams.TCP.options: {'a': [1]} is not a table of"),
        ("[streams.TCP]", '[streams."T C"]', ":3: streams.T C: a name has letters, digits and _ only"),
        ("[queries.web]", "[querys.web]", ":9: querys: there is no such field; did you mean 'queries'?"),
        ('to = "memory"', "", ':9: queries.web: to is missing: write to = {format = "parquet", path ='),
        ('to = "memory"', 'to = "memry"', ":11: queries.web.to: there is no 'memry'; did you mean 'memory'?"),
        ('to = "memory"', "to = 3", ":11: queries.web.to: 3 is not a text or a table"),
        ('to = "memory"', 'to = { format = "json" }', ":11: queries.web.to: path is missing"),
        ('to = "memory"', 'to.path = "out"', ":11: queries.web.to: format is missing"),
        ('to = "memory"', 'to = { format = "json", path = "file" }', ":11: queries.web.to.path: file is a file"),
        (
            'checkpoint = "checkpoint"',
            'checkpoint = "checkpoint"\nmemory = "much"',
            """:2: memory: memory is a number of bytes such as "512MB" or 1000000, not 'much'""",
        ),
        ('checkpoint = "checkpoint"', 'checkpoint = "file/c"', ":1: checkpoint: file is a file: write the path of a"),
        (
            'to = "memory"',
            'to = "memory"\nrate_weight = "much"',
            ":12: queries.web.rate_weight: 'much' is not a number",
        ),
        (
            'to = "memory"',
            'to = "memory"\nrate_weight = -1',
            ":12: queries.web.rate_weight: the rate weight is a number",
        ),
        ('to = "memory"', 'to = "memory"\npartitions = 0', ":12: queries.web.partitions: partitions is a whole number"),
        ('to = "memory"', 'to = "memory"\nscheduler = "chart"', ":12: queries.web.scheduler: there is no scheduler"),
        ("[queries.web]", "[trigger]\nonce = true\n[queries.web]", ":10: trigger.once: there is no such field."),
        (
            "[queries.web]",
            "[trigger]\navailable_now = false\n[queries.web]",
            ":10: trigger.available_now: False is not",
        ),
        ("[queries.web]", '[trigger]\nprocessing_time = "x"\n[queries.web]', ":10: trigger.processing_time: the time"),
        (
            "[queries.web]",
            '[trigger]\nprocessing_time = "1 s"\navailable_now = true\n[queries.web]',
            ":9: trigger: write either processing_time or available_now",
        ),
        ("[queries.web]", '[spark]\nmaster = "sc://h"\n[queries.web]', ":10: spark.master: a session does not run on"),
        ("[queries.web]", "[predicates]\np = 3\n[queries.web]", ":9: predicates: {'p': 3} is not a table of texts"),
        (
            "[queries.web]",
            "[tables]\nhosts = 3\n[queries.web]",
            ":10: tables.hosts: 3 is not a table: write its fields",
        ),
        (
            "[queries.web]",
            '[tables.tcp]\nformat = "csv"\npath = "tcp"\n[queries.web]',
            ":9: tables.tcp: streams.TCP has this name already",
        ),
        ("[queries.web]", "[queries.web", "session.toml:9: Expected ']'"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(tmp_path: Path, written: str, instead: str, message: str) -> None:
    assert written in GOOD
    assert any(message in problem for problem in problems_of(tmp_path, GOOD.replace(written, instead)))


def test_all_problems_are_told_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = GOOD.replace('to = "memory"', "to = 3").replace('path = "tcp"', 'path = "udp"')
    assert [problem.split(":")[1] for problem in problems_of(tmp_path, text)] == ["5", "11"]


@pytest.mark.parametrize(
    ("written", "instead", "place"),
    [
        ('event_time = "ts"', 'event = "ts"', "7"),
        ('to = "memory"', "", "9"),  # in the section of the query itself
        ('to = "memory"', 'to = "memory"\npartitions = "many"', "12"),
    ],
)
def test_a_wrong_window_is_told_beside_wrong_fields(tmp_path: Path, written: str, instead: str, place: str) -> None:
    found = problems_of(tmp_path, GOOD.replace("[1]", "[1 parsec]").replace(written, instead))
    assert any(problem.startswith(f"session.toml:{place}: ") for problem in found)
    assert any(problem.startswith("session.toml:10:52: queries.web.text: this is no duration") for problem in found)


def test_no_stream_and_no_query(tmp_path: Path) -> None:
    found = problems_of(tmp_path, 'checkpoint = "c"\n[streams]\n[queries]\n')
    assert ["at least one" in problem for problem in found] == [True, True]


def test_examples_are_written_as_the_file_is(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    web = "  web:\n    text: SELECT value FROM TCP WINDOW [1]\n    to: memory\n"
    text = f"checkpoint: c\nstreams:\n  TCP:\n    format: rate\nqueries:\n{web}"
    assert problems_of(tmp_path, text, "session.yaml") == [
        'session.yaml:3: streams.TCP: event_time is missing: write event_time: "ts"'
    ]


@pytest.mark.parametrize(
    ("name", "message"), [("session.json", "ends in .toml or .yaml or .yml"), ("none.toml", "the file cannot be read")]
)
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "session.json").touch()
    with pytest.raises(ProgramFileError, match=message):
        read_program_file(tmp_path / name)


def test_paths_start_at_the_folder_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "tcp").mkdir()
    (tmp_path / "session.toml").write_text(GOOD)
    program = read_program_file(tmp_path / "session.toml")
    assert program.checkpoint == str(tmp_path / "checkpoint")
    assert program.streams["TCP"].path == str(tmp_path / "tcp")
    assert program.trigger == {}


def test_yaml_says_the_same_as_toml(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    (tmp_path / "tcp").mkdir()
    (tmp_path / "session.toml").write_text(GOOD)
    (tmp_path / "session.yml").write_text(yaml.safe_dump(tomllib.loads(GOOD)))
    toml, yml = (read_program_file(tmp_path / name) for name in ("session.toml", "session.yml"))
    assert replace(yml, text=toml.text).__dict__ == toml.__dict__


def test_queries_do_not_write_to_one_folder(tmp_path: Path) -> None:
    web, to = GOOD.index("[queries.web]"), 'to = { format = "json", path = "./out" }'
    text = (GOOD + GOOD[web:].replace("web", "again")).replace('to = "memory"', to)
    (problem,) = problems_of(tmp_path, text)
    assert problem.endswith(
        ":14: queries.again.to.path: queries.web writes to this folder already: write another folder"
    )
