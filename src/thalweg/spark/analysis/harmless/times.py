"""Rules for dates, timestamps and intervals: which expressions stay within the calendar."""

from __future__ import annotations

from thalweg.spark.analysis.harmless.casts import cast
from thalweg.spark.analysis.harmless.values import (
    INTEGERS,
    LIFETIME,
    MARGIN,
    MICROSECONDS_A_DAY,
    TEXT,
    TIMES,
    Call,
    Unproven,
    Value,
    any_of_type,
    is_in_common_era,
    require,
)
from thalweg.spark.analysis.patterns import is_plain_time_format

DATE_PARTS = {
    "DayOfMonth": (1, 31),
    "DayOfWeek": (1, 7),
    "DayOfYear": (1, 366),
    "Month": (1, 12),
    "Quarter": (1, 4),
    "WeekDay": (0, 6),
    "WeekOfYear": (1, 53),
    "Year": (-5_877_641, 5_881_580),
}


TIME_PARTS = {"Hour": (0, 23), "Minute": (0, 59), "Second": (0, 59)}
# fmt: on


TRUNCATIONS = {"LastDay", "TruncDate", "TruncTimestamp"}


MOVES = {  # by how much a unit of the argument that is no time moves a date or timestamp at most
    "AddMonths": 31,
    "DateAddYMInterval": 31,
    "TimestampAdd": 366 * MICROSECONDS_A_DAY,  # its largest unit is a year
    "TimestampAddInterval": 1,
    "TimestampAddYMInterval": 31 * MICROSECONDS_A_DAY,
}


def clock_value(kind: str) -> Value:
    unit = 1 if kind == "date" else MICROSECONDS_A_DAY
    return Value(kind, LIFETIME[0] * unit, LIFETIME[1] * unit)


def date_part(call: Call) -> Value:
    require(call.arguments[0].type == "date")
    return Value("integer", *DATE_PARTS[call.kind])


def time_part(call: Call) -> Value:
    require(call.arguments[0].type in TIMES)
    return Value("integer", *TIME_PARTS[call.kind])


def adds_days(call: Call) -> Value:
    """Days added to a date: beyond the largest date Spark wraps around."""
    date, days = call.arguments
    require(date.type == "date" and days.type in INTEGERS)
    low, high = (days.low, days.high) if call.kind == "DateAdd" else (-days.high, -days.low)
    shifted, everything = Value("date", date.low + low, date.high + high), any_of_type("date")
    return shifted if shifted.within(everything.low, everything.high) else everything


def days_of_interval(call: Call) -> Value:
    (interval,) = call.arguments
    require(interval.type == "interval day")
    return Value("integer", interval.low // MICROSECONDS_A_DAY, interval.high // MICROSECONDS_A_DAY)


def shifts_time(call: Call) -> Value:
    """A date or timestamp that is moved or truncated: certain only far from the ends of the calendar."""
    times = [argument for argument in call.arguments if argument.type in {"date", *TIMES}]
    require(len(times) == 1)
    time = times[0]
    unit = 1 if time.type == "date" else MICROSECONDS_A_DAY
    low, high = time.low - MARGIN * unit, time.high + MARGIN * unit
    if call.kind in MOVES:
        shift, size = call.arguments[call.kind != "TimestampAdd"], MOVES[call.kind]
        low, high = min(low, low + shift.low * size), max(high, high + shift.high * size)
    moved = Value(time.type, low, high)
    require(is_in_common_era(moved))
    return moved


def parses(call: Call) -> Value:
    """`to_date` and `to_timestamp` without a format, of dates and timestamps."""
    target = "date" if call.kind == "ParseToDate" else call.fields["dataType"]
    require(len(call.arguments) == 1 and call.arguments[0].type in {"date", *TIMES})
    result = cast(call.arguments[0], target)
    if result is None:
        raise Unproven
    return result


def formats(call: Call) -> Value:
    (time, _) = call.arguments
    # With `spark.sql.legacy.timeParserPolicy`, Spark converts to another calendar, in which a time can overflow.
    require(time.type == "timestamp" and is_in_common_era(time) and is_plain_time_format(call.pattern(1)))
    return TEXT
