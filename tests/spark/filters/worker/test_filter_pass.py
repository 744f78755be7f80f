from __future__ import annotations

import math
import pickle
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thalweg.drift import DETECTORS, Detector
from thalweg.ordering import POLICIES, AGreedy, Policy
from thalweg.ordering.repeats import Repeats, Way
from thalweg.spark.filters.worker import filter_pass as module
from thalweg.spark.filters.worker.distinct_judge import DistinctJudge
from thalweg.spark.filters.worker.filter_pass import FilterPass, pass_of
from thalweg.spark.filters.worker.judges import FunctionJudge, Judge, PredicateError
from thalweg.spark.filters.worker.report import WorkerReport
from thalweg.spark.filters.worker.spec import Answer, PassSpec, PolicySpec

OUTCOMES = (True, False, None, "fails")
PREDICATES = 3


def by_bits(one: int) -> Callable[[int], bool | None]:
    def judge(value: int) -> bool | None:
        outcome = OUTCOMES[value >> 2 * one & 3]
        if outcome == "fails":
            raise ValueError(f"row {value}")
        return outcome  # type: ignore[return-value]

    return judge


def judges() -> Sequence[Judge]:
    return [FunctionJudge(f"p{one}", by_bits(one), "rows", [0]) for one in range(PREDICATES)]


def spec(state: str, kind: type[Policy] = AGreedy, key: str = "query.0", **more: Any) -> PassSpec:  # noqa: ANN401
    options = more.pop("options", {})
    return PassSpec(
        key=key,
        signature="three by bits",
        judges=judges,
        columns=("value",),
        policy=PolicySpec(kind, PREDICATES, options),
        folder=state,
        names=("p0", "p1", "p2"),
        numbers=(0, 1, 2),
        **more,
    )


def truth(values: Sequence[int]) -> tuple[list[bool], list[int]]:
    """Which rows are kept, and which ones no predicate rejects and some fail on."""
    outcomes = [[OUTCOMES[value >> 2 * one & 3] for one in range(PREDICATES)] for value in values]
    rejected = [any(one is False or one is None for one in row) for row in outcomes]
    failing = [row for row, one in enumerate(outcomes) if "fails" in one and not rejected[row]]
    return [all(one is True for one in row) for row in outcomes], failing


def batches(values: Sequence[int], cuts: Sequence[int]) -> list[tuple[pa.Array]]:
    parts = np.split(np.array(values, np.int64), sorted(min(cut, len(values)) for cut in cuts))
    return [(pa.array(part),) for part in parts]


rows = st.lists(st.integers(0, 63), max_size=120)
cuts = st.lists(st.integers(0, 120), max_size=4)
every_policy = st.sampled_from(POLICIES)
orders = st.permutations(range(PREDICATES))


@given(values=rows, cuts=cuts, kind=every_policy, order=orders)
def test_what_is_kept_depends_on_neither_policy_nor_order_nor_batches(
    tmp_path_factory: pytest.TempPathFactory, values: list[int], cuts: list[int], kind: type[Policy], order: list[int]
) -> None:
    one = FilterPass(spec(str(tmp_path_factory.mktemp("state")), kind, on_error="drop", options={"order": order}))
    kept = [flag for array in one.run(batches(values, cuts)) for flag in array.to_pylist()]
    assert kept == truth(values)[0]
    assert one.failed.sum() == len(truth(values)[1])
    assert one.report().kept == sum(kept)


class AlwaysNew(Repeats):
    """Asks for each value that is not remembered, whatever pays."""

    def choose(self, rows: int) -> Way:
        return Way.EACH_NEW_VALUE


def distinct_judges() -> Sequence[Judge]:
    return [DistinctJudge(judge, [0], AlwaysNew()) for judge in judges()]


