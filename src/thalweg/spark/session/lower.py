"""Lowers the plan of a query to Spark: from the rows of all streams to the result rows of some rounds.

A round's number is one more key: every round of a range is computed in the same operations, and no row of one round
meets a row of another.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from thalweg.charts.plan import Aggregate, Join, MultiJoin, PlanNode, Project, Scan, Select
from thalweg.spark.filters.conditions import backticked
from thalweg.spark.session.program import ProgramQuery
from thalweg.spark.session.rows import holds
from thalweg.spark.session.sources import TIME, SharedStream, StaticTable, divided_up
from thalweg.sql.query import Input, RoundWindow
from thalweg.sql.rounds import bounds

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from thalweg.spark.filters.predicates.function import FunctionPredicate

ROUND = "thalweg:round"  # the number of a row's round
HAVING = "thalweg:having"
OUTPUT = "thalweg:output:"  # before the place of an output


@dataclass(frozen=True)
class Rounds:
    """The rounds of a query that one plan computes, all of which have rows."""

    numbers: tuple[int, ...]

    @property
    def first(self) -> int:
        """The first round."""
        return self.numbers[0]

    @property
    def last(self) -> int:
        """The last round."""
        return self.numbers[-1]

    def hold(self, number: Column) -> Column:
        """Whether a number is one of a round."""
        if len(self.numbers) == self.last - self.first + 1:
            return number.between(self.first, self.last)
        return number.isin(*self.numbers)


@dataclass(frozen=True, eq=False)
class Catalog:
    """The sources of a session by name, and its Python predicates."""

    streams: Mapping[str, SharedStream]
    tables: Mapping[str, StaticTable]
    predicates: Mapping[str, FunctionPredicate]


def input_rows(
    rows: DataFrame,
    stream: SharedStream,
    read: Input,
    window: RoundWindow,
    rounds: Rounds,
    keep: Column,
    others: Sequence[str] = (),
) -> DataFrame:
    """The rows of an input that are kept, with the number of their round, once for each of their rounds."""
    from pyspark.sql import functions as f

    begin, end = bounds(rounds.first, window)[0], bounds(rounds.last, window)[1]
    chosen = rows.where(keep & (f.col(TIME) > begin) & (f.col(TIME) <= end))
    first = f.expr(divided_up(TIME, f"{window.slide}L"))
    if window.length == window.slide:
        number = first
    else:
        number = f.explode(
            f.sequence(first, f.expr(divided_up(f"{TIME} + {window.length}L", f"{window.slide}L") + " - 1"))
        )
    columns = [f.col(backticked(stream.stored_name(name))).alias(name) for name in read.columns]
    numbered = chosen.select(number.alias(ROUND), *columns, *map(backticked, others))
    return numbered.where(rounds.hold(f.col(backticked(ROUND)))).alias(read.alias)


class QueryLowering:
    """A plan of one query on its way to a DataFrame of result rows."""

    def __init__(self, query: ProgramQuery, rows: DataFrame, catalog: Catalog, rounds: Rounds) -> None:
        self._query = query
        self._rows = rows
        self._catalog = catalog
        self._rounds = rounds
        self._inputs = {each.alias: each for each in query.query.inputs}

    def results(self, root: PlanNode) -> DataFrame:
        """The result rows: the round's number, and then the query's output columns."""
        from pyspark.sql import functions as f

        query = self._query.query
        number = f.col(f"{backticked(self._query.streams[0].alias)}.{backticked(ROUND)}")
        outputs = [f.expr(output.expression.sql).alias(output.name) for output in query.outputs]
        if not query.is_aggregated:
            frame = self._lower(root).select(number.alias(ROUND), *outputs)
            return frame.distinct() if query.is_distinct else frame
        assert isinstance(root, Aggregate)  # noqa: S101 - the heuristics put it on top
        joined = self._lower(root.child)
        keys = [f.expr(key.sql) for key in query.group_by]
        having = [] if query.having is None else [f.expr(query.having.sql).alias(HAVING)]
        # Under other names first: a key that is an output, too, would be there twice under one name.
        hidden = [f"{OUTPUT}{place}" for place in range(len(query.outputs))]
        aggregates = [
            f.expr(output.expression.sql).alias(name) for output, name in zip(query.outputs, hidden, strict=True)
        ]
        grouped = joined.groupBy(number.alias(ROUND), *keys).agg(*aggregates, *having)
        grouped = grouped.select(
            backticked(ROUND),
            *(f.col(backticked(name)).alias(output.name) for output, name in zip(query.outputs, hidden, strict=True)),
            *([f.col(backticked(HAVING))] if having else []),
        )
        if not query.group_by:
            grouped = self._with_empty_rounds(grouped, joined, [*outputs, *having])
        if having:
            grouped = grouped.where(f.col(backticked(HAVING))).drop(HAVING)
        return grouped.distinct() if query.is_distinct else grouped

    def _with_empty_rounds(self, grouped: DataFrame, joined: DataFrame, outputs: Sequence[Column]) -> DataFrame:
        """An aggregate of all rows has a result even for a round of which no row is left."""
        from pyspark.sql import functions as f

        spark = self._rows.sparkSession
        numbers = spark.createDataFrame([(number,) for number in self._rounds.numbers], f"`{ROUND}` bigint")
        empty = numbers.join(grouped.select(backticked(ROUND)), ROUND, "left_anti").crossJoin(
            joined.where(f.lit(False)).agg(*outputs)  # noqa: FBT003
        )
        return grouped.unionByName(empty)

    def _lower(self, node: PlanNode) -> DataFrame:
        if isinstance(node, Scan | Select | Project):
            while not isinstance(node, Scan):
                (node,) = node.children
            return self._input(self._inputs[node.alias])
        if isinstance(node, Join):
            left, right = self._lower(node.left), self._lower(node.right)
            return left.join(right, self._condition(node, _aliases(node.left), _aliases(node.right)), "inner")
        assert isinstance(node, MultiJoin)  # noqa: S101 - there is no other kind of node
        return self._lower_multi_join(node)

    def _lower_multi_join(self, node: MultiJoin) -> DataFrame:
        """Thalweg's own join; each input comes back as a struct of its columns, so that expressions find them."""
        from pyspark.sql import functions as f

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
            own = [f.expr(sql).alias(name) for (each, sql), name in keys.items() if each == alias]
            packed = f.struct("*").alias("row")
            number = f.col(backticked(ROUND)).alias("round")
            frames[alias] = self._lower(child).select(packed, number, f.lit(0).cast("timestamp").alias("time"), *own)
        texts += [f"{backticked(aliases[0])}.round = {backticked(alias)}.round" for alias in aliases[1:]]
        selected = [f"{backticked(alias)}.row AS {backticked(alias)}" for alias in aliases]
        joined = join(frames, " AND ".join(texts), dict.fromkeys(aliases), "time", select=selected)
        for residual in node.residuals:
            joined = joined.where(f.expr(residual.sql))
        return joined

    def _condition(self, node: Join, left: Sequence[str], right: Sequence[str]) -> Column:
        from pyspark.sql import functions as f

        texts = [f"{equality.left.sql} = {equality.right.sql}" for equality in node.equi_joins]
        texts += [residual.sql for residual in node.residuals]
        streams = [[alias for alias in side if self._inputs[alias].is_stream] for side in (left, right)]
        if all(streams):
            texts.append(" = ".join(f"{backticked(side[0])}.{backticked(ROUND)}" for side in streams))
        return reduce(operator.and_, [f.expr(text) for text in texts])

    def _input(self, read: Input) -> DataFrame:
        """The rows of an input that all its selections keep."""
        if read.is_stream:
            keep = holds(self._query.conjunctions[read.alias])
            stream = self._catalog.streams[read.source]
            frame = input_rows(self._rows, stream, read, self._query.query.window, self._rounds, keep)
        else:
            frame = self._catalog.tables[read.source].frame.select(*map(backticked, read.columns))
        return self._keep_own(frame, read).alias(read.alias)

    def _keep_own(self, frame: DataFrame, read: Input) -> DataFrame:
        """The rows that the conditions keep which are not shared, in the order that `tw.where` finds."""
        from thalweg.spark.filters.predicates import not_
        from thalweg.spark.filters.where import where

        selections = self._query.own[read.alias]
        if not selections:
            return frame
        conditions: list[Any] = []
        for selection in selections:
            call = selection.call
            if call is None:
                conditions.append(selection.shared_sql)
            else:
                predicate = replace(self._catalog.predicates[call.predicate], on=call.columns)
                conditions.append(not_(predicate) if call.negated else predicate)
        return where(frame, *conditions, sample=False)


def _aliases(node: PlanNode) -> list[str]:
    if isinstance(node, Scan):
        return [node.alias]
    return [alias for child in node.children for alias in _aliases(child)]
