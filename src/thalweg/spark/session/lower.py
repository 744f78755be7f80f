"""Lowers the plan of a query to the text of a Spark SQL query: from the rows of its streams to those of some rounds.

A round's number is one more key: every round of a range is computed in the same operations, and no row of one round
meets a row of another. Text, because Spark takes a query of ten joins as one text in one call, and in thousands of
calls as operations on DataFrames. It is put together of texts that were parsed and rendered before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from thalweg.charts.plan import Aggregate, Join, MultiJoin, PlanNode, Project, Scan, Select
from thalweg.spark.identifiers import backticked
from thalweg.spark.session.groupings import Groupings
from thalweg.spark.session.program import Conjunction, ProgramQuery
from thalweg.spark.session.sources import SharedStream, StaticTable, divided_up
from thalweg.spark.session.views import RowViews
from thalweg.spark.session.worker.take_in import TIME
from thalweg.sql.query import QueryInput, RoundWindow
from thalweg.sql.rounds import bounds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from thalweg.spark.filters.predicates.function import FunctionPredicate

ROUND = "thalweg:round"  # the number of a row's round
QUOTED_ROUND = backticked(ROUND)
HAVING = "having"
SEARCHED_ROUNDS = 50  # at most, in a list that is searched for each row


Rounds = tuple[int, ...]  # the numbers of rounds that one plan computes, all of which have rows


@dataclass(frozen=True, eq=False)
class Catalog:
    """The sources of a session by name, and its Python predicates."""

    streams: Mapping[str, SharedStream]
    tables: Mapping[str, StaticTable]
    predicates: Mapping[str, FunctionPredicate]

    @property
    def table_frames(self) -> dict[str, DataFrame]:
        """The static tables by name."""
        return {name: table.frame for name, table in self.tables.items()}


def holds(conjunction: Conjunction) -> str:
    """Whether all conditions are true, for the rows of the conjunction's stream."""
    return " AND ".join(map(backticked, conjunction.columns)) or "TRUE"


def input_rows(
    view: str,
    stream: SharedStream,
    read: QueryInput,
    window: RoundWindow,
    rounds: Rounds,
    keep: str,
    others: Sequence[str] = (),
    *,
    in_one_task: bool = False,
) -> str:
    """The rows of an input that are kept, with the number of their round, once for each of their rounds.

    `in_one_task` puts them into one partition. That comes last, because Spark compiles the operations before and after
    it apart.

    Spark compiles the operations of a query to code, which is not compiled again if the same text comes again. A list
    is no part of that code, as single numbers are: so rounds are chosen by a list, unless it is too long for that.
    """
    number = divided_up(TIME, f"{window.slide}L")
    if window.length != window.slide:
        last = divided_up(f"{TIME} + {window.length}L", f"{window.slide}L")
        number = f"explode(sequence({number}, {last} - 1))"
    columns = [f"{backticked(stream.stored_name(name))} AS {backticked(name)}" for name in read.columns]
    selected = ", ".join([f"{number} AS {QUOTED_ROUND}", *columns, *map(backticked, others)])
    numbers = ", ".join(f"{number}L" for number in rounds)
    chosen = "/*+ COALESCE(1) */ *" if in_one_task else "*"
    if len(rounds) <= SEARCHED_ROUNDS:
        text = f"SELECT {selected} FROM {view} AS stored WHERE {keep}"
        return f"SELECT {chosen} FROM ({text}) AS kept WHERE array_contains(array({numbers}), {QUOTED_ROUND})"
    begin, end = bounds(rounds[0], window)[0], bounds(rounds[-1], window)[1]
    text = f"SELECT {selected} FROM {view} AS stored WHERE {TIME} > {begin}L AND {TIME} <= {end}L AND ({keep})"
    return f"SELECT {chosen} FROM ({text}) AS kept WHERE {QUOTED_ROUND} IN ({numbers})"


