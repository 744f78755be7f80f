"""The same program on a real two-worker cluster and on Spark Connect."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("programs") / "filter_numbers.py"
RANDOM_CONDITIONS = Path(__file__).with_name("programs") / "random_conditions.py"
CONDITIONS = 12  # random conditions that are tried on Connect
SECONDS = 240

FIRST = [row for row in range(101, 4000) if row % 100 < 90 and row % 10 == 7 and row % 100 % 7 == 0]
STREAMED = [row for row in range(4000) if row % 100 < 90 and row % 10 == 7 and row % 100 % 7 == 0]
SPLIT = [row for row in range(3000, 4000, 2) if row % 100 > 50 and "6" in str(row) and row != 3056]


def run(program: Path, arguments: Sequence[object], environment: dict[str, str]) -> Any:  # noqa: ANN401 - as it prints
    done = subprocess.run(
        [sys.executable, str(program), *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def check(found: dict[str, Any]) -> None:
    assert found["kept"] == [row for row in FIRST if any(digit in str(row) for digit in "123")]
    assert found["rows"] > 0
    assert found["error"]
    assert found["routed"]
    assert found["dropped"] == 399
    assert found["too_small"]
    assert found["cast"] == [row for row in range(3991, 4000) if row % 100 != 5]
    assert found["split"] == SPLIT
    assert found["dropped_columns"]
    assert found["refuses_other_values"]
    assert found["adapted"]
    assert found["enabled"]
    assert found["explained"]
    assert found["streamed"] == STREAMED
    assert found["stream_rows"] == 4000


def test_on_a_cluster_of_two_workers(cluster: str, environment: dict[str, str]) -> None:
    found = run(PROGRAM, [cluster], environment)
    check(found)
    assert found["workers"] >= 2


def test_on_connect(environment: dict[str, str]) -> None:
    found = run(PROGRAM, ["connect"], environment)
    check(found)
    assert found["registered"][0] == "is_small(a)"
    session, stream = found["refused"]
    assert session.startswith("tw.Session needs a classic session: with Spark Connect write each query")
    assert stream.startswith("tw.stream needs a classic session: with Spark Connect write tw.where")
    assert "\n" not in session + stream


def test_random_conditions_on_connect(environment: dict[str, str]) -> None:
    assert run(RANDOM_CONDITIONS, [CONDITIONS, 1], environment) == []
