"""Class routing: a joint adaptive order for each class of tuples, where that pays, and one order where it does not.

`ClassRouter` decides; an executor, such as `thalweg.routing.pipeline.RoutedPipeline`, asks it and tells it:

- ``classifier``: None while one order is best. Otherwise ``classify(columns)`` gives the class of each row of a batch,
  from Arrow columns by name, and ``policies[class]`` is the policy whose order the class's rows follow; class 0 is
  everything else, in the overall order. ``version`` changes whenever the classes do.
- ``learn(masks, times, columns, stamps)``: profile tuples with the values of their attributes, in order of arrival. The
  router shows them to the overall policy and to the policies of their classes; the executor does not. Only while there
  are no classes, it may show them to the overall policy itself, and let the router ``remember(masks, columns)``.
- ``look()``: choose classifiers anew. `learn` and `remember` do so when ``search.schedule.is_due``, unless told not to.
- ``observe(tuples, dropped, overhead)``: how many tuples a batch had, how many were dropped, and the cost of splitting
  it, in the unit of the costs.
- ``members(class)``: the values or ranges that make a class, for plans that branch by them.
- ``explain()`` says all that is known as plain values; ``to_bytes()`` and ``from_bytes()`` save and restore it.

A classifier is used when the saving that it would have brought on tuples not learnt from is surely worth it
(`thalweg.routing.classifier`). From then on each profile tuple tells, before it is learnt from, its cost in its class's
order and in the overall order. A detector watches which is better: when the classifier stops separating, it is dropped
at once, along with the sample from before. It is also dropped when the saving no longer pays for splitting. (beyond
content-based-routing-2004: its sections 5 and 8 leave this to future work)

The parts have one subject each: `ClassPolicies` the orders, `ClassifierSearch` the choice of a classifier, `Payoff`
whether it pays, `ClassValues` the values behind its classes.

Policies must profile a tuple on all filters (`Policy.profiles_all_filters`): otherwise the saving of a class order
cannot be told.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from thalweg.drift import Detector
from thalweg.drift import detector as detector_by_name
from thalweg.ordering.checked import masks_of
from thalweg.ordering.policy import Policy
from thalweg.ordering.types import Integers
from thalweg.routing.attributes import AttributeReader, Columns, columns_among
from thalweg.routing.benefit import StopReason
from thalweg.routing.class_policies import ClassPolicies, MakePolicy
from thalweg.routing.classifier import Classifier
from thalweg.routing.explain import explain_router
from thalweg.routing.partition import codes, numbers
from thalweg.routing.payoff import Payoff
from thalweg.routing.saved import SavedRouter
from thalweg.routing.search import ClassifierSearch
from thalweg.routing.values import ClassValues, Range
from thalweg.sealed import SavedStateError

WINDOW = 4000  # profile tuples of the sample
MOST_CLASSES = 16
MOST_EVENTS = 20


class ClassRouter:
    """Chooses classes of tuples and keeps an order for each.

    Parameters
    ----------
    make
        Makes a policy, given the order to begin with (None: as written), for all tuples and for each class.
    attributes
        The names of the columns that may tell classes apart; at most 32.
    window
        How many profile tuples, with the values of the attributes, are kept to choose from.
    most_classes
        How many classes there may be at most, besides class 0.
    pairs
        Whether pairs of attributes may be classifiers too.
    detector
        The detector, or its name, that watches whether the classifier still separates; "none" for none.

    Examples
    --------
    Rows with an even key are dropped by the second filter, others by the first.

    >>> from thalweg.ordering import AGreedy
    >>> router = ClassRouter(lambda order: AGreedy(2, order=order), ["key", "noise"])
    >>> random = np.random.default_rng(0)
    >>> for _ in range(10):
    ...     key, noise = random.integers(0, 2, 100), random.random(100)
    ...     router.learn(2 - key, None, {"key": pa.array(key), "noise": pa.array(noise)})
    >>> router.in_use
    ('key',)
    >>> classes = router.classify({"key": pa.array([0, 1, None])})
    >>> [router.policies[number].order for number in classes.tolist()[:2]]
    [(1, 0), (0, 1)]
    """

    def __init__(
        self,
        make: MakePolicy,
        attributes: Sequence[str],
        *,
        window: int = WINDOW,
        most_classes: int = MOST_CLASSES,
        pairs: bool = True,
        detector: Detector | str = "bcs",
    ) -> None:
        self.search = ClassifierSearch(attributes, window=window, most_classes=most_classes, pairs=pairs)
        self.learners = ClassPolicies(make)
        self.payoff = Payoff(self.learners, detector_by_name(detector) if isinstance(detector, str) else detector)
        self.attributes = self.search.reader.columns
        self.policies = self.learners.policies  # by class, the overall policy first
        self.classifier: Classifier | None = None
        self.version = 0
        self.events: deque[dict[str, Any]] = deque(maxlen=MOST_EVENTS)
        self._values = ClassValues()

    @property
    def overall(self) -> Policy:
        """The policy of the overall order, which class 0 follows."""
        return self.learners.overall

    @property
    def seen(self) -> int:
        """Profile tuples seen so far."""
        return self.search.schedule.seen

    @property
    def in_use(self) -> tuple[str, ...]:
        """The names of the classifier's attributes; none while one order is best."""
        return () if self.classifier is None else self.classifier.cells.names(self.search.reader.names)

    @property
    def nbytes(self) -> int:
        """The memory of samples, classes and profiles, in bytes."""
        classes = 0 if self.classifier is None else 2 * self.classifier.keys.nbytes
        return self.search.sample.nbytes + self.learners.nbytes + classes

    def members(self, number: int) -> list[tuple[pa.Scalar | Range, ...]]:
        """For each cell of a class, a value or range of each of the classifier's attributes, as far as known.

        All rows that are in no cell of any class are class 0.
        """
        return self._values.members(self.classifier, number) if self.classifier is not None and number else []

    def classify(self, columns: Columns) -> Integers:
        """The class of each row of a batch, for a router that has a classifier."""
        if self.classifier is None:
            raise ValueError("there are no classes now: ask for the classifier first, and run one order if it is None")
        cells, reader = self.classifier.cells, self.search.reader
        found = [reader.column(columns, name) for name in self.in_use]
        coded = [
            codes(column) if edges is None else np.zeros(0, np.int64)
            for column, edges in zip(found, cells.edges, strict=True)
        ]
        lines = [
            np.zeros(0) if edges is None else numbers(column) for column, edges in zip(found, cells.edges, strict=True)
        ]
        classes = self.classifier.classify(coded, lines)
        if self._values.is_empty:  # the first batch by this classifier
            self._values.note_members(cells.attributes, found, coded, classes)
        return classes

    def learn(
        self,
        masks: ArrayLike,
        times: ArrayLike | None,
        columns: Columns,
        stamps: ArrayLike | None = None,
        *,
        look: bool = True,
    ) -> None:
        """Learn from profile tuples: drop masks, times, and the attributes' values of the same rows."""
        drops = masks_of(masks, self.overall.filters)
        if not drops.size:
            return
        spent = None if times is None else np.asarray(times, np.float64).reshape(drops.size, self.overall.filters)
        when = None if stamps is None else np.broadcast_to(np.asarray(stamps, np.float64), (drops.size,))
        values = self.search.reader.read(columns, drops.size)
        classes = None
        if self.classifier is not None:
            classes = self.classifier.classify_rows(*values)
            self.payoff.measure(drops, classes)
            for place, name in zip(self.classifier.cells.attributes, self.in_use, strict=True):
                self._values.note(place, self.search.reader.column(columns, name), values.codes[:, place])
        self.learners.learn(drops, spent, when, classes)
        self.search.add(drops, values)
        if classes is not None:
            self._stop(self.payoff.stop_reason())
        if look and self.search.schedule.is_due:
            self.look()

    def remember(self, masks: Integers, columns: Columns, *, look: bool = True) -> None:
        """Keep profile tuples to choose from, which the overall policy alone has seen."""
        drops = masks_of(masks, self.overall.filters)
        self.search.add(drops, self.search.reader.read(columns, drops.size))
        if look and self.search.schedule.is_due:
            self.look()

    def look(self) -> None:
        """Estimate the saving of each candidate, and use the best if it is surely worth it."""
        self.learners.stop_hurrying()
        required = self.overall.state.required
        found = self.search.look(self.learners.costs, required, self.payoff, self.classifier)
        if found is not None:
            classifier, estimate = found
            self.learners.add_classes(classifier, self.search.sample)
            saving = estimate.saving / self.payoff.whole_cost(estimate.cost)
            classes = len(classifier.orders) - 1
            expected = "1 class is" if classes == 1 else f"{classes} classes are"
            self._use(classifier, f"{expected} expected to save {saving:.1%}")
        self.search.plan_next_look(is_first=not self.version)
        if self.search.hurries:
            self.learners.hurry()

    def screen(self) -> None:
        """Make no more profile tuples than one order needs if values of the attributes tell nothing."""
        self.search.screen(self.learners.costs, self.overall.state.required)
        if not self.search.hurries:
            self.learners.stop_hurrying()

    def observe(self, tuples: int, dropped: int, overhead: float = 0.0) -> None:
        """Count a batch's tuples and drops, and the cost of splitting it if it was split, in the unit of costs."""
        self.payoff.observe(tuples, dropped)
        if self.classifier is not None:
            self._stop(self.payoff.observe_split(tuples, overhead))

    def start_over(self) -> None:
        """Learn the order of each class anew, and look for classifiers soon: the stream has changed.

        Whether classes still pay is measured by the profile tuples from now on.
        """
        has_classes = self.classifier is not None
        if has_classes:
            self.learners.start_over()
            self.payoff.benefit.restart()
            self.search.is_promising = True  # the same attribute may tell others apart now
        self.search.schedule.look_again(has_classes=has_classes)

    def begin(self, order: Sequence[int]) -> None:
        """Begin with an order that is known from an earlier run."""
        if self.seen:
            raise ValueError("a router that has learnt already has its order; make a new router to begin with another")
        self.learners.begin(order)

    def learn_from(self, other: ClassRouter) -> None:
        """Learn from another process's router: its classes if there are none here, its sample if it is larger."""
        if (other.attributes, other.overall.filters) != (self.attributes, self.overall.filters):
            raise ValueError("only a router of the same filters and attributes can be learnt from")
        self.search.take_sample(other.search.sample)
        if self.classifier is None and other.classifier is not None:
            for policy in other.policies[1:]:
                self.learners.add(policy.order, policy.profile)
            self._use(other.classifier, "another process does")

    def explain(self) -> dict[str, Any]:
        """All that is known, as plain values."""
        return explain_router(self)

    def to_bytes(self) -> bytes:
        """All that is known as bytes, for `from_bytes`."""
        search, schedule, payoff = self.search, self.search.schedule, self.payoff
        return SavedRouter(
            attributes=search.reader.names,
            filters=self.overall.filters,
            window=search.sample.window,
            most_classes=search.most_classes,
            pairs=search.pairs,
            seen=self.seen,
            due=schedule.due,
            rest=schedule.rest,
            tuples=payoff.tuples,
            dropped=payoff.dropped,
            price=payoff.price,
            widths=tuple(search.reader.widths.tolist()),
            orders=tuple(policy.order for policy in self.policies),
            classifier=self.classifier,
            estimates=tuple(search.estimates),
            pruned=search.pruned,
            events=tuple(self.events),
            sample=search.sample,
            profiles=tuple(policy.profile for policy in self.policies),
        ).to_bytes()

    @classmethod
    def from_bytes(
        cls, data: bytes, make: MakePolicy, attributes: Sequence[str], *, detector: Detector | str = "bcs"
    ) -> ClassRouter:
        """The router that `to_bytes` wrote, for the same filters and attributes, or a `SavedStateError`."""
        saved, filters = SavedRouter.from_bytes(data), make(None).filters
        if saved.attributes != AttributeReader(attributes).names or saved.filters != filters:
            raise SavedStateError(
                f"the saved routing state is of {saved.filters} filters and the columns "
                f"{list(columns_among(saved.attributes))}, not of {filters} and {list(attributes)}; delete it to "
                f"start afresh"
            )
        router = cls(
            make,
            attributes,
            window=saved.window,
            most_classes=saved.most_classes,
            pairs=saved.pairs,
            detector=detector,
        )
        search, schedule, payoff = router.search, router.search.schedule, router.payoff
        schedule.seen, schedule.due, schedule.rest = saved.seen, saved.due, saved.rest
        payoff.tuples, payoff.dropped, payoff.price = saved.tuples, saved.dropped, saved.price
        search.reader.rows, search.reader.widths = saved.seen, np.array(saved.widths)
        search.sample, search.pruned, search.estimates = saved.sample, saved.pruned, list(saved.estimates)
        router.events.extend(saved.events)
        router.learners.restore(saved.orders, saved.profiles)
        router.classifier = saved.classifier
        router.version += saved.classifier is not None
        return router

    def _use(self, classifier: Classifier, why: str) -> None:
        """Route by a classifier, for whose classes there are policies, from now on."""
        self.classifier = classifier
        self.version += 1
        self.overall.sampler.forget_rates()
        self.payoff.start_over()
        self._values.clear()
        self._log("routes by", why)

    def _stop(self, reason: StopReason | None) -> None:
        """Follow the overall order again, if there is a reason to; the sample from before a change goes too."""
        if self.classifier is None or reason is None:
            return
        self._log("stops routing by", reason.text)
        self.classifier = None
        self.version += 1
        self.overall.sampler.forget_rates()
        self.learners.drop_classes()
        newest = reason.newest or self.search.newest
        if newest is None:
            self.payoff.price = self.payoff.overhead_per_drop
            self.learners.stop_hurrying()
            self.search.schedule.wait()
        else:
            self.search.sample.keep(newest)
            self.search.schedule.start_over(newest)
            self.search.is_promising = True
            self.learners.hurry()
            self.overall.sampler.look_closely()

    def _log(self, action: str, why: str) -> None:
        event = {"profile_tuples": self.seen, "what": action, "attributes": list(self.in_use), "why": why}
        self.events.append(event)
