"""Join conditions, taken apart."""

from __future__ import annotations

import pytest

from thalweg.joinorder.text import Attribute
from thalweg.spark.joins.condition import parse_on

COLUMNS = {"A": ["k", "id.orig_h", "a`b", "ts", "k + 1"], "B": ["k", "x", "ts"]}


@pytest.mark.parametrize(
    ("text", "equalities"),
    [
        ("A.k = B.k", ["A.k = B.k"]),
        ("a.K = b.k AND (B.k = A.k)", ["A.k = B.k"]),
        ("A.`id.orig_h` = B.x AND A.`a``b` = B.k", ["A.`id.orig_h` = B.x", "A.`a``b` = B.k"]),
        ("lower(A.k) = B.x", ["A.`lower(k)` = B.x"]),
        ("A.k + 1 = B.x", ["A.`(k + 1)` = B.x"]),  # it has a column `k + 1`
        ("CAST(A.ts AS DATE) = CAST(B.ts AS DATE)", ["A.`CAST(ts AS DATE)` = B.`CAST(ts AS DATE)`"]),
    ],
)
def test_equalities(text: str, equalities: list[str]) -> None:
    assert [str(equality) for equality in parse_on(text, COLUMNS).equalities] == equalities


def test_expressions_become_computed_keys() -> None:
    condition = parse_on("A.k + 1 = B.x AND A.k + 1 = lower(B.k)", COLUMNS)
    assert condition.computed == (
        (Attribute("A", "(k + 1)"), "`A`.`k` + 1"),
        (Attribute("B", "lower(k)"), "lower(`B`.`k`)"),
    )


def test_filters_and_residuals() -> None:
    condition = parse_on("A.k = B.k AND A.`a``b` > 5 AND a.k < b.x AND A.ts - INTERVAL 1 day 2 hours > B.ts", COLUMNS)
    assert condition.filters == (("A", "`A`.`a``b` > 5"),)
    assert [text for text, _ in condition.residuals] == [
        "A.k < B.x",
        "A.ts - (INTERVAL '1' DAY + INTERVAL '2' HOURS) > B.ts",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A.k = B.k AND 1 = 1", "'1 = 1' names no column; leave it out"),
        ("A.x.y = B.k", "'A.x.y' is a part of a column"),
        ("A.k = B.k AND EXISTS (SELECT 1)", "on= has a subquery"),
        ("A.k = B.k = 5 AND C.k = B.k", "'C.k' is of no stream in the join"),
        ("A.k <=> B.k", "no equality connects A and B"),
    ],
)
def test_errors_say_what_to_write(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_on(text, COLUMNS)


def test_inputs_that_are_not_connected_are_named() -> None:
    columns = {name: ["k"] for name in "ABCD"}
    with pytest.raises(ValueError, match=r"no equality connects A, C and B, D\. Add the missing equalities"):
        parse_on("A.k = C.k AND B.k = D.k", columns)


def test_a_condition_that_nests_too_deep() -> None:
    depth = 3000
    with pytest.raises(ValueError, match="nests too deep; write a condition like"):
        parse_on("(" * depth + "A.k = B.k" + ")" * depth, COLUMNS)
