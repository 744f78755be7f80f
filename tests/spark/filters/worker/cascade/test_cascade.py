from __future__ import annotations

import asyncio
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import thalweg as tw
from thalweg.ordering.types import Booleans, Floats
from thalweg.spark.filters.worker.cascade.judge import CascadeJudge, Score, WaitingCascadeJudge
from thalweg.spark.filters.worker.cascade.proxy import FIRST_ROWS, Proxy
from thalweg.spark.filters.worker.cascade.thresholds import Promise, Thresholds, learn, surely_above, surely_below
from thalweg.spark.filters.worker.judges import FunctionJudge, PredicateError
from thalweg.spark.filters.worker.view import View
from thalweg.spark.filters.worker.waiting.judge import WaitingJudge
from thalweg.spark.filters.worker.waiting.options import Waiting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROMISE = Promise(precision=0.9, recall=0.9, confidence=0.95)


@given(st.integers(1, 300), st.data())
def test_tests_are_exact(trials: int, data: st.DataObject) -> None:
    successes, share = data.draw(st.integers(0, trials)), data.draw(st.floats(0.05, 0.99))
    above, below = stats.binom.sf(successes - 1, trials, share), stats.binom.cdf(successes, trials, share)
    for chance, test in ((above, surely_above), (below, surely_below)):
        assert test(successes, trials, share, chance * 1.001 + 1e-12)
        assert not test(successes, trials, share, chance * 0.999 - 1e-12)


def scored(seed: int, rows: int, *, noise: float = 0.15) -> tuple[Floats, Booleans]:
    random = np.random.default_rng(seed)
    hidden = random.random(rows)
    return hidden + random.normal(0, noise, rows), hidden > 0.6


def test_learnt_thresholds_hold_what_is_promised() -> None:
    held = 0
    for seed in range(40):
        thresholds = learn(*scored(seed, 1000), PROMISE, doubt=0.05)
        scores, truths = scored(seed + 1000, 50_000)
        kept = (scores >= thresholds.accept) | ((scores >= thresholds.reject) & truths)
        held += (truths[kept].mean() >= 0.9) and (kept[truths].mean() >= 0.9)
    assert held >= 38


def test_a_score_that_tells_nothing_spares_nothing() -> None:
    random = np.random.default_rng(3)
    assert learn(random.random(2000), random.random(2000) < 0.5, PROMISE, doubt=0.05) == Thresholds()


def run(proxy: Proxy, scores: Floats, truths: Booleans, size: int = 250) -> Booleans:
    kept = np.zeros(scores.size, np.bool_)
    for start in range(0, scores.size, size):
        part = slice(start, start + size)
        split = proxy.split(scores[part])
        kept[part] = split.accepted | (split.asked & truths[part])
        proxy.note(scores[part][split.asked], truths[part][split.asked])
    return kept


def test_rows_are_spared_once_thresholds_are_learnt_and_a_change_is_noticed() -> None:
    proxy = Proxy(None, PROMISE, seed=1)
    scores, truths = scored(1, 40_000)
    run(proxy, scores, truths)
    assert proxy.spared > 0.3 * proxy.rows
    assert not proxy.drifts
    first = run(proxy, scores, ~truths)  # now the score means the opposite
    assert proxy.drifts
    assert (first[-10_000:] == ~truths[-10_000:]).mean() > 0.99  # all rows are judged by the costly predicate again


def test_the_first_rows_are_judged_by_the_costly_predicate_alone() -> None:
    scores, truths = scored(2, FIRST_ROWS)
    assert run(Proxy(None, PROMISE, seed=1), scores, truths).tolist() == truths.tolist()


