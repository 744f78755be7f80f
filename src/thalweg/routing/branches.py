"""Classes for a plan that is made once, from a sample of rows that all filters have judged: a branch for each class.

Classes are chosen as `ClassRouter` chooses them, and told as plain values, which can be saved and be put into words of
any engine. A branch that is wrong about its rows costs time, never an answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.ordering.types import Floats, Integers
from thalweg.routing.candidates import candidate_values, find_candidates
from thalweg.routing.classifier import Classifier
from thalweg.routing.classifier_sample import ClassifierSample
from thalweg.routing.derived import RoutingAttribute
from thalweg.routing.partition import codes, numbers, refusal, width
from thalweg.routing.values import KnownValues, Range, label, members
from thalweg.sealed import SavedStateError

WORTH = 0.1  # share of the cost that branches have to save: a sample's times are rough
TEST_SECONDS = 20e-9  # that it takes to tell a row's class, roughly
FEWEST = 400  # rows below which nothing is chosen
MOST_BRANCHES = 16

Test = tuple[Any, ...]  # ("is", value), or ("within", low, high), None where a range has no such end


@dataclass(frozen=True)
class Branch:
    """The rows of a class, and their order."""

    cells: tuple[tuple[Test, ...], ...]  # for each cell a test of each attribute, all of which hold
    order: tuple[int, ...]


@dataclass(frozen=True)
class Branches:
    """An order for each class of rows; all other rows follow the overall order."""

    attributes: tuple[str, ...]
    branches: tuple[Branch, ...]
    saving: float  # as a share of the cost, on rows not learnt from
    error: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], filters: int, attributes: Sequence[str]) -> Branches:
        """The branches that `to_dict` gave, for so many filters and some of these attributes; checked."""
        try:
            branches = tuple(
                Branch(tuple(tuple(map(tuple, cell)) for cell in branch["cells"]), tuple(branch["order"]))
                for branch in saved["branches"]
            )
            found = cls(tuple(saved["attributes"]), branches, float(saved["saving"]), float(saved["error"]))
        except (KeyError, TypeError, ValueError) as error:
            raise SavedStateError(f"the saved branches are damaged: {error!r}; delete them to start afresh") from None
        fits = all(sorted(branch.order) == list(range(filters)) for branch in branches)
        if not fits or not set(found.attributes) <= set(attributes):
            raise SavedStateError("the saved branches are of another query; delete them to start afresh")
        return found


def branches_of(
    masks: Integers, costs: Floats, required: Integers, columns: Mapping[str, pa.Array]
) -> tuple[Branches | None, dict[str, Any]]:
    """The branches that surely pay, if any, and all that was considered, as plain values.

    Parameters
    ----------
    masks
        Which filters drop each row of the sample, in the order in which rows come.
    costs
        Seconds that a row takes in each filter.
    required
        For each filter, the mask of filters that must run before it.
    columns
        The values of the attributes of the same rows.

    Examples
    --------
    Even keys are dropped by the second filter, others by the first.

    >>> key = np.random.default_rng(0).integers(0, 2, 1000)
    >>> found, _ = branches_of(2 - key, np.full(2, 1e-6), np.zeros(2, np.int64), {"key": pa.array(key)})
    >>> sorted((branch.cells, branch.order) for branch in found.branches)
    [(((('is', 0),),), (1, 0)), (((('is', 1),),), (0, 1))]
    """
    names = [name for name, column in columns.items() if not refusal(column.type)]
    refused = {name: refusal(column.type) or "" for name, column in columns.items() if name not in names}
    about: dict[str, Any] = {"attributes": list(columns), "candidates": [], "pruned": refused, "rows": int(masks.size)}
    if masks.size < FEWEST or costs.size < 2 or not names:  # noqa: PLR2004 - one filter has one order
        return None, about
    found = [(codes(columns[name]), numbers(columns[name])) for name in names]
    sample = ClassifierSample(len(names), masks.size)
    sample.insert(masks, np.column_stack([code for code, _ in found]), np.column_stack([line for _, line in found]))
    widths: Floats = np.array([width(columns[name]) for name in names])
    candidates = find_candidates(
        sample,
        [RoutingAttribute(name) for name in names],
        costs,
        required,
        most_classes=MOST_BRANCHES,
        pairs=True,
        refused={},
        widths=widths,
    )
    best = candidates.best(lambda cost: WORTH * cost + TEST_SECONDS)
    about["pruned"] = {**refused, **candidates.pruned}
    about["candidates"] = [
        candidate_values(estimate, names, estimate.cost) | {"in_use": estimate is best}
        for estimate in candidates.estimates
    ]
    if best is None:
        return None, about
    classifier = candidates.chooser.fit(best.cells)
    chosen = [names[at] for at in best.cells.attributes]
    labels = _members(classifier, [(columns[names[at]], *found[at]) for at in best.cells.attributes])
    branches = tuple(
        Branch(tuple(tuple(map(_test, cell)) for cell in own), classifier.orders[number])
        for number, own in enumerate(labels, 1)
        if own
    )
    about["values"] = [[", ".join(map(label, cell)) for cell in own] for own in labels if own]
    return Branches(tuple(chosen), branches, best.saving / best.cost, best.error / best.cost), about


def _members(
    classifier: Classifier, columns: Sequence[tuple[Any, Integers, Floats]]
) -> list[list[tuple[pa.Scalar | Range, ...]]]:
    """The cells of each class, of columns with their codes and numbers."""
    classes = classifier.classify([code for _, code, _ in columns], [line for _, _, line in columns])
    rows = np.flatnonzero(classes)  # the rest has no class, and may have any number of values
    values = []
    for column, code, _ in columns:
        values.append(KnownValues())
        values[-1].note(column.take(pa.array(rows)), code[rows])
    return [members(classifier, values, number) for number in range(1, len(classifier.orders))]


def _test(label: pa.Scalar | Range) -> Test:
    """A value or a range as plain values: times and dates as numbers, decimals as text."""
    if isinstance(label, Range):
        return ("within", label.low, label.high)
    if pa.types.is_temporal(label.type):
        return ("is", label.value)
    value = label.as_py()
    return ("is", str(value) if pa.types.is_decimal(label.type) and value is not None else value)
