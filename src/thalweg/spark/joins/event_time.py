"""The event time of results: which it is, and how its watermark is kept, so that stateful operators can follow a join.

A result's time is the latest of its rows by default, and never before the watermark: one of its rows is new. The time
of a given stream may be earlier, by as much as that stream's window. Spark has one watermark for the whole query, so
there the watermark that Spark sees is moved back by the window (streams get a longer delay), and the operator adds the
window again. So the join itself accepts and drops the same rows, and no result is late for the operators that follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from thalweg.mjoin import EVENT_TIME, TimeWindow
from thalweg.registry import hint
from thalweg.spark.joins.how import JoinType
from thalweg.spark.joins.inputs import JoinInput
from thalweg.spark.joins.text import ResultColumn

LATEST_TIME = "latest"
MILLISECOND = 1000  # microseconds; Spark's unit of watermarks


@dataclass(frozen=True)
class ResultTime:
    """The event time of results."""

    streams: tuple[str, ...] = ()  # whose latest time it is; none if results have no such column
    shift: int = 0  # milliseconds by which the watermark of Spark is before that of the join


def choose_result_time(
    event_time_of: str | None, inputs: Sequence[JoinInput], select: Sequence[ResultColumn], join_type: JoinType
) -> ResultTime:
    """The event time of results, from the argument of `tw.join`."""
    timed = {each.name: each for each in inputs if each.time}
    if join_type.kind in {"semi", "anti"}:
        timed = {name: each for name, each in timed.items() if name in join_type.preserved}
    if event_time_of is None or not timed:
        return ResultTime()
    for *_, alias in select:
        if alias.lower() == EVENT_TIME:
            raise ValueError(
                f"a column of the result is called {alias!r}, as its event time is; give it another name in select=, "
                f"or write event_time_of=None for results without a time of their own"
            )
    # A preserved row is a result when it leaves its window, so its time is before the watermark.
    leaving = [each for name, each in timed.items() if name in join_type.preserved]
    if event_time_of == LATEST_TIME and LATEST_TIME not in timed:
        return ResultTime(tuple(timed), max((_shift(each, inputs) for each in leaving), default=0))
    if event_time_of not in timed:
        raise ValueError(
            f"event_time_of is {event_time_of!r}{hint(str(event_time_of), timed)} Write {LATEST_TIME!r}, None, or a "
            f"stream that has a time: {', '.join(timed)}"
        )
    if any(each.name != event_time_of for each in leaving):
        raise ValueError(
            f"a row of {', '.join(join_type.preserved)} without a match has no time of {event_time_of}; write "
            f"event_time_of={LATEST_TIME!r}"
        )
    return ResultTime((event_time_of,), _shift(timed[event_time_of], inputs))


def _shift(source: JoinInput, inputs: Sequence[JoinInput]) -> int:
    """By how many milliseconds a result's time may be before the watermark, if it is the time of this stream."""
    if not any(each.frame.isStreaming for each in inputs):
        return 0
    if not isinstance(source.window, TimeWindow):
        raise ValueError(  # noqa: TRY004 - it is the choice that is wrong
            f"event_time_of={source.name!r}, whose window is not a duration, so that its rows may be of any time; "
            f"write event_time_of={LATEST_TIME!r}"
        )
    marked = [each.name for each in inputs if each.has_watermark]
    if marked:
        raise ValueError(
            f"results with the time of {source.name} need a watermark that is earlier by its window, and "
            f"{', '.join(marked)} has withWatermark already; leave that out, and write delay= instead, or "
            f"event_time_of=None"
        )
    return -(-source.window.microseconds // MILLISECOND)
