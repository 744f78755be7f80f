from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from thalweg.ordering import POLICIES, AGreedy
from thalweg.spark.filters.worker.any_of import AnyOf
from thalweg.spark.filters.worker.judges import FunctionJudge
from thalweg.spark.filters.worker.view import View

OUTCOMES = (True, False, None, "fails")


def member(one: int) -> FunctionJudge:
    """A judge that reads its outcome from two bits of the row."""

    def judge(value: int) -> bool | None:
        outcome = OUTCOMES[value >> 2 * one & 3]
        if outcome == "fails":
            raise ValueError(f"of {one}")
        return outcome  # type: ignore[return-value]

    return FunctionJudge(f"member {one}", judge, "rows", [0])


@given(
    values=st.lists(st.integers(0, 63), min_size=1, max_size=60),
    kind=st.sampled_from(POLICIES),
    order=st.permutations([0, 1, 2]),
    cut=st.integers(0, 60),
)
def test_a_disjunction_does_not_depend_on_its_order(
    values: list[int], kind: type[AGreedy], order: list[int], cut: int
) -> None:
    judge = AnyOf("any", [member(one) for one in range(3)], kind(3, order=order))
    view = View([pa.array(values)])
    for part in (view[:cut], view[cut:]):
        if not len(part):
            continue
        verdict = judge.judge(part)
        for row, value in enumerate(part.column(0).to_pylist()):
            outcomes = {OUTCOMES[value >> 2 * one & 3] for one in range(3)}
            expected = next(outcome for outcome in (True, "fails", None, False) if outcome in outcomes)
            assert verdict.true[row] == (expected is True)
            assert (verdict.failed is not None and bool(verdict.failed[row])) == (expected == "fails")
            assert (verdict.null is not None and bool(verdict.null[row])) == (expected is None)


def test_what_accepts_most_comes_first() -> None:
    seldom = FunctionJudge("seldom", lambda x: x < 5, "numpy", [0])
    often = FunctionJudge("often", lambda x: x < 95, "numpy", [0])
    judge = AnyOf("any", [seldom, often], AGreedy(2, p=1.0), costs=[1.0, 1.0])
    rows = np.random.default_rng(1).integers(0, 100, 5000)
    assert judge.judge(View([pa.array(rows)])).true.tolist() == (rows < 95).tolist()
    assert judge.policy.order == (1, 0)
