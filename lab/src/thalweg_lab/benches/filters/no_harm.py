"""no-harm: where there is nothing to gain, Thalweg costs next to nothing.

The written order is best; predicates are cheap; the input is tiny; all is evaluated by Spark and cheap. Tiny inputs may
take 30 ms more, when a call is repeated on the same DataFrame and when it is the first on its DataFrame; the ratio is
measured on jobs for which that much is less than three per cent. The cases of `no_harm_inputs` follow: conditions that
Spark would push to the source, inputs that are expensive to sample, and more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from thalweg.ordering.types import Booleans, Integers
from thalweg_lab.benches.filters import plain
from thalweg_lab.benches.filters.no_harm_inputs import cases, folders_removed
from thalweg_lab.benches.filters.race import AGAIN, THALWEG, Make, Race, Tick, compete, part_of
from thalweg_lab.benches.filters.work import Function, InOrder, bytes_of, expected_cost, predicates_of, tests_of
from thalweg_lab.results import Result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "no-harm"
ROWS, CHEAP_ROWS, NATIVE_ROWS, TINY_ROWS = 1_000_000, 20_000_000, 1_500_000_000, 100
ROUNDS, TRIES, TINY_ROUNDS, INPUT_ROUNDS = 9, 2, 30, 5
UNIT_SECONDS = 0.35e-6
COSTS = (40, 4, 20, 2, 10, 1)
KEEPS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
CHEAP_CONDITIONS = ("(id & 7) <> 3", "id > 1000", "(id & 63) < 50")
REGEXES = ("cast(id as string) rlike '[1-9]'", "cast(id as string) rlike '^[0-9]+$'")

PLAIN = "the same plan without it"
PLAIN_AGAIN = f"{PLAIN}, again"
BOUND, MOST_MILLISECONDS, CONTROL_MILLISECONDS = 0.97, 30.0, 10.0


@dataclass(frozen=True)
class Cheap:
    """Keeps the rows that have one of these bits set.

    >>> Cheap(2)(np.arange(4)).tolist()
    [False, False, True, True]
    """

    bits: int

    def __call__(self, rows: Integers) -> Booleans:
        """Which rows are kept."""
        return np.asarray(rows & self.bits != 0)


CHEAP = (Cheap(0b0011), Cheap(0b1100), Cheap(0b110000))


def measure(spark: SparkSession, tick: Tick, *, rows: int | None = None, rounds: int | None = None) -> list[Result]:
    """Each case against the same plan without Thalweg."""
    cost = partial(expected_cost, costs=COSTS, keeps=KEEPS)
    tests = tests_of(COSTS, KEEPS, bytes_of(UNIT_SECONDS))
    best = [tests[number] for number in min(permutations(range(len(tests))), key=cost)]

    inputs = cases()
    tiny_inputs = [("tiny input, Python", _python(CHEAP)), ("tiny input, native", _native(REGEXES))]
    before = 3 + 2 * len(tiny_inputs)
    parts = before + len(inputs)

    def case(
        number: int,
        label: str,
        makes: tuple[Make, Make],
        size: int,
        tiny_rounds: int | None = None,
        *,
        repeated: bool = True,
    ) -> Race:
        with_thalweg, without = makes
        contenders = {
            THALWEG: with_thalweg,
            PLAIN: without,
            **({PLAIN_AGAIN: without} if tiny_rounds else {AGAIN: with_thalweg}),
        }

        def made() -> DataFrame:
            return spark.range(0, size, 1, 2)

        frame = made() if repeated else made
        turns = rounds or tiny_rounds or ROUNDS
        note, tries = f"{size:,} rows, cold", 1 if tiny_rounds else TRIES
        return compete(NAME, frame, contenders, turns, part_of(tick, number, parts), note, label=label, tries=tries)

    ordered = case(0, "written order best", _python(best), rows or ROWS)
    cheap = case(1, "cheap predicates", _python(CHEAP), rows or CHEAP_ROWS)
    native = case(2, "native and cheap", _native(CHEAP_CONDITIONS), rows or NATIVE_ROWS)
    tiny = [case(3 + number, label, makes, TINY_ROWS, TINY_ROUNDS) for number, (label, makes) in enumerate(tiny_inputs)]
    tiny += [
        case(3 + number, f"{label}, first call", makes, TINY_ROWS, TINY_ROUNDS, repeated=False)
        for number, (label, makes) in enumerate(tiny_inputs, len(tiny_inputs))
    ]
    results = [found for race in (ordered, cheap, native) for found in (race.faster(PLAIN, BOUND), race.control())]
    for race in tiny:
        results += [race.later(PLAIN, MOST_MILLISECONDS), race.apart(PLAIN, PLAIN_AGAIN, CONTROL_MILLISECONDS)]
    with folders_removed():
        for number, each in enumerate(inputs, before):
            size = rows or each.rows
            contenders = {THALWEG: each.with_thalweg, PLAIN: each.without, AGAIN: each.with_thalweg}
            race = compete(
                NAME,
                each.frame(spark, size),
                contenders,
                rounds or INPUT_ROUNDS,
                part_of(tick, number, parts),
                f"{size:,} rows, cold",
                label=each.label,
                tries=TRIES if rounds is None else 1,
            )
            results += [race.faster(PLAIN, BOUND), race.control()]
    return results


def _python(tests: Sequence[Function]) -> tuple[Make, Make]:
    import thalweg as tw

    written = predicates_of(tests)
    fused = InOrder(tests)
    return lambda frame: tw.where(frame, *written), lambda frame: plain.chain(frame, [fused])


def _native(conditions: Sequence[str]) -> tuple[Make, Make]:
    import thalweg as tw

    return lambda frame: tw.where(frame, *conditions), lambda frame: frame.where(" AND ".join(conditions))
