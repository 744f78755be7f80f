"""A policy whose history is thrown away when it goes out of date: the adaptive loop of bcs-change-detection-2012.

*Measurement update:* profile tuples go into the policy's window and, by segments, to a detector that watches all
conditional drop probabilities of the policy's order, and the filters' costs. After a change, the profile tuples from
before it are dropped and everything is learnt anew from the tuples that are left. *Analysis and reoptimisation* are the
policy's own, and rest while nothing changes. (section IV)

Where the paper is silent or its answer is poor, this does more. The few tuples since a change would make a poor order:
analysis is repeated as they double until there are as many as the detector trains on, and then whenever half of the
window is newer than the last analysis. Where the policy never rests, its order is also made anew of the whole window
whenever a quarter of it is new: a policy that avoids thrashing keeps an order that costs 1% more than the window's best
(docs/decisions/0121). If an executor tells what ordinary processing counts, such a policy makes its order anew with all
profile tuples that come, from a window that is weighted by these counts (`thalweg.ordering.raking`). A regime that
returns is recognised, and its profile reused. Policies that profile only some filters at a time (Sweep, LocalSwaps) are
never done with their analysis, and of their orders only the diagonal is known: it is watched, and they never rest.
(docs/decisions/0012)
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from enum import Enum
from typing import ClassVar

import numpy as np

from thalweg.drift.detector import Detector
from thalweg.drift.monitor import Kind, Monitor, ProfileSegment, Shift, fill
from thalweg.drift.regimes import LONGEST, Regime, Regimes
from thalweg.kernels import kernel
from thalweg.ordering import sampling
from thalweg.ordering.policy import CHANGES, SEEN, Batch, Integers, Policy, ProcessingCounts, ProfileWindow, insert
from thalweg.ordering.profile import COUNT, START
from thalweg.ordering.raking import Raking
from thalweg.ordering.sampling import Sampler

ENOUGH = 50  # profile tuples by which a regime can be recognised
MOST_CHANGES = 1_000_000  # of a log
UNSETTLED = 0.25  # share of the window that is newer than the last analysis of all of it, from which on it is analysed


class Phase(Enum):
    """Where the adaptive loop is."""

    LEARNING = "learning"  # the policy analyses; there is too little history to detect anything
    RESTING = "resting"  # profile tuples are collected and watched, and the order holds
    ANALYSING = "analysing"  # the policy analyses while its probabilities are watched


@dataclass(frozen=True)
class Drift:
    """A change that was detected, and its consequences."""

    seen: int  # profile tuples so far, when it was detected
    at: int  # and when it is thought to have begun
    stamp: float  # of the first profile tuple after it
    kind: Kind
    filter: int  # the filter that changed most surely
    before: float  # share of the profile tuples that it dropped and none of `given` did; or its seconds
    after: float
    given: tuple[int, ...]
    dropped: int  # profile tuples that were out of date
    kept: int  # profile tuples that were not
    regime: int | None  # which earlier regime has returned, if any
    order_before: tuple[int, ...]
    order_after: tuple[int, ...]  # once the change was learnt; until then, the order so far


@kernel
def collect(window: ProfileWindow, segment: ProfileSegment, batch: Batch) -> bool:
    """Put profile tuples into a window and into a segment; returns whether the segment is full."""
    insert(window, batch)
    return fill(segment, batch.masks, batch.times, batch.timed)


class Watched(Policy):
    """A policy with a detector, to be used wherever a policy is. It shares the policy's window and order.

    Parameters
    ----------
    policy
        The policy that orders.
    detector
        The detector, which watches nothing else, or its name.
    remember
        How many earlier regimes may be recognised; 0 for none.
    log
        How many detected changes `changes` holds.

    Notes
    -----
    Nothing is detected while the first 20 segments, and the first 20 after a change, are learnt. A window that is
    shorter than that may never let the order settle, and then nothing is detected at all.

    Examples
    --------
    The paper's example 1. With a window that holds everything, A-Greedy alone would never see that the second filter
    has become the better filter.

    >>> from thalweg.ordering import AGreedy
    >>> random = np.random.default_rng(0)
    >>> bits = np.vstack([random.random((5000, 2)) < drops for drops in ([0.925, 0.05], [0.15, 0.6])])
    >>> alone, watched = AGreedy(2, window=10_000), Watched(AGreedy(2, window=10_000), "bcs")
    >>> for policy in (alone, watched):
    ...     _ = policy.update(bits @ [1, 2])
    >>> alone.order, watched.order
    ((0, 1), (1, 0))
    >>> [change] = watched.changes
    >>> change.kind, change.filter, change.at, change.order_before, change.order_after
    ('selectivity', 0, 5000, (0, 1), (1, 0))
    """

    name: ClassVar[str] = "watched"

    def __init__(self, policy: Policy, detector: Detector | str = "bcs", *, remember: int = 8, log: int = 100) -> None:
        if isinstance(detector, str):
            from thalweg.drift import detector as make

            detector = make(detector)
        if not 1 <= log <= MOST_CHANGES:
            raise ValueError(f"the log holds at least 1 change and at most {MOST_CHANGES:,}, not {log}")
        if isinstance(policy, Watched):
            raise TypeError("this policy is watched already; watch the policy in it, policy.policy, instead")
        # Profile, state, sampler and random numbers are the policy's: Policy's own constructor would make them anew.
        self.policy = policy
        self.profile, self.state = policy.profile, policy.state
        self.sampler, self.random = policy.sampler, policy.random
        self.detector = detector
        self.changes: deque[Drift] = deque(maxlen=log)
        self.detected = 0  # changes, also changes that `changes` no longer holds
        self.saw_change = False
        self.phase = Phase.LEARNING
        self.monitor = Monitor(self.order, detector, diagonal=not self.policy.profiles_all_filters)
        self._regimes = Regimes(self.filters, remember)
        self._regime: Regime | None = None  # the regime that has returned and lasts
        self._left: int | None = None  # the number of the regime that ended last
        self._is_logged = False  # whether the last of `changes` began the regime that is being learnt
        # The rates of orders that ran, for a policy that never rests and can take its order from a weighted window.
        self._raking = Raking()
        self._rakes = policy.can_settle and not detector.lets_rest
        self._seen = 0
        self._room = detector.k  # profile tuples to the end of the segment
        self._learnt = 0  # profile tuples since the last change
        self._fresh = 0  # and since the last analysis
        self._unsettled = 0  # and since the whole window was last analysed at once

    def _observe(self, counts: ProcessingCounts) -> bool:
        """Let the policy learn from ordinary processing, which sees abrupt changes before any detector does."""
        # A sampler that does not adapt serves classes of rows, whose counts say nothing of the whole window.
        if self._rakes and self.sampler.adaptive:
            self._raking.note(self.order, counts.evaluated, counts.dropped)
        changed = self.policy._observe(counts)  # noqa: SLF001 - as in `_let_learn`
        self.saw_change = self.policy.saw_change
        return changed

    def share_sampler(self, sampler: Sampler) -> None:
        """Let a sampler that other policies use too choose which tuples to profile."""
        self.policy.share_sampler(sampler)
        self.sampler = sampler

    def forget(self) -> None:
        """Throw the profile away, because the executor knows that it is out of date, and learn anew.

        If the regime that begins was there before, it is recognised by its first profile tuples.
        """
        self._remember(self._newest(min(self._learnt, len(self.profile), LONGEST)).masks)
        self.policy.forget()
        self._raking.forget()
        self.phase, self._room = Phase.LEARNING, self.detector.k
        self._learnt = self._fresh = self._unsettled = 0
        self._regime, self._is_logged = None, False

    @property
    def _training(self) -> int:
        """Profile tuples to learn from before anything can be detected."""
        return self.detector.training * self.detector.k

    def _adapt(self, batch: Batch) -> bool:
        if self.detector.is_blind:
            return self._let_learn(batch)
        changes, start = int(self.state.trace[CHANGES]), 0
        while start < batch.masks.size:  # nothing but ends of segments decides, so batches may be cut anywhere
            stop = min(start + self._room, batch.masks.size)
            self._take(_part(batch, start, stop))
            start = stop
        if self._raking:
            self._analyse()
        return bool(self.state.trace[CHANGES] != changes)

    def _let_learn(self, batch: Batch) -> bool:
        return self.policy._adapt(batch)  # noqa: SLF001 - a policy that wraps another policy

    def _take(self, piece: Batch) -> None:
        """Learn profile tuples of one segment: the measurement update."""
        size, shifts = piece.masks.size, tuple[Shift, ...]()
        if self.phase is Phase.RESTING:
            is_full = collect(self.profile.arrays, self.monitor.segment, piece)
            shifts = self.monitor.filled(size, is_full=is_full)
        else:
            if self._raking or (self.phase is Phase.LEARNING and self.policy.can_settle and self._is_logged):
                insert(self.profile.arrays, piece)  # all are analysed at once, later
            else:
                self._let_learn(piece)
            if self.phase is Phase.ANALYSING:
                shifts = self.monitor.update(piece.masks, piece.times, piece.timed)
        self._seen, self._learnt, self._fresh = self._seen + size, self._learnt + size, self._fresh + size
        self._unsettled += size
        self._room -= size
        if not self._room:
            self._room = self.detector.k
            if shifts:
                self._change(shifts)
            else:
                self._go_on()

    def _go_on(self) -> None:
        """Choose the phase of the next segment, after a segment in which nothing changed."""
        if self.phase is Phase.LEARNING:
            if 2 * self._fresh >= self._learnt:
                self._recognise()
                if self._is_logged and self.policy.can_settle:
                    self._settle()
            if self._learnt >= self._training:
                if self._is_logged:
                    self.changes[-1] = replace(self.changes[-1], order_after=self.order)
                self._follow()
        elif self.phase is Phase.ANALYSING:
            is_settled = self._unsettled < UNSETTLED * len(self.profile)
            if not is_settled and self.policy.can_settle and not self.detector.lets_rest:
                self._settle()
            if self.monitor.order == self.order:
                self._rest()
            else:
                self._follow()
        elif 2 * self._fresh >= max(len(self.profile), self._training):
            if self.policy.can_settle and len(self.profile) < self.profile.window:
                self._settle()
            else:
                self.policy.recount_view()
            self.phase = Phase.ANALYSING

    def _settle(self) -> None:
        """Analyse a window that has grown, all at once."""
        self._analyse()
        self._fresh = 0

    def _analyse(self) -> None:
        """Let the policy correct its order by the whole window, and by the drop rates that are known besides."""
        self.policy.settle(self._raking.weights(self.profile.masks) if self._raking else None)
        self._unsettled = 0

    def _rest(self) -> None:
        rests = self.policy.profiles_all_filters and self.detector.lets_rest
        self.phase = Phase.RESTING if rests else Phase.ANALYSING
        self._fresh = 0

    def _follow(self) -> None:
        """Watch the order as it is now, with the probabilities that the window tells."""
        self.monitor.follow(self.order, diagonal=not self.policy.profiles_all_filters)
        self._rest()
        if self.policy.profiles_all_filters:
            known = min(self._learnt, len(self.profile), self.detector.history * self.detector.k)
            segments = known // self.detector.k
            newest = self._newest(segments * self.detector.k)
            self.monitor.update(newest.masks, newest.times, newest.timed)

    def _change(self, shifts: tuple[Shift, ...]) -> None:
        """Drop the profile tuples that are out of date, and begin to learn anew."""
        surest = max(shifts, key=lambda shift: shift.strength)
        order, back, size = self.order, self.monitor.seen - surest.at, len(self.profile)
        kept = 0 if self.policy.decides_once else min(back, size)
        ended = self._newest(min(self._learnt, size, kept + LONGEST))
        self._remember(ended.masks[: ended.masks.size - kept])
        self._regime = None
        self._raking.forget()
        self._restart(kept)
        self.phase, self._learnt, self._fresh = Phase.LEARNING, kept, 0
        self._profile_fully()
        self.detected += 1
        self._is_logged = True
        self.changes.append(
            Drift(
                seen=self._seen,
                at=self._seen - back,
                stamp=float(ended.stamps[-max(kept, 1)]) if ended.stamps.size else float(self._seen - back),
                kind=surest.kind,
                filter=surest.filter,
                before=surest.before,
                after=surest.after,
                given=surest.given,
                dropped=size - kept,
                kept=kept,
                regime=None,
                order_before=order,
                order_after=self.order,
            )
        )
        self._go_on()

    def _remember(self, ended: Integers) -> None:
        """Keep the profile tuples of a regime that ended, if there are enough of them."""
        if self.policy.profiles_all_filters and ended.size >= self._training:
            self._left = self._regimes.remember(ended, self._regime)

    def _recognise(self) -> None:
        """Reuse the profile of an earlier regime if it has returned."""
        if self._regime or not self.policy.profiles_all_filters or not ENOUGH <= self._learnt <= len(self.profile):
            return
        self._regime = self._regimes.recognise(self._newest(self._learnt).masks, but=self._left)
        if self._regime:
            self._restart(self._learnt, self._regime.masks)
            self._learnt += self._regime.masks.size
            self.sampler.look_evenly()  # enough is known
            if self._is_logged:
                self.changes[-1] = replace(self.changes[-1], regime=self._regime.number, order_after=self.order)

    def _restart(self, size: int, earlier: Integers | None = None) -> None:
        """Let the policy begin anew with its newest profile tuples, after the tuples of an earlier regime."""
        window, kept = self.profile, self._newest(size)
        cursor = window.arrays.cursor
        window.clear()
        self.state.counts[:] = 0
        cursor[SEEN] -= size  # they are not new
        self.policy.start_over()
        if earlier is not None:
            untimed, seen = np.full((earlier.size, self.filters), np.nan), int(cursor[SEEN])
            stamps = np.full(earlier.size, kept.stamps[0])
            insert(window.arrays, Batch(earlier, untimed, np.zeros(earlier.size, np.bool_), stamps))
            cursor[SEEN] = seen
        if not self.policy.profiles_all_filters:
            self._let_learn(kept)
            return
        # An order made of the first few tuples would be of no use, so they are counted at once.
        analysed = 0 if self.policy.can_settle else min(size, self.detector.k)
        insert(window.arrays, _part(kept, 0, size - analysed))
        if self.policy.can_settle:
            self._settle()
        else:
            self.policy.recount_view()
            self._let_learn(_part(kept, size - analysed, size))

    def _newest(self, size: int) -> Batch:
        """So many of the newest profile tuples, oldest first."""
        window = self.profile.arrays
        slots = (window.cursor[START] + window.cursor[COUNT] - size + np.arange(size)) % window.masks.size
        return Batch(window.masks[slots], window.times[slots], window.timed[slots], window.stamps[slots])

    def _profile_fully(self) -> None:
        """Use the full drop-profiling probability, if it is adaptive, until the window is full."""
        sampler = self.sampler
        if sampler.adaptive and sampler.probability < sampler.full_probability:
            sampler.use(sampler.full_probability, until=self.profile.seen + self.profile.window)
            sampling.next_gap(sampler.arrays, self.random.random())


def _part(batch: Batch, start: int, stop: int) -> Batch:
    if stop - start == batch.masks.size:
        return batch
    return Batch(batch.masks[start:stop], batch.times[start:stop], batch.timed[start:stop], batch.stamps[start:stop])
