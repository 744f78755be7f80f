"""The profile: a sliding window of profile tuples, from which every (conditional) drop rate can be estimated.

A profile tuple records, for one tuple of the stream, which filters drop it (a bit mask, bit ``i`` for filter ``i``)
and how long each filter took (NaN where it was not evaluated). The bit of a filter that was not evaluated is 0, as if
the filter had not dropped the tuple. The window is bounded by count and, if asked, by age. (a-greedy-2004, section 4.1)
"""

from __future__ import annotations

import json
import math
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from thalweg.kernels import inlined, kernel
from thalweg.ordering.checked import LARGEST, masks_of, numbers_of, times_of
from thalweg.ordering.precedence import MAX_FILTERS, check_filters
from thalweg.ordering.types import Booleans, Floats, Integers
from thalweg.sealed import dump_table, load_fields, load_table, odd, seal, unseal

KIND, VERSION = "profile", 2
FIELDS = {"filters": int, "window": int, "max_age": object, "seen": int, "mean_times": list}
MOST_TIMES = 1 << 22  # time samples of a saved profile, 32 megabytes: more is no profile that was ever saved
MOST_ENTRIES = 1 << 28  # time samples of a window, 2 gigabytes: a number of tuples beyond that is a mistake
LONGEST_AGE = 1e300  # in the unit of the stamps
NEVER = 1 << 62

# One time sample weighs at most this many running averages: a process that loses the processor for a millisecond
# must not make a filter look expensive. A filter that really becomes slower still shows, as its average follows.
TIME_CLIP = 10.0
# An average time is never zero, so that drops per time stay finite.
LEAST_TIME = 1e-12

START, COUNT, SEEN = 0, 1, 2


class ProfileWindow(NamedTuple):
    """The window's arrays, a ring of profile tuples, as kernels share them."""

    masks: Integers
    times: Floats
    timed: Booleans  # whether the slot has time samples at all
    stamps: Floats
    cursor: Integers  # where the oldest is, how many there are, how many were ever inserted
    time_sum: Floats
    time_count: Integers
    mean_time: Floats  # the running averages a_i
    max_age: float


class Batch(NamedTuple):
    """Profile tuples on their way into a window."""

    masks: Integers
    times: Floats  # a row each, NaN where there is no sample
    timed: Booleans  # whether the row has samples at all; it is not looked at otherwise
    stamps: Floats


def _schema(filters: int) -> pa.Schema:
    """The columns of a saved profile."""
    return pa.schema({"mask": pa.int64(), "times": pa.list_(pa.float64(), filters), "stamp": pa.float64()})


@inlined
def append(window: ProfileWindow, batch: Batch, k: int) -> None:
    """Put the k-th profile tuple of a batch in; there must be room."""
    cursor = window.cursor
    slot = int(slot_at(window, cursor[COUNT]))
    window.masks[slot] = batch.masks[k]
    window.stamps[slot] = batch.stamps[k]
    window.timed[slot] = batch.timed[k]
    cursor[COUNT] += 1
    cursor[SEEN] += 1
    if not batch.timed[k]:
        return
    samples, stored = batch.times[k], window.times[slot]
    for i in range(samples.size):
        sample = float(samples[i])
        if not math.isnan(sample):
            count = int(window.time_count[i]) + 1
            if count > 1:
                sample = min(sample, TIME_CLIP * float(window.mean_time[i]))
            total = float(window.time_sum[i]) + sample
            window.time_count[i] = count
            window.time_sum[i] = total
            window.mean_time[i] = max(total / count, LEAST_TIME)
        stored[i] = sample


