"""Peers' policies: they learn from ordinary processing, batch by batch, and want no profile tuples."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from thalweg.ordering.policy import Policy
from thalweg.ordering.profile import Batch, insert
from thalweg.ordering.types import Floats, Integers


class Peer(Policy):
    """A policy that learns from `observe` only. Time samples of single tuples are kept for whoever measures so."""

    totals: Floats

    def _prepare(self) -> None:
        self.totals = np.zeros((4, self.filters))

    def _adapt(self, batch: Batch) -> bool:
        insert(self.profile.arrays, batch)
        return False

    def _checked(
        self, evaluated: ArrayLike, dropped: ArrayLike, seconds: ArrayLike
    ) -> tuple[Integers, Integers, Floats]:
        arrays = (
            np.asarray(evaluated, np.int64),
            np.asarray(dropped, np.int64),
            np.asarray(seconds, np.float64),
        )
        if any(array.shape != (self.filters,) for array in arrays):
            raise ValueError(f"evaluated, dropped and seconds are {self.filters} numbers each, one a filter")
        return arrays
