"""A chart as a heat map: text for the terminal, SVG, and PNG with Matplotlib.

Two dimensions are drawn, the first upwards and the second to the right. Of a chart with more dimensions the two are
chosen by name, and the regions shown are those around the current point. Matplotlib, which is part of the `lab` extra,
is imported only for PNG.
"""

from __future__ import annotations

import io
import os
import string
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from thalweg.charts.chart import Chart, Dimension

LETTERS = string.ascii_uppercase + string.digits
HERE = "@"
# Okabe and Ito's colours, which colour-blind readers can tell apart.
COLOURS = ("#56b4e9", "#e69f00", "#009e73", "#f0e442", "#cc79a7", "#0072b2", "#d55e00", "#999999")
CELL = 16  # pixels of a region's side
MARGIN = 60  # pixels around the regions
INCHES = (7.0, 4.5)


@dataclass(frozen=True)
class HeatMap:
    """Two dimensions of a chart, at a point, with the points before it.

    `plans` has a row for each part of the dimension that goes up, from the lowest; `here` and `trail` are places as
    shares of both ranges: to the right, then up.
    """

    up: Dimension
    right: Dimension
    plans: NDArray[np.unsignedinteger]
    here: tuple[float, float]
    trail: tuple[tuple[float, float], ...]

    def __str__(self) -> str:
        return as_text(self)

    def _repr_svg_(self) -> str:
        """How a notebook shows it."""
        return as_svg(self)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Draw it into a file: an image if its name ends in .png or .svg, letters if it ends in .txt."""
        path = Path(file)
        kinds = {".png": as_png, ".svg": lambda picture: as_svg(picture).encode(), ".txt": _text_file}
        if path.suffix not in kinds:
            raise ValueError(f"a chart is drawn into a file that ends in {', '.join(kinds)}, not {path.name!r}")
        path.write_bytes(kinds[path.suffix](self))

    @property
    def numbers(self) -> list[int]:
        """The plans that occur, by number."""
        return [int(number) for number in np.unique(self.plans)]


def heat_map(
    chart: Chart, point: Sequence[float], trail: Sequence[Sequence[float]] = (), axes: tuple[int, int] = (0, 1)
) -> HeatMap:
    """The heat map of a chart at a point; `axes` are the dimensions that go up and to the right.

    A chart with one dimension is drawn as one row.
    """
    region = chart.region(point)
    if len(chart.dimensions) == 1:
        only = chart.dimensions[0]
        row = Dimension("all", 0.0, 1.0)
        places = [(only.share(each[0]), 0.5) for each in (point, *trail)]
        return HeatMap(row, only, chart.plans[np.newaxis, :], places[0], tuple(places[1:]))
    up, right = axes
    shown = chart.plans[tuple(slice(None) if axis in axes else place for axis, place in enumerate(region))]
    if up > right:
        shown = shown.T
    dimensions = chart.dimensions
    places = [(dimensions[right].share(each[right]), dimensions[up].share(each[up])) for each in (point, *trail)]
    return HeatMap(dimensions[up], dimensions[right], shown, places[0], tuple(places[1:]))


def as_text(picture: HeatMap) -> str:
    """Letters for plans, lower case where the trail went, and @ for the current point.

    >>> from thalweg.charts.chart import build_chart
    >>> dimensions = [Dimension("selectivity of T", 0.0, 1.0), Dimension("rate of T", 0.0, 100.0)]
    >>> chart = build_chart(dimensions, 4, lambda points: [points[0], 0.5 + 0.0 * points[1]])
    >>> print(as_text(heat_map(chart, (0.9, 80.0), trail=[(0.1, 20.0)])))
    selectivity of T
       1 BBB@
         BBBB
         AAAA
       0 aAAA
         0  100  rate of T
    """
    rows, columns = picture.plans.shape
    cells = [[LETTERS[number % len(LETTERS)] for number in row] for row in picture.plans.tolist()]
    for right, up in picture.trail:
        row, column = _cell(up, rows), _cell(right, columns)
        cells[row][column] = cells[row][column].lower()
    cells[_cell(picture.here[1], rows)][_cell(picture.here[0], columns)] = HERE
    bounds = {rows - 1: f"{picture.up.high:.4g}", 0: f"{picture.up.low:.4g}"}
    width = max(4, *map(len, bounds.values()))
    lines = [f"{bounds.get(row, ''):>{width}} {''.join(cells[row])}" for row in reversed(range(rows))]
    scale = f"{picture.right.low:.4g}  {picture.right.high:.4g}  {picture.right.label}"
    return "\n".join([picture.up.label, *lines, f"{'':>{width}} {scale}"])


def as_svg(picture: HeatMap) -> str:
    """An SVG image with a colour for each plan. The same picture always gives the same text."""
    rows, columns = picture.plans.shape
    width, height = columns * CELL, rows * CELL
    size = f'width="{width + 2 * MARGIN}" height="{height + 2 * MARGIN}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">']
    for row, numbers in enumerate(picture.plans.tolist()):
        top = MARGIN + (rows - 1 - row) * CELL
        for first, last, number in _runs(numbers):
            parts.append(
                f'<rect x="{MARGIN + first * CELL}" y="{top}" width="{(last - first) * CELL}" height="{CELL}" '
                f'fill="{_colour(number)}"/>'
            )
    places = [(MARGIN + right * width, MARGIN + (1.0 - up) * height) for right, up in (*picture.trail, picture.here)]
    if picture.trail:
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{points}" fill="none" stroke="black" stroke-opacity="0.5"/>')
    x, y = places[-1]
    parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="white" stroke="black" stroke-width="2"/>')
    bottom = MARGIN + height + 14
    parts += [
        _label(MARGIN, MARGIN - 8, picture.up.label, "start"),
        _label(MARGIN - 4, MARGIN + 10, f"{picture.up.high:.4g}", "end"),
        _label(MARGIN - 4, MARGIN + height, f"{picture.up.low:.4g}", "end"),
        _label(MARGIN, bottom, f"{picture.right.low:.4g}", "start"),
        _label(MARGIN + width, bottom, f"{picture.right.high:.4g}", "end"),
        _label(MARGIN + width / 2, bottom + 14, picture.right.label, "middle"),
    ]
    for place, number in enumerate(picture.numbers):
        left = MARGIN + width + 8
        parts.append(f'<rect x="{left}" y="{MARGIN + 16 * place}" width="10" height="10" fill="{_colour(number)}"/>')
        parts.append(_label(left + 14, MARGIN + 16 * place + 9, LETTERS[number % len(LETTERS)], "start"))
    return "\n".join([*parts, "</svg>"])


def as_png(picture: HeatMap) -> bytes:
    """A PNG image, drawn by Matplotlib."""
    try:
        from matplotlib.colors import ListedColormap
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError("PNG images need Matplotlib; install it with thalweg's extra 'lab', or draw SVG") from None
    figure = Figure(figsize=INCHES, layout="constrained")
    axes = figure.subplots()
    numbers = picture.numbers
    axes.imshow(
        np.searchsorted(numbers, picture.plans),
        origin="lower",
        aspect="auto",
        extent=(0.0, 1.0, 0.0, 1.0),
        cmap=ListedColormap([_colour(number) for number in numbers]),
        vmin=-0.5,
        vmax=len(numbers) - 0.5,
    )
    xs, ys = np.array([*picture.trail, picture.here]).T
    axes.plot(xs, ys, color="black", alpha=0.5)
    axes.plot(xs[-1:], ys[-1:], "o", color="white", markeredgecolor="black", markersize=9)
    for number in numbers:
        axes.plot([], [], "s", color=_colour(number), label=LETTERS[number % len(LETTERS)])
    axes.legend(title="plan", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    axes.set_xticks((0.0, 1.0), [f"{picture.right.low:.4g}", f"{picture.right.high:.4g}"])
    axes.set_yticks((0.0, 1.0), [f"{picture.up.low:.4g}", f"{picture.up.high:.4g}"])
    axes.set_xlabel(picture.right.label)
    axes.set_ylabel(picture.up.label)
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=150)
    return image.getvalue()


def _text_file(picture: HeatMap) -> bytes:
    return f"{as_text(picture)}\n".encode()


def _cell(share: float, cells: int) -> int:
    return min(int(share * cells), cells - 1)


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _runs(numbers: Sequence[int]) -> list[tuple[int, int, int]]:
    """Neighbours with one plan: first place, place after the last, plan.

    >>> _runs([3, 3, 5])
    [(0, 2, 3), (2, 3, 5)]
    """
    starts = [place for place, number in enumerate(numbers) if place == 0 or number != numbers[place - 1]]
    ends = [*starts[1:], len(numbers)]
    return [(first, last, numbers[first]) for first, last in zip(starts, ends, strict=True)]


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'
