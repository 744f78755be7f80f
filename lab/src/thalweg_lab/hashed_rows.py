"""Random-looking numbers that depend on a row's number alone, so that every run and every contender sees the same."""

import numpy as np

from thalweg.ordering.types import Floats, Integers

SEED = 2004


def uniform(rows: Integers, salt: int) -> Floats:
    """A number in [0, 1) for each row, the same in every run (the finalizer of SplitMix64).

    >>> uniform(np.arange(3), 0).round(4).tolist()
    [0.3875, 0.8917, 0.936]
    """
    with np.errstate(over="ignore"):
        mixed = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(SEED + salt)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53
