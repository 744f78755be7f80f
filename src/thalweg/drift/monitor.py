"""Watches all conditional drop probabilities of an order, and the filters' costs, with one detector.

Profile tuples come in segments of k. Of each segment, d(j|i) is estimated by the share of its tuples that the filter at
position j drops and no filter before position i does: the segment's matrix view over k. All N(N+1)/2 of them, and the
N costs, are series of the detector. (bcs-change-detection-2012, section IV)

A share of all k tuples always exists, also where no tuple gets as far as position i. A cost t becomes t / (t + the
first cost seen), which is a half as long as nothing changes; a segment without a time sample of a filter says nothing
of its cost. (docs/decisions/0011)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from thalweg.drift.detector import Alarm, Detector
from thalweg.kernels import kernel
from thalweg.ordering.checked import masks_of, numbers_of, times_of
from thalweg.ordering.matrix_view import FULL, count
from thalweg.ordering.precedence import check_filters, legal_order
from thalweg.ordering.profile import LEAST_TIME
from thalweg.ordering.types import Booleans, Floats, Integers

# A filter's cost has changed when it is this many times greater or less than before: smaller changes hardly matter to
# an order, and timings drift.
COST_RATIO = 1.5
# A time sample counts at most this many times the first: a process may lose the processor.
TIME_CLIP = 100.0

Kind = Literal["selectivity", "cost"]
FILL = 0


@dataclass(frozen=True)
class Shift:
    """A drop probability or a cost that changed."""

    kind: Kind
    filter: int  # whose it is
    given: tuple[int, ...]  # filters that let the tuples through; of a cost, none
    at: int  # profile tuples that the monitor had seen when it began
    back: int  # profile tuples seen since then
    before: float  # a share of the tuples, or seconds
    after: float
    strength: float  # standard errors


class ProfileSegment(NamedTuple):
    """The segment that is being filled, as kernels share it."""

    masks: Integers
    cursor: Integers  # how many tuples it has
    order: Integers
    counts: Integers  # its matrix view
    rows: Integers  # which entries of the view are watched
    columns: Integers
    time_sum: Floats
    time_count: Integers
    reference: Floats  # the first mean time of each filter, 0 until there is a time sample
    estimates: Floats  # an estimate for each entry of the view, then an estimate for each cost


@kernel
def fill(segment: ProfileSegment, masks: Integers, times: Floats, timed: Booleans) -> bool:
    """Put profile tuples into the segment; there must be room. Returns whether it is full: estimates are then made."""
    start = segment.cursor[FILL]
    for k in range(masks.size):
        segment.masks[start + k] = masks[k]
    for i in range(segment.reference.size):
        samples, reference = times[:, i], float(segment.reference[i])
        total, samples_seen = float(segment.time_sum[i]), int(segment.time_count[i])
        for k in range(masks.size):
            if timed[k]:
                sample = float(samples[k])
                if not math.isnan(sample):
                    total += min(sample, TIME_CLIP * reference) if reference > 0.0 else sample
                    samples_seen += 1
        segment.time_sum[i], segment.time_count[i] = total, samples_seen
    segment.cursor[FILL] = start + masks.size
    if segment.cursor[FILL] < segment.masks.size:
        return False
    close(segment)
    return True


@kernel
def close(segment: ProfileSegment) -> None:
    """Make estimates of a full segment, and empty it."""
    size, entries = segment.masks.size, segment.rows.size
    segment.counts[:] = 0
    for k in range(size):
        count(segment.counts, segment.order, FULL, 0, segment.masks[k], 1)
    for entry in range(entries):
        dropped = segment.counts[segment.rows[entry], segment.columns[entry]]
        segment.estimates[entry] = (dropped + 0.5) / (size + 1)
    for i in range(segment.reference.size):
        segment.estimates[entries + i] = np.nan
        if segment.time_count[i] > 0:
            mean = max(segment.time_sum[i] / segment.time_count[i], LEAST_TIME)
            if segment.reference[i] == 0.0:
                segment.reference[i] = mean
            segment.estimates[entries + i] = mean / (mean + segment.reference[i])
        segment.time_sum[i] = 0.0
        segment.time_count[i] = 0
    segment.cursor[FILL] = 0


class Monitor:
    """Watches an order's probabilities and costs.

    Parameters
    ----------
    order
        The order whose conditional drop probabilities are watched.
    detector
        The detector that watches them.
    diagonal
        Whether to watch only d(i|i): all that is known of tuples that were not evaluated on further filters.

    Examples
    --------
    Two filters, of which the second drops more after 3000 profile tuples:

    >>> from thalweg.drift import BCS
    >>> random = np.random.default_rng(0)
    >>> bits = random.random((6000, 2)) < np.where(np.arange(6000) < 3000, 0.2, 0.6)[:, None] ** [0, 1]
    >>> for shift in Monitor([0, 1], BCS()).update(bits @ [1, 2])[:1]:
    ...     print(shift.kind, shift.filter, shift.given, shift.at, round(shift.before, 2), round(shift.after, 2))
    selectivity 1 () 3000 0.21 0.57
    """

    def __init__(self, order: Iterable[int], detector: Detector, *, diagonal: bool = False) -> None:
        self.detector = detector
        self.seen = 0
        self.order: tuple[int, ...] = ()
        self.follow(order, diagonal=diagonal)

    @property
    def room(self) -> int:
        """How many profile tuples the current segment still takes."""
        return int(self.detector.k - self.segment.cursor[FILL])

    def follow(self, order: Iterable[int], *, diagonal: bool = False) -> None:
        """Watch another order: forget all estimates and the unfinished segment."""
        numbers = list(order)
        check_filters(len(numbers))
        self.order = legal_order(np.zeros(len(numbers), np.int64), numbers)
        filters = len(self.order)
        rows, columns = np.diag_indices(filters) if diagonal else np.triu_indices(filters)
        self.segment = ProfileSegment(
            masks=np.zeros(self.detector.k, np.int64),
            cursor=np.zeros(1, np.int64),
            order=np.array(self.order, np.int64),
            counts=np.zeros((filters, filters), np.int64),
            rows=rows.astype(np.int64),
            columns=columns.astype(np.int64),
            time_sum=np.zeros(filters),
            time_count=np.zeros(filters, np.int64),
            reference=np.zeros(filters),
            estimates=np.zeros(rows.size + filters),
        )
        self.detector.watch(rows.size + filters)

    def update(
        self, masks: ArrayLike, times: ArrayLike | None = None, timed: ArrayLike | None = None
    ) -> tuple[Shift, ...]:
        """Learn profile tuples, and the times of the timed tuples; returns the changes, the oldest segment's first."""
        each = masks_of(masks, len(self.order))
        # The rows of tuples that are not timed are not looked at, whatever they hold.
        expected = f"times and timed have a row for each of the {each.size} profile tuples"
        if timed is None:
            seconds, measured = times_of(times, each.size, len(self.order)), np.full(each.size, times is not None)
        else:
            seconds = numbers_of(np.nan if times is None else times, expected)
            measured = numbers_of(timed, expected).astype(np.bool_)
        if seconds.shape != (each.size, len(self.order)) or measured.shape != each.shape:
            raise ValueError(expected)
        start, shifts = 0, list[Shift]()
        while start < each.size:
            stop = min(start + self.room, each.size)
            is_full = fill(self.segment, each[start:stop], seconds[start:stop], measured[start:stop])
            shifts += self.filled(stop - start, is_full=is_full)
            start = stop
        return tuple(shifts)

    def filled(self, tuples: int, *, is_full: bool) -> tuple[Shift, ...]:
        """Note that so many profile tuples were put into the segment; if it is full, returns the changes."""
        self.seen += tuples
        alarms = self.detector.update(self.segment.estimates) if is_full else ()
        return tuple(shift for shift in map(self._shift, alarms) if shift is not None) if alarms else ()

    def _shift(self, alarm: Alarm) -> Shift | None:
        """The meaning of an alarm; None if it is about a cost that is much the same."""
        segment, back = self.segment, alarm.back * self.detector.k
        entry = alarm.series - segment.rows.size
        if entry >= 0:
            reference = float(segment.reference[entry])
            least = 0.5 / (self.detector.k + 1)  # as for shares of tuples: a detector of counts may tell of 0 or 1
            shares = (min(max(share, least), 1 - least) for share in (alarm.before, alarm.after))
            before, after = (reference * share / (1 - share) for share in shares)
            if max(before, after) < COST_RATIO * min(before, after):
                return None
            return Shift("cost", entry, (), self.seen - back, back, before, after, alarm.strength)
        row, column = int(segment.rows[alarm.series]), int(segment.columns[alarm.series])
        return Shift(
            "selectivity",
            self.order[column],
            self.order[:row],
            self.seen - back,
            back,
            alarm.before,
            alarm.after,
            alarm.strength,
        )
