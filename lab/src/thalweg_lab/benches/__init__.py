"""The benchmarks that `thalweg bench` runs by name.

A benchmark is a module of this package with the four names of `Bench`. It imports heavy modules (Numba,
or modules that use pyspark) inside `run`, so that listing the benchmarks stays fast.
"""

import difflib
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Protocol, cast

from thalweg_lab.results import Result

BENCHES: tuple[str, ...] = (
    "ordering",
    "planner",
    "drift",
    "adaptivity",
    "filters",
    "adoption",
    "waiting",
    "routing",
    "joins",
    "session",
    "load",
)


class Progress(Protocol):
    """A function that a benchmark calls to report its progress."""

    def __call__(self, done: int, total: int, what: str = "") -> None:
        """Report that `done` of `total` steps are done, and the step that comes next."""


class Bench(Protocol):
    """The names that a benchmark module has."""

    NAME: str
    SUMMARY: str
    SCENARIOS: tuple[str, ...]

    def run(self, scenario: str | None, progress: Progress) -> list[Result]:
        """Measure one scenario, or all of them."""


def run_each(
    measures: Mapping[str, Callable[[], list[Result]]], scenario: str | None, progress: Progress
) -> list[Result]:
    """Measure one scenario, or all scenarios one after the other."""
    chosen = [scenario] if scenario else list(measures)
    results: list[Result] = []
    for done, name in enumerate(chosen):
        progress(done, len(chosen), name)
        results += measures[name]()
    progress(len(chosen), len(chosen))
    return results


def bench_of(name: str) -> Bench:
    """The benchmark of a name; an error lists the names there are."""
    if name not in BENCHES:
        close = difflib.get_close_matches(name, BENCHES, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise ValueError(f"there is no benchmark {name}.{hint} The names are: {', '.join(BENCHES) or '(none yet)'}.")
    return cast(Bench, import_module(f"thalweg_lab.benches.{name}"))
