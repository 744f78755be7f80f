"""The candidates for a classifier: which attributes are candidates, their savings, and which is surely worth it.

The same for classes that are learnt while a query runs (`thalweg.routing.class_router`) and for the classes of a plan
that is made once (`thalweg.routing.branches`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from thalweg.ordering.types import Floats, Integers
from thalweg.routing.benefit import surely
from thalweg.routing.block_permutation import sure_saving
from thalweg.routing.classifier import CELLS, SUPPORT, Chooser, Estimate
from thalweg.routing.classifier_sample import ClassifierSample
from thalweg.routing.derived import RoutingAttribute
from thalweg.routing.prune import pruned_attribute

KNOWN = "derived from a column of few values, which tells as much"
# Standard errors by which values have to tell what a filter drops: far more than the many candidates do by chance, and
# far less than classes do that are worth an order. (docs/decisions/0210)
TELLING = 4.5
SURE = 3.0  # standard errors by which a saving has to exceed its least worth: many candidates are compared


@dataclass(frozen=True)
class Candidates:
    """All candidates, with their savings as a sample tells."""

    chooser: Chooser
    estimates: list[Estimate]  # the best first
    pruned: dict[str, str]  # attributes that are no candidates, with the reason

    def tells(self, estimate: Estimate) -> bool:
        """Whether the values of a candidate tell what a filter drops."""
        return self.chooser.tells(estimate.cells) > TELLING

    def best(self, least: Callable[[float], float]) -> Estimate | None:
        """The candidate that surely saves enough, and most; a pair only if it surely saves more than either alone.

        `least` says which saving is worth having, given the cost of a tuple with one order.
        """
        singles = [estimate for estimate in self.estimates if estimate.is_single]
        for estimate in self.estimates:
            worth = least(estimate.cost)
            if surely(estimate.savings, SURE) <= worth or not self.tells(estimate):
                continue
            is_alone = estimate.is_single or surely(estimate.savings - singles[0].savings, SURE) > 0
            if is_alone and sure_saving(self.chooser, estimate, SURE) > worth:
                return estimate
        return None


def find_candidates(
    sample: ClassifierSample,
    attributes: Sequence[RoutingAttribute],
    costs: Floats,
    required: Integers,
    *,
    most_classes: int,
    pairs: bool,
    refused: Mapping[str, str],
    widths: Floats,
) -> Candidates:
    """Estimate the saving of each attribute that is not pruned; widths are those of the attributes, in bytes."""
    pruned = pruned_attributes(sample, attributes, refused, widths)
    places = [place for place, attribute in enumerate(attributes) if attribute.name not in pruned]
    chooser = Chooser(sample, costs, required, most_classes)
    return Candidates(chooser, chooser.estimates(places, pairs=pairs), pruned)


def pruned_attributes(
    sample: ClassifierSample, attributes: Sequence[RoutingAttribute], refused: Mapping[str, str], widths: Floats
) -> dict[str, str]:
    """The attributes that are no candidates, with the reason."""
    pruned = dict[str, str]()
    few = {
        attribute.column
        for place, attribute in enumerate(attributes)
        if attribute.derivation is None and np.unique(sample.codes[:, place]).size <= CELLS
    }
    for place, attribute in enumerate(attributes):
        is_known = attribute.derivation is not None and attribute.column in few
        reason = refused.get(attribute.column) or (KNOWN if is_known else None)
        reason = reason or pruned_attribute(
            sample.codes[:, place],
            sample.numbers[:, place],
            width=float(widths[place]),
            values=CELLS,
            support=SUPPORT,
        )
        if reason:
            pruned[attribute.name] = reason
    return pruned


def candidate_values(estimate: Estimate, names: Sequence[str], cost: float) -> dict[str, Any]:
    """An estimate as plain values; the saving as a share of the cost of a tuple."""
    return {
        "attributes": [names[place] for place in estimate.cells.attributes],
        "by": estimate.cells.kinds,
        "saving": estimate.saving / cost,
        "error": estimate.error / cost,
        "gain_ratio": estimate.gain_ratio,
        "classes": estimate.classes,
    }
