"""Filters a stream of files into a folder of files, on the Spark that its arguments name, until all files are read.

A program of its own, so that tests can kill it, start it again and see whether anything is lost or there twice.
"""

from __future__ import annotations

import sys

import numpy as np

import thalweg as tw
from thalweg.spark.start import spark_session


@tw.predicate(on="v", takes="numpy")
def is_odd(v: np.ndarray) -> np.ndarray:
    return v % 2 > 0


@tw.predicate(on=["id", "v"], takes="numpy")
def is_near(number: np.ndarray, v: np.ndarray) -> np.ndarray:
    near: np.ndarray = (number + v) % 10 < 7
    return near


def main(master: str, folder: str) -> None:
    spark = spark_session("filter-files", master=master)
    rows = spark.readStream.schema("id long, v long").option("maxFilesPerTrigger", 1).parquet(f"{folder}/in")
    kept = tw.stream(rows, is_odd, "v > 20", is_near, checkpoint=f"{folder}/checkpoint")
    kept.to_files(f"{folder}/out", availableNow=True).awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
