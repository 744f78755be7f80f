"""The state of a class router, and why it routes as it does, as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thalweg.routing.candidates import candidate_values
from thalweg.routing.values import label

if TYPE_CHECKING:
    from thalweg.routing.class_router import ClassRouter

MOST_EXAMPLES = 10  # values of each class


def explain_router(router: ClassRouter) -> dict[str, Any]:
    """All that a router knows, as plain values."""
    search, payoff, classifier = router.search, router.payoff, router.classifier
    return {
        "attributes": list(router.attributes),
        "classifier": None
        if classifier is None
        else {
            "attributes": list(router.in_use),
            "by": classifier.cells.kinds,
            "cells": int(classifier.keys.size),
        },
        "classes": [_class_values(router, number) for number in range(len(router.policies))],
        "candidates": [
            candidate_values(estimate, search.reader.names, payoff.whole_cost(estimate.cost))
            | {"in_use": estimate.cells.are_of(classifier)}
            for estimate in search.estimates
        ],
        "pruned": {**search.pruned, **search.reader.refused},
        "benefit": None if classifier is None else payoff.shares(),
        "profile_tuples": router.seen,
        "most_classes": search.most_classes,
        "memory_bytes": router.nbytes,
        "events": list(router.events),
    }


def _class_values(router: ClassRouter, number: int) -> dict[str, Any]:
    policy, classifier = router.policies[number], router.classifier
    return {
        "class": number,
        "order": list(policy.order),
        "profile_tuples": len(policy.profile),
        "cells": None if classifier is None or not number else int((classifier.classes == number).sum()),
        "values": [", ".join(map(label, cell)) for cell in router.members(number)[:MOST_EXAMPLES]],
    }
