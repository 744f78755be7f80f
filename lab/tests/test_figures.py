import re
import tomllib
from pathlib import Path

import pytest

import thalweg
from thalweg_lab.figures import (
    BEGIN,
    END,
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

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FIGURES = figures_of(DOCS)
MOST_RELEASES = 1  # that a figure may be older than the code
PAGES = [ROOT / "README.md", *DOCS.rglob("*.md")]


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_a_figure_is_not_older_than_a_release(figure: Figure) -> None:
    behind = releases_behind(figure.version, thalweg.__version__)
    assert behind <= MOST_RELEASES, f"measure it again: {figure.command}"


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_a_figure_is_there_and_names_its_command(figure: Figure) -> None:
    assert (DOCS / figure.file).is_file()
    assert figure.command.startswith("thalweg ")


def test_every_picture_of_a_page_is_a_figure_with_a_command() -> None:
    known = {(DOCS / figure.file).resolve() for figure in FIGURES}
    for page in PAGES:
        for target in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).resolve() in known, f"{page.name}: {target} is not in docs/figures.toml"


@pytest.mark.parametrize(
    ("page", "picture"), [("README.md", "docs/figures/demo.svg"), ("docs/index.md", "figures/demo.svg")]
)
def test_pages_have_the_measured_figures_and_no_others(page: str, picture: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    is_measured = (DOCS / "figures" / "demo.json").is_file()
    if is_measured:
        assert with_table(text, measured_part(demo_report(DOCS), picture)) == text
        assert (DOCS / "figures" / "demo.svg").read_text(encoding="utf-8") == bars(demo_report(DOCS))
    else:
        assert f"{BEGIN}\n{END}" in text


def test_pictures_are_drawn_by_the_code() -> None:
    assert "</svg>" in join_graph()
    assert "</svg>" in chart()


def test_figures_are_of_this_shape() -> None:
    read = tomllib.loads((DOCS / "figures.toml").read_text(encoding="utf-8"))
    assert {key for entry in read["figures"].values() for key in entry} == {"file", "command", "version", "day"}
