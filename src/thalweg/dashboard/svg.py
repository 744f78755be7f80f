"""The ladder of an order and the join graph as static SVG, for notebooks: the page's drawings without their motion.

Colours take the notebook's text colour where they can, so that pictures are readable on light and dark ground. Every
text of a user is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

FLOW = "#0e8aa0"  # readable on white and on black
WIDTH = 640
RUNG, GAP = 46, 6
GRAPH_WIDTH, GRAPH_HEIGHT = 460, 300
LONGEST = 48  # letters of a name in a ladder
LONGEST_NODE = 14  # and in a graph


def html_of(explanation: Mapping[str, Sequence[Mapping[str, Any]]], text: str) -> str:
    """The pictures of an explanation, as `Explanation.to_dict` has it, and its text below them.

    >>> page = html_of({"wheres": [], "joins": [], "sessions": []}, "x < 3")
    >>> "x &lt; 3" in page
    True
    """
    pictures = [ladder(each) for each in explanation["wheres"]] + [graph(each) for each in explanation["joins"]]
    summary = "<summary>as text</summary>"
    opened = "" if pictures else " open"
    return f"<div>{''.join(pictures)}<details{opened}>{summary}<pre>{escape(text)}</pre></details></div>"


def ladder(description: Mapping[str, Any]) -> str:
    """The order of the predicates of a `tw.where`, each with the share of rows that it drops now and so far.

    >>> predicate = {"name": "<b>", "runs_in": "Python", "drop_rate": 0.5, "profile_drop_share": None}
    >>> "&lt;b&gt;" in ladder({"predicates": [predicate], "as_written": ["<b>"]})
    True
    """
    predicates = description["predicates"]
    written = list(description["as_written"])
    height = len(predicates) * (RUNG + GAP)
    parts = [_svg(WIDTH, height, f"The order of {len(predicates)} predicates")]
    for place, predicate in enumerate(predicates):
        rate, seen = predicate.get("drop_rate"), predicate.get("rows_seen")
        dropped = predicate.get("profile_drop_share")
        dropped = rate if dropped is None else dropped
        told = "nothing known yet" if dropped is None else f"drops {dropped:.1%} now"
        told += "" if rate is None or seen is None else f"; {rate:.1%} of {seen:,} rows so far"
        as_written = written.index(predicate["name"]) if predicate["name"] in written else place
        moved = "as written" if as_written == place else f"written at place {as_written + 1}"
        top = place * (RUNG + GAP)
        parts += [
            _frame(top),
            _text(22, top + 28, str(place + 1), "middle", bold=True),
            _text(44, top + 19, _short(predicate["name"], LONGEST), bold=True),
            _text(WIDTH - 12, top + 19, f"{predicate['runs_in']} · {moved}", "end", faint=True),
            f'<rect x="44" y="{top + 29}" width="200" height="6" rx="3" fill="currentColor" fill-opacity=".12"/>',
            f'<rect x="44" y="{top + 29}" width="{200 * (dropped or 0.0):.1f}" height="6" rx="3" fill="{FLOW}"/>',
            _text(256, top + 37, told, faint=True),
        ]
    return "".join([*parts, "</svg>"])


def graph(description: Mapping[str, Any]) -> str:
    """The join graph of a `tw.join`, with selectivities on its edges, and the order in which each input probes."""
    names, edges = list(description["inputs"]), description["edges"]
    places = _places(names)
    height = GRAPH_HEIGHT + 22 * len(names)
    parts = [_svg(GRAPH_WIDTH, height, f"A {description['shape']} join of {len(names)} inputs")]
    for edge in edges:
        (x1, y1), (x2, y2) = places[edge["left"]], places[edge["right"]]
        line = f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
        parts.append(f'{line} stroke="currentColor" stroke-opacity=".45"/>')
        x, y = 0.58 * x1 + 0.42 * x2, 0.58 * y1 + 0.42 * y2  # off the middle, where edges cross
        parts.append(_text(x + 6, y - 4, f"{edge['selectivity']:.3g}"))
    for name in names:
        x, y = places[name]
        box = f'<rect x="{x - 58:.1f}" y="{y - 16:.1f}" width="116" height="32" rx="8"'
        parts.append(f'{box} fill="{FLOW}"/>')
        parts.append(_text(x, y + 4, _short(name, LONGEST_NODE), "middle", bold=True, fill="#ffffff"))
    for place, name in enumerate(names):
        orders = description["orders"].get(name) or ()
        probes = " → ".join(orders[0]["order"]) if orders else "-"
        parts.append(_text(8, GRAPH_HEIGHT + 16 + 22 * place, _short(f"{name} probes {probes}", 2 * LONGEST)))
    return "".join([*parts, "</svg>"])


def _frame(top: float) -> str:
    size = f'width="{WIDTH - 1}" height="{RUNG - 1}" rx="8"'
    return f'<rect x=".5" y="{top + 0.5}" {size} fill="none" stroke="currentColor" stroke-opacity=".25"/>'


def _places(names: Sequence[str]) -> dict[str, tuple[float, float]]:
    """On a circle, the first input at the top; two inputs side by side."""
    turn = math.pi if len(names) == 2 else -math.pi / 2  # noqa: PLR2004 - as it says
    angles = {name: turn + 2 * math.pi * place / len(names) for place, name in enumerate(names)}
    return {
        name: (GRAPH_WIDTH / 2 + 165 * math.cos(angle), GRAPH_HEIGHT / 2 + 108 * math.sin(angle))
        for name, angle in angles.items()
    }


def _svg(width: int, height: int, label: str) -> str:
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    look = 'font-family="system-ui, sans-serif" font-size="13" style="max-width:100%;height:auto;display:block"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(label)}" {look}>'


def _text(
    x: float,
    y: float,
    text: str,
    anchor: str = "start",
    *,
    bold: bool = False,
    faint: bool = False,
    fill: str = "currentColor",
) -> str:
    weight = ' font-weight="600"' if bold else ""
    opacity = ' fill-opacity=".75" font-size="12"' if faint else ""
    at = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {at} fill="{fill}"{weight}{opacity}>{escape(text)}</text>'


def _short(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
