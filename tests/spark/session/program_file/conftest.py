from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

SECOND = 1_000_000  # microseconds
GOOD = """\
checkpoint = "checkpoint"
trigger.available_now = true

[predicates]
is_odd = "checks_of_tests:is_odd"

[streams.TCP]
format = "parquet"
path = "tcp"
schema = "ts timestamp, src long, dest long"
event_time = "ts"

[queries.to_host_2]
text = "SELECT src FROM TCP WHERE dest = 2 WINDOW [1]"
to = "memory"

[queries.odd]
text = '''
SELECT count(*) AS packets
FROM TCP
WHERE is_odd(src)
WINDOW [2 seconds]
'''
to = { format = "json", path = "odd" }
"""
CHECKS = """\
import thalweg as tw

no_predicate = 3

@tw.predicate(on="src", takes="numpy")
def is_odd(src):
    return src % 2 == 1
"""


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Path]:
    """A program file with a stream of ten packets, one every half second; what it imports is forgotten afterwards."""
    folders = list(sys.path)
    (tmp_path / "tcp").mkdir()
    times = pa.array([SECOND // 2 * number for number in range(1, 11)], pa.timestamp("us", "UTC"))
    packets = pa.table({"ts": times, "src": list(range(10)), "dest": [2, 3] * 5})
    parquet.write_table(packets, tmp_path / "tcp" / "packets.parquet")
    (tmp_path / "checks_of_tests.py").write_text(CHECKS)
    file = tmp_path / "session.toml"
    file.write_text(GOOD)
    yield file
    sys.path[:] = folders
    sys.modules.pop("checks_of_tests", None)
