import numpy as np
import pytest

from thalweg_lab.workload import Workload


def agreement(workload: Workload) -> tuple[np.ndarray, np.ndarray]:
    masks = workload.masks(200_000, np.random.default_rng(0))
    bits = (masks[:, None] >> np.arange(workload.filters)) & 1
    return bits.mean(axis=0), (bits[:, :, None] == bits[:, None, :]).mean(axis=0)


@pytest.mark.parametrize(("drop", "gamma"), [(0.5, 2), (0.5, 4), (0.3, 2), (0.7, 3), (0.2, 8)])
def test_filters_of_a_group_agree_on_four_fifths(drop: float, gamma: int) -> None:
    drops, agree = agreement(Workload((drop,) * 8, gamma=gamma))
    assert drops == pytest.approx(np.full(8, drop), abs=0.01)
    for i in range(8):
        for j in range(i):
            same_group = i // gamma == j // gamma
            expected = 0.8 if same_group else drop**2 + (1 - drop) ** 2
            assert agree[i, j] == pytest.approx(expected, abs=0.01)


def test_gamma_one_makes_all_independent() -> None:
    _, agree = agreement(Workload((0.5,) * 3, gamma=1))
    assert agree[0, 1] == pytest.approx(0.5, abs=0.01)


def test_extreme_rates_are_never_correlated_negatively() -> None:
    """Independent filters of 5% agree on 90% already: more disagreement is not asked for."""
    _, agree = agreement(Workload((0.05,) * 2, gamma=2))
    assert agree[0, 1] == pytest.approx(0.905, abs=0.01)


def test_different_rates_in_a_group_keep_their_rates() -> None:
    drops, agree = agreement(Workload((0.3, 0.45), gamma=2))
    assert drops == pytest.approx([0.3, 0.45], abs=0.01)
    assert agree[0, 1] == pytest.approx(0.8, abs=0.01)


def test_permuted_keeps_the_rates_and_chunks_add_up() -> None:
    random = np.random.default_rng(0)
    workload = Workload((0.1, 0.2, 0.3, 0.4))
    assert sorted(workload.permuted(random).drops) == [0.1, 0.2, 0.3, 0.4]
    assert sum(chunk.size for chunk in workload.chunks(250_000, random)) == 250_000
