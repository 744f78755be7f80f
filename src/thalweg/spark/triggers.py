"""The triggers of Spark that streams which Thalweg drives by micro-batches can have."""

from __future__ import annotations

from collections.abc import Mapping

TRIGGERS = ("processingTime", "availableNow", "once", "continuous", "realTime")  # as Spark names them
WITHOUT_MICRO_BATCHES = {"realTime": "real-time mode", "continuous": "continuous mode"}


def check_trigger(trigger: Mapping[str, object], started: str) -> None:
    """Refuse a trigger under which Spark has no micro-batches; `started` is what the user called.

    >>> check_trigger({"realTime": "5 seconds"}, "session.start")
    Traceback (most recent call last):
    ValueError: Spark's real-time mode has no micro-batches, which session.start works on: write
    processingTime='0 seconds' or availableNow=True
    """
    for name, mode in WITHOUT_MICRO_BATCHES.items():
        if trigger.get(name) is not None:
            raise ValueError(
                f"Spark's {mode} has no micro-batches, which {started} works on: write processingTime='0 seconds' or "
                f"availableNow=True"
            )
