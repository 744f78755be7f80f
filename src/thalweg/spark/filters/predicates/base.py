"""The base class of all kinds of predicates, and the analysis of a DataFrame by which they say how they run."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Never

from thalweg.sealed import short_digest
from thalweg.spark.analysis.catalyst import Facts, facts_of
from thalweg.spark.filters.conditions import SparkCondition, condition_of, opaque_truth
from thalweg.spark.filters.forms import ConditionForm, Form, LookupJoin, PythonForm, code_form

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from thalweg.ordering import Policy
    from thalweg.spark.filters.predicates.expression import ExpressionPredicate
    from thalweg.spark.filters.stored_table import StoredTable

OPTIONS = ("cost", "pinned", "deterministic", "after")  # that every predicate has, besides its name


@dataclass(frozen=True, kw_only=True, eq=False)
class Predicate:
    """A condition on rows; each kind of predicate says how it runs.

    `cost` is the cost of a row, in any unit, if all predicates of a query have a cost; otherwise it is measured.
    `pinned` keeps the predicate's place among the others as written, as `deterministic=False` does; `after` names the
    predicates that must have accepted a row before this predicate sees it.
    """

    name: str
    cost: float | None = None
    pinned: bool = False
    deterministic: bool = True
    after: tuple[Predicate | str, ...] = ()

    def __post_init__(self) -> None:
        if not _is_text(self.name):
            raise ValueError(f"a predicate's name is a text that is not empty, not {self.name!r}")
        if self.cost is not None and not _is_cost(self.cost):
            raise ValueError(f"predicate {self.name!r}: cost= is a number above 0, such as cost=3, not {self.cost!r}")

    @property
    def holds_place(self) -> bool:
        """Whether the predicate keeps its place as written."""
        return self.pinned or not self.deterministic

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the predicate itself takes to Python or looks up, without the columns of its members."""
        return ()

    @property
    def members(self) -> tuple[Predicate, ...]:
        """The predicates that this predicate is made of."""
        return ()

    @property
    def parts(self) -> tuple[Predicate, ...]:
        """The predicate and all in it."""
        return (self, *(part for member in self.members for part in member.parts))

    def with_members(self, members: Sequence[Predicate]) -> Predicate:
        """The same predicate, made of other members."""
        return self

    @property
    def stored_table(self) -> StoredTable | None:
        """The table that the predicate looks up in, if it may be refreshed while a query runs."""
        return None

    @property
    def brings(self) -> Mapping[str, str]:
        """Columns of a stored table that the kept rows get, with the names that they get there."""
        return {}

    @property
    def computed(self) -> Mapping[str, Column]:
        """Expressions that Spark computes for the predicate, by the names that stand for them among its columns."""
        return {}

    @property
    def details(self) -> tuple[object, ...]:
        """The values that identify this predicate in a later run, besides kind and name."""
        return ()

    @property
    def signature(self) -> str:
        """A short text that is the same for the same predicate in a later run."""
        members = [member.signature for member in self.members]
        return short_digest([type(self).__name__, self.name, *map(str, self.details), *members])

    def check_types(self, types: Sequence[DataType]) -> None:
        """Refuse columns whose types do not fit."""

    def check_can_be_sent(self) -> None:
        """Refuse a predicate that cannot be sent to workers."""

    def in_spark(self, analysis: Analysis) -> SparkCondition | None:
        """The predicate as a condition in Spark; None if it has to run elsewhere."""
        return None

    def as_join(self) -> LookupJoin | None:
        """The predicate as a join; None if it is none."""
        return None

    def in_python(self, analysis: Analysis) -> PythonForm:
        """The predicate as a judge in a worker."""
        raise NotImplementedError

    def form(self, analysis: Analysis) -> Form:
        """How the predicate runs."""
        condition = self.in_spark(analysis)
        if condition is not None:
            return ConditionForm(condition)
        join = self.as_join() if analysis.may_join else None
        return self.in_python(analysis) if join is None else join

    def form_in_worker(self, analysis: Analysis) -> PythonForm:
        """How the predicate runs in a worker; there a condition in Spark is told by its outcome."""
        condition = self.in_spark(analysis)
        return self.in_python(analysis) if condition is None else code_form(self.name, condition)

    def __or__(self, other: object) -> Predicate:
        from thalweg.spark.filters.predicates.compound import any_of

        return any_of(self, other)

    def __ror__(self, other: object) -> Predicate:
        from thalweg.spark.filters.predicates.compound import any_of

        return any_of(other, self)

    def __invert__(self) -> Predicate:
        from thalweg.spark.filters.predicates.compound import not_

        return not_(self)

    def __and__(self, other: object) -> Predicate:
        from thalweg.spark.filters.predicates.compound import conjunction_of

        return conjunction_of(self, other)

    def __rand__(self, other: object) -> Predicate:
        from thalweg.spark.filters.predicates.compound import conjunction_of

        return conjunction_of(other, self)

    def __lt__(self, other: object) -> Never:
        raise TypeError(
            f"{self.name!r} is a predicate, which is true or false: write the comparison into its function, as in "
            f"'return score > 0.5'"
        )

    __le__ = __gt__ = __ge__ = __lt__

    def __bool__(self) -> Never:
        raise TypeError(
            f"{self.name!r} is a predicate, neither true nor false: write tw.where(df, a & b), not 'a and b'"
        )

    @property
    def _expr(self) -> Never:
        """With Spark Connect, PySpark asks for this where a Column meets a predicate, as in `F.col("a") & p`."""
        self._get_object_id()

    def _get_object_id(self) -> Never:
        """In a classic session it asks for this."""
        raise TypeError(
            f"predicate {self.name!r} is no Column: write it to the left of the Column, as in predicate & column or "
            f"predicate | column"
        )


