"""The costs of rows, parts and micro-batches that explain measured times best. Knows no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thalweg.sizing import Costs


@dataclass(frozen=True)
class Timed:
    """A micro-batch: its rows, the parts of its query, the rows in its windows, the copies of a row, and its time."""

    rows: int
    parts: int
    kept: int
    copies: float
    cores: int
    seconds: float

    @property
    def terms(self) -> tuple[float, ...]:
        """What the costs `batch`, `batch_part`, `row`, `part` and `kept` are multiplied by."""
        rows, kept = (self.copies * number / self.cores for number in (self.rows, self.kept))
        return 1.0, float(self.parts), rows, rows * self.parts, kept


def fitted_costs(
    timed: Sequence[Timed], *, task: float = 0.0, tasks: float = 1.0, sent_bytes: float = 0.0, kept_bytes: float = 0.0
) -> Costs:
    """The costs with the least relative errors, none of which is negative.

    >>> settings = [(100, 1, 2.0), (200, 1, 3.0), (100, 3, 4.0), (200, 3, 7.0)]
    >>> costs = fitted_costs([Timed(rows, parts, 0, 1.0, 2, seconds) for rows, parts, seconds in settings])
    >>> [round(cost, 4) for cost in (costs.batch, costs.batch_part, costs.row, costs.part, costs.kept)]
    [1.0, 0.0, 0.0, 0.02, 0.0]
    """
    seconds = np.array([each.seconds for each in timed])
    terms = np.array([each.terms for each in timed]) / seconds[:, None]  # small and large micro-batches count alike
    costs = np.zeros(terms.shape[1])
    used = [place for place in range(costs.size) if terms[:, place].any()]
    while used:
        scale = np.abs(terms[:, used]).max(axis=0)  # rows are many, parts are few
        found = np.linalg.lstsq(terms[:, used] / scale, np.ones(seconds.size))[0]
        if found.min() >= 0:
            costs[used] = found / scale
            break
        del used[int(found.argmin())]  # a term that explains nothing
    batch, batch_part, row, part, kept = map(float, costs)
    cores = timed[0].cores
    return Costs(
        batch=max(batch - task * tasks * cores, 0.0),
        batch_part=batch_part,
        task=task,
        tasks=tasks,
        row=row,
        part=part,
        kept=kept,
        sent_bytes=sent_bytes,
        kept_bytes=kept_bytes,
    )


def expected_seconds(costs: Costs, timed: Timed) -> float:
    """The seconds of a micro-batch by the model."""
    rows, kept = timed.copies * timed.rows, timed.copies * timed.kept
    shared = costs.core_seconds(rows, timed.parts, kept) / timed.cores
    return costs.driver_seconds(timed.parts, timed.cores) + shared
