"""Raking: profile tuples are weighted so that they drop as ordinary processing does, which counts every tuple.

A profile of some hundred tuples tells a drop rate to within several percent. Ordinary processing tells it to within
a few thousandths, and for nothing, but only for the orders that have run: how often a filter drops the tuples that the
filters before it let through. So the profile has to tell no more than what has not run yet. Its tuples are
divided by the filter that drops them first, and each part gets the weight that this filter's drops have among all
tuples. That is done for the last few orders, one after the other, the current order last: it then fits exactly, and
earlier orders nearly. (W. E. Deming and F. F. Stephan, "On a least squares adjustment of a sampled frequency table when
the expected marginal totals are known", Annals of Mathematical Statistics 11, 1940, who go round until all fit;
docs/decisions/0185)

Must not know when a stream changes: whoever does calls `forget`.
"""

from __future__ import annotations

import numpy as np

from thalweg.ordering.types import Floats, Integers

ORDERS = 4  # that are remembered: 3 are worse by a tenth of what raking brings, 12 are no better
LEAST = 1e-9  # tuples, instead of none, to divide by


class Raking:
    """The drop rates of the last orders that ran, and the weights that follow from them.

    Examples
    --------
    Of four profile tuples three are dropped by the first filter; of 1000 tuples it is only every second. The others
    all reach the second filter, which drops three of four.

    >>> raking = Raking()
    >>> raking.note((0, 1), evaluated=np.array([1000.0, 500.0]), dropped=np.array([500.0, 375.0]))
    >>> raking.weights(np.array([0b01, 0b01, 0b11, 0b10])).round(2).tolist()
    [0.76, 0.76, 0.76, 1.71]
    """

    def __init__(self) -> None:
        # Tuples that each filter evaluated (the first row) and dropped, by order; the newest order last.
        self._counts: dict[tuple[int, ...], Floats] = {}

    def __bool__(self) -> bool:
        return bool(self._counts)

    def forget(self) -> None:
        """Forget all rates: the stream has changed."""
        self._counts.clear()

    def note(self, order: tuple[int, ...], evaluated: Floats, dropped: Floats) -> None:
        """Note how many tuples each filter evaluated and dropped in an order. This is often done, so it adds alone.

        Counts of another order, in which filters do not evaluate just what the filters before them let through, are
        left out.
        """
        counts = np.array([evaluated, dropped])
        reached, gone = counts[:, order]
        if (reached[1:] != (reached - gone)[:-1]).any():
            return
        self._counts[order] = counts + self._counts.pop(order, 0.0)
        if len(self._counts) > ORDERS:
            del self._counts[next(iter(self._counts))]

    def weights(self, masks: Integers) -> Floats:
        """The weight of each profile tuple, by drop masks that are not 0; 1 on average."""
        rates = self._conditional()
        every = np.append(masks, 0)  # and a mask for all tuples that no filter drops
        weights = np.ones(every.size)
        weights[-1] = masks.size * self._kept_for_each_dropped()
        for order in self._counts:
            evaluated, dropped = np.array([rates[step] for step in _steps(order)]).T
            drops = every[:, None] >> np.array(order) & 1
            place = np.where(every > 0, drops.argmax(axis=1), len(order))  # the position that drops a tuple
            parts = np.bincount(place, weights, len(order) + 1)
            reached = parts[::-1].cumsum()[::-1][:-1]
            # Where ordinary processing counted few tuples, or none, the profile tells as much.
            shares = (dropped + parts[:-1]) / np.maximum(evaluated + reached, LEAST)
            left = np.append(1.0, np.cumprod(1.0 - shares))
            fitting = parts.sum() * left * np.append(shares, 1.0)
            weights *= np.divide(fitting, parts, out=np.ones(parts.size), where=parts > 0)[place]
        return weights[:-1] * (masks.size / max(float(weights[:-1].sum()), LEAST))

    def _conditional(self) -> dict[tuple[int, int], Floats]:
        """Tuples that a filter evaluated and dropped after the same filters, in whichever order these ran."""
        sums: dict[tuple[int, int], Floats] = {}
        for order, counts in self._counts.items():
            for step in _steps(order):
                sums[step] = counts[:, step[1]] + sums.get(step, 0.0)
        return sums

    def _kept_for_each_dropped(self) -> float:
        """How many tuples no filter drops, for each tuple that a filter drops."""
        rows = sum(float(counts[0, order[0]]) for order, counts in self._counts.items())
        dropped = sum(float(counts[1].sum()) for counts in self._counts.values())
        return max(rows - dropped, 0.0) / max(dropped, 1.0)


def _steps(order: tuple[int, ...]) -> list[tuple[int, int]]:
    """The filters of an order, each with the mask of the filters before it: (before, filter)."""
    steps, before = [], 0
    for number in order:
        steps.append((before, number))
        before |= 1 << number
    return steps
