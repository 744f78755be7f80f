"""The files that a run of an experiment leaves: rows and their report as JSON, rows as CSV, and the plot.

Knows the files. Must not know how the rows were measured.
"""

import csv
import io
import json
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from thalweg.output import finite, write_atomically, write_json
from thalweg_lab.experiments.experiment import Experiment, Row, Setting
from thalweg_lab.results import Report


@dataclass(frozen=True)
class Outcome:
    """The rows that an experiment measured, its settings, and the report of the rows."""

    experiment: str
    quick: bool
    version: str
    settings: list[Setting]
    rows: list[Row]
    report: Report

    @property
    def kind(self) -> str:
        """Whether the run was quick or full, in a word."""
        return "quick" if self.quick else "full"

    def write(self, folder: Path) -> None:
        """Write ID.json and ID.csv, each the whole file or nothing."""
        shape = {
            "experiment": self.experiment,
            "kind": self.kind,
            "version": self.version,
            "settings": finite(self.settings),
            "rows": finite(self.rows),
            "report": self.report.to_json(),
        }
        write_json(folder / f"{self.experiment}.json", shape)
        write_atomically(folder / f"{self.experiment}.csv", csv_text(self.rows))


def version() -> str:
    """Thalweg's version: rows of another version are not resumed from."""
    return metadata.version("thalweg")


def read(path: Path) -> Outcome:
    """Read an outcome from its file; the error says what to do with a file that holds no outcome."""
    try:
        shape = json.loads(path.read_text())
        return Outcome(
            shape["experiment"],
            shape["kind"] == "quick",
            shape["version"],
            shape["settings"],
            shape["rows"],
            Report.from_json(shape["report"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} is not what `thalweg lab run` writes ({type(error).__name__}: {error}); "
            "delete it or run the experiment again"
        ) from None


def stored(folder: Path, experiment: Experiment, *, quick: bool) -> Outcome | None:
    """The outcome in a folder to resume from, if it has the same kind, version and settings."""
    path = folder / f"{experiment.id}.json"
    try:
        outcome = read(path) if path.exists() else None
    except ValueError:
        return None
    if outcome is None or outcome.quick != quick or outcome.version != version():
        return None
    # Compared as JSON, as it was stored: a tuple in a setting comes back as a list.
    return outcome if outcome.settings == json.loads(json.dumps(finite(experiment.settings(quick)))) else None


def csv_text(rows: list[Row]) -> str:
    r"""Rows as CSV; the columns are all keys, in the order they first appear.

    >>> print(csv_text([{"n": 2, "rate": 1.5}, {"n": 3, "policy": "sweep"}]).replace("\r", ""), end="")
    n,rate,policy
    2,1.5,
    3,,sweep
    """
    columns = dict.fromkeys(key for row in rows for key in row)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def draw(experiment: Experiment, rows: list[Row], folder: Path) -> None:
    """Draw an experiment's plot as ID.png and ID.svg; the same rows always give the same files."""
    if experiment.plot is None:
        return
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "thalweg", "axes.grid": True, "axes.axisbelow": True, "grid.alpha": 0.3}):
        figure = Figure(figsize=(7, 4.5), layout="constrained")
        experiment.plot(rows, figure)
        figure.suptitle(f"{experiment.title} ({experiment.source})", fontsize=10)
        for kind, extra in (("png", {"dpi": 150}), ("svg", {"metadata": {"Date": None}})):
            image = io.BytesIO()
            figure.savefig(image, format=kind, **extra)
            write_atomically(folder / f"{experiment.id}.{kind}", image.getvalue())
