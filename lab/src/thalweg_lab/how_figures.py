"""Draws the figures of the pages on how Thalweg works, with the optimizer's own objects: nothing is drawn by hand.

Every figure is an example with few numbers, and the same on each machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from thalweg.drift.detector import estimate
from thalweg.drift.glr import GLR
from thalweg.mjoin.shares import choose_shares
from thalweg.ordering import AGreedy, Independent, Policy

WIDTH = 640
STYLE = (
    "<style>text{font:13px sans-serif;fill:#24292f}.faint{fill:#57606a}line,.frame{stroke:#8c959f;fill:none}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.faint{fill:#9da7b0}}</style>"
)
BLUE, GREY, ORANGE = "#0072b2", "#9aa0a6", "#d55e00"  # Okabe and Ito's, which colour-blind readers can tell apart

# Of 100 rows: predicates 0 and 1 drop the same 45, predicate 2 drops 40 others, and 15 are kept.
MASKS = (0b011,) * 45 + (0b100,) * 40 + (0b000,) * 15
# Of 100 rows of each country: in NL predicate 0 drops 90 and predicate 1 drops 10 others; in DK it is the reverse.
COUNTRIES = {"NL": (0b01,) * 90 + (0b10,) * 10, "DK": (0b10,) * 90 + (0b01,) * 10}

ESTIMATES, CHANGE, RATES = 120, 60, (0.3, 0.5)  # the drop rate before and after the change
JOIN = {"R1": frozenset([0]), "R2": frozenset([0, 1]), "R3": frozenset([1])}  # R1.a = R2.a AND R2.b = R3.b
ROWS = {"R1": "a = 17", "R3": "b = 5", "R2": "a = 17, b = 5"}
PLACES = (1, 2)  # of these values of a and of b, along the two sides of the grid
CELLS = 12


def reached(masks: Sequence[int], order: Sequence[int]) -> list[int]:
    """How many rows reach each predicate of an order.

    >>> reached(MASKS, (0, 1, 2)), reached(MASKS, (0, 2, 1))
    ([100, 55, 55], [100, 55, 15])
    """
    alive, counts = list(masks), []
    for predicate in order:
        counts.append(len(alive))
        alive = [mask for mask in alive if not mask >> predicate & 1]
    return counts


def learnt(policy: Policy, masks: Sequence[int]) -> tuple[int, ...]:
    """The order that a policy learns from drop masks."""
    policy.update(masks)
    return policy.order


def ordering() -> str:
    """The rows that reach each predicate, in the order of separate drop rates and in the order of joint counts."""
    orders = {
        "by separate drop rates": learnt(Independent(3, window=100), MASKS),
        "by joint counts": learnt(AGreedy(3, window=100), MASKS),
    }
    parts, y = ['<text x="0" y="16">Rows that reach each predicate, of 100</text>'], 44
    for (title, order), colour in zip(orders.items(), (GREY, BLUE), strict=True):
        counts = reached(MASKS, order)
        parts.append(f'<text x="0" y="{y}">{title}: {sum(counts)} evaluations</text>')
        for predicate, count in zip(order, counts, strict=True):
            y += 22
            parts += _bar(y, f"predicate {predicate}", count / 100, str(count), colour)
        y += 36
    return _svg(y - 20, parts)


def drift() -> str:
    """A drop rate that changes, the estimates that a detector sees, and the place where it raises its alarm."""
    random, detector = np.random.default_rng(1), GLR()
    detector.watch(1)
    left, top, height, step = 40, 34, 150, (WIDTH - 60) / ESTIMATES
    parts = ['<text x="0" y="16">Drop rate, in estimates of 20 profile tuples each</text>']
    parts += [
        f'<text class="faint" x="{left - 8}" y="{top + height * (1 - rate) + 4:.0f}" text-anchor="end">{rate}</text>'
        for rate in (0, 0.5, 1)
    ]
    parts.append(f'<rect class="frame" x="{left}" y="{top}" width="{step * ESTIMATES:.0f}" height="{height}"/>')
    for number in range(ESTIMATES):
        dropped = random.binomial(20, RATES[number >= CHANGE])
        x = left + step * (number + 0.5)
        parts.append(f'<circle cx="{x:.1f}" cy="{top + height * (1 - dropped / 20):.1f}" r="2.5" fill="{GREY}"/>')
        for alarm in detector.update(estimate(np.array([dropped]))):
            told = f"alarm at estimate {number + 1}: {alarm.before:.2f} became {alarm.after:.2f}"
            parts.append(_line(x, top, top + height, BLUE))
            parts.append(f'<text x="{x - 6:.1f}" y="{top + 16}" text-anchor="end">{told}</text>')
    for first, last, rate in ((0, CHANGE, RATES[0]), (CHANGE, ESTIMATES, RATES[1])):
        y = top + height * (1 - rate)
        parts.append(
            f'<line x1="{left + step * first:.1f}" x2="{left + step * last:.1f}" y1="{y:.1f}" y2="{y:.1f}" '
            f'style="stroke:{ORANGE};stroke-width:2"/>'
        )
    below = top + height + 18
    truth = f"orange: the true drop rate, which changes at estimate {CHANGE + 1}"
    parts.append(f'<text class="faint" x="{left}" y="{below}">{truth}</text>')
    return _svg(below + 8, parts)


def classes() -> str:
    """The evaluations of the rows of two countries, in one order for all rows and in an order for each country."""
    both = [mask for masks in COUNTRIES.values() for mask in masks]
    single = learnt(AGreedy(2, window=200), both)
    own = {country: learnt(AGreedy(2, window=100), masks) for country, masks in COUNTRIES.items()}
    parts, y = ['<text x="0" y="16">Evaluations for 100 rows of each country</text>'], 44
    for title, orders, colour in (
        ("one order for all rows", dict.fromkeys(COUNTRIES, single), GREY),
        ("an order for each country", own, BLUE),
    ):
        counts = {country: sum(reached(COUNTRIES[country], order)) for country, order in orders.items()}
        parts.append(f'<text x="0" y="{y}">{title}: {sum(counts.values())} evaluations</text>')
        for country, count in counts.items():
            y += 22
            order = ", then ".join(f"predicate {predicate}" for predicate in orders[country])
            parts += _bar(y, country, count / 200, f"{count} ({order})", colour)
        y += 36
    return _svg(y - 20, parts)


def cells() -> str:
    """The grid of cells of a join of three streams, and the cells to which a row of each stream goes."""
    grid = choose_shares(JOIN, dict.fromkeys(JOIN, 1.0), CELLS)
    lines, columns = grid.sizes
    side, left, top = 44, 150, 60
    taken: dict[int, list[str]] = {}
    for name, keys in JOIN.items():
        first = sum(PLACES[key] * grid.strides[key] for key in keys)
        for offset in grid.offsets(name):
            taken.setdefault(first + offset, []).append(name)
    parts = [
        '<text x="0" y="16">R1.a = R2.a AND R2.b = R3.b: a place along one side by a, along the other by b</text>',
        f'<text class="faint" x="{left}" y="{top - 12}">by a hash of b</text>',
        f'<text class="faint" x="{left - 12}" y="{top + 20}" text-anchor="end">by a hash of a</text>',
    ]
    for cell in range(grid.cells):
        x, y = left + side * (cell % columns), top + side * (cell // columns)
        names = taken.get(cell, [])
        fill = {0: "none", 1: GREY}.get(len(names), BLUE)
        parts.append(
            f'<rect class="frame" x="{x}" y="{y}" width="{side}" height="{side}" style="fill:{fill};fill-opacity:.35"/>'
        )
        if names:
            shown = " ".join(names) if len(names) < len(JOIN) else "all"
            parts.append(f'<text x="{x + side / 2}" y="{y + side / 2 + 5}" text-anchor="middle">{shown}</text>')
    x, y = left + side * columns + 28, top + 16
    for name, values in ROWS.items():
        copies = grid.copies(name)
        parts.append(
            f'<text x="{x}" y="{y}">a row of {name} with {values}: {copies} cell{"" if copies == 1 else "s"}</text>'
        )
        y += 24
    parts.append(f'<text x="{x}" y="{y}">the three rows meet in one cell</text>')
    return _svg(max(top + side * lines, y) + 12, parts)


FIGURES = (ordering, drift, classes, cells)


def drawn_figures() -> dict[str, str]:
    """The figures by the names of their files."""
    return {f"how-{figure.__name__}.svg": figure() for figure in FIGURES}


def _bar(y: int, label: str, share: float, value: str, colour: str) -> list[str]:
    left, longest = 100, 300
    return [
        f'<text class="faint" x="{left - 8}" y="{y}" text-anchor="end">{escape(label)}</text>',
        f'<rect x="{left}" y="{y - 11}" width="{longest * share:.1f}" height="14" rx="2" fill="{colour}"/>',
        f'<text x="{left + longest * share + 6:.0f}" y="{y}">{escape(value)}</text>',
    ]


def _line(x: float, top: float, bottom: float, colour: str) -> str:
    return f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}" style="stroke:{colour};stroke-width:2"/>'


def _svg(height: float, parts: Sequence[str]) -> str:
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}">'
    return "\n".join([opening, STYLE, *parts, "</svg>", ""])
