import numpy as np
import pyarrow as pa
import pytest

from thalweg.routing.partition import codes, numbers
from thalweg.routing.prune import is_monotone, pruned_attribute, pruned_operators

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("column", "width", "reason"),
    [
        (pa.array(["x"] * 1000), 1.0, "constant"),
        (pa.nulls(1000, pa.string()), 0.0, "constant"),
        (pa.array(np.arange(1000)), 8.0, "grows or falls with time"),
        (pa.array(-np.arange(1000.0)), 8.0, "grows or falls with time"),
        (pa.array(np.arange(1000) * 1000 + RANDOM.integers(0, 9, 1000), pa.timestamp("us")), 8.0, "grows or falls"),
        (pa.array([str(number) for number in RANDOM.permutation(1000)]), 3.0, "high cardinality: 1000 values in 1000"),
        (pa.array(RANDOM.choice(["a" * 200, "b" * 200], 1000)), 200.0, "wide: its values have 200 bytes"),
        (pa.array(RANDOM.choice(["a", "b"], 1000)), 1.0, None),
        (pa.array(RANDOM.random(1000)), 8.0, None),
        (pa.array(np.sort(RANDOM.integers(0, 5, 1000))), 8.0, None),  # sorted, but by few values: data come in clusters
        (pa.array([*["a"] * 600, *(str(number) for number in range(400))]), 2.0, None),
    ],
)
def test_attributes_that_cannot_tell_classes_apart_are_pruned(
    column: pa.Array, width: float, reason: str | None
) -> None:
    found = pruned_attribute(codes(column), numbers(column), width=width)
    assert found is None if reason is None else reason in str(found)


def test_operators_that_stay_where_they_are_are_pruned() -> None:
    assert not pruned_operators([0.5, 0.6, 0.7], [1, 1, 1])
    assert list(pruned_operators([0.5, 0.6, 0.5], [1, 1, 0.01])) == [2]
    assert "first" in pruned_operators([0.5, 0.6, 0.5], [1, 1, 0.01])[2]
    assert "last" in pruned_operators([0.5, 0.6, 0.5], [1, 1, 100])[2]
    assert not pruned_operators([0.5], [1])


def test_a_few_stragglers_do_not_hide_a_sequence() -> None:
    line = np.arange(1000.0)
    line[::100] -= 50
    assert is_monotone(line)
    assert not is_monotone(np.array([np.nan, 3.0]))


def test_infinities_are_no_steps() -> None:
    endless = np.array([np.inf, np.inf, 1.0, 2.0, -np.inf, 3.0])
    assert is_monotone(endless)
    assert not is_monotone(np.full(5, np.inf))
