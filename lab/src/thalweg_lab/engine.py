"""A tuple-at-a-time filter engine, compiled, in which the cost of filters and of adapting is real.

Each filter probes the hash index of a window of 10,000 rows, as often as its cost says, and drops the tuple if it
finds no match; the tuple's drop mask says which keys it brings. The policies of `thalweg.ordering` are called
through their kernels, so that processing rates and overheads are measured and not modelled.
(a-greedy-2004, section 9)
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg.kernels import clock, compile_kernels, inlined, kernel
from thalweg.ordering import (
    a_greedy,
    adjacent_swap,
    independent,
    local_swaps,
    marginal_rank,
    profile,
    sampling,
    sweep,
)
from thalweg.ordering.as_written import AsWritten
from thalweg.ordering.policy import CHANGES, POSITION, Policy, State
from thalweg.ordering.profile import SEEN, Batch, ProfileWindow
from thalweg.ordering.sampling import GAP, ProcessingCounts, Sampling
from thalweg.ordering.types import Integers

ROWS = 10_000  # in each window
BUCKETS = 1 << 11
END = -1  # of a bucket
SCATTER = 0x9E3779B97F4A7C1  # odd: multiplies tuple numbers apart

VECTOR = 2000  # tuples between two looks at ordinary processing
TIME_EVERY = 8  # profile tuples from a timed profile tuple to the next: a clock costs as much as a probe
BLOCK = 2000  # tuples for which filter evaluations are counted together, as in figures 16 to 18

OUTSIDE = -1  # a policy that learns outside of the kernel, between vectors: every policy that is not in CODES
# The last two learn from ordinary processing.
FIXED, A_GREEDY, SWEEP, INDEPENDENT, LOCAL_SWAPS, ADJACENT_SWAP, MARGINAL_RANK = range(7)
CODES = {
    AsWritten: FIXED,
    a_greedy.AGreedy: A_GREEDY,
    sweep.Sweep: SWEEP,
    independent.Independent: INDEPENDENT,
    local_swaps.LocalSwaps: LOCAL_SWAPS,
    adjacent_swap.AdjacentSwap: ADJACENT_SWAP,
    marginal_rank.MarginalRank: MARGINAL_RANK,
}

EVALUATIONS, EXTRA, PROFILED, CREATION, TUPLES, IN_BLOCK = range(6)


class Windows(NamedTuple):
    """Windows of 10,000 rows with chained hash indexes.

    Filter ``i`` probes window ``i``, which holds the even keys, so that a tuple with an odd key is dropped. The
    last window is the stream's own, into which each arriving tuple goes, for other streams to probe.
    """

    keys: NDArray[np.int32]
    nexts: NDArray[np.int16]  # the next row of the same bucket
    buckets: NDArray[np.int16]  # the first row of each


class Scratch(NamedTuple):
    """Room for the counts of a vector."""

    counts: Integers  # tuples dropped at each position, and passed
    of_filters: ProcessingCounts


@inlined
def bucket_of(key: int) -> int:
    """A key's bucket, by a hash that mixes all its bits (the finalizer of MurmurHash3)."""
    key = (key ^ (key >> 33)) * -49064778989728563
    key = (key ^ (key >> 33)) * -4265267296055464877
    return (key ^ (key >> 33)) & (BUCKETS - 1)


@inlined
def is_dropped(windows: Windows, window: int, tuple_key: int, drop: int, probes: int) -> bool:
    """Evaluate a filter: probe its window, as often as it costs, and drop the tuple if the last finds no match."""
    row = END
    for _ in range(probes):
        tuple_key = (tuple_key * 6364136223846793005 + 1442695040888963407) & 0x7FFFFFFFFFFFFFFF
        key = (tuple_key >> 33) % ROWS * 2 + drop
        row = windows.buckets[window, bucket_of(key)]
        while row != END and windows.keys[window, row] != key:
            row = windows.nexts[window, row]
    return bool(row == END)


@inlined
def link(windows: Windows, window: int, row: int, key: int) -> None:
    """Write a row of a window and put it into its bucket."""
    bucket = bucket_of(key)
    windows.keys[window, row] = key
    windows.nexts[window, row] = windows.buckets[window, bucket]
    windows.buckets[window, bucket] = row


@inlined
def unlink(windows: Windows, window: int, row: int) -> None:
    """Take a row of a window out of its bucket."""
    bucket = bucket_of(windows.keys[window, row])
    after = windows.nexts[window, row]
    before = windows.buckets[window, bucket]
    if before == row:
        windows.buckets[window, bucket] = after
        return
    while windows.nexts[window, before] != row:
        before = windows.nexts[window, before]
    windows.nexts[window, before] = after


