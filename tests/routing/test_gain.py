import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.routing.gain import TABLE, Matrices, entropy, gain

TABLE_1 = {"O1": (0.32, 0.31, 0.27), "O2": (0.10, 0.20, 0.90), "O3": (0.55, 0.65, 0.60)}
shares = st.lists(st.floats(0, 1), min_size=1, max_size=6)


def test_table_1_of_the_paper() -> None:
    ratios = {name: gain(column, np.full(3, 1 / 3)).ratio for name, column in TABLE_1.items()}
    assert {name: round(ratio, 3) for name, ratio in ratios.items()} == {"O1": 0.001, "O2": 0.264, "O3": 0.003}
    assert max(ratios, key=lambda name: ratios[name]) == "O2"


def test_the_parts_of_a_gain() -> None:
    found = gain(TABLE_1["O2"], np.full(3, 1 / 3))
    assert found.entropy == pytest.approx(0.971, abs=5e-4)  # of 0.4
    assert found.split == pytest.approx(np.log2(3))
    assert found.information == pytest.approx(0.418, abs=5e-4)


def test_table_1_from_tuples_with_entropies_looked_up() -> None:
    """A table of hundredths gives the same choice; the selectivities of table 1 are hundredths themselves."""
    ratios = []
    for column in TABLE_1.values():
        matrices = Matrices([3, 1])
        for value, passed in enumerate(column):
            outputs = np.arange(100) < round(100 * passed)
            matrices.add(np.column_stack([np.full(100, value), np.zeros(100, np.int64)]), outputs)
        assert matrices.selectivities[:, 0].tolist() == pytest.approx(list(column))
        assert matrices.weights[:, 0].tolist() == pytest.approx([1 / 3] * 3)
        informative, constant = matrices.gains(look_up=True)
        assert constant.ratio == 0
        assert informative.ratio == pytest.approx(matrices.gains()[0].ratio, abs=0.01)
        ratios.append(informative.ratio)
    assert int(np.argmax(ratios)) == 1


@given(selectivities=shares, seed=st.integers(0, 99))
def test_knowing_an_attribute_never_takes_information_away(selectivities: list[float], seed: int) -> None:
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(selectivities)))
    found = gain(selectivities, weights)
    assert 0 <= found.information <= found.entropy + 1e-9
    assert found.ratio >= 0


def test_entropies_by_look_up_are_near() -> None:
    exact, looked_up = entropy(np.linspace(0.05, 0.95, 500)), entropy(np.linspace(0.05, 0.95, 500), look_up=True)
    assert np.abs(exact - looked_up).max() < 0.025
    assert TABLE[[0, 50, 100]].tolist() == [0, 1, 0]


def test_variance_ranks_operators_that_are_not_filters() -> None:
    random = np.random.default_rng(0)
    values = random.integers(0, 4, (2000, 2))
    matrices = Matrices([4, 4])
    matrices.add(values, random.poisson(1 + 3 * values[:, 0]))
    informative, not_so = matrices.variances()
    assert informative == pytest.approx(9 * 1.25, rel=0.1)
    assert not_so < 0.1


def test_a_partition_without_tuples_is_no_trouble() -> None:
    matrices = Matrices([8])
    assert [one.ratio for one in matrices.gains()] == [0]
    matrices.add([[0], [1]], [1, 0])
    assert matrices.gains()[0].ratio == 1
    assert np.isnan(matrices.selectivities[2:]).all()
