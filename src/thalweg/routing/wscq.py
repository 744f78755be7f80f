"""WSCQ: a lottery with chances proportional to the square of SCQ's benefit, the best Eddy policy without content.

(content-based-routing-2004, section 6, footnote 3)
"""

from __future__ import annotations

from typing import ClassVar

from thalweg.ordering.types import Floats, Integers
from thalweg.routing.scq import SCQ


class WSCQ(SCQ):
    """Routes at random, by squared benefit.

    >>> router = WSCQ(2)
    >>> router.count(seen=[100, 100], passed=[60, 20])
    >>> sum(router.next([0, 1]) for _ in range(1000)) / 1000  # 0.8² of 0.8² + 0.4²
    0.807
    """

    name: ClassVar[str] = "wscq"
    is_lottery = True

    def merits(self, contents: Integers, queues: Floats) -> Floats:
        """The square of the benefit."""
        return super().merits(contents, queues) ** 2
