"""The JSON that every `lab` and `bench` command writes, in one shape, so that figures can be compared over time.

Knows how to describe, judge, print and save measured values. Must not know how they were measured, nor Spark.
"""

import math
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from thalweg.output import Json, Value, format_value, write_json


@dataclass(frozen=True)
class Result:
    """One measured value beside its target.

    >>> Result("n = 8", "speed-up", 6.0, ">= 5", True).holds
    True
    """

    scenario: str
    measure: str
    value: Value
    target: str
    holds: bool
    note: str = ""


@dataclass(frozen=True)
class Report:
    """All results of a command, with the time that it took and the machine that it ran on.

    >>> report = Report("lab", 1.5, {"cores": 2}, (at_least("n = 8", "speed-up", 6.0, 5),))
    >>> Report.from_json(report.to_json()) == report
    True
    """

    name: str
    seconds: float
    machine: Mapping[str, Value]
    results: tuple[Result, ...]

    @property
    def holds(self) -> bool:
        """Whether everything held."""
        return all(result.holds for result in self.results)

    def to_json(self) -> dict[str, Json]:
        """The report as JSON values; a value that is not finite becomes null, and its note says so."""
        return {
            "name": self.name,
            "seconds": round(self.seconds, 3),
            "machine": dict(self.machine),
            "results": [asdict(_finite_value(result)) for result in self.results],
        }

    @classmethod
    def from_json(cls, shape: Mapping[str, Json]) -> "Report":
        """The report that `to_json` made this shape of."""
        results = tuple(Result(**result) for result in shape["results"])
        return cls(shape["name"], shape["seconds"], shape["machine"], results)

    def write(self, path: Path) -> None:
        """Write the report to a JSON file, the whole file or nothing."""
        write_json(path, self.to_json())


def at_least(scenario: str, measure: str, value: float, bound: float, note: str = "") -> Result:
    """A value that should reach a bound.

    >>> at_least("n = 8", "speed-up", 4.0, 5).holds
    False
    """
    return Result(scenario, measure, value, f">= {bound:g}", bool(value >= bound), note)


def at_most(scenario: str, measure: str, value: float, bound: float, note: str = "") -> Result:
    """A value that should stay within a bound.

    >>> at_most("written order is best", "overhead", 0.02, 0.05).target
    '<= 0.05'
    """
    return Result(scenario, measure, value, f"<= {bound:g}", bool(value <= bound), note)


def between(scenario: str, measure: str, value: float, bounds: tuple[float, float], note: str = "") -> Result:
    """A value that should fall in a range, for a paper's "about".

    >>> between("c = 100", "overhead", 0.24, (0.2, 0.3)).holds
    True
    """
    low, high = bounds
    return Result(scenario, measure, value, f"{low:g} to {high:g}", bool(low <= value <= high), note)


def exactly(scenario: str, measure: str, value: float | str, expected: float | str, note: str = "") -> Result:
    """A value with one right answer, such as a paper's worked number.

    >>> exactly("F3 F1 F2 F4", "probes", 16, 16)
    Result(scenario='F3 F1 F2 F4', measure='probes', value=16, target='= 16', holds=True, note='')
    """
    return Result(scenario, measure, value, f"= {expected}", bool(value == expected), note)


def claim(scenario: str, measure: str, value: Value, target: str, *, holds: bool, note: str = "") -> Result:
    """A claim in words, judged by the caller.

    >>> claim("n = 2..10", "gap to Independent", 1.4, "the gap widens with n", holds=True).target
    'the gap widens with n'
    """
    return Result(scenario, measure, value, target, bool(holds), note)


def machine() -> dict[str, Value]:
    """The machine on which values are measured; without its name, so that reports can be published.

    >>> sorted(machine())
    ['cores', 'cpu', 'memory_gib', 'platform', 'pyspark', 'python']
    """
    try:
        pyspark: str | None = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        pyspark = None
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gib": _memory_gib(),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "pyspark": pyspark,
    }


def show(report: Report, console: Console) -> None:
    """Print a report as a table, and below it how much held.

    >>> from rich.console import Console
    >>> report = Report("bench", 1.5, {}, (at_least("n = 8", "speed-up", 6.0, 5),))
    >>> show(report, Console(width=60))  # doctest: +ELLIPSIS
                                bench...
    1 of 1 held, in 1.5 s.
    """
    table = Table(title=report.name, title_justify="center")
    for heading in ("scenario", "measure"):
        table.add_column(heading, overflow="fold")  # long names are broken, not cut
    table.add_column("value", justify="right")
    for heading in ("target", "holds"):
        table.add_column(heading)
    table.add_column("note", justify="right")
    notes: dict[str, int] = {}  # numbered, and printed below the table, where they have the whole width
    for result in report.results:
        holds = Text("yes", style="green") if result.holds else Text("no", style="bold red")
        number = str(notes.setdefault(result.note, len(notes) + 1)) if result.note else ""
        # Text, not str: measured names may hold square brackets, which rich would read as markup.
        words = (result.scenario, result.measure, format_value(result.value), result.target)
        table.add_row(*map(Text, words), holds, number)
    console.print(table)
    for note, place in notes.items():
        console.print(Padding(Text(f"{place}: {note}"), (0, 0, 0, 2)))
    held = sum(result.holds for result in report.results)
    console.print(f"{held} of {len(report.results)} held, in {report.seconds:.1f} s.", highlight=False)


def _finite_value(result: Result) -> Result:
    if not isinstance(result.value, float) or math.isfinite(result.value):
        return result
    note = f"{result.note}; value was {result.value}" if result.note else f"value was {result.value}"
    return replace(result, value=None, note=note)


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None
