"""Judges, given rows for which the paper's claims hold, and rows for which they do not."""

from importlib import metadata

import pytest

from thalweg_lab.experiments.experiment import Experiment, Row
from thalweg_lab.experiments.om import flights, om_erratic, om_granularity, om_many, om_single
from thalweg_lab.experiments.om.contest import FLIGHTS, GENERATED, JOIN, OM, RAND, RATE, SINGLE
from thalweg_lab.results import Result

needs_flights = pytest.mark.skipif(
    not any(metadata.distributions(name=flights.PACKAGE)), reason=f"needs {flights.PACKAGE}: make setup"
)


def failed(results: list[Result]) -> list[str]:
    return [result.measure for result in results if not result.holds]


def test_single() -> None:
    def rows(calm: float, burst: float, switches: int) -> list[Row]:
        about = {"seed": 0, "moves": 14, "switches": switches, "counted": 1.0, "repeated": 0.9}
        return [
            {**about, "data": data, "from": start, "burst": start == 500, "jump": 0.2 if start == 500 else 0.1}
            | {"fidelity": burst if start == 500 else calm}
            for data in (GENERATED, FLIGHTS)
            for start in range(0, 600, 100)
        ]

    assert not failed(om_single.judge(rows(0.85, 0.6, 3)))
    assert failed(om_single.judge(rows(0.6, 0.7, 14))) == [
        "fidelity",
        "fidelity in bursts less that elsewhere",
        "moves for each switch",
        "fidelity",
        "fidelity where selectivity jumps most less that elsewhere",
        "moves for each switch",
    ]


def test_erratic() -> None:
    def rows(chart: float, static: float) -> list[Row]:
        return [
            {"data": data, "query": query, "variation": variation, "seed": 0, "scheduler": name}
            | {"fidelity": fidelity, "repeated": 0.9}
            for data, variations in ((GENERATED, (0.26, 0.09)), (FLIGHTS, (0.5,)))
            for query, chance in ((SINGLE, 0.5), (JOIN, 0.33))
            for variation in variations
            for name, fidelity in ((OM, chart), (RAND, chance), (RATE, static))
        ]

    assert not failed(om_erratic.judge(rows(0.995, 0.6)))
    assert failed(om_erratic.judge(rows(0.7, 0.8))) == [
        *["fidelity", "fidelity", "fidelity above that of the static plan, least"] * 2,
        *["fidelity", "fidelity above that of the static plan"] * 2,
    ]


def test_granularity() -> None:
    def rows(slope: float) -> list[Row]:
        return [
            {"data": data, "query": query, "parts": parts, "seed": 0, "fidelity": 0.97 - slope / parts}
            | {"counted": 1.0, "ceiling": 0.96, "decisions": 600}
            for data in (GENERATED, FLIGHTS)
            for query, every in om_granularity.PARTS.items()
            for parts in every
        ]

    assert not failed(om_granularity.judge(rows(0.5)))
    assert failed(om_granularity.judge(rows(-2.0))) == [
        "fidelity gained by more parts",
        "fidelity gained by more parts",
        "change of fidelity",
    ]


def test_a_miss_on_flights_says_why() -> None:
    rows: list[Row] = [
        {"data": data, "query": query, "parts": parts, "seed": 0, "fidelity": 0.5, "counted": 0.99}
        | {"ceiling": 0.625, "decisions": 600}
        for data in (GENERATED, FLIGHTS)
        for query, every in om_granularity.PARTS.items()
        for parts in every
    ]
    judged = om_granularity.judge(rows)
    flights = {each.scenario: each for each in judged if "flights" in each.scenario and each.measure == "fidelity"}
    assert list(flights) == ["single, flights, k = 10", "single, flights, k = 40", "join, flights, k = 10"]
    for result in flights.values():
        assert not result.holds
        assert "(counted 99.0%)" in result.note
        assert "the best plan of the hour before is the best again in 62.5%" in result.note


def test_many() -> None:
    def rows(fidelity: float, wait: int) -> list[Row]:
        return [
            {"data": data, "number": number, "query": query, "fidelity": fidelity, "longest_wait": wait}
            | {"counted": 0.97}
            for data in (GENERATED, FLIGHTS)
            for number, query in enumerate((SINGLE, JOIN))
        ]

    assert not failed(om_many.judge(rows(0.96, 2)))
    assert failed(om_many.judge(rows(0.5, 3))) == [
        "fidelity",
        "fidelity",
        "turns between two rounds of a query, most",
        "fidelity",
        "fidelity",
    ]


@needs_flights
@pytest.mark.parametrize(
    "experiment",
    [module.EXPERIMENT for module in (om_single, om_erratic, om_many)],
    ids=lambda experiment: experiment.id,
)
def test_a_measurement_has_rows_that_its_judge_reads(experiment: Experiment) -> None:
    quick = True
    settings = [setting for setting in experiment.settings(quick) if setting["seed"] == 0]
    assert experiment.judge([row for setting in settings for row in experiment.measure(setting)])


@needs_flights
def test_a_measurement_of_granularity() -> None:
    setting = {"data": FLIGHTS, "query": SINGLE, "parts": 10, "seed": 0}
    (row,) = om_granularity.measure(setting)
    assert row["decisions"] == 600
    assert 0.5 < row["fidelity"] < row["counted"] <= 1.0


def test_a_missing_package_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flights, "PACKAGE", "no-such-package")
    flights.streams.cache_clear()
    with pytest.raises(RuntimeError, match=r"^this experiment reads .*: pip install no-such-package$"):
        om_single.measure({"data": FLIGHTS, "seed": 0})
