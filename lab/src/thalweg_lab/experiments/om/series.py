"""Statistics of rounds with a set coefficient of variation: the stand-in for the paper's filtered DEC-PKT traces.

A stream's arrival rate and selectivity wander around their means. Their logarithms are autoregressive, so that both are
lognormal with the coefficient of variation that is asked for, and the statistics of a round resemble those of the round
before. The observations of a round are counts: Poisson arrivals, of which a binomial number is selected.

The paper varies the coefficient of variation of the arrival rate alone. Under its cost model the rate hardly matters
for the order of selection and projection, so the selectivity varies as much as the rate does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from thalweg.ordering.types import Floats

if TYPE_CHECKING:
    from thalweg.charts import RoundStatistics

PERSISTENCE = 0.98  # correlation of two rounds: with rounds of a second, statistics last for about a minute
BURST_VARIATION = 0.5  # more, in each round of a burst anew


@dataclass(frozen=True)
class WanderingStream:
    """A stream by the means and the coefficient of variation of its statistics."""

    alias: str
    rate: float
    selectivity: float | None  # none for a stream without selections
    variation: float


def wander(mean: float, variation: float, rounds: int, random: np.random.Generator) -> Floats:
    """Positive values around a mean, each like the value before it.

    >>> values = wander(500.0, 0.26, 100_000, np.random.default_rng(0))
    >>> round(float(values.mean()), -1), round(float(values.std() / values.mean()), 1)
    (500.0, 0.3)
    """
    deviation = math.sqrt(math.log1p(variation**2))
    shocks = random.normal(0.0, deviation * math.sqrt(1.0 - PERSISTENCE**2), rounds)
    logs = np.empty(rounds)
    level = random.normal(0.0, deviation)
    for place in range(rounds):
        logs[place] = level
        level = PERSISTENCE * level + shocks[place]
    values: Floats = mean * np.exp(logs - deviation**2 / 2.0)
    return values


class Round(NamedTuple):
    """The observed statistics of a round, and the means of the distributions from which they were drawn."""

    observed: RoundStatistics
    means: RoundStatistics


def series(
    streams: list[WanderingStream],
    rounds: int,
    seed: int,
    join_selectivities: dict[str, float] | None = None,
    burst: tuple[int, int] = (0, 0),
) -> list[Round]:
    """Rounds of streams; in a burst, rates and selectivities jump from round to round."""
    from thalweg.charts import RoundStatistics

    random = np.random.default_rng(seed)
    jumps = math.sqrt(math.log1p(BURST_VARIATION**2)) * (np.arange(rounds) >= burst[0]) * (np.arange(rounds) < burst[1])
    rates, selectivities = dict[str, Floats](), dict[str, Floats]()
    mean_rates, mean_selectivities = dict[str, Floats](), dict[str, Floats]()
    for stream in streams:
        rate = wander(stream.rate, stream.variation, rounds, random) * np.exp(jumps * random.normal(size=rounds))
        arrived = np.maximum(random.poisson(rate), 1)
        mean_rates[stream.alias], rates[stream.alias] = rate, arrived.astype(np.float64)
        if stream.selectivity is not None:
            share = wander(stream.selectivity, stream.variation, rounds, random)
            share *= np.exp(jumps * random.normal(size=rounds))
            share = np.minimum(share, 1.0)
            mean_selectivities[stream.alias] = share
            selectivities[stream.alias] = random.binomial(arrived, share) / arrived

    def at(place: int, rates: dict[str, Floats], selectivities: dict[str, Floats]) -> RoundStatistics:
        return RoundStatistics(
            {alias: float(values[place]) for alias, values in rates.items()},
            {alias: float(values[place]) for alias, values in selectivities.items()},
            join_selectivities or {},
        )

    return [
        Round(at(place, rates, selectivities), at(place, mean_rates, mean_selectivities)) for place in range(rounds)
    ]
