"""Expressions through sqlglot and back: a list of round trips, each checked with Spark's own parser once."""

import pytest
import sqlglot
from sqlglot import expressions as e

from thalweg.sql.dialect import VerbatimSpark, put_interval_sums_in_parentheses, render


def round_trip(text: str) -> str:
    tree = e.Paren(this=sqlglot.parse_one(text, dialect=VerbatimSpark))
    put_interval_sums_in_parentheses(tree)
    return render(tree.this)


@pytest.mark.parametrize(
    "text",
    """
    `a` + `b` * `c` - 1
    `a` DIV 2 % 3
    -`a`
    ~`a` & `b` | `c` ^ `d`
    `a` || `b` || 'c'
    NOT `a` AND `b` OR `c`
    `a` IS TRUE
    NOT `a` IS NULL
    `a` IS DISTINCT FROM `b`
    `a` BETWEEN 1 AND 2
    NOT `a` IN (1, 2.50, -3)
    `a` LIKE 'x!%' ESCAPE '!'
    `a` ILIKE 'x'
    `a` LIKE ANY ('x', 'y')
    `a` RLIKE '^x'
    CASE `a` WHEN 1 THEN 2 ELSE 3 END
    CASE WHEN `a` > 1 THEN 2 END
    if(`a` > 1, 2, 3)
    nvl(`a`, `b`)
    CAST(`a` AS DECIMAL(10, 2))
    TRY_CAST(`a` AS INT)
    CAST(`a` AS STRUCT<`x`: INT>)
    CAST(`a` AS TIMESTAMP_NTZ)
    EXTRACT(YEAR FROM `d`)
    TRIM(LEADING 'x' FROM `a`)
    substring(`a`, 1, 2)
    `m`['k']
    `a`[0].`b`
    array(1, 2)[0]
    map('a', 1)['a']
    named_struct('a', 1).`a`
    struct(`a` AS `x`, `b`)
    transform(`arr`, `x` -> `x`.`y` + `z`)
    aggregate(`arr`, 0, (`acc`, `x`) -> `acc` + `x`)
    exists(`arr`, `x` -> `x` > 1)
    date_sub(`d`, 1)
    dateadd(DAY, 1, `d`)
    timestampdiff(HOUR, `a`, `b`)
    date_format(`d`, 'yyyy-MM')
    to_date(`a`, 'yyyy')
    to_char(`a`, '99')
    unix_timestamp(`a`)
    regexp_extract(`a`, 'x(y)', 1)
    regexp_like(`a`, 'x')
    get_json_object(`a`, '$.b')
    log(`a`)
    array_size(`a`)
    count(*)
    count(DISTINCT `x`, `y`)
    sum(`x`) FILTER(WHERE `x` > 1)
    percentile_cont(0.5) WITHIN GROUP (ORDER BY `a` DESC)
    INTERVAL '1 2:3' DAY TO MINUTE
    X'1F'
    1e3
    """.strip().splitlines(),
)
def test_expressions_that_are_written_back_unchanged(text: str) -> None:
    assert round_trip(text.strip()) == text.strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a <=> b", "`a` IS NOT DISTINCT FROM `b`"),
        ("a == b", "`a` = `b`"),
        ("a != b", "`a` <> `b`"),
        ("!a", "NOT `a`"),
        ("a::int", "CAST(`a` AS INT)"),
        ("a > b IS NULL", "(`a` > `b`) IS NULL"),
        ("a << 1", "shiftleft(`a`, 1)"),
        ("DATE '2020-01-01'", "CAST('2020-01-01' AS DATE)"),
        ("interval 10 seconds", "INTERVAL '10' SECONDS"),
        ("ts - interval 1 day 2 hours", "`ts` - (INTERVAL '1' DAY + INTERVAL '2' HOURS)"),
        ("10L", "CAST(10 AS BIGINT)"),
        ("1.0BD", "CAST('1.0' AS DECIMAL(2, 1))"),
        ("POSITION('a' IN b)", "locate('a', `b`)"),
        ("Upper(`c``d`)", "upper(`c``d`)"),
        ("'it''s'", r"'it\'s'"),
        ("'it' 's'", "concat('it', 's')"),
        ('"a""b"', "'a\"b'"),
        (r"'x\d\\d\n\u0041'", r"'xd\\d\nA'"),
        (r"r'\d'", r"'\\d'"),
        (r"'100\%'", r"'100\\%'"),
    ],
)
def test_expressions_that_are_written_in_another_form(text: str, expected: str) -> None:
    assert round_trip(text) == expected
