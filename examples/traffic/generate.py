"""Write the packets that a network has seen in two minutes, as three streams of Parquet files, and a table of hosts.

TCP, UDP and SF (the packets that open and close TCP connections) are the streams of om-plan-charts-2005, section 5.
Each comes in bursts: some seconds in which it is several times as fast as usual.

    .venv/bin/python examples/traffic/generate.py examples/traffic/data
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv, parquet

START = 1_700_000_000  # seconds since 1970 began
SECONDS, SECONDS_A_FILE = 120, 10
RATES = {"TCP": 150, "UDP": 80, "SF": 40}  # packets a second, outside bursts
BURSTS = {"TCP": range(30, 45), "UDP": range(40, 60), "SF": range(80, 90)}  # seconds
FASTER = 4  # times, in a burst
HOSTS = 60
PORTS = (80, 443, 443, 443, 53, 53, 22, 25)
OWNERS = ("library", "physics", "dormitory", "office")


def main(folder: Path) -> None:
    """Write everything into a folder."""
    numbers = random.Random(2005)  # noqa: S311 - the same packets every time
    for stream, rate in RATES.items():
        (folder / stream).mkdir(parents=True, exist_ok=True)
        for first in range(0, SECONDS, SECONDS_A_FILE):
            packets = [
                packet(numbers, stream, second)
                for second in range(first, first + SECONDS_A_FILE)
                for _ in range(rate * (FASTER if second in BURSTS[stream] else 1))
            ]
            file = folder / stream / f"{first:04d}.parquet"
            table = pa.Table.from_pylist(packets)
            parquet.write_table(table.set_column(0, "ts", table["ts"].cast(pa.timestamp("us", "UTC"))), file)
            os.utime(file, (START + first, START + first))  # Spark reads the oldest files first
    hosts = [{"host": host, "owner": OWNERS[host % len(OWNERS)]} for host in range(HOSTS)]
    csv.write_csv(pa.Table.from_pylist(hosts), folder / "hosts.csv")


def packet(numbers: random.Random, stream: str, second: int) -> dict[str, Any]:
    """A packet at some moment of a second. Hosts with low numbers send and get the most."""
    scanned = stream == "SF" and second in BURSTS[stream]  # its burst is a host that tries one port after the other
    found: dict[str, Any] = {
        "ts": (START + second) * 1_000_000 + numbers.randrange(1_000_000),
        "src_host": 59 if scanned else int(HOSTS * numbers.random() ** 2),
        "dest_host": int(HOSTS * numbers.random() ** 2),
        "dest_port": numbers.randrange(1, 1024) if scanned else numbers.choice(PORTS),
    }
    if stream == "SF":
        return found | {"flag": "SYN" if scanned else numbers.choice(("SYN", "FIN"))}
    return found | {"bytes": numbers.choice((40, 52, 120, 576, 1300, 1500))}


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "data")
