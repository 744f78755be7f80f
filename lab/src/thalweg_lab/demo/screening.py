"""Act one: screens messages with costly predicates, once by `df.where` and once by `tw.where`, on the same condition.

The predicates are ordinary Arrow UDFs of Spark. The share of messages that each of them rejects changes from phase to
phase: an ordinary day, then a wave of forged messages, then messages from stolen accounts.
"""

import hashlib
import itertools
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import BooleanType
from rich.console import Console

import thalweg as tw
from thalweg_lab.demo.in_turns import PLAIN, THALWEG, Contender, Tables, overall, steps_of, stopped_at_the_end
from thalweg_lab.demo.ratios import Ratio, require_same
from thalweg_lab.demo.tell import told_steps

TITLE = "Screening messages: five costly predicates, tw.where beside df.where"
ROWS = 40_000  # a micro-batch
VARIANTS = 20  # of a message with the same properties
KEY = b"a key of the demonstration"
ROUNDS = 12  # of the key's derivation: a signature is meant to be slow to forge
KNOWN_SENDERS = frozenset(f"colleague{number}@example.org" for number in range(200))
KNOWN_HOSTS = frozenset(f"site{number}.example.org" for number in range(500))
WEIGHTS = np.random.default_rng(2004).normal(size=1 << 12)  # of a small linear model of pairs of letters
MONEY = re.compile(r"\b[0-9][0-9,.]* ?(EUR|USD|GBP)\b")

# The properties of a message, and in each phase the share of messages that have it. A person has to look at a message
# that has all of them.
PROPERTIES = ("high score", "forged", "new link", "money", "unknown sender")
PHASES = (
    (0.50, 0.05, 0.60, 0.70, 0.90),
    (0.90, 0.95, 0.10, 0.90, 0.80),
    (0.80, 0.90, 0.90, 0.85, 0.05),
)
BOOLEAN = BooleanType()  # as text it would need Spark when a worker imports this module
SCHEMA = pa.schema([(name, pa.string()) for name in ("body", "signature", "link", "sender")])


def as_udf(function: Callable[..., pa.Array]) -> Any:  # noqa: ANN401 - a function that makes a Column
    """An Arrow UDF of Spark."""
    make: Any = arrow_udf  # its types leave Arrow out
    return make(BOOLEAN)(function)


@as_udf
def scores_high(body: pa.Array) -> pa.Array:
    """A linear model of pairs of letters."""
    return pa.array([score(text) > 0 for text in body.to_pylist()])


@as_udf
def is_forged(body: pa.Array, signature: pa.Array) -> pa.Array:
    """Whether a signature does not fit a message."""
    pairs = zip(body.to_pylist(), signature.to_pylist(), strict=True)
    return pa.array([sign(text) != written for text, written in pairs])


@as_udf
def links_somewhere_new(link: pa.Array) -> pa.Array:
    """Whether nobody has seen the host of a link before."""
    from urllib.parse import urlsplit

    return pa.array([urlsplit(text).hostname not in KNOWN_HOSTS for text in link.to_pylist()])


@as_udf
def asks_for_money(body: pa.Array) -> pa.Array:
    """Whether a message names an amount of money."""
    return pa.array([MONEY.search(text) is not None for text in body.to_pylist()])


@as_udf
def comes_from_a_stranger(sender: pa.Array) -> pa.Array:
    """Whether nobody knows the sender."""
    return pa.array([text not in KNOWN_SENDERS for text in sender.to_pylist()])


def condition() -> Column:
    """The condition, as somebody may have written it."""
    found: Column = (
        scores_high(col("body"))
        & is_forged(col("body"), col("signature"))
        & links_somewhere_new(col("link"))
        & asks_for_money(col("body"))
        & comes_from_a_stranger(col("sender"))
    )
    return found


def score(text: str) -> float:
    """The score of a message: the weights of its pairs of letters."""
    pairs = itertools.pairwise(map(ord, text))
    return float(sum(WEIGHTS[(left * 31 + right) % WEIGHTS.size] for left, right in pairs))


