"""The saving of class orders against one order, measured on every profile tuple, and whether it still pays.

A profile tuple is known on all filters, so it can be costed in its class's order and in the overall order, before
either learns from it. A detector watches two shares of the tuples, which are better and worse off by their class, in
segments: when a share changes, and the saving since then is not surely worth having, the classifier has stopped
separating. Apart from that, the mean saving has to pay for the splitting of batches. (decision 0022)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thalweg.drift import Detector, estimate
from thalweg.ordering.types import Floats, Integers
from thalweg.routing.classifier import costs_until_dropped

RECENT = 1000  # profile tuples over which the benefit is measured
CHECK_AFTER = 200  # profile tuples from one check of the mean saving to the next
FEW = 30  # profile tuples below which a mean says nothing
DRAWN = 10.0  # profile tuples of all classes that each class is thought to have besides its own
CERTAINTY = 2.0  # standard errors by which a saving must exceed its least worth, once a detector has doubts


@dataclass(frozen=True)
class StopReason:
    """Why class orders do not pay any more."""

    text: str
    newest: int | None = None  # profile tuples since the change, if a change was detected


class Benefit:
    """Measures the saving of class orders.

    Parameters
    ----------
    detector
        Watches the shares of tuples that are better and worse off; it must watch nothing else.

    Examples
    --------
    The first of two classes is dropped by the second filter, but the overall order begins with the first filter.

    >>> from thalweg.drift import detector
    >>> benefit = Benefit(detector("bcs"))
    >>> benefit.measure(np.array([0b10, 0b01]), np.array([1, 2]), [(0, 1), (1, 0), (0, 1)], np.ones(2))
    >>> benefit.savings.tolist(), benefit.mean, benefit.stop_reason(least=0.02, overhead=0.0)
    ([1.0, 0.0], 0.5, None)
    """

    def __init__(self, detector: Detector) -> None:
        self.detector = detector
        self.restart()

    def restart(self) -> None:
        """Forget everything, for another classifier."""
        self._savings: deque[float] = deque(maxlen=RECENT)
        self._one_order: deque[float] = deque(maxlen=RECENT)
        self._classes: deque[int] = deque(maxlen=RECENT)
        self._segment: list[float] = []  # savings of the segment that is not yet full
        self._unchecked = 0
        self.detector.watch(2)

    def __len__(self) -> int:
        return len(self._savings)

    @property
    def savings(self) -> Floats:
        """How much less each of the last tuples cost in its class's order than in the overall order."""
        return np.array(self._savings)

    @property
    def costs(self) -> Floats:
        """The cost of each of the last tuples in its class's order."""
        costs: Floats = np.array(self._one_order) - self.savings
        return costs

    @property
    def mean(self) -> float:
        """The mean saving; 0 before anything was measured."""
        return float(np.mean(self._savings)) if self._savings else 0.0

    def means(self, classes: int) -> Floats:
        """The mean saving of a tuple of each of so many classes, drawn to that of all the more the fewer there are.

        Class 0 saves nothing, and no class does if all together do not.
        """
        numbers, savings = np.array(self._classes, np.int64), self.savings
        counts, sums = np.bincount(numbers, minlength=classes), np.bincount(numbers, savings, classes)
        every = max(float(savings.sum()), 0.0) / max(int(counts[1:].sum()), 1)
        means: Floats = np.maximum((sums + DRAWN * every) / (counts + DRAWN), 0.0) * (every > 0)
        means[0] = 0.0
        return means

    @property
    def one_order(self) -> float | None:
        """The mean cost of a tuple in the overall order; None before anything was measured."""
        return float(np.mean(self._one_order)) if self._one_order else None

    @property
    def error(self) -> float:
        """The standard error of the mean saving."""
        return float(np.std(self._savings) / np.sqrt(len(self._savings))) if self._savings else 0.0

    def measure(self, masks: Integers, classes: Integers, orders: Sequence[tuple[int, ...]], costs: Floats) -> None:
        """Measure profile tuples, given their classes and the orders of all classes, the overall order first."""
        bits = (masks[:, None] >> np.arange(costs.size)) & 1 == 1
        table = costs_until_dropped(np.array(orders), bits, costs)
        savings = (table[0] - table[classes, np.arange(masks.size)]).tolist()
        self._savings.extend(savings)
        self._one_order.extend(table[0].tolist())
        self._classes.extend(classes.tolist())
        self._segment += savings
        self._unchecked += len(savings)

    def stop_reason(self, least: float, overhead: float) -> StopReason | None:
        """Why class orders no longer pay, or None: a saving is worth having from `least` on, `overhead` left out."""
        size = self.detector.k
        while len(self._segment) >= size:
            segment, self._segment = np.array(self._segment[:size]), self._segment[size:]
            for alarm in self.detector.update(estimate([(segment > 0).sum(), (segment < 0).sum()], size)):
                since = min(alarm.back * size + len(self._segment), len(self._savings))
                if surely(self.savings[-since:], CERTAINTY) < least:
                    return StopReason("it no longer separates the classes", since)
        if self._unchecked >= CHECK_AFTER:
            self._unchecked = 0
            return self.payment(least, overhead)
        return None

    def payment(self, least: float, overhead: float) -> StopReason | None:
        """Why the mean saving does not pay, or None."""
        certainty = 0.0 if len(self) == RECENT else 1.0  # of the measured mean, in standard errors
        if len(self) >= FEW and self.mean + certainty * self.error < least + overhead:
            return StopReason("what it saves does not pay for the splitting of batches")
        return None


def surely(values: Floats, errors: float) -> float:
    """The value that the mean exceeds by so many standard errors.

    >>> round(surely(np.array([0.0, 1.0, 2.0, 1.0]), errors=2.0), 3)
    0.293
    """
    return float(values.mean() - errors * values.std() / np.sqrt(values.size))
