"""Reads facts about a condition from Spark's analysis, before it runs: errors, cost, determinism and columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from thalweg.spark.analysis.harmless import Node, Prover
from thalweg.spark.analysis.repeated_conditions import RESULT_ID, analysed_once
from thalweg.spark.analysis.trees import (
    columns_in,
    is_cheap,
    is_source_test,
    nodes_in,
    numbers_in,
    runs_python,
    tree_of,
)
from thalweg.spark.error_log import errors_not_logged
from thalweg.spark.frames import Answers, once_a_frame, plan_of
from thalweg.spark.jvm import CATALYST, java_class
from thalweg.spark.operators import all_of, analysed_column, analysed_expression, plain_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

ATTRIBUTE = re.compile(r"(.*)#(\d+)L?(-T\d+ms)?", re.DOTALL)  # as Spark writes it: name, number, type, watermark
SEPARATOR = "\0"  # occurs in no name
NULL_TESTS = frozenset({"IsNull", "IsNotNull", "EqualNullSafe"})  # kinds of expressions that become tests for NULL
MOST_ANALYSES = 200  # that are remembered
# Rules of Spark's optimizer that leave parts of a condition out; the last two take NULL for FALSE, as a filter does.
SIMPLIFYING = (
    "ReplaceExpressions",
    "ConstantFolding",
    "NullPropagation",
    "OptimizeIn",
    "UnwrapCastInBinaryComparison",
    "SimplifyBinaryComparison",
    "BooleanSimplification",
    "ReplaceNullWithFalseInPredicate",
    "SimplifyConditionals",
)
MOST_PASSES = 5  # through these rules, until none changes the condition

_analyses: dict[tuple[str, str, Hashable], CatalystAnalysis] = {}  # by conditions, columns and settings
_null_intolerant: dict[str, bool] = {}  # by Catalyst's classes, as the JVM has told: every question to it takes time


@dataclass(frozen=True)
class Facts:
    """Facts about a condition that are known without running it."""

    safe: bool  # it cannot raise, on any row of any data of these types, under the session's settings
    cheap: bool  # it takes nanoseconds: comparisons of columns and constants
    deterministic: bool
    columns: tuple[str, ...] | None = None  # the top-level columns that it reads; None where names cannot tell them
    not_null: tuple[str, ...] = ()  # columns that are not NULL where it is true
    tests_null: bool = False  # a part tests for NULL: Spark may evaluate it behind conditions on other columns
    calls_udf: bool = False  # a Python UDF that Spark calls itself is in it, and all of it is deterministic otherwise
    is_own: bool = True  # False for a condition, on Connect, that reads a column which the DataFrame no longer has
    is_truth: bool = True  # False for a text or a bare NULL, of which AND and OR make a truth value, and nothing else
    source_test: bool = False  # it is safe, and made of tests that Spark may hand to a data source
    tree: Node | None = field(default=None, repr=False, compare=False)  # Catalyst's, where it is known

    @classmethod
    def of_group(cls, members: Sequence[Facts], tree: Node | None = None) -> Facts:
        """The facts about a conjunction or a disjunction of conditions."""
        columns = [member.columns for member in members if member.columns is not None]
        return cls(
            safe=all(member.safe for member in members),
            cheap=all(member.cheap for member in members),
            deterministic=all(member.deterministic for member in members),
            columns=tuple(dict.fromkeys(chain.from_iterable(columns))) if len(columns) == len(members) else None,
            tests_null=any(member.tests_null for member in members),
            calls_udf=all(member.calls_udf or member.deterministic for member in members)
            and any(member.calls_udf for member in members),
            source_test=all(member.source_test for member in members),
            tree=tree,
        )


@dataclass(frozen=True, eq=False)
class CatalystAnalysis:
    """The analysis of all conditions on a DataFrame of a classic session."""

    catalyst: Catalyst
    tree: Node  # of the conjunction of all conditions
    names: dict[int, str]  # of the DataFrame's columns, by Catalyst's numbers, where a name means one column
    numbers: frozenset[int]  # of all columns of the DataFrame
    answers: Answers = field(default_factory=Answers, repr=False)

    @cached_property
    def prover(self) -> Prover:
        """Proves that expressions cannot raise."""
        return Prover(self.catalyst.fold, self.catalyst.property_of)

    @cached_property
    def is_deterministic(self) -> bool:
        """Whether all conditions are, as far as Spark knows."""
        return bool(self.catalyst.root.deterministic())

    def facts(self, tree: Node) -> Facts:
        """The facts about a condition in the tree."""
        safe, calls_udf = self.prover.is_harmless(tree), runs_python(tree)
        deterministic = self.is_deterministic or self.catalyst.property_of(tree, "deterministic") == "True"
        return Facts(
            safe=safe,
            cheap=safe and is_cheap(tree),
            deterministic=deterministic and not calls_udf,
            calls_udf=deterministic and calls_udf,
            columns=columns_in(tree, self.names),
            not_null=tuple(dict.fromkeys(_not_null(tree, self.catalyst, self.names))),
            tests_null=any(node.kind in NULL_TESTS for node in nodes_in(tree)),
            source_test=safe and is_source_test(tree),
            tree=tree,
        )


@dataclass(frozen=True, eq=False)
class AnalysedCondition:
    """A condition after Catalyst's analysis, or a part of such a condition."""

    tree: Node
    analysis: CatalystAnalysis

    @property
    def facts(self) -> Facts:
        """The facts about the condition."""
        return self.analysis.answers.once(("facts", self.tree.number), lambda: self.analysis.facts(self.tree))

    @property
    def sql(self) -> str:
        """The condition as SQL text."""
        return self.analysis.answers.once(
            ("sql", self.tree.number), lambda: self.analysis.catalyst.property_of(self.tree, "sql") or self.tree.kind
        )

    @property
    def column(self) -> Column | None:
        """A Column of the condition, which knows its columns by identity; None where Spark gives no Column."""
        return self.analysis.answers.once(
            ("column", self.tree.number), lambda: self.analysis.catalyst.column(self.tree)
        )

    @property
    def parts(self) -> list[AnalysedCondition]:
        """The conditions that this condition is made of."""
        return [AnalysedCondition(child, self.analysis) for child in self.tree.children]

    @property
    def stands_alone(self) -> bool:
        """Whether the condition reads columns of the DataFrame and nothing else: neither others nor a subquery."""
        return self.reads_own_columns and not any("plan" in node.fields for node in nodes_in(self.tree))

    @property
    def reads_own_columns(self) -> bool:
        """Whether the condition reads columns of the DataFrame alone, and none that Spark adds for it.

        Spark adds the arguments of functions that are written in SQL.
        """
        return self.analysis.numbers.issuperset(numbers_in(self.tree))


