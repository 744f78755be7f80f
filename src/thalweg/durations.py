"""The units of durations that users write: their names, short names, and lengths in microseconds."""

from __future__ import annotations

UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
SHORT_UNITS = {
    "us": "microsecond",
    "ms": "millisecond",
    "s": "second",
    "sec": "second",
    "m": "minute",
    "min": "minute",
    "h": "hour",
    "hr": "hour",
    "d": "day",
    "w": "week",
}


def microseconds_in(unit: str) -> int | None:
    """The length of a unit, by its name, its plural or a short name, in any case; None if it is no unit.

    >>> microseconds_in("Minutes"), microseconds_in("ms"), microseconds_in("month")
    (60000000, 1000, None)
    """
    name = unit.lower()
    return UNITS.get(SHORT_UNITS.get(name, name.removesuffix("s")))
