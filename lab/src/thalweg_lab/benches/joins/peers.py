"""peers: the streams of common-key and of chain, joined by Flink's own MultiJoin, on the same machine.

Flink runs in an environment of its own, since it needs other versions of libraries than Spark: `FLINK_PYTHON` names its
interpreter. Flink gets all rows at once, in one job with as many parallel parts as Thalweg has cells; `tw.join` gets
them in micro-batches. The throughput of either is that of all rows, from the start of the query to its last result.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import csv

from thalweg_lab.benches.filters.race import Measurement, Tick
from thalweg_lab.benches.joins import FLINK_PYTHON, flink_join
from thalweg_lab.benches.joins.streams import files, run, thalweg_join
from thalweg_lab.benches.joins.work import JoinWorkload
from thalweg_lab.results import Result, at_least

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "peers"
TARGETS = {"common-key": 10.0, "chain": 5.0}  # times as fast as Flink
ROWS, BATCHES = 20_000, 10  # rows a stream and batch
SECONDS = 900
SETTINGS = {
    "table.optimizer.multi-join.enabled": "true",
    "parallelism.default": "2",
    "table.exec.mini-batch.enabled": "true",  # for the count of results, not for the join
    "table.exec.mini-batch.allow-latency": "1 s",
    "table.exec.mini-batch.size": "50000",
    "taskmanager.memory.managed.size": "512m",
}

Join = Callable[[JoinWorkload], tuple[Measurement, bool]]


def measure(
    spark: SparkSession, tick: Tick, *, rows: int = ROWS, batches: int = BATCHES, flink: Join | None = None
) -> list[Result]:
    """How many times the rows a second of Flink `tw.join` joins, in each scenario."""
    flink = flink or by_flink
    results = []
    for number, (name, target) in enumerate(TARGETS.items()):
        workload = import_module(f"{__package__}.{name.replace('-', '_')}").make_workload(rows, batches)
        with files(workload) as folder:
            run(spark, folder, workload, thalweg_join)  # the machine is not warm yet
            ours = run(spark, folder, workload, thalweg_join, skip=0)
        theirs, is_multi_join = flink(workload)
        if ours[:2] != theirs[:2]:
            raise AssertionError(f"{NAME}: results (count, checksum) {ours[:2]} of Thalweg, {theirs[:2]} of Flink")
        total = sum(table.num_rows for tables in workload.batches for table in tables.values())
        note = (
            f"{total:,} rows; a second: Thalweg {total / ours.seconds:,.0f}, Flink {total / theirs.seconds:,.0f} by "
            f"{'its MultiJoin' if is_multi_join else 'a chain of its joins'}; one round"
        )
        results.append(
            at_least(NAME, f"{name}: Thalweg, times as fast as Flink", theirs.seconds / ours.seconds, target, note)
        )
        tick(number + 1, len(TARGETS))
    return results


def by_flink(workload: JoinWorkload) -> tuple[Measurement, bool]:
    """The join of a workload by Flink, and whether it was one operator."""
    interpreter = os.environ.get(FLINK_PYTHON)
    if not interpreter:
        raise ValueError(
            f"{NAME} needs Apache Flink in an environment of its own: python -m venv flink, flink/bin/pip install "
            f"'apache-flink>=2.1', and {FLINK_PYTHON}=flink/bin/python"
        )
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:
        write_csv(workload, Path(folder))
        found = subprocess.run(  # noqa: S603 - the user names the interpreter
            [interpreter, "-I", flink_join.__file__],
            input=json.dumps(
                {"settings": SETTINGS, "tables": tables_of(workload, folder), "query": query_of(workload)}
            ),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    if found.returncode:
        raise RuntimeError(f"Flink has failed: {found.stderr[-2000:]}")
    told: Mapping[str, Any] = json.loads(found.stdout.splitlines()[-1])
    count, checksum = (int(value or 0) for value in told["answer"] or (0, 0))
    return Measurement(count, checksum, told["seconds"]), told["is_multi_join"]


def write_csv(workload: JoinWorkload, folder: Path) -> None:
    """A folder of CSV files for each stream, a file for each batch; times are microseconds."""
    for number, tables in enumerate(workload.batches):
        for name, table in tables.items():
            times = table["ts"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
            path = folder / name / f"{number:04d}.csv"
            path.parent.mkdir(exist_ok=True)
            plain = table.set_column(table.schema.get_field_index("ts"), "ts", times)
            csv.write_csv(plain, path, csv.WriteOptions(include_header=False))


def tables_of(workload: JoinWorkload, folder: str) -> list[str]:
    """Statements that make the streams known to Flink."""
    return [
        f"CREATE TABLE {name} ({', '.join(f'{column} BIGINT' for column in table.schema.names)}) "
        f"WITH ('connector' = 'filesystem', 'path' = 'file://{folder}/{name}', 'format' = 'csv')"
        for name, table in workload.batches[0].items()
    ]


def query_of(workload: JoinWorkload) -> str:
    """The number of results, and the checksum, in Flink's SQL.

    >>> from thalweg_lab.benches.joins.two_way import make_workload
    >>> query_of(make_workload(1, 1)).partition(" FROM ")[2]
    'A JOIN B ON A.k = B.k AND ABS(A.ts - B.ts) < 100000000'
    """
    first, *others = workload.names
    joined, text = [first], first
    for name in others:
        # Each class of equal columns once: Flink's MultiJoin fails if a key is named twice.
        classes = [dict(equality) for equality in workload.on if name in dict(equality)]
        known = [(columns, next((other for other in joined if other in columns), None)) for columns in classes]
        equal = [f"{other}.{columns[other]} = {name}.{columns[name]}" for columns, other in known if other]
        near = [f"ABS({other}.ts - {name}.ts) < {workload.seconds * 1_000_000}" for other in joined]
        text += f" JOIN {name} ON {' AND '.join([*equal, *near])}"
        joined.append(name)
    total = " + ".join(f"{name}.v" for name in joined)
    return f"SELECT COUNT(*), SUM({total}) FROM {text}"  # noqa: S608 - ours
