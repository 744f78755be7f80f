"""ADWIN2: a window that shrinks when the means of its older and newer part differ. River's, behind the protocol.

Any two parts of the window are compared, at exponentially spaced cuts; the older is dropped when the means differ by
more than a bound with confidence 1 - delta allows. (A. Bifet and R. Gavaldà, "Learning from time-changing data with
adaptive windowing", SIAM SDM 2007)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from thalweg.drift.detector import Alarm, Detector, K, change_point
from thalweg.ordering.types import Floats

if TYPE_CHECKING:
    from river.drift import ADWIN

MOST_ESTIMATES = 1_000_000  # from one look to the next
RECENT = 256  # estimates of each series that are remembered, among which a change may have begun


class Adwin(Detector):
    """An ADWIN of river for each series: river offers no other way. Needs river, the extra ``thalweg[drift]``.

    Parameters
    ----------
    delta
        How likely, at most, a window where nothing changed is cut.
    clock
        Estimates between two looks at a series; ADWIN2 looks at each.
    k
        How many tuples an estimate is made of.

    Examples
    --------
    >>> from thalweg.drift.detector import estimate
    >>> random = np.random.default_rng(0)
    >>> detector = Adwin()
    >>> detector.watch(1)
    >>> for segment in range(200):
    ...     for alarm in detector.update(estimate(random.binomial(20, [0.3 if segment < 100 else 0.7]))):
    ...         print(segment, segment + 1 - alarm.back, round(alarm.before, 2), round(alarm.after, 2))
    143 100 0.33 0.69
    """

    name: ClassVar[str] = "adwin"

    def __init__(self, *, delta: float = 0.002, clock: int = 1, k: int = K) -> None:
        super().__init__(k=k)
        if not 0 < delta < 1:
            raise ValueError(f"delta is between 0 and 1, not {delta}")
        if not 1 <= clock <= MOST_ESTIMATES:
            raise ValueError(f"clock is at least 1 estimate and at most {MOST_ESTIMATES:,}, not {clock!r:.80}")
        self.delta, self.clock = delta, clock

    def _begin(self, series: int) -> None:
        try:
            from river.drift import ADWIN
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                "the detector 'adwin' is river's: install thalweg[drift], or take 'bcs' or 'martingale'"
            ) from None
        self._windows: list[ADWIN] = [
            ADWIN(delta=self.delta, clock=self.clock)  # type: ignore[no-untyped-call]  # river ships no types
            for _ in range(series)
        ]
        self._recent = np.full((RECENT, series), np.nan)  # a ring of the newest estimates, NaN where there is none
        self._taken = 0

    def _take(self, estimates: Floats) -> list[Alarm]:
        self._recent[self._taken % RECENT] = estimates
        self._taken += 1
        alarms = []
        for i, (window, x) in enumerate(zip(self._windows, estimates.tolist(), strict=True)):
            if x == x:  # noqa: PLR0124 - not NaN, at a third of the time of math.isnan
                window.update(x)  # type: ignore[no-untyped-call]
                if window.drift_detected:
                    alarms.append(self._change(i))
        return alarms

    def _change(self, i: int) -> Alarm:
        """Where a series changed. River's ADWIN itself drops but its oldest bucket at first, and then everything."""
        known = np.roll(self._recent[:, i], -self._taken % RECENT)
        back, before, after, strength = change_point(known[~np.isnan(known)], self.k)
        self._recent[:, i] = np.nan
        return Alarm(i, back, before, after, strength)
