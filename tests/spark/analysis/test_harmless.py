"""Conditions that are called safe never raise: tried on the smallest, largest and oddest values of every type."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.spark.analysis.catalyst import facts_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH = 150  # conditions in a Spark job

# For each column of the frame, SQL of its edge values. NULL is added to all of them.
EDGES = {
    "b": ["-128Y", "127Y", "0Y", "-1Y", "1Y"],
    "h": ["-32768S", "32767S", "0S", "-1S"],
    "i": ["-2147483648", "2147483647", "0", "-1", "1", "2024"],
    "l": ["-9223372036854775808L", "9223372036854775807L", "0L", "-1L", "1L"],
    "f": ["float('NaN')", "float('-Infinity')", "3.4e38F", "0F", "-0F", "1.5F"],
    "d": ["double('NaN')", "double('Infinity')", "-1.7e308D", "4.9e-324D", "0D", "-0D", "-1.5D"],
    "m": ["99999999.99BD", "-99999999.99BD", "0.00BD", "-1.00BD", "0.01BD"],
    "w": [f"{'9' * 28}.{'9' * 10}BD", f"-{'9' * 28}.{'9' * 10}BD", "0BD", "1.5BD"],
    "s": [
        "''",
        "'a'",
        "'12'",
        "'-0.5e1'",
        "'2024-02-30'",
        "'2024-01-01 10:00:00'",
        "'NaN'",
        "' \\t\\n'",
        "'\u00df\U0001f600\u0130'",
        "string(x'C3')",
        "string(x'F09F00FF')",
        "'a%b_c\\\\'",
        "repeat('ab\U0001f600', 4000)",
    ],
    "day": [
        "date_add(date'1970-01-01', 2147483647)",
        "date_sub(date'1970-01-01', 2147483647)",
        "date'0001-01-01'",
        "date'2024-02-29'",
    ],
    "ts": [
        "timestamp_micros(9223372036854775807)",
        "timestamp_micros(-9223372036854775807)",
        "timestamp'2024-02-29 23:59:59.999999'",
        "timestamp'0001-01-01 00:00:00'",
    ],
    "nt": ["timestamp_ntz'2024-02-29 12:00:00'", "timestamp_ntz'0001-01-01 00:00:00'"],
    "t": ["true", "false"],
    "a": ["array()", "array(1, NULL, -2147483648)", "array(2147483647)"],
    "n": ["named_struct('x', -2147483648, 'y', 'z')", "named_struct('x', 2147483647, 'y', NULL)"],
    "mp": ["map()", "map('a', -2147483648)", "map('a', 1, '', 2147483647)"],
}
# fmt: off
TYPES = {
    "b": "tinyint", "h": "smallint", "i": "int", "l": "bigint", "f": "float", "d": "double", "m": "decimal(10,2)",
    "w": "decimal(38,10)", "s": "string", "day": "date", "ts": "timestamp", "nt": "timestamp_ntz", "t": "boolean",
    "a": "array<int>", "n": "struct<x:int,y:string>", "mp": "map<string,int>",
}
# fmt: on
NUMBERS = ["tinyint", "smallint", "int", "bigint", "float", "double", "decimal(10,2)", "decimal(38,10)", "decimal(5,0)"]

# Expressions by the kind of their values. In braces stand kinds, and LIST names from CHOICES.
GRAMMAR = {
    "BOOL": """
        t | true | ({NUM} {CMP} {NUM}) | ({NUM} {CMP} {NUM}) | ({STR} {CMP} {STR}) | ({DATE} {CMP} {DATE})
        | ({TS} {CMP} {TS}) | ({TS} {CMP} {DATE}) | (nt {CMP} timestamp_ntz'2020-01-01 00:00:00') | (nt {CMP} {TS})
        | ({STR} {CMP} {NUM}) | ({BOOL} AND {BOOL}) | ({BOOL} OR {BOOL}) | (NOT {BOOL}) | ({NUM} IS NULL)
        | (n IS NOT NULL) | ({NUM} IN ({NUM}, {NUM}, 3)) | ({STR} IN ('a', {STR})) | ({NUM} BETWEEN {NUM} AND {NUM})
        | ({DATE} BETWEEN {DATE} AND current_date()) | ({STR} LIKE '{LIKE}') | ({STR} ILIKE '{LIKE}')
        | ({STR} LIKE '{LIKE}' ESCAPE '/') | ({STR} RLIKE '{REGEX}') | ({STR} RLIKE {STR})
        | startswith({STR}, {STR}) | contains({STR}, {STR}) | endswith({STR}, 'a') | array_contains({ARR}, {INT})
        | exists({ARR}, x -> x > {INT}) | forall({ARR}, x -> 10 / x > 1) | isnan({DBL})
        | (n = named_struct('x', {INT}, 'y', {STR})) | ({ARR} = {ARR}) | if({BOOL}, {BOOL}, {BOOL})
        | coalesce({BOOL}, false) | (day - {DATE} > interval '1' day) | ({TS} - {TS} < interval '1' hour)
        | map_contains_key(mp, {STR}) | cast({STR} AS boolean) | cast({NUM} AS boolean) | try_cast({STR} AS boolean)
        | equal_null({STR}, {STR})
    """,
    "INT": """
        i | b | h | n.x | {SMALL} | {SMALL} | length({STR}) | size({ARR}) | year({DATE}) | month({DATE})
        | weekday({DATE}) | dayofyear({DATE}) | hour({TS}) | second({TS}) | weekofyear({DATE}) | cast({NUM} AS int)
        | try_cast({STR} AS int) | datediff({DATE}, {DATE}) | instr({STR}, {STR}) | locate({STR}, {STR}, {INT})
        | hash({STR}, {NUM}) | a[{SMALL}] | get({ARR}, {INT}) | element_at({ARR}, {SMALL}) | mp['a'] | mp[{STR}]
        | ({INT} + {INT}) | ({INT} % {INT}) | ({INT} & {INT}) | (~{INT}) | shiftleft({INT}, {INT}) | -{INT}
        | abs({INT}) | pmod({INT}, {SMALL}) | quarter({DATE}) | ascii({STR}) | greatest({INT}, {INT})
        | nullif({INT}, {INT}) | nvl({INT}, {SMALL}) | (day({TS}) - {SMALL}) | date_part('year', {TS})
        | cast({BOOL} AS int)
    """,
    "DBL": """
        d | f | 0.5D | double('NaN') | sqrt({DBL}) | ln({DBL}) | log10({DBL}) | pow({DBL}, {DBL}) | ({DBL} / {DBL})
        | ({DBL} * {DBL}) | round({DBL}, {SMALL}) | cast({NUM} AS double) | exp({DBL}) | sin({DBL})
        | ({DBL} % {DBL})
    """,
    "NUM": """
        {INT} | {INT} | {DBL} | l | m | w | bigint({SMALL}) | 1.5BD | {SMALL} | 9223372036854775807L
        | ({NUM} + {NUM}) | ({NUM} - {NUM}) | ({NUM} * {NUM}) | ({NUM} / {NUM}) | ({NUM} % {NUM})
        | ({INT} div {INT}) | (l div {SMALL}) | ({NUM} / {SMALL}) | ({NUM} % {SMALL}) | (l % {SMALL})
        | pmod({NUM}, {NUM}) | pmod(l, {SMALL}) | -{NUM} | abs({NUM}) | cast({NUM} AS {TYPE})
        | cast({NUM} AS {TYPE}) | cast({STR} AS {TYPE}) | try_cast({STR} AS {TYPE}) | try_cast({NUM} AS {TYPE})
        | try_add({NUM}, {NUM}) | try_divide({NUM}, {NUM}) | greatest({NUM}, {NUM}) | coalesce({NUM}, {NUM})
        | if({BOOL}, {NUM}, {NUM}) | CASE WHEN {BOOL} THEN {NUM} ELSE {NUM} END | nullif({NUM}, {NUM})
        | unix_timestamp({TS}) | cast({TS} AS bigint) | xxhash64({STR}, {NUM}) | round({NUM}, 1) | floor({NUM})
        | ceil({NUM}) | crc32({STR}) | cast({BOOL} AS {TYPE}) | (l + {SMALL}) | (bigint({INT}) + {INT})
        | (bigint({INT}) * {INT}) | (m + {SMALL}) | (m * m) | (m / 3) | (w + w) | try_multiply({NUM}, {NUM})
    """,
    "STR": """
        s | n.y | '' | 'a' | '2024-01-01' | '12' | '10:30' | ({STR} || {STR}) | upper({STR}) | lower({STR})
        | trim({STR}) | ltrim({STR}) | btrim({STR}) | substring({STR}, {INT}, {INT}) | substr({STR}, {INT})
        | left({STR}, {INT}) | right({STR}, {INT}) | replace({STR}, {STR}, {STR}) | cast({NUM} AS string)
        | cast({DATE} AS string) | cast({TS} AS string) | cast({BOOL} AS string) | date_format({TS}, '{FORMAT}')
        | date_format({DATE}, '{FORMAT}') | coalesce({STR}, {STR}) | if({BOOL}, {STR}, {STR}) | md5({STR})
        | sha2({STR}, {INT}) | sha1({STR}) | split(s, '{REGEX}')[0] | get(split(s, '{REGEX}'), {INT})
        | initcap({STR}) | concat_ws(',', {STR}, {STR}) | substring_index({STR}, {STR}, {INT}) | nvl({STR}, '')
        | nullif({STR}, {STR}) | decode({INT}, 1, {STR}, {STR})
    """,
    "DATE": """
        day | day | date'2024-02-29' | current_date() | date_add({DATE}, {INT}) | date_sub({DATE}, {SMALL})
        | last_day({DATE}) | add_months({DATE}, {SMALL}) | add_months({DATE}, {INT}) | trunc({DATE}, '{UNIT}')
        | cast({TS} AS date) | to_date({TS}) | to_date({DATE}) | to_date({STR}) | cast({STR} AS date)
        | make_date({SMALL}, {SMALL}, {SMALL}) | ({DATE} - interval '3' month) | ({DATE} + interval '1' day)
        | (current_date() - {SMALL}) | coalesce({DATE}, {DATE}) | try_cast({STR} AS date) | least({DATE}, {DATE})
    """,
    "TS": """
        ts | ts | timestamp'2024-02-29 10:00:00' | now() | cast({DATE} AS timestamp) | date_trunc('{UNIT}', {TS})
        | date_trunc('{UNIT}', {DATE}) | ({TS} - interval '7' day) | ({TS} + interval '1' month)
        | to_timestamp({STR}) | (now() - interval '36' hour) | dateadd(hour, {SMALL}, {TS})
        | timestamp_seconds({INT}) | cast({STR} AS timestamp) | try_cast({STR} AS timestamp) | cast(nt AS timestamp)
        | to_timestamp({TS}) | coalesce({TS}, {TS})
    """,
    "ARR": """
        a | a | array({INT}, {INT}) | filter({ARR}, x -> x > {INT}) | array() | if({BOOL}, {ARR}, {ARR})
    """,
}
CHOICES = {
    "CMP": ["=", "<=>", "<", ">=", "!="],
    "SMALL": [
        "0",
        "1",
        "-1",
        "2",
        "7",
        "-3",
        "30",
        "100",
        "(1 + 1)",
        "cast(0.4D AS int)",
        "cast('5' AS int)",
        "(3 - 4)",
    ],
    "TYPE": NUMBERS,
    "LIKE": ["a%", "%b_", "", "%", "a/%", "a/", "/", "a/b", "a\\\\", "\\\\%", "A\\\\_b"],
    "REGEX": [
        "a",
        "^a.*$",
        "[0-9]+",
        "(a|b)*",
        "(a|b)?c",
        "(",
        "[a",
        "a{2,5}",
        ".{0,99}x",
        "(?i)AB",
        "\\\\d+\\\\.",
        "*",
        ",",
    ],
    "UNIT": ["year", "MM", "week", "day", "hour", "minute", "second", "quarter", "nonsense"],
    "FORMAT": ["yyyy-MM-dd", "HH:mm:ss", "yyyy/MM/dd HH", "Q", "MMM", "nonsense", "yyyy-"],
}
ALTERNATIVES = {kind: re.split(r"\s+\| ", text.strip()) for kind, text in GRAMMAR.items()}


def drawn(kind: str, depth: int, source: random.Random) -> str:
    """SQL of a random expression: deep down a column or a constant."""
    if kind in CHOICES:
        return source.choice(CHOICES[kind])
    alternatives = ALTERNATIVES[kind]
    text = source.choice([part for part in alternatives if "{" not in part] if depth <= 0 else alternatives)
    before, brace, rest = text.partition("{")
    parts = [before]
    while brace:
        inner, _, rest = rest.partition("}")
        between, brace, rest = rest.partition("{")
        parts += [drawn(inner, depth - 1, source), between]
    return "".join(parts)


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, before or "")


@pytest.fixture(scope="module")
def edges(spark: SparkSession) -> DataFrame:
    """Rows with every edge value of every column, in random company, computed once for all tests."""
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

    source = random.Random(1)  # noqa: S311 - no secret
    choices = [[*values, "NULL"] for values in EDGES.values()]
    rows = [[column[number % len(column)] for column in choices] for number in range(16)]
    rows += [[source.choice(column) for column in choices] for _ in range(64)]
    values = ", ".join(f"({', '.join(row)})" for row in rows)
    casts = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in TYPES.items())
    frame = spark.sql(f"SELECT {casts} FROM VALUES {values} AS edges({', '.join(EDGES)})")  # noqa: S608 - constants
    computed = frame._jdf.queryExecution().optimizedPlan()  # noqa: SLF001 - the rows as a plan
    dataset = getattr(spark._jvm, "org.apache.spark.sql.classic.Dataset")  # noqa: SLF001 - no public way to them
    return ClassicFrame(dataset.ofRows(spark._jsparkSession, computed), spark)  # noqa: SLF001 - as above


def analysed(frame: DataFrame, conditions: list[str]) -> list[tuple[str, bool]]:
    """Conditions that Spark accepts, with whether they are safe."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as f

    try:
        facts = facts_of(frame, [f.expr(condition) for condition in conditions])
    except AnalysisException:
        if len(conditions) == 1:
            return []
        middle = len(conditions) // 2
        return analysed(frame, conditions[:middle]) + analysed(frame, conditions[middle:])
    return [(condition, fact.safe) for condition, fact in zip(conditions, facts, strict=True)]


