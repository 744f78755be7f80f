from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.spark.session.harness import SECOND, Batch, Driver, QueryText, expected, rows_in_memory, with_end
from tests.spark.session.test_guards import program

import thalweg as tw
from thalweg.ordering.cost import order_cost
from thalweg.ordering.static_greedy import greedy_order
from thalweg.spark.filters.sample import take_sample
from thalweg.spark.session import condition_orders
from thalweg.spark.session.condition_orders import (
    LONGEST_PAUSE,
    TriedRows,
    conjunctions_of_costly,
    in_order,
    is_surely_better,
)
from thalweg.spark.session.program import Program

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from thalweg.spark.filters.conditions import SparkCondition
    from thalweg.spark.filters.forms import SampledRows

PATTERNS = ("s RLIKE 'a'", "s RLIKE 'b'", "s RLIKE 'c'")


def tried(found: Program, is_true: Mapping[str, Sequence[bool]], seconds: Mapping[str, float]) -> TriedRows:
    """Rows with the answers of conditions, by their text; cheap conditions take a nanosecond."""
    by_text = {condition.sql.replace("`", ""): condition for condition in found.conditions}
    return TriedRows(
        {by_text[text]: np.array(answers, np.bool_) for text, answers in is_true.items()},
        {condition: seconds.get(text, 1e-9) for text, condition in by_text.items()},
    )


@given(
    st.lists(st.tuples(*[st.booleans()] * 3), min_size=1, max_size=30),
    st.tuples(*[st.floats(1e-6, 1e-3)] * 3),
)
def test_a_single_conjunction_has_the_greedy_order_of_where(
    rows: list[tuple[bool, ...]], seconds: tuple[float, ...]
) -> None:
    found = program(" AND ".join(PATTERNS))
    sample = tried(
        found,
        {text: [row[place] for row in rows] for place, text in enumerate(PATTERNS)},
        dict(zip(PATTERNS, seconds, strict=True)),
    )
    masks = [sum(1 << place for place in range(3) if not row[place]) for row in rows]
    columns = [condition.column for condition in found.conditions]
    order = greedy_order(masks, seconds)
    assert sample.greedy(found, "A") == tuple(columns[number] for number in order)
    ordered = dataclasses.replace(found, orders={"A": sample.greedy(found, "A")})
    assert [each.column for each in in_order(ordered, "A")] == [columns[number] for number in order]
    assert sample.costs(ordered, "A").mean() == pytest.approx(order_cost(masks, order, seconds))


def test_a_condition_of_several_queries_counts_once_and_for_all_of_them() -> None:
    """The pattern b decides both conjunctions, and is asked once; c alone decides as much of the second one."""
    found = program("s RLIKE 'a' AND s RLIKE 'b'", "s RLIKE 'c' AND s RLIKE 'b'")
    a, b, c = PATTERNS
    answers = {a: [True, False] * 8, b: [False] * 15 + [True], c: [False] * 16}
    sample = tried(found, answers, {a: 1.0, b: 1.5, c: 1.0})
    order = sample.greedy(found, "A")
    assert order[0] == next(each.column for each in found.conditions if "'b'" in each.sql)
    ordered = dataclasses.replace(found, orders={"A": order})
    assert sample.costs(ordered, "A").sum() < sample.costs(found, "A").sum()


def test_rows_that_cheap_conditions_decide_do_not_count() -> None:
    a, b, _ = PATTERNS
    found = program(f"x = 1 AND {a} AND {b}")
    answers = {"x = 1": [True] * 4 + [False] * 8, a: [True] * 4 + [False] * 8, b: [False] * 4 + [True] * 8}
    sample = tried(found, answers, {a: 1.0, b: 1.0})
    assert sample.greedy(found, "A")[0] == found.conditions[2].column
    assert sample.costs(found, "A").sum() == 8


def test_an_order_has_to_be_surely_better() -> None:
    present, half = np.full(400, 2e-6), np.full(400, 1e-6)
    assert is_surely_better(present, half, rows=1_000_000)
    assert not is_surely_better(present, half, rows=1_000)  # less than a new text costs
    assert not is_surely_better(present, present * 0.95, rows=1_000_000_000)
    by_chance = np.where(np.arange(400) == 0, 0.0, present)
    by_chance[0] = -400e-6
    assert not is_surely_better(present, by_chance, rows=1_000_000_000)


