"""Measures a query of each kind on a number of cores: a process of its own, since a Spark keeps its cores."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from thalweg.output import write_json
from thalweg.spark.start import spark_session
from thalweg_lab.benches.load import SETTINGS, filters_rate, join_rate, session_rate
from thalweg_lab.benches.load.filters import FILTERS
from thalweg_lab.benches.load.join import JOIN
from thalweg_lab.benches.load.session import SESSION
from thalweg_lab.benches.load.sweep import Effort, measured_setting, setting_results, warm_machine

KINDS = {
    "filters": (FILTERS, filters_rate),
    "join": (JOIN, join_rate),
    "session": (SESSION, session_rate),
}


def main(cores: int, kinds: Sequence[str], effort: Effort | None, file: Path) -> None:
    """Measure queries of these kinds, and write results and times to a file."""
    spark = spark_session("thalweg-bench-load", master=f"local[{cores}]", **SETTINGS)
    results, timed = [], {}
    place = f" on {cores} core{'' if cores == 1 else 's'}"
    for name in kinds:
        kind, module = KINDS[name]
        chosen = effort or module.EFFORT
        warm_machine(spark, kind, module.SETTING, chosen)
        found = measured_setting(spark, kind, module.SETTING, chosen)
        results += [asdict(result) for result in setting_results(kind, found, chosen, scenario="cores", place=place)]
        timed[name] = [asdict(each) for each in found.timed]
    write_json(file, {"results": results, "timed": timed})
    spark.stop()


if __name__ == "__main__":
    options = json.loads(sys.argv[1])
    main(options["cores"], options["kinds"], options["effort"] and Effort(**options["effort"]), Path(sys.argv[2]))
