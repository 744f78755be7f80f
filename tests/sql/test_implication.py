"""Implication: pairs that must be seen, pairs that must not be claimed, and no counterexample to any claim."""

import operator

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.sql.implication import implies


@pytest.mark.parametrize(
    ("stronger", "weaker"),
    [
        ("`a` > 10", "`a` > 5"),
        ("`a` > 10", "`a` >= 10"),
        ("`a` > 10", "NOT `a` IS NULL"),
        ("`a` = 7", "`a` > 5"),
        ("`a` = 7", "`a` BETWEEN 7 AND 8"),
        ("5 < `a`", "`a` >= 5"),
        ("`a` IN (1, 2)", "`a` < 3"),
        ("`a` IN (1, 2)", "`a` IN (3, 2, 1)"),
        ("`a` IN ('x')", "`a` IN ('y', 'x')"),
        ("`a` BETWEEN -2 AND 3", "`a` >= -2"),
        ("`a`.`f` < 1.25", "(`a`.`f` < 1.5)"),
        ("`a` LIKE 'ab%'", "`a` LIKE 'a%'"),
        ("`a` = 'x'", "`a` IS NOT NULL"),
        ("`a` > `b`", "NOT `a` IS NULL"),
        ("f(`a`) OR `b`", "f(`a`) OR `b`"),
    ],
)
def test_implications_that_are_seen(stronger: str, weaker: str) -> None:
    assert implies(stronger, weaker)


@pytest.mark.parametrize(
    ("stronger", "weaker"),
    [
        ("`a` > 5", "`a` > 10"),
        ("`a` >= 10", "`a` > 10"),
        ("`a` > 10", "`b` > 5"),
        ("`a` IS NULL", "NOT `a` IS NULL"),
        ("NOT `a` > 10", "NOT `a` IS NULL"),
        ("`a` > 10.5", "`a` > 10"),  # a column of text is compared as a double, then as an integer
        ("`a` >= 16777217", "`a` > 16777216"),  # both are the same float
        ("`a` > 1e3", "`a` > 1e2"),
        ("`a` = 1", "`a` IN (1, 2)"),  # '01' = 1 is true under legacy casts, '01' IN (1, 2) is not
        ("`a` > 'b'", "`a` > 'a'"),  # depends on the collation
        ("`a` = 'ab'", "`a` LIKE 'a%'"),  # as above
        ("`a` LIKE 'ab%'", "`a` LIKE 'b%'"),
        ("`a` LIKE 'a_%'", "`a` LIKE 'a%'"),
        ("`a` ILIKE 'ab%'", "`a` LIKE 'a%'"),
        ("`a` > DATE '2020-01-02'", "`a` > DATE '2020-01-01'"),
        ("`a` IN (1, NULL)", "`a` < 3"),
        ("`a` IS NOT DISTINCT FROM `b`", "NOT `a` IS NULL"),
    ],
)
def test_implications_that_are_not_claimed(stronger: str, weaker: str) -> None:
    assert not implies(stronger, weaker)


NUMBERS = st.sampled_from(["-3", "0", "1", "2", "3", "1.0", "1.5", "2.25", "-0.5"])
TEXTS = st.sampled_from(["'a'", "'ab'", "'abc'", "'b'", "''"])
CONDITIONS = st.one_of(
    st.builds("`a` {} {}".format, st.sampled_from(["=", "<", "<=", ">", ">="]), NUMBERS),
    st.builds("{} {} `a`".format, NUMBERS, st.sampled_from(["=", "<", "<=", ">", ">="])),
    st.builds("`a` BETWEEN {} AND {}".format, NUMBERS, NUMBERS),
    st.builds(lambda numbers: f"`a` IN ({', '.join(numbers)})", st.lists(NUMBERS, min_size=1, max_size=3)),
    st.just("NOT `a` IS NULL"),
)
TEXT_CONDITIONS = st.one_of(
    st.builds("`a` LIKE {}".format, st.sampled_from(["'%'", "'a%'", "'ab%'", "'a_'", "'%b'", "'ab'"])),
    st.builds("`a` {} {}".format, st.sampled_from(["=", "<", ">="]), TEXTS),
    st.builds(lambda texts: f"`a` IN ({', '.join(texts)})", st.lists(TEXTS, min_size=1, max_size=3)),
    st.just("NOT `a` IS NULL"),
)
EDGES = (
    "VALUES (NULL), (-4), (-3), (-0.5), (0), (0.5), (1), (1.25), (1.5), (2), (2.25), (2.5), (3), (4), ('NaN'::DOUBLE)"
)
TEXT_EDGES = "VALUES (NULL), (''), ('a'), ('ab'), ('abc'), ('abd'), ('b'), ('A'), ('ba'), ('a%')"


CONNECTION = duckdb.connect()


def counterexamples(stronger: str, weaker: str, values: str, kind: str) -> int:
    test = f"({stronger}) AND ({weaker}) IS NOT TRUE".replace("`", '"')
    query = f"SELECT count(*) FROM (SELECT a::{kind} AS a FROM ({values}) AS v(a)) WHERE {test}"  # noqa: S608
    row = CONNECTION.execute(query).fetchone()
    assert row is not None
    return int(row[0])


@settings(max_examples=60)
@given(CONDITIONS, CONDITIONS)
def test_an_implication_of_numbers_has_no_counterexample(stronger: str, weaker: str) -> None:
    if implies(stronger, weaker):
        assert counterexamples(stronger, weaker, EDGES, "DOUBLE") == 0


@settings(max_examples=60)
@given(TEXT_CONDITIONS, TEXT_CONDITIONS)
def test_an_implication_of_texts_has_no_counterexample(stronger: str, weaker: str) -> None:
    if implies(stronger, weaker):
        assert counterexamples(stronger, weaker, TEXT_EDGES, "VARCHAR") == 0


COMPARISONS = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@pytest.mark.parametrize("sign", COMPARISONS)
@pytest.mark.parametrize("other_sign", COMPARISONS)
def test_comparisons_with_integers_are_decided_exactly(sign: str, other_sign: str) -> None:
    """Halves between the literals tell open bounds from closed bounds."""
    halves = [count / 2 for count in range(-8, 9)]
    for other in (-1, 0, 1):
        passing = [half for half in halves if COMPARISONS[sign](half, 0)]
        expected = all(COMPARISONS[other_sign](half, other) for half in passing)
        assert implies(f"`a` {sign} 0", f"`a` {other_sign} {other}") == expected
