"""Judges, given rows for which the paper's claims hold, and rows for which they do not."""

import pytest

from thalweg_lab.experiments.experiment import Experiment, Row
from thalweg_lab.experiments.om import om_erratic, om_granularity, om_many, om_single
from thalweg_lab.experiments.om.contest import JOIN, OM, RAND, RATE, SINGLE
from thalweg_lab.results import Result


def failed(results: list[Result]) -> list[str]:
    return [result.measure for result in results if not result.holds]


def test_single() -> None:
    def rows(calm: float, burst: float, switches: int) -> list[Row]:
        about = {"seed": 0, "moves": 14, "switches": switches}
        return [
            {**about, "from": start, "burst": start == 500, "fidelity": burst if start == 500 else calm}
            for start in range(0, 600, 100)
        ]

    assert not failed(om_single.judge(rows(0.85, 0.6, 3)))
    assert failed(om_single.judge(rows(0.6, 0.7, 14))) == [
        "fidelity",
        "fidelity in bursts less that outside",
        "moves for each switch",
    ]


def test_erratic() -> None:
    def rows(chart: float, static: float) -> list[Row]:
        return [
            {"query": query, "variation": variation, "seed": 0, "scheduler": name, "fidelity": fidelity}
            for query, chance in ((SINGLE, 0.5), (JOIN, 0.33))
            for variation in (0.26, 0.09)
            for name, fidelity in ((OM, chart), (RAND, chance), (RATE, static))
        ]

    assert not failed(om_erratic.judge(rows(0.995, 0.6)))
    assert (
        failed(om_erratic.judge(rows(0.7, 0.8)))
        == ["fidelity", "fidelity", "fidelity above that of the static plan, least"] * 2
    )


def test_granularity() -> None:
    def rows(slope: float) -> list[Row]:
        return [
            {"query": query, "parts": parts, "seed": 0, "fidelity": 0.97 - slope / parts, "chart_fidelity": 1.0}
            | {"ceiling": 0.96, "decisions": 600}
            for query, every in om_granularity.PARTS.items()
            for parts in every
        ]

    assert not failed(om_granularity.judge(rows(0.5)))
    assert failed(om_granularity.judge(rows(-2.0))) == [
        "fidelity gained by more parts",
        "fidelity gained by more parts",
        "change of fidelity",
    ]


def test_many() -> None:
    def rows(fidelity: float, wait: int) -> list[Row]:
        return [
            {"number": number, "query": query, "fidelity": fidelity, "longest_wait": wait}
            for number, query in enumerate((SINGLE, JOIN))
        ]

    assert not failed(om_many.judge(rows(0.96, 2)))
    assert failed(om_many.judge(rows(0.5, 3))) == [
        "fidelity",
        "fidelity",
        "turns between two rounds of a query, most",
    ]


@pytest.mark.parametrize(
    "experiment",
    [module.EXPERIMENT for module in (om_single, om_erratic, om_many)],
    ids=lambda experiment: experiment.id,
)
def test_a_measurement_has_rows_that_its_judge_reads(experiment: Experiment) -> None:
    quick = True
    settings = [setting for setting in experiment.settings(quick) if setting["seed"] == 0]
    assert experiment.judge([row for setting in settings for row in experiment.measure(setting)])
