import pytest

from thalweg_lab.benches import drift


def test_every_scenario_measures_something(monkeypatch: pytest.MonkeyPatch) -> None:
    """With hardly any tuples: what is measured here is whether it runs, not how well."""
    for name, value in {
        "STREAMS": 2,
        "PERIOD": 100_000,
        "CHANGES": 1,
        "STABLE_STREAMS": 1,
        "STABLE_TUPLES": 100_000,
        "TURNS": 2,
        "TURN": 200,
        "PROBES": 1,
        "ENGINE_TUPLES": 20_000,
    }.items():
        monkeypatch.setattr(drift, name, value)
    steps: list[str] = []
    results = drift.run(None, lambda done, total, what="": steps.append(what))  # noqa: ARG005
    assert {result.scenario for result in results} == set(drift.SCENARIOS)
    assert all(isinstance(result.value, float) for result in results)
    assert all(result.holds for result in results if "A/A" in result.measure and result.scenario != "loop")
    assert steps[:3] == list(drift.SCENARIOS)