@pytest.mark.parametrize("answer", [Answer.KEEP, Answer.TRUTH])
def test_rows_that_are_not_asked_for_have_the_same_answers_and_are_counted(tmp_path: Path, answer: Answer) -> None:
    values = np.random.default_rng(0).integers(0, 64, 3000).tolist()
    plain, distinct = (
        FilterPass(replace(spec(str(tmp_path / name), on_error="drop", answer=answer), judges=makes))
        for name, makes in (("plain", judges), ("distinct", distinct_judges))
    )
    answers = [
        [flag for array in each.run(batches(values, [1000, 1500])) for flag in array.to_pylist()]
        for each in (plain, distinct)
    ]
    assert answers[0] == answers[1]
    assert plain.failed.tolist() == distinct.failed.tolist()
    assert plain.report().repeated == [0] * PREDICATES
    assert WorkerReport.from_bytes(distinct.report().to_bytes()).repeated == [
        judge.repeated for judge in distinct.judges
    ]
    assert sum(judge.repeated for judge in distinct.judges) > 1000


@pytest.mark.parametrize("answer", Answer)
def test_cheap_batches_are_evaluated_together_and_answered_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Answer
) -> None:
    values = np.random.default_rng(0).integers(0, 64, 5000).tolist()
    given_batches, seen = batches(values, [*range(0, 4000, 70), 4000, 4000]), list[int]()
    monkeypatch.setattr(module, "CHEAP_SECONDS", math.inf)
    one = FilterPass(
        spec(str(tmp_path), on_error="raise" if answer is Answer.KEEP_OR_REASON else "drop", answer=answer)
    )
    keep = one.keep

    def noted(columns: Sequence[pa.Array]) -> Any:  # noqa: ANN401 - as keep
        seen.append(len(columns[0]))
        return keep(columns)

    monkeypatch.setattr(one, "keep", noted)
    answers = [array.to_pylist() for array in one.run(given_batches)]
    assert [len(answer) for answer in answers] == [len(columns[0]) for columns in given_batches]
    assert [flag in (True, "") for answer in answers for flag in answer] == truth(values)[0]
    assert max(seen[:-2]) > 7 * 70


@given(values=rows, cuts=cuts, kind=every_policy, order=orders)
def test_errors_depend_on_neither_policy_nor_order_nor_batches(
    tmp_path_factory: pytest.TempPathFactory, values: list[int], cuts: list[int], kind: type[Policy], order: list[int]
) -> None:
    one = FilterPass(spec(str(tmp_path_factory.mktemp("state")), kind, options={"order": order}))
    kept, failing = truth(values)
    if not failing:
        assert [flag for array in one.run(batches(values, cuts)) for flag in array.to_pylist()] == kept
        return
    first = values[failing[0]]
    name = next(f"p{number}" for number in range(PREDICATES) if OUTCOMES[first >> 2 * number & 3] == "fails")
    with pytest.raises(
        PredicateError, match=rf"'{name}' failed with ValueError: row {first} \(line \d+ of \w+.py\) on the row"
    ) as caught:
        list(one.run(batches(values, cuts)))
    assert f"{{'value': {first}}}" in str(caught.value)
    assert "on_error='drop'" in str(caught.value)


@given(values=rows, cuts=cuts, order=orders)
def test_errors_that_are_put_off_are_told(
    tmp_path_factory: pytest.TempPathFactory, values: list[int], cuts: list[int], order: list[int]
) -> None:
    one = FilterPass(
        spec(str(tmp_path_factory.mktemp("state")), answer=Answer.KEEP_OR_REASON, options={"order": order})
    )
    outcomes = [text for array in one.run(batches(values, cuts)) for text in array.to_pylist()]
    kept, failing = truth(values)
    assert [outcome == "" for outcome in outcomes] == kept
    assert [row for row, outcome in enumerate(outcomes) if outcome] == failing
    for row in failing:
        number = next(one for one in range(PREDICATES) if OUTCOMES[values[row] >> 2 * one & 3] == "fails")
        told = f"{number:02d} predicate 'p{number}' failed with ValueError: row {values[row]} (line "
        assert outcomes[row].startswith(told)
        assert f" on the row {{'value': {values[row]}}}" in outcomes[row]


