"""The results of a session are what DuckDB computes for each round, whatever happens to the session on the way."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock, patch

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.spark.session.harness import (
    SECOND,
    Batch,
    Driver,
    Episode,
    QueryText,
    Row,
    expected,
    rows_in_folder,
    with_end,
)

from thalweg.charts import AtRandom, CostModel, PlanCosts, PlanScheduler, TupleRates, Weights
from thalweg.spark.session import engine as engine_module
from thalweg.spark.session import standing, waiting
from thalweg.spark.session.engine import SessionEngine
from thalweg.spark.session.input_sizes import InputSizes
from thalweg.spark.session.program import ProgramQuery
from thalweg.spark.session.schedules import scheduler_of
from thalweg.spark.session.sinks import Delivery, FolderSink
from thalweg.spark.session.standing import StandingQuery

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# ------------------------------------------------------------------------------------------------------- query texts

WINDOWS = [(5, None), (10, None), (10, 5), (6, 4), (0.5, None)]
CONDITIONS = {
    "A": [
        "{a}.x > 5",
        "{a}.x > 10",
        "NOT {a}.x > 5",
        "{a}.x BETWEEN 3 AND 12",
        "{a}.x IS NULL",
        "{a}.s LIKE 'a%'",
        "{a}.s IN ('a', 'b')",
        "{a}.x <> 0 AND 100 / {a}.x > 10",
        "CASE WHEN {a}.x > 5 THEN {a}.s = 'a' ELSE {a}.k = 1 END",
        "is_odd({a}.k)",
        "NOT is_odd({a}.x) AND {a}.x > 5",
    ],
    "B": ["{a}.y > 5", "{a}.y > 10", "{a}.y % 3 = 1", "coalesce({a}.y, 0) = 0", "is_odd({a}.k)"],
    "C": ["{a}.z > 5", "{a}.z IS NOT NULL", "abs({a}.z - 8) < 4"],
    "T": ["{a}.label <> 'uno'"],
}
VALUE = {"A": "x", "B": "y", "C": "z", "T": "label"}
JOINS = [  # the inputs of a query, and how they are connected
    ("AB", ["a.k = b.k"]),
    ("AB", ["a.k = b.k", "a.x < b.y"]),
    ("AB", ["a.k + 1 = b.k"]),
    ("AB", ["a.k + 1 = b.y / 2"]),  # keys of two types
    ("AA", ["a.k = b.k", "a.x < b.x"]),
    ("AT", ["a.k = b.k"]),
    ("BC", ["a.k = b.k"]),
    ("ABC", ["a.k = b.k", "b.k = c.k"]),
    ("ABT", ["a.k = b.k", "b.k = c.k"]),
    ("ABC", ["a.k = b.k", "a.x = c.z"]),
]


@st.composite
def query_texts(draw: st.DrawFn) -> QueryText:
    if draw(st.booleans()):
        sources, connections = draw(st.sampled_from("ABC")), list[str]()
    else:
        sources, connections = draw(st.sampled_from(JOINS))
    inputs = dict(zip("abc", sources, strict=False))
    conditions = list(connections)
    for alias, source in inputs.items():
        pool = st.sampled_from(CONDITIONS[source])
        conditions += [text.format(a=alias) for text in draw(st.lists(pool, max_size=2, unique=True))]
    values = [f"{alias}.{VALUE[source]}" for alias, source in inputs.items()]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    tables = f" FROM {', '.join(f'{source} AS {alias}' for alias, source in inputs.items())}{where}"
    length, slide = draw(st.sampled_from(WINDOWS))
    return QueryText(draw(st.sampled_from(select_lists(values))).format(tables), length, slide)


def select_lists(values: list[str]) -> list[str]:
    """What queries may put out; the rest of the text goes between the braces."""
    named = ", ".join(f"{value} AS v{place}" for place, value in enumerate(values))
    first, last = values[0], values[-1]
    return [
        f"SELECT a.k, {named}{{}}",
        f"SELECT {first} + 1 AS more, coalesce({last}, {last}) AS last_value, a.k * 2 AS twice{{}}",
        f"SELECT DISTINCT a.k, {last} AS last_value{{}}",
        f"SELECT count(*) AS n, sum({first}) AS total, min({last}) AS least{{}}",
        f"SELECT sum({first}) AS total{{}} HAVING count(*) > 2",
        f"SELECT a.k, count({last}) AS n, max({first}) AS most{{}} GROUP BY a.k",
        f"SELECT a.k % 2 AS part, avg({first}) AS mean{{}} GROUP BY a.k % 2 HAVING count(*) > 1",
    ]


# -------------------------------------------------------------------------------------------------------------- rows

KEYS = st.none() | st.integers(0, 3)
VALUES = st.none() | st.integers(0, 15)
WORDS = st.none() | st.sampled_from(["a", "ab", "b", ""])


@st.composite
def micro_batches(draw: st.DrawFn) -> list[Batch]:
    """Rows that come out of order, some of them late, some without a time; the last row ends all other rounds."""
    batches: list[Batch] = []
    for number in range(draw(st.integers(2, 4))):
        # In halves of a second: many rows are on the border of a round.
        halves = st.integers(max(-8, number * 12 - 30), number * 12 + 10)
        times = (st.none() if draw(st.booleans()) else st.nothing()) | halves.map(lambda half: half * SECOND // 2)
        rows: dict[str, list[Row]] = {
            "A": draw(st.lists(st.tuples(KEYS, VALUES, WORDS, times), max_size=12)),
            "B": draw(st.lists(st.tuples(KEYS, VALUES, times), max_size=12)),
            "C": draw(st.lists(st.tuples(KEYS, VALUES, times), max_size=6)),
        }
        batches.append(rows)
    return with_end(batches)


# --------------------------------------------------------------------------------------------------------- scenarios


POINTS = ["before delivery", "after a delivery", "before storing", "before saving", "after saving"]


@dataclass(frozen=True)
class Scenario:
    """What happens: before which micro-batches queries come, go, rest and are resumed, and where the session dies."""

    batches: list[Batch]
    queries: list[QueryText]
    added: list[int]  # the micro-batch before which a query is added
    removed: list[int | None]
    paused: list[tuple[int, int] | None]  # and resumed
    reopened: frozenset[int]  # micro-batches before which there is a new session
    kills: dict[int, str]  # by micro-batch, the point at which the session dies
    plan_seed: int | None  # of plans chosen at random
    partitions: int
    rate_weight: float
    memory: int | None  # a cap, in bytes

    def episodes(self, place: int) -> list[Episode]:
        end = len(self.batches) if self.removed[place] is None else self.removed[place]
        assert end is not None
        paused = self.paused[place]
        if paused is None:
            return [Episode(self.added[place], end)]
        return [Episode(self.added[place], paused[0]), Episode(paused[1], end)]


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    batches = draw(micro_batches())
    numbers = range(len(batches))
    queries = draw(st.lists(query_texts(), min_size=1, max_size=6, unique_by=str))
    added: list[int] = []
    removed: list[int | None] = []
    paused: list[tuple[int, int] | None] = []
    for place in range(len(queries)):
        first = 0 if place == 0 else draw(st.sampled_from([0, 0, 0, 1, 2]))
        end = draw(st.sampled_from([None, None, None, len(batches) - 1]))
        added.append(first)
        removed.append(end)
        is_paused = first == 0 and end is None and draw(st.integers(0, 4)) == 4
        paused.append((1, 2) if is_paused else None)
    some = st.frozensets(st.sampled_from(numbers), max_size=1)
    return Scenario(
        batches,
        queries,
        added,
        removed,
        paused,
        reopened=draw(some),
        kills=draw(st.dictionaries(st.sampled_from(numbers), st.sampled_from(POINTS), max_size=2)),
        plan_seed=draw(st.none() | st.integers(0, 99)),
        partitions=draw(st.sampled_from([1, 3, 10])),
        rate_weight=draw(st.sampled_from([0.0, 0.4, 1.0])),
        memory=draw(st.none() | st.sampled_from([1, 100, 400])),
    )


class Killed(BaseException):
    """Ends a session at an awkward point: no error of a query, which the session would take note of."""


@contextmanager
def killed(point: str) -> Iterator[None]:
    """A session that dies at a point of the micro-batch."""
    deliver = FolderSink.deliver

    def deliver_and_die(sink: FolderSink, delivery: Delivery) -> None:
        deliver(sink, delivery)
        raise Killed

    points: dict[str, tuple[Any, str, Any]] = {
        "before delivery": (SessionEngine, "_deliver", Mock(side_effect=Killed)),
        "after a delivery": (FolderSink, "deliver", deliver_and_die),
        "before storing": (engine_module, "written_together", Mock(side_effect=Killed)),
        "before saving": (engine_module, "save_position", Mock(side_effect=Killed)),
        "after saving": (engine_module, "remove_files", Mock(side_effect=Killed)),
    }
    with patch.object(*points[point]), suppress(Killed):
        yield


@dataclass
class Play:
    """Runs a scenario."""

    scenario: Scenario
    driver: Driver
    standing: dict[int, StandingQuery] = field(default_factory=dict)  # by the place of the query

    def run(self) -> None:
        for number, batch in enumerate(self.scenario.batches):
            if number in self.scenario.reopened:
                self._reopen(number)
            self._control(number)
            if number in self.scenario.kills:
                with killed(self.scenario.kills[number]):
                    self.driver.run(batch)
                self.driver.number = number  # Spark did not take note of it
                self._reopen(number)
                self._control(number)
            self.driver.run(batch)

    def _reopen(self, number: int) -> None:
        self.driver.open()
        self.standing.clear()
        for place in range(len(self.scenario.queries)):
            removed = self.scenario.removed[place]
            if self.scenario.added[place] < number and (removed is None or number <= removed):
                self._add(place)

    def _control(self, number: int) -> None:
        for place, paused in enumerate(self.scenario.paused):
            if self.scenario.added[place] == number and place not in self.standing:
                self._add(place)
            if self.scenario.removed[place] == number and place in self.standing:
                self.standing.pop(place).remove()
            if paused is not None and paused[0] <= number < paused[1]:
                self.standing[place].pause()
            if paused is not None and paused[1] == number:
                self.standing[place].resume()

    def _add(self, place: int) -> None:
        self.standing[place] = self.driver.session.query(
            str(self.scenario.queries[place]),
            name=f"query at {place}",
            to=self.driver.folder / "out" / str(place),
            partitions=self.scenario.partitions,
            rate_weight=self.scenario.rate_weight,
            memory_weight=1.0,
        )


def check(spark: SparkSession, scenario: Scenario) -> None:
    def scheduler_at_random(
        _kind: type[PlanScheduler],
        query: ProgramQuery,
        weights: Weights,
        _parts: int,
        rates: TupleRates,
        _sizes: InputSizes,
    ) -> PlanScheduler:
        model = CostModel(window=query.query.window.length / SECOND, tuple_rates=rates)
        assert scenario.plan_seed is not None
        return AtRandom(PlanCosts(query.space, model, weights), seed=scenario.plan_seed)

    scheduler = scheduler_of if scenario.plan_seed is None else scheduler_at_random
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(standing, "scheduler_of", scheduler),
        # Rounds are computed in turns, however small the cap is; `test_memory` has queries that wait for memory, or are
        # refused.
        patch.object(engine_module, "first_too_large", lambda *_: None),
        patch.object(engine_module, "expected_size", lambda *_: None),
        patch.object(waiting, "MOST_FILES", 2),  # so that a few micro-batches are enough to write them together
    ):
        play = Play(scenario, Driver(spark, Path(folder), scenario.memory))
        play.run()
        assert play.driver.engine is not None
        positions = play.driver.engine.position.queries
        assert [position.failed for position in positions.values() if position.failed] == []
        for place, query in enumerate(scenario.queries):
            found = rows_in_folder(Path(folder, "out", str(place)))
            assert found == expected(query, scenario.batches, scenario.episodes(place)), str(query)


FEW = settings(
    max_examples=2, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate]
)


@given(scenario=scenarios())
@FEW
def test_results_are_those_of_duckdb(spark: SparkSession, scenario: Scenario) -> None:
    check(spark, scenario)


@pytest.mark.long
@given(scenario=scenarios())
@settings(FEW, max_examples=8, phases=[Phase.generate, Phase.shrink])
def test_results_are_those_of_duckdb_at_length(spark: SparkSession, scenario: Scenario) -> None:
    check(spark, scenario)