def test_given_thresholds_and_rows_without_a_score() -> None:
    asked: list[int | None] = []

    def costly(number: int | None) -> bool:
        asked.append(number)
        return number is None or number % 2 == 0

    def score(number: int | None) -> float | None:
        if number == 7:
            raise ValueError("no score")
        return None if number is None else number / 10

    judge = CascadeJudge(
        "cascade", Score("score", score, "rows", [0]), FunctionJudge("costly", costly, "rows", [0]),
        Proxy(Thresholds(accept=0.8, reject=0.3), None),
    )  # fmt: skip
    verdict = judge.judge(View([pa.array([0, 2, 3, 4, None, 7, 8, 9])]))
    assert verdict.true.tolist() == [False, False, False, True, True, False, True, True]
    assert asked == [3, 4, None, 7]


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (lambda _: 0.5, "returned a single value for 3 rows: return a number for each row, or declare it with"),
        (lambda column: np.zeros((len(column), 2)), r"returned values of shape \(3, 2\) for 3 rows"),
    ],
)
def test_a_score_that_is_no_number_for_each_row_says_so(score: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(PredicateError, match=message):
        Score("score", score, "numpy", [0])(View([pa.array(range(3))]))


def test_a_costly_predicate_may_wait() -> None:
    async def is_even(number: int) -> bool:
        await asyncio.sleep(0)
        return number % 2 == 0

    waiting = WaitingJudge("even", is_even, Waiting(), [0], folder=tempfile.mkdtemp(), signature="even")
    score = Score("score", lambda column: column, "numpy", [0])
    judge = WaitingCascadeJudge("cascade", score, waiting, Proxy(Thresholds(accept=5, reject=2), None))
    assert judge.begin(View([pa.array(range(8))])).result().verdict.true.tolist() == [False] * 2 + [
        True, False, True, True, True, True,
    ]  # fmt: skip
    assert judge.report()["calls"] == 3
    assert judge.begin(View([pa.array([9])])).result().verdict.true.tolist() == [True]


def test_wrong_cascades() -> None:
    def score(a: int) -> float:
        return a / 2

    with pytest.raises(TypeError, match="accept= and reject=, or precision= and recall="):
        tw.cascade(score, "a > 1", accept=1)
    with pytest.raises(ValueError, match="reject= is at most accept="):
        tw.cascade(score, "a > 1", accept=1, reject=2)
    with pytest.raises(TypeError, match="confidence= is for thresholds that are learnt"):
        tw.cascade(score, "a > 1", accept=1, reject=0, confidence=0.9)
    with pytest.raises(ValueError, match="precision= is a share"):
        tw.cascade(score, "a > 1", precision=95, recall=0.9)
    wrong: Any = "high"
    with pytest.raises(ValueError, match=r"accept= is a score, such as accept=0\.5, not 'high'"):
        tw.cascade(score, "a > 1", accept=wrong, reject=0.1)
    with pytest.raises(ValueError, match="reject= is a score"):
        tw.cascade(score, "a > 1", accept=0.9, reject=math.nan)
    with pytest.raises(ValueError, match="recall= is a share"):
        tw.cascade(score, "a > 1", precision=0.9, recall=wrong)
    with pytest.raises(ValueError, match="accept= is a score"):
        tw.cascade(score, "a > 1", accept=True, reject=False)
    # Arrow's division of integers would round all scores to 0.
    with pytest.raises(TypeError, match=r"does not say which values it takes: write tw\.predicate\("):
        tw.cascade(lambda a: a / 2, "a > 1", accept=0.9, reject=0.1)
    assert tw.cascade(score, "a > 1", accept=math.inf, reject=-1).thresholds == Thresholds(math.inf, -1)


def test_on_spark(spark: SparkSession) -> None:
    def score(id: int) -> float:  # noqa: A002 - the column's name
        return id / 100

    kept = tw.where(spark.range(100), tw.cascade(score, "id % 2 = 0", accept=0.9, reject=0.1), "id > 5")
    assert sorted(row["id"] for row in kept.collect()) == [*range(10, 90, 2), *range(90, 100)]

    from pyspark.sql.functions import udf

    with pytest.raises(TypeError, match=r"pass the function of the UDF, the_udf\.func"):
        tw.cascade(udf(lambda a: a / 2, "double"), "a > 1", accept=0.9, reject=0.1)


ROWS = 24_000  # of two partitions, hence of two workers


@pytest.fixture
def small_batches(spark: SparkSession) -> Iterator[None]:
    setting = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = str(spark.conf.get(setting))
    spark.conf.set(setting, 250)
    yield
    spark.conf.set(setting, before)


def learnt_cascade(turned_from: int, folder: Path) -> tuple[Any, Any]:
    """A cascade that learns, and its costly function; from some place in each partition on, the score misleads.

    At the first row of a partition the function waits until both partitions have begun: so two workers run them.
    """
    seconds = 60

    def score(id: int) -> float:  # noqa: A002 - the column's name
        hidden = (id * 7919 % 10_007) / 10_007
        return hidden + 0.4 * ((id * 104_729 % 1009) / 1009 - 0.5)

    def is_good(id: int) -> bool:  # noqa: A002 - the column's name
        if id % (ROWS // 2) == 0:
            (folder / str(id)).touch()
            deadline = time.monotonic() + seconds
            while len(list(folder.iterdir())) < 2 and time.monotonic() < deadline:
                time.sleep(0.01)
        good = (id * 7919 % 10_007) / 10_007 > 0.6
        return good if id % (ROWS // 2) < turned_from else not good

    costly = tw.predicate(is_good, takes="rows")
    return tw.cascade(score, costly, precision=0.9, recall=0.9, name="cascade"), is_good


@pytest.mark.usefixtures("small_batches")
def test_two_workers_hold_what_is_promised_and_explain_tells_of_both(spark: SparkSession, tmp_path: Path) -> None:
    cascade, is_good = learnt_cascade(ROWS, tmp_path)
    kept = tw.where(spark.range(0, ROWS, 1, 2), cascade)
    found = {row["id"] for row in kept.collect()}
    good = {number for number in range(ROWS) if is_good(number)}
    assert found != good  # it is approximate, and spares rows
    assert len(found & good) >= 0.88 * len(found)
    assert len(found & good) >= 0.88 * len(good)
    explained = tw.explain(kept)
    (where,) = explained.to_dict()["wheres"]
    counts = where["judges"]["cascade"]
    assert where["workers"] == 2
    assert counts["scored"] == ROWS
    assert 0.2 * ROWS < counts["spared"] < ROWS - 2 * FIRST_ROWS  # each worker asks for its first rows
    assert 0.2 < counts["reject"] < counts["accept"] < 1
    assert counts["drifts"] == 0
    assert f"cascade: the score decided {counts['spared']:,} of {ROWS:,} rows, and accepts from" in str(explained)


@pytest.mark.usefixtures("small_batches")
def test_explain_tells_that_thresholds_were_learnt_anew_in_a_group_too(spark: SparkSession, tmp_path: Path) -> None:
    cascade, is_good = learnt_cascade(ROWS // 4, tmp_path)
    kept = tw.where(spark.range(0, ROWS, 1, 2), tw.any_of(cascade, "id < 0"))
    found = {row["id"] for row in kept.collect()}
    last = [number for number in range(ROWS) if number % (ROWS // 2) > 10_000]
    assert all((number in found) == is_good(number) for number in last)  # a score that misleads decides nothing
    counts = tw.explain(kept).to_dict()["wheres"][0]["judges"]["cascade"]
    assert counts["drifts"] >= 2
    assert f"thresholds were learnt anew {counts['drifts']} times" in str(tw.explain(kept))