def sign(text: str) -> str:
    """The right signature of a message."""
    return hashlib.pbkdf2_hmac("sha256", text.encode(), KEY, ROUNDS).hex()


class Messages:
    """Makes messages with given shares of properties, the same for a seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        random = np.random.default_rng(seed)
        kinds = range(1 << len(PROPERTIES))
        templates = [_message(kind, random) for kind in kinds for _ in range(VARIANTS)]
        self._templates = pa.Table.from_pylist(templates, SCHEMA)

    def make(self, number: int, phase: int) -> Tables:
        """The messages of a micro-batch."""
        random = np.random.default_rng([self._seed, number])
        has = random.random((ROWS, len(PROPERTIES))) < np.array(PHASES[phase])
        kinds = has @ (1 << np.arange(len(PROPERTIES)))
        return {"messages": self._templates.take(pa.array(kinds * VARIANTS + random.integers(0, VARIANTS, ROWS)))}


def _message(kind: int, random: np.random.Generator) -> dict[str, str]:
    """A message with the properties whose bits are set."""
    high, forged, new, money, unknown = (bool(kind >> bit & 1) for bit in range(len(PROPERTIES)))
    while True:
        words = " ".join("".join(random.choice(list("etaoinshrdlu"), 6)) for _ in range(8))
        body = f"Dear colleague, {words}. Please send {'5,000 EUR' if money else 'the minutes'} today."
        if (score(body) > 0) == high:
            break
    number = int(random.integers(0, 200))
    return {
        "body": body,
        "signature": sign(body)[::-1] if forged else sign(body),
        "link": f"https://{'new' if new else 'site'}{number}.example.org/reports/{number}?page=2",
        "sender": f"{'stranger' if unknown else 'colleague'}{number}@example.org",
    }


def play(spark: SparkSession, console: Console, folder: Path, seconds: float, seed: int) -> list[Ratio]:
    """Run the act, and return what was measured."""
    messages = Messages(seed)
    plain, thalweg = (Contender(name, folder / name) for name in (PLAIN, THALWEG))
    kept: dict[str, int] = {PLAIN: 0, THALWEG: 0}

    def start(contender: Contender, frame: DataFrame) -> None:
        def count(batch: DataFrame, _number: int) -> None:
            kept[contender.name] += batch.count()

        writer = frame.writeStream.foreachBatch(count).option("checkpointLocation", contender.checkpoint)
        contender.running.append(writer.start())

    streams = {each.name: each.frames(spark, {"messages": SCHEMA})["messages"] for each in (plain, thalweg)}
    adaptive = tw.where(streams[THALWEG], condition())
    steps = []
    with stopped_at_the_end(plain, thalweg), told_steps(console) as tell:
        start(plain, streams[PLAIN].where(condition()))
        start(thalweg, adaptive)
        for step in steps_of((plain, thalweg), messages.make, seconds):
            steps.append(step)
            about = tw.explain(adaptive).to_dict()["wheres"][0]
            tell(step, f"{calls_of(about):.1f} calls a row; order: {', '.join(map(_short, about['order']))}")
        about = tw.explain(adaptive).to_dict()["wheres"][0]
    require_same("messages kept", kept)
    return [
        Ratio.of_rates("messages a second", overall(steps)),
        Ratio("predicate calls a message", float(len(PROPERTIES)), calls_of(about), is_better_if="less"),
    ]


def calls_of(about: Mapping[str, Any]) -> float:
    """How many predicates were called for a row on average, profiling included; of a where of `tw.explain`."""
    calls = sum(line["rows_seen"] or 0 for line in about["predicates"]) + about["profiling_evaluations"]
    return float(calls / about["rows"]) if about["rows"] else float("nan")


def _short(name: str) -> str:
    """The name of a function, of a condition's text."""
    return name.partition("(")[0].replace("_", " ")
