import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from thalweg.ordering import AGreedy
from thalweg.routing import ClassRouter
from thalweg.routing.classifier import Cells, Classifier
from thalweg.routing.partition import codes, numbers
from thalweg.routing.values import KnownValues, Range, members


def test_values_are_kept_once_and_not_too_many() -> None:
    values = KnownValues(most=3)
    for column in (pa.array([1, 1, 2]), pa.array([2, 3, 4, 5])):
        values.note(column, codes(column))
    assert set(values.array.to_pylist()[:2]) == {1, 2}
    assert len(values.array) == len(values.codes) == 3


def test_encoded_values_are_decoded() -> None:
    values = KnownValues()
    column = pa.array(["a", "b", None]).dictionary_encode()
    values.note(column, codes(column))
    assert set(values.array.to_pylist()) == {"a", "b", None}


@given(
    edges=st.lists(st.floats(-5, 5), min_size=1, max_size=4, unique=True).map(lambda each: tuple(sorted(each))),
    value=st.floats(-9, 9) | st.none(),
    other=st.sampled_from(["x", "y", None]),
)
def test_a_row_is_in_the_cell_that_its_class_says(
    edges: tuple[float, ...], value: float | None, other: str | None
) -> None:
    """A pair of a range and a value: members() names exactly the cell that classify() finds."""
    column, texts = pa.array([value], pa.float64()), pa.array([other], pa.string())
    cells = Cells((0, 1), (edges, None))
    [cell] = cells.of([codes(column), codes(texts)], [numbers(column), numbers(texts)])
    classifier = Classifier(cells, np.array([cell]), np.array([1]), ())
    known = KnownValues()
    known.note(pa.array(["x", "y", None]), codes(pa.array(["x", "y", None])))
    [(span, text)] = members(classifier, [KnownValues(), known], 1)
    assert isinstance(span, Range)
    assert text.as_py() == other  # type: ignore[union-attr]
    if value is None:
        assert span == (None, None)
    else:
        assert span.low is None or span.low <= value
        assert span.high is None or value < span.high
    assert not members(classifier, [KnownValues(), known], 2)


def test_a_router_names_the_values_of_its_classes() -> None:
    router, random = ClassRouter(lambda order: AGreedy(4, order=order), ["a"]), np.random.default_rng(0)
    for _ in range(15):
        kinds = random.integers(0, 4, 100)
        column = pa.array(np.array([0, 10**9 + 1, 2 * 10**9, 3 * 10**9])[kinds], pa.timestamp("ns"))
        router.learn(1 << kinds, None, {"a": column})
    assert router.members(0) == []
    found = {router.policies[number].order[0]: router.members(number) for number in range(1, len(router.policies))}
    assert {first: [each[0].value for each in cells] for first, cells in found.items()} == {  # type: ignore[union-attr]
        0: [0],
        1: [10**9 + 1],
        2: [2 * 10**9],
        3: [3 * 10**9],
    }
    texts = [text for one in router.explain()["classes"] for text in one["values"]]
    assert "1970-01-01 00:00:01.000000001" in texts


def test_ranges_are_named_too() -> None:
    router, random = ClassRouter(lambda order: AGreedy(2, order=order), ["x"]), np.random.default_rng(0)
    for _ in range(15):
        values = random.random(100)
        router.learn(np.where(values < 0.5, 1, 2), None, {"x": pa.array(values)})
    spans = [cell[0] for number in range(1, len(router.policies)) for cell in router.members(number)]
    assert len(spans) == 16  # of the 1200 tuples that were there when ranges were last made
    assert sum(isinstance(span, Range) and span.low is None for span in spans) == 1
    texts = [text for one in router.explain()["classes"] for text in one["values"]]
    assert any(text.startswith("..") for text in texts)
