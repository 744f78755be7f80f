import numpy as np
import pytest

from thalweg.ordering.types import Integers
from thalweg.routing.candidates import Candidates, find_candidates
from thalweg.routing.classifier_sample import ClassifierSample
from thalweg.routing.derived import RoutingAttribute

FILTERS = 4
LEAST = 0.02  # share of the cost that is worth routing for


def masks_of(drops: np.ndarray, random: np.random.Generator) -> Integers:
    """A drop mask for each row of drop rates."""
    masks: Integers = (random.random(drops.shape) < drops) @ (1 << np.arange(FILTERS))
    return masks


def found(masks: Integers, values: np.ndarray, names: list[str]) -> Candidates:
    dropped = masks > 0
    sample = ClassifierSample(len(names), masks.size)
    sample.insert(masks[dropped], values[dropped].astype(np.int64), values[dropped].astype(float))
    free = np.zeros(FILTERS, np.int64)
    widths = np.full(len(names), 8.0)
    attributes = [RoutingAttribute(name) for name in names]
    return find_candidates(
        sample, attributes, np.ones(FILTERS), free, most_classes=16, pairs=False, refused={}, widths=widths
    )


def adopted(candidates: Candidates) -> bool:
    return candidates.best(lambda cost: LEAST * cost) is not None


def test_noise_is_not_adopted_where_two_regimes_alternate() -> None:
    """A class order that is wrong for the regime it was learnt in may be right for the regime it is tried in."""
    lucky = 0
    for seed in range(60):
        random = np.random.default_rng(seed)
        regimes = random.uniform(0.02, 0.98, (2, FILTERS))
        masks = masks_of(np.repeat(regimes, 250, axis=0), random)
        values = np.column_stack([random.integers(0, kinds, 500) for kinds in (2, 3, 5, 8)])
        lucky += adopted(found(masks, values, list("abcd")))
    assert lucky == 0


@pytest.mark.parametrize("run", [1, 10, 100])
def test_classes_are_adopted_also_where_rows_come_by_class(run: int) -> None:
    random = np.random.default_rng(0)
    kinds = np.arange(1200) // run % 2 if run > 1 else random.integers(0, 2, 1200)
    masks = masks_of(np.array([[0.8, 0.1, 0.1, 0.1], [0.1, 0.8, 0.1, 0.1]])[kinds], random)
    assert adopted(found(masks, kinds[:, None], ["kind"]))


@pytest.mark.parametrize("values", [np.arange(1000) // 5, np.arange(1000) + 200 * np.sin(np.arange(1000))])
def test_values_that_grow_with_time_are_no_candidates(values: np.ndarray) -> None:
    random = np.random.default_rng(0)
    regimes = np.array([[0.8, 0.1, 0.1, 0.1], [0.1, 0.8, 0.1, 0.1]])[np.arange(1000) // 100 % 2]
    candidates = found(masks_of(regimes, random), values[:, None], ["growing"])
    assert "with time" in candidates.pruned["growing"]