def test_only_conjunctions_of_several_costly_conditions_are_looked_at() -> None:
    a, b, _ = PATTERNS
    assert not conjunctions_of_costly(program(f"x = 1 AND {a}", b), "A")
    assert len(conjunctions_of_costly(program(f"x = 1 AND {a}", f"{a} AND {b}"), "A")) == 1


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of each sample, in which every condition takes a millisecond, whatever the clock says."""
    found: list[int] = []

    def sample(
        frame: DataFrame, conditions: Sequence[SparkCondition], columns: dict[str, Column], size: int | None
    ) -> SampledRows:
        taken = take_sample(frame, conditions, columns, size)
        found.append(len(taken))
        return dataclasses.replace(taken, seconds=np.full(len(conditions), 1e-3))

    monkeypatch.setattr(condition_orders, "take_sample", sample)
    return found


def batches_of(words: Sequence[str | None], micro_batches: int, start: int = 0) -> list[Batch]:
    return [
        {
            "A": [
                (place % 2, place, words[place % len(words)], (number * 10 + 1) * SECOND + place)
                for place in range(1500)
            ]
        }
        for number in range(start, start + micro_batches)
    ]


def test_the_order_follows_what_rows_tell_and_results_do_not(
    spark: SparkSession, tmp_path: Path, looks: list[int]
) -> None:
    driver = Driver(spark, tmp_path)
    text = QueryText("SELECT x FROM A WHERE s LIKE '%a%' AND s LIKE '%b%' AND s LIKE '%c%'", 5)
    query = driver.session.query(str(text))
    rarely_c, rarely_a = batches_of(["abc", *["ab"] * 5, None], 4), batches_of(["abc", *["bc"] * 5, None], 6, 4)
    driver.run(*rarely_c)
    assert driver.engine is not None
    driver.engine._orders_credit = 0.0  # noqa: SLF001 - samples of a test take longer than its micro-batches
    about = driver.session.explain().to_dict()["sessions"][0]["costly_conditions"]
    assert about[0]["conditions"][0]["condition"] == "`s` LIKE '%c%'"
    assert about[0]["seconds"] < about[0]["seconds_as_written"]
    assert "costly conditions on A since micro-batch 1: `s` LIKE '%c%'" in str(driver.session.explain())
    for batch in rarely_a:
        driver.engine._orders_credit = 0.0  # noqa: SLF001 - as above
        driver.run(batch)
    about = driver.session.explain().to_dict()["sessions"][0]["costly_conditions"]
    assert about[0]["conditions"][0]["condition"] == "`s` LIKE '%a%'"
    end = with_end([*rarely_c, *rarely_a])
    driver.run(end[-1])
    assert rows_in_memory(query) == expected(text, end)
    assert rows_in_memory(query).total()
    assert 2 <= len(looks) < len(end)
    assert all(rows <= 4000 for rows in looks)


def test_a_cheap_predicate_that_drops_more_comes_before_a_pattern(
    spark: SparkSession, tmp_path: Path, looks: list[int]
) -> None:
    """It is asked again where it has failed, and no pattern rejects the row: the query fails as without that order."""
    driver = Driver(spark, tmp_path)

    @tw.predicate(on="x", takes="rows", name="is_seventh")
    def is_seventh(x: int) -> bool:
        if x == 1200:
            raise ValueError("no number")
        return x % 7 == 0

    driver.session.predicate("is_seventh", is_seventh)
    texts = [
        QueryText("SELECT x FROM A WHERE is_seventh(x) AND s LIKE '%a%' AND k >= 0", 5),
        QueryText("SELECT k, x FROM A WHERE is_odd(x) AND s LIKE '%b%'", 5),
        QueryText("SELECT x FROM A WHERE s LIKE '%c%' AND NOT is_odd(x) AND s LIKE '%b%'", 5),
    ]
    queries = [driver.session.query(str(text)) for text in texts]
    failing = driver.session.query("SELECT x FROM A WHERE s LIKE '%b%' AND is_seventh(x) WINDOW [5]")
    words = ["ab", "b", "c", None, "cb"]
    harmless = [{"A": [row for row in each["A"] if row[1] != 1200]} for each in batches_of(words, 4)]
    for batch in harmless:
        driver.run(batch)
        assert driver.engine is not None
        driver.engine._orders_credit = 0.0  # noqa: SLF001 - samples of a test take longer than its micro-batches
    assert 1 <= len(looks) <= len(harmless)
    (about,) = driver.session.explain().to_dict()["sessions"][0]["costly_conditions"]
    order = [each["condition"] for each in about["conditions"]]
    assert set(order[:3]) == {"is_seventh(`x`)", "is_odd(`x`)", "NOT is_odd(`x`)"}
    assert about["seconds"] < about["seconds_as_written"]
    assert f"costly conditions on A since micro-batch 1: {order[0]} (" in str(driver.session.explain())
    # Now the predicate fails for a row with the first word.
    batches = [*harmless, *batches_of(words, 1, 4), *batches_of(words[3:4], 1, 5)]
    driver.run(*batches[4:])
    status = {each["name"]: each["status"] for each in driver.session.explain().to_dict()["sessions"][0]["queries"]}
    first, *others = queries
    for query in (first, failing):
        assert "ValueError: no number" in status[query.name]
    for query, text in zip(others, texts[1:], strict=True):
        assert rows_in_memory(query) == expected(text, batches), str(text)
        assert rows_in_memory(query).total()


def test_pauses_between_samples_grow_while_the_order_stays(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver(spark, tmp_path)
    found = Program((driver.session.query("SELECT x FROM A WHERE s LIKE '%a%' AND s LIKE '%b%' WINDOW [5]").compiled,))
    orders = condition_orders.ConditionOrders({"A": driver.session._catalog().streams["A"]})  # noqa: SLF001
    monkeypatch.setattr(orders, "_try_rows", lambda *_: None)
    looked = []
    for number in range(300):
        for stream in orders.due(found, {"A": 5000}):
            orders.look(None, number, found, stream, 5000)  # type: ignore[arg-type]
            looked.append(number)
    assert looked[:6] == [0, 2, 5, 10, 19, 36]
    assert np.diff(looked).max() == LONGEST_PAUSE + 1
    assert orders.due(found, {"A": 999}) == []


def test_a_session_without_such_conjunctions_takes_no_sample(
    spark: SparkSession, tmp_path: Path, looks: list[Any]
) -> None:
    driver = Driver(spark, tmp_path)
    driver.session.query("SELECT x FROM A WHERE k = 1 AND s LIKE '%a%' WINDOW [5]")
    driver.session.query("SELECT x FROM A WHERE s LIKE '%b%' WINDOW [5]")
    driver.run(*batches_of(["ab"], 3))
    assert looks == []
    assert driver.session.explain().to_dict()["sessions"][0]["costly_conditions"] == []
