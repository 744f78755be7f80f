"""Notices workers whose Python cannot run Thalweg, before a job fails in them.

Spark starts workers with the Python that ``PYSPARK_PYTHON`` names, and else with the first ``python3`` on the path. A
program that runs in a virtual environment that is not activated therefore has workers outside of it. On a local master
the workers' Python is on this machine and can be asked; of a cluster's workers only a job knows (`thalweg doctor`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

NEEDED = ("numba", "numpy", "pyarrow", "thalweg")  # modules that workers import
SECONDS = 30.0  # that a Python may take to answer

# Run by the workers' Python. The places come first, as files that were added to the Spark context do in a worker.
QUESTION = """
import importlib.util, json, sys
sys.path[:0] = json.loads(sys.argv[1])
missing = [name for name in json.loads(sys.argv[2]) if importlib.util.find_spec(name) is None]
print(json.dumps({"version": list(sys.version_info[:2]), "missing": missing}))
"""


class WorkerPythonError(RuntimeError):
    """Spark's workers run a Python that cannot run Thalweg; the message says what to set."""


def check_worker_python() -> None:
    """Refuse to go on if the workers of a local master run a Python that lacks modules or has another version.

    It costs nothing where workers run the driver's Python, and else a start of the workers' Python, once.
    """
    from pyspark import SparkContext

    context: Any = SparkContext._active_spark_context  # noqa: SLF001 - PySpark has no public way to ask without starting Spark
    if context is None or not str(context.master).startswith("local"):
        return
    added = tuple(_added_files(context))
    problem = problem_of(context.pythonExec, added)
    if problem is not None:
        raise WorkerPythonError(problem)


@cache
def problem_of(python: str, places: Sequence[str] = ()) -> str | None:
    """Why a Python cannot run the workers of this program, and what to set; None if it can.

    `places` are folders and archives that workers look into as well.

    >>> import sys
    >>> problem_of(sys.executable) is None
    True
    """
    found = shutil.which(python)
    advice = f"set the environment variable PYSPARK_PYTHON={sys.executable} before Spark starts"
    if found is None:
        return f"Spark's workers shall run {python}, which is not there: {advice}"
    if Path(found).absolute().parent == Path(sys.executable).absolute().parent:
        return None
    question = [found, "-c", QUESTION, json.dumps(places), json.dumps(NEEDED)]
    try:
        answer = subprocess.run(question, capture_output=True, check=True, text=True, timeout=SECONDS)  # noqa: S603 - the Python that Spark will run
        told = json.loads(answer.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return f"Spark's workers run {found}, which does not start: {advice}"
    if told["missing"]:
        return f"Spark's workers run {found}, which has no {', '.join(told['missing'])}: {advice}"
    if tuple(told["version"]) != sys.version_info[:2]:
        theirs, ours = (".".join(map(str, version)) for version in (told["version"], sys.version_info[:2]))
        return f"Spark's workers run {found}, Python {theirs}, and this program runs Python {ours}: {advice}"
    return None


def _added_files(context: Any) -> list[str]:  # noqa: ANN401 - a Spark context
    """The files and folders that were added to the context for workers to import from."""
    from pyspark import SparkFiles

    includes = context._python_includes or ()  # noqa: SLF001 - as above
    return [os.path.join(SparkFiles.getRootDirectory(), name) for name in includes]  # noqa: PTH118 - text for another Python
