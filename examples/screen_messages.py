"""Screens messages: finds the ones that a person has to look at.

A message goes to a person if it asks for money, comes from a network that is not ours, from a sender who is not
trusted, and a small model finds it suspicious. Written as `df.where(a & b & c & d)`, Spark would run the model on every
message. Here the one line that changes is `tw.where`; the order is found while the job runs.

    .venv/bin/python examples/screen_messages.py             # a batch
    .venv/bin/python examples/screen_messages.py --stream    # the same as a stream, in micro-batches
"""

from __future__ import annotations

import argparse
import tempfile
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import thalweg as tw
from thalweg.spark.start import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WORDS = ("urgent", "transfer", "invoice", "password", "gift", "account")
WEIGHTS = np.array([1.4, 0.9, 0.3, 1.1, 0.7, 0.5])  # of a logistic model that somebody has fitted
BIAS = -2.0
BODY = """
    case when id % 7 = 0 then 'urgent transfer of 5,000 EUR to the account below, invoice attached'
         when id % 3 = 0 then 'your password expires, confirm your account'
         else 'minutes of the meeting, and the plan for next week' end
"""


@tw.predicate(on="body")
def looks_suspicious(body: pa.Array) -> pa.Array:
    """The model: counts words and weighs them. By far the slowest test, and the one that is written first."""
    lower = pc.utf8_lower(body)
    counts = np.stack([pc.count_substring(lower, word).to_numpy(zero_copy_only=False) for word in WORDS])
    return pa.array(1 / (1 + np.exp(-(WEIGHTS @ counts + BIAS))) > 0.5)  # noqa: PLR2004 - more likely than not


@tw.predicate(on=["sender", "reply_to"], takes="rows")
def answers_go_elsewhere(sender: str, reply_to: str | None) -> bool:
    """A plain Python function of one row."""
    return reply_to is not None and reply_to.rpartition("@")[2] != sender.rpartition("@")[2]


def predicates() -> list[Any]:
    """The tests of a message that a person has to look at, in the order in which a user may have written them."""
    trusted = pa.table({"address": [f"colleague{number}@example.org" for number in range(200)]})
    ours = pa.table({"network": ["10.0.0.0/8", "192.168.0.0/16", "2001:db8::/32"]})
    return [
        looks_suspicious,
        answers_go_elsewhere,
        tw.regex("body", r"[0-9][0-9,.]* ?(EUR|USD)\b", name="asks for money"),
        tw.prefix_match(ours, on={"ip": "network"}, negate=True, name="from outside"),
        tw.lookup(trusted, on={"sender": "address"}, negate=True, name="sender unknown"),
    ]


MESSAGE = [
    "id",
    "if(id % 10 < 7, concat('colleague', id % 200, '@example.org'), concat('x', id, '@example.net')) as sender",
    "if(id % 4 = 0, concat('x', id, '@example.com'), null) as reply_to",
    "if(id % 10 < 8, concat('10.', id % 250, '.1.9'), concat('203.0.113.', id % 250)) as ip",
    f"{BODY} as body",
]


def screen(spark: SparkSession, rows: int) -> DataFrame:
    """The batch: the messages that a person has to look at."""
    messages = spark.range(rows, numPartitions=4).selectExpr(*MESSAGE)
    return tw.where(messages, *predicates())


def screen_stream(spark: SparkSession, folder: str, rows: int, batches: int) -> Any:  # noqa: ANN401 - a running query
    """The stream: the same messages from files, filtered into files, each exactly once."""
    for number in range(batches):
        part = spark.range(number * rows, (number + 1) * rows, numPartitions=2).selectExpr(*MESSAGE)
        part.write.mode("overwrite").parquet(f"{folder}/messages/{number}")
    schema = spark.read.parquet(f"{folder}/messages/0").schema
    messages = spark.readStream.schema(schema).option("maxFilesPerTrigger", 2).parquet(f"{folder}/messages/*")
    stream = tw.stream(messages, *predicates(), checkpoint=f"{folder}/checkpoint")
    return stream.to_files(f"{folder}/flagged", availableNow=True)


def main() -> None:
    """Run it, and show what was found in which order."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="messages in the batch, or in a micro-batch")
    parser.add_argument("--stream", action="store_true", help="run it as a stream")
    arguments = parser.parse_args()
    spark = spark_session("screen-messages")
    start = time.perf_counter()
    if arguments.stream:
        with tempfile.TemporaryDirectory() as folder:
            query = screen_stream(spark, folder, arguments.rows, batches=5)
            query.awaitTermination()
            print(f"{spark.read.parquet(f'{folder}/flagged').count():,} messages to look at")  # noqa: T201
            print(tw.explain(query))  # noqa: T201
    else:
        flagged = screen(spark, arguments.rows)
        print(f"{flagged.count():,} messages to look at, of {arguments.rows:,}")  # noqa: T201
        print(tw.explain(flagged))  # noqa: T201
    print(f"{time.perf_counter() - start:.1f} s")  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main()
