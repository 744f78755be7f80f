"""The statistics of a round: what was observed in it, or what is expected of the next round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from thalweg.charts.cost import Amount


@dataclass(frozen=True)
class RoundStatistics:
    """Arrival rates and selectivities of a query's inputs in one round.

    Where plans are costed at many points at once, rates and selectivities are arrays that broadcast.

    Parameters
    ----------
    rates
        Tuples a second, by the alias of each stream.
    selectivities
        The share of tuples that pass all selections of an input, by alias; 1 without an entry.
    join_selectivities
        The share of all pairs of tuples for which an equality holds, by `equality_name`; a usual number without an
        entry.
    table_sizes
        Rows, by the alias of each static table.
    groups
        Groups that an aggregation puts out in a round.
    """

    rates: Mapping[str, Amount]
    selectivities: Mapping[str, Amount] = field(default_factory=dict)
    join_selectivities: Mapping[str, float] = field(default_factory=dict)
    table_sizes: Mapping[str, float] = field(default_factory=dict)
    groups: float = 1.0
