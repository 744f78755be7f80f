"""An index of a window's rows by key: a chained hash table over a ring of rows, to which rows are only ever appended.

Rows have running numbers. The entry of a row is at its number modulo the ring's capacity, and holds key, time, deadline
and the number of the next older row in its bucket. Chains run from new to old, so rows older than the window end
them: rows expire by raising the number where the window starts, and nothing is ever unlinked. A row of a window matches
if its key is equal and its window reaches the other rows of the result: with `latest` the greatest time among them
and `before` their earliest deadline, ``latest < deadline`` and ``time < before``. Only rows with a deadline beyond the
floor are in the window at all.

Compiled kernels walk chain after chain; the same in NumPy walks all chains at once, a row of each at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from thalweg.kernels import MJOIN, compiled, kernel
from thalweg.ordering.types import Booleans, Integers

KEY, TIME, DEADLINE, NEXT = range(4)
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: spreads keys over the high bits
BLOCK = 1 << 18  # matches that are found at once, which bounds the memory of a join that grows
FIRST_BLOCK = 1 << 13  # for few keys fewer: memory is cleared when it is made
NONE = -1
PLACE, AT, VISITED = range(3)


class ProbeKeys(NamedTuple):
    """The keys of some rows to look for, and the bounds of the deadlines and times of their matches."""

    keys: Integers
    latest: Integers
    before: Integers


class Matches(NamedTuple):
    """Rows that match: which key each belongs to, its number, and both sides' greatest time and earliest deadline."""

    origin: Integers
    rows: Integers
    latest: Integers
    before: Integers


class Index:
    """The rows of a ring by key."""

    def __init__(self, capacity: int) -> None:
        self.heads = np.full(2 * capacity, NONE, np.int64)
        self.entries = np.empty((capacity, 4), np.int64)
        self.visited = 0  # entries looked at so far
        self._shift = np.uint64(64 - capacity.bit_length())  # leaves the number of a bucket

    @property
    def bytes(self) -> int:
        """Memory that it takes."""
        return self.heads.nbytes + self.entries.nbytes

    def insert(self, first: int, keys: Integers, times: Integers, deadlines: Integers) -> None:
        """Add rows with running numbers from the first on."""
        buckets = self._buckets(keys)
        if compiled(MJOIN):
            _insert(self.heads, self.entries, first, buckets, keys, times, deadlines)
            return
        numbers = np.arange(first, first + keys.size)
        order = np.argsort(buckets, kind="stable")
        sorted_buckets, is_first = buckets[order], np.ones(keys.size, np.bool_)
        is_first[1:] = sorted_buckets[1:] != sorted_buckets[:-1]
        older = np.empty(keys.size, np.int64)
        older[order[1:]] = numbers[order[:-1]]
        older[order[is_first]] = self.heads[sorted_buckets[is_first]]
        self.heads[buckets] = numbers  # of several rows in a bucket the last stays: NumPy assigns in order
        self.entries[numbers & (self.entries.shape[0] - 1)] = np.stack([keys, times, deadlines, older], axis=1)

    def set_deadlines(self, places: Integers, deadlines: Integers) -> None:
        """Change when the rows at some places of the ring expire."""
        self.entries[places, DEADLINE] = deadlines

    def newest(self, keys: Integers) -> Integers:
        """For each key, where its chain begins."""
        return self.heads[self._buckets(keys)]

    def first(self, wanted: ProbeKeys, start: int, floor: int) -> Integers:
        """For each key the number of the newest row that matches, or a number before the start."""
        at = self.newest(wanted.keys)
        if compiled(MJOIN):
            self.visited += _first(self.entries, start, floor, *wanted, at)
            return at
        going = np.flatnonzero(at >= start)
        while going.size:
            matches, older = self._compare(wanted, floor, going, at[going])
            going = going[~matches]
            at[going] = older[~matches]
            going = going[at[going] >= start]
        return at

    def matches(self, wanted: ProbeKeys, at: Integers, start: int, floor: int) -> Iterator[Matches]:
        """All matches of each key from a row of its chain on, in blocks."""
        if not wanted.keys.size:
            return
        if not compiled(MJOIN):
            yield from self._matches(wanted, at, start, floor)
            return
        cursor, size = np.array([0, at[0], 0]), FIRST_BLOCK + 4 * at.size
        while cursor[PLACE] < at.size:
            block = np.empty((4, min(size, BLOCK)), np.int64)
            size *= 4
            found = _matches(self.entries, start, floor, *wanted, at, cursor, *block)
            if found:
                yield Matches(*block[:, :found])
        self.visited += int(cursor[VISITED])

    def _matches(self, wanted: ProbeKeys, at: Integers, start: int, floor: int) -> Iterator[Matches]:
        """The same as the kernel, in NumPy: a block for each step along the chains, joined while they are small."""
        waiting, size = list[Matches](), 0
        going = np.flatnonzero(at >= start)
        at = at[going]
        while going.size:
            matches, older = self._compare(wanted, floor, going, at)
            origin, rows = going[matches], at[matches]
            entries = self.entries[rows & (self.entries.shape[0] - 1)]
            latest = np.maximum(wanted.latest[origin], entries[:, TIME])
            before = np.minimum(wanted.before[origin], entries[:, DEADLINE])
            waiting.append(Matches(origin, rows, latest, before))
            size += rows.size
            if size > BLOCK:
                yield joined(waiting)
                waiting, size = [], 0
            ahead = older >= start
            going, at = going[ahead], older[ahead]
        if waiting:
            yield joined(waiting)

    def _compare(self, wanted: ProbeKeys, floor: int, places: Integers, rows: Integers) -> tuple[Booleans, Integers]:
        """Whether rows match the keys at some places, and which rows are next in their chains."""
        self.visited += rows.size
        entries = self.entries[rows & (self.entries.shape[0] - 1)]
        matches = entries[:, KEY] == wanted.keys[places]
        matches &= np.maximum(wanted.latest[places], floor) < entries[:, DEADLINE]
        matches &= entries[:, TIME] < wanted.before[places]
        return matches, entries[:, NEXT]

    def _buckets(self, keys: Integers) -> Integers:
        return ((keys.view(np.uint64) * GOLDEN) >> self._shift).view(np.int64)


