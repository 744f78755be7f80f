"""A program for an interpreter that has Apache Flink: joins CSV files by Flink's MultiJoin, and prints what it took.

Must not import anything but the standard library and pyflink: `peers.py` runs it in an environment of its own.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def main(task: dict[str, Any]) -> None:
    """Join the files that a task names, and print the results' number and checksum and the seconds of the job."""
    from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found]  # not ours

    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in task["settings"].items():
        environment.get_config().set(name, value)
    for statement in task["tables"]:
        environment.execute_sql(statement)
    plan = environment.explain_sql(task["query"])
    start = time.perf_counter()
    last = None
    with environment.execute_sql(task["query"]).collect() as rows:
        for row in rows:
            last = list(row)
    seconds = time.perf_counter() - start
    print(json.dumps({"answer": last, "seconds": seconds, "is_multi_join": "MultiJoin" in plan}))  # noqa: T201 - read there


if __name__ == "__main__":
    main(json.load(sys.stdin))
