"""No public call reaches a kernel unchecked: a compiled kernel would write beyond its arrays, or never end."""

from collections.abc import Callable

import numpy as np
import pytest

from thalweg.ordering import AGreedy, MatrixView, Profile, Sampler, ViewEntries, optimal_order
from thalweg.ordering.sampling import ProcessingCounts

NAN = float("nan")


def watch(evaluated: list[float], dropped: list[float]) -> Callable[[], object]:
    sampler = Sampler(2, 0.01, adaptive=True)
    counts = ProcessingCounts(np.array(evaluated), np.array(dropped), np.ones(len(evaluated)))
    return lambda: sampler.watch(counts, seen=0, window=10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: AGreedy(3).observe([1] * 5, [1] * 5, [1.0] * 5), "3 numbers each"),
        (lambda: AGreedy(3).observe([1] * 100_000, [1] * 100_000, [1.0] * 100_000), "3 numbers each"),
        (lambda: AGreedy(3).observe([1] * 3, [2] * 3, [1.0] * 3), "from 0 to all"),
        (lambda: AGreedy(3).observe([1] * 3, [-1] * 3, [1.0] * 3), "from 0 to all"),
        (lambda: AGreedy(3).observe([NAN] * 3, [1] * 3, [1.0] * 3), "from 0 to all"),
        (lambda: AGreedy(3).observe([1] * 3, [1] * 3, [NAN] * 3), "0 seconds or more"),
        (lambda: AGreedy(3).update([8]), "between 0 and 7"),
        (lambda: AGreedy(3).update([-1]), "between 0 and 7"),
        (watch([1.0] * 500, [1.0] * 500), "2 numbers each"),
        (watch([1.0] * 2, [2.0] * 2), "from 0 to all"),
        (lambda: Sampler(1, 0.5).use(7.0), "between 0 and 1"),
        (lambda: Profile(3).insert([1], times=[[1.0, 2.0]]), "non-negative seconds"),
        (lambda: MatrixView((0, 1)).insert([1 << 40]), "between 0 and 3"),
        (lambda: MatrixView((0, 70)), "each of the filters 0..1 once"),
        (lambda: MatrixView((0, 1), ViewEntries.COLUMN, 5), "position of its order"),
        (lambda: optimal_order([1 << 10] * 5, costs=[1] * 6), "between 0 and 63"),
        (lambda: optimal_order([-1] * 5, costs=[1] * 6), "between 0 and 63"),
        (lambda: optimal_order([1], costs=[1] * 6, required=np.zeros(2, np.int64)), "each of the 6 filters"),
        (lambda: optimal_order([1], costs=[1, -1]), "numbers of 0 or more"),
        (lambda: optimal_order([1], costs=[[1]]), "numbers of 0 or more"),
    ],
)
def test_arguments_that_a_kernel_cannot_take_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
