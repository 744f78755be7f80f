"""Writes measured results into pages of the documentation, from the files that commands wrote with `--json FILE`.

Every result of a file is told, whether its target held or not. Must not know how results were measured.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from thalweg.output import format_value
from thalweg_lab.figures import Figure
from thalweg_lab.load_figures import sizing_part
from thalweg_lab.results import Report, Result

HEADINGS = ("scenario", "measure", "value", "target", "held", "note")
RULE = "|---|---|---:|---|---|---|"


def measured_pages(docs: Path, figures: Iterable[Figure]) -> dict[Path, str]:
    """The measured part of each page that has one, by the path of the page."""
    parts: dict[Path, list[str]] = {}
    for figure in figures:
        if figure.page is not None and figure.file is not None:
            report = Report.from_json(json.loads((docs / figure.file).read_text(encoding="utf-8")))
            parts.setdefault(docs / figure.page, []).append(section(figure, report))
    leads = {docs / "guides" / "sizing.md": sizing_part}
    return {
        page: "\n\n".join([*(lead(docs) for of, lead in leads.items() if of == page), *sections])
        for page, sections in parts.items()
    }


def section(figure: Figure, report: Report) -> str:
    """A command, its machine, how many targets held, a table of all results, and their notes.

    >>> from datetime import date
    >>> from thalweg_lab.results import at_least
    >>> figure = Figure("speed", "speed.json", "thalweg bench speed --json speed.json", "0.1.0", date(2026, 1, 1))
    >>> report = Report("speed", 60.0, {"cpu": "a chip", "cores": 2}, (at_least("n = 8", "speed-up", 6.0, 5, "cold"),))
    >>> print(section(figure, report))
    ### `thalweg bench speed`
    <BLANKLINE>
    1 of 1 target held; 60 s on 2 cores (a chip), version 0.1.0, 2026-01-01.
    <BLANKLINE>
    | scenario | measure | value | target | held | note |
    |---|---|---:|---|---|---|
    | n = 8 | speed-up | 6 | >= 5 | yes | 1 |
    <BLANKLINE>
    1. cold
    """
    held, count = sum(result.holds for result in report.results), len(report.results)
    command = figure.command.partition(" --json")[0]
    targets = f"{held} of {count} target{'s' if count > 1 else ''} held"
    place = f"{report.machine['cores']} cores ({report.machine['cpu']})"
    found = [result.note for result in report.results if result.note]
    notes = {note: number for number, note in enumerate(dict.fromkeys(found), 1)}
    lines = [
        f"### `{command}`",
        "",
        f"{targets}; {report.seconds:.0f} s on {place}, version {figure.version}, {figure.day}.",
        "",
        _line(HEADINGS),
        RULE,
        *(_line((*_cells(result), str(notes.get(result.note, "")))) for result in report.results),
    ]
    return "\n".join([*lines, "", *(f"{number}. {note}" for note, number in notes.items())]).rstrip()


def _cells(result: Result) -> tuple[str, ...]:
    held = "yes" if result.holds else "**no**"
    return result.scenario, result.measure, format_value(result.value), result.target, held


def _line(cells: Iterable[str]) -> str:
    texts = (cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
    return f"| {' | '.join(texts)} |"
