"""Adaptive ordering of commutative filters whose drop rates may be correlated (a-greedy-2004, sections 3 to 7).

`POLICIES` lists every policy; `policy("a-greedy", filters=4)` makes a policy by its name.
"""

from __future__ import annotations

from typing import Any

from thalweg.ordering.a_greedy import AGreedy
from thalweg.ordering.adjacent_swap import AdjacentSwap
from thalweg.ordering.as_written import AsWritten
from thalweg.ordering.cost import order_cost
from thalweg.ordering.independent import Independent
from thalweg.ordering.local_swaps import LocalSwaps
from thalweg.ordering.marginal_rank import MarginalRank
from thalweg.ordering.matrix_view import MatrixView, ViewEntries
from thalweg.ordering.optimal import Optimal, optimal_order
from thalweg.ordering.policy import Change, Policy
from thalweg.ordering.profile import Profile
from thalweg.ordering.sampling import Sampler
from thalweg.ordering.static_greedy import StaticGreedy, greedy_order
from thalweg.ordering.sweep import Sweep
from thalweg.registry import find

POLICIES: tuple[type[Policy], ...] = (
    AsWritten,
    StaticGreedy,
    Optimal,
    AGreedy,
    Sweep,
    Independent,
    LocalSwaps,
    AdjacentSwap,
    MarginalRank,
)


def policy(name: str, filters: int, **options: Any) -> Policy:  # noqa: ANN401 - Policy checks them
    """Make a policy by its name; the options are the parameters of `Policy`.

    >>> policy("a-greedy", 3, pinned=[0]).order
    (0, 1, 2)
    """
    return find(name, POLICIES, "policy")(filters, **options)


__all__ = [
    "POLICIES",
    "AGreedy",
    "AdjacentSwap",
    "AsWritten",
    "Change",
    "Independent",
    "LocalSwaps",
    "MarginalRank",
    "MatrixView",
    "Optimal",
    "Policy",
    "Profile",
    "Sampler",
    "StaticGreedy",
    "Sweep",
    "ViewEntries",
    "greedy_order",
    "optimal_order",
    "order_cost",
    "policy",
]
