from __future__ import annotations

import importlib.util
import io
import shutil
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from rich.console import Console

from thalweg.spark.session.program_file.command import run_file

EXAMPLE = Path(__file__).parents[2] / "examples" / "traffic"
STREAMS = ("TCP", "UDP", "SF")
SECOND = 1_000_000  # microseconds
DELAY = SECOND  # of all streams


@dataclass(frozen=True)
class Answer:
    """How DuckDB answers a query: the streams that it reads hold the rows of each round, with the round's end."""

    sql: str
    length: int  # of a round, in seconds
    slide: int | None = None  # seconds
    streams: tuple[str, ...] = ("TCP",)

    @property
    def text(self) -> str:
        """The whole query, over views of all rows; of rounds, only those that have ended."""
        length, slide = self.length * SECOND, (self.slide or self.length) * SECOND
        latest = ", ".join(f"(SELECT max(epoch_us(ts)) FROM all_{name})" for name in self.streams)  # noqa: S608 - no input
        rounds = [
            f"""{name} AS (
                SELECT number * {slide} AS round_end, rows.*
                FROM all_{name} AS rows, range(
                    (epoch_us(ts) + {slide} - 1) // {slide}, (epoch_us(ts) + {length} + {slide} - 1) // {slide}
                ) AS numbers(number)
                WHERE round_end < least({latest}) - {DELAY}
            )"""  # noqa: S608 - no input
            for name in self.streams
        ]
        return f"WITH {', '.join(rounds)} {self.sql}"


ANSWERS = {
    "to_host_2": Answer("SELECT round_end, src_host, dest_host FROM TCP WHERE dest_host = 2", 1),
    "large_packets": Answer("SELECT round_end, ts, src_host, dest_host, bytes FROM TCP WHERE bytes > 1000", 5),
    "large_uploads": Answer(
        "SELECT round_end, ts, src_host, dest_host FROM TCP WHERE bytes > 1000 AND dest_port = 22", 5
    ),
    "web_traffic": Answer(
        "SELECT round_end, dest_host, count(*), sum(bytes) FROM TCP WHERE dest_port IN (80, 443) GROUP BY ALL", 10
    ),
    "busy_hosts": Answer(
        "SELECT round_end, src_host, sum(bytes) FROM TCP GROUP BY ALL HAVING sum(bytes) > 100000", 20, slide=5
    ),
    "name_lookups": Answer(
        "SELECT round_end, src_host, count(*) FROM UDP WHERE dest_port = 53 GROUP BY ALL", 10, streams=("UDP",)
    ),
    "port_scans": Answer(
        """
        SELECT round_end, src_host, count(DISTINCT dest_port) AS ports
        FROM SF WHERE flag = 'SYN' AND dest_port NOT IN (22, 25, 53, 80, 443) GROUP BY ALL HAVING ports > 20
        """,
        10,
        slide=5,
        streams=("SF",),
    ),
    "hosts_in_all": Answer(
        """
        SELECT round_end, t.src_host, t.bytes, u.bytes, s.flag
        FROM TCP AS t JOIN UDP AS u USING (round_end) JOIN SF AS s USING (round_end)
        WHERE t.src_host = u.dest_host AND u.dest_host = s.dest_host
        AND t.bytes > 1000 AND u.bytes > 1000 AND s.dest_port = 22
        """,
        1,
        streams=STREAMS,
    ),
    "opened": Answer(
        """
        SELECT round_end, src_host, dest_host, dest_port, t.bytes
        FROM TCP AS t JOIN SF AS s USING (round_end, src_host, dest_host, dest_port) WHERE s.flag = 'SYN'
        """,
        2,
        streams=("TCP", "SF"),
    ),
    "owners": Answer(
        """
        SELECT round_end, owner, count(*), sum(t.bytes)
        FROM TCP AS t JOIN UDP AS u USING (round_end, src_host) JOIN hosts ON src_host = host
        WHERE u.dest_port = 53 AND t.dest_port = 443 GROUP BY ALL
        """,
        2,
        streams=("TCP", "UDP"),
    ),
}
FEW_RESULTS = 10  # that every query has but `port_scans`, so that the comparison means something
IN_MEMORY, IN_FILES = 'to = "memory"', 'to = { format = "parquet", path = "data/results/port_scans" }'


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The example with its first forty seconds of traffic, in a folder of its own."""
    for name in ("session.toml", "traffic_checks.py"):
        shutil.copy(EXAMPLE / name, tmp_path)
    generator = loaded(EXAMPLE / "generate.py")
    generator.SECONDS = 40  # type: ignore[attr-defined]
    generator.BURSTS["SF"] = range(20, 30)  # in which a host tries one port after the other
    generator.main(tmp_path / "data")
    folders = list(sys.path)
    yield tmp_path
    sys.path[:] = folders
    sys.modules.pop("traffic_checks", None)


def loaded(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.thorough
@pytest.mark.usefixtures("spark")
def test_all_queries_as_duckdb_answers_them(folder: Path) -> None:
    program = folder / "session.toml"
    assert set(tomllib.loads(program.read_text())["queries"]) == ANSWERS.keys()
    program.write_text(program.read_text().replace(IN_MEMORY, IN_FILES))
    said = io.StringIO()
    assert run_file(program, Console(file=said, width=400)), said.getvalue()
    with duckdb.connect() as connection:
        for stream in STREAMS:
            connection.execute(f"CREATE VIEW all_{stream} AS FROM '{folder}/data/{stream}/*.parquet'")
        connection.execute(f"CREATE VIEW hosts AS FROM '{folder}/data/hosts.csv'")
        for name, answer in ANSWERS.items():
            files = f"'{folder}/data/results/{name}/*.{'json' if name == 'busy_hosts' else 'parquet'}'"
            found = rows_of(connection, f"SELECT * EXCLUDE (round_start) FROM {files}")  # noqa: S608 - no input
            expected = rows_of(connection, answer.text)
            assert expected.total() >= (1 if name == "port_scans" else FEW_RESULTS), name
            assert found == expected, name
            assert f"  {name}: " in said.getvalue()


def rows_of(connection: duckdb.DuckDBPyConnection, query: str) -> Counter[tuple[Any, ...]]:
    """The rows of a query as a multiset; timestamps in microseconds."""
    table = connection.sql(query).to_arrow_table()
    columns = [
        column.cast(pa.timestamp("us", getattr(column.type, "tz", None))).cast(pa.int64())
        if pa.types.is_timestamp(column.type)
        else column
        for column in table.columns
    ]
    return Counter(zip(*(column.to_pylist() for column in columns), strict=True))
