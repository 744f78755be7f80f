from __future__ import annotations

import importlib.util
import io
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import duckdb
import pytest
from rich.console import Console

from thalweg.spark.session.program_file.command import run_file

EXAMPLE = Path(__file__).parents[2] / "examples" / "traffic"
STREAMS = ("TCP", "UDP", "SF")
WEB_TRAFFIC = """
    WITH numbered AS (SELECT *, 10000000 * CAST(ceil(epoch_us(ts) / 10000000) AS BIGINT) AS round_end FROM TCP)
    SELECT round_end, dest_host, count(*), sum(bytes)
    FROM numbered
    WHERE dest_port IN (80, 443) AND round_end < (SELECT max(epoch_us(ts)) - 1000000 FROM TCP)
    GROUP BY round_end, dest_host ORDER BY ALL
"""
HOSTS_IN_ALL = """
    WITH rounds AS (
        SELECT 'TCP' AS stream, src_host AS host, bytes, NULL AS flag, ts FROM TCP WHERE bytes > 1000
        UNION ALL SELECT 'UDP', dest_host, bytes, NULL, ts FROM UDP WHERE bytes > 1000
        UNION ALL SELECT 'SF', dest_host, NULL, flag, ts FROM SF WHERE dest_port = 22
    ), numbered AS (SELECT *, 1000000 * CAST(ceil(epoch_us(ts) / 1000000) AS BIGINT) AS round_end FROM rounds)
    SELECT t.round_end, t.host, t.bytes, u.bytes, s.flag
    FROM numbered t JOIN numbered u USING (round_end, host) JOIN numbered s USING (round_end, host)
    WHERE t.stream = 'TCP' AND u.stream = 'UDP' AND s.stream = 'SF' AND t.round_end < (SELECT least(
        (SELECT max(ts) FROM TCP), (SELECT max(ts) FROM UDP), (SELECT max(ts) FROM SF)).epoch_us() - 1000000)
    ORDER BY ALL
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The example with its first forty seconds of traffic, in a folder of its own."""
    for name in ("session.toml", "traffic_checks.py"):
        shutil.copy(EXAMPLE / name, tmp_path)
    generator = loaded(EXAMPLE / "generate.py")
    generator.SECONDS = 40  # type: ignore[attr-defined]
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
def test_two_of_the_queries_as_duckdb_answers_them(folder: Path) -> None:
    said = io.StringIO()
    assert run_file(folder / "session.toml", Console(file=said, width=400)), said.getvalue()
    with duckdb.connect() as connection:
        for stream in STREAMS:
            connection.execute(f"CREATE VIEW {stream} AS FROM '{folder}/data/{stream}/*.parquet'")
        for name, query in (("web_traffic", WEB_TRAFFIC), ("hosts_in_all", HOSTS_IN_ALL)):
            results = connection.read_parquet(f"{folder}/data/results/{name}/*.parquet")
            found = results.project("epoch_us(round_end), * EXCLUDE (round_start, round_end)").order("ALL").fetchall()
            expected = connection.execute(query).fetchall()
            assert len(expected) > 100
            assert found == expected
    assert said.getvalue().count("rounds, ") == 10
