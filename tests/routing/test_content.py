"""Content-Knows and Content-Learns."""

import numpy as np
import pytest

from thalweg.routing import ContentKnows, ContentLearns, HashPartition, Router, Selectivity, calls_of
from thalweg_lab.experiments.cbr.stream import CLASSIFIER, Stream, diagonal

PARTS = 32


def calls_per_tuple(router: Router, stream: Stream, tuples: int = 100_000, batch: int = 500) -> float:
    calls = 0
    for _ in range(tuples // batch):
        part = stream.next(batch)
        contents = np.column_stack([HashPartition(PARTS).of(column) for column in part.values.T])
        orders = router.orders(contents)
        visited, dropped = calls_of(orders, part.masks)
        router.observe(orders, visited, dropped, contents)
        calls += int(visited.sum())
    return calls / tuples


def test_it_learns_what_content_knows_knows() -> None:
    """Tables 5 and 6, four operators, the greatest skew."""
    rates = {}
    for router in (
        Selectivity(4),
        ContentKnows(4, [PARTS] * 7, classifiers=dict.fromkeys(range(4), CLASSIFIER)),
        ContentLearns(4, [PARTS] * 7),
    ):
        rates[router.name] = calls_per_tuple(router, Stream(diagonal(4, 0.05, 1.0)), 50_000)
        if isinstance(router, ContentLearns):
            assert set(router.classifiers.values()) == {CLASSIFIER}
            assert set(router.classifiers) | {router.profiled} == set(range(4))
    assert rates["content-knows"] == pytest.approx(1.15, abs=0.03)
    assert rates["content-knows"] < rates["content-learns"] < 0.85 * rates["selectivity"]


def test_without_skew_no_classifier_is_found() -> None:
    router = ContentLearns(4, [PARTS] * 7)
    calls_per_tuple(router, Stream(np.full((4, 4), 0.47)), 50_000)
    assert not router.classifiers


def test_a_classifier_that_does_not_help_is_rejected() -> None:
    """The operator passes half of one class, but is so dear that it comes last for both."""
    stream = Stream([[0.5, 0.5, 0.1], [0.5, 0.5, 0.9]])
    router = ContentLearns(3, [PARTS] * 6, costs=[1, 1, 1000], prune=False)
    calls_per_tuple(router, stream, 60_000)
    assert router.rejected or not router.classifiers.keys() - {2}
    pruned = ContentLearns(3, [PARTS] * 6, costs=[1, 1, 1000])
    calls_per_tuple(pruned, stream, 60_000)
    assert "comes last" in pruned.pruned[2]


def test_other_operators_than_filters_are_judged_by_variance() -> None:
    router = ContentLearns(2, [PARTS] * 5, filters=False, trial=False, threshold=0.1)
    calls_per_tuple(router, Stream(diagonal(2, 0.1, 0.9)), 30_000)
    assert set(router.classifiers.values()) == {CLASSIFIER}


def test_unseen_values_count_as_the_operator_does() -> None:
    router = ContentKnows(2, [4], classifiers={0: 0})
    router.count([100, 100], [50, 20])
    router.count_class(0, [1] * 50, [0] * 50)
    assert router.orders([[1], [3]]).tolist() == [[0, 1], [1, 0]]


def test_mistakes_say_what_is_there() -> None:
    with pytest.raises(ValueError, match="2 operators and 1 attributes"):
        ContentKnows(2, [4], classifiers={0: 3})
    with pytest.raises(ValueError, match="between 0 and 1 is sampled, not 2"):
        ContentLearns(2, sampled=2)
    with pytest.raises(ValueError, match="asked for 0 tuples"):
        ContentLearns(2).observe(np.array([[0, 1]]), np.array([1]), np.array([True]), np.zeros((1, 0)))
