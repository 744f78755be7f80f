"""Arguments of the wrong kind: predicates' metadata and options of queries, with any values."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.inputs import ODD_WORDS, fuzzed, json_values, refuses_clearly

import thalweg as tw
from thalweg.ordering import POLICIES
from thalweg.registry import find
from thalweg.spark.joins.text import microseconds, parse_select, parse_window
from thalweg.spark.session.memory import memory_cap
from thalweg.spark.session.standing import QueryOptions

COMMON = ("name", "cost", "pinned", "deterministic", "after")
NAMES = (*COMMON, "on", "takes", "concurrency", "timeout", "retries")
anything = json_values | st.sampled_from(ODD_WORDS) | st.binary(max_size=3) | st.sampled_from([object(), len, int, ...])


def keep(a: Any) -> Any:  # noqa: ANN401 - never called
    return a


async def wait(a: Any) -> Any:  # noqa: ANN401 - never called
    return a


@fuzzed
@given(st.dictionaries(st.sampled_from(NAMES), anything, max_size=4))
def test_the_metadata_of_a_predicate(options: dict[str, Any]) -> None:
    refuses_clearly(lambda: tw.predicate(**options)(keep), TypeError, ValueError)
    refuses_clearly(lambda: tw.predicate(**options | {"takes": "async"})(wait), TypeError, ValueError)


@fuzzed
@given(st.dictionaries(st.sampled_from(COMMON), anything, max_size=3))
def test_the_options_of_all_predicates(options: dict[str, Any]) -> None:
    refuses_clearly(lambda: tw.expr("a > 1", **options), TypeError, ValueError)
    refuses_clearly(lambda: tw.any_of("a > 1", "b > 1", **options), TypeError, ValueError)
    refuses_clearly(lambda: tw.not_("a > 1", **options), TypeError, ValueError)


@fuzzed
@given(anything, anything)
def test_predicates_of_anything(first: Any, second: Any) -> None:  # noqa: ANN401
    refuses_clearly(lambda: tw.regex(first, second), TypeError, ValueError)
    refuses_clearly(lambda: tw.expr(first), TypeError, ValueError)
    refuses_clearly(lambda: tw.any_of(first, second), TypeError, ValueError)
    refuses_clearly(lambda: tw.not_(first), TypeError, ValueError)
    refuses_clearly(lambda: tw.predicate(first), TypeError, ValueError)
    if not isinstance(first, str):  # which is a path, at which Spark looks
        refuses_clearly(lambda: tw.lookup(first, on=second), TypeError, ValueError)
        refuses_clearly(lambda: tw.prefix_match(first, on=second), TypeError, ValueError)


@fuzzed
@given(anything, anything, anything, anything)
def test_the_options_of_a_query(rate: Any, memory: Any, partitions: Any, scheduler: Any) -> None:  # noqa: ANN401
    refuses_clearly(lambda: QueryOptions.checked(rate, memory, partitions, scheduler), TypeError, ValueError)
    refuses_clearly(lambda: memory_cap(memory), TypeError, ValueError)


@fuzzed
@given(anything)
def test_the_options_of_a_join(value: Any) -> None:  # noqa: ANN401
    refuses_clearly(lambda: microseconds(value, "the delay"), ValueError)
    refuses_clearly(lambda: parse_window(value, "A"), ValueError)
    refuses_clearly(lambda: parse_select(value, {"A": ["x"]}), TypeError, ValueError)
    refuses_clearly(lambda: find(value, POLICIES, "policy"), TypeError, ValueError)