@inlined
def remove_oldest(window: ProfileWindow) -> int:
    """Take the oldest profile tuple out and return its slot. An average without samples keeps its last value."""
    cursor = window.cursor
    slot = cursor[START]
    cursor[COUNT] -= 1
    cursor[START] += 1
    if cursor[START] == window.masks.size:
        cursor[START] = 0
    if window.timed[slot]:
        stored = window.times[slot]
        for i in range(stored.size):
            sample = float(stored[i])
            if not math.isnan(sample):
                count, total = int(window.time_count[i]) - 1, float(window.time_sum[i]) - sample
                window.time_count[i] = count
                window.time_sum[i] = total
                if count > 0:
                    window.mean_time[i] = max(total / count, LEAST_TIME)
    if cursor[START] == 0:
        _sum_again(window)
    return slot  # type: ignore[no-any-return]


@inlined
def is_due(window: ProfileWindow, stamp: float) -> bool:
    """Whether the oldest profile tuple has to leave before a tuple with this stamp enters."""
    cursor = window.cursor
    if cursor[COUNT] == 0:
        return False
    return bool(cursor[COUNT] == window.masks.size or window.stamps[cursor[START]] <= stamp - window.max_age)


@inlined
def slot_at(window: ProfileWindow, k: int) -> int:
    """Where the k-th oldest profile tuple is."""
    slot: int = window.cursor[START] + k
    return slot if slot < window.masks.size else slot - window.masks.size


@kernel
def _sum_again(window: ProfileWindow) -> None:
    """Once a turn of the ring, sum the times anew: adding and subtracting lets rounding errors grow."""
    window.time_sum[:] = 0.0
    for k in range(window.cursor[COUNT]):
        slot = slot_at(window, k)
        if window.timed[slot]:
            for i in range(window.times.shape[1]):
                if not math.isnan(window.times[slot, i]):
                    window.time_sum[i] += window.times[slot, i]


@inlined
def append_all(window: ProfileWindow, batch: Batch) -> bool:
    """Put all profile tuples in, if none may have to leave for them and the ring does not turn; returns whether it did.

    It goes filter by filter: a worker that does not compile kernels takes a third of the time for it.
    """
    cursor, size = window.cursor, batch.masks.size
    start = int(cursor[START] + cursor[COUNT])
    stop = start + size
    if stop > window.masks.size or window.max_age < math.inf:
        return False
    for k in range(size):
        window.masks[start + k] = batch.masks[k]
        window.stamps[start + k] = batch.stamps[k]
        window.timed[start + k] = batch.timed[k]
    cursor[COUNT] += size
    cursor[SEEN] += size
    for i in range(batch.times.shape[1]):
        samples, stored = batch.times[:, i], window.times[start:stop, i]
        count, total, mean = int(window.time_count[i]), float(window.time_sum[i]), float(window.mean_time[i])
        for k in range(size):
            if not batch.timed[k]:
                continue
            sample = float(samples[k])
            if not math.isnan(sample):
                if count > 0:
                    sample = min(sample, TIME_CLIP * mean)
                count += 1
                total += sample
                mean = max(total / count, LEAST_TIME)
            stored[k] = sample
        window.time_count[i], window.time_sum[i], window.mean_time[i] = count, total, mean
    return True


@kernel
def insert(window: ProfileWindow, batch: Batch) -> None:
    """Put a batch of profile tuples in; the oldest leave as they must."""
    if append_all(window, batch):
        return
    for k in range(batch.masks.size):
        while is_due(window, batch.stamps[k]):
            remove_oldest(window)
        append(window, batch, k)


