"""TPC-H: its eight tables and its 22 queries, as DuckDB's extension `tpch` makes them.

The extension comes as a package of Python, `duckdb-extension-tpch`, so that nothing is downloaded at run time; DuckDB
checks its signature.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")


def generate(folder: Path, scale: float) -> dict[int, str]:
    """Write the tables as Parquet files into a folder, and return the queries by their numbers.

    Scale 1 is about a gigabyte of text. Equal scales give equal tables.
    """
    import duckdb

    extension = files("duckdb_extension_tpch") / "extensions" / f"v{duckdb.__version__}" / "tpch.duckdb_extension"
    engine = duckdb.connect()
    engine.execute(f"LOAD '{extension}'")
    engine.execute(f"CALL dbgen(sf = {scale})")
    for table in TABLES:
        engine.execute(f"COPY {table} TO '{folder}/{table}.parquet'")
    queries = engine.execute("SELECT query_nr, query FROM tpch_queries()").fetchall()
    return {number: text.rstrip().rstrip(";") for number, text in queries}


def create_views(spark: SparkSession, folder: Path) -> None:
    """Make the tables in a folder known to a session, as temporary views."""
    for table in TABLES:
        spark.read.parquet(f"{folder}/{table}.parquet").createOrReplaceTempView(table)


def drop_views(spark: SparkSession) -> None:
    """Drop the temporary views of the tables."""
    for table in TABLES:
        spark.catalog.dropTempView(table)
