"""How many cores a stream needs, and what breaks first: a model of a micro-batch, with costs that were measured.

A micro-batch of r rows on c cores, of a query with p predicates, streams or queries that keeps k rows, takes

    batch + batch_part * p + task * tasks * c  +  (copies * (r * (row + part * p) + k * kept) + r * own) / c

seconds. The driver plans it and starts tasks, and the cores share the rows. Joins send each row to `copies` cells, to
more if there are more cells, unless all streams share a key. `thalweg bench load` measures the costs on a machine.
Knows no Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from thalweg.joinorder.text import Equality, classes
from thalweg.mjoin.shares import choose_shares, replication

CORES = (1, 10, 100, 1_000, 10_000)  # to look at, unless others are asked for
MOST_CORES = 1 << 14
BUSY_DRIVER = 0.5  # the share of an interval above which more cores mean more work for the driver than they save


@dataclass(frozen=True)
class Costs:
    """The measured costs of a kind of query; a part is a predicate, a stream or a query."""

    batch: float  # seconds of the driver for a micro-batch
    batch_part: float  # and for each part
    task: float  # seconds of the driver for a task
    tasks: float  # tasks of a micro-batch for each core
    row: float  # core-seconds of a row
    part: float  # core-seconds of a row for each part
    kept: float  # core-seconds of a micro-batch for each row in a window
    sent_bytes: float  # of a row that is shuffled, beside the row itself
    kept_bytes: float  # of a row in a window, beside the row itself

    def driver_seconds(self, parts: int, cores: int) -> float:
        """The driver's part of a micro-batch."""
        return self.batch + self.batch_part * parts + self.task * self.tasks * cores

    def core_seconds(self, rows: float, parts: int, kept: float) -> float:
        """The work that cores share, without the user's own predicates."""
        return rows * (self.row + self.part * parts) + kept * self.kept


@dataclass(frozen=True)
class Demand:
    """A stream, or streams, a query, and the cores that there are.

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
    network
        Bytes a second that a core can send.
    memory
        Bytes of windows that a core can hold.
    """

    rate: float
    parts: int
    interval: float = 1.0
    own: float = 0.0
    window: float = 0.0
    row_bytes: float = 100.0
    placed_by: Mapping[str, frozenset[int]] | None = None
    network: float = 100e6
    memory: float = 2e9

    def copies(self, cores: int) -> float:
        """To how many cells a row is sent, on average; a cell for each core."""
        return 1.0 if self.placed_by is None else copies_of(self.placed_by, cores)


@dataclass(frozen=True)
class Sizing:
    """A query on a number of cores, by the model."""

    cores: int
    rates: Mapping[str, float]  # by what limits them: the rows a second that can be kept up with
    batch_seconds: float  # a micro-batch, at the rate that is asked for
    driver_seconds: float  # of which the driver's
    copies: float
    shuffle_bytes: float  # a second
    state_bytes: float

    @property
    def highest_rate(self) -> float:
        """The rows a second that all limits allow; 0 if the driver alone takes the interval."""
        return min(self.rates.values())

    @property
    def limit(self) -> str:
        """What limits the rate."""
        return min(self.rates, key=self.rates.__getitem__)


def sizing(costs: Costs, demand: Demand, cores: int) -> Sizing:
    """What the model says of a number of cores.

    >>> costs = Costs(0.2, 0.0, task=0.002, tasks=1, row=1e-5, part=1e-6, kept=0.0, sent_bytes=0, kept_bytes=0)
    >>> found = sizing(costs, Demand(rate=100_000, parts=10), cores=4)
    >>> round(found.batch_seconds, 3), round(found.highest_rate), found.limit
    (0.708, 158400, 'cores')
    """
    copies, interval, is_join = demand.copies(cores), demand.interval, demand.placed_by is not None
    driver = costs.driver_seconds(demand.parts, cores)
    # Of a row a second: the work of a micro-batch, bytes that are sent a second, and bytes that are kept.
    work = copies * costs.core_seconds(interval, demand.parts, demand.window) + interval * demand.own
    sent = copies * (demand.row_bytes + costs.sent_bytes) if is_join else costs.sent_bytes
    kept = demand.window * copies * (demand.row_bytes + costs.kept_bytes)
    rates = {"cores" if driver <= BUSY_DRIVER * interval else "driver": max(interval - driver, 0.0) * cores / work}
    if sent:
        rates["network"] = demand.network * cores / sent
    if kept:
        rates["memory"] = demand.memory * cores / kept
    return Sizing(
        cores=cores,
        rates=rates,
        batch_seconds=driver + demand.rate * work / cores,
        driver_seconds=driver,
        copies=copies,
        shuffle_bytes=demand.rate * sent,
        state_bytes=demand.rate * kept,
    )


