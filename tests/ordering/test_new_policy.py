"""A policy that is defined in one place, here, runs wherever a policy runs: no other file has to know it."""

from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

from thalweg.drift import Watched
from thalweg.ordering.cost import drop_counts
from thalweg.ordering.pipeline import Filter, Pipeline
from thalweg.ordering.policy import Batch, Policy, ProcessingCounts, insert, log_change, want_rest
from thalweg.ordering.replay import replay
from thalweg.ordering.types import Integers
from thalweg.routing import ClassRouter, RoutedPipeline


def sort_filters(policy: Policy, drops: Integers) -> bool:
    """Run the filter that drops most first; returns whether the order changed."""
    before = policy.order
    policy.state.order[:] = np.argsort(-drops, kind="stable")
    changed = [place for place, number in enumerate(policy.order) if number != before[place]]
    if changed:
        log_change(policy.profile.arrays, policy.state, changed[0], before[changed[0]])
        want_rest(policy.state.order, policy.state.wanted)
    return bool(changed)


class ByDrops(Policy):
    """Sorts filters by how many of the profile tuples in the window they drop."""

    name: ClassVar[str] = "by-drops"
    default_p: ClassVar[float] = 0.1
    profiles_all_filters: ClassVar[bool] = True

    def _prepare(self) -> None:
        want_rest(self.state.order, self.state.wanted)

    def _adapt(self, batch: Batch) -> bool:
        insert(self.profile.arrays, batch)
        return sort_filters(self, drop_counts(self.profile.masks, self.filters).astype(np.int64))


class ByDropsSeen(Policy):
    """Sorts filters by how many tuples they drop in ordinary processing."""

    name: ClassVar[str] = "by-drops-seen"
    total_rows: ClassVar[int] = 1
    learns_from_processing: ClassVar[bool] = True

    def _observe(self, counts: ProcessingCounts) -> bool:
        self.state.totals[0] += counts.dropped
        return sort_filters(self, self.state.totals[0].astype(np.int64))


both = pytest.mark.parametrize("kind", [ByDrops, ByDropsSeen], ids=lambda kind: kind.name)


def masks_of(drops: list[float], size: int, seed: int = 0) -> Integers:
    bits = np.random.default_rng(seed).random((size, len(drops))) < drops
    masks: Integers = (bits << np.arange(len(drops))).sum(axis=1)
    return masks


def bit(number: int) -> Filter:
    """A filter that drops the rows whose bit is set."""
    return lambda rows: rows >> number & 1 == 0


@both
def test_it_learns_from_a_sample(kind: type[Policy]) -> None:
    policy = kind(3)
    replay(policy, masks_of([0.05, 0.4, 0.9], 4000), [1.0, 1.0, 1.0])
    assert policy.order == (2, 1, 0)


@both
def test_it_orders_a_pipeline(kind: type[Policy]) -> None:
    rows = masks_of([0.05, 0.4, 0.9], 20_000)
    pipeline = Pipeline(kind(3), [bit(number) for number in range(3)])
    assert (rows[pipeline.keep(rows)] == 0).all()
    assert pipeline.policy.order == (2, 1, 0)


def test_it_is_watched() -> None:
    masks = np.concatenate([masks_of([0.9, 0.3], 5000), masks_of([0.2, 0.6], 5000)])
    alone, watched = ByDrops(2, window=10_000), Watched(ByDrops(2, window=10_000), "bcs")
    for policy in (alone, watched):
        policy.update(masks)
    assert alone.order == (0, 1)
    assert watched.order == (1, 0)
    assert watched.changes[0].at == pytest.approx(5000, abs=100)


def test_it_orders_classes_of_rows() -> None:
    router = ClassRouter(lambda order: ByDrops(2, order=order), ["kind"])
    filters = [lambda x: x % 2 == 0, lambda x: x % 2 == 1]
    pipeline = RoutedPipeline(router, filters, costs=[1, 1], clock=lambda: 0.0)
    for seed in range(6):
        rows = np.random.default_rng(seed).integers(0, 100, 1000)
        assert not pipeline.keep(rows, {"kind": pa.array(rows % 2)}).any()
    assert router.explain()["classifier"]["attributes"] == ["kind"]
    assert sorted(policy.order for policy in router.policies[1:]) == [(0, 1), (1, 0)]
