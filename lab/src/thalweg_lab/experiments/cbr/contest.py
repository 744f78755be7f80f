"""Shared by the experiments on routing calls: routers, and their calls for the same stream.

A routing call sends a tuple to an operator; routing is to save such calls. Content-Learns is as in the paper's
prototype, without trial and pruning, and so is Content-Learns with them, beside class orders (`thalweg.routing`'s own)
and A-Greedy with one order for all. (content-based-routing-2004, section 7)
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from thalweg_lab.experiments.experiment import Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

    from thalweg.ordering import Policy
    from thalweg.ordering.types import Booleans, Integers
    from thalweg.routing import Router
    from thalweg_lab.experiments.cbr.stream import Stream, Tuples

SELECTIVITY, KNOWS, LEARNS, TRIED = "selectivity", "content-knows", "content-learns", "content-learns, on trial"
ONE_ORDER, CLASSES = "a-greedy", "class orders"
ROUTERS = (SELECTIVITY, KNOWS, LEARNS, TRIED)
CONTESTANTS = (*ROUTERS, ONE_ORDER, CLASSES)
COLOURS = {
    SELECTIVITY: "#0072b2",
    KNOWS: "#009e73",
    LEARNS: "#d55e00",
    TRIED: "#e69f00",
    ONE_ORDER: "#56b4e9",
    CLASSES: "#cc79a7",
}
PARTS = 32  # buckets of each attribute
BATCH = 500  # tuples between two looks at the statistics
ROWS = 5000  # of an Arrow batch


@dataclass
class Counts:
    """The routing calls for a stream."""

    tuples: int = 0
    calls: int = 0  # profiling included
    late_tuples: int = 0  # in the second half of the stream, when all is learnt
    late_calls: int = 0
    right: int = 0  # calls of operators that use the right classifier
    wrong: int = 0  # calls of operators that use a wrong classifier
    seconds: float = 0.0  # of routing and of keeping statistics
    nbytes: int = 0

    def add(self, tuples: int, calls: int, *, late: bool) -> None:
        """Count calls."""
        self.tuples += tuples
        self.calls += calls
        self.late_tuples += tuples * late
        self.late_calls += calls * late


def router(name: str, operators: int, seed: int) -> Router:
    """A router of the paper, for the attributes of a `Stream`."""
    from thalweg.routing import ContentKnows, ContentLearns, Selectivity
    from thalweg_lab.experiments.cbr.stream import CLASSIFIER

    parts = [PARTS] * (operators + 3)
    if name == SELECTIVITY:
        return Selectivity(operators, parts, seed=seed)
    if name == KNOWS:
        known = dict.fromkeys(range(operators), CLASSIFIER)
        return ContentKnows(operators, parts, classifiers=known, seed=seed)
    return ContentLearns(operators, parts, seed=seed, trial=name == TRIED, prune=name == TRIED)


def contest(stream: Stream, tuples: int, names: Sequence[str], seed: int = 0) -> dict[str, Counts]:
    """Let contestants route the same tuples."""
    parts = [stream.next(min(ROWS, tuples - start)) for start in range(0, tuples, ROWS)]
    found = {}
    for name in names:
        if name in ROUTERS:
            found[name] = _route(router(name, stream.operators, seed), parts)
        else:
            found[name] = _order(stream, parts, routed=name == CLASSES, seed=seed)
    return found


def _route(router: Router, parts: Sequence[Tuples]) -> Counts:
    """Tuples through the operators, as the paper's Eddy sends them."""
    import numpy as np

    from thalweg.routing import HashPartition, calls_of

    counts, partition = Counts(), HashPartition(PARTS)
    for at, part in enumerate(parts):
        contents = np.column_stack([partition.of(column) for column in part.values.T])
        for start in range(0, part.masks.size, BATCH):
            masks, content = part.masks[start : start + BATCH], contents[start : start + BATCH]
            before = time.perf_counter()
            orders = router.orders(content)
            counts.seconds += time.perf_counter() - before
            calls, dropped = calls_of(orders, masks)
            _blame(counts, router, orders, calls)
            before = time.perf_counter()
            router.observe(orders, calls, dropped, content)
            counts.seconds += time.perf_counter() - before
            counts.add(masks.size, int(calls.sum()), late=2 * (at + 1) > len(parts))
    counts.nbytes = router.nbytes
    return counts