def error_of(frame: DataFrame, conditions: list[str]) -> str | None:
    """The first line of the error that conditions raise on some row."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as f

    try:
        frame.select(*(f.expr(condition).alias(f"c{number}") for number, condition in enumerate(conditions))).collect()
    except (PySparkException, Py4JJavaError) as error:
        return str(error).splitlines()[0]
    return None


def raising(frame: DataFrame, conditions: list[str]) -> list[str]:
    """The conditions that raise on some row, with their errors, found by halves."""
    error = error_of(frame, conditions) if conditions else None
    if error is None:
        return []
    if len(conditions) == 1:
        return [f"{conditions[0]}: {error}"]
    middle = len(conditions) // 2
    return raising(frame, conditions[:middle]) + raising(frame, conditions[middle:])


EVERYDAY = [
    "i > 5",
    "i > 5 AND d < 3.5 OR s IS NULL",
    "l = 3",
    "m > 1.5",
    "m BETWEEN 1 AND 100",
    "s = 'x'",
    "s <=> NULL",
    "s IN ('a', 'b')",
    "NOT t",
    "coalesce(t, false)",
    "n.x >= 3",
    "n.y = 'z'",
    "mp['a'] = 1",
    "get(a, 0) = 1",
    "array_contains(a, 3)",
    "size(a) > 2",
    "exists(a, x -> x > 3)",
    "day >= '2024-01-01'",
    "day >= current_date() - 7",
    "day >= date_sub(current_date(), 7)",
    "day BETWEEN date'2024-01-01' AND date'2024-01-31'",
    "day >= add_months(current_date(), -3)",
    "day >= current_date() - interval 1 month",
    "day >= trunc(current_date(), 'MM')",
    "day = cast('2024-01-01' AS date)",
    "s >= date_format(date_sub(current_date(), 7), 'yyyy-MM-dd')",
    "date_add(day, 7) > current_date()",
    "ts > '2024-01-01 10:00:00'",
    "ts > now() - interval 7 days",
    "ts >= dateadd(hour, -7, now())",
    "to_date(ts) = current_date()",
    "year(ts) = 2024 AND month(ts) IN (1, 2)",
    "hour(ts) BETWEEN 9 AND 17",
    "datediff(current_date(), day) < 30",
    "i % 10 = 3",
    "i > 1 + 1",
    "i / 2 > 1.5",
    "d / (1 + 1) > 2.5",
    "l % cast('10' AS int) = 0",
    "bigint(i) + 1 > 5",
    "m + 1 > 2",
    "pmod(hash(s), 10) = 1",
    "s LIKE 'a%'",
    "s LIKE '100/%' ESCAPE '/'",
    "s ILIKE '%error%'",
    "s RLIKE '^/api/v[0-9]+/(users|orders)?'",
    "s RLIKE concat('a', '+')",
    "startswith(s, 'x') OR contains(s, 'y')",
    "length(trim(s)) > 3 AND upper(s) = 'X'",
    "substring(s, 1, 3) = 'abc'",
    "nvl(i, 0) > 1 AND nullif(s, '') IS NOT NULL",
    "CASE WHEN i > 1 THEN 'a' ELSE 'b' END = 'a'",
    "if(t, i, 2) = 2",
    "try_cast(s AS int) > 5",
    "try_divide(i, l) > 5",
    "isnan(d)",
    "sha2(s, 256) = 'x'",
]
RAISES = [
    "s > 5",
    "cast(s AS int) > 5",
    "cast(s AS date) > current_date()",
    "s = day",
    "t = s",
    "1 / i > 5",
    "l % i = 0",
    "pmod(i, i) = 0",
    "i / cast(0.4D AS int) > 1",
    "l div -1 > 1",
    "l div (2 - 3) > 1",
    "i / 'abc' > 1",
    "d / -0.0D > 1",
    "i + 1 > 5",
    "l - 1 > 5",
    "l * 2 > 5",
    "i * i > 5",
    "b + h > 5 AND h + 1S > 0",
    "-l > 5",
    "abs(i) > 5",
    "abs(w) > 5",
    "cast(l AS int) > 5",
    "cast(d AS bigint) > 5",
    "cast(w AS int) > 5",
    "cast(w AS decimal(10,2)) > 5",
    "w * w > 5",
    "floor(d) > 5",
    "round(i, -1) > 5",
    "a[0] = 1",
    "a[i] = 1",
    "element_at(a, 0) = 1",
    "element_at(a, 5) = 1",
    "s RLIKE s",
    "s RLIKE '('",
    "s LIKE 'a/' ESCAPE '/'",
    "s LIKE 'a/b' ESCAPE '/'",
    "to_date(s) > current_date()",
    "to_timestamp(s) > now()",
    "cast(day AS timestamp) > now()",
    "day > now()",
    "add_months(day, i) > current_date()",
    "day + interval 1 month > current_date()",
    "ts - interval 7 days > now()",
    "date_trunc('year', ts) > now()",
    "make_date(i, i, i) > current_date()",
    "split(s, ',')[3] = 'x'",
    "assert_true(i > 5) IS NULL",
    "cast(raise_error('no') AS boolean)",
    "forall(a, x -> 10 / (x - 1) > 0)",
    "i = (SELECT explode(array(1, 2)))",
]


def test_everyday_conditions_are_safe(spark: SparkSession, edges: DataFrame) -> None:
    for ansi in ("true", "false"):
        with setting(spark, "spark.sql.ansi.enabled", ansi):
            assert [condition for condition, is_safe in analysed(edges, EVERYDAY) if not is_safe] == []
            assert raising(edges, EVERYDAY) == []


@pytest.mark.thorough
def test_conditions_that_raise_are_not_safe(spark: SparkSession, edges: DataFrame) -> None:
    with setting(spark, "spark.sql.ansi.enabled", "true"):
        found = analysed(edges, RAISES)
        assert [condition for condition, _ in found] == RAISES  # Spark accepts all of them
        assert [condition for condition, is_safe in found if is_safe] == []
        assert [condition for condition in RAISES if error_of(edges, [condition]) is None] == []


def test_old_calendars_overflow(spark: SparkSession, edges: DataFrame) -> None:
    conditions = ["date_format(ts, 'yyyy-MM-dd') = 'x'", "cast(day AS string) = 'x'"]
    with setting(spark, "spark.sql.legacy.timeParserPolicy", "LEGACY"):
        assert len(raising(edges, conditions)) == 2
        assert analysed(edges, conditions) == [(condition, False) for condition in conditions]
        everyday = "s >= date_format(current_date() - 7, 'yyyy') AND s < cast(current_date() AS string)"
        assert analysed(edges, [everyday]) == [(everyday, True)]


@pytest.mark.thorough
@pytest.mark.parametrize("ansi", ["true", "false"])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=3)
def test_safe_conditions_do_not_raise(spark: SparkSession, edges: DataFrame, ansi: str, seed: int) -> None:
    source = random.Random(seed)  # noqa: S311 - no secret
    conditions = [drawn("BOOL", source.choice([2, 3, 3, 4]), source) for _ in range(BATCH)]
    zone = source.choice(["UTC", "America/St_Johns"])
    with setting(spark, "spark.sql.ansi.enabled", ansi), setting(spark, "spark.sql.session.timeZone", zone):
        found = analysed(edges, conditions)
        safe = [condition for condition, is_safe in found if is_safe]
        assert raising(edges, safe) == []
    assert len(found) > 0.9 * BATCH  # Spark accepts what the grammar writes
    assert len(safe) > 0.25 * BATCH  # and much of it is proved
