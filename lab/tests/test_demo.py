from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from thalweg_lab.demo import (
    FILTERS,
    PHASE_ROWS,
    PHASES,
    STRATEGIES,
    closing_table,
    keeps,
    optimal_of,
    phase_of,
    run_strategies,
    uniform,
)


def test_rows_have_the_rates_and_pairs_that_are_said() -> None:
    rows = np.arange(PHASE_ROWS, PHASE_ROWS + 50_000)
    dropped = np.array([~keeps(number)(rows) for number in range(FILTERS)])
    assert (phase_of(rows) == 1).all()
    assert dropped.mean(axis=1) == pytest.approx(PHASES[1], abs=0.01)
    agree = (dropped[0] == dropped[1]).mean()
    alone = PHASES[1][0] * PHASES[1][1] + (1 - PHASES[1][0]) * (1 - PHASES[1][1])
    assert agree > alone + 0.2


def test_the_stream_is_the_same_in_every_run() -> None:
    assert uniform(np.arange(3), 0) == pytest.approx([0.3875, 0.8917, 0.9360], abs=1e-3)


def test_strategies_keep_the_same_rows_and_adapting_pays() -> None:
    totals: Counter[tuple[str, int, str]] = Counter()
    for phase in range(len(PHASES)):
        rows = np.arange(phase * PHASE_ROWS, phase * PHASE_ROWS + 40_000)
        batches = [pa.record_batch([rows[start : start + 10_000]], ["value"]) for start in range(0, 40_000, 10_000)]
        for line in run_strategies(batches, clock=lambda: 0.0):
            (row,) = line.to_pylist()
            for measure in ("tuples", "evaluations", "kept"):
                totals[row["strategy"], row["phase"], measure] += row[measure]
    assert closing_table(totals).row_count == len(STRATEGIES)  # raises if they keep different rows
    first = {strategy: totals[strategy, 0, "evaluations"] for strategy in STRATEGIES}
    assert first["optimal"] <= first["a-greedy"] < first["as-written"]


def test_the_optimum_differs_from_phase_to_phase() -> None:
    assert len({optimal_of(phase) for phase in range(len(PHASES))}) == len(PHASES)
