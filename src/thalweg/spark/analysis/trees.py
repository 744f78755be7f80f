"""Catalyst's trees of expressions, as Spark writes them in JSON: functions that look at them, and ask Spark nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator

from thalweg.spark.analysis.harmless import CLOCKS, Node

# Catalyst's expressions that take nanoseconds, as do casts between numbers; constants Spark evaluates beforehand.
# fmt: off
CHEAP = {
    "Abs", "Add", "Alias", "And", "AttributeReference", "Between", "BitwiseAnd", "BitwiseNot", "BitwiseOr",
    "BitwiseXor", "CaseWhen", "Coalesce", "CommonExpressionDef", "CommonExpressionRef", "DateAdd", "DateDiff",
    "DateSub", "Divide", "EqualNull", "EqualNullSafe", "EqualTo", "GetStructField", "GreaterThan",
    "GreaterThanOrEqual", "If", "In", "IntegralDivide", "IsNaN", "IsNotNull", "IsNull", "LessThan", "LessThanOrEqual",
    "Multiply", "Not", "NullIf", "NullIfResult", "Nvl", "Nvl2", "Or", "Pmod", "Remainder", "Subtract", "UnaryMinus",
    "With",
}
# fmt: on
NUMBER = re.compile(r"byte|short|integer|long|float|double|decimal\(.*\)")
TEXT_TESTS = {"Contains", "EndsWith", "Like", "LikeAll", "LikeAny", "StartsWith"}  # which data sources evaluate, too


def tree_of(text: str) -> Node:
    """The tree that Catalyst wrote as a JSON list, in which every node comes before its children.

    >>> tree_of('[{"class": "a.Not", "num-children": 1}, {"class": "a.Literal", "num-children": 0}]').children[0].kind
    'Literal'
    """
    listed = json.loads(text)
    trees: list[Node] = []  # of the nodes that follow in the list, the next tree last
    for number in range(len(listed) - 1, -1, -1):
        fields = listed[number]
        children = tuple(trees.pop() for _ in range(fields["num-children"]))
        trees.append(Node(fields["class"].rpartition(".")[2], fields, children, number))
    return trees.pop()


def nodes_in(tree: Node) -> Iterator[Node]:
    """An expression and all in it, each before its operands."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def is_cheap(tree: Node) -> bool:
    """Whether an expression takes nanoseconds."""
    if all(node.kind == "Literal" or node.kind in CLOCKS for node in nodes_in(tree) if not node.children):
        return True
    return (tree.kind in CHEAP or _is_cheap_cast(tree)) and all(map(is_cheap, tree.children))


def _is_cheap_cast(tree: Node) -> bool:
    """Whether an expression is a cast to a number that reads no text."""
    if tree.kind != "Cast" or not NUMBER.fullmatch(str(tree.fields["dataType"])):
        return False
    return all(node.fields.get("dataType") != "string" for node in nodes_in(tree))


def is_source_test(tree: Node) -> bool:
    """Whether an expression is made of tests that Spark may hand to a data source.

    A cheap expression counts as such a test: Spark's optimizer decides which of them a source gets.
    """
    if tree.kind in {"And", "Or", "Not"}:
        return all(map(is_source_test, tree.children))
    if tree.kind in TEXT_TESTS:
        return all(is_cheap(child) for child in tree.children)
    return is_cheap(tree)


def prunes_by(tree: Node, partitions: Collection[int]) -> bool:
    """Whether Spark can prune partitions by a condition or a part of it; `partitions` are the numbers of such columns.

    Of a disjunction each member has to read partition columns alone, at least in a part.
    """
    if tree.kind == "And":
        return any(prunes_by(child, partitions) for child in tree.children)
    if tree.kind == "Or":
        return all(prunes_by(child, partitions) for child in tree.children)
    numbers = numbers_in(tree)
    return bool(numbers) and all(number in partitions for number in numbers)


def runs_python(tree: Node) -> bool:
    """Whether an expression calls a Python UDF."""
    return any("PythonUDF" in node.kind for node in nodes_in(tree))


def numbers_in(tree: Node) -> list[int]:
    """Catalyst's numbers of the columns that an expression reads, in the order in which they occur."""
    return [node.fields["exprId"]["id"] for node in nodes_in(tree) if node.kind == "AttributeReference"]


def columns_in(tree: Node, names: dict[int, str]) -> tuple[str, ...] | None:
    """The names of the columns that a condition reads, each once, in the order in which they occur."""
    numbers = numbers_in(tree)
    if any(number not in names for number in numbers):
        return None
    return tuple(dict.fromkeys(names[number] for number in numbers))
