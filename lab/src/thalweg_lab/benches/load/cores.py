"""cores: filters, a join and a session on one core and on two, each number of cores in a Spark of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from thalweg.output import Json
from thalweg_lab.benches.filters.race import Tick
from thalweg_lab.benches.load import on_cores
from thalweg_lab.benches.load.fit import Timed, expected_seconds, fitted_costs
from thalweg_lab.benches.load.on_cores import KINDS
from thalweg_lab.benches.load.sweep import ALLOWED_ERROR, Effort
from thalweg_lab.results import Result, at_most

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "cores"
FEW, MANY = CORES = (1, 2)


def measure(
    _spark: SparkSession, tick: Tick, *, effort: Effort | None = None, kinds: Sequence[str] = tuple(KINDS)
) -> list[Result]:
    """Each kind of query on each number of cores; and how well the times on two cores tell the times on one."""
    results: list[Result] = []
    timed: dict[int, dict[str, list[Timed]]] = {}
    for cores in CORES:
        found = measured_on(cores, effort, kinds)
        results += [Result(**result) for result in found["results"]]
        timed[cores] = {kind: [Timed(**each) for each in times] for kind, times in found["timed"].items()}
        tick(len(timed), len(CORES))
    for kind in kinds:
        costs = fitted_costs(timed[MANY][kind])
        few = timed[FEW][kind][-1]
        expected = expected_seconds(costs, few)
        error = abs(expected / few.seconds - 1)
        note = f"{few.rows:,} rows: measured {few.seconds:.2f} s, by the times on {MANY} cores {expected:.2f} s"
        results.append(at_most(NAME, f"{kind}: error of the model on {FEW} core, held out", error, ALLOWED_ERROR, note))
    return results


def measured_on(cores: int, effort: Effort | None, kinds: Sequence[str]) -> Json:
    """What a process with a Spark of so many cores has measured."""
    with tempfile.TemporaryDirectory(prefix="thalweg-load-") as folder:
        file = Path(folder, "measured.json")
        options = {"cores": cores, "kinds": kinds, "effort": None if effort is None else asdict(effort)}
        command = [sys.executable, "-m", on_cores.__name__, json.dumps(options), str(file)]
        subprocess.run(command, check=True)  # noqa: S603 - our own module
        return json.loads(file.read_text(encoding="utf-8"))
