import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import thalweg
from thalweg_lab.figures import (
    BEGIN,
    END,
    SHIPPED_COSTS,
    Figure,
    bars,
    chart,
    demo_report,
    figures_of,
    join_graph,
    measured_part,
    releases_behind,
    with_table,
)
from thalweg_lab.how_figures import drawn_figures
from thalweg_lab.load_figures import drawn_load, shipped_costs
from thalweg_lab.measured_pages import measured_pages

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FIGURES = figures_of(DOCS)
MOST_RELEASES = 1  # that a figure may be older than the code
PAGES = [ROOT / "README.md", *(page for page in DOCS.rglob("*.md") if "decisions" not in page.parts)]
PICTURE = re.compile(r"!\[[^]]*\]\(([^)]+)\)")
MEASURED_PART = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
CODE_BLOCK = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"`((?:thalweg (?:bench|lab run|demo)|make (?:load|bench))\b[^`]*)`")
NO_FIGURE = re.compile(
    r"`[^`]*`|\]\([^)]*\)|[Dd]ecisions?\s\d{4}(?:(?:,|\sand|\sto)\s\d{4})*"
)  # digits that nobody measured


def measured_beside(text: str) -> Iterator[str]:
    """The measuring commands that stand in a paragraph or a line of a table with numbers."""
    for paragraph in re.split(r"\n\s*\n|\n(?=[-|#])", CODE_BLOCK.sub("", MEASURED_PART.sub("", text))):
        if re.search(r"\d", NO_FIGURE.sub("", paragraph)):
            yield from (found.partition(" --json")[0] for found in COMMAND.findall(paragraph))


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_a_figure_is_not_older_than_a_release(figure: Figure) -> None:
    behind = releases_behind(figure.version, thalweg.__version__)
    assert behind <= MOST_RELEASES, f"measure it again: {figure.command}"


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_a_figure_is_there_and_names_its_command(figure: Figure) -> None:
    assert figure.file is None or (DOCS / figure.file).is_file()
    assert figure.command.startswith(("thalweg ", "make "))
    if figure.page is not None:
        shown = figure.command.partition(" --json")[0]
        assert f"`{shown}" in (DOCS / figure.page).read_text(encoding="utf-8")


def test_every_picture_of_a_page_is_a_figure_whose_command_is_beside_it() -> None:
    commands = {(DOCS / figure.file).resolve(): figure.command for figure in FIGURES if figure.file}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for target in PICTURE.findall(text):
            picture = (page.parent / target).resolve()
            assert picture in commands, f"{page.name}: {target} is not in docs/figures.toml"
            assert f"`{commands[picture]}`" in text, f"{page.name} does not name the command of {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_number_beside_a_measuring_command_is_a_figure_of_the_page(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    pictures = {(page.parent / target).resolve() for target in PICTURE.findall(text)}
    known = {
        figure.command.partition(" --json")[0]
        for figure in FIGURES
        if (DOCS / (figure.page or "")).resolve() == page.resolve()
        or (figure.file and (DOCS / figure.file).resolve() in pictures)
    }
    missing = set(measured_beside(text)) - known
    assert not missing, f"{page.name} has figures of commands that docs/figures.toml does not have for it"


def test_numbers_beside_commands_are_found() -> None:
    paragraphs = [
        "`thalweg bench a` measures.",
        "It took 5 s (`thalweg bench b --json x`).",
        "`thalweg bench c`: decision 0001.",
    ]
    text = "\n\n".join(paragraphs)
    assert list(measured_beside(text)) == ["thalweg bench b"]


def test_measured_parts_tell_all_results_and_no_others() -> None:
    for page, part in measured_pages(DOCS, FIGURES).items():
        text = page.read_text(encoding="utf-8")
        assert with_table(text, part) == text, f"{page.name}: run thalweg lab figures"


@pytest.mark.parametrize(
    ("page", "picture"), [("README.md", "docs/figures/demo.svg"), ("docs/index.md", "figures/demo.svg")]
)
def test_pages_have_the_measured_figures_and_no_others(page: str, picture: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    is_measured = (DOCS / "figures" / "demo.json").is_file()
    if is_measured:
        assert with_table(text, measured_part(DOCS, picture)) == text
        assert (DOCS / "figures" / "demo.svg").read_text(encoding="utf-8") == bars(demo_report(DOCS))
    else:
        assert f"{BEGIN}\n\n{END}" in text


def test_pictures_are_drawn_by_the_code() -> None:
    assert "</svg>" in join_graph()
    assert "</svg>" in chart()
    for name, picture in drawn_figures().items():
        assert (DOCS / "figures" / name).read_text(encoding="utf-8") == picture, "run thalweg lab figures"


def test_pictures_and_costs_of_load_are_those_that_were_measured() -> None:
    for name, picture in drawn_load(DOCS).items():
        assert (DOCS / "figures" / name).read_text(encoding="utf-8") == picture, "run thalweg lab figures"
    assert (ROOT / SHIPPED_COSTS).read_text(encoding="utf-8") == shipped_costs(DOCS, FIGURES), "run thalweg lab figures"


def test_every_page_on_how_it_works_has_a_picture() -> None:
    for page in (DOCS / "how").glob("*.md"):
        assert PICTURE.search(page.read_text(encoding="utf-8")), page.name


def test_figures_are_of_this_shape() -> None:
    read = tomllib.loads((DOCS / "figures.toml").read_text(encoding="utf-8"))
    for entry in read["figures"].values():
        assert {"command", "version", "day"} <= entry.keys() <= {"file", "page", "command", "version", "day"}
        assert "file" in entry or "page" in entry
