from types import ModuleType

import pytest

from thalweg.joinorder import PLANNERS
from thalweg_lab.experiments.q_aware import q_aware, q_fab, q_fgreedy, q_treeopt
from thalweg_lab.experiments.q_aware.trials import ACYCLIC, CHUNK, CYCLIC, measure, settings

EXPERIMENTS = [q_fgreedy, q_treeopt, q_fab, q_aware]


def test_a_full_run_is_nine_thousand_graphs_a_shape_in_chunks() -> None:
    full = settings(["fab"], quick=False)
    for shape in (*ACYCLIC, *CYCLIC):
        graphs = {
            (each["streams"], seed)
            for each in full
            if each["shape"] == shape
            for seed in range(each["first"], each["first"] + each["count"])
        }
        assert len(graphs) == 9000
    assert max(each["count"] for each in full) == CHUNK


@pytest.mark.parametrize("shape", [*ACYCLIC, *CYCLIC])
def test_a_tiny_measurement(shape: str) -> None:
    planners = [kind.name for kind in PLANNERS]
    rows = measure({"shape": shape, "streams": 5, "first": 7, "count": 3, "planners": planners})
    assert [(row["seed"], row["planner"]) for row in rows] == [(seed, name) for seed in (7, 8, 9) for name in planners]
    for row in rows:
        assert row["ratio"] >= 1 - 1e-9
        assert row["worst_order"] >= row["ratio"] * (1 - 1e-9)
        assert 0 <= row["optimal_orders"] <= 1
        if row["planner"] in {"exhaustive", "dmjoin"} or (shape in ACYCLIC and row["planner"] == "tree-opt"):
            assert row["worst_order"] == pytest.approx(1)
            assert row["optimal_orders"] == 1


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda module: module.EXPERIMENT.id)
def test_rows_are_judged_and_drawn(experiment: ModuleType) -> None:
    from matplotlib.figure import Figure

    rows = [
        row
        for shape in (*ACYCLIC, *CYCLIC)
        for streams in (3, 4)
        for row in measure(
            {"shape": shape, "streams": streams, "first": 0, "count": 2, "planners": experiment.PLANNERS}
        )
    ]
    assert experiment.judge(rows)
    figure = Figure(layout="constrained")
    experiment.plot(rows, figure)
    assert len(figure.axes) == 4
