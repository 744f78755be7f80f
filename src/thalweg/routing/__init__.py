"""Different orders for different classes of tuples, by content (content-based-routing-2004).

`ROUTERS` lists the paper's routers; `router("content-learns", 4, parts=[32])` makes a router by its name. Beyond the
paper, `ClassRouter` keeps a joint adaptive order for each class, and `RoutedPipeline` runs batches by it.
"""

from __future__ import annotations

from typing import Any

from thalweg.registry import find
from thalweg.routing.class_router import ClassRouter
from thalweg.routing.content_knows import ContentKnows
from thalweg.routing.content_learns import ContentLearns
from thalweg.routing.gain import Gain, Matrices, entropy, gain
from thalweg.routing.partition import HashPartition, refusal
from thalweg.routing.pipeline import RoutedPipeline
from thalweg.routing.prune import pruned_attribute, pruned_operators
from thalweg.routing.queue_length import QueueLength
from thalweg.routing.router import Router, calls_of
from thalweg.routing.scq import SCQ
from thalweg.routing.selectivity import Selectivity
from thalweg.routing.ticket import Ticket
from thalweg.routing.values import Range
from thalweg.routing.wscq import WSCQ

ROUTERS: tuple[type[Router], ...] = (Selectivity, ContentKnows, ContentLearns, QueueLength, Ticket, SCQ, WSCQ)


def router(name: str, operators: int, **options: Any) -> Router:  # noqa: ANN401 - the router checks them
    """Make a router by its name; the options are the parameters of its class.

    >>> router("wscq", 3, costs=[1, 2, 3]).name
    'wscq'
    """
    return find(name, ROUTERS, "router")(operators, **options)


__all__ = [
    "ROUTERS",
    "SCQ",
    "WSCQ",
    "ClassRouter",
    "ContentKnows",
    "ContentLearns",
    "Gain",
    "HashPartition",
    "Matrices",
    "QueueLength",
    "Range",
    "RoutedPipeline",
    "Router",
    "Selectivity",
    "Ticket",
    "calls_of",
    "entropy",
    "gain",
    "pruned_attribute",
    "pruned_operators",
    "refusal",
    "router",
]
