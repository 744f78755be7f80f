"""The search for a classifier: the sample it is chosen from, the saving of each candidate, and when to look again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from thalweg.ordering.types import Floats, Integers
from thalweg.routing.attributes import AttributeReader, AttributeValues
from thalweg.routing.benefit import surely
from thalweg.routing.candidates import SURE, TELLING, Candidates, find_candidates, pruned_attributes
from thalweg.routing.classifier import Chooser, Classifier, Estimate
from thalweg.routing.classifier_sample import ClassifierSample
from thalweg.routing.payoff import Payoff
from thalweg.routing.schedule import FIRST_LOOK, LookSchedule

SCREENED = FIRST_LOOK // 2  # profile tuples by which candidates are asked for the first time
NEW_VALUES = 0.1  # share of the tuples that have values of no class, from which on classes are made anew
MOST_HURRIED = 4 * FIRST_LOOK  # tuples of a sample, up to which they are made


class ClassifierSearch:
    """Looks for the attributes, one or two, whose values make classes that are worth an order each.

    Parameters
    ----------
    attributes
        The names of the columns that may tell classes apart.
    window
        How many profile tuples, with the values of the attributes, are kept to choose from.
    most_classes
        How many classes there may be at most, besides class 0.
    pairs
        Whether pairs of attributes may be classifiers too.
    """

    def __init__(self, attributes: Sequence[str], *, window: int, most_classes: int, pairs: bool) -> None:
        self.reader = AttributeReader(attributes)
        if window < 2 * FIRST_LOOK:
            raise ValueError(f"classifiers are chosen from a window of at least {2 * FIRST_LOOK}, not {window}")
        if most_classes < 2:  # noqa: PLR2004 - one class is one order
            raise ValueError(f"most_classes is at least 2, not {most_classes}")
        self.most_classes = most_classes
        self.pairs = pairs
        self.sample = ClassifierSample(len(self.reader.names), window)
        self.schedule = LookSchedule(window)
        self.is_screened = False  # whether candidates were asked if they tell anything
        self.is_promising = False  # whether the next look may well find classifiers, so that it should come soon
        self.estimates: list[Estimate] = []  # of the last look, the best first
        self.pruned: dict[str, str] = {}  # attributes that were no candidates then, with the reason
        self._is_telling = False  # whether the values of any of them told what a filter drops

    @property
    def screening_is_due(self) -> bool:
        """Whether there are enough profile tuples to ask if candidates tell anything."""
        return self.schedule.seen >= SCREENED and not (self.is_screened or self.schedule.has_looked)

    @property
    def hurries(self) -> bool:
        """Whether profile tuples are made for a look that may well find classifiers."""
        return self.is_promising or not (self.is_screened or self.schedule.has_looked)

    @property
    def newest(self) -> int | None:
        """Tuples of the sample that are from after the last change of the stream; None if all are, or none."""
        since_change = self.schedule.seen - self.schedule.changed
        return since_change if 0 < since_change < len(self.sample) else None

    def add(self, masks: Integers, values: AttributeValues) -> None:
        """Add profile tuples to the sample."""
        self.sample.insert(masks, values.codes, values.numbers)
        self.schedule.count(masks.size)

    def take_sample(self, other: ClassifierSample) -> None:
        """Choose from another process's sample if it is larger; it may hold the tuples of this sample already."""
        if len(other) > len(self.sample):
            self.sample.keep(0)
            self.sample.insert(other.masks, other.codes, other.numbers)

    def look(
        self, costs: Floats, required: Integers, payoff: Payoff, current: Classifier | None
    ) -> tuple[Classifier, Estimate] | None:
        """The classifier to use from now on, with its expected saving; None to go on as before."""
        since_change = self.schedule.seen - self.schedule.changed
        if current is not None and FIRST_LOOK <= since_change < len(self.sample):
            self.sample.keep(since_change)  # the classes of before may have no meaning any more
        candidates = self._candidates(self.sample, costs, required)
        best = candidates.best(payoff.worth)
        if current is None and best is None and FIRST_LOOK <= since_change < len(self.sample):
            candidates = self._candidates(self.sample.newest(since_change), costs, required)
            best = candidates.best(payoff.worth)
            if best is not None:
                self.sample.keep(since_change)
        chosen = _choose(candidates, best, payoff, current)
        self.pruned = {name: reason for name, reason in candidates.pruned.items() if name in self.reader.columns}
        self._is_telling = any(candidates.tells(estimate) for estimate in candidates.estimates)
        self.estimates = [replace(estimate, savings=np.zeros(0)) for estimate in candidates.estimates]
        if chosen is None:
            return None
        classifier = candidates.chooser.fit(chosen.cells)
        return (classifier, chosen) if len(classifier.orders) > 1 else None  # halves had classes, the whole has none

    def screen(self, costs: Floats, required: Integers) -> None:
        """Ask, before the first look, whether the values of any candidate tell what a filter drops."""
        reader = self.reader
        pruned = pruned_attributes(self.sample, reader.attributes, reader.refused, reader.widths)
        places = [place for place, attribute in enumerate(reader.attributes) if attribute.name not in pruned]
        chooser = Chooser(self.sample, costs, required, self.most_classes)
        self.is_screened = True
        self.is_promising = chooser.screen(places, pairs=self.pairs) > TELLING

    def plan_next_look(self, *, is_first: bool) -> None:
        """Decide when to look again, and whether soon: for the first classifier, and if the stream has not changed."""
        self.is_promising = (
            is_first and self._is_telling and not self.schedule.changed and len(self.sample) < MOST_HURRIED
        )
        self.schedule.looked(len(self.sample))

    def _candidates(self, sample: ClassifierSample, costs: Floats, required: Integers) -> Candidates:
        return find_candidates(
            sample,
            self.reader.attributes,
            costs,
            required,
            most_classes=self.most_classes,
            pairs=self.pairs,
            refused=self.reader.refused,
            widths=self.reader.widths,
        )


def _choose(
    candidates: Candidates, best: Estimate | None, payoff: Payoff, current: Classifier | None
) -> Estimate | None:
    """The best candidate if it surely saves more than the current classifier, or the latter if it is out of date."""
    in_use = next((estimate for estimate in candidates.estimates if estimate.cells.are_of(current)), None)
    if best is not None and (in_use is None or surely(best.savings - in_use.savings, SURE) > 0):
        return best
    if in_use is None or current is None:
        return None
    return in_use if payoff.lags(in_use) or _has_new_values(candidates.chooser, current, in_use) else None


def _has_new_values(chooser: Chooser, current: Classifier, in_use: Estimate) -> bool:
    """Whether many tuples have values that are in no class, and would be in a class now."""
    anew = chooser.fit(in_use.cells)
    rows = chooser.sample.codes, chooser.sample.numbers
    left_out, left_out_anew = ((each.classify_rows(*rows) == 0).mean() for each in (current, anew))
    return bool(left_out - left_out_anew > NEW_VALUES and len(anew.orders) > len(current.orders))
