"""The base class of all ordering policies: an order of filters that learns from profile tuples or ordinary processing.

A policy is shown two things. *Profile tuples* (`Policy.update`): for a sample of dropped tuples, which filters drop
them and how long each filter took. *Ordinary processing* (`Policy.observe`): how many tuples each filter evaluated and
dropped, and in what time. It says in return which order to run (`Policy.order`) and on which further filters a profiled
tuple must be evaluated (`Policy.needs`). Batches are the unit; a batch of k tuples is worth k batches of one tuple.

A policy is one class in one file, which needs nothing but this module and `thalweg.kernels`. Class attributes say
what the policy can do, so that no other file lists policies by name: whether it profiles all filters, for example,
decides how a detector watches it (`thalweg.drift.Watched`) and whether it can order classes of rows
(`thalweg.routing`). Its kernels share three named tuples: the profile window (`ProfileWindow`), the profile tuples on
their way in (`Batch`) and all else that the policy knows (`State`), where `State.memory` and `State.totals` are room of
the policy's own. `slide` puts a profile tuple into the window and keeps the matrix view in step; `insert` does so
without a view.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from thalweg.kernels import count_handled, inlined, kernel
from thalweg.ordering import sampling
from thalweg.ordering.matrix_view import COLUMN, DIAGONALS, FULL, ROW, recount, slide
from thalweg.ordering.precedence import legal_order, required_before
from thalweg.ordering.profile import COUNT, SEEN, Batch, Profile, ProfileWindow, insert, slot_at
from thalweg.ordering.sampling import ProcessingCounts, Sampler, counts_of
from thalweg.ordering.types import Floats, Integers

MOST_TUPLES = 1e15  # a prior beyond it would leave nothing of what is counted
CHANGES, AT, POSITION, MOVED, DISPLACED = range(5)  # of State.trace


class State(NamedTuple):
    """All that a policy knows besides its profile window, as kernels share it."""

    order: Integers
    required: Integers  # for each filter, the mask of filters that must run before it
    wanted: Integers  # for each position, the mask of further filters that a tuple dropped there is profiled on
    counts: Integers  # the matrix view
    memory: Integers  # whole numbers of the policy's own (`Policy.memory_size`)
    totals: Floats  # rows of the policy's own (`Policy.total_rows`), with a number for each filter
    trace: Integers  # how often the order changed; when, where and for which filter it last did
    alpha: float  # thrash avoidance
    prior: float  # tuples that each filter is thought to drop besides the tuples in the window


@dataclass(frozen=True)
class Change:
    """The last change of an order, and the filter that caused it."""

    count: int  # changes so far
    seen: int  # profile tuples seen when it happened
    position: int  # the first position that changed
    filter: int  # the filter that runs there now
    instead_of: int  # the filter that ran there before


@inlined
def rank(state: State, mean_time: Floats, row: int, position: int) -> float:
    """Drops per unit of time of the filter at a position, among tuples that the positions before `row` let pass."""
    return (state.counts[row, position] + state.prior) / mean_time[state.order[position]]  # type: ignore[no-any-return]


@inlined
def move(order: Integers, source: int, target: int) -> None:
    """Bring the filter at position `source` forward to `target`; the filters between shift back by one.

    The paper swaps the two. Moving keeps the others in their order, which leaves ties as they were (and gives
    the very order printed in its example 5, where a swap gives another).
    """
    moved = order[source]
    for position in range(source, target, -1):
        order[position] = order[position - 1]
    order[target] = moved


@inlined
def may_move(order: Integers, required: Integers, source: int, target: int) -> bool:
    """Whether the filter at `source` may run as early as `target`."""
    for position in range(target, source):
        if (required[order[source]] >> order[position]) & 1:
            return False
    return True


@kernel
def log_change(window: ProfileWindow, state: State, position: int, displaced: int) -> None:
    """Note that the order changed from a position on."""
    trace = state.trace
    trace[CHANGES] += 1
    trace[AT] = window.cursor[SEEN]
    trace[POSITION] = position
    trace[MOVED] = state.order[position]
    trace[DISPLACED] = displaced


@kernel
def want_rest(order: Integers, wanted: Integers) -> None:
    """Ask for profiled tuples to be evaluated on all filters after the filter that dropped them."""
    rest = 0
    for position in range(order.size - 1, -1, -1):
        wanted[position] = rest
        rest |= 1 << order[position]


class Policy:
    """An order of filters that learns. Concrete policies say how.

    Parameters
    ----------
    filters
        How many filters there are, 1 to 63, numbered as written from 0.
    order
        The order to begin with; as written by default.
    after
        Filters that must run after others: ``{2: [0]}`` keeps filter 2 behind filter 0.
    pinned
        Filters that hold their place, with the same filters before and after them as written.
    costs
        The cost that each filter is thought to have until times are measured, all in the same unit.
    window, max_age
        Bounds of the profile window: profile tuples, and span of stamps.
    p
        The drop-profiling probability.
    adaptive_p
        Whether p falls while nothing changes; each policy has its own default.
    alpha
        Thrash avoidance: an order changes only for a gain of more than 1/alpha.
    prior
        How many tuples each filter is thought to drop besides the tuples in the profile; 0 as in the paper. With more,
        cheap filters come first as long as few tuples were profiled. A-Greedy adds as many again as the share of all
        tuples that the filter drops.
    seed
        Seed of every random choice.
    """

    name: ClassVar[str]
    default_window: ClassVar[int] = 1000
    default_p: ClassVar[float] = 0.0  # policies that want no profile tuples
    default_adaptive_p: ClassVar[bool] = False
    memory_size: ClassVar[int] = 0  # numbers in State.memory
    total_rows: ClassVar[int] = 0  # rows of State.totals

    # Whether, as long as the policy runs, a profile tuple is evaluated on all filters after the filter that dropped it.
    # Then all conditional drop rates can be watched, classes of rows can have orders, and `recount_view` is there.
    profiles_all_filters: ClassVar[bool] = False
    # Whether the policy tends to the greedy order, which a sample that was evaluated on all filters gives at once.
    tends_to_greedy: ClassVar[bool] = False
    # Whether `settle` is there, which corrects the order by the window as it is, without another profile tuple.
    can_settle: ClassVar[bool] = False
    # Whether the policy chooses an order once, from a full window, and then keeps it until `start_over`.
    decides_once: ClassVar[bool] = False
    # Whether the policy learns from `observe` alone, and wants no profile tuples.
    learns_from_processing: ClassVar[bool] = False

    def __init__(
        self,
        filters: int,
        *,
        order: Iterable[int] | None = None,
        after: Mapping[int, Collection[int]] | None = None,
        pinned: Collection[int] = (),
        costs: ArrayLike | None = None,
        window: int | None = None,
        max_age: float = math.inf,
        p: float | None = None,
        adaptive_p: bool | None = None,
        alpha: float = 0.9,
        prior: float = 0.0,
        seed: int = 0,
    ) -> None:
        if not 0.0 < alpha <= 1.0:
            raise ValueError(f"alpha is above 0 and at most 1, not {alpha}")
        if not 0.0 <= prior <= MOST_TUPLES:
            raise ValueError(f"the prior is a number of tuples, 0 or more, not {prior!r:.80}")
        required = required_before(filters, after, pinned)
        self.profile = Profile(filters, self.default_window if window is None else window, max_age, costs)
        self.sampler = Sampler(
            filters,
            self.default_p if p is None else p,
            window=self.profile.window,
            adaptive=self.default_adaptive_p if adaptive_p is None else adaptive_p,
            seed=seed,
        )
        self.state = State(
            order=np.array(legal_order(required, order), np.int64),
            required=required,
            wanted=np.zeros(filters, np.int64),
            counts=np.zeros((filters, filters), np.int64),
            memory=np.zeros(self.memory_size, np.int64),
            totals=np.zeros((self.total_rows, filters)),
            trace=np.zeros(5, np.int64),
            alpha=alpha,
            prior=float(prior),
        )
        self.saw_change = False  # whether the last `observe` saw that drop rates or times have changed
        self.random = np.random.default_rng(seed)
        self._prepare()

    @property
    def filters(self) -> int:
        """How many filters are ordered."""
        return int(self.state.order.size)

    @property
    def order(self) -> tuple[int, ...]:
        """The filters in the order in which to run them."""
        return tuple(self.state.order.tolist())

    @property
    def last_change(self) -> Change | None:
        """When and why the order last changed; None if it never did."""
        return Change(*self.state.trace.tolist()) if self.state.trace[CHANGES] else None

    def needs(self, position: int) -> tuple[int, ...]:
        """The further filters that a profiled tuple, dropped at this position, must be evaluated on."""
        if not 0 <= position < self.filters:
            raise ValueError(
                f"an order of {self.filters} filters has the positions 0 to {self.filters - 1}, not {position}"
            )
        wanted = int(self.state.wanted[position])
        return tuple(later for later in self.order[position + 1 :] if wanted >> later & 1)

    def update(self, masks: ArrayLike, times: ArrayLike | None = None, stamps: ArrayLike | None = None) -> bool:
        """Learn from a batch of profile tuples; returns whether the order changed."""
        batch = self.profile.checked(masks, times, stamps)
        count_handled(batch.masks.size)
        before = self.state.order.copy()
        changed = self._adapt(batch)
        if (self.state.order != before).any():
            sampling.forget(self.sampler.arrays, before, self.state.order)
        return changed

    def observe(self, evaluated: ArrayLike, dropped: ArrayLike, seconds: ArrayLike) -> bool:
        """Learn from ordinary processing, numbers per filter; returns whether the order changed."""
        return self._observe(counts_of(self.filters, evaluated, dropped, seconds))

    def forget(self) -> None:
        """Throw the profile away, as it is out of date, and make a new profile quickly; the order stays until then."""
        self.profile.clear()
        self.state.counts[:] = 0
        self.sampler.look_closely()

    def share_sampler(self, sampler: Sampler) -> None:
        """Let a sampler that other policies use too choose which tuples to profile."""
        if sampler.filters != self.filters:
            raise ValueError(f"a sampler of {sampler.filters} filters cannot serve a policy of {self.filters}")
        self.sampler = sampler

    def recount_view(self) -> None:
        """Count the matrix view anew from the window, after profile tuples were put in without it."""

    def settle(self, weights: Floats | None = None) -> None:
        """Correct the order by the window as it is, also for smaller gains than one profile tuple may bring.

        With a weight for each profile tuple, the matrix view is left as it is, and out of date.
        """

    def conclude(self) -> None:
        """Decide now if the policy waits for more profile tuples: there will be none."""

    def start_over(self) -> None:
        """Decide once more, if the policy has decided already: the window was emptied because it was out of date."""

    def _prepare(self) -> None:
        """Set up the state that depends on the first order."""

    def _adapt(self, batch: Batch) -> bool:
        """Learn from profile tuples and correct the order; a policy without use for them keeps their times alone."""
        insert(self.profile.arrays, batch)
        return False

    def _observe(self, counts: ProcessingCounts) -> bool:
        """Learn from ordinary processing; by default only the drop-profiling probability does."""
        self.saw_change = self.sampler.watch_checked(counts, seen=self.profile.seen, window=self.profile.window)
        return False


class OneTimePolicy(Policy):
    """A policy that decides once, from the first full window of profile tuples, and then asks for no more."""

    default_p: ClassVar[float] = 0.01
    decides_once: ClassVar[bool] = True

    def conclude(self) -> None:
        """Choose the order from the profile tuples there are."""
        if self.profile.seen < self.profile.window:
            self._decide()

    def start_over(self) -> None:
        """Profile another full window, and choose the order again."""
        self.profile.arrays.cursor[SEEN] = 0
        want_rest(self.state.order, self.state.wanted)

    def _prepare(self) -> None:
        want_rest(self.state.order, self.state.wanted)

    def _adapt(self, batch: Batch) -> bool:
        room = self.profile.window - self.profile.seen
        if room <= 0:
            return False
        first = Batch(batch.masks[:room], batch.times[:room], batch.timed[:room], batch.stamps[:room])
        insert(self.profile.arrays, first)
        return self.profile.seen == self.profile.window and self._decide()

    def _decide(self) -> bool:
        """Choose the order from the window, and stop profiling; returns whether it changed."""
        before, state = self.order, self.state
        state.order[:] = self._choose(self.profile.masks, self.profile.mean_times)
        state.wanted[:] = 0
        changes = [position for position in range(self.filters) if before[position] != state.order[position]]
        if changes:
            log_change(self.profile.arrays, state, changes[0], before[changes[0]])
        return bool(changes)

    def _choose(self, masks: Integers, costs: Floats) -> tuple[int, ...]:
        """The order for these drop masks and costs."""
        raise NotImplementedError


__all__ = [
    "CHANGES",
    "COLUMN",
    "COUNT",
    "DIAGONALS",
    "FULL",
    "POSITION",
    "ROW",
    "SEEN",
    "Batch",
    "Change",
    "Floats",
    "Integers",
    "OneTimePolicy",
    "Policy",
    "ProcessingCounts",
    "ProfileWindow",
    "State",
    "insert",
    "log_change",
    "may_move",
    "move",
    "rank",
    "recount",
    "slide",
    "slot_at",
    "want_rest",
]
