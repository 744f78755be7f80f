"""Classes of rows: that none are found where there are none, and how much of the possible saving is reached."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean

import numpy as np
import pyarrow as pa

from thalweg.ordering.pipeline import Pipeline
from thalweg.ordering.types import Booleans, Integers
from thalweg.routing import ClassRouter, RoutedPipeline
from thalweg.routing.attributes import Columns
from thalweg_lab.benches.adaptivity.streams import (
    FILTERS,
    ROWS,
    EvaluationClock,
    returning,
    stationary,
    where_pipeline,
    where_policy,
)
from thalweg_lab.results import Result, at_least, at_most

KIND_FILTERS = 6
LEARNT, TRIED = 200_000, 50_000  # rows until the saving is measured, and rows on which it is
MOSTLY, SELDOM = 0.8, 0.05  # rows of a class that its own filter drops, and that each other filter drops
HOUR = 3600  # seconds
# Limits in the middle of two of the 16 ranges of equal frequency, which therefore hold rows of both classes.
LIMIT = 35.84  # 11.5 sixteenths of the amounts are below it
BAND = 15.84, 25.46  # from 6.5 to 9.5 sixteenths of the amounts

Rows = tuple[Booleans, Columns]  # whether each row is of the second class, and its columns
Draw = Callable[[np.random.Generator, int, int], Rows]  # given how many rows came before, and how many to draw


def no_class(seeds: int) -> list[Result]:
    """Evaluations with routing by columns that tell nothing, for each evaluation without."""
    results = []
    for name, stream in {"one regime": stationary, "regimes in turn": returning}.items():
        ratios = []
        for seed in range(seeds):
            masks = np.concatenate([stretch.masks for stretch in stream(seed)])
            plain, routed = where_pipeline(where_policy(seed)), routed_pipeline(seed, FILTERS, list(noise(0, seed)))
            columns = noise(masks.size, seed)
            for start in range(0, masks.size, ROWS):
                part = slice(start, start + ROWS)
                plain.keep(masks[part])
                routed.keep(masks[part], {column: values[part] for column, values in columns.items()})
            ratios.append(spent(routed) / spent(plain))
        note = f"{seeds} streams, from {min(ratios):.3f} to {max(ratios):.3f}"
        results.append(at_most("no-class", f"evaluations, routing on / off, {name}", mean(ratios), 1.005, note))
    return results


def classes(seeds: int) -> list[Result]:
    """The share of the possible saving that classes reach after so many rows."""
    results = []
    for name, draw in DRAWS.items():
        shares = [share_reached(draw, seed) for seed in range(seeds)]
        note = f"{len(shares)} streams, after {LEARNT:,} rows; from {min(shares):.2f} to {max(shares):.2f}"
        results.append(at_least("classes", f"share of the possible saving, {name}", mean(shares), 0.6, note))
    return results


def share_reached(draw: Draw, seed: int) -> float:
    """How much of what an order for each class saves against one order is saved."""
    random = np.random.default_rng(seed)
    names = list(draw(random, 0, 1)[1])
    routed, plain = routed_pipeline(seed, KIND_FILTERS, names), where_pipeline(where_policy(seed, None, KIND_FILTERS))
    before, best = (0, 0), 0
    for start in range(0, LEARNT + TRIED, ROWS):
        second, columns = draw(random, start, ROWS)
        masks = masks_of(second, random)
        if start == LEARNT:
            before = spent(routed), spent(plain)
        if start >= LEARNT:
            best += sum(evaluations(masks[second == kind], first=int(kind)) for kind in (False, True))
        routed.keep(masks, columns)
        plain.keep(masks)
    possible = spent(plain) - before[1] - best
    return (spent(plain) - before[1] - (spent(routed) - before[0])) / possible


def masks_of(second: Booleans, random: np.random.Generator) -> Integers:
    """Rows of two classes: the first filter drops most of one, the second filter most of the other."""
    drops = np.full((second.size, KIND_FILTERS), SELDOM)
    drops[np.arange(second.size), second.astype(int)] = MOSTLY
    masks: Integers = (random.random(drops.shape) < drops) @ (1 << np.arange(KIND_FILTERS))
    return masks


def evaluations(masks: Integers, first: int) -> int:
    """Evaluations of rows in the order that begins with a filter; the others are alike."""
    alive, total = masks, 0
    for number in (first, *(number for number in range(KIND_FILTERS) if number != first)):
        total += alive.size
        alive = alive[alive >> number & 1 == 0]
    return total


def routed_pipeline(seed: int, filters: int, names: list[str]) -> RoutedPipeline:
    """The pipeline that `tw.where(route_by=...)` runs in a worker, on a clock of evaluations."""
    clock = EvaluationClock()
    router = ClassRouter(lambda order: where_policy(seed, order, filters), names)
    return RoutedPipeline(router, clock.filters(filters), clock=clock)


def spent(pipeline: Pipeline) -> int:
    """All evaluations of a pipeline, profiling included."""
    return pipeline.evaluations + pipeline.extra_evaluations


def noise(rows: int, seed: int) -> dict[str, pa.Array]:
    """Columns that tell nothing."""
    random = np.random.default_rng(seed + 1000)
    return {
        "eight": pa.array(random.integers(0, 8, rows)),
        "real": pa.array(random.random(rows)),
        "skewed": pa.array(np.minimum(random.zipf(1.5, rows), 1000)),
        "growing": pa.array(np.arange(rows) + random.normal(0, 3000, rows)),
    }


def _hour(random: np.random.Generator, start: int, rows: int) -> Rows:
    """Office hours and the rest of the day, by a timestamp; a row each minute."""
    seconds = 60 * (start + np.arange(rows)) + random.integers(0, 60, rows)
    office = (seconds // HOUR % 24 >= 8) & (seconds // HOUR % 24 < 18)  # noqa: PLR2004 - o'clock
    return office, {"at": pa.array(seconds * 1_000_000, pa.timestamp("us", tz="UTC"))}


def _prefix(random: np.random.Generator, _start: int, rows: int) -> Rows:
    api = random.random(rows) < 0.5  # noqa: PLR2004 - half of the rows
    numbers = random.integers(0, 10**6, rows)
    return api, {
        "path": pa.array([f"{'/api' if is_api else '/img'}/{n}" for is_api, n in zip(api, numbers, strict=True)])
    }


def _exclusive_or(random: np.random.Generator, _start: int, rows: int) -> Rows:
    left, right = random.integers(0, 2, rows), random.integers(0, 2, rows)
    return left != right, {"left": pa.array(left), "right": pa.array(right)}


def _modulo(random: np.random.Generator, _start: int, rows: int) -> Rows:
    numbers = random.integers(0, 10**6, rows)
    return numbers % 2 == 1, {"number": pa.array(numbers)}


def _rare(random: np.random.Generator, _start: int, rows: int) -> Rows:
    kinds = random.choice([0, 1, 2], rows, p=[0.5, 0.47, 0.03])
    return kinds == 2, {"kind": pa.array(kinds)}  # noqa: PLR2004 - the rare kind


def _flipped(random: np.random.Generator, start: int, rows: int) -> Rows:
    kinds = random.integers(0, 2, rows)
    return (kinds == 1) ^ (start >= LEARNT // 2), {"kind": pa.array(kinds)}


def _above(random: np.random.Generator, _start: int, rows: int) -> Rows:
    amounts = random.lognormal(3.0, 1.0, rows)
    return amounts > LIMIT, {"amount": pa.array(amounts)}


def _within(random: np.random.Generator, _start: int, rows: int) -> Rows:
    amounts = random.lognormal(3.0, 1.0, rows)
    return (amounts > BAND[0]) & (amounts < BAND[1]), {"amount": pa.array(amounts)}


DRAWS: dict[str, Draw] = {
    "hour of a timestamp": _hour,
    "prefix of a text": _prefix,
    "exclusive or of two columns": _exclusive_or,
    "modulo of a number": _modulo,
    "a class of 3%": _rare,
    "a meaning that flips": _flipped,
    "a number above a limit": _above,
    "a number in a narrow range": _within,
}
