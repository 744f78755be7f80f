"""What a plan costs: output rate, memory, and the utility that weighs them (om-plan-charts-2005, sections 3.2 and 4.1).

All functions take plain numbers or arrays, so that one call costs a plan at every region of a chart. Knows no plans:
the nodes of a plan call the function of their operator.

Every operator follows one rule. It gets λ tuples a second, handles at most `tuple_rate` of them, and a window of W
seconds. It is busy for the share b = λ / tuple_rate of the time. Then

- its output rate is c_r = sel · min(λ, tuple_rate), that is, sel · λ divided by b where b exceeds 1;
- its input buffer holds λ · (λ · W / tuple_rate) = λ · W · b tuples, those that arrive while a window is processed;
- its intermediate queue holds c_r · W tuples, and its memory is the sum of buffer and queue.

Errata. The paper's output rates have no bound, but its example of Figure 2 needs the bound by `tuple_rate`: an operator
never emits faster than it can process. For a join the paper divides sel · λ_L · λ_R · W by the busy share even where
that is below 1, which would make an idle join emit more than there is; here it divides only where b exceeds 1. The same
holds for aggregates. With the bound, all operators follow the one rule above.

The memory of Figure 2's example, 775 and 575 tuples, does not follow from section 4.1 for any W. It comes out with
W = 5 s, λ = 100/s, a whole window λ · W as the only input buffer, and queues sel · λ · W without the bound:
500 + (50 + 5) · 5 = 775 and 500 + (10 + 5) · 5 = 575. Section 4.1 is implemented here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from thalweg.ordering.types import Floats

Amount: TypeAlias = float | Floats  # a number, or a number for each point at which a plan is costed


@dataclass(frozen=True)
class Weights:
    """How much output rate and memory count (section 5.1 has the defaults).

    >>> Weights(rate=-1)
    Traceback (most recent call last):
    ValueError: the rate weight is a number, 0 or more, not -1
    """

    rate: float = 0.4
    memory: float = 0.6

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not isinstance(value, int | float) or not 0.0 <= value < math.inf:
                raise ValueError(f"the {name} weight is a number, 0 or more, not {value}")
        if self.rate == self.memory == 0.0:
            raise ValueError("one of the weights must be above 0, or all plans cost the same")


@dataclass(frozen=True)
class TupleRates:
    """Tuples that each kind of operator can handle a second.

    The first four numbers are the paper's (section 5.1). The paper has none for the others: they are guesses that
    serve until they are measured. Measured numbers are made into a `TupleRates` of their own.

    >>> TupleRates.from_json(TupleRates(equality=1e6).to_json()).equality
    1000000.0
    """

    equality: float = 400e3
    range: float = 200e3
    projection: float = 500e3
    equi_join: float = 3e3
    aggregate: float = 200e3  # a guess: like a range condition
    other: float = 200e3  # a guess, for other conditions: like a range condition
    python: float = 100e3  # a guess, for Python predicates
    multi_join: float = 3e3  # a guess, for probes in Thalweg's own join: like an equi-join

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not 0.0 < value < math.inf:
                raise ValueError(f"the tuple rate {name!r} is a number above 0, not {value}")

    def to_json(self) -> dict[str, float]:
        """The numbers by name."""
        return asdict(self)

    @classmethod
    def from_json(cls, numbers: Mapping[str, Any]) -> Self:
        """The tuple rates that `to_json` gave."""
        known = {each.name for each in fields(cls)}
        if set(numbers) != known:
            raise ValueError(f"tuple rates are numbers for {', '.join(sorted(known))}, not for {', '.join(numbers)}")
        return cls(**{name: float(number) for name, number in numbers.items()})


@dataclass(frozen=True)
class CostModel:
    """What is known of a query before it runs, and does not change while charts are built.

    Parameters
    ----------
    window
        Seconds of a window: one round.
    tuple_rates
        What each kind of operator can handle.
    projected_sizes
        By alias, the size of a tuple after projection as a share of its size before. Without an entry it is 1, and
        memory is counted in tuples, as in the paper. Counted in tuples, a selection before the projection is never
        worse than one after it while both keep up with their input, so the choice between them needs sizes.
    column_sizes
        By alias, the share of a tuple that each of its columns takes. They take the place of `projected_sizes`, and
        tell apart projections that keep different columns.
    input_sizes
        By alias, the size of a scanned tuple; 1 without an entry.
    """

    window: float
    tuple_rates: TupleRates = TupleRates()
    projected_sizes: Mapping[str, float] = field(default_factory=dict)
    column_sizes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    input_sizes: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0.0 < self.window < math.inf:
            raise ValueError(f"the window is a number of seconds above 0, not {self.window}")
        for alias, size in self.projected_sizes.items():
            if not 0.0 < size <= 1.0:
                raise ValueError(f"the projected size of {alias} is a share above 0 and at most 1, not {size}")
        for alias, shares in self.column_sizes.items():
            if not all(share >= 0.0 for share in shares.values()) or not sum(shares.values()) < 1.0:
                raise ValueError(f"the columns of {alias} take shares of its tuples that add up to less than 1")

    def projected_size(self, alias: str, columns: Sequence[str]) -> float:
        """The size of a tuple of an input after a projection to some columns, as a share of its size before.

        >>> model = CostModel(1.0, column_sizes={"T": {"a": 0.5, "b": 0.25}})  # the rest is there in any tuple
        >>> model.projected_size("T", ["a"]), model.projected_size("T", ["a", "b"]), model.projected_size("S", [])
        (0.75, 1.0, 1.0)
        """
        if alias not in self.column_sizes:
            return self.projected_sizes.get(alias, 1.0)
        return 1.0 - sum(share for column, share in self.column_sizes[alias].items() if column not in columns)


class Flow(NamedTuple):
    """What comes out of an operator, and the memory that is used up to there."""

    rate: Amount  # tuples a second; 0 for a static table
    rows: Amount  # tuples in a window, or in the table
    memory: Amount = 0.0
    size: float = 1.0  # of a tuple; a whole tuple of an input has size 1
    is_stream: bool = True


def streamed(rate: Amount, window: float, size: float = 1.0) -> Flow:
    """The tuples of a stream.

    >>> streamed(100.0, window=5.0)
    Flow(rate=100.0, rows=500.0, memory=0.0, size=1.0, is_stream=True)
    """
    return Flow(rate, rate * window, size=size)


def stored(rows: float, size: float = 1.0) -> Flow:
    """The tuples of a static table: none arrives."""
    return Flow(0.0, rows, size=size, is_stream=False)


def selected(child: Flow, selectivity: Amount, tuple_rate: float, window: float) -> Flow:
    """The tuples that pass a selection.

    Figure 2: o1 keeps half at 500 tuples a second, o2 a tenth at 50 tuples a second.

    >>> stream = streamed(100.0, window=1.0)
    >>> first = selected(selected(stream, 0.5, 500.0, 1.0), 0.1, 50.0, 1.0)
    >>> second = selected(selected(stream, 0.1, 50.0, 1.0), 0.5, 500.0, 1.0)
    >>> float(first.rate), float(second.rate)
    (5.0, 2.5)
    """
    return _operate([child], child.rate, selectivity * child.rows, tuple_rate, window, child.size)


def projected(child: Flow, size: float, tuple_rate: float, window: float) -> Flow:
    """The tuples after a projection that makes them smaller."""
    return _operate([child], child.rate, child.rows, tuple_rate, window, child.size * size)


def joined(children: Sequence[Flow], work: Amount, selectivity: float, tuple_rate: float, window: float) -> Flow:
    """The results of a join of all pairs, triples, ... of which `selectivity` match.

    `work` is how many tuples a second probe another input. A joined tuple has the mean size of its parts, so that it
    counts as one tuple where the parts do.

    >>> left, right = streamed(100.0, 1.0), streamed(200.0, 1.0)
    >>> joined([left, right], 300.0, 0.01, 3000.0, 1.0)
    Flow(rate=200.0, rows=200.0, memory=230.0, size=1.0, is_stream=True)
    """
    results: Amount = selectivity
    for child in children:
        results = results * child.rows
    return _operate(children, work, results, tuple_rate, window, sum(child.size for child in children) / len(children))


def aggregated(child: Flow, groups: float, tuple_rate: float, window: float) -> Flow:
    """The groups of an aggregation: so many in each window, but no more than tuples."""
    return _operate([child], child.rate, np.minimum(groups, child.rows), tuple_rate, window, child.size)


def utility(rate: Amount, memory: Amount, weights: Weights) -> Amount:
    """The cost of a plan, w_r / C_r + w_m · C_m; infinite where nothing is put out (section 3.2).

    >>> round(utility(5.0, 775.0, Weights(0.1, 0.9)), 2), round(utility(2.5, 575.0, Weights(0.1, 0.9)), 2)
    (697.52, 517.54)
    >>> utility(5.0, 775.0, Weights(20000, 2)), utility(2.5, 575.0, Weights(20000, 2))
    (5550.0, 9150.0)
    """
    if isinstance(rate, float):
        return weights.rate / rate + weights.memory * memory if rate > 0.0 else math.inf
    flows = rate > 0.0
    cost: Floats = np.where(flows, weights.rate / np.where(flows, rate, 1.0) + weights.memory * memory, np.inf)
    return cost


def _operate(
    children: Sequence[Flow], work: Amount, results: Amount, tuple_rate: float, window: float, size: float
) -> Flow:
    """The rule of all operators; `work` is λ, but for joins that probe with intermediate tuples, too."""
    busy = work / tuple_rate
    is_stream = children[0].is_stream or any(child.is_stream for child in children)
    if is_stream:
        slowed = max(1.0, busy) if isinstance(busy, float) else np.maximum(1.0, busy)
        results = results / slowed
    memory: Amount = results * size
    for child in children:
        memory = memory + (child.memory + child.rate * child.size * window * busy)
    return Flow(results / window if is_stream else 0.0, results, memory, size, is_stream)
