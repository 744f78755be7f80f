"""Lets the watermark of a join advance after a stream has been idle for a given time.

Spark's watermark is the least of all streams, and a stream that sends nothing holds it where it is. With `idle=` each
cell also knows the latest time of every stream, and when rows of the stream last came, by the time of micro-batches. A
stream that has sent nothing for longer than that, while others have, is left out of the least. The watermark of the
join is the later of the two; operators that follow the join have Spark's, which is never later. The clock is the time
that Spark gives a micro-batch, the same when it is repeated; time in which the query does not run does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from thalweg.mjoin import BEGINNING
from thalweg.spark.joins.event_time import MILLISECOND
from thalweg.spark.joins.inputs import JoinInput
from thalweg.spark.joins.text import microseconds


class StreamTime(NamedTuple):
    """What a cell knows of the times of a stream."""

    latest: int  # event time, in microseconds
    seen: int  # when rows last came, in milliseconds
    run: str  # of the query, in which that was


@dataclass(frozen=True)
class IdleRule:
    """How long a stream may send nothing before the watermark goes on without it.

    >>> rule = IdleRule(60_000, {"A": 0, "B": 2_000_000})
    >>> times = rule.after({}, {"A": 9_000_000, "B": 5_000_000}, now=1_000, run="first")
    >>> times = rule.after(times, {"A": 70_000_000}, now=62_000, run="first")
    >>> rule.watermark(times), rule.idle_streams(times)
    (70000, ['B'])
    """

    idle: int  # milliseconds
    delays: Mapping[str, int]  # of each stream, in microseconds

    def at_start(self, times: Mapping[str, StreamTime], now: int, run: str) -> dict[str, StreamTime]:
        """The times of all streams: a stream of which nothing is known in this run has been seen now."""
        return {
            name: known if known.run == run else StreamTime(known.latest, now, run)
            for name in self.delays
            for known in [times.get(name, StreamTime(BEGINNING, now, run))]
        }

    def after(
        self, times: Mapping[str, StreamTime], arrived: Mapping[str, int], now: int, run: str
    ) -> dict[str, StreamTime]:
        """The times after a micro-batch, in which rows of some streams have come."""
        known = self.at_start(times, now, run)
        return known | {name: StreamTime(max(latest, known[name].latest), now, run) for name, latest in arrived.items()}

    def idle_streams(self, times: Mapping[str, StreamTime]) -> list[str]:
        """The streams that have sent nothing for too long, while others have."""
        last = max(time.seen for time in times.values())
        return [name for name, time in times.items() if last - time.seen > self.idle]

    def watermark(self, times: Mapping[str, StreamTime]) -> int:
        """The watermark in milliseconds, without idle streams; 0 as long as there is none."""
        idle = self.idle_streams(times)
        active = [time.latest - self.delays[name] for name, time in times.items() if name not in idle]
        return max(min(active) // MILLISECOND, 0)


def choose_idle_rule(idle: str | timedelta | None, inputs: Iterable[JoinInput], delay: int) -> IdleRule | None:
    """The rule, from the arguments of `tw.join`; a stream that has a watermark of its own keeps its delay."""
    if idle is None:
        return None
    streams = [each for each in inputs if each.frame.isStreaming and each.time]
    return IdleRule(
        microseconds(idle, "idle") // MILLISECOND,
        {each.name: delay if each.own_delay is None else each.own_delay * MILLISECOND for each in streams},
    )
