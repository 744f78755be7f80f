"""How many cores a stream needs, and what breaks first: a model of a micro-batch, with costs that were measured.

A micro-batch of r rows on c cores takes `batch + task * c + r * copies * row / c` seconds: the driver plans it and
starts a task on each core, and the cores share the rows. Joins send each row to `copies` cells, to more if there are
more cells, unless all streams share a key. `thalweg bench load` measures the costs on a machine. Knows no Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from thalweg.joinorder.text import Equality, classes
from thalweg.mjoin.shares import choose_shares, replication

BATCH, TASK, ROW, PART = "batch", "task", "row", "part"  # the names of costs in a file of measurements
MOST_CORES = 1 << 14
BUSY_DRIVER = 0.5  # the share of an interval after which more cores mean more work for the driver than they save


@dataclass(frozen=True)
class Costs:
    """The measured costs of a kind of query."""

    batch: float  # seconds of a micro-batch without rows
    task: float  # seconds of the driver for a task
    row: float  # core-seconds of a row
    part: float  # core-seconds of a row for each predicate, stream or query

    def a_row(self, parts: int) -> float:
        """Core-seconds of a row, without the work of the user's own predicates."""
        return self.row + parts * self.part


@dataclass(frozen=True)
class Demand:
    """A stream, or streams, and a query.

    Parameters
    ----------
    rate
        Rows a second, of all streams together.
    parts
        How many predicates, streams or queries there are.
    interval
        Seconds from a micro-batch to the next.
    own
        Core-seconds of a row in the predicates of the user, in the order that is used.
    window
        Seconds for which rows are kept.
    row_bytes
        The size of a row.
    placed_by
        For a join, the classes of equal attributes that each stream has an attribute of.
    """

    rate: float
    parts: int
    interval: float = 1.0
    own: float = 0.0
    window: float = 0.0
    row_bytes: float = 100.0
    placed_by: Mapping[str, frozenset[int]] | None = None

    def copies(self, cores: int) -> float:
        """To how many cells a row is sent, on average; a cell for each core."""
        if self.placed_by is None:
            return 1.0
        rates = dict.fromkeys(self.placed_by, 1.0)
        return replication(choose_shares(self.placed_by, rates, cores), rates)


@dataclass(frozen=True)
class Sizing:
    """A query on a number of cores, by the model."""

    cores: int
    highest_rate: float  # rows a second that can be kept up with; 0 if the driver alone takes the interval
    batch_seconds: float  # a micro-batch, at the rate that is asked for
    driver_seconds: float  # of which the driver's
    copies: float
    shuffle_bytes: float  # a second
    state_bytes: float

    def keeps_up(self, demand: Demand) -> bool:
        """Whether the micro-batches are done in time."""
        return self.batch_seconds <= demand.interval


def sizing(costs: Costs, demand: Demand, cores: int) -> Sizing:
    """What the model says of a number of cores.

    >>> costs = Costs(batch=0.2, task=0.002, row=1e-5, part=1e-6)
    >>> found = sizing(costs, Demand(rate=100_000, parts=10), cores=4)
    >>> round(found.batch_seconds, 3), round(found.highest_rate), found.keeps_up(Demand(100_000, 10))
    (0.708, 158400, True)
    """
    copies = demand.copies(cores)
    driver = costs.batch + costs.task * cores
    row = copies * costs.a_row(demand.parts) + demand.own
    is_shuffled = demand.placed_by is not None or demand.window > 0
    return Sizing(
        cores=cores,
        highest_rate=max(demand.interval - driver, 0) * cores / (row * demand.interval),
        batch_seconds=driver + demand.rate * demand.interval * row / cores,
        driver_seconds=driver,
        copies=copies,
        shuffle_bytes=demand.rate * copies * demand.row_bytes if is_shuffled else 0.0,
        state_bytes=demand.rate * demand.window * copies * demand.row_bytes,
    )


def least_cores(costs: Costs, demand: Demand) -> int | None:
    """The fewest cores, of powers of two, that keep up; None if no number of cores does.

    >>> least_cores(Costs(0.2, 0.002, 1e-5, 1e-6), Demand(rate=1_000_000, parts=10))
    32
    """
    powers = (1 << power for power in range(MOST_CORES.bit_length()))
    return next((cores for cores in powers if sizing(costs, demand, cores).keeps_up(demand)), None)


def first_to_break(costs: Costs, demand: Demand) -> tuple[int, str]:
    """The number of cores, of powers of two, with the highest rate, and why more cores do not raise it.

    >>> first_to_break(Costs(0.2, 0.002, 1e-5, 1e-6), Demand(rate=1_000_000, parts=10))
    (256, 'the driver: 0.71 of 1 seconds go into starting tasks and planning')
    """
    powers = [1 << power for power in range(MOST_CORES.bit_length())]
    best = max((sizing(costs, demand, cores) for cores in powers), key=lambda found: found.highest_rate)
    if best.cores == powers[-1]:
        return best.cores, "nothing in this model"
    if best.driver_seconds > BUSY_DRIVER * demand.interval:
        told = f"{best.driver_seconds:.2f} of {demand.interval:g} seconds go into starting tasks and planning"
        return best.cores, f"the driver: {told}"
    return best.cores, f"the shuffle: each row is sent {best.copies:.1f} times"


def placed_by(equalities: Iterable[Equality]) -> dict[str, frozenset[int]]:
    """The classes of equal attributes that each stream of a join has an attribute of.

    >>> from thalweg.joinorder.text import parse_condition
    >>> placed_by(parse_condition("A.k = B.k AND B.l = C.l"))
    {'A': frozenset({0}), 'B': frozenset({0, 1}), 'C': frozenset({1})}
    """
    found: dict[str, set[int]] = {}
    for number, attributes in enumerate(classes(equalities)):
        for attribute in attributes:
            found.setdefault(attribute.stream, set()).add(number)
    return {stream: frozenset(numbers) for stream, numbers in sorted(found.items())}


def kind_of(predicates: int | None, on: str | None, queries: int | None) -> str:
    """The kind of query that is meant by the one of these that is given.

    >>> kind_of(None, "A.k = B.k", None)
    'join'
    """
    kinds = {"filters": predicates, "join": on, "session": queries}
    given = [kind for kind, value in kinds.items() if value is not None]
    if len(given) != 1:
        raise ValueError("give one of --predicates, --on and --queries: for filters, a join, or a session")
    return given[0]


def read_costs(path: Path, kind: str) -> Costs:
    """The costs in a file that `thalweg bench load --json FILE` has written."""
    try:
        results = json.loads(path.read_text(encoding="utf-8"))["results"]
        known = {result["measure"]: float(result["value"]) for result in results if result["scenario"] == kind}
        costs = Costs(known[BATCH], known[TASK], known[ROW], known[PART])
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}): run `thalweg bench load --json {path}`") from None
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{path} has no costs of {kind}: run `thalweg bench load --json {path}`") from None
    if not costs.a_row(1) > 0:
        raise ValueError(
            f"{path} says that rows cost nothing: run `thalweg bench load --json {path}` with nothing else"
        )
    return costs
