"""The policies of a class router: that of the overall order, which class 0 follows, and that of each class."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from thalweg.ordering.policy import Policy
from thalweg.ordering.profile import Profile
from thalweg.ordering.types import Floats, Integers
from thalweg.routing.classifier import Classifier
from thalweg.routing.classifier_sample import ClassifierSample

SEED = 250  # profile tuples that a class's policy begins with
FASTER = 4.0  # times as many profile tuples are made until classifiers are looked for, and after a change
MOST_SAMPLED = 0.05  # of the dropped tuples, for that

MakePolicy = Callable[[Sequence[int] | None], Policy]  # given the order to begin with; None: as written


class ClassPolicies:
    """The policies, which learn from the same profile tuples and sample together.

    >>> from thalweg.ordering import AGreedy
    >>> learners = ClassPolicies(lambda order: AGreedy(2, order=order))
    >>> learners.add((1, 0), Profile(2))
    >>> [policy.order for policy in learners.policies]
    [(0, 1), (1, 0)]
    """

    def __init__(self, make: MakePolicy) -> None:
        self.make = make
        self.policies = [make(None)]
        self.hurries = False  # whether more profile tuples are made until the next look for classifiers
        self.hurry()

    @property
    def overall(self) -> Policy:
        """The policy of the overall order."""
        return self.policies[0]

    @property
    def costs(self) -> Floats:
        """The cost of a tuple in each filter."""
        return self.overall.profile.mean_times

    @property
    def nbytes(self) -> int:
        """The memory of all profiles, in bytes."""
        return sum(array.nbytes for policy in self.policies for array in policy.profile.arrays[:-1])

    def begin(self, order: Sequence[int]) -> None:
        """Begin with an overall order that is known from an earlier run."""
        self.policies[:] = [self.make(order)]
        self.hurry()

    def restore(self, orders: Sequence[Sequence[int]], profiles: Sequence[Profile]) -> None:
        """Make the policies that were saved, the overall policy first."""
        self.policies.clear()
        for order, profile in zip(orders, profiles, strict=True):
            self.add(order, profile)

    def add(self, order: Sequence[int], known: Profile) -> None:
        """Add a policy that begins with an order and a profile's newest tuples; the overall policy with all tuples."""
        policy = self.make(order)
        if self.policies:
            policy.share_sampler(self.overall.sampler)
        newest = slice(-SEED if self.policies else 0, None)
        policy.update(known.masks[newest], known.times[newest], known.stamps[newest])
        self.policies.append(policy)

    def add_classes(self, classifier: Classifier, sample: ClassifierSample) -> None:
        """Have a policy for each class of a classifier, which begins with the class's tuples in a sample."""
        classes = classifier.classify_rows(sample.codes, sample.numbers)
        self.drop_classes()
        costs, filters = self.costs, self.overall.filters
        newest = self.overall.profile.stamps[-1:]  # its clock: the sample's tuples have no stamps of their own
        for number, order in enumerate(classifier.orders[1:], 1):
            masks = sample.masks[classes == number][-SEED:]
            known = Profile(filters, max(masks.size, 1), costs=costs)
            known.insert(masks, np.broadcast_to(costs, (masks.size, filters)), newest if newest.size else None)
            self.add(order, known)

    def drop_classes(self) -> None:
        """Have the overall order alone."""
        del self.policies[1:]

    def learn(self, masks: Integers, times: Floats | None, stamps: Floats | None, classes: Integers | None) -> None:
        """Show profile tuples to the policies of their classes, if there are any, and to the overall policy."""
        for number in () if classes is None else np.unique(classes[classes > 0]).tolist():
            own = classes == number
            own_times, own_stamps = (None if numbers is None else numbers[own] for numbers in (times, stamps))
            self.policies[number].update(masks[own], own_times, own_stamps)
        self.overall.update(masks, times, stamps)

    def start_over(self) -> None:
        """Learn the orders of all classes anew, from tuples of all classes: the next few are all of one class."""
        for policy in self.policies:
            policy.forget()
        self.overall.sampler.look_evenly()
        self.hurry()

    def hurry(self) -> None:
        """Make more profile tuples until the next look for classifiers, if the probability adapts at all."""
        sampler, profile = self.overall.sampler, self.overall.profile
        self.hurries = sampler.adaptive
        if self.hurries:
            full = sampler.full_probability
            sampler.use(min(FASTER * full, max(full, MOST_SAMPLED)), until=profile.seen + profile.window)

    def stop_hurrying(self) -> None:
        """Make as many profile tuples as usual."""
        if self.hurries:
            self.hurries = False
            sampler = self.overall.sampler
            sampler.use(sampler.full_probability)