def facts_of(frame: DataFrame, conditions: Sequence[Column]) -> list[Facts]:
    """The facts about conditions on a DataFrame. Spark refuses conditions that it cannot analyse."""
    if not conditions or hasattr(frame, "_jdf"):
        return [condition.facts for condition in analyse(frame, conditions)]
    from thalweg.spark.analysis.connect import is_simple_test, may_be_random, types_of_conditions

    found = []
    for condition, type_name in zip(conditions, types_of_conditions(frame, conditions), strict=True):
        is_own = type_name is not None
        simple, deterministic = is_own and is_simple_test(frame, condition), not may_be_random(condition)
        tests_null = any(test in str(condition).lower() for test in ("null", "<=>"))
        is_truth = type_name in ("boolean", None)
        found.append(
            Facts(
                simple,
                simple,
                deterministic,
                columns=None,
                tests_null=tests_null,
                is_truth=is_truth,
                is_own=is_own,
                source_test=simple,
            )
        )
    return found


def analyse(frame: DataFrame, conditions: Sequence[Column]) -> list[AnalysedCondition]:
    """Let Catalyst analyse conditions on a DataFrame of a classic session, all at once.

    Spark refuses conditions that it cannot analyse.
    """
    if not conditions:
        return []
    conjunction = all_of(conditions)

    def analysed(written: Column, settings: Hashable) -> CatalystAnalysis:
        condition = analysed_expression(conjunction)  # of a plan that Spark has analysed
        if condition is None or not stands_on(frame, condition):
            condition = _condition_of(plan_of(frame.where(written)))
        return _remembered(frame, condition, settings)

    analysis = analysed_once(frame, conjunction, analysed)
    return [AnalysedCondition(tree, analysis) for tree in _operands(analysis.tree, len(conditions))]


