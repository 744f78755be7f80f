"""Benchmarks of predicates that wait for services, against a local HTTP service on loopback, one scenario a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thalweg_lab.benches.on_spark import run_scenarios
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from thalweg_lab.benches import Progress

NAME = "waiting"
SUMMARY = "predicates that ask services: speed, calls, rates, faults, tokens, against the best order and thread pools"
SCENARIOS = ("two-services", "rate", "faults", "tokens", "cascade")


def run(scenario: str | None, progress: Progress) -> list[Result]:
    """Measure one scenario, or all scenarios."""
    return run_scenarios(__name__, (scenario,) if scenario else SCENARIOS, progress)
