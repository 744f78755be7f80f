"""A program that joins the files of a folder and is killed by `kills.py`; it goes on from its checkpoint."""

from __future__ import annotations

import sys
from pathlib import Path


def main(folder: str) -> None:
    """Join the streams of a folder to the end of their files."""
    import thalweg as tw
    from thalweg.spark.start import spark_session
    from thalweg_lab.benches.joins.kills import DELAY, ON, STREAMS, WINDOW

    # A task whose worker process is killed is tried again, three times.
    spark = spark_session("killed", master="local[2,4]")
    tw.configure(spark)
    frames = {}
    for name in STREAMS:
        files = str(Path(folder, name))
        schema = spark.read.parquet(files).schema
        frames[name] = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(files)
    joined = tw.join(
        frames, ON, f"{WINDOW} seconds", "ts", delay=DELAY, cells=2, select=[f"{name}.v" for name in STREAMS]
    )
    writer = joined.writeStream.format("parquet").option("checkpointLocation", str(Path(folder, "checkpoint")))
    writer.trigger(availableNow=True).start(str(Path(folder, "out"))).awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1])
