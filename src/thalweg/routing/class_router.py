"""Class routing: a joint adaptive order for each class of tuples, where that pays, and one order where it does not.

`ClassRouter` decides; an executor, such as `thalweg.routing.pipeline.RoutedPipeline`, asks it and tells it:

- ``classifier``: None while one order is best. Otherwise ``classify(columns)`` gives the class of each row of a batch,
  from Arrow columns by name, and ``policies[class]`` is the policy whose order the class's rows follow; class 0 is
  everything else, in the overall order. ``version`` changes whenever the classes do.
- ``learn(masks, times, columns, stamps)``: profile tuples with the values of their attributes, in order of arrival. The
  router shows them to the overall policy and to those of their classes; nobody else does. While there are no classes,
  an executor may show them to the overall policy itself, and only let the router ``remember(masks, columns)``.
- ``look()``: choose classifiers anew. `learn` and `remember` do so when ``is_due``, unless told not to.
- ``observe(tuples, dropped, overhead)``: what a batch was, and what splitting it cost, in the unit of the costs.
- ``members(class)``: the values or ranges that make a class, for plans that branch by them.
- ``explain()`` says all that is known as plain values; ``to_bytes()`` and ``from_bytes()`` save and restore it.

A classifier is taken up when the saving that it would have brought on tuples not learnt from is surely worth it
(`thalweg.routing.classifier`). From then on each profile tuple says, before it is learnt from, what it costs in its
class's order and what in the overall one. A detector watches which is better: when the classifier stops separating, it
is dropped at once, along with the sample from before. It is also dropped when the saving no longer pays for splitting.
(beyond content-based-routing-2004: its sections 5 and 8 leave this to future work)

Policies must profile a tuple on all filters, as A-Greedy does: what a class order saves cannot be told otherwise.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from thalweg.drift import Detector, Watched
from thalweg.drift import detector as detector_by_name
from thalweg.ordering.policy import Policy
from thalweg.ordering.profile import Profile
from thalweg.ordering.sampling import FULL, HOLD, PROBABILITY
from thalweg.ordering.types import Floats, Integers
from thalweg.routing.benefit import CHECK_AFTER, Benefit, Verdict, surely
from thalweg.routing.choice import SURE, Choice, as_values, choice_of
from thalweg.routing.classifier import Cells, Classifier, Estimate
from thalweg.routing.partition import codes, codes_and_numbers, numbers, plain, refusal, width
from thalweg.routing.sample import Sample
from thalweg.routing.saved import RoutingError, Saved, pack, unpack
from thalweg.routing.values import Range, Values, label, members

WINDOW = 4000  # profile tuples of the sample
FIRST_LOOK = 400  # profile tuples before classifiers are looked for
FASTER = 4.0  # times as many profile tuples are made until then, and after a change
MOST_SAMPLED = 0.05  # of the dropped tuples, for that
WORTH = 0.02  # share of the cost that routing has to save
LONGEST_REST = 16  # windows between two looks, at most
OVERHEAD_OF = (
    100_000  # tuples over which the cost of splitting is measured, and after which it is asked whether it pays
)
SEED = 250  # profile tuples that a class's policy begins with
MOST_CLASSES = 16
MOST_ATTRIBUTES = 32
MOST_EVENTS = 20
MOST_EXAMPLES = 10  # of values, for each class that is explained

Columns = Mapping[str, pa.Array]


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
    >>> router.classifier.cells.attributes, router.explain()["classifier"]["attributes"]
    ((0,), ['key'])
    >>> classes = router.classify({"key": pa.array([0, 1, None])})
    >>> [router.order_of(one) for one in classes.tolist()[:2]]
    [(1, 0), (0, 1)]
    """

    def __init__(
        self,
        make: Callable[[Sequence[int] | None], Policy],
        attributes: Sequence[str],
        *,
        window: int = WINDOW,
        most_classes: int = MOST_CLASSES,
        pairs: bool = True,
        detector: Detector | str = "bcs",
    ) -> None:
        self.attributes = tuple(attributes)
        if len(set(self.attributes)) != len(self.attributes) or not 1 <= len(self.attributes) <= MOST_ATTRIBUTES:
            raise ValueError(f"attributes are 1 to {MOST_ATTRIBUTES} different column names, not {list(attributes)}")
        if window < 2 * FIRST_LOOK:
            raise ValueError(f"classifiers are chosen from a window of at least {2 * FIRST_LOOK}, not {window}")
        if most_classes < 2:  # noqa: PLR2004 - one class is one order
            raise ValueError(f"most_classes is at least 2, not {most_classes}")
        self.make = make
        self.most_classes = most_classes
        self.pairs = pairs
        self.measured = Benefit(detector_by_name(detector) if isinstance(detector, str) else detector)
        self.sample = Sample(len(self.attributes), window)
        self.policies: list[Policy] = [make(None)]
        self.classifier: Classifier | None = None
        self.version = 0
        self.seen = 0  # profile tuples
        self.estimates: list[Estimate] = []  # of the last look, the best first
        self.pruned: dict[str, str] = {}
        self.events: deque[dict[str, Any]] = deque(maxlen=MOST_EVENTS)
        self._refused: dict[str, str] = {}
        self._width = np.zeros(len(self.attributes))  # bytes of an average value
        self._due = FIRST_LOOK
        self._rest = window
        self._changed = 0  # profile tuples seen when something last changed
        self._tuples = self._dropped = 0
        self._overhead, self._split = 0.0, 0  # what splitting cost, and how many tuples were split
        self._price = 0.0  # what it cost a dropped tuple when it last did not pay
        self._known: defaultdict[int, Values] = defaultdict(Values)  # behind the codes of the classifier's attributes
        self._hurries = False  # whether more profile tuples are made until the next look
        self._hurry()

    @property
    def overall(self) -> Policy:
        """The policy of the one order, which class 0 follows."""
        return self.policies[0]

    @property
    def filters(self) -> int:
        """How many filters are ordered."""
        return self.overall.filters

    @property
    def classes(self) -> int:
        """How many classes there are, class 0 included."""
        return len(self.policies)

    @property
    def in_use(self) -> tuple[str, ...]:
        """The names of the classifier's attributes; none while one order is best."""
        return (
            () if self.classifier is None else tuple(self.attributes[one] for one in self.classifier.cells.attributes)
        )

    @property
    def nbytes(self) -> int:
        """The memory of samples, classes and profiles, in bytes."""
        profiles = sum(array.nbytes for one in self.policies for array in one.profile.arrays[:-1])
        return self.sample.nbytes + profiles + (self.classifier.keys.nbytes * 2 if self.classifier else 0)

    def order_of(self, number: int) -> tuple[int, ...]:
        """The order that rows of a class follow."""
        return self.policies[number].order

    def members(self, number: int) -> list[tuple[pa.Scalar | Range, ...]]:
        """What a class is: for each of its cells a value or range of each of the classifier's attributes, if known.

        All rows that are in no cell of any class are class 0.
        """
        if self.classifier is None or not number:
            return []
        known = [self._known.get(place) or Values() for place in self.classifier.cells.attributes]
        return members(self.classifier, known, number)

    def classify(self, columns: Columns) -> Integers:
        """The class of each row of a batch, for a router that has a classifier."""
        if self.classifier is None:
            raise ValueError("there are no classes now: ask for the classifier first, and run one order if it is None")
        cells = self.classifier.cells
        found = [self._column(columns, self.attributes[one]) for one in cells.attributes]
        by_value = [edges is None for edges in cells.edges]
        nothing = np.zeros(0)
        coded = [codes(one) if value else nothing.astype(np.int64) for one, value in zip(found, by_value, strict=True)]
        lines = [nothing if value else numbers(one) for one, value in zip(found, by_value, strict=True)]
        classes = self.classifier.classify(coded, lines)
        if not self._known:  # the first batch by this classifier
            rows = np.flatnonzero(classes)
            for place, column, code in zip(cells.attributes, found, coded, strict=True):
                if code.size:
                    self._known[place].note(plain(column).take(pa.array(rows)), code[rows])
        return classes

    @property
    def has_looked(self) -> bool:
        """Whether classifiers were looked for, in this process or before."""
        return self._due > FIRST_LOOK

    @property
    def is_due(self) -> bool:
        """Whether it is time to look for classifiers."""
        return self.seen >= self._due

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
        each = np.atleast_1d(np.asarray(masks, np.int64))
        if not each.size:
            return
        spent = None if times is None else np.asarray(times, np.float64).reshape(each.size, self.filters)
        when = None if stamps is None else np.broadcast_to(np.asarray(stamps, np.float64), (each.size,))
        found, line = self._values(columns, each.size)
        if self.classifier is not None:
            chosen = list(self.classifier.cells.attributes)
            classes = self.classifier.classify(list(found[:, chosen].T), list(line[:, chosen].T))
            self.measured.measure(each, classes, [one.order for one in self.policies], self._costs())
            for place in chosen:
                self._known[place].note(self._column(columns, self.attributes[place]), found[:, place])
            for number in np.unique(classes[classes > 0]).tolist():
                own = classes == number
                own_times, own_stamps = (None if of is None else of[own] for of in (spent, when))
                self.policies[number].update(each[own], own_times, own_stamps)
        self.overall.update(each, spent, when)
        self._insert(each, found, line)
        if self.classifier is not None:
            self._drop(self.measured.verdict(self._least(), self._overhead_of_one()))
        if look and self.is_due:
            self.look()

    def remember(self, masks: Integers, columns: Columns, *, look: bool = True) -> None:
        """Keep profile tuples to choose from, which the overall policy alone has seen."""
        self._insert(masks, *self._values(columns, masks.size))
        if look and self.is_due:
            self.look()

    def _insert(self, masks: Integers, found: Integers, line: Floats) -> None:
        self.sample.insert(masks, found, line)
        self.seen += masks.size

    def take_in(self, other: ClassRouter) -> None:
        """Learn what another process knows of the query: its classes if there are none here, its sample if larger."""
        if (other.attributes, other.filters) != (self.attributes, self.filters):
            raise ValueError("only a router of the same filters and attributes can be learnt from")
        if len(other.sample) > len(self.sample):  # instead of the own, as that may be in it already
            self.sample.keep(0)
            self.sample.insert(other.sample.masks, other.sample.codes, other.sample.numbers)
        if self.classifier is None and other.classifier is not None:
            for policy in other.policies[1:]:
                self._add_policy(policy.order, policy.profile)
            self._route_by(other.classifier, "another process does")

    def begin(self, order: Sequence[int]) -> None:
        """Begin with an order that is known from an earlier run."""
        if self.seen:
            raise ValueError("a router that has learnt something has its order; make a new one to begin with another")
        self.policies = [self.make(order)]
        self._hurry()

    def look_again(self) -> None:
        """Look for classifiers soon, also among what comes from now on alone: something has changed."""
        if self.seen - self._changed > 2 * FIRST_LOOK:  # else it is still the same change
            self._changed = self.seen
        self._due, self._rest = min(self._due, self._changed + FIRST_LOOK), self.sample.window

    def observe(self, tuples: int, dropped: int, overhead: float = 0.0) -> None:
        """Note what a batch was, and what classifying and splitting it cost if it was split, in the unit of costs."""
        self._tuples += tuples
        self._dropped += dropped
        if self.classifier is not None:
            self._overhead += overhead
            self._split += tuples
            if self._split > OVERHEAD_OF:
                self._overhead, self._split = self._overhead / 2, self._split // 2
                self._drop(self.measured.payment(self._least(), self._overhead_of_one()))

    def look(self) -> None:
        """Estimate what each candidate would save, and use the best if it is surely worth it."""
        if self._hurries:
            self._hurries = False
            probability = self.overall.sampler.arrays.probability
            probability[PROBABILITY] = probability[FULL]
        since, found = self.seen - self._changed, self._choice(self.sample)
        best = found.best(self._worth)
        if self.classifier is None and best is None and FIRST_LOOK <= since < len(self.sample):
            found = self._choice(self.sample.newest(since))
            best = found.best(self._worth)
            if best is not None:
                self.sample.keep(since)
        self._decide(found, best)

    def _choice(self, sample: Sample) -> Choice:
        """What a sample says of all attributes."""
        return choice_of(
            sample,
            self.attributes,
            self._costs(),
            self.overall.state.required,
            most_classes=self.most_classes,
            pairs=self.pairs and 2 * len(sample) >= self.sample.window,  # there are many, and they need many tuples
            refused=self._refused,
            widths=self._width,
        )

    def _decide(self, found: Choice, best: Estimate | None) -> None:
        """Use the best candidate, if there is one, and say when to look again."""
        estimates = found.estimates
        current = next((one for one in estimates if self._is_current(one)), None)
        if best is not None and (current is None or surely(best.savings - current.savings, SURE) > 0):
            self._adopt(found.chooser.fit(best.cells), best)
        elif current is not None and self._lags(current):
            self._adopt(found.chooser.fit(current.cells), current)
        promising = any(one.saving > self._least() + self._price for one in estimates)
        if len(self.sample) < self.sample.window:  # while it grows, each look sees half as much again, or twice
            self._due = self.seen + (len(self.sample) // 2 if promising else len(self.sample))
        else:
            self._due, self._rest = self.seen + self._rest, min(2 * self._rest, LONGEST_REST * self.sample.window)
        if self._changed < self.seen < self._changed + FIRST_LOOK:
            self._due = self._changed + FIRST_LOOK
        self.pruned = found.pruned
        self.estimates = [replace(one, savings=np.zeros(0)) for one in estimates]  # of many tuples, for each

    def explain(self) -> dict[str, Any]:
        """All that is known, as plain values."""
        names = self.attributes
        in_use = self.classifier
        benefit = self.benefit()
        return {
            "attributes": list(names),
            "classifier": None
            if in_use is None
            else {
                "attributes": [names[one] for one in in_use.cells.attributes],
                "by": ["value" if edges is None else "range" for edges in in_use.cells.edges],
                "cells": int(in_use.keys.size),
            },
            "classes": [
                {
                    "class": number,
                    "order": list(policy.order),
                    "profile_tuples": len(policy.profile),
                    "cells": None if in_use is None or not number else int((in_use.classes == number).sum()),
                    "values": [", ".join(map(label, each)) for each in self.members(number)[:MOST_EXAMPLES]],
                }
                for number, policy in enumerate(self.policies)
            ],
            "candidates": [
                as_values(one, names, self._whole_cost(one.cost)) | {"in_use": self._is_current(one)}
                for one in self.estimates
            ],
            "pruned": {**self.pruned, **self._refused},
            "benefit": benefit,
            "profile_tuples": self.seen,
            "most_classes": self.most_classes,
            "memory_bytes": self.nbytes,
            "events": list(self.events),
        }

    def benefit(self) -> dict[str, float] | None:
        """What class orders were measured to save lately, as shares of what one order costs; None if there are none.

        Each profile tuple is costed in its class's order and in the overall one before either learns from it; tuples
        that no filter drops cost the same in any order, and count.
        """
        if self.classifier is None or self.measured.one_order is None:
            return None
        cost = self._whole_cost(self.measured.one_order)
        return {
            "saving": self.measured.mean / cost,
            "error": self.measured.error / cost,
            "overhead": self._overhead_of_one() / cost,
            "profile_tuples": float(len(self.measured)),
        }

    def to_bytes(self) -> bytes:
        """The state as bytes (`thalweg.routing.saved`)."""
        in_use = self.classifier
        about = {
            "attributes": self.attributes,
            "filters": self.filters,
            "window": self.sample.window,
            "most_classes": self.most_classes,
            "pairs": self.pairs,
            "seen": self.seen,
            "due": self._due,
            "rest": self._rest,
            "counts": [self._tuples, self._dropped],
            "price": self._price,
            "width": self._width.tolist(),
            "orders": [one.order for one in self.policies],
            "cells": None if in_use is None else vars(in_use.cells),
            "keys": [] if in_use is None else in_use.keys.tolist(),
            "classes": [] if in_use is None else in_use.classes.tolist(),
            "estimates": [vars(one) | {"cells": vars(one.cells), "savings": None} for one in self.estimates],
            "pruned": self.pruned,
            "events": list(self.events),
        }
        return pack(about, self.sample, [one.profile for one in self.policies])

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        make: Callable[[Sequence[int] | None], Policy],
        attributes: Sequence[str],
        *,
        detector: Detector | str = "bcs",
    ) -> ClassRouter:
        """The router that `to_bytes` wrote, for the same filters and attributes; checked before anything is built."""
        saved = unpack(data)
        about, filters = saved.about, make(None).filters
        if tuple(about["attributes"]) != tuple(attributes) or about["filters"] != filters:
            raise RoutingError(
                f"the saved routing state is of {about['filters']} filters and the columns {about['attributes']}, not "
                f"of {filters} and {list(attributes)}; delete it to start afresh"
            )
        router = cls(
            make,
            attributes,
            window=about["window"],
            most_classes=about["most_classes"],
            pairs=about["pairs"],
            detector=detector,
        )
        router._restore(saved)
        return router

    def _restore(self, saved: Saved) -> None:
        about = saved.about
        self.seen, self._due, self._rest = about["seen"], about["due"], about["rest"]
        self._tuples, self._dropped = about["counts"]
        self._price = about["price"]
        self._width = np.array(about["width"])
        self.pruned = about["pruned"]
        self.estimates = [
            Estimate(**{**one, "cells": _cells(one["cells"]), "savings": np.zeros(0)}) for one in about["estimates"]
        ]
        self.events.extend(about["events"])
        if saved.masks.size:
            self.sample.insert(saved.masks, saved.codes, saved.numbers)
        self.policies = []
        for order, profile in zip(about["orders"], saved.profiles, strict=True):
            self._add_policy(order, profile)
        if about["cells"]:
            self.classifier = Classifier(
                _cells(about["cells"]),
                np.array(about["keys"], np.int64),
                np.array(about["classes"], np.int64),
                tuple(tuple(order) for order in about["orders"]),
            )
            self.version += 1

    def _hurry(self) -> None:
        """Make more profile tuples until the next look, if the probability adapts at all."""
        sampler = self.overall.sampler
        self._hurries = sampler.adaptive
        if self._hurries:
            full = float(sampler.arrays.probability[FULL])
            sampler.arrays.probability[PROBABILITY] = min(FASTER * full, max(full, MOST_SAMPLED))
            sampler.arrays.counters[HOLD] = self.overall.profile.seen + self.overall.profile.window

    def _add_policy(self, order: Sequence[int] | None, known: Profile) -> None:
        """A policy for one more class, which begins with an order and a profile; all policies sample as one."""
        policy = self.make(order)
        if self.policies:
            policy.sampler = self.overall.sampler
            if isinstance(policy, Watched):
                policy.policy.sampler = policy.sampler
        newest = slice(-SEED if self.policies else 0, None)
        policy.update(known.masks[newest], known.times[newest], known.stamps[newest])
        self.policies.append(policy)

    def _column(self, columns: Columns, name: str) -> Any:  # noqa: ANN401 - an Arrow array
        try:
            return columns[name]
        except KeyError:
            raise KeyError(f"the batch has no column {name!r}; it has {', '.join(columns)}") from None

    def _values(self, columns: Columns, size: int) -> tuple[Integers, Floats]:
        """Codes and numbers of every attribute that can be one."""
        found, line = np.zeros((size, len(self.attributes)), np.int64), np.full((size, len(self.attributes)), np.nan)
        for place, name in enumerate(self.attributes):
            column = self._column(columns, name)
            kind = getattr(column, "type", None)
            if kind is not None and (reason := refusal(kind)):
                self._refused[name] = reason
                continue
            found[:, place], line[:, place] = codes_and_numbers(column)
            self._width[place] += size / (self.seen + size) * (width(column) - self._width[place])
        return found, line

    def _lags(self, current: Estimate) -> bool:
        """Whether tuples cost more than with classes made now: values are new, or ranges have moved."""
        if len(self.measured) < CHECK_AFTER:
            return False
        costs = self.measured.costs
        error = float(np.hypot(current.error, costs.std() / np.sqrt(costs.size)))
        return float(costs.mean()) - (current.cost - current.saving) > 2.0 * error + self._least(current.cost)

    def _is_current(self, one: Estimate) -> bool:
        return self.classifier is not None and one.cells.attributes == self.classifier.cells.attributes

    def _adopt(self, classifier: Classifier, why: Estimate) -> None:
        """Route by a classifier from now on; the policies of its classes begin with the sample."""
        classes = classifier.classify(
            list(self.sample.codes[:, list(classifier.cells.attributes)].T),
            list(self.sample.numbers[:, list(classifier.cells.attributes)].T),
        )
        del self.policies[1:]
        costs = self.overall.profile.mean_times
        for number, order in enumerate(classifier.orders[1:], 1):
            masks = self.sample.masks[classes == number][-SEED:]
            known = Profile(self.filters, max(masks.size, 1), costs=costs)
            newest = self.overall.profile.stamps[-1:]  # its clock: the sample's tuples have no stamps of their own
            known.insert(masks, np.broadcast_to(costs, (masks.size, self.filters)), newest if newest.size else None)
            self._add_policy(order, known)
        saving = why.saving / self._whole_cost(why.cost)
        self._route_by(classifier, f"{len(classifier.orders) - 1} classes are expected to save {saving:.1%}")

    def _route_by(self, classifier: Classifier, why: str) -> None:
        self.classifier = classifier
        self.version += 1
        self.measured.restart()
        self._overhead, self._split = 0.0, 0
        self._known.clear()
        self._log("routes by", [self.attributes[one] for one in classifier.cells.attributes], why)

    def _drop(self, verdict: Verdict | None) -> None:
        """Follow one order again, if there is a reason to; the sample from before a change goes too."""
        if self.classifier is None or verdict is None:
            return
        reason, newest = verdict.reason, verdict.newest
        names = [self.attributes[one] for one in self.classifier.cells.attributes]
        del self.policies[1:]
        self.classifier = None
        self.version += 1
        if newest is None:
            self._price = self._overhead_of_one()
            self._due = self.seen + self._rest
            self._rest = min(2 * self._rest, LONGEST_REST * self.sample.window)
        else:
            self.sample.keep(newest)
            self._changed = self.seen - newest
            self._due, self._rest = self.seen + max(FIRST_LOOK - newest, 1), self.sample.window
            self._hurry()
            self.overall.sampler.look_closely()
        self._log("stops routing by", names, reason)

    def _log(self, what: str, names: list[str], why: str) -> None:
        self.events.append({"profile_tuples": self.seen, "what": what, "attributes": names, "why": why})

    def _costs(self) -> Floats:
        return self.overall.profile.mean_times

    def _least(self, cost: float | None = None) -> float:
        """The saving of a profile tuple that is worth routing for."""
        if cost is None:
            cost = self.measured.one_order or float(self._costs().sum()) / 2
        return WORTH * self._whole_cost(cost)

    def _worth(self, cost: float) -> float:
        """The saving of a profile tuple that is worth beginning to route for."""
        return self._least(cost) + self._price

    def _whole_cost(self, cost: float) -> float:
        """What tuples cost for each that is dropped: those that nothing drops cost as much in any order."""
        passed = (self._tuples - self._dropped) / self._dropped if self._dropped else 0.0
        return cost + passed * float(self._costs().sum())

    def _overhead_of_one(self) -> float:
        """What splitting costs for each tuple that is dropped."""
        dropped = self._split * (self._dropped / self._tuples if self._tuples else 1.0)
        return self._overhead / dropped if dropped else 0.0


def _cells(saved: Mapping[str, Any]) -> Cells:
    """Cells from plain values."""
    edges = tuple(None if each is None else tuple(each) for each in saved["edges"])
    return Cells(tuple(saved["attributes"]), edges)