@inlined
def _seconds(nanoseconds: int, probes: int, probe_seconds: float) -> float:
    """How long an evaluation took: by the clock, or by its probes where the time of a probe is given."""
    return probes * probe_seconds if probe_seconds > 0.0 else max(nanoseconds, 1) * 1e-9


@kernel
def _build(windows: Windows, keys: Integers) -> None:
    for window in range(windows.keys.shape[0]):
        for row in range(ROWS):
            link(windows, window, row, keys[window, row])


@inlined
def _learn(code: int, window: ProfileWindow, state: State, batch: Batch) -> bool:
    """Show one profile tuple to the policy."""
    if code == A_GREEDY:
        return a_greedy.adapt(window, state, batch)
    if code == SWEEP:
        return sweep.adapt(window, state, batch)
    if code == INDEPENDENT:
        return independent.adapt(window, state, batch)
    if code == LOCAL_SWAPS:
        return local_swaps.adapt(window, state, batch)
    if code != OUTSIDE:
        profile.insert(window, batch)
    return False


@kernel
def _look(
    code: int,
    adaptive: bool,
    window: ProfileWindow,
    state: State,
    sample: Sampling,
    scratch: Scratch,
    nanoseconds: int,  # that the vector took by the clock, 0 where the time of a probe is given
    uniform: float,
) -> None:
    """Show the policy the counts and times of a vector's ordinary processing."""
    filters = state.order.size
    counts = scratch.counts
    evaluated, dropped, seconds = scratch.of_filters.evaluated, scratch.of_filters.dropped, scratch.of_filters.seconds
    alive = 0
    for position in range(filters + 1):
        alive += counts[position]
    total = 0.0
    for position in range(filters):
        filter_index = state.order[position]
        evaluated[filter_index] = alive
        dropped[filter_index] = counts[position]
        seconds[filter_index] = alive * window.mean_time[filter_index]
        total += seconds[filter_index]
        alive -= counts[position]
    if total > 0.0 and nanoseconds > 0:  # the vector's time, shared out in proportion to timed single evaluations
        for filter_index in range(filters):
            seconds[filter_index] *= nanoseconds * 1e-9 / total
    if code == ADJACENT_SWAP:
        adjacent_swap.observe(window, state, scratch.of_filters, uniform)
    elif code == MARGINAL_RANK:
        marginal_rank.observe(window, state, scratch.of_filters, uniform)
    elif adaptive and sampling.watch(sample, scratch.of_filters, window.cursor[SEEN], window.masks.size):
        sampling.next_gap(sample, uniform)


