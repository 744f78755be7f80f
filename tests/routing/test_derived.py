from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pytest

from thalweg.ordering import AGreedy
from thalweg.routing import ClassRouter
from thalweg.routing.attributes import MOST_ATTRIBUTES, MOST_DERIVED, MOST_NAMES, AttributeReader
from thalweg.routing.derived import DERIVATIONS, RoutingAttribute

ROWS = 1000
DAY = datetime(2026, 11, 16, 13, 5, tzinfo=UTC)  # a Monday

VALUES = [
    ("left({}, 4)", pa.array(["/api/users", "ä", None]), ["/api", "ä", None]),
    ("left({}, 8)", pa.array(["GET /api/users"], pa.large_string()), ["GET /api"]),
    ("hour({})", pa.array([DAY, None]), [13, None]),
    ("hour({})", pa.array([DAY], pa.timestamp("us", tz="Asia/Tokyo")), [22]),
    ("weekday({})", pa.array([DAY]), [0]),
    ("weekday({})", pa.array([date(2026, 11, 15)]), [6]),
    ("{} % 2", pa.array([7, -7, None]), [1, -1, None]),
    ("{} % 10", pa.array([127, 30], pa.int8()), [7, 0]),
]


@pytest.mark.parametrize(("sql", "column", "expected"), VALUES)
def test_derived_values(sql: str, column: pa.Array, expected: list[object]) -> None:
    [derivation] = [derivation for derivation in DERIVATIONS if derivation.sql == sql]
    assert derivation.applies(column.type)
    assert RoutingAttribute("x", derivation).of(column).to_pylist() == expected


@pytest.mark.parametrize("derivation", DERIVATIONS, ids=lambda derivation: derivation.sql)
def test_nothing_is_derived_from_other_types(derivation: object) -> None:
    for kind in (pa.float64(), pa.bool_(), pa.binary(), pa.list_(pa.string()), pa.decimal128(5, 2)):
        assert not derivation.applies(kind)  # type: ignore[attr-defined]


def test_names_are_bounded() -> None:
    assert len(AttributeReader([f"c{number}" for number in range(MOST_DERIVED)]).names) == MOST_NAMES
    assert len(AttributeReader([f"c{number}" for number in range(MOST_ATTRIBUTES)]).names) == MOST_ATTRIBUTES


def columns_of(name: str, second: np.ndarray, random: np.random.Generator) -> dict[str, pa.Array]:
    """Columns whose values tell two kinds of rows apart by a part of each value."""
    numbers = 2 * random.integers(0, 10**6, second.size) + second
    hours = np.where(second, 12, 0) + random.integers(0, 10, second.size)
    return {
        "left(x, 4)": {
            "x": pa.array(
                [f"/{'api' if kind else 'img'}/{number}" for kind, number in zip(second, numbers, strict=True)]
            )
        },
        "hour(x)": {"x": pa.array((24 * random.integers(0, 999, second.size) + hours) * 3600, pa.timestamp("s"))},
        "x % 2": {"x": pa.array(numbers)},
    }[name]


@pytest.mark.parametrize("name", ["left(x, 4)", "hour(x)", "x % 2"])
def test_classes_are_found_by_a_part_of_a_value_and_saved(name: str) -> None:
    random = np.random.default_rng(0)
    router = ClassRouter(lambda order: AGreedy(2, order=order), ["x"])
    for _ in range(10):
        second = random.random(100) < 0.5
        router.learn(1 << second.astype(np.int64), None, columns_of(name, second, random))
    assert router.in_use == (name,)
    again = ClassRouter.from_bytes(router.to_bytes(), lambda order: AGreedy(2, order=order), ["x"])
    second = random.random(ROWS) < 0.5
    classes = again.classify(columns_of(name, second, random))
    orders = np.array([again.policies[number].order[0] for number in classes])
    assert (orders == second).mean() > 0.85  # ranges of hours do not end where the kinds do
    assert again.in_use == (name,)


def test_two_columns_together_are_found_in_a_small_sample() -> None:
    random = np.random.default_rng(0)
    router = ClassRouter(lambda order: AGreedy(2, order=order), ["left", "right"])
    for _ in range(5):
        left, right = random.integers(0, 2, 100), random.integers(0, 2, 100)
        router.learn(1 << (left ^ right), None, {"left": pa.array(left), "right": pa.array(right)})
    assert router.in_use == ("left", "right")
