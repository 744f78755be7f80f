"""Functions of Spark SQL, known by their names: aggregates, and functions that a continuous query cannot call."""

from __future__ import annotations

from sqlglot import expressions as e
from sqlglot.expressions import Expr

from thalweg.sql.dialect import readable
from thalweg.sql.query_text import QueryText

# The group agg_funcs of Spark 4.1's function registry, without grouping functions.
AGGREGATES = frozenset(
    """
    any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate approx_top_k_combine
    array_agg avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg bitmap_or_agg bool_and bool_or collect_list
    collect_set collect_union corr count count_if count_min_sketch covar_pop covar_samp every first first_value
    histogram_numeric hll_sketch_agg hll_union_agg kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float
    kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kurtosis last last_value listagg max max_by mean
    median min min_by mode percentile percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy schema_of_variant_agg skewness some std stddev
    stddev_pop stddev_samp string_agg sum theta_intersection_agg theta_sketch_agg theta_union_agg try_avg try_sum
    var_pop var_samp variance
    """.split()  # noqa: SIM905 - lists of names are read best as text
)
# The group generator_funcs of the registry, and json_tuple: functions that make several rows or columns.
_GENERATORS = frozenset(
    {"explode", "explode_outer", "inline", "inline_outer", "json_tuple", "posexplode", "posexplode_outer", "stack"}
)
# Functions of the clock, of random numbers, or of the place where a row happens to be.
_NOT_REPEATABLE = frozenset(
    """
    curdate current_date current_time current_timestamp input_file_block_length input_file_block_start input_file_name
    java_method localtime localtimestamp monotonically_increasing_id now rand randn random randstr reflect shuffle
    spark_partition_id try_reflect uniform uuid
    """.split()  # noqa: SIM905 - as above
)
_NOT_REPEATABLE_NODES = (e.CurrentDate, e.CurrentTime, e.CurrentTimestamp, e.Localtime, e.Localtimestamp)
# Aggregates whose value depends on the order in which rows arrive.
_AGGREGATES_OF_ANY_ROW = frozenset({"any_value", "first", "first_value", "last", "last_value"})
_AGGREGATES_IN_ANY_ORDER = frozenset({"array_agg", "collect_list", "collect_set"})
_SORTING_FUNCTIONS = frozenset({"array_sort", "sort_array"})
_TEXT_AGGREGATES = frozenset({"listagg", "string_agg"})


def function_name(node: Expr) -> str:
    """The name of the function that a node calls, in lower case; empty if it calls none."""
    return str(node.name).lower() if isinstance(node, e.Anonymous) else ""


def is_aggregate(node: Expr) -> bool:
    """Whether a node is the call of an aggregate."""
    return function_name(node) in AGGREGATES


def has_aggregate(tree: Expr) -> bool:
    """Whether an expression has an aggregate anywhere.

    >>> from sqlglot import parse_one
    >>> from thalweg.sql.dialect import VerbatimSpark
    >>> has_aggregate(parse_one("1 + Sum(x) FILTER (WHERE x > 0)", dialect=VerbatimSpark))
    True
    """
    return any(is_aggregate(node) for node in tree.walk())


def check_functions(tree: Expr, text: QueryText) -> None:
    """Refuse functions that make several rows of a row, and functions whose values differ after a restart."""
    for node in tree.walk():
        name = function_name(node)
        if name in _GENERATORS:
            hint = "compute the rows before they enter the stream: session.stream(name, frame.select(explode(...)))"
            raise text.error(
                f"{name} makes several rows or columns, which an expression of a query cannot do", node, hint
            )
        is_clock = isinstance(node, _NOT_REPEATABLE_NODES) or (name == "unix_timestamp" and not node.expressions)
        if name in _NOT_REPEATABLE or is_clock:
            message = f"{readable(node)} has another value each time, and results must be the same after a restart"
            raise text.error(message, node, "use a column of the stream, such as its event time")
        if name in _AGGREGATES_OF_ANY_ROW:
            message = f"{name} depends on the order of rows, and results must be the same after a restart"
            raise text.error(message, node, "write min, max, min_by(value, time) or max_by(value, time)")
        if name in _AGGREGATES_IN_ANY_ORDER and not _is_sorted(node):
            message = f"the order in which {name} collects values differs, and results must be the same after a restart"
            raise text.error(message, node, f"write sort_array({name}(...))")
        if name in _TEXT_AGGREGATES and not isinstance(node.parent, e.WithinGroup):
            message = f"the order in which {name} collects values differs, and results must be the same after a restart"
            raise text.error(message, node, f"write {name}(...) WITHIN GROUP (ORDER BY ...)")


def _is_sorted(aggregate: Expr) -> bool:
    """Whether the aggregate, with its FILTER clause, is the argument of a function that sorts it."""
    parent = aggregate.parent.parent if isinstance(aggregate.parent, e.Filter) else aggregate.parent
    return parent is not None and function_name(parent) in _SORTING_FUNCTIONS
