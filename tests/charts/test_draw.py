import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from thalweg.charts import Chart, Dimension, build_chart
from thalweg.charts.draw import as_png, as_svg, as_text, heat_map

UP, RIGHT, DEEP = (
    Dimension("selectivity of <T>", 0.0, 1.0),
    Dimension("rate of T", 0.0, 100.0),
    Dimension("z", 0.0, 8.0),
)


def flat() -> Chart:
    return build_chart([UP, RIGHT], 4, lambda points: [points[0] * 100, points[1]])


def deep() -> Chart:
    return build_chart([UP, RIGHT, DEEP], 4, lambda points: [points[0] * 100, points[1], 20 * points[2]])


def test_text_shows_plans_trail_and_point() -> None:
    text = as_text(heat_map(flat(), (0.6, 10.0), trail=[(0.1, 99.0), (0.6, 99.0), (2.0, 99.0)]))
    assert text.splitlines() == [
        "selectivity of <T>",
        "   1 BBBa",
        "     @BAa",
        "     BAAA",
        "   0 AAAa",
        "     0  100  rate of T",
    ]


def test_a_chart_of_three_dimensions_is_cut_where_the_point_is() -> None:
    low, high = (heat_map(deep(), (0.5, 50.0, depth)) for depth in (0.0, 8.0))
    assert low.plans.tolist() != high.plans.tolist()
    assert high.plans.tolist() == deep().plans[:, :, 3].tolist()
    turned = heat_map(deep(), (0.5, 50.0, 8.0), axes=(1, 0))
    assert turned.plans.tolist() == high.plans.T.tolist()
    assert (turned.up, turned.right) == (RIGHT, UP)


def test_a_chart_of_one_dimension_is_a_row() -> None:
    chart = build_chart([RIGHT], 4, lambda points: [points[0], 50.0])
    assert as_text(heat_map(chart, [10.0])).splitlines()[1] == "   0 @ABB"


def test_svg_is_well_formed_escaped_and_always_the_same() -> None:
    image = as_svg(heat_map(flat(), (0.6, 10.0), trail=[(0.1, 99.0)]))
    root = ET.fromstring(image)  # noqa: S314 - it was made in the line before
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"selectivity of <T>", "rate of T", "A", "B"} <= set(texts)
    assert image == as_svg(heat_map(flat(), (0.6, 10.0), trail=[(0.1, 99.0)]))


@pytest.mark.parametrize("trail", [[], [(0.1, 99.0), (0.5, 3.0)]])
def test_png_is_drawn(trail: list[tuple[float, float]]) -> None:
    pytest.importorskip("matplotlib")
    assert as_png(heat_map(flat(), (0.6, 10.0), trail=trail)).startswith(b"\x89PNG")


def test_a_picture_shows_and_saves_itself(tmp_path: Path) -> None:
    picture = heat_map(flat(), (0.6, 10.0))
    for ending in ("txt", "svg", "png"):
        picture.save(tmp_path / f"chart.{ending}")
    assert (tmp_path / "chart.txt").read_text() == f"{picture}\n" == f"{as_text(picture)}\n"
    assert (tmp_path / "chart.svg").read_text() == picture._repr_svg_() == as_svg(picture)
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match=r"ends in \.png, \.svg, \.txt, not 'chart.gif'"):
        picture.save("chart.gif")


def test_matplotlib_is_imported_only_for_png() -> None:
    script = "import sys, thalweg.charts.draw; print({'matplotlib', 'sqlglot', 'pyspark'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
