"""Sets each claim of the papers beside the measurement, as Markdown and as one self-contained HTML page.

Reads the files that a run left. Must not know how they were measured, nor Spark.
"""

import base64
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from thalweg.output import Value, format_value, write_atomically
from thalweg_lab.experiments.experiment import Experiment
from thalweg_lab.experiments.outcome import Outcome, read
from thalweg_lab.results import Result

HEADINGS = ("scenario", "measure", "measured", "expected", "holds", "note")

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; font-size: .9rem; }
th, td { border: 1px solid #8884; padding: .3rem .6rem; text-align: left; vertical-align: top; }
td.value { text-align: right; font-variant-numeric: tabular-nums; }
td.yes { color: #1a7f37; } td.no { color: #cf222e; font-weight: bold; }
img { max-width: 100%; background: white; }
.about { color: #888; font-size: .85rem; }
"""


def write_report(experiments: Sequence[Experiment], out: Path) -> dict[str, Outcome]:
    """Write `report.md` and `report.html` of the outcomes in a folder; return these outcomes, by id."""
    paths = {experiment.id: out / f"{experiment.id}.json" for experiment in experiments}
    outcomes = {name: read(path) for name, path in paths.items() if path.exists()}
    plots = {path.stem: path.read_bytes() for path in out.glob("*.svg")}
    write_atomically(out / "report.md", markdown(experiments, outcomes, plots))
    write_atomically(out / "report.html", html(experiments, outcomes, plots))
    return outcomes


def summary(experiments: Sequence[Experiment], outcomes: Mapping[str, Outcome]) -> str:
    """A sentence with the numbers of experiments that ran and of claims that hold.

    >>> summary([], {})
    '0 of 0 experiments were run; 0 of 0 claims hold.'
    """
    results = [result for outcome in outcomes.values() for result in outcome.report.results]
    return (
        f"{len(outcomes)} of {len(experiments)} experiments were run; "
        f"{sum(result.holds for result in results)} of {len(results)} claims hold."
    )


def markdown(experiments: Sequence[Experiment], outcomes: Mapping[str, Outcome], plots: Mapping[str, bytes]) -> str:
    """The report as Markdown, with links to the plots beside it."""
    parts = ["# The papers' claims, measured", summary(experiments, outcomes)]
    for experiment in experiments:
        parts += [f"## {experiment.id}: {experiment.title}", f"*{experiment.source}.* {experiment.claim}."]
        outcome = outcomes.get(experiment.id)
        if outcome is None:
            parts.append(_not_run(experiment))
            continue
        cells = [_cells(result) for result in outcome.report.results]
        lines = [HEADINGS, ("---",) * len(HEADINGS), *cells]
        parts.append("\n".join("| " + " | ".join(map(_markdown_cell, line)) + " |" for line in lines))
        if experiment.id in plots:
            parts.append(f"![{experiment.title}]({experiment.id}.svg)")
        parts.append(_about(outcome))
    return "\n\n".join(parts) + "\n"


def html(experiments: Sequence[Experiment], outcomes: Mapping[str, Outcome], plots: Mapping[str, bytes]) -> str:
    """The report as one HTML page that needs no other file."""
    parts = ["<h1>The papers' claims, measured</h1>", f"<p>{escape(summary(experiments, outcomes))}</p>"]
    for experiment in experiments:
        parts.append(f'<h2 id="{escape(experiment.id)}">{escape(experiment.id)}: {escape(experiment.title)}</h2>')
        parts.append(f"<p><em>{escape(experiment.source)}.</em> {escape(experiment.claim)}.</p>")
        outcome = outcomes.get(experiment.id)
        if outcome is None:
            parts.append(f"<p>{escape(_not_run(experiment))}</p>")
            continue
        head = "".join(f"<th>{heading}</th>" for heading in HEADINGS)
        body = "\n".join(f"<tr>{_html_cells(result)}</tr>" for result in outcome.report.results)
        parts.append(f"<table><tr>{head}</tr>\n{body}</table>")
        if experiment.id in plots:
            # As an image, not inline: two inline drawings would share the names of their parts.
            image = base64.b64encode(plots[experiment.id]).decode()
            parts.append(f'<img alt="{escape(experiment.title)}" src="data:image/svg+xml;base64,{image}">')
        parts.append(f'<p class="about">{escape(_about(outcome))}</p>')
    head = f"<meta charset='utf-8'><title>Thalweg lab</title><style>{STYLE}</style>"
    body = "\n".join(parts)
    return f"<!doctype html>\n<html lang='en'>\n<head>{head}</head>\n<body>\n{body}\n</body>\n</html>\n"


def show_summary(experiments: Sequence[Experiment], outcomes: Mapping[str, Outcome], console: Console) -> None:
    """Print a line for each experiment: the paper's claim, and how many of its parts hold."""
    table = Table("id", "source", "claim", "run", "holds")
    for experiment in experiments:
        outcome = outcomes.get(experiment.id)
        results = () if outcome is None else outcome.report.results
        held = sum(result.holds for result in results)
        style = "dim" if outcome is None else "green" if held == len(results) else "bold red"
        holds = Text(f"{held} of {len(results)}" if outcome else "-", style=style)
        words = (experiment.id, experiment.source, experiment.claim, outcome.kind if outcome else "not run")
        table.add_row(*map(Text, words), holds)
    console.print(table)
    console.print(summary(experiments, outcomes), highlight=False)


def _cells(result: Result) -> tuple[str, ...]:
    holds = "yes" if result.holds else "no"
    return result.scenario, result.measure, format_value(result.value), result.target, holds, result.note


def _markdown_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _html_cells(result: Result) -> str:
    classes = ("", "", "value", "", "yes" if result.holds else "no", "")
    return "".join(
        f'<td class="{name}">{escape(text)}</td>' for name, text in zip(classes, _cells(result), strict=True)
    )


def _not_run(experiment: Experiment) -> str:
    return f"Not run: `thalweg lab run {experiment.id}`."


def _about(outcome: Outcome) -> str:
    def described(key: str) -> Value:
        return outcome.report.machine.get(key)

    return (
        f"A {outcome.kind} run, {outcome.report.seconds:.1f} s of measuring, thalweg {outcome.version}, "
        f"Python {described('python')}, Spark {described('pyspark')}, {described('cores')} cores of "
        f"{described('cpu')}, {described('memory_gib')} GiB."
    )
