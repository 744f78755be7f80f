"""Which attribute, or pair of attributes, is worth a class order: the expected saving in cost against one order.

Gain ratio asks how well an attribute predicts one operator. But it matters how much cheaper tuples become when each
class has its own joint order, so that is estimated here, directly, from profile tuples that carry attribute values.

*Cells* are an attribute's frequent values, or ranges of equal frequency where it has too many values, or the pairs of
two attributes' cells. Each cell has its greedy order, drawn towards the overall order the more the fewer tuples it has.
A few orders are then chosen, each time the order that saves most besides the chosen orders, and cells of the same order
are a class. Rare and unseen values are class 0, in the overall order. Cells for which the overall order is best are a
class as well, because the overall order may turn to the needs of other cells.

A cell prefers another order only if that order is better by more than a standard error and a half on the cell's own
tuples: differences between orders of a few tuples are mostly chance. Where the overall order suits most tuples, and
values do not come in runs, those tuples are class 0, so that a class of few tuples costs the others nothing.

The saving is measured on tuples that were not learnt from: each of eight parts of the sample is tried with classes and
orders of the other seven. The parts are parts in time, not random: no value of a sequence number occurs in two. Values
that come in runs tell the time, and neighbours in time share its luck, so they are tried in halves.
(docs/decisions/0120)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from thalweg.ordering.types import Booleans, Floats, Integers
from thalweg.routing.classifier_sample import ClassifierSample
from thalweg.routing.gain import gain
from thalweg.routing.partition import paired, scattered
from thalweg.routing.prune import COVERED

SUPPORT = 10  # profile tuples of a cell that may have an order of its own
FEW = 5  # profile tuples of a cell that is compared with the others
LEAST = 1e-12  # instead of 0, to divide by
ERRORS = 1.5  # standard errors by which another order has to be better for a cell
MAIN = 0.75  # share of the tuples that need no class of their own if the overall order suits them
PARTS, PARTS_OF_RUNS = 8, 2  # of a sample, each of which is tried with classes of the others
LAGS, RUN_ERRORS = (1, 2, 3, 4), 2.0  # places from a tuple to its neighbours, and errors by which these are too alike
CELLS = 64  # most cells
PRIOR = 5.0  # overall profile tuples that each cell is thought to have besides its own
RANGES, RANGES_OF_PAIRS = 16, 4  # ranges of an attribute with many values
ONE_MORE = 0.005  # share of the cost that one more class has to save
PAIRED = 6  # attributes of which pairs are tried


@dataclass(frozen=True)
class Cells:
    """How one or two attributes become cells."""

    attributes: tuple[int, ...]
    edges: tuple[tuple[float, ...] | None, ...]  # of the ranges of each attribute; None: by value

    def of(self, codes: Sequence[Integers], numbers: Sequence[Floats]) -> Integers:
        """The cell of each tuple, a 64-bit number, from codes and numbers of each of the attributes."""
        found = [
            code if edge is None else _ranged(number, edge)
            for code, number, edge in zip(codes, numbers, self.edges, strict=True)
        ]
        return found[0] if len(found) == 1 else paired(found[0], found[1])

    def of_rows(self, codes: Integers, numbers: Floats) -> Integers:
        """The cell of each row, from codes and numbers of all attributes, a column each."""
        columns = list(self.attributes)
        return self.of(list(codes[:, columns].T), list(numbers[:, columns].T))

    @property
    def kinds(self) -> list[str]:
        """For each attribute whether its cells are values or ranges."""
        return ["value" if edges is None else "range" for edges in self.edges]

    def names(self, attributes: Sequence[str]) -> tuple[str, ...]:
        """The names of these attributes, among the names of all."""
        return tuple(attributes[place] for place in self.attributes)

    def are_of(self, classifier: Classifier | None) -> bool:
        """Whether a classifier has cells of the same attributes."""
        return classifier is not None and self.attributes == classifier.cells.attributes


def _ranged(numbers: Floats, edges: tuple[float, ...]) -> Integers:
    places = np.where(np.isnan(numbers), 0, 1 + np.searchsorted(edges, numbers, side="right"))
    return range_cells(len(edges))[places]


def range_cells(edges: int) -> Integers:
    """The cells of ranges with so many edges: first the cell of values other than numbers, then the ranges, upwards."""
    return scattered(np.arange(edges + 2))


@dataclass(frozen=True)
class Classifier:
    """Classes of tuples by their cells, and their orders. Class 0 is the rest, in the overall order."""

    cells: Cells
    keys: Integers  # the cells that have a class, sorted
    classes: Integers  # the class of each
    orders: tuple[tuple[int, ...], ...]  # to begin with, class 0 first

    def classify(self, codes: Sequence[Integers], numbers: Sequence[Floats]) -> Integers:
        """The class of each row, from codes and numbers of each of the classifier's attributes."""
        return looked_up(self.cells.of(codes, numbers), self.keys, self.classes)

    def classify_rows(self, codes: Integers, numbers: Floats) -> Integers:
        """The class of each row, from codes and numbers of all attributes, a column each."""
        return looked_up(self.cells.of_rows(codes, numbers), self.keys, self.classes)


