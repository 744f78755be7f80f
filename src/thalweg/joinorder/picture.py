"""A join graph as a picture: streams on a line, around a hub or on a circle, predicates between them.

Matplotlib, which is part of the `lab` extra, is imported only when a picture is drawn.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from thalweg.joinorder.graph import GraphShape, JoinGraph

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from thalweg.ordering.types import Floats

KINDS = ("svg", "png")
INCHES_PER_STREAM = 0.5
SMALLEST, LARGEST = 4.0, 16.0  # inches
MANY = 30  # predicates; more are drawn without their selectivities, which would be unreadable


def picture(graph: JoinGraph, kind: str) -> bytes:
    """The picture as a file's content: "svg" or "png". The same graph always gives the same bytes."""
    if kind not in KINDS:
        raise ValueError(f"pictures are {' or '.join(KINDS)} files, not {kind!r}")
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError("pictures need Matplotlib; install it with thalweg's extra 'lab'") from None
    side = float(np.clip(INCHES_PER_STREAM * len(graph.streams), SMALLEST, LARGEST))
    with mpl.rc_context({"svg.hashsalt": "thalweg", "svg.fonttype": "none"}):
        figure = Figure(figsize=(1.4 * side, side), layout="constrained")
        draw(graph, figure)
        image = io.BytesIO()
        figure.savefig(image, format=kind, **({"metadata": {"Date": None}} if kind == "svg" else {"dpi": 150}))
    return image.getvalue()


def places(graph: JoinGraph) -> Floats:
    """Where each stream goes: x and y, a row each.

    >>> graph = JoinGraph.from_text("A.k = B.k AND B.l = C.l")
    >>> places(graph).tolist()
    [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]
    """
    streams = len(graph.streams)
    degrees = graph.adjacent.sum(axis=0)
    if graph.shape is GraphShape.LINEAR:
        order = [int(degrees.argmin())]
        while len(order) < streams:
            order += [
                neighbour for neighbour in np.flatnonzero(graph.adjacent[order[-1]]).tolist() if neighbour not in order
            ]
        where = np.zeros((streams, 2))
        where[order, 0] = np.arange(streams)
        return where
    hub = int(degrees.argmax()) if graph.shape is GraphShape.STAR else -1
    angles = np.linspace(0.5 * np.pi, -1.5 * np.pi, streams - (hub >= 0), endpoint=False)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    return np.insert(circle, hub, 0.0, axis=0) if hub >= 0 else circle


def draw(graph: JoinGraph, figure: Figure) -> None:
    """Draw a graph on an empty figure."""
    axes = figure.subplots()
    where = places(graph)
    pairs = np.argwhere(np.triu(graph.adjacent)).tolist()
    for left, right in pairs:
        axes.plot(*where[[left, right]].T, color="#888888", zorder=1)
        if len(pairs) <= MANY:
            x, y = 0.6 * where[left] + 0.4 * where[right]  # off the middle, where lines of a circle cross
            label = f"{graph.selectivities[left, right]:.3g}"
            axes.text(x, y, label, size=8, ha="center", va="center", bbox={"fc": "white", "ec": "none", "pad": 1})
    for stream, (x, y) in zip(graph.streams, where, strict=True):
        label = f"{stream.name}\n{stream.rate:.4g}/s × {stream.window:.4g} s"
        box = {"boxstyle": "round", "fc": "#d9ebf7", "ec": "#0072b2"}
        axes.text(x, y, label, size=9, ha="center", va="center", bbox=box, zorder=2, parse_math=False)
    axes.set_title(f"{graph.shape} join of {len(graph.streams)} streams")
    axes.margins(0.2)
    axes.set_axis_off()
