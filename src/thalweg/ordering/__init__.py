"""Adaptive ordering of commutative filters whose drop rates may be correlated (a-greedy-2004, sections 3 to 7).

`POLICIES` lists every policy; `policy("a-greedy", filters=4)` makes one by name.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from thalweg.ordering.a_greedy import AGreedy
from thalweg.ordering.adjacent_swap import AdjacentSwap
from thalweg.ordering.as_written import AsWritten
from thalweg.ordering.cost import order_cost
from thalweg.ordering.independent import Independent
from thalweg.ordering.local_swaps import LocalSwaps
from thalweg.ordering.marginal_rank import MarginalRank
from thalweg.ordering.matrix_view import MatrixView, Shape
from thalweg.ordering.optimal import Optimal, optimal_order
from thalweg.ordering.policy import Change, Policy
from thalweg.ordering.profile import Profile, ProfileError
from thalweg.ordering.sampling import Sampler
from thalweg.ordering.static_greedy import StaticGreedy, greedy_order
from thalweg.ordering.sweep import Sweep

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
    """Make a policy by its name; options are those of `Policy`.

    >>> policy("a-greedy", 3, pinned=[0]).order
    (0, 1, 2)
    """
    by_name = {one.name: one for one in POLICIES}
    if name not in by_name:
        near = get_close_matches(name, by_name, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"there is no policy {name!r}{hint} Policies: {', '.join(by_name)}")
    return by_name[name](filters, **options)


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
    "ProfileError",
    "Sampler",
    "Shape",
    "StaticGreedy",
    "Sweep",
    "greedy_order",
    "optimal_order",
    "order_cost",
    "policy",
]