@kernel
def process(  # noqa: C901, PLR0912, PLR0915 - one loop with its cases, and calls would cost what is measured
    code: int,
    adaptive: bool,
    window: ProfileWindow,
    state: State,
    sample: Sampling,
    windows: Windows,
    probes: Integers,
    masks: Integers,
    random: np.random.Generator,
    clock_cost: int,
    probe_seconds: float,
    batch: Batch,
    scratch: Scratch,
    tally: Integers,
    series: Integers,
) -> None:
    """Run tuples through the filters, one by one, in the policy's order."""
    order = state.order
    filters = order.size
    looks = adaptive or code >= ADJACENT_SWAP
    counts = scratch.counts
    counts[:] = 0  # the policy that ran before left its own
    for start in range(0, masks.size, VECTOR):
        began = clock() if looks else 0
        stop = min(start + VECTOR, masks.size)
        evaluations = 0
        for k in range(start, stop):
            number = tally[TUPLES] + k
            key = number * SCATTER & 0x7FFFFFFF
            unlink(windows, filters, number % ROWS)
            link(windows, filters, number % ROWS, key)
            mask = masks[k]
            position = 0
            filling = tally[PROFILED] % batch.masks.size  # the profile tuple that would be next
            timed = sample.counters[GAP] == 0 and tally[PROFILED] % TIME_EVERY == 0
            if timed:
                batch.times[filling] = np.nan
                before = clock()
                while position < filters:
                    filter_index = order[position]
                    is_out = is_dropped(windows, filter_index, key, (mask >> filter_index) & 1, probes[filter_index])
                    after = clock()
                    batch.times[filling, filter_index] = _seconds(
                        after - before - clock_cost, probes[filter_index], probe_seconds
                    )
                    before = after
                    if is_out:
                        break
                    position += 1
            else:
                while position < filters:
                    filter_index = order[position]
                    if is_dropped(windows, filter_index, key, (mask >> filter_index) & 1, probes[filter_index]):
                        break
                    position += 1
            counts[position] += 1
            if position == filters:
                evaluations += filters
                continue
            evaluations += position + 1
            if sample.counters[GAP] > 0:
                sample.counters[GAP] -= 1
                continue

            measured = timed or tally[PROFILED] % TIME_EVERY == 1  # one more tuple, for all untimed tuples
            began_profiling = before = clock() if measured else 0
            wanted = state.wanted[position]
            known = 1 << order[position]
            for later in range(position + 1, filters):
                filter_index = order[later]
                if (wanted >> filter_index) & 1:
                    known |= (
                        is_dropped(windows, filter_index, key, (mask >> filter_index) & 1, probes[filter_index])
                        << filter_index
                    )
                    if timed:
                        after = clock()
                        batch.times[filling, filter_index] = _seconds(
                            after - before - clock_cost, probes[filter_index], probe_seconds
                        )
                        before = after
                    tally[EXTRA] += 1
            if timed:
                tally[CREATION] += clock() - began_profiling + (position + 1) * clock_cost
            elif measured:
                tally[CREATION] += (TIME_EVERY - 1) * (clock() - began_profiling)
            tally[PROFILED] += 1
            batch.masks[filling] = known
            batch.timed[filling] = timed
            batch.stamps[filling] = number
            if filling + 1 == batch.masks.size and _learn(code, window, state, batch) and looks:
                counts[:] = 0  # these belong to the order before
                began = clock()
                for place in range(state.trace[POSITION], order.size):
                    sampling.forget_filter(sample, order[place])
            sampling.next_gap(sample, random.random())
        if looks:
            nanoseconds = 0 if probe_seconds > 0.0 else clock() - began
            _look(code, adaptive, window, state, sample, scratch, nanoseconds, random.random())
            counts[:] = 0
        tally[EVALUATIONS] += evaluations
        tally[IN_BLOCK] += evaluations
        done = tally[TUPLES] + stop
        if done % BLOCK == 0:  # chunks are whole blocks, but for the last
            series[done // BLOCK - 1] = tally[IN_BLOCK]
            tally[IN_BLOCK] = 0
    tally[TUPLES] += masks.size


@kernel
def _clock_cost() -> int:
    least = 1 << 30
    for _ in range(1000):
        before = clock()
        least = min(least, clock() - before)
    return least


@dataclass(frozen=True)
class EngineRun:
    """The measurements of a run."""

    tuples: int
    seconds: float
    evaluations: int  # filters evaluated because the query needed them
    extra_evaluations: int  # and for profiling alone
    profiled: int  # profile tuples made
    creation_seconds: float  # time spent on making them
    changes: int  # of the order
    order: tuple[int, ...]  # the last
    series: tuple[int, ...]  # evaluations for the query in each block of 2000 tuples

    @property
    def rate(self) -> float:
        """Tuples per second."""
        return self.tuples / self.seconds


class Engine:
    """Runs streams of drop masks through filters in a policy's order, and measures.

    Parameters
    ----------
    probes
        How many index probes each filter makes: its cost.
    batch
        How many profile tuples the policy is shown at a time; 1 is the paper's way.
    seed
        Seed of the windows' contents and of the choice of profiled tuples.
    probe_seconds
        The time of a probe, as policies are to see it; measured if not given. With it, a policy's orders depend on
        the seeds alone and not on the moment.

    Examples
    --------
    >>> from thalweg.ordering import AsWritten
    >>> engine = Engine(probes=[1, 1])
    >>> run = engine.run(AsWritten(2), [np.array([0b01, 0b10, 0b00, 0b11] * 1000)])
    >>> run.evaluations, run.series
    (6000, (3000, 3000))
    """

    def __init__(
        self, probes: Sequence[int], *, batch: int = 16, seed: int = 0, probe_seconds: float | None = None
    ) -> None:
        filters = len(probes)
        if not filters or min(probes) < 1:
            raise ValueError(f"probes are counts of at least 1, one for each filter, not {list(probes)}")
        compile_kernels()
        self._batch = batch
        self._probes = np.array(probes, np.int64)
        self._random = np.random.default_rng(seed)
        self._turns = np.random.default_rng(seed)
        self._windows = Windows(
            keys=np.zeros((filters + 1, ROWS), np.int32),
            nexts=np.full((filters + 1, ROWS), END, np.int16),
            buckets=np.full((filters + 1, BUCKETS), END, np.int16),
        )
        _build(self._windows, np.array([2 * self._random.permutation(ROWS) for _ in range(filters + 1)]))
        self._scratch = Scratch(
            counts=np.zeros(filters + 1, np.int64),
            of_filters=ProcessingCounts(*np.zeros((3, filters))),
        )
        self._clock_cost = _clock_cost()
        self._probe_seconds = probe_seconds or 0.0
        self.run(AsWritten(filters), [np.zeros(1, np.int64)])  # loads the compiled code

    def run(self, policy: Policy, chunks: Iterable[Integers]) -> EngineRun:
        """Process a stream given in chunks; only the processing is timed, not their generation."""
        return self.race({"": policy}, chunks)[""]

    def race(self, policies: Mapping[str, Policy], chunks: Iterable[Integers]) -> dict[str, EngineRun]:
        """Let several policies process the same stream, chunk by chunk in turn, so that their times compare.

        Policies go on learning from call to call. Policies that decide once run in the order they have.
        """
        for policy in policies.values():
            if policy.filters != self._probes.size:
                raise ValueError(f"this engine has {self._probes.size} filters, the policy {policy.filters}")
        meters = {name: _Meter(policy, self._batch) for name, policy in policies.items()}
        for masks in chunks:
            for name in self._turns.permutation(list(meters)):  # later policies find caches and branch predictors warm
                self._step(meters[name], masks)
        return {name: meter.run() for name, meter in meters.items()}

    def _step(self, meter: _Meter, masks: Integers) -> None:
        meter.make_room(masks.size)
        before = time.perf_counter()
        if meter.is_outside:
            for start in range(0, masks.size, VECTOR):
                profiled = int(meter.tally[PROFILED])
                self._process(OUTSIDE, meter, masks[start : start + VECTOR])
                meter.show(profiled)
                if meter.observes_outside:
                    meter.policy.observe(*self._scratch.of_filters)
        else:
            self._process(CODES.get(type(meter.policy), FIXED), meter, masks)
        meter.seconds += time.perf_counter() - before

    def _process(self, code: int, meter: _Meter, masks: Integers) -> None:
        policy = meter.policy
        process(
            code,
            policy.sampler.adaptive or meter.observes_outside,
            policy.profile.arrays,
            policy.state,
            policy.sampler.arrays,
            self._windows,
            self._probes,
            masks,
            self._random,
            self._clock_cost,
            self._probe_seconds,
            meter.batch,
            self._scratch,
            meter.tally,
            meter.series,
        )


class _Meter:
    """The counts of one policy's run while it goes on."""

    def __init__(self, policy: Policy, batch: int) -> None:
        filters = policy.filters
        self.policy = policy
        self.is_outside = type(policy) not in CODES and not policy.decides_once
        self.observes_outside = self.is_outside and policy.learns_from_processing
        if self.is_outside:
            batch = VECTOR  # any tuple of a vector may be profiled
        self.batch = Batch(
            np.zeros(batch, np.int64), np.zeros((batch, filters)), np.zeros(batch, np.bool_), np.zeros(batch)
        )
        self.tally = np.zeros(6, np.int64)
        self.series = np.zeros(0, np.int64)
        self.seconds = 0.0
        self._changes = int(policy.state.trace[CHANGES])

    def make_room(self, tuples: int) -> None:
        """Lengthen the series for this many more tuples."""
        blocks = (int(self.tally[TUPLES]) + tuples) // BLOCK
        self.series = np.concatenate([self.series, np.zeros(blocks - self.series.size, np.int64)])

    def show(self, profiled: int) -> None:
        """Show the policy the profile tuples that came after the first `profiled`."""
        places = np.arange(profiled, self.tally[PROFILED]) % self.batch.masks.size
        if places.size:
            times = np.where(self.batch.timed[places, None], self.batch.times[places], np.nan)
            self.policy.update(self.batch.masks[places], times, self.batch.stamps[places])

    def run(self) -> EngineRun:
        """The measurements of the whole run."""
        tally = self.tally.tolist()
        return EngineRun(
            tuples=tally[TUPLES],
            seconds=self.seconds,
            evaluations=tally[EVALUATIONS],
            extra_evaluations=tally[EXTRA],
            profiled=tally[PROFILED],
            creation_seconds=tally[CREATION] * 1e-9,
            changes=int(self.policy.state.trace[CHANGES]) - self._changes,
            order=self.policy.order,
            series=tuple(self.series.tolist()),
        )
