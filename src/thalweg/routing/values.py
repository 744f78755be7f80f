"""The values behind codes: they say, for people and for plans, of which rows the classes of a classifier consist.

Routing itself needs none of them. They are collected, a bounded number for each attribute of the classifier in use,
from the profile tuples that come after it was chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from thalweg.ordering.types import Integers
from thalweg.routing.classifier import Classifier, looked_up, range_cells
from thalweg.routing.partition import paired, plain

MOST_VALUES = 128  # of an attribute
MOST_LETTERS = 60  # of a value as text


class Range(NamedTuple):
    """Numbers from `low` on and below `high`; None where there is no such end. Two None: values that are no numbers."""

    low: float | None
    high: float | None


class KnownValues:
    """Some values of one attribute, by code.

    >>> values = KnownValues()
    >>> values.note(pa.array(["a", "b", "a"]), np.array([7, 8, 7]))
    >>> values.note(pa.array(["b", None]), np.array([8, 9]))
    >>> values.codes, values.array.to_pylist()
    ([7, 8, 9], ['a', 'b', None])
    """

    def __init__(self, most: int = MOST_VALUES) -> None:
        self.most = most
        self.codes: list[int] = []
        self.array: Any = None

    def note(self, column: Any, codes: Integers) -> None:  # noqa: ANN401 - an Arrow array
        """Take in the values that are not known yet."""
        found, first = np.unique(codes, return_index=True)
        new = np.flatnonzero(~np.isin(found, self.codes))[: self.most - len(self.codes)]
        if not new.size:
            return
        array = plain(column)
        taken = (array.dictionary_decode() if pa.types.is_dictionary(array.type) else array).take(pa.array(first[new]))
        self.array = taken if self.array is None else pa.concat_arrays([self.array, taken.cast(self.array.type)])
        self.codes += found[new].tolist()


class ClassValues:
    """Some values of each attribute of a classifier."""

    def __init__(self) -> None:
        self._known: dict[int, KnownValues] = {}  # by the number of the attribute

    @property
    def is_empty(self) -> bool:
        """Whether no value is known yet."""
        return not self._known

    def clear(self) -> None:
        """Forget all values, for another classifier."""
        self._known.clear()

    def note(self, attribute: int, column: Any, codes: Integers) -> None:  # noqa: ANN401 - an Arrow array
        """Remember values of an attribute that are not known yet."""
        self._known.setdefault(attribute, KnownValues()).note(column, codes)

    def note_members(
        self, attributes: Sequence[int], columns: Sequence[Any], codes: Sequence[Integers], classes: Integers
    ) -> None:
        """Remember values of the rows that have a class; attributes with ranges have no codes."""
        rows = np.flatnonzero(classes)
        for attribute, column, code in zip(attributes, columns, codes, strict=True):
            if code.size:
                self.note(attribute, plain(column).take(pa.array(rows)), code[rows])

    def members(self, classifier: Classifier, number: int) -> list[tuple[pa.Scalar | Range, ...]]:
        """The cells of a class, as far as their values are known."""
        known = [self._known.get(attribute, KnownValues()) for attribute in classifier.cells.attributes]
        return members(classifier, known, number)


def members(classifier: Classifier, values: Sequence[KnownValues], number: int) -> list[tuple[pa.Scalar | Range, ...]]:
    """The cells of a class, as far as their values are known: for each attribute a value or a range.

    >>> from thalweg.routing.classifier import Cells
    >>> cells = Cells((0,), ((2.0, 5.0),))
    >>> classifier = Classifier(cells, np.sort(range_cells(2)), np.array([1, 1, 2, 2]), ())
    >>> sum(len(members(classifier, [KnownValues()], number)) for number in (1, 2))
    4
    """
    columns = [_labelled(edges, own) for edges, own in zip(classifier.cells.edges, values, strict=True)]
    labels = list(product(*([label for _, label in column] for column in columns)))
    first, *rest = np.meshgrid(*([code for code, _ in column] for column in columns), indexing="ij")
    cells = paired(first.ravel(), rest[0].ravel()) if rest else first.ravel()
    classes = looked_up(cells.astype(np.int64), classifier.keys, classifier.classes)
    return [labels[place] for place in np.flatnonzero(classes == number)]


def label(value: Any) -> str:  # noqa: ANN401 - an Arrow scalar or a range
    """A value or a range as text.

    >>> label(pa.scalar("red")), label(Range(1.0, 2.5)), label(Range(None, None)), label(Range(None, 3.0))
    ('"red"', '1..2.5', 'no number', '..3')
    """
    if not isinstance(value, Range):
        # Through an array, which has text for any type: Python has no value for some timestamps.
        return " ".join(pa.array([value], value.type).to_string().strip("[] \n").split())[:MOST_LETTERS]
    if value.low is None and value.high is None:
        return "no number"
    low, high = ("" if end is None else f"{end:g}" for end in value)
    return f"{low}..{high}"


def _labelled(edges: tuple[float, ...] | None, values: KnownValues) -> list[tuple[int, Any]]:
    """Codes of an attribute's cells, with the value or range that each stands for."""
    if edges is None:
        return list(zip(values.codes, values.array if values.array is not None else (), strict=True))
    ends = (None, *edges, None)
    ranges = [Range(None, None), *(Range(low, high) for low, high in pairwise(ends))]
    return list(zip(range_cells(len(edges)).tolist(), ranges, strict=True))
