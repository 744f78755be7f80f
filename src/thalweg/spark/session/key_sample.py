"""How selective the joins of queries are: by histograms of the keys of some rows.

Keys that are columns are read by the driver, from the files in which rows wait. Keys that Spark has to compute, or to
cast before it compares them, come from one small job for all queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from thalweg.charts import KeyHistogram, equality_name
from thalweg.charts.equalities import implied_equalities
from thalweg.charts.plan import runs_alike
from thalweg.spark.identifiers import backticked
from thalweg.spark.session.lower import holds
from thalweg.spark.session.sources import SharedStream, StaticTable
from thalweg.spark.session.views import RowViews
from thalweg.spark.session.waiting import some_rows
from thalweg.tables.codes import codes

if TYPE_CHECKING:
    from thalweg.spark.session.program import ProgramQuery
    from thalweg.sql.query import EquiJoin

SAMPLED_ROWS = 20_000  # of a micro-batch
TABLE_ROWS = 200_000  # of a static table, whose keys are looked at once


class JoinKeys:
    """The keys of one query's joins."""

    def __init__(
        self, query: ProgramQuery, streams: Mapping[str, SharedStream], tables: Mapping[str, StaticTable]
    ) -> None:
        self.query = query
        written = query.query.equi_joins
        self.equalities: tuple[EquiJoin, ...] = (*written, *implied_equalities(written))
        self.sides = {side.sql: side for equality in self.equalities for side in (equality.left, equality.right)}
        self._sources = {each.alias: each for each in query.query.inputs}
        self._streams = streams
        self._tables = tables

    @property
    def are_needed(self) -> bool:
        """Whether the query has plans that Spark runs differently, so that selectivities decide."""
        return len({runs_alike(plan) for plan in self.query.space.candidates}) > 1

    @cached_property
    def are_columns(self) -> bool:
        """Whether all keys are columns, and both sides of each equality have the same type."""
        columns = [column for side in self.sides.values() for column in side.columns]
        names = {f"{backticked(alias)}.{backticked(name)}" for alias, name in columns}
        return self.query.has_keys_of_equal_types and self.sides.keys() <= names

    def read(self, views: RowViews) -> dict[str, KeyHistogram]:
        """The histogram of each side that reads a stream, by columns in files."""
        found = {}
        for sql, side in self.sides.items():
            ((alias, name),) = side.columns
            read = self._sources[alias]
            if read.is_stream:
                key = self._streams[read.source].stored_name(name)
                conditions = self.query.conjunctions[alias].columns
                rows = some_rows(views.files_of(read.source), [key, *conditions], SAMPLED_ROWS)
                for condition in conditions:
                    rows = rows.filter(rows.column(condition).cast(pa.bool_()))
                found[sql] = _histogram_of_values(rows.column(key))
        return found

    def texts(self, rows: Mapping[str, str]) -> dict[str, str]:
        """For each side of an equality that reads a stream, a query for the keys of the rows that join.

        `rows` has the view of each stream's rows.
        """
        found = {}
        for sql, side in self.sides.items():
            (alias,) = side.inputs
            read = self._sources[alias]
            if read.is_stream:
                stream = self._streams[read.source]
                columns = [f"{backticked(stream.stored_name(name))} AS {backticked(name)}" for name in read.columns]
                keep = holds(self.query.conjunctions[alias])
                kept = f"SELECT {', '.join(columns)} FROM {rows[read.source]} AS stored WHERE {keep}"
                found[sql] = f"SELECT {sql} AS key FROM ({kept}) AS {backticked(alias)}"
        return found

    @cached_property
    def table_sizes(self) -> dict[str, float]:
        """The rows of each static table."""
        return {
            alias: float(self._tables[read.source].frame.count())
            for alias, read in self._sources.items()
            if not read.is_stream
        }

    @cached_property
    def table_histograms(self) -> dict[str, KeyHistogram]:
        """The histograms of sides that read static tables."""
        from pyspark.sql import functions as f

        found = {}
        for sql, side in self.sides.items():
            (alias,) = side.inputs
            if not self._sources[alias].is_stream:
                frame = self._tables[self._sources[alias].source].frame.alias(alias).limit(TABLE_ROWS)
                key = f.expr(sql)
                if self.are_columns:
                    found[sql] = _histogram_of_values(frame.select(key).toArrow().column(0))
                else:
                    found[sql] = _histogram(frame.select(f.when(key.isNotNull(), f.xxhash64(key))).toArrow().column(0))
        return found

    def selectivities(self, histograms: Mapping[str, KeyHistogram]) -> dict[str, float]:
        """The share of all pairs of rows for which each equality holds."""
        known = {**self.table_histograms, **histograms}
        return {
            equality_name(each): known[each.left.sql].selectivity_with(known[each.right.sql])
            for each in self.equalities
            if known[each.left.sql].counts.any() and known[each.right.sql].counts.any()
        }


def sample_keys(views: RowViews, joins: Sequence[JoinKeys]) -> dict[str, dict[str, float]]:
    """The join selectivities of some queries, by token, from a sample of the rows that wait."""
    histograms = {join.query.token: join.read(views) for join in joins if join.are_columns}
    computed = [join for join in joins if not join.are_columns]
    if computed:
        histograms |= _computed(views, computed)
    return {join.query.token: join.selectivities(histograms[join.query.token]) for join in joins}


def _computed(views: RowViews, joins: Sequence[JoinKeys]) -> dict[str, dict[str, KeyHistogram]]:
    """The histograms of the sides of some queries, by token, by a job of Spark."""
    sides = [(join.query.token, sql, text) for join in joins for sql, text in join.texts(views.rows).items()]
    share = f" AND rand(1) < {SAMPLED_ROWS / views.count}" if views.count > SAMPLED_ROWS else ""
    texts = [
        f"SELECT {number} AS side, xxhash64(key) AS code FROM ({text}) AS keys WHERE key IS NOT NULL{share}"
        for number, (_, _, text) in enumerate(sides)
    ]
    table = views.spark.sql(" UNION ALL ".join(texts)).toArrow()
    numbers, found = table.column(0).to_numpy(), table.column(1).to_numpy()
    histograms: dict[str, dict[str, KeyHistogram]] = {join.query.token: {} for join in joins}
    for number, (token, sql, _) in enumerate(sides):
        histograms[token][sql] = KeyHistogram.of(found[numbers == number])
    return histograms


def _histogram(hashed: pa.ChunkedArray) -> KeyHistogram:
    return KeyHistogram.of(hashed.drop_null().to_numpy().astype(np.int64))


def _histogram_of_values(keys: pa.ChunkedArray) -> KeyHistogram:
    return KeyHistogram.of(codes(keys.drop_null().combine_chunks()))
