"""Join keys as whole numbers, so that an index of any type of key is an index of int64.

`thalweg.tables.codes` makes the numbers. Long types (strings, binaries, long decimals) have a hash of 64 bits, which
may very rarely be the hash of another value too: a join by it compares the values in the end (`is_exact` tells).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.ordering.types import Booleans, Integers
from thalweg.tables.codes import codes, is_exact, mixed

__all__ = ["codes", "combined", "equal", "is_exact", "mixed"]


def combined(columns: Sequence[Integers]) -> Integers:
    """One number for several codes; a single code stays as it is."""
    if len(columns) == 1:
        return columns[0]
    total = np.zeros(columns[0].size, np.uint64)
    for column in columns:
        total = mixed(total * np.uint64(3) + column.view(np.uint64))
    return total.view(np.int64)


def equal(left: pa.Array, right: pa.Array) -> Booleans:
    """Which values of two arrays without NULLs are equal, as keys are."""
    same: Booleans = (
        codes(left) == codes(right) if is_exact(left.type) else pc.equal(left, right).to_numpy(zero_copy_only=False)
    )
    return same
