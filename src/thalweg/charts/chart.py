"""A chart: the cheapest plan for every region of a space of statistics (om-plan-charts-2005, section 4.4, Algorithm 1).

Each dimension is cut into k equal parts; of a logarithmic dimension, equal parts of the logarithm. A region is one part
of each dimension, and its plan is the cheapest at its centroid. A plan is stored as a small number: one byte a region,
two if there are more than 256 plans. Knows no plans: it is given their costs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from thalweg.charts.cost import Amount
from thalweg.ordering.types import Floats

MOST_REGIONS = 64_000  # of a chart: 40 parts of three dimensions; more dimensions get fewer parts
PARTS = 10  # the paper's k (section 5.1)
DECADES = 4  # powers of ten below the highest value that a logarithmic dimension tells apart
SPREAD = 0.1  # of a first range, around the first value: small, since a range doubles but never shrinks


@dataclass(frozen=True)
class Dimension:
    """A statistic and the range of it that a chart covers, up to the largest value that it can take.

    The parts of a logarithmic dimension cover equal factors, not equal differences: a stream of 5 tuples a second needs
    another plan than one of 500, although 495 tuples are little where others bring 20,000.
    """

    name: str
    low: float
    high: float
    largest: float = math.inf
    is_logarithmic: bool = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.low < self.high <= self.largest or not math.isfinite(self.high):
            raise ValueError(f"the range of {self.name} must rise from 0 or more, not from {self.low} to {self.high}")

    @classmethod
    def around(cls, name: str, value: float, largest: float = math.inf, *, is_logarithmic: bool = False) -> Self:
        """A small range around a value, or from 0 to 1 if the value is 0.

        >>> Dimension.around("rate of T", 500.0)
        Dimension(name='rate of T', low=450.0, high=550.0, largest=inf, is_logarithmic=False)
        """
        low, high = (1.0 - SPREAD) * value, min((1.0 + SPREAD) * value, largest)
        low, high = (low, high) if low < high else (0.0, 1.0)
        return cls(name, low, high, largest, is_logarithmic)

    def covers(self, value: float) -> bool:
        """Whether a value lies within the range; that of a logarithmic dimension has 0 in its first part."""
        return self.low <= value <= self.high or (self.is_logarithmic and value == 0.0)

    def extended(self, value: float) -> Self:
        """The range, doubled towards a value until it covers the value; if logarithmic, up to and a little past it.

        >>> Dimension("rate of T", 10.0, 20.0).extended(35.0)
        Dimension(name='rate of T', low=10.0, high=50.0, largest=inf, is_logarithmic=False)
        >>> Dimension("rate of T", 10.0, 20.0, is_logarithmic=True).extended(40.0)
        Dimension(name='rate of T', low=10.0, high=44.0, largest=inf, is_logarithmic=True)
        """
        if not 0.0 <= value <= self.largest or not math.isfinite(value):
            raise ValueError(f"{self.name} lies between 0 and {self.largest}, and is not {value}")
        if self.covers(value):
            return self
        low, high = self.low, self.high
        if self.is_logarithmic:
            past = (1.0 - SPREAD) * value if value < low else (1.0 + SPREAD) * value
            return replace(self, low=min(low, past), high=min(max(high, past), self.largest))
        while value > high:
            high = min(high + (high - low), self.largest)
        while value < low:
            low = max(low - (high - low), 0.0)
        return replace(self, low=low, high=high)

    def centroids(self, parts: int) -> Floats:
        """The middle of each of so many equal parts.

        >>> Dimension("rate of T", 0.0, 1e4, is_logarithmic=True).centroids(2).tolist()
        [10.0, 1000.0]
        """
        if self.is_logarithmic:
            return np.geomspace(self._lowest, self.high, 2 * parts + 1, dtype=np.float64)[1::2]
        return np.linspace(self.low, self.high, 2 * parts + 1, dtype=np.float64)[1::2]

    def share(self, value: float) -> float:
        """Where a value lies: 0 at the low end, 1 at the high end; a value outside is moved to the nearer."""
        value = min(max(value, self._lowest), self.high)
        if self.is_logarithmic:
            return math.log(value / self._lowest) / math.log(self.high / self._lowest)
        return (value - self.low) / (self.high - self.low)

    def part(self, value: float, parts: int) -> int:
        """The part in which a value lies; a value outside belongs to the nearest part."""
        return min(math.floor(self.share(value) * parts), parts - 1)

    @property
    def label(self) -> str:
        """The name, and how the range is cut where it is not cut into equal differences."""
        return f"{self.name}, logarithmic" if self.is_logarithmic else self.name

    @property
    def _lowest(self) -> float:
        """The lowest value that is told apart from those below it."""
        return max(self.low, self.high * 10.0**-DECADES) if self.is_logarithmic else self.low


@dataclass(frozen=True, eq=False)
class Chart:
    """The number of the cheapest plan of each region.

    `wanted_parts` is the k that was asked for; `parts` is less where that would give too many regions.

    >>> rates = Dimension("rate of T", 0.0, 8.0)
    >>> chart = build_chart([rates], 4, lambda points: [points[0], 10.0 - points[0]])
    >>> chart.plans.tolist(), chart.plan_at([4.5]), chart.region([4.5])
    ([0, 0, 0, 1], 0, (2,))
    """

    dimensions: tuple[Dimension, ...]
    wanted_parts: int
    plans: NDArray[np.unsignedinteger]

    @property
    def parts(self) -> int:
        """How many parts each dimension has."""
        return len(self.plans)

    def region(self, point: Sequence[float]) -> tuple[int, ...]:
        """The region of a point."""
        parts = self.parts
        return tuple(dimension.part(value, parts) for dimension, value in zip(self.dimensions, point, strict=True))

    def plan_at(self, point: Sequence[float]) -> int:
        """The number of the plan for a point."""
        return int(self.plans[self.region(point)])


def build_chart(
    dimensions: Sequence[Dimension], parts: int, costs: Callable[[Sequence[Floats]], Sequence[Amount]]
) -> Chart:
    """Algorithm 1: the cheapest plan at every centroid.

    Parameters
    ----------
    dimensions
        What the chart covers.
    parts
        How many parts each dimension is cut into, the paper's k.
    costs
        Gives the costs of all plans at some points, from the points' values in each dimension. These arrays broadcast
        to the points; so do the costs.
    """
    cut = bounded_parts(parts, len(dimensions))
    axes = np.meshgrid(*(dimension.centroids(cut) for dimension in dimensions), indexing="ij", sparse=True)
    shape = (cut,) * len(dimensions)
    return Chart(tuple(dimensions), parts, cheapest(costs(axes), shape))


def bounded_parts(parts: int, dimensions: int) -> int:
    """The number of parts, lowered so that there are at most `MOST_REGIONS` regions.

    >>> [bounded_parts(40, dimensions) for dimensions in (2, 3, 4, 6)]
    [40, 40, 15, 6]
    """
    parts = checked_parts(parts)
    while parts**dimensions > MOST_REGIONS:
        parts -= 1
    return parts


def checked_parts(parts: int) -> int:
    """The number of parts, if a dimension can have so many."""
    if parts < 1:
        raise ValueError(f"a dimension has at least 1 part, not {parts}")
    return parts


def cheapest(costs: Sequence[Amount], shape: tuple[int, ...]) -> NDArray[np.unsignedinteger]:
    """The number of the plan with the least cost at every point, the first of equals."""
    best: NDArray[np.unsignedinteger] = np.zeros(shape, np.uint8 if len(costs) <= 1 << 8 else np.uint16)
    least = np.broadcast_to(costs[0], shape).astype(np.float64)
    for number, cost in enumerate(costs[1:], start=1):
        better = cost < least
        best[better] = number
        np.copyto(least, cost, where=better)
    return best
