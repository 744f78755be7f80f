"""How many parts each join attribute is cut into, so that every combination of rows meets in exactly one cell.

Cells form a grid with a dimension for each class of equal attributes (the hypercube, or shares, of one-round
multi-way joins). A row knows its place along the classes it has an attribute of, and is copied along the others. Where
one class covers all inputs it takes all cells and nothing is copied. This module knows numbers of rows, and no rows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product


@dataclass(frozen=True)
class Shares:
    """The grid: its size along each class, and along which classes each input knows its place.

    >>> grid = Shares((2, 3), {"A": frozenset([0]), "B": frozenset([0, 1]), "C": frozenset([1])})
    >>> grid.cells, grid.copies("A"), grid.copies("B")
    (6, 3, 1)
    """

    sizes: tuple[int, ...]
    placed_by: Mapping[str, frozenset[int]]

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return math.prod(self.sizes)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """How far apart two neighbours along each class are when cells are numbered."""
        return tuple(math.prod(self.sizes[place + 1 :]) for place in range(len(self.sizes)))

    def copies(self, name: str) -> int:
        """To how many cells each row of an input goes."""
        return math.prod(size for place, size in enumerate(self.sizes) if place not in self.placed_by[name])

    def offsets(self, name: str, copied: frozenset[int] = frozenset()) -> tuple[int, ...]:
        """How far from the first cell of a row its cells are; the first offset is 0.

        A row that is copied along some classes although it has attributes of them has more cells.

        >>> Shares((2, 3), {"A": frozenset([0]), "C": frozenset([1])}).offsets("C")
        (0, 3)
        """
        own = self.placed_by[name] - copied
        free = [range(size) if place not in own else [0] for place, size in enumerate(self.sizes)]
        return tuple(
            sum(place * stride for place, stride in zip(places, self.strides, strict=True)) for places in product(*free)
        )

    def is_first(self, name: str, cell: int) -> bool:
        """Whether a cell is the first of the cells that its rows of an input go to: rows are counted there.

        >>> grid = Shares((2, 3), {"A": frozenset([0]), "C": frozenset([1])})
        >>> [cell for cell in range(6) if grid.is_first("C", cell)]
        [0, 1, 2]
        """
        return all(
            place in self.placed_by[name] or cell // stride % size == 0
            for place, (size, stride) in enumerate(zip(self.sizes, self.strides, strict=True))
        )


def choose_shares(
    placed_by: Mapping[str, frozenset[int]], rates: Mapping[str, float], cells: int, single: Collection[str] = ()
) -> Shares:
    """The grid of so many cells that copies the fewest rows.

    Parameters
    ----------
    placed_by
        For each input, the classes that it has an attribute of.
    rates
        How many rows of each input there are, relative to the others; 0 for inputs that are not sent.
    cells
        The number of cells.
    single
        The inputs of which no row may be in several cells.

    Examples
    --------
    A chain A - B - C on two keys: B knows both places, so the key that spares the busier end is cut more.

    >>> chain = {"A": frozenset([0]), "B": frozenset([0, 1]), "C": frozenset([1])}
    >>> choose_shares(chain, {"A": 1, "B": 1, "C": 1}, 4).sizes
    (2, 2)
    >>> choose_shares(chain, {"A": 9, "B": 1, "C": 1}, 4).sizes
    (4, 1)
    >>> choose_shares(chain, {"A": 1, "B": 1, "C": 9}, 4, single=["A"]).sizes
    (4, 1)
    """
    classes = max((1 + max(numbers, default=-1) for numbers in placed_by.values()), default=0)

    def sent(sizes: tuple[int, ...]) -> float:
        grid = Shares(sizes, placed_by)
        return sum(rates[name] * grid.copies(name) for name in placed_by)

    grids = [
        sizes
        for sizes in _factorisations(cells, classes)
        if all(Shares(sizes, placed_by).copies(name) == 1 for name in single)
    ]
    # Of grids that send as many rows, the most even grid: a key with few values then still fills its cells.
    best = min(grids, key=lambda sizes: (sent(sizes), max(sizes), sizes))
    return Shares(best, dict(placed_by))


def _factorisations(number: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write a number as a product of so many factors, in order.

    >>> list(_factorisations(4, 2))
    [(1, 4), (2, 2), (4, 1)]
    """
    if parts == 1:
        yield (number,)
        return
    for first in (factor for factor in range(1, number + 1) if number % factor == 0):
        for rest in _factorisations(number // first, parts - 1):
            yield (first, *rest)


def replication(shares: Shares, rates: Mapping[str, float]) -> float:
    """How many times each row is sent, on average over all inputs.

    >>> replication(Shares((2, 2), {"A": frozenset([0]), "B": frozenset([0, 1])}), {"A": 1, "B": 3})
    1.25
    """
    return sum(rates[name] * shares.copies(name) for name in rates) / sum(rates.values())


def labels(cells: int) -> Sequence[int]:
    """Numbers for cells that Spark's hash spreads evenly over as many partitions, a cell in each.

    Spark puts key `k` into partition `murmur3(k) mod partitions`, which would leave some cores idle and give others
    two of the cells 0, 1, 2, ...

    >>> sorted(spark_hash(label) % 5 for label in labels(5))
    [0, 1, 2, 3, 4]
    """
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < cells:
        found.setdefault(spark_hash(candidate) % cells, candidate)
        candidate += 1
    return [found[place] for place in range(cells)]


def spark_hash(number: int) -> int:
    """Spark's hash of an int: Murmur3 in 32 bits, seeded with 42.

    >>> spark_hash(1), spark_hash(0)
    (-559580957, 933211791)
    """
    mixed = number * 0xCC9E2D51 & _WORD
    mixed = _rotate(mixed, 15) * 0x1B873593 & _WORD
    hashed = _rotate(42 ^ mixed, 13) * 5 + 0xE6546B64 & _WORD
    hashed ^= 4  # the length in bytes
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B & _WORD
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & _WORD
    hashed ^= hashed >> 16
    return hashed - (1 << 32) if hashed >> 31 else hashed


_WORD = 0xFFFFFFFF


def _rotate(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _WORD
