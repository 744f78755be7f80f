"""Arguments of the wrong kind: predicates' metadata and options of queries, with any values."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.fuzz.inputs import ODD_WORDS, any_bytes, json_value, refuses_clearly, try_inputs

import thalweg as tw
from thalweg.ordering import POLICIES
from thalweg.registry import find
from thalweg.spark.joins.text import microseconds, parse_select, parse_window
from thalweg.spark.session.memory import memory_cap
from thalweg.spark.session.standing import QueryOptions

COMMON = ("name", "cost", "pinned", "deterministic", "after")
NAMES = (*COMMON, "on", "takes", "concurrency", "timeout", "retries")
ODD_OBJECTS = (object(), len, int, ...)


def keep(a: Any) -> Any:  # noqa: ANN401 - never called
    return a


async def wait(a: Any) -> Any:  # noqa: ANN401 - never called
    return a


def anything(random: Random) -> Any:  # noqa: ANN401 - really anything
    kind = random.randint(0, 9)
    if kind == 0:
        return random.choice(ODD_OBJECTS)
    if kind == 1:
        return any_bytes(random, 3)
    return random.choice(ODD_WORDS) if kind == 2 else json_value(random)


def options(random: Random, names: tuple[str, ...]) -> dict[str, Any]:
    return {random.choice(names): anything(random) for _ in range(random.randint(0, 4))}


def test_the_metadata_of_a_predicate() -> None:
    def check(given: dict[str, Any]) -> None:
        refuses_clearly(lambda: tw.predicate(**given)(keep), TypeError, ValueError)
        refuses_clearly(lambda: tw.predicate(**given | {"takes": "async"})(wait), TypeError, ValueError)

    try_inputs(lambda random: options(random, NAMES), check)


def test_the_options_of_all_predicates() -> None:
    def check(given: dict[str, Any]) -> None:
        refuses_clearly(lambda: tw.expr("a > 1", **given), TypeError, ValueError)
        refuses_clearly(lambda: tw.any_of("a > 1", "b > 1", **given), TypeError, ValueError)
        refuses_clearly(lambda: tw.not_("a > 1", **given), TypeError, ValueError)

    try_inputs(lambda random: options(random, COMMON), check)


def test_predicates_of_anything() -> None:
    def check(given: tuple[Any, Any]) -> None:
        first, second = given
        refuses_clearly(lambda: tw.regex(first, second), TypeError, ValueError)
        refuses_clearly(lambda: tw.expr(first), TypeError, ValueError)
        refuses_clearly(lambda: tw.any_of(first, second), TypeError, ValueError)
        refuses_clearly(lambda: tw.not_(first), TypeError, ValueError)
        refuses_clearly(lambda: tw.predicate(first), TypeError, ValueError)
        if not isinstance(first, str):  # which is a path, at which Spark looks
            refuses_clearly(lambda: tw.lookup(first, on=second), TypeError, ValueError)
            refuses_clearly(lambda: tw.prefix_match(first, on=second), TypeError, ValueError)

    try_inputs(lambda random: (anything(random), anything(random)), check)


def test_the_options_of_a_query() -> None:
    def check(given: list[Any]) -> None:
        rate, memory, partitions, scheduler = given
        refuses_clearly(lambda: QueryOptions.checked(rate, memory, partitions, scheduler), TypeError, ValueError)
        refuses_clearly(lambda: memory_cap(memory), TypeError, ValueError)

    try_inputs(lambda random: [anything(random) for _ in range(4)], check)


def test_the_options_of_a_join() -> None:
    def check(value: Any) -> None:  # noqa: ANN401 - really anything
        refuses_clearly(lambda: microseconds(value, "the delay"), ValueError)
        refuses_clearly(lambda: parse_window(value, "A"), ValueError)
        refuses_clearly(lambda: parse_select(value, {"A": ["x"]}), TypeError, ValueError)
        refuses_clearly(lambda: find(value, POLICIES, "policy"), TypeError, ValueError)

    try_inputs(anything, check)
