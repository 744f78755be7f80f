"""All standing queries of a session as one program: what they read, and which conditions they share.

A condition that cannot raise and gives the same answer every time is *shared*: it is evaluated once for each row, as a
column, whatever the number of queries that test it. The others belong to their query alone, so that their errors do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from thalweg.charts.candidates import PlanSpace, plan_space
from thalweg.charts.plan import MultiJoin, PlanNode
from thalweg.sealed import short_digest
from thalweg.spark.identifiers import backticked
from thalweg.spark.session.sources import SharedStream
from thalweg.sql.implication import implies
from thalweg.sql.query import ContinuousQuery, Expression, PredicateCall, QueryInput, Selection

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from thalweg.spark.filters.predicates.function import FunctionPredicate
    from thalweg.spark.session.sources import StaticTable

WHOLE_NUMBER = "whole number"
WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")  # which are compared by value, whatever their widths

CONDITION = "is:"  # before the digest of a shared condition: the name of its column


@dataclass(frozen=True)
class SharedCondition:
    """A condition on the rows of one stream, whose answer is a column of its own."""

    stream: str
    sql: str  # with plain names of columns
    stored_sql: str  # with the names that columns have among the rows of all streams
    is_cheap: bool = True  # it takes nanoseconds

    @cached_property
    def column(self) -> str:
        """The name of its column, by its content."""
        return CONDITION + short_digest([self.stream, self.sql])


@dataclass(frozen=True)
class SharedCall:
    """A call of a Python predicate on the rows of one stream, whose answer is a column of its own."""

    stream: str
    call: PredicateCall
    digest: str  # of the function
    is_cheap: ClassVar[bool] = False

    @property
    def sql(self) -> str:
        """The call, as people read it."""
        called = f"{self.call.predicate}({', '.join(map(backticked, self.call.columns))})"
        return f"NOT {called}" if self.call.negated else called

    @cached_property
    def column(self) -> str:
        """The name of its column, by its content."""
        call = self.call
        return CONDITION + short_digest([self.stream, self.digest, *call.columns, "not" if call.negated else ""])


Shared: TypeAlias = SharedCondition | SharedCall


@dataclass(frozen=True)
class Conjunction:
    """Shared conditions on the rows of a stream that all have to be true."""

    stream: str
    columns: tuple[str, ...]

    @cached_property
    def name(self) -> str:
        """A name for it, by its content."""
        return "all:" + short_digest([self.stream, *sorted(self.columns)])


@dataclass(frozen=True)
class ProgramQuery:
    """A query of the program under its token; `keeps` has the shared conditions of each of its inputs."""

    token: str
    query: ContinuousQuery
    keeps: Mapping[str, tuple[Shared, ...]]
    own: Mapping[str, tuple[Selection, ...]]  # the conditions that are not shared
    has_keys_of_equal_types: bool = True  # on both sides of each equality of its join

    @property
    def streams(self) -> tuple[QueryInput, ...]:
        """The inputs that are streams."""
        return tuple(each for each in self.query.inputs if each.is_stream)

    @cached_property
    def conjunctions(self) -> Mapping[str, Conjunction]:
        """For each stream among its inputs, the shared conditions together."""
        return {
            each.alias: Conjunction(each.source, tuple(condition.column for condition in self.keeps[each.alias]))
            for each in self.streams
        }

    @cached_property
    def space(self) -> PlanSpace:
        """Its plans with the same results: with keys of several types, only Spark's joins, by written equalities."""
        if self.has_keys_of_equal_types:
            return plan_space(self.query)
        space = plan_space(self.query, equality_is_transitive=False)
        return replace(space, joins=tuple(join for join in space.joins if not _has_multi_join(join)))

    @cached_property
    def is_plain(self) -> bool:
        """Whether its results are rows of one stream that shared conditions choose."""
        query = self.query
        return len(query.inputs) == 1 and not (query.is_aggregated or query.is_distinct or any(self.own.values()))

    @cached_property
    def chosen_columns(self) -> tuple[tuple[str, str], ...] | None:
        """The columns that a plain query puts out, and their names in results; None if Spark has to compute some."""
        if not self.is_plain:
            return None
        (read,) = self.query.inputs
        columns = {f"{backticked(read.alias)}.{backticked(name)}": name for name in read.columns}
        outputs = [(columns.get(output.expression.sql), output.name) for output in self.query.outputs]
        found = tuple((column, name) for column, name in outputs if column is not None)
        return found if len(found) == len(outputs) else None

    @cached_property
    def has_result_of_no_rows(self) -> bool:
        """Whether it is an aggregate of all rows, which has a result even for a round of which no row is left."""
        return self.query.is_aggregated and not self.query.group_by


