"""What Spark's analysis tells of a condition before it runs: whether it can raise, what it costs, whether it is random.

Read from Catalyst's expression tree, with lists of what is known to be harmless; of all else the worst is assumed.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Catalyst's expressions that compare, and hence take nanoseconds; none of them raises.
# fmt: off
CHEAP = frozenset({
    "Alias", "And", "AttributeReference", "Between", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "CaseWhen",
    "Coalesce", "CommonExpressionDef", "CommonExpressionRef", "EqualNullSafe", "EqualTo", "GetStructField",
    "GreaterThan", "GreaterThanOrEqual", "If", "In", "InSet", "IsNaN", "IsNotNull", "IsNull", "LessThan",
    "LessThanOrEqual", "Literal", "Not", "Or", "With",
})
# And more that do not raise, but take longer.
SAFE = CHEAP | {
    "ArrayContains", "Concat", "Contains", "DayOfMonth", "EndsWith", "Hour", "Length", "Lower", "Md5", "Minute",
    "Month", "Murmur3Hash", "Second", "Sha1", "Sha2", "Size", "StartsWith", "StringTrim", "StringTrimLeft",
    "StringTrimRight", "Substring", "Upper", "XxHash64", "Year",
}
# fmt: on
DIVISIONS = frozenset({"Divide", "IntegralDivide", "Pmod", "Remainder"})  # they raise for a divisor of zero
PATTERNS = frozenset({"Like", "RLike"})  # they raise for a malformed pattern
WIDENING = {  # casts that always succeed
    "byte": {"short", "integer", "long", "float", "double"},
    "short": {"integer", "long", "float", "double"},
    "integer": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "date": {"timestamp"},
}
# Where there is no access to the tree, functions whose value is not a function of the row, by name.
RANDOM = re.compile(
    r"\b(rand|randn|random|uuid|shuffle|randstr|uniform|monotonically_increasing_id|spark_partition_id|input_file_name|"
    r"reflect|java_method)\("
)


@dataclass(frozen=True)
class Facts:
    """What is known of a condition without running it."""

    safe: bool  # it cannot raise
    cheap: bool  # it takes nanoseconds
    deterministic: bool
    columns: tuple[str, ...] | None = None  # that it reads, None where they cannot be told


@dataclass(frozen=True)
class Node:
    """An expression in Catalyst's tree."""

    kind: str
    about: dict[str, Any]
    children: tuple[Node, ...]


def facts_of(frame: DataFrame, conditions: Sequence[Column]) -> list[Facts]:
    """What is known of conditions on a DataFrame. Spark refuses those that it cannot analyse."""
    if not conditions:
        return []
    filtered = frame.where(reduce(operator.and_, conditions))
    if not hasattr(filtered, "_jdf"):  # Connect: the tree is at the other end
        _ = filtered.schema  # analyse it now
        return [Facts(safe=False, cheap=False, deterministic=not RANDOM.search(str(one))) for one in conditions]
    together = filtered._jdf.queryExecution().analyzed().condition()  # noqa: SLF001 - no public way to the plan
    trees = _parts(_tree(iter(json.loads(together.toJSON()))), len(conditions))
    # Spark knows of all of them at once whether they are deterministic; only if not, each has to be asked.
    is_one_random = not together.deterministic()
    return [
        Facts(
            safe=_all(tree, SAFE),
            cheap=_all(tree, CHEAP),
            deterministic=not _is_python(tree) and not (is_one_random and _is_random(frame, condition)),
        )
        for tree, condition in zip(trees, conditions, strict=True)
    ]


def _is_random(frame: DataFrame, condition: Column) -> bool:
    plan = frame.where(condition)._jdf.queryExecution().analyzed()  # noqa: SLF001 - as above
    return not plan.condition().deterministic()


def _parts(conjunction: Node, count: int) -> list[Node]:
    """The conditions that were put together, one after the other."""
    if count == 1:
        return [conjunction]
    left, right = conjunction.children
    return [*_parts(left, count - 1), right]


def _tree(nodes: Iterator[dict[str, Any]]) -> Node:
    """The tree of a list in which every node comes before its children."""
    about = next(nodes)
    children = tuple(_tree(nodes) for _ in range(about["num-children"]))
    return Node(about["class"].rpartition(".")[2], about, children)


def _all(node: Node, known: frozenset[str]) -> bool:
    """Whether an expression and all below it are known, or harmless as they stand there."""
    return _is_harmless(node, known) and all(_all(child, known) for child in node.children)


def _is_harmless(node: Node, known: frozenset[str]) -> bool:
    if node.kind == "Cast":
        return _always_succeeds(node)
    if node.kind in DIVISIONS:
        divisor = node.children[1]
        while divisor.kind == "Cast":
            divisor = divisor.children[0]
        return divisor.kind == "Literal" and float(divisor.about["value"] or 0) != 0
    if node.kind in PATTERNS:
        return known is SAFE and node.children[1].kind == "Literal"
    return node.kind in known


def _always_succeeds(cast: Node) -> bool:
    child = cast.children[0]
    source, target = child.about.get("dataType"), cast.about["dataType"]
    if child.kind == "Literal" or target in (source, "string"):  # a type may be a dictionary, hence no set
        return True
    return isinstance(source, str) and target in WIDENING.get(source, set())


def _is_python(node: Node) -> bool:
    return "PythonUDF" in node.kind or any(_is_python(child) for child in node.children)