def looked_up(cells: Integers, keys: Integers, classes: Integers) -> Integers:
    """The class of each cell; 0 for cells without a class.

    >>> looked_up(np.array([5, 9, 7]), np.array([5, 7]), np.array([2, 1])).tolist()
    [2, 0, 1]
    """
    if not keys.size:
        return np.zeros(cells.size, np.int64)
    places = np.minimum(np.searchsorted(keys, cells), keys.size - 1)
    return np.where(keys[places] == cells, classes[places], 0)


@dataclass(frozen=True)
class Estimate:
    """The expected saving of class orders."""

    cells: Cells
    saving: float  # of the cost of a profile tuple, on average
    error: float  # its standard error
    cost: float  # of a profile tuple with one order
    gain_ratio: float  # equation 5, of the operator for which it is greatest
    classes: int
    savings: Floats = field(repr=False, compare=False)  # tuple by tuple

    @property
    def is_single(self) -> bool:
        """Whether it is about one attribute, not a pair."""
        return len(self.cells.attributes) == 1


class Chooser:
    """Finds classifiers in a sample.

    Parameters
    ----------
    sample
        The profile tuples, of at least two.
    costs
        The cost of a tuple in each filter.
    required
        For each filter, the mask of filters that must run before it.
    most_classes
        How many classes there may be besides class 0, at least 2.

    Examples
    --------
    Two classes, each dropped by another filter; the second attribute is a random number.

    >>> random = np.random.default_rng(0)
    >>> values = random.integers(0, 2, (1000, 2))
    >>> sample = ClassifierSample(2, 1000)
    >>> sample.insert(1 << values[:, 0], values, values.astype(float))
    >>> chooser = Chooser(sample, np.ones(2), np.zeros(2, np.int64))
    >>> [(found.cells.attributes, found.saving > 0.4) for found in chooser.estimates([0, 1], pairs=False)]
    [((0,), True), ((1,), False)]
    >>> classifier = chooser.fit(chooser.cells_of(0))
    >>> classifier.orders, classifier.classify([np.array([0, 1, 7])], [np.zeros(3)]).tolist()
    (((1, 0), (1, 0), (0, 1)), [2, 1, 0])
    """

    def __init__(self, sample: ClassifierSample, costs: Floats, required: Integers, most_classes: int = 16) -> None:
        self.sample, self.costs, self.required, self.most_classes = sample, costs, required, most_classes
        known, self._which = np.unique(sample.masks, return_inverse=True)
        self._bits = (known[:, None] >> np.arange(costs.size)) & 1 == 1

    def estimates(self, attributes: Sequence[int], *, pairs: bool = True) -> list[Estimate]:
        """The saving of each attribute, and of each pair of the most promising attributes; the best first."""
        found = [self.estimate(self.cells_of(attribute)) for attribute in attributes]
        if pairs:
            promising = sorted(found, key=lambda estimate: -estimate.saving)[:PAIRED]
            several = sorted(estimate.cells.attributes[0] for estimate in promising)
            found += [self.estimate(cells) for cells in self._pairs(several)]
        return sorted(found, key=lambda estimate: -estimate.saving)

    def screen(self, attributes: Sequence[int], *, pairs: bool = True) -> float:
        """By how many standard errors the cells of some attribute, or pair, tell what a filter drops."""
        cells = [self.cells_of(attribute) for attribute in attributes]
        return max(map(self.tells, cells + (self._pairs(attributes[:PAIRED]) if pairs else [])), default=0.0)

    def cells_of(self, *attributes: int) -> Cells:
        """Cells by value if the frequent values cover enough tuples, by ranges otherwise."""
        return Cells(attributes, tuple(self._edges(attribute, len(attributes)) for attribute in attributes))

    def estimate(self, cells: Cells) -> Estimate:
        """Try each part of the sample with classes of the others."""
        of, size = cells.of_rows(self.sample.codes, self.sample.numbers), len(self.sample)
        savings, one_order, most = self._try_parts(cells, of, parts_of(of))
        return Estimate(
            cells=cells,
            saving=float(savings.mean()),
            error=float(savings.std() / np.sqrt(size)),
            cost=float(one_order.mean()),
            gain_ratio=self._gain_ratio(of),
            classes=most,
            savings=savings,
        )

    def saving(self, cells: Cells, places: Integers) -> float:
        """The saving, on average, if the attributes' values were those of the tuples at other places."""
        of = cells.of_rows(self.sample.codes, self.sample.numbers)
        return float(self._try_parts(cells, of[places], parts_of(of))[0].mean())

    def fit(self, cells: Cells) -> Classifier:
        """Classes and orders from the whole sample."""
        return self._fit(cells, cells.of_rows(self.sample.codes, self.sample.numbers), self._which)

    def tells(self, cells: Cells) -> float:
        """By how many standard errors cells tell what a filter drops, beyond chance; of the filter they tell most of.

        A filter's drops are compared between the cells (Pearson's test of homogeneity), and the sum of squares made a
        normal deviate (Wilson and Hilferty).
        """
        of = cells.of_rows(self.sample.codes, self.sample.numbers)
        _, place, counts = np.unique(of, return_inverse=True, return_counts=True)
        place = np.where(counts >= FEW, np.arange(counts.size), counts.size)[place]
        _, place, counts = np.unique(place, return_inverse=True, return_counts=True)
        freedom = counts.size - 1
        if not freedom:
            return 0.0
        drops = self._bits[self._which].astype(np.float64)
        rates = np.array([np.bincount(place, column) for column in drops.T]).T / counts[:, None]
        overall = drops.mean(axis=0)
        squares = (counts @ (rates - overall) ** 2) / np.maximum(overall * (1.0 - overall), LEAST)
        spread = 2.0 / (9.0 * freedom)
        return float((np.cbrt(squares.max() / freedom) - (1.0 - spread)) / np.sqrt(spread))

    def _try_parts(self, cells: Cells, of: Integers, parts: int) -> tuple[Floats, Floats, int]:
        """For each tuple, the saving by classes of other parts and the cost with one order; and the most classes."""
        size, most = of.size, 0
        savings, one_order, block = np.zeros(size), np.zeros(size), np.arange(size) * parts // size
        for test in (block == number for number in range(parts)):
            learnt = self._fit(cells, of[~test], self._which[~test])
            table = costs_until_dropped(np.array(learnt.orders), self._bits, self.costs)
            classes = looked_up(of[test], learnt.keys, learnt.classes)
            one_order[test] = table[0, self._which[test]]
            savings[test] = one_order[test] - table[classes, self._which[test]]
            most = max(most, len(learnt.orders) - 1)
        return savings, one_order, most

    def _fit(self, cells: Cells, of: Integers, which: Integers) -> Classifier:
        keys, counts = np.unique(of, return_counts=True)
        keys = np.sort(keys[np.argsort(-counts, kind="stable")][: min(CELLS, int((counts >= SUPPORT).sum()))])
        place = np.searchsorted(keys, of)
        place[keys[np.minimum(place, keys.size - 1)] != of if keys.size else slice(None)] = keys.size  # the rest
        masks = self._bits.shape[0]
        weights = np.bincount(place * masks + which, minlength=(keys.size + 1) * masks)
        weights = weights.reshape(keys.size + 1, masks).astype(np.float64)
        overall = weights.sum(axis=0)
        drawn = weights[:-1] + PRIOR * overall / max(overall.sum(), 1.0)
        orders = greedy_orders(np.vstack([overall, drawn]), self._bits, self.costs, self.required)
        table = costs_until_dropped(orders, self._bits, self.costs)
        # The cost of each cell in each order, and for orders other than the overall order the error of the difference.
        costs = drawn @ table.T + ERRORS * np.sqrt(weights[:-1] @ ((table - table[0]) ** 2).T)
        chosen = few_orders(costs, self.most_classes, ONE_MORE * float(costs[:, 0].sum()))
        classes = costs[:, chosen].argmin(axis=1) if keys.size else np.zeros(0, np.int64)
        used = np.unique(classes)
        if used.size <= 1:
            return Classifier(cells, keys[:0], classes[:0], (tuple(orders[0].tolist()),))
        if weights[:-1][classes == 0].sum() >= MAIN * overall.sum() and not come_in_runs(of):
            is_other = classes > 0
            keys, classes, drawn, used = keys[is_other], classes[is_other], drawn[is_other], used[used > 0]
        merged = np.vstack([overall, *(drawn[classes == number].sum(axis=0) for number in used)])
        joint = greedy_orders(merged, self._bits, self.costs, self.required)
        joint[1:][used == 0] = orders[0]  # another order of nearly the same tuples would differ by chance
        return Classifier(cells, keys, 1 + np.searchsorted(used, classes), tuple(map(tuple, joint.tolist())))

    def _pairs(self, attributes: Sequence[int]) -> list[Cells]:
        """The cells of pairs of attributes that have enough tuples each."""
        together = [self.cells_of(*pair) for pair in combinations(attributes, 2)]
        return [cells for cells in together if self._is_supported(cells)]

    def _edges(self, attribute: int, of: int) -> tuple[float, ...] | None:
        """The edges of ranges of equal frequency; None if the attribute's values are few, or have no order."""
        numbers = self.sample.numbers[:, attribute]
        numbers = numbers[np.isfinite(numbers)]
        _, counts = np.unique(self.sample.codes[:, attribute], return_counts=True)
        frequent = np.sort(counts[counts >= 2 * SUPPORT])[::-1][:CELLS]  # in either half often enough
        if frequent.sum() >= COVERED * len(self.sample) or not numbers.size:
            return None
        most = RANGES if of == 1 else RANGES_OF_PAIRS
        parts = min(most, max(len(self.sample) // (4 * SUPPORT), 2))
        return tuple(np.unique(np.quantile(numbers, np.arange(1, parts) / parts)).tolist())

    def _is_supported(self, cells: Cells) -> bool:
        """Whether most tuples are in cells that have enough tuples, in either half, for an order of their own."""
        _, counts = np.unique(cells.of_rows(self.sample.codes, self.sample.numbers), return_counts=True)
        return bool(counts[counts >= 2 * SUPPORT].sum() >= COVERED * len(self.sample))

    def _gain_ratio(self, of: Integers) -> float:
        """The gain ratio of cells, for the filter of which they tell most."""
        _, place, counts = np.unique(of, return_inverse=True, return_counts=True)
        bits = self._bits[self._which]
        passed = (np.bincount(place, ~bits[:, number]) / counts for number in range(self.costs.size))
        return max(gain(each, counts / of.size).ratio for each in passed)


def parts_of(cells: Integers) -> int:
    """Into how many parts a sample with these cells is cut to measure a saving.

    >>> parts_of(np.random.default_rng(0).integers(0, 4, 400)), parts_of(np.repeat([0, 1, 2, 3], 100))
    (8, 2)
    """
    return PARTS_OF_RUNS if come_in_runs(cells) else PARTS


def come_in_runs(cells: Integers) -> bool:
    """Whether equal cells follow each other more often than by chance."""
    _, counts = np.unique(cells, return_counts=True)
    by_chance = float(((counts / cells.size) ** 2).sum())
    pairs = sum(cells.size - lag for lag in LAGS)
    equal = sum(int((cells[lag:] == cells[:-lag]).sum()) for lag in LAGS)
    return bool(equal / pairs - by_chance > RUN_ERRORS * np.sqrt(by_chance * (1.0 - by_chance) / pairs))


def greedy_orders(weights: Floats, bits: Booleans, costs: Floats, required: Integers) -> Integers:
    """The greedy order of each row of weights, which say how often each drop mask (a row of bits) occurs.

    >>> bits = np.array([[True, False], [False, True]])
    >>> greedy_orders(np.array([[3.0, 1.0], [1.0, 3.0]]), bits, np.ones(2), np.zeros(2, np.int64)).tolist()
    [[0, 1], [1, 0]]
    """
    alive, drops, passes = weights.copy(), bits.astype(np.float64), np.ascontiguousarray(~bits.T)
    rows, placed = np.arange(len(weights)), np.zeros(len(weights), np.int64)
    orders = np.zeros((len(weights), costs.size), np.int64)
    for position in range(costs.size):
        ranks = alive @ drops / costs
        ranks[(placed[:, None] >> np.arange(costs.size)) & 1 == 1] = -2.0
        ranks[(required & ~placed[:, None] != 0) & (ranks > -2.0)] = -1.0  # noqa: PLR2004 - worse than waiting
        best = ranks.argmax(axis=1)
        orders[rows, position] = best
        placed |= np.int64(1) << best
        alive *= passes[best]
    return orders


def costs_until_dropped(orders: Integers, bits: Booleans, costs: Floats) -> Floats:
    """The cost of each drop mask (a row of bits) in each order, a row for each order.

    >>> costs_until_dropped(np.array([[0, 1], [1, 0]]), np.array([[True, False]]), np.array([1.0, 5.0])).tolist()
    [[1.0], [6.0]]
    """
    passes = np.ascontiguousarray(~bits.T)
    alive, spent = np.ones((len(orders), len(bits)), np.bool_), np.zeros((len(orders), len(bits)))
    for position in range(costs.size):
        chosen = orders[:, position]
        spent += alive * costs[chosen, None]
        alive &= passes[chosen]
    return spent


def few_orders(costs: Floats, most: int, worth: float) -> list[int]:
    """The orders worth having besides the first, given the cost of each cell (row) in each order (column).

    >>> few_orders(np.array([[9.0, 1.0, 2.0], [9.0, 4.0, 2.0], [1.0, 5.0, 5.0]]), most=3, worth=1.5)
    [0, 2]
    """
    chosen, best = [0], costs[:, 0]
    while len(chosen) < most and best.size:
        saved = np.maximum(best[:, None] - costs, 0.0).sum(axis=0)
        order = int(saved.argmax())
        if saved[order] <= worth:
            break
        chosen.append(order)
        best = np.minimum(best, costs[:, order])
    return chosen
