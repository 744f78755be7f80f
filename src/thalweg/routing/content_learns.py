"""Content-Learns: finds out which attribute classifies for which operator, while it routes.

Operators are profiled in turn. A share of the tuples, chosen at random, visits the profiled operator first; when there
are enough of them, the attribute with the greatest gain ratio becomes the operator's classifier, on trial. It stays
unless tuples then cost more than before, by more than chance explains. (content-based-routing-2004, section 4)

The paper's prototype did without the trial and without pruning; here both can be switched off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from thalweg.ordering.types import Booleans, Floats, Integers
from thalweg.routing.content_knows import ContentKnows
from thalweg.routing.gain import Matrices
from thalweg.routing.prune import pruned_operators

SAMPLED = 1 / 8  # of the tuples go to the profiled operator first (section 7.4)
SAMPLES = 500  # of them make a profile
TRIAL = 2  # tuples of a trial for each of a profile's samples
# The least gain ratio of a classifier, which the paper leaves open: 500 samples of an attribute that tells nothing, in
# 32 partitions, show 0.009 by chance, and hardly ever 0.02.
THRESHOLD = 0.02


class ContentLearns(ContentKnows):
    """Routes by content, and learns by which.

    Parameters
    ----------
    operators, parts, costs, seed
        As for every router.
    sampled, samples, threshold
        The share of tuples that profile an operator, how many make a profile, and the least gain ratio.
    trial
        Whether a classifier has to prove itself.
    prune
        Whether operators that stay first or last for every class are passed over.
    filters
        Whether operators pass a tuple or not. Others are judged by the variance between partitions, as a share of the
        squared selectivity, instead of by the gain ratio (section 4.4).

    Examples
    --------
    >>> random, router = np.random.default_rng(0), ContentLearns(2, [2, 32], samples=100)
    >>> for _ in range(40):
    ...     contents = random.integers(0, [2, 32], (100, 2))
    ...     orders = router.orders(contents)
    ...     dropped = orders[:, 0] == contents[:, 0]  # each operator drops one class
    ...     router.observe(orders, np.where(dropped, 1, 2), np.ones(100, np.bool_), contents)
    >>> sorted(set(router.classifiers.values()))  # of all operators but the profiled operator
    [0]
    """

    name: ClassVar[str] = "content-learns"

    def __init__(
        self,
        operators: int,
        parts: Sequence[int] = (),
        *,
        costs: ArrayLike | None = None,
        seed: int = 0,
        sampled: float = SAMPLED,
        samples: int = SAMPLES,
        threshold: float = THRESHOLD,
        trial: bool = True,
        prune: bool = True,
        filters: bool = True,
    ) -> None:
        super().__init__(operators, parts, costs=costs, seed=seed)
        if not 0.0 < sampled < 1.0:
            raise ValueError(f"a share of tuples between 0 and 1 is sampled, not {sampled}")
        self.sampled, self.samples, self.threshold = sampled, samples, threshold
        self.trial, self.prune, self.filters = trial, prune, filters
        self.profiled = 0  # the operator whose turn it is
        self.rejected = 0  # classifiers that did not prove themselves
        self.pruned: dict[int, str] = {}
        self.matrices = Matrices(self.parts)
        self._on_trial: int | None = None
        self._before = Spent()  # the cost of tuples before the trial
        self._now = Spent()  # and in this period, sampled tuples left out
        self._chosen: Booleans = np.zeros(0, np.bool_)

    @property
    def nbytes(self) -> int:
        """The memory of selectivities and weights, of the operators and of the profile."""
        return super().nbytes + self.matrices.nbytes

    def orders(self, contents: ArrayLike) -> Integers:
        """Orders by merit; for the sampled tuples with the profiled operator first."""
        orders = super().orders(contents)
        share = self.sampled if self._on_trial is None else 0.0
        self._chosen = self.random.random(len(orders)) < share
        chosen = orders[self._chosen]
        others = chosen[chosen != self.profiled].reshape(len(chosen), self.operators - 1)
        orders[self._chosen] = np.insert(others, 0, self.profiled, axis=1)
        return orders

    def observe(self, orders: Integers, calls: Integers, dropped: Booleans, contents: ArrayLike) -> None:
        """Learn from the batch that `orders` was asked for; only sampled tuples count, as they are not biased."""
        self.check_outcome(orders, calls, dropped, contents)
        chosen = self._chosen
        places = self.partitions_of(contents) if self.parts else np.zeros((calls.size, 0), np.int64)
        if chosen.size != calls.size:
            raise ValueError(f"orders were asked for {chosen.size} tuples; {calls.size} cannot be observed")
        self.matrices.add(places[chosen], ~(dropped & (calls == 1))[chosen])
        spent = np.cumsum(self.costs[orders], axis=1)[np.arange(calls.size), np.maximum(calls - 1, 0)]
        self._now.add(spent[~chosen])
        if self._on_trial is not None:
            if self._now.tuples >= TRIAL * self.samples:
                self._end_trial(self._on_trial)
        elif self.matrices.tuples >= self.samples:
            self._end_profile(self.profiled, self.matrices)

    def _end_profile(self, operator: int, matrices: Matrices) -> None:
        """Tag the operator with its best classifier, if it has any."""
        self.seen[operator], self.passed[operator] = matrices.tuples, matrices.produced
        scores = [gain.ratio for gain in matrices.gains(look_up=True)]
        if not self.filters:
            scores = (matrices.variances() / max(matrices.selectivity, 1e-9) ** 2).tolist()
        if scores and max(scores) > self.threshold:
            best = int(np.argmax(scores))
            self.tag(operator, best)
            self.class_seen[operator] += matrices.counts[: self.parts[best], best]
            self.class_passed[operator] += matrices.outputs[: self.parts[best], best]
            if self.trial:
                self._on_trial, self._before, self._now = operator, self._now, Spent()
                return
        self._profile_next()

    def _end_trial(self, operator: int) -> None:
        """Let the classifier go if tuples cost more with it."""
        if self._now.mean > self._before.mean + np.hypot(self._now.error, self._before.error):
            self.untag(operator)
            self.rejected += 1
        self._on_trial = None
        self._profile_next()

    def _profile_next(self) -> None:
        """Profile the next operator, without its classifier meanwhile."""
        self._now, self.matrices = Spent(), Matrices(self.parts)
        if self.prune and self.seen.all():
            self.pruned = pruned_operators(self.selectivities, self.costs)
        turns = [(self.profiled + step) % self.operators for step in range(1, self.operators + 1)]
        self.profiled = next((operator for operator in turns if operator not in self.pruned), turns[0])
        self.untag(self.profiled)


class Spent:
    """The mean cost of tuples, and its standard error.

    >>> spent = Spent()
    >>> spent.add(np.array([1.0, 3.0]))
    >>> spent.mean, round(spent.error, 3)
    (2.0, 0.707)
    """

    def __init__(self) -> None:
        self.tuples, self._sum, self._squares = 0, 0.0, 0.0

    @property
    def mean(self) -> float:
        """The mean; 0 without tuples."""
        return self._sum / max(self.tuples, 1)

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        tuples = max(self.tuples, 1)
        return float(np.sqrt(max(self._squares / tuples - self.mean**2, 0.0) / tuples))

    def add(self, costs: Floats) -> None:
        """Take in the costs of tuples."""
        self.tuples += costs.size
        self._sum += float(costs.sum())
        self._squares += float(costs @ costs)
