"""All estimates of a query: what the next round is expected to be like, from the rounds before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from thalweg.charts.estimate import DECAY, ROUNDS, DecayedMean
from thalweg.charts.held_estimate import THRESHOLD, HeldEstimate
from thalweg.charts.statistics import RoundStatistics

GROUPS = ""  # the name under which the estimate of the number of groups is kept


class RoundEstimates:
    """Estimates of every statistic of a round.

    Rates and selectivities of selections are decayed means. Join selectivities, table sizes and the number of groups,
    for which charts are built, are held until they stray.

    Parameters
    ----------
    rounds, decay
        Of the decayed means.
    threshold
        How far observations may differ from an estimate that is held.

    >>> estimates = RoundEstimates()
    >>> estimates.observe(RoundStatistics({"T": 90.0}, {"T": 0.5}))
    True
    >>> estimates.expected.rates, estimates.expected.selectivities
    ({'T': 90.0}, {'T': 0.5})
    """

    def __init__(self, rounds: int = ROUNDS, decay: float = DECAY, threshold: float = THRESHOLD) -> None:
        self.rounds, self.decay, self.threshold = rounds, decay, threshold
        self._rates: dict[str, DecayedMean] = {}
        self._selectivities: dict[str, DecayedMean] = {}
        self._join_selectivities: dict[str, HeldEstimate] = {}
        self._table_sizes: dict[str, HeldEstimate] = {}
        self._groups: dict[str, HeldEstimate] = {}
        self._expected: RoundStatistics | None = None  # made when it is asked for, once a round

    def observe(self, observed: RoundStatistics) -> bool:
        """Learn a round; returns whether an estimate that is held was renewed. What is missing keeps its estimate."""
        for means, values in ((self._rates, observed.rates), (self._selectivities, observed.selectivities)):
            for name, value in values.items():
                if name not in means:
                    means[name] = DecayedMean(self.rounds, self.decay)
                means[name].observe(float(value))
        self._expected = None
        renewed = False
        for held, numbers in (
            (self._join_selectivities, observed.join_selectivities),
            (self._table_sizes, observed.table_sizes),
            (self._groups, {GROUPS: observed.groups}),
        ):
            for name, number in numbers.items():
                if name not in held:
                    held[name] = HeldEstimate(self.threshold, self.rounds, self.decay)
                renewed |= held[name].observe(number)
        return renewed

    @property
    def expected(self) -> RoundStatistics | None:
        """What the next round is expected to be like; nothing is known before the first round."""
        if self._expected is None and self._groups:
            self._expected = RoundStatistics(
                _estimates(self._rates),
                _estimates(self._selectivities),
                _estimates(self._join_selectivities),
                _estimates(self._table_sizes),
                self._groups[GROUPS].estimate,
            )
        return self._expected

    def completed(self, observed: RoundStatistics) -> RoundStatistics:
        """A round's statistics, with estimates for whatever was not observed in it."""
        expected = self.expected
        if expected is None:
            return observed
        return RoundStatistics(
            {**expected.rates, **observed.rates},
            {**expected.selectivities, **observed.selectivities},
            {**expected.join_selectivities, **observed.join_selectivities},
            {**expected.table_sizes, **observed.table_sizes},
            observed.groups,
        )

    def save(self) -> dict[str, Any]:
        """The state, for `load`, as values that JSON knows."""
        return {
            "rates": {name: list(mean.values) for name, mean in self._rates.items()},
            "selectivities": {name: list(mean.values) for name, mean in self._selectivities.items()},
            "join_selectivities": {name: held.save() for name, held in self._join_selectivities.items()},
            "table_sizes": {name: held.save() for name, held in self._table_sizes.items()},
            "groups": {name: held.save() for name, held in self._groups.items()},
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Take up a saved state."""
        self._expected = None
        self._rates, self._selectivities = (
            {name: DecayedMean(self.rounds, self.decay, values) for name, values in state[key].items()}
            for key in ("rates", "selectivities")
        )
        self._join_selectivities, self._table_sizes, self._groups = (
            {name: self._loaded(held) for name, held in state[key].items()}
            for key in ("join_selectivities", "table_sizes", "groups")
        )

    def _loaded(self, state: dict[str, Any]) -> HeldEstimate:
        held = HeldEstimate(self.threshold, self.rounds, self.decay)
        held.load(state)
        return held


def _estimates(kept: Mapping[str, DecayedMean] | Mapping[str, HeldEstimate]) -> dict[str, float]:
    items: Iterable[tuple[str, DecayedMean | HeldEstimate]] = kept.items()
    return {name: each.estimate for name, each in items}