@dataclass(frozen=True)
class Program:
    """What runs in a micro-batch; `orders` has the columns of costly conditions in a measured order, by stream.

    Python predicates in these orders are *early*: they are asked before costly conditions that Spark evaluates.
    """

    queries: tuple[ProgramQuery, ...]
    orders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def conditions(self) -> tuple[SharedCondition, ...]:
        """All shared conditions, each once."""
        return tuple(each for each in self.shared if isinstance(each, SharedCondition))

    @cached_property
    def calls(self) -> tuple[SharedCall, ...]:
        """All shared calls of Python predicates, each once."""
        return tuple(each for each in self.shared if isinstance(each, SharedCall))

    def members_of(self, stream: str) -> dict[str, Shared]:
        """The conditions on a stream, and early calls of Python predicates, by their columns."""
        found: dict[str, Shared] = {each.column: each for each in self.conditions if each.stream == stream}
        places = {column: place for place, column in enumerate(self.orders.get(stream, ()))}
        for call in self.calls:
            together = [each.columns for each in self.conjunctions_of(stream) if call.column in each.columns]
            later = {column for columns in together for column in columns if column in found and column in places}
            if call.column in places and any(places[column] > places[call.column] for column in later):
                found[call.column] = call
        return found

    @cached_property
    def shared(self) -> tuple[Shared, ...]:
        """All shared conditions and calls, each once."""
        found = (each for query in self.queries for conditions in query.keeps.values() for each in conditions)
        return tuple(dict.fromkeys(found))

    @cached_property
    def conjunctions(self) -> tuple[Conjunction, ...]:
        """All conjunctions of shared conditions, each once."""
        found = {each.name: each for query in self.queries for each in query.conjunctions.values()}
        return tuple(found.values())

    def columns(self, stream: SharedStream) -> tuple[str, ...]:
        """The columns of a stream that some query reads."""
        read = {
            name
            for query in self.queries
            for each in query.streams
            if each.source == stream.name
            for name in each.columns
        }
        return tuple(name for name in stream.frame.columns if name in read)

    def readers(self, stream: str) -> list[tuple[ProgramQuery, QueryInput]]:
        """The queries that read a stream, once for each alias."""
        return [(query, each) for query in self.queries for each in query.streams if each.source == stream]

    def conjunctions_of(self, stream: str) -> list[Conjunction]:
        """The conjunctions of shared conditions on the rows of a stream."""
        return [conjunction for conjunction in self.conjunctions if conjunction.stream == stream]

    def pane(self, stream: str) -> int | None:
        """The longest time in microseconds of which all windows over a stream are multiples; None if it is not read."""
        windows = [query.query.window for query, _ in self.readers(stream)]
        return math.gcd(*(length for window in windows for length in (window.length, window.slide))) or None

    def weaker(self, condition: SharedCondition) -> SharedCondition | None:
        """A condition that is true wherever this condition is, and is evaluated before it; None if there is none."""
        return self._contained.get(condition)

    @cached_property
    def _contained(self) -> dict[SharedCondition, SharedCondition]:
        """For each condition that implies others, the strongest of these."""
        found: dict[SharedCondition, SharedCondition] = {}
        for condition in self.conditions:
            for other in self.conditions:
                if other.stream != condition.stream or not implies(condition.sql, other.sql):
                    continue
                chain = other  # of two conditions that imply each other, either is evaluated first
                while chain in found and chain != condition:
                    chain = found[chain]
                if chain != condition and (condition not in found or implies(other.sql, found[condition].sql)):
                    found[condition] = other
        return found


def _has_multi_join(node: PlanNode) -> bool:
    return isinstance(node, MultiJoin) or any(_has_multi_join(child) for child in node.children)


def program_query(
    token: str,
    query: ContinuousQuery,
    sources: Sequence[SharedStream | StaticTable],
    predicates: Mapping[str, FunctionPredicate],
) -> ProgramQuery:
    """A query with its conditions divided into shared conditions and its own."""
    by_name = {source.name: source for source in sources if isinstance(source, SharedStream)}
    frames = {source.name: source.frame for source in sources}
    keeps: dict[str, tuple[Shared, ...]] = {}
    own: dict[str, tuple[Selection, ...]] = {}
    for each in query.inputs:
        selections = [selection for selection in query.selections if selection.alias == each.alias]
        native = [selection for selection in selections if selection.call is None] if each.is_stream else []
        found = by_name[each.source].facts([selection.shared_sql for selection in native]) if native else []
        harmless = [facts.safe and facts.deterministic for facts in found]
        shared = [selection for selection, is_harmless in zip(native, harmless, strict=True) if is_harmless]
        is_shared = len(shared) == len(native) and each.is_stream  # a condition that may raise comes before a predicate
        calls = [selection for selection in selections if is_shared and _is_shared_call(selection, predicates)]
        keeps[each.alias] = (
            *(_shared(by_name[each.source], selection.shared_sql) for selection in shared),
            *(_shared_call(each.source, selection.call, predicates) for selection in calls if selection.call),
        )
        own[each.alias] = tuple(selection for selection in selections if selection not in (*shared, *calls))
    return ProgramQuery(token, query, keeps, own, _has_keys_of_equal_types(query, frames))


def _shared(stream: SharedStream, sql: str) -> SharedCondition:
    (facts,) = stream.facts([sql])
    return SharedCondition(stream.name, sql, stream.stored_sql(sql), facts.cheap)


def _is_shared_call(selection: Selection, predicates: Mapping[str, FunctionPredicate]) -> bool:
    """Whether a condition is a Python predicate that gives the same answer every time, in any order."""
    if selection.call is None:
        return False
    predicate = predicates[selection.call.predicate]
    return predicate.deterministic and not predicate.pinned and not predicate.after


def _shared_call(stream: str, call: PredicateCall, predicates: Mapping[str, FunctionPredicate]) -> SharedCall:
    return SharedCall(stream, call, short_digest(list(map(str, predicates[call.predicate].details))))


def _has_keys_of_equal_types(query: ContinuousQuery, frames: Mapping[str, DataFrame]) -> bool:
    """Whether equal keys are equal in the same way everywhere: '1' = 1 and 1 = '01', but not '1' = '01'."""
    from pyspark.sql import functions as f

    if not query.equi_joins:
        return True
    inputs = {each.alias: frames[each.source].alias(each.alias) for each in query.inputs}

    def kind(side: Expression) -> str:
        (alias,) = side.inputs
        (field,) = inputs[alias].select(f.expr(side.sql)).schema.fields
        name: str = field.dataType.simpleString()
        return WHOLE_NUMBER if name in WHOLE_NUMBERS else name

    return all(kind(equality.left) == kind(equality.right) for equality in query.equi_joins)
