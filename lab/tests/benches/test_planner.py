import pytest

from thalweg_lab.benches import planner


def test_every_scenario_measures_something(monkeypatch: pytest.MonkeyPatch) -> None:
    """With few streams and settings: what is measured here is whether it runs, not how fast."""
    for name, small in (("STREAMS", 6), ("MANY_STREAMS", 9), ("TURNS", 1), ("SETTINGS", 5), ("COMPLETE_STREAMS", 7)):
        monkeypatch.setattr(planner, name, small)
    steps: list[str] = []
    results = planner.run(None, lambda done, total, what="": steps.append(what))  # noqa: ARG005
    assert {result.scenario for result in results} == set(planner.SCENARIOS)
    assert all(isinstance(result.value, float) for result in results)
    assert steps[: len(planner.SCENARIOS)] == list(planner.SCENARIOS)
