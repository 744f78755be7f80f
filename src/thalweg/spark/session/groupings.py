"""Groups of the same rows by several keys, in one pass: GROUPING SETS.

Spark copies each row for each grouping, with NULL for the keys of the other groupings. Which grouping a row of the
result belongs to is told by a number, not by these NULLs, since keys may be NULL themselves. Keys and columns get names
of their own first: Spark would put the NULL of a key in the place of an equal part of any output, such as `x + 1` in
an output of a query that groups by `x`, if another query groups by `x + 1`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from sqlglot import parse_one

from thalweg.spark.identifiers import backticked
from thalweg.sql.dialect import VerbatimSpark
from thalweg.sql.functions import function_name, is_aggregate
from thalweg.sql.query import Expression, Output, Position
from thalweg.sql.rename import with_columns_renamed, with_keys_replaced

# Whose state is a few numbers or one value, whatever the number of rows.
SMALL_AGGREGATES = frozenset(
    """
    any avg bit_and bit_or bit_xor bool_and bool_or corr count count_if covar_pop covar_samp every kurtosis max max_by
    mean min min_by regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness
    some std stddev stddev_pop stddev_samp sum try_avg try_sum var_pop var_samp variance
    """.split()  # noqa: SIM905 - lists of names are read best as text
)


@dataclass(frozen=True)
class Groupings:
    """Several groupings of the same rows: the keys of each, all keys, and the columns that aggregates may read."""

    sets: tuple[frozenset[str], ...]
    keys: tuple[str, ...]  # expressions
    columns: tuple[tuple[str, str], ...]  # aliases and names

    @cached_property
    def key_names(self) -> Mapping[str, str]:
        """A name for each key."""
        return {key: f"key{number}" for number, key in enumerate(self.keys)}

    @cached_property
    def column_names(self) -> Mapping[tuple[str, ...], str]:
        """A name for each column."""
        return {column: f"column{number}" for number, column in enumerate(self.columns)}

    def output(self, output: Output, keys: frozenset[str]) -> Output:
        """An output of the grouping by some keys, by the names of keys and columns; NULL in rows of other groupings."""
        named = _named(output.expression.sql, self._names_of(keys), tuple(self.column_names.items()))
        sql = f"CASE WHEN {self._is_of(keys)} THEN {named} END"
        return Output(sql, replace(output.expression, sql=sql), output.is_aggregate)

    def membership(self, keys: frozenset[str]) -> Output:
        """Whether a row of the result belongs to the grouping by some keys."""
        return Output("", Expression(self._is_of(keys), frozenset(), frozenset(), Position(1, 1)), is_aggregate=True)

    def _is_of(self, keys: frozenset[str]) -> str:
        """Spark's number of a grouping has a bit for each key that it lacks; the bit of the last key is the lowest."""
        bits = "".join("0" if key in keys else "1" for key in self.keys)
        return f"grouping_id() = {int(bits or '0', 2)}L"

    def _names_of(self, keys: frozenset[str]) -> tuple[tuple[str, str], ...]:
        """The names of keys that are to stand in outputs; a constant stays, as some functions call for a constant."""
        return tuple((key, name) for key, name in self.key_names.items() if key in keys and "`" in key)

    def selected(self) -> list[str]:
        """The columns and keys of joined rows under their names."""
        columns = [f"{'.'.join(map(backticked, column))} AS {name}" for column, name in self.column_names.items()]
        return columns + [f"{key} AS {name}" for key, name in self.key_names.items()]

    def clause(self, round_number: str) -> str:
        """The clause that groups by the number of rounds and by each set of keys."""
        names = self.key_names
        sets = [", ".join([round_number, *(names[key] for key in self.keys if key in own)]) for own in self.sets]
        listed = ", ".join(f"({each})" for each in sets)
        return f"GROUP BY {', '.join([round_number, *names.values()])} GROUPING SETS ({listed})"


@lru_cache(maxsize=4096)  # the same expressions come in each micro-batch
def _named(sql: str, keys: tuple[tuple[str, str], ...], columns: tuple[tuple[tuple[str, ...], str], ...]) -> str:
    return with_columns_renamed(with_keys_replaced(sql, dict(keys)), dict(columns))


@lru_cache(maxsize=4096)  # as above
def counts_little(sql: str) -> bool:
    """Whether all aggregates of an expression have a small state.

    >>> counts_little("1 + sum(`a`.`x`) / count(*)"), counts_little("percentile(`a`.`x`, 0.5)")
    (True, False)
    """
    nodes = parse_one(sql, dialect=VerbatimSpark).walk()
    return all(function_name(node) in SMALL_AGGREGATES for node in nodes if is_aggregate(node))
