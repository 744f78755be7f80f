"""Lookups, refreshes, micro-batches, resets, restarts and threads of a program: rows are always those of a plain model.

A step makes lookups, most of which have the same name, or runs a query on Spark with some of them. The model has a
dictionary for each lookup, and evaluates the query row by row with the truth values of SQL.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

import thalweg as tw
from thalweg.spark import runs
from thalweg.spark.analysis import catalyst, repeated_conditions
from thalweg.spark.filters.stream import FilteredStream, Replanner
from thalweg.spark.filters.worker import filter_pass, stored_keys

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Truth = bool | None  # as in SQL: None is NULL
Content = Mapping[int | None, int]  # of a stored table: a value for each key
Values = tuple[int | None, ...]  # of a row in a result

SAME_NAME = "in the table"
FOLDERS = ("first", "second")
POLICIES = ("a-greedy", "as-written", "sweep")
WAIT = 120  # seconds that a thread may take on a busy machine


class Row(NamedTuple):
    """A row of the input."""

    id: int
    k: int | None
    other: int


@tw.predicate(on="other", name="is even")
def is_even(other: pa.Array) -> pa.Array:
    return pc.equal(pc.bit_wise_and(other, 1), 0)


def rows_of_batch(batch: int) -> list[Row]:
    """The rows of a micro-batch: keys from 0 to 6 and NULL."""
    return [
        Row(number, None if number % 8 == 7 else number % 8, number % 5)
        for number in range(10 * batch, 10 * batch + 20)
    ]


class Lookup:
    """A lookup, and the content of its table."""

    def __init__(self, content: Content, column: str, *, negate: bool, brings: str | None = None) -> None:
        self.content = content
        self.column = column
        self.negate = negate
        self.brings = brings
        self.predicate = tw.lookup(
            self.table(content),
            on={column: "key"},
            columns={"value": brings} if brings is not None else (),
            negate=negate,
            name=SAME_NAME,
        )

    @staticmethod
    def table(content: Content) -> pa.Table:
        return pa.table({"key": pa.array(content.keys(), pa.int64()), "value": pa.array(content.values(), pa.int64())})

    def refresh(self, content: Content) -> None:
        self.predicate.refresh(self.table(content))
        self.content = content

    def copy(self) -> Lookup:
        """The lookup as the program makes it when it is started again."""
        return Lookup(self.content, self.column, negate=self.negate, brings=self.brings)

    def key(self, row: Row) -> int | None:
        return row.k if self.column == "k" else row.other

    def truth(self, row: Row, content: Content) -> Truth:
        key = self.key(row)
        return None if key is None else (key in content) != self.negate


Contents = Iterator[Content]  # for each place in which a lookup stands, the content that is looked up in there


@dataclass(frozen=True)
class Term:
    """A predicate of a query, which is made of lookups."""

    kind: str  # "alone", "negated", "or lookup", "or condition" or "or Python"
    lookups: tuple[Lookup, ...]

    def predicate(self) -> Any:  # noqa: ANN401 - of any kind
        wanted, *others = [lookup.predicate for lookup in self.lookups]
        if self.kind == "alone":
            return wanted
        if self.kind == "negated":
            return tw.not_(wanted)
        if self.kind == "or lookup":
            return tw.any_of(wanted, *others)
        return tw.any_of(wanted, "id % 7 = 3") if self.kind == "or condition" else tw.any_of(is_even, wanted)

    def truth(self, row: Row, contents: Contents) -> Truth:
        truths = [lookup.truth(row, next(contents)) for lookup in self.lookups]
        if self.kind == "negated":
            return None if truths[0] is None else not truths[0]
        if self.kind == "or condition":
            truths.append(row.id % 7 == 3)
        elif self.kind == "or Python":
            truths.append(row.other % 2 == 0)
        return True if True in truths else None if None in truths else False


@dataclass(frozen=True)
class Query:
    """What is asked of Spark and of the model."""

    terms: tuple[Term, ...]
    condition: str | None  # besides the terms
    policy: str

    @property
    def predicates(self) -> list[Any]:
        found = [term.predicate() for term in self.terms]
        return found if self.condition is None else [*found, self.condition]

    @property
    def places(self) -> list[Lookup]:
        return [lookup for term in self.terms for lookup in term.lookups]

    def rows(self, rows: Sequence[Row], contents: Sequence[Content] | None = None) -> list[Values]:
        """The rows of the model, with the tables as they are now or with these contents."""
        found = list[Values]()
        now = [lookup.content for lookup in self.places] if contents is None else contents
        for row in rows:
            taken = iter(now)
            truths = [term.truth(row, taken) for term in self.terms]
            if all(truths) and (self.condition is None or row.id % 4 < 3):
                places = zip(self.places, now, strict=True)
                found.append((*row, *(content[lookup.key(row)] for lookup, content in places if lookup.brings)))
        return sorted(found)

    def rows_with_either(self, rows: Sequence[Row], before: Mapping[Lookup, Content]) -> list[list[Values]]:
        """The rows of the model where each place looks up in a table as it was or as it is."""
        choices = [[lookup.content] + ([before[lookup]] if lookup in before else []) for lookup in self.places]
        return [self.rows(rows, contents) for contents in itertools.product(*choices)]


@dataclass(frozen=True)
class Stream:
    """A stream of the program, and the folder with which it goes on after a restart."""

    query: Query
    checkpoint: Path
    filtered: FilteredStream
    planner: Replanner


@dataclass(frozen=True)
class Made:
    """A DataFrame that was made earlier."""

    query: Query
    kept: DataFrame
    before: Mapping[Lookup, Content]  # the tables at that time


def sorted_rows(frame: DataFrame) -> list[Values]:
    return sorted(tuple(row) for row in frame.collect())


def at_the_same_time(*actions: Callable[[], Any]) -> list[Any]:
    """The results of actions that threads begin at the same time."""
    barrier = threading.Barrier(len(actions))

    def begin(action: Callable[[], Any]) -> Any:  # noqa: ANN401 - a result of any kind
        barrier.wait(WAIT)
        return action()

    with ThreadPoolExecutor(len(actions)) as threads:
        return [started.result(WAIT) for started in [threads.submit(begin, action) for action in actions]]


def forget(batches: Iterator[Any]) -> Iterator[Any]:
    """What a process knows of queries before: it knows nothing when it is new."""
    filter_pass._passes.clear()  # noqa: SLF001 - what a process remembers
    stored_keys._tables.clear()  # noqa: SLF001
    stored_keys._refreshed.clear()  # noqa: SLF001
    yield from batches


contents = st.dictionaries(st.integers(0, 6), st.integers(0, 99), max_size=5)
chosen_terms = st.lists(
    st.tuples(
        st.sampled_from(["alone", "negated", "or lookup", "or condition", "or Python"]),
        st.integers(0, 5),
        st.integers(0, 5),
    ),
    min_size=1,
    max_size=3,
)
conditions = st.sampled_from([None, "id % 4 < 3"])


class FilterProgram(RuleBasedStateMachine):
    """Lookups, queries and streams, on Spark and in the model."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        super().__init__()
        self.spark = spark
        self.root = root
        self.lookups: list[Lookup] = []
        self.streams: list[Stream] = []
        self.made: list[Made] = []
        self.read()

    def read(self) -> None:
        """Make the DataFrames, as a program does when it starts."""
        batches = {batch: rows_of_batch(batch) for batch in range(3)}
        schema = "id long, k long, other long"
        self.frames = {batch: self.spark.createDataFrame(rows, schema) for batch, rows in batches.items()}
        self.in_one_task = self.frames[0].coalesce(1)
        self.rows = batches
        (self.root / "in").mkdir(parents=True, exist_ok=True)
        self.source = self.spark.readStream.schema(schema).parquet(f"{self.root}/in")

    # -------------------------------------------------------------------------------------------- lookups

    @initialize(first=contents, second=contents)
    def make_two(self, first: Content, second: Content) -> None:
        """Two lookups of one name, in a stream that has to follow their refreshes."""
        self.lookups = [Lookup(first, "k", negate=False), Lookup(second, "k", negate=False)]
        terms = (Term("or condition", (self.lookups[0],)), Term("negated", (self.lookups[1],)))
        self.streams = [self.stream(Query(terms, None, "a-greedy"), self.root / FOLDERS[0])]

    @precondition(lambda self: len(self.lookups) < 6)
    @rule(content=contents, column=st.sampled_from(["k", "other"]), negate=st.booleans(), brings=st.booleans())
    def make_lookup(self, content: Content, column: str, *, negate: bool, brings: bool) -> None:
        name = f"value_{len(self.lookups)}" if brings else None
        self.lookups.append(Lookup(content, column, negate=negate and not brings, brings=name))

    @rule(which=st.integers(0, 5), content=contents)
    def refresh(self, which: int, content: Content) -> None:
        """A running stream has the new table in its next micro-batch."""
        self.lookup(which).refresh(content)
        self.run_micro_batch(which, 2)

    # -------------------------------------------------------------------------------------------- queries

    @rule(
        chosen=chosen_terms,
        condition=conditions,
        policy=st.sampled_from(POLICIES),
        folder=st.sampled_from([None, *FOLDERS]),
        resets=st.booleans(),
        sample=st.sampled_from([None, None, None, True]),
        in_one_task=st.booleans(),
    )
    def run_query(
        self,
        *,
        chosen: list[tuple[str, int, int]],
        condition: str | None,
        policy: str,
        folder: str | None,
        resets: bool,
        sample: bool | None,
        in_one_task: bool,
    ) -> None:
        if resets and folder is not None:
            tw.reset(self.root / folder)
        query = self.query(chosen, condition, policy)
        kept = self.where(self.in_one_task if in_one_task else self.frames[0], query, folder, sample=sample)
        assert sorted_rows(kept) == query.rows(self.rows[0])
        self.made.append(Made(query, kept, {lookup: lookup.content for lookup in query.places}))

    @precondition(lambda self: self.made)
    @rule(which=st.integers(0, 5), resets=st.booleans())
    def collect_again(self, which: int, *, resets: bool) -> None:
        """A DataFrame looks up in a table as it was when it was made, or as it is after a refresh."""
        made = self.made[which % len(self.made)]
        if resets:
            tw.reset(made.kept)
        assert sorted_rows(made.kept) in made.query.rows_with_either(self.rows[0], made.before)

    @rule(chosen=chosen_terms, condition=conditions, folder=st.sampled_from(FOLDERS))
    def start_stream(self, chosen: list[tuple[str, int, int]], condition: str | None, folder: str) -> None:
        query = self.query(chosen, condition, "a-greedy")
        self.streams = [self.streams[0], self.stream(query, self.root / folder)]
        self.run_micro_batch(len(self.streams) - 1, 0)

    @rule(which=st.integers(0, 1), batch=st.integers(0, 2))
    def run_micro_batch(self, which: int, batch: int) -> None:
        """What a stream does with a micro-batch, which is an ordinary DataFrame."""
        stream = self.streams[which % len(self.streams)]
        with stream.planner.batch(self.frames[batch]) as kept:
            assert sorted_rows(kept) == stream.query.rows(self.rows[batch])

    # -------------------------------------------------------------------------------- folders and restarts

    @rule(is_clean=st.booleans(), contents_then=st.lists(contents, max_size=2))
    def restart(self, *, is_clean: bool, contents_then: list[Content]) -> None:
        """The program ends, or is killed, and starts again: it makes its lookups and streams, some of other tables.

        The streams go on from their folders.
        """
        self.made.clear()
        if is_clean:  # as the program does at its end
            for file in self.root.rglob("tables/*"):
                file.unlink()
        for known in (runs._runs, runs._of_queries, catalyst._analyses, repeated_conditions._states):  # noqa: SLF001
            known.clear()
        assert list(forget(iter([]))) == []
        self.spark.range(2, numPartitions=2).mapInArrow(forget, "id long").collect()
        self.read()
        again = {lookup: lookup.copy() for lookup in self.lookups}
        for lookup, content in zip(again.values(), contents_then, strict=False):
            lookup.refresh(content)
        self.lookups = list(again.values())
        self.streams = [
            self.stream(
                Query(
                    tuple(Term(term.kind, tuple(again[lookup] for lookup in term.lookups)) for term in query.terms),
                    query.condition,
                    query.policy,
                ),
                checkpoint,
            )
            for query, checkpoint in [(stream.query, stream.checkpoint) for stream in self.streams]
        ]
        for number in range(len(self.streams)):
            self.run_micro_batch(number, 1)

    # -------------------------------------------------------------------------------------------- threads

    @rule(first=chosen_terms, second=chosen_terms, folder=st.sampled_from(FOLDERS))
    def run_two_queries(
        self, first: list[tuple[str, int, int]], second: list[tuple[str, int, int]], folder: str
    ) -> None:
        queries = [self.query(first, None, "a-greedy"), self.query(second, "id % 4 < 3", "sweep")]
        found = at_the_same_time(
            *(lambda query=query: sorted_rows(self.where(self.frames[0], query, folder)) for query in queries)
        )
        assert found == [query.rows(self.rows[0]) for query in queries]

    @rule(chosen=chosen_terms, place=st.integers(0, 2), content=contents, folder=st.sampled_from(FOLDERS))
    def run_and_refresh(self, chosen: list[tuple[str, int, int]], place: int, content: Content, folder: str) -> None:
        """Each place of a query has the table as it was before the refresh, or as it is after it."""
        query = self.query(chosen, None, "a-greedy")
        lookup = query.places[place % len(query.places)]
        before = {lookup: lookup.content}
        found, _ = at_the_same_time(
            lambda: sorted_rows(self.where(self.in_one_task, query, folder)), lambda: lookup.refresh(content)
        )
        assert found in query.rows_with_either(self.rows[0], before)
        assert sorted_rows(self.where(self.frames[0], query, folder)) == query.rows(self.rows[0])

    @rule(chosen=chosen_terms, folder=st.sampled_from(FOLDERS))
    def run_and_reset(self, chosen: list[tuple[str, int, int]], folder: str) -> None:
        query = self.query(chosen, "id % 4 < 3", "a-greedy")
        found, _ = at_the_same_time(
            lambda: sorted_rows(self.where(self.frames[0], query, folder)), lambda: tw.reset(self.root / folder)
        )
        assert found == query.rows(self.rows[0])

    # -------------------------------------------------------------------------------------------- helpers

    def lookup(self, which: int) -> Lookup:
        return self.lookups[which % len(self.lookups)]

    def query(self, chosen: Sequence[tuple[str, int, int]], condition: str | None, policy: str) -> Query:
        """The query of drawn numbers: a lookup that brings columns stands alone, and once in a query."""
        plain = [lookup for lookup in self.lookups if lookup.brings is None]
        found = list[Term]()
        for kind, first, second in chosen:
            lookup = self.lookup(first)
            taken = any(lookup in term.lookups for term in found)
            if lookup.brings is not None and (kind != "alone" or taken):
                lookup = plain[first % len(plain)]
            lookups = (lookup, plain[second % len(plain)]) if kind == "or lookup" else (lookup,)
            found.append(Term(kind, lookups))
        return Query(tuple(found), condition, policy)

    def where(self, frame: DataFrame, query: Query, folder: str | None, *, sample: bool | None = None) -> DataFrame:
        state = None if folder is None else self.root / folder
        return tw.where(frame, *query.predicates, policy=query.policy, state=state, sample=sample)

    def stream(self, query: Query, checkpoint: Path) -> Stream:
        filtered = tw.stream(self.source, *query.predicates, checkpoint=checkpoint)
        return Stream(query, checkpoint, filtered, Replanner(filtered.thalweg_run))


