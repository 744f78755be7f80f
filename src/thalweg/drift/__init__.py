"""When past statistics are no longer true: change detection for filter drop probabilities and costs.

`DETECTORS` lists every detector; `detector("bcs")` makes a detector by its name. `Watched` combines a detector
with any policy of `thalweg.ordering`. (bcs-change-detection-2012)
"""

from __future__ import annotations

from typing import Any

from thalweg.drift.adwin import Adwin
from thalweg.drift.bcs import BCS
from thalweg.drift.detector import Alarm, Detector, estimate
from thalweg.drift.glr import GLR
from thalweg.drift.martingale import Martingale
from thalweg.drift.monitor import Monitor, Shift
from thalweg.drift.none import NoDetector
from thalweg.drift.watched import Drift, Watched
from thalweg.registry import find

DETECTORS: tuple[type[Detector], ...] = (GLR, BCS, Martingale, Adwin, NoDetector)


def detector(name: str, **options: Any) -> Detector:  # noqa: ANN401 - the detector checks them
    """Make a detector by its name; the options are the parameters of its class.

    >>> detector("bcs", h=50).name
    'bcs'
    """
    return find(name, DETECTORS, "detector")(**options)


__all__ = [
    "BCS",
    "DETECTORS",
    "GLR",
    "Adwin",
    "Alarm",
    "Detector",
    "Drift",
    "Martingale",
    "Monitor",
    "NoDetector",
    "Shift",
    "Watched",
    "detector",
    "estimate",
]
