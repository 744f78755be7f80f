"""A program in plain Spark, which `tw.enable` makes adaptive: no line of `screen` knows of Thalweg.

It finds the messages that a person has to look at, as `screen_messages.py` does, with UDFs joined by `&`.

    .venv/bin/python examples/plain_spark.py                # plain Spark
    .venv/bin/python examples/plain_spark.py --adaptive     # the same program after tw.enable(spark)
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions

import thalweg as tw
from thalweg.spark.start import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

f: Any = functions
WEIGHTS = {"urgent": 1.4, "transfer": 0.9, "invoice": 0.3, "password": 1.1, "gift": 0.7, "account": 0.5}
MESSAGE = [
    "id",
    "if(id % 10 < 7, concat('colleague', id % 200, '@example.org'), concat('x', id, '@example.net')) as sender",
    "if(id % 4 = 0, concat('x', id, '@example.com'), null) as reply_to",
    "if(id % 7 = 0, 'urgent transfer of 5,000 EUR to the account below', 'minutes of the meeting') as body",
]


def suspicion(body: str) -> float:
    """A small model: counts words and weighs them."""
    return sum(weight * body.lower().count(word) for word, weight in WEIGHTS.items()) - 2.0


def answers_go_elsewhere(sender: str, reply_to: str | None) -> bool:
    """Whether answers go to another domain than the sender's."""
    return reply_to is not None and reply_to.rpartition("@")[2] != sender.rpartition("@")[2]


def screen(spark: SparkSession, rows: int) -> DataFrame:
    """The messages that a person has to look at, the slowest test first."""
    score = f.udf(suspicion, "double", useArrow=False)
    elsewhere = f.udf(answers_go_elsewhere, "boolean", useArrow=False)
    messages = spark.range(rows, numPartitions=4).selectExpr(*MESSAGE)
    return messages.where(
        (score("body") > 0)
        & elsewhere("sender", "reply_to")
        & f.col("body").rlike(r"[0-9][0-9,.]* ?(EUR|USD)\b")
        & ~f.col("sender").startswith("colleague")
    )


def main() -> None:
    """Run it, and show what was done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="messages")
    parser.add_argument("--adaptive", action="store_true", help="call tw.enable(spark) first")
    arguments = parser.parse_args()
    spark = spark_session("plain-spark")
    if arguments.adaptive:
        tw.enable(spark)
    start = time.perf_counter()
    flagged = screen(spark, arguments.rows)
    print(f"{flagged.count():,} messages to look at, in {time.perf_counter() - start:.1f} s")  # noqa: T201
    if arguments.adaptive:
        print(tw.explain(flagged))  # noqa: T201
    spark.stop()


if __name__ == "__main__":
    main()
