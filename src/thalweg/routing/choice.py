"""The choice of a classifier from a sample: what may be one, what each would save, and which is surely worth it.

The same for classes that are learnt while a query runs (`thalweg.routing.class_router`) and for those of a plan that is
made once (`thalweg.routing.branches`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thalweg.ordering.types import Floats, Integers
from thalweg.routing.benefit import surely
from thalweg.routing.classifier import CELLS, SUPPORT, Chooser, Estimate
from thalweg.routing.prune import pruned_attribute
from thalweg.routing.sample import Sample

SURE = 3.0  # standard errors by which a saving has to exceed what it is worth: many candidates are compared


@dataclass(frozen=True)
class Choice:
    """What a sample says of all candidates."""

    chooser: Chooser
    estimates: list[Estimate]  # the best first
    pruned: dict[str, str]  # attributes that are no candidates, with the reason

    def best(self, least: Callable[[float], float]) -> Estimate | None:
        """The candidate that surely saves enough, and most; a pair only if it surely saves more than one alone.

        `least` says which saving is worth having, given what a tuple costs with one order.
        """
        singles = [one for one in self.estimates if len(one.cells.attributes) == 1]
        for one in self.estimates:
            is_sure = one.saving - SURE * one.error > least(one.cost)
            is_single = len(one.cells.attributes) == 1
            if is_sure and (is_single or surely(one.savings - singles[0].savings, SURE) > 0):
                return one
        return None


def choice_of(
    sample: Sample,
    names: Sequence[str],
    costs: Floats,
    required: Integers,
    *,
    most_classes: int,
    pairs: bool,
    refused: Mapping[str, str],
    widths: Floats,
) -> Choice:
    """Estimate what each attribute that is not pruned would save; names and widths (bytes) are the attributes'."""
    pruned = {}
    for place, name in enumerate(names):
        reason = refused.get(name) or pruned_attribute(
            sample.codes[:, place],
            sample.numbers[:, place],
            width=float(widths[place]),
            values=CELLS,
            support=SUPPORT,
        )
        if reason:
            pruned[name] = reason
    candidates = [place for place, name in enumerate(names) if name not in pruned]
    chooser = Chooser(sample, costs, required, most_classes)
    return Choice(chooser, chooser.estimates(candidates, pairs=pairs), pruned)


def as_values(one: Estimate, names: Sequence[str], cost: float) -> dict[str, Any]:
    """An estimate as plain values; the saving as a share of what a tuple costs."""
    return {
        "attributes": [names[at] for at in one.cells.attributes],
        "by": ["value" if edges is None else "range" for edges in one.cells.edges],
        "saving": one.saving / cost,
        "error": one.error / cost,
        "gain_ratio": one.gain_ratio,
        "classes": one.classes,
    }