class Analysis:
    """The analysis of a DataFrame and its conditions, by which predicates say how they run."""

    def __init__(
        self,
        frame: DataFrame | None,
        predicates: Sequence[Predicate],
        policy: type[Policy],
        folder: str,
        *,
        may_join: bool,
        conditions: Mapping[int, tuple[Column, Facts]],
    ) -> None:
        from thalweg.spark.filters.predicates.expression import ExpressionPredicate

        self.policy = policy
        self.folder = folder
        self.may_join = may_join  # where the plan can be made anew for each batch, or rows come in one batch
        self._frame = frame
        self._known = conditions  # Columns and facts, by the identity of the predicates, which live as long as this
        self._expressions = [
            part for predicate in predicates for part in predicate.parts if isinstance(part, ExpressionPredicate)
        ]

    @cached_property
    def _conditions(self) -> dict[int, SparkCondition]:
        """By the identity of the predicates, which live as long as this."""
        if self._frame is None:
            return {}
        known = dict(self._known)
        for expression in self._expressions:
            if expression.facts is not None:
                known[id(expression)] = expression.column(self._frame), expression.facts
        unknown = [expression for expression in self._expressions if id(expression) not in known]
        columns = [expression.column(self._frame) for expression in unknown]
        facts = facts_of(self._frame, columns)
        known |= zip(map(id, unknown), zip(columns, facts, strict=True), strict=True)
        return {number: condition_of(*found, self._opaque) for number, found in known.items()}

    def condition(self, expression: ExpressionPredicate) -> SparkCondition:
        """An expression as a condition on the DataFrame."""
        return self._conditions[id(expression)]

    def _opaque(self, facts: Facts) -> Column:
        assert self._frame is not None  # noqa: S101 - there are facts only of a frame
        return opaque_truth(self._frame, facts.columns)


def as_predicate(written: Any) -> Predicate:  # noqa: ANN401 - as in `where`
    """A predicate from an argument of `tw.where`: a predicate, a Column, text in Spark SQL, a function or a UDF."""
    from thalweg.spark.filters.predicates.expression import expr
    from thalweg.spark.filters.predicates.function import parameter_names, predicate_of

    if isinstance(written, Predicate):
        return written
    if isinstance(written, str) or is_column(written):
        return replace(expr(written), whole=False)
    name = getattr(written, "__name__", type(written).__name__)
    if is_udf(written):  # of the columns that its parameters name
        return as_predicate(written(*parameter_names(written.func, f"{name}('column')")))
    if callable(written) and not isinstance(written, type):
        return predicate_of(written)
    if isinstance(written, list | tuple):
        raise TypeError(f"write predicates one after the other, not in a {type(written).__name__}: tw.where(df, *list)")
    raise TypeError(
        f"{written!r} is no predicate: pass tw.predicate, tw.expr, tw.regex, tw.lookup, tw.prefix_match, tw.any_of, "
        f"tw.not_, a Column, or a condition as text"
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_cost(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < value <= sys.float_info.max  # type: ignore[operator]  # it is a number


def is_column(value: object) -> bool:
    """Whether a value is a Column, of a classic session or of Connect."""
    return any(kind.__module__.startswith("pyspark.") and kind.__name__ == "Column" for kind in type(value).__mro__)


def is_udf(value: object) -> bool:
    """Whether a value is a Python UDF of Spark."""
    if is_column(value):  # which has any attribute
        return False
    return hasattr(value, "returnType") and hasattr(value, "func")


def column_names(written: object, argument: str) -> tuple[str, ...]:
    """One or more names of columns, checked."""
    names = (written,) if isinstance(written, str) else tuple(written) if isinstance(written, Sequence) else ()
    if not names or not all(isinstance(name, str) and name for name in names):
        raise TypeError(f"{argument} is a column's name or a list of names, such as {argument}='body', not {written!r}")
    return names


def checked_options(options: dict[str, Any]) -> dict[str, Any]:
    """The options that every predicate has, checked; `checks_keywords` has checked their names."""
    if "after" in options:
        options["after"] = checked_after(options["after"])
    return options


def checked_after(after: object) -> tuple[Predicate | str, ...]:
    """Predicates or their names, checked."""
    found = (after,) if isinstance(after, str | Predicate) else tuple(after) if isinstance(after, Sequence) else None
    if found is None or not all(isinstance(each, str | Predicate) for each in found):
        raise TypeError(f"after= is a predicate, its name, or a list of them, not {after!r}")
    return found


def inherited(members: Sequence[Predicate], options: dict[str, Any]) -> dict[str, Any]:
    """The options of a predicate made of others, which holds its place if any of them does."""
    if any(member.holds_place for member in members):
        options["pinned"] = True
    return options
