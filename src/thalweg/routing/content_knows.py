"""Content-Knows: routes by content-specific selectivities, told which attribute classifies for which operator.

(content-based-routing-2004, sections 4.2, 6.1 and 7.1)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from thalweg.ordering.types import Booleans, Floats, Integers
from thalweg.routing.router import HALVE_AFTER, UNKNOWN, Router

ENOUGH = 5.0  # outcomes of a class below which the operator's overall selectivity is the better estimate


class ContentKnows(Router):
    """Sends a tuple where it is most likely to be dropped, per cost, given the values of the classifiers.

    Parameters
    ----------
    operators, parts, costs, seed
        As for every router.
    classifiers
        The attribute that classifies, for each operator that has such an attribute.

    Examples
    --------
    Table 1: attribute A tells most about the second operator.

    >>> router = ContentKnows(3, [3], classifiers={1: 0})
    >>> router.count([300] * 3, [90, 120, 180])
    >>> for value, passed in enumerate([10, 20, 90]):
    ...     router.count_class(1, [value] * 100, [1.0] * passed + [0.0] * (100 - passed))
    >>> router.orders([[0], [1], [2]]).tolist()
    [[1, 0, 2], [1, 0, 2], [0, 2, 1]]
    """

    name: ClassVar[str] = "content-knows"

    def __init__(
        self,
        operators: int,
        parts: Sequence[int] = (),
        *,
        classifiers: Mapping[int, int] | None = None,
        costs: ArrayLike | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(operators, parts, costs=costs, seed=seed)
        self.classifiers: dict[int, int] = {}
        self.class_seen: dict[int, Floats] = {}
        self.class_passed: dict[int, Floats] = {}
        for operator, attribute in (classifiers or {}).items():
            self.tag(operator, attribute)

    @property
    def nbytes(self) -> int:
        """The memory of the counts of operators and classes."""
        tables = (*self.class_seen.values(), *self.class_passed.values())
        return super().nbytes + sum(table.nbytes for table in tables)

    def tag(self, operator: int, attribute: int) -> None:
        """Use an attribute as the operator's classifier; nothing is known of its classes yet."""
        if not (0 <= operator < self.operators and 0 <= attribute < len(self.parts)):
            raise ValueError(
                f"operator {operator} cannot be classified by attribute {attribute}: there are {self.operators} "
                f"operators and {len(self.parts)} attributes, numbered from 0"
            )
        self.classifiers[operator] = attribute
        self.class_seen[operator] = np.zeros(self.parts[attribute])
        self.class_passed[operator] = np.zeros(self.parts[attribute])

    def untag(self, operator: int) -> None:
        """Use no classifier for the operator."""
        for table in (self.classifiers, self.class_seen, self.class_passed):
            table.pop(operator, None)

    def merits(self, contents: Integers, queues: Floats) -> Floats:
        """Drops per cost: of the tuple's class for operators with a classifier, overall for the others."""
        overall = self.selectivities
        merits = np.tile((1.0 - overall) / self.costs, (len(contents), 1))
        for operator, attribute in self.classifiers.items():
            seen = self.class_seen[operator]
            each = (self.class_passed[operator] + UNKNOWN * overall[operator]) / (seen + UNKNOWN)
            known = np.where(seen >= ENOUGH, each, overall[operator])
            merits[:, operator] = (1.0 - known[contents[:, attribute]]) / self.costs[operator]
        return merits

    def count_class(self, operator: int, values: ArrayLike, passed: ArrayLike) -> None:
        """Add outcomes of an operator to the counts of its classes."""
        seen, kept = self.class_seen[operator], self.class_passed[operator]
        numbers = np.asarray(values, np.int64)
        seen += np.bincount(numbers, minlength=seen.size)
        kept += np.bincount(numbers, np.asarray(passed, np.float64), seen.size)
        many = seen > HALVE_AFTER
        seen[many] /= 2.0
        kept[many] /= 2.0

    def note(self, operator: int, passed: float, content: Sequence[int] = ()) -> None:
        """Learn the outcome of one tuple in one operator."""
        super().note(operator, passed, content)
        if (attribute := self.classifiers.get(operator)) is not None:
            self.class_seen[operator][content[attribute]] += 1.0
            self.class_passed[operator][content[attribute]] += passed

    def observe(self, orders: Integers, calls: Integers, dropped: Booleans, contents: ArrayLike) -> None:
        """Learn the outcome of a batch, for its operators and classes."""
        super().observe(orders, calls, dropped, contents)
        rows, places = np.arange(self.operators), self.partitions_of(contents)
        visited = rows < calls[:, None]
        is_last = dropped[:, None] & (rows == calls[:, None] - 1)
        for operator, attribute in self.classifiers.items():
            tuples, positions = np.nonzero(visited & (orders == operator))
            self.count_class(operator, places[tuples, attribute], ~is_last[tuples, positions])
