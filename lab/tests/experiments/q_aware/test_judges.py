"""Judges, given rows for which the paper's claims hold, and of rows for which they do not."""

from thalweg_lab.experiments.experiment import Row
from thalweg_lab.experiments.q_aware import q_aware, q_fab, q_fgreedy, q_treeopt
from thalweg_lab.experiments.q_aware.trials import ACYCLIC, CYCLIC
from thalweg_lab.results import Result


def row(shape: str, streams: int, planner: str, ratio: float, milliseconds: float, algorithm: str = "") -> Row:
    return {
        "shape": shape,
        "streams": streams,
        "seed": 0,
        "planner": planner,
        "algorithm": algorithm or planner,
        "ratio": ratio,
        "ratio_with_results": ratio,
        "worst_order": 2 * ratio - 1,
        "optimal_orders": float(ratio == 1),
        "microseconds": 1000 * milliseconds,
    }


def rows(planner: str, *, milliseconds: tuple[float, float] = (1.0, 8.0), **ratios: float) -> list[Row]:
    """A planner's plans for 5 and for 10 streams; optimal but for the shapes whose ratio is given."""
    return [
        row(shape, streams, planner, ratios.get(shape, 1.0), spent)
        for shape in (*ACYCLIC, *CYCLIC)
        for streams, spent in zip((5, 10), milliseconds, strict=True)
    ]


def failed(results: list[Result]) -> list[tuple[str, str]]:
    return [(result.scenario, result.measure) for result in results if not result.holds]


def test_f_greedy() -> None:
    optimal = rows("dmjoin", milliseconds=(1.0, 32.0))
    assert not failed(q_fgreedy.judge([*optimal, *rows("f-greedy", acyclic=5.0, complete=15.0, cyclic=9.0)]))
    found = q_fgreedy.judge([*rows("dmjoin", milliseconds=(1.0, 2.0)), *rows("f-greedy", linear=1.1, complete=15.0)])
    assert failed(found) == [
        ("linear", "share of optimal plans"),
        ("acyclic", "cost of the worst plan over the optimum's"),
        ("n = 5..10", "DMJoin's time, growth by one more stream"),
    ]
    assert "two directions" in found[0].note


def test_tree_opt() -> None:
    tree = [
        *rows("tree-opt", milliseconds=(0.5, 1.0), complete=2.5),
        row("complete", 10, "tree-opt", 60.0, 1.0),
        row("complete", 5, "tree-opt", 1.7, 1.0),
        row("complete", 5, "tree-opt", 1.7, 1.0),
    ]
    assert not failed(q_treeopt.judge([*tree, *rows("f-greedy")]))
    worse = [*rows("tree-opt", star=1.1), *rows("f-greedy", milliseconds=(1.0, 4.0), complete=1.2)]
    assert failed(q_treeopt.judge(worse)) == [
        ("star", "share of optimal plans"),
        ("acyclic, n = 10", "time to plan, TreeOpt over F-Greedy"),
        ("complete, n = 10", "share of optimal plans"),
        ("complete", "upper quartile of cost over the optimum's"),
        ("complete", "cost of the worst plan over the optimum's"),
        ("complete", "share of optimal plans, TreeOpt"),
    ]


def test_fab() -> None:
    forward = rows("f-greedy", linear=3.0, acyclic=5.0, cyclic=9.0, complete=15.0)
    assert not failed(q_fab.judge([*rows("fab"), *forward]))
    assert failed(q_fab.judge([*rows("fab", acyclic=1.3, complete=2.1), *forward])) == [
        ("acyclic", "share of optimal plans"),
        ("complete", "share of optimal plans"),
        ("acyclic", "cost of the worst plan over the optimum's"),
        ("complete", "cost of the worst plan over the optimum's"),
        ("acyclic", "upper quartile of cost over the optimum's"),
    ]


def test_q_aware() -> None:
    def aware(spent: float, **ratios: float) -> list[Row]:
        found = rows("q-aware", milliseconds=(1.0, spent), **ratios)
        return [row | {"algorithm": "tree-opt" if row["shape"] in ACYCLIC else "sifting"} for row in found]

    fab = rows("fab", cyclic=1.5, complete=2.0)
    assert not failed(q_aware.judge([*aware(7.9, complete=1.5), *fab]))
    assert failed(q_aware.judge([*aware(8.1, star=1.1, cyclic=1.6), *fab])) == [
        ("star", "share of optimal plans"),
        ("cyclic", "cost over that of FAB's plan, greatest"),
        ("acyclic, n = 5..10", "growth of the time to plan"),
        ("cyclic, n = 5..10", "growth of the time to plan"),
    ]
