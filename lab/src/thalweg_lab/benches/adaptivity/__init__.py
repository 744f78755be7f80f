"""Benchmarks of adaptivity in counts, not times: what learning costs beside a clairvoyant, and how fast it follows.

All run the pipeline of `tw.where` with its defaults, on a clock of evaluations, so figures repeat exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from thalweg_lab.results import Result

if TYPE_CHECKING:
    from collections.abc import Callable

    from thalweg_lab.benches import Progress

NAME = "adaptivity"
SUMMARY = (
    "evaluations beside a clairvoyant order: steady, sudden, gradual, returning and hidden changes, classes, detectors"
)
SCENARIOS = (
    "stationary",
    "sudden",
    "gradual",
    "returning",
    "hidden",
    "quiet",
    "no-class",
    "classes",
    "optimum",
    "detectors",
)
SEEDS = 20  # streams of each kind


def run(scenario: str | None, progress: Progress) -> list[Result]:
    """Count one scenario, or all scenarios."""
    from functools import partial

    from thalweg.kernels import ORDERING, compile_kernels
    from thalweg_lab.benches import run_each
    from thalweg_lab.benches.adaptivity.classes import classes, no_class
    from thalweg_lab.benches.adaptivity.detectors import detectors
    from thalweg_lab.benches.adaptivity.orders import RATIOS, hidden, optimum, quiet, ratio

    compile_kernels(ORDERING)
    measures: dict[str, Callable[[], list[Result]]] = {
        **{name: partial(ratio, name, SEEDS) for name in RATIOS},
        "hidden": partial(hidden, SEEDS),
        "quiet": partial(quiet, SEEDS),
        "no-class": partial(no_class, SEEDS),
        "classes": partial(classes, SEEDS),
        "optimum": partial(optimum, SEEDS),
        "detectors": detectors,
    }
    return run_each(measures, scenario, progress)