def run_programs(spark: SparkSession, root: Path, *, programs: int, steps: int, is_random: bool = False) -> None:
    numbers = itertools.count()

    class NewProgram(FilterProgram):
        def __init__(self) -> None:
            super().__init__(spark, root / str(next(numbers)))

    chosen = settings(
        max_examples=programs,
        stateful_step_count=steps,
        derandomize=not is_random,
        database=None,
        deadline=None,
        phases=[Phase.generate],  # to shrink a program would run it hundreds of times
        print_blob=is_random,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(NewProgram, settings=chosen)


def test_a_program_with_a_step_of_each_kind(spark: SparkSession, tmp_path: Path) -> None:
    program = FilterProgram(spark, tmp_path)
    program.make_two({0: 1, 1: 2}, {1: 3, 2: 4})
    program.run_micro_batch(0, 0)
    program.refresh(0, {2: 5, 3: 6})
    program.refresh(0, {4: 7})
    program.refresh(1, {5: 8, 6: 9})
    program.make_lookup({0: 10, 5: 11}, "other", negate=False, brings=True)
    chosen = [("alone", 2, 0), ("or lookup", 0, 1), ("negated", 1, 0)]
    program.run_query(
        chosen=chosen, condition=None, policy="sweep", folder="first", resets=False, sample=True, in_one_task=False
    )
    program.run_and_refresh(chosen, 1, {0: 12, 6: 13}, "first")
    program.collect_again(0, resets=True)
    program.start_stream([("or Python", 1, 0), ("alone", 0, 0)], "id % 4 < 3", "second")
    program.restart(is_clean=False, contents_then=[{1: 14}])
    program.run_two_queries(chosen, [("or condition", 0, 0)], "second")
    program.run_and_reset([("negated", 0, 0), ("alone", 1, 0)], "first")


def test_rows_are_those_of_a_plain_model(spark: SparkSession, tmp_path: Path) -> None:
    run_programs(spark, tmp_path, programs=2, steps=5)


@pytest.mark.thorough
def test_rows_of_more_programs_are_those_of_a_plain_model(spark: SparkSession, tmp_path: Path) -> None:
    run_programs(spark, tmp_path, programs=12, steps=15)


@pytest.mark.long
def test_rows_of_random_programs_are_those_of_a_plain_model(spark: SparkSession, tmp_path: Path) -> None:
    run_programs(spark, tmp_path, programs=60, steps=30, is_random=True)
