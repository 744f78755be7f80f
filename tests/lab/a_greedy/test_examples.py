import numpy as np
import pytest

from thalweg.lab.a_greedy.examples import EXPERIMENT, figure_2_stream, probes


@pytest.mark.parametrize(("order", "expected"), [((0, 1, 2, 3), 20), ((2, 1, 3, 0), 18), ((2, 0, 1, 3), 16)])
def test_the_papers_probes(order: tuple[int, ...], expected: int) -> None:
    assert probes(figure_2_stream(), order) == expected


def test_a_tuple_nothing_drops_meets_every_filter() -> None:
    assert probes(np.zeros((3, 5), dtype=bool), range(5)) == 15
    assert probes(np.ones((3, 5), dtype=bool), range(5)) == 3


def test_all_claims_hold() -> None:
    rows = [row for setting in EXPERIMENT.settings(True) for row in EXPERIMENT.measure(setting)]  # noqa: FBT003
    results = EXPERIMENT.judge(rows)
    assert len(results) == 4
    assert all(result.holds for result in results)