def least_cores(costs: Costs, demand: Demand) -> int | None:
    """The fewest cores, of powers of two, that keep up; None if no number of cores does.

    >>> costs = Costs(0.2, 0.0, task=0.002, tasks=1, row=1e-5, part=1e-6, kept=0.0, sent_bytes=0, kept_bytes=0)
    >>> least_cores(costs, Demand(rate=1_000_000, parts=10))
    32
    """
    return next((found.cores for found in _by_cores(costs, demand) if found.highest_rate >= demand.rate), None)


def first_to_break(costs: Costs, demand: Demand) -> tuple[int, str]:
    """The number of cores, of powers of two, with the highest rate, and why more cores do not raise it.

    >>> costs = Costs(0.2, 0.0, task=0.002, tasks=1, row=1e-5, part=1e-6, kept=0.0, sent_bytes=0, kept_bytes=0)
    >>> first_to_break(costs, Demand(rate=1_000_000, parts=10))
    (256, 'the driver: 0.71 of 1 seconds go into starting tasks and planning')
    """
    best = max(_by_cores(costs, demand), key=lambda found: found.highest_rate)
    if best.limit == "network":
        sent = best.shuffle_bytes / max(demand.rate, 1e-9) * best.highest_rate / best.cores
        return best.cores, f"the network: a core sends {sent / 1e6:.0f} MB a second, each row {best.copies:.1f} times"
    if best.limit == "memory":
        return best.cores, f"memory: windows fill the {demand.memory / 1e9:g} GB of each core"
    if best.limit == "driver":
        told = f"{best.driver_seconds:.2f} of {demand.interval:g} seconds go into starting tasks and planning"
        return best.cores, f"the driver: {told}"
    if best.cores == MOST_CORES:
        return best.cores, "nothing in this model"
    return best.cores, f"the shuffle: each row is sent {best.copies:.1f} times"


def shortest_interval(costs: Costs, demand: Demand, cores: int) -> float:
    """The seconds from a micro-batch to the next of which the driver takes half.

    >>> costs = Costs(0.2, 0.0, task=0.002, tasks=1, row=1e-5, part=1e-6, kept=0.0, sent_bytes=0, kept_bytes=0)
    >>> shortest_interval(costs, Demand(rate=1_000_000, parts=10), cores=1_000)
    4.4
    """
    return costs.driver_seconds(demand.parts, cores) / BUSY_DRIVER


def _by_cores(costs: Costs, demand: Demand) -> list[Sizing]:
    return [sizing(costs, demand, 1 << power) for power in range(MOST_CORES.bit_length())]


def copies_of(placed_by: Mapping[str, frozenset[int]], cells: int) -> float:
    """To how many cells a row of a join is sent, on average over streams of the same rate.

    >>> copies_of({"A": frozenset([0]), "B": frozenset([0, 1]), "C": frozenset([1])}, 4)
    1.6666666666666667
    """
    rates = dict.fromkeys(placed_by, 1.0)
    return replication(choose_shares(placed_by, rates, cells), rates)


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
    """The kind of query that the given option means.

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
    results = _read(path).get("results", [])
    try:
        known = {result["measure"]: float(result["value"]) for result in results if result["scenario"] == kind}
        costs = Costs(**{field.name: known[field.name] for field in fields(Costs)})
    except (KeyError, TypeError, ValueError):
        raise ValueError(
            f"{path} has no costs of {kind}: run `thalweg bench load {kind} --json FILE`, and give --costs FILE"
        ) from None
    if not costs.core_seconds(1.0, 1, 0.0) > 0:
        raise ValueError(f"{path} says that rows of {kind} cost nothing: run `thalweg bench load` with nothing else")
    return costs


def where_measured(path: Path) -> str:
    """The machine on which the costs of a file were measured."""
    machine = _read(path).get("machine", {})
    return f"{machine.get('cores', '?')} cores ({machine.get('cpu', 'of an unknown kind')})"


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}): run `thalweg bench load --json {path}`") from None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"{path} is no file of `thalweg bench load --json FILE`")  # noqa: TRY004 - a wrong value
    return found