class QueryLowering:
    """A plan of one query on its way to the text of a query for its result rows.

    `in_one_task` lets the whole query run in one task, without an exchange.
    """

    def __init__(
        self, query: ProgramQuery, views: RowViews, catalog: Catalog, rounds: Rounds, *, in_one_task: bool = False
    ) -> None:
        self._query = query
        self._views = views
        self._catalog = catalog
        self._rounds = rounds
        self._in_one_task = in_one_task
        self._inputs = {each.alias: each for each in query.query.inputs}

    def results(self, root: PlanNode, groupings: Groupings | None = None) -> str:
        """The result rows: the round's number, the query's outputs as columns 0, 1, ..., and whether HAVING is true.

        With several groupings, outputs are written in the names that they give to keys and columns.
        """
        query = self._query.query
        number = f"{backticked(self._query.streams[0].alias)}.{QUOTED_ROUND}"
        if not query.is_aggregated:
            return self._select(root, [f"{number} AS {QUOTED_ROUND}", *self._outputs()])
        assert isinstance(root, Aggregate)  # noqa: S101 - the heuristics put it on top
        if groupings is not None:
            rows = self._select(root.child, [f"{number} AS {QUOTED_ROUND}", *groupings.selected()])
            columns = ", ".join([QUOTED_ROUND, *self._outputs()])
            return f"SELECT {columns} FROM ({rows}) {groupings.clause(QUOTED_ROUND)}"
        selected = self._select(root.child, [f"{number} AS {QUOTED_ROUND}", *self._outputs()])
        # A number in GROUP BY would be the place of a column. To group by a constant changes nothing.
        keys = [key.sql for key in query.group_by if not re.fullmatch(r"[\d\s()]+", key.sql)]
        return f"{selected} GROUP BY {', '.join([number, *keys])}"

    def result_of_no_rows(self, root: PlanNode) -> str:
        """The outputs, and whether HAVING is true, of an aggregate of all rows if there is none."""
        assert isinstance(root, Aggregate)  # noqa: S101 - the heuristics put it on top
        return self._select(root.child, self._outputs())

    def _outputs(self) -> list[str]:
        query = self._query.query
        outputs = [f"{output.expression.sql} AS `{place}`" for place, output in enumerate(query.outputs)]
        return outputs if query.having is None else [*outputs, f"{query.having.sql} AS {HAVING}"]

    def _select(self, node: PlanNode, columns: Sequence[str]) -> str:
        hints = f"/*+ {self._join_hint(node)} */ " if self._in_one_task and isinstance(node, Join) else ""
        distinct = "DISTINCT " if self._query.query.is_distinct else ""
        return f"SELECT {hints}{distinct}{', '.join(columns)} FROM {self._lower(node)}"

    def _join_hint(self, node: Join) -> str:
        """A hint for a join of rows that are in one task: a hash table of the side that is read second."""
        return f"SHUFFLE_HASH({', '.join(map(backticked, _aliases(node.right)))})"

    def _lower(self, node: PlanNode) -> str:
        """A relation, in which `alias`.`column` finds the columns of each input."""
        if isinstance(node, Scan | Select | Project):
            while not isinstance(node, Scan):
                (node,) = node.children
            return f"{self._input(self._inputs[node.alias])} AS {backticked(node.alias)}"
        if isinstance(node, Join):
            left, right = self._joined_before(node.left), self._joined_before(node.right)
            return f"{left} JOIN {right} ON {self._condition(node, _aliases(node.left), _aliases(node.right))}"
        assert isinstance(node, MultiJoin)  # noqa: S101 - there is no other kind of node
        return self._views.add(self._lower_multi_join(node))

    def _joined_before(self, node: PlanNode) -> str:
        """An input of a join, which may be a join itself; then its inputs are structs, if all runs in one task.

        Spark forgets that the result of a join in one task is in one partition, unless it is told so.
        """
        relation = self._lower(node)
        if not isinstance(node, Join):
            return relation
        if not self._in_one_task:
            return f"({relation})"
        structs = [f"struct({backticked(alias)}.*) AS {backticked(alias)}" for alias in _aliases(node)]
        return f"(SELECT /*+ COALESCE(1), {self._join_hint(node)} */ {', '.join(structs)} FROM {relation})"

    def _lower_multi_join(self, node: MultiJoin) -> DataFrame:
        """Thalweg's own join; each input comes back as a struct of its columns, so that expressions find them.

        It chooses its probe orders itself: those of the node are for its cost alone, and fixed orders would not adapt.
        """
        from thalweg.spark.joins.join import join

        frames: dict[str, DataFrame] = {}
        texts: list[str] = []
        keys: dict[tuple[str, str], str] = {}  # from an input and an expression to the column that holds it
        for equality in node.equi_joins:
            sides = []
            for side in (equality.left, equality.right):
                (alias,) = side.inputs
                name = keys.setdefault((alias, side.sql), f"key{len(keys)}")
                sides.append(f"{backticked(alias)}.{name}")
            texts.append(" = ".join(sides))
        aliases = [alias for child in node.inputs for alias in _aliases(child)]
        for alias, child in zip(aliases, node.inputs, strict=True):
            own = [f"{sql} AS {name}" for (each, sql), name in keys.items() if each == alias]
            time = "timestamp_seconds(0) AS time"
            columns = ["struct(*) AS row", f"{QUOTED_ROUND} AS round", time, *own]
            frames[alias] = self._views.spark.sql(f"SELECT {', '.join(columns)} FROM {self._lower(child)}")
        texts += [f"{backticked(aliases[0])}.round = {backticked(alias)}.round" for alias in aliases[1:]]
        selected = [f"{backticked(alias)}.row AS {backticked(alias)}" for alias in aliases]
        joined = join(frames, " AND ".join(texts), dict.fromkeys(aliases), "time", select=selected, event_time_of=None)
        return joined.where(" AND ".join(each.sql for each in node.residuals)) if node.residuals else joined

    def _condition(self, node: Join, left: Sequence[str], right: Sequence[str]) -> str:
        texts = [f"{equality.left.sql} = {equality.right.sql}" for equality in node.equi_joins]
        texts += [f"({residual.sql})" for residual in node.residuals]
        streams = [[alias for alias in side if self._inputs[alias].is_stream] for side in (left, right)]
        if all(streams):
            texts.append(" = ".join(f"{backticked(side[0])}.{QUOTED_ROUND}" for side in streams))
        return " AND ".join(texts)

    def _input(self, read: QueryInput) -> str:
        """The rows of an input that all its selections keep."""
        if read.is_stream:
            keep = holds(self._query.conjunctions[read.alias])
            stream = self._catalog.streams[read.source]
            view, window = self._views.rows[read.source], self._query.query.window
            text = input_rows(view, stream, read, window, self._rounds, keep, in_one_task=self._in_one_task)
        else:
            text = f"SELECT {', '.join(map(backticked, read.columns))} FROM {self._views.tables.names[read.source]}"
        own = self._own_conditions(read)
        if not own:
            return f"({text})"
        from thalweg.spark.filters.where import where

        # In the order that `tw.where` finds.
        return self._views.add(where(self._views.spark.sql(text), *own, sample=False))

    def _own_conditions(self, read: QueryInput) -> list[Any]:
        """The conditions on an input that are not shared."""
        from thalweg.spark.filters.predicates import not_

        conditions: list[Any] = []
        for selection in self._query.own[read.alias]:
            call = selection.call
            if call is None:
                conditions.append(selection.shared_sql)
            else:
                predicate = replace(self._catalog.predicates[call.predicate], on=call.columns)
                conditions.append(not_(predicate) if call.negated else predicate)
        return conditions


def _aliases(node: PlanNode) -> list[str]:
    if isinstance(node, Scan):
        return [node.alias]
    return [alias for child in node.children for alias in _aliases(child)]
