import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from thalweg.ordering import MatrixView, ViewEntries
from thalweg.ordering.matrix_view import count
from thalweg.ordering.types import Integers


def counted(masks: list[int], order: list[int]) -> Integers:
    """The full view by its definition."""
    filters = len(order)
    view = np.zeros((filters, filters), np.int64)
    for row in range(filters):
        alive = [mask for mask in masks if not any(mask >> one & 1 for one in order[:row])]
        for position in range(row, filters):
            view[row, position] = sum(mask >> order[position] & 1 for mask in alive)
    return view


def kept(shape: ViewEntries, filters: int, column: int) -> Integers:
    """Which entries a shape keeps (figure 7), as ones."""
    entries = np.zeros((filters, filters), np.int64)
    if shape is ViewEntries.FULL:
        entries[np.triu_indices(filters)] = 1
    elif shape is ViewEntries.COLUMN:
        entries[range(column + 1), range(column + 1)] = 1
        entries[: column + 1, column] = 1
    elif shape is ViewEntries.ROW:
        entries[0] = 1
    else:
        entries[range(filters), range(filters)] = 1
        entries[range(filters - 1), range(1, filters)] = 1
    return entries


@given(st.data())
def test_incremental_view_equals_a_recount(data: st.DataObject) -> None:
    filters = data.draw(st.integers(1, 6))
    order = data.draw(st.permutations(range(filters)))
    shape = data.draw(st.sampled_from(ViewEntries))
    column = data.draw(st.integers(0, filters - 1))
    view = MatrixView(order, shape, column)
    inside: list[int] = []
    for step in data.draw(st.lists(st.tuples(st.booleans(), st.integers(0, 2**filters - 1)), max_size=40)):
        deletes, mask = step
        if deletes and inside:
            count(view.counts, view.order, int(shape), column, inside.pop(0), -1)
        else:
            view.insert(mask)
            inside.append(mask)
        assert np.array_equal(view.counts, counted(inside, order) * kept(shape, filters, column))


def test_view_of_figure_6() -> None:
    """Rows 1 and 2 after tuples 3 and 6 have come, for the order F3 F1 F2 F4."""
    view = MatrixView((2, 0, 1, 3))
    view.insert([0b0001, 0b0100, 0b1011, 0b1110, 0b1100, 0b1011])
    assert view.counts[0].tolist() == [3, 3, 3, 4]
    assert view.counts[1, 1:].tolist() == [3, 2, 2]