def joined(blocks: Iterable[Matches]) -> Matches:
    """Blocks of matches as one block."""
    blocks = list(blocks)
    if len(blocks) == 1:
        return blocks[0]
    columns = zip(*blocks, strict=True) if blocks else [()] * len(Matches._fields)
    return Matches(*(np.concatenate([np.empty(0, np.int64), *column]) for column in columns))


@kernel
def _insert(
    heads: Integers,
    entries: Integers,
    first: int,
    buckets: Integers,
    keys: Integers,
    times: Integers,
    deadlines: Integers,
) -> None:
    mask = entries.shape[0] - 1
    for i in range(keys.size):
        place = (first + i) & mask
        entries[place, KEY] = keys[i]
        entries[place, TIME] = times[i]
        entries[place, DEADLINE] = deadlines[i]
        entries[place, NEXT] = heads[buckets[i]]
        heads[buckets[i]] = first + i


@kernel
def _first(
    entries: Integers, start: int, floor: int, keys: Integers, latest: Integers, before: Integers, at: Integers
) -> int:
    """Move each place to the first row of its chain that matches; returns how many rows were looked at."""
    mask, visited = entries.shape[0] - 1, 0
    for i in range(keys.size):
        row, key, reach, limit = at[i], keys[i], max(latest[i], floor), before[i]
        while row >= start:
            place = row & mask
            visited += 1
            if entries[place, KEY] == key and reach < entries[place, DEADLINE] and entries[place, TIME] < limit:
                break
            row = entries[place, NEXT]
        at[i] = row
    return visited


@kernel
def _matches(
    entries: Integers,
    start: int,
    floor: int,
    keys: Integers,
    latest: Integers,
    before: Integers,
    at: Integers,
    cursor: Integers,
    origin: Integers,
    rows: Integers,
    latest_out: Integers,
    before_out: Integers,
) -> int:
    """Write matches until there are no more or there is no more room; the cursor says where to go on."""
    mask, found, i, row, visited = entries.shape[0] - 1, 0, cursor[PLACE], cursor[AT], cursor[VISITED]
    while True:
        key, reach, limit = keys[i], latest[i], before[i]
        while row >= start and found < rows.size:
            place = row & mask
            time, deadline = entries[place, TIME], entries[place, DEADLINE]
            visited += 1
            if entries[place, KEY] == key and max(reach, floor) < deadline and time < limit:
                origin[found] = i
                rows[found] = row
                latest_out[found] = max(reach, time)
                before_out[found] = min(limit, deadline)
                found += 1
            row = entries[place, NEXT]
        if row < start:
            i += 1
            if i == keys.size:
                break
            row = at[i]
        if found == rows.size:
            break
    cursor[PLACE] = i
    cursor[AT] = row
    cursor[VISITED] = visited
    return found
