from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from thalweg.spark.session.program_file.program_text import ProgramFileError
from thalweg.spark.session.program_file.read import read_program_file
from thalweg.spark.session.program_file.session_of_file import selected, session_of_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def problems_of(spark: SparkSession, file: Path, written: str, instead: str) -> list[str]:
    text = file.read_text()
    assert written in text
    file.write_text(text.replace(written, instead))
    with pytest.raises(ProgramFileError) as caught:
        session_of_file(spark, read_program_file(file))
    return [problem.message.removeprefix(f"{file}") for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("written", "instead", "message"),
    [
        ("ts timestamp, ", "ts tmestamp, ", ":10: streams.TCP.schema: [UNSUPPORTED_DATATYPE]"),
        ('format = "parquet"', 'format = "nowhere"', ":7: streams.TCP: [DATA_SOURCE_NOT_FOUND]"),
        ('format = "parquet"', 'format = "nowhere:Source"', ":8: streams.TCP.format: there is no module 'nowhere'"),
        (
            'event_time = "ts"',
            'event_time = "src"',
            ":11: streams.TCP.event_time: stream 'TCP': the event time 'src' is",
        ),
        ('path = "tcp"', 'path = "tcp"\nselect = ["a AS b"]', ":10: streams.TCP.select: [UNRESOLVED_COLUMN"),
        ("checks_of_tests:is_odd", "is_odd", ":5: predicates.is_odd: 'is_odd' names no object: write it like"),
        ("checks_of_tests:is_odd", "nowhere:is_odd", ":5: predicates.is_odd: there is no module 'nowhere': install it"),
        ("checks_of_tests:is_odd", "checks_of_tests:is_od", ":5: predicates.is_odd: the module 'checks_of_tests' has"),
        ("checks_of_tests:is_odd", "checks_of_tests:no_predicate", ":5: predicates.is_odd: 3 is no predicate: write"),
        (
            '"json"',
            '"nowhere"',
            ":24: queries.odd.to: Spark has no data source for the format 'nowhere': write another",
        ),
        ("SELECT src", "SELECT scr", ":14:16: queries.to_host_2.text: there is no column 'scr'"),
        ("is_odd(src)", "is_odd(scr)", ":21:14: queries.odd.text: there is no column 'scr'"),
        (
            "SELECT src",
            "SELECT abs(ts)",
            ':14:16: queries.to_host_2.text: Cannot resolve "abs(ts)" due to data type mismatch',
        ),
    ],
)
def test_what_spark_finds_is_named_with_its_line(
    spark: SparkSession, program: Path, written: str, instead: str, message: str
) -> None:
    (problem,) = problems_of(spark, program, written, instead)
    assert problem.startswith(message)


def test_problems_of_all_queries_are_told_at_once(spark: SparkSession, program: Path) -> None:
    found = problems_of(spark, program, "FROM TCP", "FROM TPC")
    assert [problem.partition(": ")[0] for problem in found] == [":14:25", ":20:6"]


def test_a_wrong_window_is_told_beside_a_wrong_stream(spark: SparkSession, program: Path) -> None:
    program.write_text(program.read_text().replace('event_time = "ts"', 'event_time = "src"'))
    found = problems_of(spark, program, "WINDOW", "WINDOWS")
    assert found[0].startswith(":11: streams.TCP.event_time: ")
    assert [problem.split(": ")[1] for problem in found[1:]] == ["queries.to_host_2.text", "queries.odd.text"]


def test_spark_says_nothing_beside_the_problem(
    spark: SparkSession, program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    problems_of(spark, program, "SELECT src", "SELECT abs(ts)")
    assert capfd.readouterr().err == ""


def test_the_session_has_the_memory_cap_of_its_file(spark: SparkSession, program: Path) -> None:
    program.write_text(f'memory = "64MB"\n{program.read_text()}')
    assert session_of_file(spark, read_program_file(program)).memory == 64 << 20


def test_all_fields_of_a_functions_result_are_selected_beside_columns(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("""{"a": 1, "b": "x"}""", 7)], "value string, id long")
    fields = "from_json(value, 'a long, b string').*"
    assert selected(frame, [fields, "id + 1 AS next"]).collect() == [(1, "x", 8)]
    assert selected(frame, ["*", fields]).columns == ["value", "id", "a", "b"]
    assert selected(frame, ["named_struct('c', id) AS s"]).selectExpr("s.*").collect() == [(7,)]
