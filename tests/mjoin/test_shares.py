from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from thalweg.mjoin.place import first_cells
from thalweg.mjoin.shares import Shares, choose_shares, labels, spark_hash

NAMES = "ABCD"


@st.composite
def placements(draw: st.DrawFn) -> dict[str, frozenset[int]]:
    """Inputs that know their place along some classes; every class has an input."""
    classes = draw(st.integers(1, 3))
    several = {name: draw(st.frozensets(st.integers(0, classes - 1), min_size=1)) for name in NAMES}
    return several | {"A": several["A"] | {classes - 1}}


@given(placements(), st.integers(1, 12), st.lists(st.floats(0.1, 100), min_size=4, max_size=4))
def test_no_grid_of_as_many_cells_sends_fewer_rows(
    placed_by: dict[str, frozenset[int]], cells: int, rates: list[float]
) -> None:
    by_name = dict(zip(NAMES, rates, strict=True))
    chosen = choose_shares(placed_by, by_name, cells)
    assert chosen.cells == cells

    def sent(grid: Shares) -> float:
        return sum(rate * grid.copies(name) for name, rate in by_name.items())

    for sizes in product(range(1, cells + 1), repeat=len(chosen.sizes)):
        if np.prod(sizes) == cells:
            assert sent(chosen) <= sent(Shares(sizes, placed_by)) * (1 + 1e-12)


@given(placements(), st.integers(1, 12), st.data())
def test_rows_that_agree_meet_in_exactly_one_cell(
    placed_by: dict[str, frozenset[int]], cells: int, data: st.DataObject
) -> None:
    grid = choose_shares(placed_by, dict.fromkeys(NAMES, 1.0), cells)
    hashes = data.draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=3, max_size=3))
    met = set(range(cells))
    for name, classes in placed_by.items():
        own = {number: np.array([hashes[number]]) for number in classes}
        (first,) = first_cells(own, grid, 1).tolist()
        assert grid.is_first(name, first)
        reached = {first + offset for offset in grid.offsets(name)}
        assert len(reached) == grid.copies(name)
        assert sum(grid.is_first(name, cell) for cell in reached) == 1
        met &= reached
    assert len(met) == 1


def test_one_common_class_copies_nothing() -> None:
    placed_by = {"A": frozenset([0, 1]), "B": frozenset([0]), "C": frozenset([0, 1])}
    grid = choose_shares(placed_by, {"A": 1, "B": 9, "C": 1}, 8)
    assert grid.sizes == (8, 1)
    assert {grid.copies(name) for name in placed_by} == {1}


def test_labels_go_to_a_partition_each() -> None:
    for cells in range(1, 40):
        assert len({spark_hash(label) % cells for label in labels(cells)}) == cells