class Profile:
    """A sliding window of the drop masks and times of sampled tuples.

    Parameters
    ----------
    filters
        How many filters there are, 1 to 63.
    window
        How many profile tuples the window holds at most.
    max_age
        Profile tuples this much older than the newest leave as well, in the unit of the stamps.
    costs
        The cost that each filter is thought to have before a time sample says better, in the unit of the times.

    Examples
    --------
    >>> profile = Profile(2, window=3)
    >>> profile.insert([0b01, 0b11, 0b10, 0b10], times=[[1, 5], [1, 5], [3, 5], [2, 5]])
    >>> profile.masks.tolist(), profile.mean_times.tolist()
    ([3, 2, 2], [2.0, 5.0])
    """

    def __init__(
        self, filters: int, window: int = 1000, max_age: float = math.inf, costs: ArrayLike | None = None
    ) -> None:
        check_filters(filters)
        if window < 1:
            raise ValueError(f"a profile window holds at least 1 profile tuple, not {window}")
        if not (0 < max_age <= LONGEST_AGE or max_age == math.inf):
            raise ValueError(f"max_age is a positive span of time, not {max_age!r:.80}")
        if filters * window > MOST_ENTRIES:
            raise ValueError(f"a profile window of {filters} filters holds at most {MOST_ENTRIES // filters:,} tuples")
        expected = f"costs are {filters} positive numbers, a number for each filter"
        means = np.ones(filters) if costs is None else numbers_of(costs, expected).copy()
        if means.shape != (filters,) or not ((means > 0) & (means <= LARGEST)).all():
            raise ValueError(f"{expected}, not {costs!r:.80}")
        self.arrays = ProfileWindow(
            masks=np.zeros(window, np.int64),
            times=np.full((window, filters), np.nan),
            timed=np.zeros(window, np.bool_),
            stamps=np.zeros(window),
            cursor=np.zeros(3, np.int64),
            time_sum=np.zeros(filters),
            time_count=np.zeros(filters, np.int64),
            mean_time=means,
            max_age=float(max_age),
        )

    @property
    def filters(self) -> int:
        """How many filters the profile tuples describe."""
        return int(self.arrays.times.shape[1])

    @property
    def window(self) -> int:
        """How many profile tuples the window holds at most."""
        return int(self.arrays.masks.size)

    @property
    def max_age(self) -> float:
        """The oldest age, counted from the newest profile tuple, that stays in the window."""
        return self.arrays.max_age

    @property
    def seen(self) -> int:
        """How many profile tuples were ever inserted."""
        return int(self.arrays.cursor[SEEN])

    def __len__(self) -> int:
        return int(self.arrays.cursor[COUNT])

    @property
    def masks(self) -> Integers:
        """The drop masks, oldest first."""
        return self.arrays.masks[self._slots()]

    @property
    def times(self) -> Floats:
        """The time samples, a row each profile tuple and a column each filter, NaN where there is none."""
        slots = self._slots()
        return np.where(self.arrays.timed[slots, None], self.arrays.times[slots], np.nan)

    @property
    def stamps(self) -> Floats:
        """When each profile tuple was made."""
        return self.arrays.stamps[self._slots()]

    @property
    def mean_times(self) -> Floats:
        """The running average time of each filter; its cost as given where there was no sample yet."""
        return self.arrays.mean_time.copy()

    def insert(self, masks: ArrayLike, times: ArrayLike | None = None, stamps: ArrayLike | None = None) -> None:
        """Put profile tuples in; the oldest leave as they must."""
        insert(self.arrays, self.checked(masks, times, stamps))

    def checked(self, masks: ArrayLike, times: ArrayLike | None, stamps: ArrayLike | None) -> Batch:
        """A batch of profile tuples as arrays of the right shape, or an error that names what is wrong."""
        checked_masks = masks_of(masks, self.filters)
        size = checked_masks.size
        checked_times = times_of(times, size, self.filters)
        if stamps is None:
            checked_stamps = np.arange(self.seen, self.seen + size, dtype=np.float64)
        else:
            expected = "stamps are finite numbers, a number for each profile tuple"
            given = numbers_of(stamps, expected)
            if given.shape not in ((), (1,), (size,)) or not np.isfinite(given).all():
                raise ValueError(expected)
            checked_stamps = np.ascontiguousarray(np.broadcast_to(given, (size,)))
        timed = np.full(size, times is not None)
        return Batch(checked_masks, checked_times, timed, checked_stamps)

    def clear(self) -> None:
        """Forget every profile tuple; the average times stay until new samples come."""
        window = self.arrays
        window.cursor[[START, COUNT]] = 0
        window.time_sum[:] = 0.0
        window.time_count[:] = 0

    def forget_times(self) -> None:
        """Forget the time samples, not the masks: the next samples alone tell the costs of filters."""
        window = self.arrays
        window.timed[:] = False
        window.time_sum[:] = 0.0
        window.time_count[:] = 0

    def merge(self, other: Profile) -> Profile:
        """A new profile with the newest profile tuples of both, as when many workers profile one query.

        >>> left, right = Profile(1, window=3), Profile(1, window=3)
        >>> left.insert([0, 1], stamps=[1, 4])
        >>> right.insert([1, 1], stamps=[2, 3])
        >>> left.merge(right).stamps.tolist()
        [2.0, 3.0, 4.0]
        """
        if other.filters != self.filters:
            raise ValueError(f"profiles of {self.filters} and {other.filters} filters cannot be merged")
        stamps = np.concatenate([self.stamps, other.stamps])
        newest = np.argsort(stamps, kind="stable")[-self.window :]
        newest = newest[stamps[newest] > stamps.max(initial=-math.inf) - self.max_age]
        merged = Profile(self.filters, self.window, self.max_age, self.mean_times)
        merged._fill(
            np.concatenate([self.masks, other.masks])[newest],
            np.concatenate([self.times, other.times])[newest],
            stamps[newest],
            seen=self.seen + other.seen,
        )
        return merged

    def to_bytes(self) -> bytes:
        """The profile as bytes, for `from_bytes`."""
        about = {
            "filters": self.filters,
            "window": self.window,
            "max_age": None if math.isinf(self.max_age) else self.max_age,
            "seen": self.seen,
            "mean_times": self.mean_times.tolist(),
        }
        times = pa.FixedSizeListArray.from_arrays(pa.array(self.times.ravel()), self.filters)
        table = pa.table([pa.array(self.masks), times, pa.array(self.stamps)], schema=_schema(self.filters))
        return seal(KIND, VERSION, json.dumps(about).encode(), dump_table(table))

    @classmethod
    def from_bytes(cls, data: bytes) -> Profile:
        """The profile that `to_bytes` wrote, or a `SavedStateError`."""
        parts = unseal(KIND, VERSION, data)
        if len(parts) != 2:  # noqa: PLR2004 - as `to_bytes` writes
            raise odd(KIND, f"{len(parts)} parts")
        about = load_fields(KIND, parts[0], FIELDS)
        filters, window, seen = about["filters"], about["window"], about["seen"]
        if not 1 <= filters <= MAX_FILTERS or not 1 <= window <= MOST_TIMES // filters or not 0 <= seen < NEVER:
            raise odd(KIND, f"{filters} filters, a window of {window}, {seen} seen")
        table = load_table(KIND, parts[1], _schema(filters))
        if table.num_rows > window:
            raise odd(KIND, f"{table.num_rows} profile tuples in a window of {window}")
        try:
            max_age = math.inf if about["max_age"] is None else about["max_age"]
            profile = cls(filters, window, max_age, about["mean_times"])
            times = table["times"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
            batch = profile.checked(table["mask"].to_numpy(), times, table["stamp"].to_numpy())
        except (TypeError, ValueError, OverflowError) as error:
            raise odd(KIND, str(error)) from None
        profile._fill(batch.masks, batch.times, batch.stamps, seen)
        return profile

    def _fill(self, masks: Integers, times: Floats, stamps: Floats, seen: int) -> None:
        """Take over another window's profile tuples as they are, times already clipped."""
        window, size = self.arrays, masks.size
        window.masks[:size], window.times[:size], window.stamps[:size] = masks, times, stamps
        window.timed[:size] = ~np.isnan(times).all(axis=1)
        window.cursor[:] = 0, size, seen
        window.time_count[:] = (~np.isnan(times)).sum(axis=0)
        _sum_again(window)
        sampled = window.time_count > 0
        means = window.time_sum[sampled] / window.time_count[sampled]
        window.mean_time[sampled] = np.maximum(means, LEAST_TIME)

    def _slots(self) -> Integers:
        start, count = self.arrays.cursor[START], self.arrays.cursor[COUNT]
        slots: Integers = (start + np.arange(count)) % self.window
        return slots
