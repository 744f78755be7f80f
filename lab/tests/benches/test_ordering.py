import pytest

from thalweg_lab.benches import ordering


def test_every_scenario_measures_something(monkeypatch: pytest.MonkeyPatch) -> None:
    """With hardly any tuples: what is measured here is whether it runs, not how fast."""
    monkeypatch.setattr(ordering, "TURNS", 1)
    monkeypatch.setattr(ordering, "TUPLES", 100_000)
    steps: list[str] = []
    results = ordering.run(None, lambda done, total, what="": steps.append(what))  # noqa: ARG005
    assert {result.scenario for result in results} == set(ordering.SCENARIOS)
    assert all(isinstance(result.value, float) for result in results)
    assert steps[:3] == list(ordering.SCENARIOS)
