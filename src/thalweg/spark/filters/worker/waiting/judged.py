"""The answer of a predicate that waits, with its cost."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from thalweg.keywords import checks_keywords


class Judged(NamedTuple):
    """Whether a row is kept, or a list of that for a batch of rows, and the cost of finding it out."""

    keep: bool | Sequence[bool | None] | None
    cost: float


@checks_keywords("tw.judged")
def judged(
    keep: bool | Sequence[bool | None] | None,  # noqa: FBT001 - it reads as `return judged(True, cost=3)`
    *,
    cost: float,
) -> Judged:
    """Return this from a predicate that waits, to tell the cost of a call: tokens, money, or any other unit.

    All predicates of a query that tell a cost use the same unit. The order then minimises that cost.

    >>> judged(True, cost=120)
    Judged(keep=True, cost=120.0)
    """
    if not isinstance(cost, numbers.Real | Decimal) or not 0 <= cost < math.inf:
        raise ValueError(f"cost= is a number, 0 or more, such as cost=120, not {cost!r}")
    return Judged(keep, float(cost))
