"""Random conditions of native parts and UDFs of every kind, and a model of the rows and errors that they may give.

As a program it compares `tw.where` and `tw.adapt` with the model and with plain Spark on Spark Connect, and prints the
conditions that differ as JSON: a process has one kind of Spark session.
"""

from __future__ import annotations

import json
import operator
import random
import re
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

import thalweg as tw

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Tree = Any  # the text of a part, or a connective with the list of its operands

TRUE, FALSE, NULL, ERROR = "true", "false", "NULL", "error"
IN, OUT = "kept", "not kept"  # of a row, besides ERROR
SCHEMA = "id long, a boolean, b boolean, k int, s string, p struct<x: int, y: string>, m map<string, int>, t timestamp"


class ConditionRow(NamedTuple):
    """A row that conditions are tried on."""

    id: int
    a: bool | None
    b: bool | None
    k: int | None
    s: str | None
    p: tuple[int, str | None] | None
    m: dict[str, int] | None
    t: datetime | None


TRUTHS, WORDS = (True, False, None), ("1", "13", "x", None, "77")
NIGHT = datetime(2024, 3, 31, 1, 30)  # noqa: DTZ001 - a local time; clocks are put forward in this night


def row_of(row: int) -> ConditionRow:
    return ConditionRow(
        id=row,
        a=TRUTHS[row % 9 // 3],
        b=TRUTHS[row % 3],
        k=(row % 4 or None) if row < 20 else row % 5,
        s=WORDS[row % 5],
        p=None if row % 7 == 6 else (row % 4, WORDS[row % 5]),
        m=None if row % 6 == 5 else {"k": row % 3} if row % 2 else {},
        t=None if row % 8 == 7 else NIGHT + timedelta(hours=row),
    )


ROWS = list(map(row_of, range(40)))

# The parts, and the value of each on a row: it raises where Spark raises.
NATIVE: dict[str, Callable[[ConditionRow], bool | None]] = {
    "a": lambda row: row.a,
    "b": lambda row: row.b,
    "k > 1": lambda row: None if row.k is None else row.k > 1,
    "s RLIKE '[13]'": lambda row: None if row.s is None else re.search("[13]", row.s) is not None,
    "length(s) > 1": lambda row: None if row.s is None else len(row.s) > 1,
    "k BETWEEN 1 AND 3": lambda row: None if row.k is None else 1 <= row.k <= 3,
    "a IS NULL": lambda row: row.a is None,
    "10 / k > 4": lambda row: None if row.k is None else 10 / row.k > 4,
    "cast(s AS int) > 5": lambda row: None if row.s is None else int(row.s) > 5,
    "rand() >= 0": lambda _row: True,
    "NULL": lambda _row: None,
    "TRUE": lambda _row: True,
    "FALSE": lambda _row: False,
    "k = NULL": lambda _row: None,
    "k IN (NULL)": lambda _row: None,
    "k <=> NULL": lambda row: row.k is None,
    "coalesce(NULL, b)": lambda row: row.b,
    "CASE WHEN TRUE THEN NULL ELSE a END": lambda _row: None,
    "if(a, NULL, FALSE)": lambda row: None if row.a else False,
    "id IS NULL": lambda _row: False,
    "cast(k AS bigint) > 3000000000": lambda row: None if row.k is None else False,
}
UDFS: dict[str, Callable[[ConditionRow], bool | None]] = {
    "odd(k)": lambda row: None if row.k is None else row.k % 2 == 1,
    "half(k) > 0.6": lambda row: None if row.k is None else row.k / 2 > 0.6,
    "third(k) < 1": lambda row: None if row.k is None else row.k / 3 < 1,
    "share(k) >= 2": lambda row: None if row.k is None else 10 // row.k >= 2,
    "word(s) <> '1'": lambda row: None if row.s is None else row.s != "1",
    "same(s) = 'x'": lambda row: None if row.s is None else row.s == "x",
    "both(k, s)": lambda row: row.k is not None and row.k > 1 and row.s != "x",
    "pair(k, s)": lambda row: _sql_and(None if row.k is None else row.k > 1, None if row.s is None else row.s > "13"),
    "field(p)": lambda row: None if row.p is None else row.p[0] > 1,
    "entry(m)": lambda row: None if row.m is None else row.m.get("k") == 1,
    "late(t)": lambda row: None if row.t is None else row.t.hour >= 12,
    "upto(k, most => 2)": lambda row: None if row.k is None else row.k <= 2,
    "noisy(k)": lambda row: row.k is not None,
    "CASE WHEN odd(k) THEN a ELSE b END": lambda row: row.a if row.k is not None and row.k % 2 == 1 else row.b,
    "word(s) IN ('1', NULL)": lambda row: True if row.s == "1" else None,
    "word(s) IN (NULL)": lambda _row: None,
}


def _sql_and(*operands: bool | None) -> bool | None:
    return False if False in operands else None if None in operands else True


VALUES = NATIVE | UDFS
# In a disjunction with a UDF a worker is told where a condition in Spark raises; it raises an error of its own.
TOLD = "Spark could not evaluate the expression on this row"
MARKS = {  # how the errors of parts that raise are known
    "10 / k > 4": "DIVIDE_BY_ZERO",
    "cast(s AS int) > 5": "CAST_INVALID_INPUT",
    "share(k) >= 2": "ZeroDivisionError",
}


def made_udfs() -> dict[str, Any]:
    """A UDF of every kind, by the name in the parts."""
    from pyspark.sql import functions
    from pyspark.sql.types import BooleanType, DoubleType, IntegerType, StringType

    def half(k: pd.Series) -> pd.Series:
        return k / 2

    def third(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
        for k in batches:
            yield k / 3

    def word(s: pa.Array) -> pa.Array:
        return s

    def same(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        yield from batches

    def both(batches: Iterator[tuple[pd.Series, pd.Series]]) -> Iterator[pd.Series]:
        for k, s in batches:
            yield (k > 1) & (s != "x")

    def pair(batches: Iterator[tuple[pa.Array, pa.Array]]) -> Iterator[pa.Array]:
        for k, s in batches:
            yield pc.and_kleene(pc.greater(k, 1), pc.greater(s, "13"))

    f: Any = functions
    return {
        "odd": f.udf(lambda k: None if k is None else k % 2 == 1, BooleanType(), useArrow=False),
        "half": f.pandas_udf(half, DoubleType()),
        "third": f.pandas_udf(third, DoubleType()),
        "share": f.udf(lambda k: None if k is None else 10 // k, IntegerType(), useArrow=True),
        "word": f.arrow_udf(word, StringType()),
        "same": f.arrow_udf(same, StringType()),
        "both": f.pandas_udf(both, BooleanType()),
        "pair": f.arrow_udf(pair, BooleanType()),
        "field": f.udf(lambda p: None if p is None else p.x > 1 and p["y"] == p.y, BooleanType(), useArrow=False),
        "entry": f.udf(lambda m: None if m is None else m.get("k") == 1, BooleanType(), useArrow=True),
        "late": f.udf(lambda t: None if t is None else not t.tzinfo and t.hour >= 12, BooleanType(), useArrow=False),
        "upto": f.udf(lambda k, most=9: None if k is None else k <= most, BooleanType(), useArrow=True),
        "noisy": f.udf(lambda k: k is not None, BooleanType()).asNondeterministic(),
    }


def text_of(tree: Tree) -> str:
    """A condition as SQL text."""
    if isinstance(tree, str):
        return tree
    connective, operands = tree
    texts = [f"({text_of(operand)})" for operand in operands]
    return f"NOT {texts[0]}" if connective == "not" else f" {connective} ".join(texts)


def column_of(tree: Tree, udfs: dict[str, Any]) -> Column:
    """A condition as a Column, with UDFs that are called as functions."""
    from pyspark.sql import functions as f

    if not isinstance(tree, str):
        connective, operands = tree
        columns = [column_of(operand, udfs) for operand in operands]
        joined = {"and": operator.and_, "or": operator.or_}
        return ~columns[0] if connective == "not" else reduce(joined[connective], columns)
    if tree.startswith("CASE WHEN odd"):
        return f.when(udfs["odd"]("k"), f.col("a")).otherwise(f.col("b"))
    call = re.fullmatch(r"(\w+)\((\w)(, \w)?(, most => 2)?\)(.*)", tree)
    if tree not in UDFS or call is None:
        return f.expr(tree)
    arguments = [call[2], *([call[3].strip(", ")] if call[3] else [])]
    value = udfs[call[1]](*arguments, **({"most": f.lit(2)} if call[4] else {}))
    comparison = call[5].split()
    if comparison and comparison[0] == "IN":
        return value.isin(*(["1"] if "'1'" in tree else []), None)  # type: ignore[no-any-return]
    if not comparison:
        return value  # type: ignore[no-any-return]
    sign = {">": operator.gt, "<": operator.lt, ">=": operator.ge, "<>": operator.ne, "=": operator.eq}[comparison[0]]
    constant = comparison[1].strip("'") if "'" in comparison[1] else float(comparison[1])
    return sign(value, int(constant) if call[1] == "share" else constant)  # type: ignore[no-any-return]


def parts_of(tree: Tree) -> list[str]:
    """All parts of a condition, from left to right."""
    return [tree] if isinstance(tree, str) else [part for operand in tree[1] for part in parts_of(operand)]


def repeats_an_error(tree: Tree) -> bool:
    """Whether a part that raises occurs twice: Spark may simplify the condition, and the error is gone."""
    raising = [part for part in parts_of(tree) if part in MARKS]
    return len(set(raising)) < len(raising)


# ------------------------------------------------------------------------------------------------- the model


def outcomes(tree: Tree, row: ConditionRow) -> set[str]:
    """The outcomes that a condition may have on a row: where an operand decides it, another's error may show or not."""
    if isinstance(tree, str):
        try:
            return {{True: TRUE, False: FALSE, None: NULL}[VALUES[tree](row)]}
        except (ValueError, ZeroDivisionError):
            return {ERROR}
    connective, operands = tree
    if connective == "not":
        return {{TRUE: FALSE, FALSE: TRUE}.get(outcome, outcome) for outcome in outcomes(operands[0], row)}
    deciding, other = (FALSE, TRUE) if connective == "and" else (TRUE, FALSE)
    found: set[str] = set()
    for combined in product(*(outcomes(operand, row) for operand in operands)):
        if ERROR in combined:
            found |= {ERROR} | ({deciding, NULL} & set(combined))
        else:
            found.add(deciding if deciding in combined else NULL if NULL in combined else other)
    return found


def conjuncts_of(tree: Tree, *, negated: bool = False) -> list[Tree]:
    """The conditions whose conjunction a condition is, by De Morgan's laws too."""
    if not isinstance(tree, str) and tree[0] == "not":
        return conjuncts_of(tree[1][0], negated=not negated)
    if isinstance(tree, str) or (tree[0] == "or") is not negated:
        return [("not", [tree]) if negated else tree]
    return [conjunct for operand in tree[1] for conjunct in conjuncts_of(operand, negated=negated)]


def fates(tree: Tree, row: ConditionRow) -> set[str]:
    """What may become of a row: one that a part of a conjunction rejects raises no error of another part."""
    found = set()
    for combined in product(*(outcomes(conjunct, row) for conjunct in conjuncts_of(tree))):
        rejected = FALSE in combined or NULL in combined
        found.add(OUT if rejected else ERROR if ERROR in combined else IN)
    return found


# ------------------------------------------------------------------------------------------- the comparison


def ids_or_error(frame: DataFrame) -> list[int] | str:
    from pyspark.errors import PySparkException

    try:
        return sorted(row["id"] for row in frame.collect())
    except PySparkException as error:
        return f"{error.getCondition()} {error}"


def differences(tree: Tree, frame: DataFrame, condition: Any) -> list[str]:  # noqa: ANN401 - text or Column
    """In what `tw.where` and `tw.adapt` differ from plain Spark and from the model.

    Where plain Spark raises an error, it does not tell what becomes of the other rows. Then the promise about errors is
    checked for the rows themselves: see `_broken_promises`.
    """
    written = frame.where(condition)
    adaptive = [tw.where(frame, condition), tw.adapt(written)]
    plain = ids_or_error(written)
    found = [_difference(tree, plain, each) for each in adaptive if each is not written]
    if isinstance(plain, str):
        found += _broken_promises(tree, frame, condition)
    return [f"{text_of(tree)}: {problem}" for problem in found if problem is not None]


def _difference(tree: Tree, plain: list[int] | str, adaptive: DataFrame) -> str | None:
    found = ids_or_error(adaptive)
    if isinstance(plain, str) and not _is_of(plain, tree, set(MARKS)):
        return f"plain Spark raises an error that the model does not know: {plain[:500]}"
    if isinstance(plain, list) and found != plain:
        return f"plain Spark keeps {plain}, and not {str(found)[:500]}"
    possible = {row.id: fates(tree, row) for row in ROWS}
    if isinstance(found, list):
        wrong = [number for number, fate in possible.items() if (IN if number in found else OUT) not in fate]
        return f"wrong rows {wrong}" if wrong else None
    if _stays_in_spark(adaptive):  # a UDF that stays in Spark is evaluated on all rows, as Spark does
        return None if _is_of(found, tree, set(MARKS)) else f"another error: {found[:500]}"
    raising = {part for row in ROWS if ERROR in possible[row.id] for part in raising_parts(tree, row)}
    return None if _is_of(found, tree, raising) else f"an error that no row may raise: {found[:500]}"


def _broken_promises(tree: Tree, frame: DataFrame, condition: Any) -> Iterator[str]:  # noqa: ANN401 - as above
    """Where `tw.where` raises for rows that a part rejects, or does not raise for a row that fails and is not rejected.

    The rows that must not raise are filtered alone; then together with a row that must, one for each set of parts.
    """
    settled = [row for row in ROWS if ERROR not in fates(tree, row)]
    failing = {raising_parts(tree, row): row for row in ROWS if fates(tree, row) == {ERROR}}
    expected = [row.id for row in settled if fates(tree, row) == {IN}]
    kept = tw.where(_frame_like(frame, settled), condition)
    if _stays_in_spark(kept):
        return
    found = ids_or_error(kept)
    if found != expected:
        yield f"without the rows that may raise {expected} are to be kept, and not {str(found)[:500]}"
    for parts, row in failing.items():
        found = ids_or_error(tw.where(_frame_like(frame, [*settled, row]), condition))
        if not isinstance(found, str) or not _is_of(found, tree, set(parts)):
            yield f"row {row.id} is to raise an error of {sorted(parts)}, and not {str(found)[:500]}"


def _frame_like(frame: DataFrame, rows: list[ConditionRow]) -> DataFrame:
    return frame.sparkSession.createDataFrame(rows, SCHEMA).coalesce(1)


def _stays_in_spark(frame: DataFrame) -> bool:
    from pyspark.errors import PySparkException

    try:
        return "stays in Spark" in str(tw.explain(frame))
    except PySparkException:  # with Connect, Spark evaluates conditions on rows of the client when it plans them
        return False


def raising_parts(tree: Tree, row: ConditionRow) -> frozenset[str]:
    """The parts of a condition that raise on a row."""
    return frozenset(part for part in parts_of(tree) if outcomes(part, row) == {ERROR})


def _is_of(error: str, tree: Tree, parts: set[str]) -> bool:
    """Whether an error is of one of some parts of a condition."""
    raising = parts & set(parts_of(tree))
    told = [TOLD] if UDFS.keys() & set(parts_of(tree)) and NATIVE.keys() & raising else []
    return any(mark in error for mark in [*(MARKS[part] for part in raising), *told])


def random_tree(random_numbers: random.Random, parts: int) -> Tree:
    """A condition of so many parts, nested at random."""
    if parts == 1:
        leaf = random_numbers.choice(list(VALUES))
        return ("not", [leaf]) if random_numbers.random() < 0.2 else leaf
    first = random_numbers.randint(1, parts - 1)
    operands = [random_tree(random_numbers, first), random_tree(random_numbers, parts - first)]
    tree = (random_numbers.choice(["and", "and", "or"]), operands)
    return ("not", [tree]) if random_numbers.random() < 0.2 else tree


def main(count: int, seed: int) -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", 2).getOrCreate()
    frame, udfs = spark.createDataFrame(ROWS, SCHEMA).coalesce(1), made_udfs()
    for name, udf in udfs.items():
        spark.udf.register(name, udf)
    random_numbers = random.Random(seed)  # noqa: S311 - no secret
    found: list[str] = []
    while count:
        tree = random_tree(random_numbers, random_numbers.randint(2, 6))
        if repeats_an_error(tree):
            continue
        as_text = random_numbers.random() < 0.25
        found += differences(tree, frame, text_of(tree) if as_text else column_of(tree, udfs))
        count -= 1
    print(json.dumps(found))  # noqa: T201 - what the test reads
    spark.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