def stands_on(frame: DataFrame, expression: Any) -> bool:  # noqa: ANN401 - an expression of the JVM
    """Whether an expression is analysed, and reads columns of a classic DataFrame alone."""
    return bool(expression.resolved() and expression.references().subsetOf(plan_of(frame).outputSet()))


def _remembered(frame: DataFrame, root: Any, settings: Hashable) -> CatalystAnalysis:  # noqa: ANN401 - an expression of the JVM
    """The analysis of the same conditions on the same columns with the same settings of the session, or a new one.

    Conditions are the same if Catalyst says so, which compares the functions of UDFs too, and has written the same
    text of both, which tells their order.
    """
    spark: Any = frame.sparkSession
    output = _output(frame)
    key = (RESULT_ID.sub("", root.toString()), output, settings)
    found = _analyses.get(key)
    if found is None or not found.catalyst.root.semanticEquals(root):
        text = root.toJSON()  # it takes longer than all else of a call
        catalyst = Catalyst(spark._jvm, root, counts_alike='"plan":' not in text)  # noqa: SLF001 - no public way
        found = CatalystAnalysis(catalyst, tree_of(text), *_names_of_columns(output, spark))
        _analyses[key] = found
        while len(_analyses) > MOST_ANALYSES:
            _analyses.pop(next(iter(_analyses)), None)  # the oldest
    return found