def _blame(counts: Counts, router: Router, orders: Integers, calls: Integers) -> None:
    """Count calls of operators with the right and with a wrong classifier."""
    import numpy as np

    from thalweg.routing import ContentKnows
    from thalweg_lab.experiments.cbr.stream import CLASSIFIER

    if isinstance(router, ContentKnows):
        visited = orders[np.arange(router.operators) < calls[:, None]]
        for operator, attribute in router.classifiers.items():
            number = int((visited == operator).sum())
            if attribute == CLASSIFIER:
                counts.right += number
            else:
                counts.wrong += number


def _order(stream: Stream, parts: Sequence[Tuples], *, routed: bool, seed: int) -> Counts:
    """Rows through filters in batches, in one adaptive order or in an order for each class."""
    import numpy as np
    import pyarrow as pa

    from thalweg.ordering import AGreedy
    from thalweg.ordering.pipeline import Pipeline
    from thalweg.routing import ClassRouter, RoutedPipeline

    operators = stream.operators

    def make(order: Sequence[int] | None) -> Policy:
        return AGreedy(operators, order=order, seed=seed)

    def no_clock() -> float:  # costs are equal: all depends on the seed
        return 0.0

    def bit(filter_index: int) -> Callable[[Integers], Booleans]:
        return lambda masks: masks >> filter_index & 1 == 0

    counts, filters, costs = Counts(), [bit(filter_index) for filter_index in range(operators)], np.ones(operators)
    classes = ClassRouter(make, stream.attributes)
    plain = Pipeline(make(None), filters, costs=costs, clock=no_clock)
    line = RoutedPipeline(classes, filters, costs=costs, clock=no_clock)
    for at, part in enumerate(parts):
        columns = dict(zip(stream.attributes, map(pa.array, part.values.T), strict=True))
        used = line if routed else plain
        before, start = used.evaluations + used.extra_evaluations, time.perf_counter()
        in_use = classes.classifier
        kept = line.keep(part.masks, columns) if routed else plain.keep(part.masks)
        counts.seconds += time.perf_counter() - start
        if not (kept == (part.masks == 0)).all():
            raise AssertionError("the kept rows depend on the order")
        calls = used.evaluations + used.extra_evaluations - before
        counts.add(part.masks.size, calls, late=2 * (at + 1) > len(parts))
        if in_use is not None:
            if [stream.attributes[attribute] for attribute in in_use.cells.attributes] == ["attrC"]:
                counts.right += calls
            else:
                counts.wrong += calls
    counts.nbytes = classes.nbytes if routed else 0
    return counts


def rows_of(counts: dict[str, Counts], **about: float) -> list[Row]:
    """A row for each contestant."""
    base, late = counts[SELECTIVITY].calls, counts[SELECTIVITY].late_calls
    return [
        {
            **about,
            "router": name,
            "calls": counted.calls / counted.tuples,
            "fewer": 100 * (1 - counted.calls / base),
            "late_calls": counted.late_calls / counted.late_tuples,
            "late_fewer": 100 * (1 - counted.late_calls / late),
            "right": 100 * counted.right / counted.calls,
            "wrong": 100 * counted.wrong / counted.calls,
            "microseconds": 1e6 * counted.seconds / counted.calls,
            "bytes": counted.nbytes,
        }
        for name, counted in counts.items()
    ]


def draw(axes: Axes, rows: list[Row], x: str, y: str) -> None:
    """A line for each contestant: means over the streams."""
    for name in CONTESTANTS:
        own = [row for row in rows if row["router"] == name]
        places = sorted({row[x] for row in own})
        means = [_mean([row[y] for row in own if row[x] == place]) for place in places]
        if places:
            axes.plot(places, means, marker="o", markersize=3, label=name, color=COLOURS[name])
    axes.set_xlabel(x)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(len(values), 1)