def test_a_worker_begins_with_what_another_has_learnt(tmp_path: Path) -> None:
    values = [0b000001] * 5 + [0b010000] * 300 + [0] * 20  # p2 drops nearly all
    options = {"costs": [1.0, 1.0, 1.0]}
    first = FilterPass(spec(str(tmp_path), options=options))
    list(first.run(batches(values, [])))
    assert first.pipeline.policy.order[0] == 2
    second = FilterPass(spec(str(tmp_path), options=options))
    second.learn_from_others()
    assert second.pipeline.policy.order == first.pipeline.policy.order
    assert len(second.pipeline.policy.profile) == len(first.pipeline.policy.profile)
    second.learn_from_others()
    assert len(second.pipeline.policy.profile) == len(first.pipeline.policy.profile)  # nothing is taken in twice


def test_nothing_is_learnt_from_other_predicates(tmp_path: Path) -> None:
    first = FilterPass(spec(str(tmp_path)))
    list(first.run(batches([0b010000] * 300, [])))
    other = FilterPass(replace(spec(str(tmp_path)), signature="other predicates"))
    other.learn_from_others()
    assert not len(other.pipeline.policy.profile)
    assert other.pipeline.policy.order == (0, 1, 2)


def test_damaged_state_costs_the_learning_not_the_query(tmp_path: Path) -> None:
    (tmp_path / "broken.learned").write_bytes(b"thalweg1 and then nothing")
    one = FilterPass(spec(str(tmp_path), on_error="drop"))
    assert [array.to_pylist() for array in one.run(batches([0, 1], []))] == [[True, False]]


def test_a_folder_that_cannot_be_written_costs_the_sharing_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    one = FilterPass(spec(str(tmp_path / "file"), on_error="drop"))
    assert [array.to_pylist() for array in one.run(batches([0, 1], []))] == [[True, False]]


def test_a_process_keeps_a_query_from_task_to_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_passes", OrderedDict())
    first = pass_of(spec(str(tmp_path)))
    assert pass_of(spec(str(tmp_path))) is first
    assert pass_of(spec(str(tmp_path), key="another.0")) is not first
    for number in range(module.MOST_PASSES):
        pass_of(spec(str(tmp_path), key=f"more {number}"))
    assert pass_of(spec(str(tmp_path))) is not first


def test_what_was_learnt_survives_the_file(tmp_path: Path) -> None:
    one = FilterPass(spec(str(tmp_path), on_error="drop"))
    list(one.run(batches(list(range(64)) * 5, [100])))
    learned = one.report()
    read = WorkerReport.from_bytes(learned.to_bytes())
    assert read.profile.masks.tolist() == learned.profile.masks.tolist()
    assert {**vars(read), "profile": None} == {**vars(learned), "profile": None}


def test_the_spec_can_be_sent() -> None:
    assert pickle.loads(pickle.dumps(spec("somewhere"))).names == ("p0", "p1", "p2")  # noqa: S301 - our own


@pytest.mark.parametrize("detector", [None, *DETECTORS], ids=lambda one: one.name if one else "no detector")
def test_changes_in_the_data_are_reported(tmp_path: Path, detector: type[Detector] | None) -> None:
    early, late = [0b000001] * 19 + [0], [0b010000] * 19 + [0]  # p0 drops nearly all, then p2 does
    policy = PolicySpec(AGreedy, PREDICATES, {"costs": [1.0, 1.0, 1.0]}, detector() if detector else None)
    one = FilterPass(replace(spec(str(tmp_path)), policy=policy))
    kept = [flag for array in one.run(batches((early * 500) + (late * 500), [5000, 10_000, 15_000])) for flag in array]
    assert sum(flag.as_py() for flag in kept) == 1000
    assert one.pipeline.policy.order[0] == 2
    drifts = one.report().drifts
    movements = [drift for drift in drifts if drift["kind"] == "movement"]
    assert all(movement["rows"] > 10_000 and movement["dropped"] > 0 for movement in movements)
    assert movements or (detector is not None and drifts)  # a detector may see the change before ordinary processing