@dataclass(frozen=True)
class Catalyst:
    """Spark's own objects behind a tree; where a version has other objects, the answers are None."""

    jvm: Any
    root: Any
    counts_alike: bool = False  # whether the tree's numbers are Spark's own, as they are where there is no subquery
    _expressions: dict[int, Any] = field(default_factory=dict, repr=False)  # of nodes, by their numbers

    def expression(self, node: Node) -> Any:  # noqa: ANN401 - an object of the JVM
        """The object of a node; None if Spark counts its nodes in another way."""
        if node.number not in self._expressions:
            found = self.root.apply(node.number) if node.number else self.root
            is_same = self.counts_alike or (found is not None and found.getClass().getSimpleName() == node.kind)
            self._expressions[node.number] = found if is_same else None
        return self._expressions[node.number]

    def _class(self, name: str) -> Any:  # noqa: ANN401 - a class of the JVM
        return java_class(self.jvm, f"{CATALYST}.{name}")

    def property_of(self, node: Node, name: str) -> str | None:
        """The text of a property that the tree leaves out."""
        from py4j.protocol import Py4JError

        try:
            expression = self.expression(node)
            value = getattr(expression, name)() if expression is not None else None
        except Py4JError:
            return None
        return None if value is None else str(value if isinstance(value, str | bool) else value.toString())

    def column(self, node: Node) -> Column | None:
        """A Column of a node, which knows its columns by identity."""
        from py4j.protocol import Py4JError

        try:
            expression = self.expression(node)
            if expression is None:
                return None
            column = analysed_column(self.jvm, expression)
            return column if self.counts_alike else plain_column(column)  # a subquery may read more columns
        except (Py4JError, TypeError):
            return None

    def fold(self, node: Node) -> Node | None:
        """The value of a constant expression, evaluated by the rules of Spark's optimizer; None if it raises."""
        return self._optimised(node, ("ReplaceExpressions", "ConstantFolding"), 1)

    def simplified(self, node: Node, *, negated: bool) -> Node | None:
        """A condition, or its negation, as Spark's optimizer simplifies it in a filter; None if that is not known."""
        return self._optimised(node, SIMPLIFYING, MOST_PASSES, negated=negated)

    def _optimised(self, node: Node, rules: Sequence[str], most_passes: int, *, negated: bool = False) -> Node | None:
        """The condition of a filter after some rules of Spark's optimizer; None if a rule raises or is not there."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            expression = self.expression(node)
            if expression is None:
                return None
            if negated:
                expression = self._class("expressions.Not")(expression)
            plan = self._class("plans.logical.Filter")(expression, self._class("plans.logical.OneRowRelation")())
            with errors_not_logged():
                for _ in range(most_passes):
                    before = plan
                    for rule in rules:
                        plan = self._class(f"optimizer.{rule}").apply(plan)
                    if most_passes == 1 or plan.fastEquals(before):
                        break
            return tree_of(plan.condition().toJSON())
        except (Py4JError, PySparkException, TypeError):  # a missing class is a package, which cannot be called
            return None


def _condition_of(plan: Any) -> Any:  # noqa: ANN401 - objects of the JVM
    """The condition of the topmost filter: above it, Spark removes columns that it added for the condition alone."""
    from py4j.protocol import Py4JError

    while True:
        try:
            return plan.condition()
        except Py4JError:  # it is no filter
            plan = plan.child()


def _operands(conjunction: Node, count: int) -> list[Node]:
    """The conditions that were put together by AND, from left to right."""
    operands: list[Node] = []
    for _ in range(count - 1):
        conjunction, right = conjunction.children
        operands.append(right)
    return [conjunction, *reversed(operands)]


@once_a_frame
def _output(frame: Any) -> str:  # noqa: ANN401 - a classic DataFrame
    """The columns of a DataFrame with Catalyst's numbers, as Spark writes them; nothing where it does not."""
    from py4j.protocol import Py4JError

    try:
        return str(plan_of(frame).output().mkString(SEPARATOR))
    except Py4JError:
        return ""


def _names_of_columns(output: str, spark: SparkSession) -> tuple[dict[int, str], frozenset[int]]:
    """The names of a DataFrame's columns by Catalyst's numbers, without names that mean several; and all numbers."""
    found = [match for match in map(ATTRIBUTE.fullmatch, output.split(SEPARATOR)) if match]
    names = [match[1] for match in found]
    keys = [name.lower() for name in names]
    if len(set(keys)) < len(set(names)) and spark.conf.get("spark.sql.caseSensitive") == "true":
        keys = names
    counts = Counter(keys)
    unique = {int(match[2]): match[1] for match, key in zip(found, keys, strict=True) if counts[key] == 1}
    return unique, frozenset(int(match[2]) for match in found)


def _not_null(tree: Node, catalyst: Catalyst, names: dict[int, str]) -> Iterator[str]:
    """The columns of which a NULL makes the whole condition NULL, as Spark infers them for the data's source."""
    if tree.kind == "AttributeReference":
        if tree.fields["exprId"]["id"] in names:
            yield names[tree.fields["exprId"]["id"]]
    elif _is_null_intolerant(tree, catalyst):
        for child in tree.children:
            yield from _not_null(child, catalyst, names)


def _is_null_intolerant(tree: Node, catalyst: Catalyst) -> bool:
    """Whether an expression is NULL if an operand is: the same for a whole class, but for calls of methods."""
    if tree.kind != "PythonUDF" and any(mark in tree.kind for mark in ("Invoke", "UDF")):
        return catalyst.property_of(tree, "nullIntolerant") == "True"
    if tree.kind not in _null_intolerant:
        known = catalyst.property_of(tree, "nullIntolerant")
        if known is None:
            return False
        _null_intolerant[tree.kind] = known == "True"
    return _null_intolerant[tree.kind]
