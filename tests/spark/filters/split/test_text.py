from __future__ import annotations

import pytest
from hypothesis import given
from tests.spark.filters.split.conditions import Tree, trees_of

from thalweg.spark.filters.split.text import take_text_apart

PARTS = (
    "a > 1",
    "x BETWEEN 1 AND 5",
    "x NOT BETWEEN CASE WHEN p AND q THEN 1 END AND 5",
    "s = 'it\\'s and or'",
    '`and` = "or"',
    "exists(l, y -> y > 1 AND y < 2 OR y = 7)",
    "CASE WHEN a AND b THEN c ELSE NOT d END",
    "k IN (SELECT k FROM t WHERE a AND b)",
    "s IS NOT NULL",
    "a[x OR y]",
    "s RLIKE r'\\' /* and */",
)
TREES = trees_of(PARTS, 8)


def text_of(tree: Tree) -> str:
    if isinstance(tree, str):
        return tree
    connective, operands = tree
    texts = [operand if isinstance(operand, str) else f"( {text_of(operand)} )" for operand in operands]
    return f"NOT {texts[0]}" if connective == "not" else f" {connective} ".join(texts)


def without_parentheses(text: str) -> str:
    return text.removeprefix("( ").removesuffix(" )")


def tree_of(text: str) -> Tree:
    found = take_text_apart(text)
    return without_parentheses(text) if found is None else (found[0], [tree_of(operand) for operand in found[1]])


@given(TREES)
def test_a_text_is_taken_apart_as_it_was_put_together(tree: Tree) -> None:
    def comparable(tree: Tree) -> Tree:
        return tree.removesuffix(" /* and */") if isinstance(tree, str) else (tree[0], [*map(comparable, tree[1])])

    assert comparable(tree_of(text_of(tree))) == comparable(tree)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a or b and c", ("or", ("a", "b and c"))),
        ("NOT a AND b", ("and", ("NOT a", "b"))),
        ("NOT a = b", ("not", ("a = b",))),
        ("((a)) AND ((b))", ("and", ("((a))", "((b))"))),
        ("((a AND b))", ("and", ("a", "b"))),
        ("a AND b -- OR c", ("and", ("a", "b"))),
        ("a || b AND c", ("and", ("a || b", "c"))),
    ],
)
def test_precedence(text: str, expected: object) -> None:
    assert take_text_apart(text) == expected


@pytest.mark.parametrize(
    "text", ["a", "", "a AND", "t.and AND b", "(SELECT a AND b)", "'open", "t.end > 1 AND b", "NOT"]
)
def test_a_text_without_connectives_or_out_of_the_ordinary_stays_whole(text: str) -> None:
    assert take_text_apart(text) is None
