"""TPC-H: its eight tables and its 22 queries, as DuckDB's extension `tpch` makes them.

The extension comes as a package of Python, which needs the DuckDB of its own version: `make tpch` puts both into a
folder of their own, and this file, run as a program there, makes the tables. DuckDB checks the extension's signature.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
PACKAGES = Path(__file__).parents[3] / ".tpch"  # as the Makefile has it


def check_installed() -> None:
    """Raise an error if the packages that make the tables are not there."""
    if not PACKAGES.exists():
        raise FileNotFoundError(f"{PACKAGES} is not there: run make tpch")


def generate(folder: Path, scale: float) -> dict[int, str]:
    """Write the tables as Parquet files into a folder, and return the queries by their numbers.

    Scale 1 is about a gigabyte of text. Equal scales give equal tables.
    """
    check_installed()
    command = [sys.executable, __file__, str(folder), str(scale)]
    made = subprocess.run(  # noqa: S603 - this very file
        command, env=os.environ | {"PYTHONPATH": str(PACKAGES)}, check=True, capture_output=True, text=True
    )
    return {int(number): text.rstrip().rstrip(";") for number, text in json.loads(made.stdout).items()}


def create_views(spark: SparkSession, folder: Path) -> None:
    """Make the tables in a folder known to a session, as temporary views."""
    for table in TABLES:
        spark.read.parquet(f"{folder}/{table}.parquet").createOrReplaceTempView(table)


def drop_views(spark: SparkSession) -> None:
    """Drop the temporary views of the tables."""
    for table in TABLES:
        spark.catalog.dropTempView(table)


def main(folder: str, scale: str) -> None:
    """Make the tables, with the packages of `make tpch`, and print the queries as JSON."""
    import duckdb

    extension = files("duckdb_extension_tpch") / "extensions" / f"v{duckdb.__version__}" / "tpch.duckdb_extension"
    engine = duckdb.connect()
    engine.execute(f"LOAD '{extension}'")
    engine.execute(f"CALL dbgen(sf = {float(scale)})")
    for table in TABLES:
        engine.execute(f"COPY {table} TO '{folder}/{table}.parquet'")
    queries = engine.execute("SELECT query_nr, query FROM tpch_queries()").fetchall()
    print(json.dumps(dict(queries)))  # noqa: T201 - what `generate` reads


if __name__ == "__main__":
    main(*sys.argv[1:])
