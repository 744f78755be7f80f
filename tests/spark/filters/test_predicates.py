from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import thalweg as tw
from thalweg.tables.keys import KeyTableError


def test_a_predicate_is_still_the_function_it_was() -> None:
    @tw.predicate(on="x", name="small", cost=2.5, after=["big"])
    def below(x: int) -> bool:
        """Whether x is small."""
        return x < 5

    assert below(3) is True
    assert below.__doc__ == "Whether x is small."
    assert (below.name, below.on, below.takes, below.cost, below.after) == ("small", ("x",), "rows", 2.5, ("big",))


def test_annotations_say_what_a_function_takes() -> None:
    def of_arrow(x: pa.Array) -> Any: ...  # noqa: ANN401
    def of_numpy(x: np.ndarray) -> Any: ...  # noqa: ANN401
    def of_pandas(x: pd.Series) -> Any: ...  # type: ignore[name-defined]  # noqa: ANN401, F821
    def of_rows(x: str) -> Any: ...  # noqa: ANN401
    def of_anything(x): ...  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202

    made = [tw.predicate(one, on="x").takes for one in (of_arrow, of_numpy, of_pandas, of_rows, of_anything)]
    assert made == ["arrow", "numpy", "pandas", "rows", "arrow"]
    assert tw.predicate(of_rows, on="x", takes="pandas").takes == "pandas"


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: tw.predicate(lambda x: x, on=[]), TypeError, "on is a column's name or a list of names"),
        (lambda: tw.predicate(lambda x: x, on=5), TypeError, "on is a column's name"),  # type: ignore[call-overload]
        (lambda: tw.predicate(lambda x: x, on="x", takes="polars"), ValueError, "takes is one of arrow, numpy"),  # type: ignore[call-overload]
        (lambda: tw.predicate(lambda x: x, on=["x", "y"]), TypeError, "List in on= one column for each"),
        (
            lambda: tw.predicate(lambda x: x, on="x", cost=0),
            ValueError,
            "cost= is a number above 0, .*not 0",
        ),
        (lambda: tw.predicate(lambda x: x, on="x", after=3), TypeError, "after= is a predicate, its name"),  # type: ignore[call-overload]
        (lambda: tw.predicate(5, on="x"), TypeError, "makes a predicate of a function, not of 5"),  # type: ignore[call-overload]
        (lambda: tw.expr(" "), ValueError, "not an empty text"),
        (lambda: tw.expr("a > 1", costs=3), TypeError, "no parameter 'costs'; did you mean 'cost'"),
        (lambda: tw.any_of("a > 1"), ValueError, "two predicates or more"),
        (lambda: tw.lookup(pa.table({"a": [1, 1]}), on="a"), KeyTableError, "predicate 'a in lookup'.*1"),
        (lambda: tw.lookup(pa.table({"a": [1, None]}), on="a"), KeyTableError, "NULL"),
        (lambda: tw.lookup(pa.table({"a": [1]}), on="b"), ValueError, "has no column 'b'; it has a. Write on="),
        (lambda: tw.lookup(5, on="b").keys, TypeError, "a DataFrame, an Arrow or pandas table, or a path, not 5"),
        (lambda: tw.lookup(pa.table({"a": [1]}), on={}), ValueError, "needs key columns"),
        (lambda: tw.prefix_match(pa.table({"n": ["10.0.0.1/8"]}), on={"ip": "n"}), KeyTableError, "10.0.0.0/8"),
        (lambda: tw.prefix_match(pa.table({"n": ["x"]}), on=["a", "b"]), ValueError, "takes one column"),  # type: ignore[arg-type]
    ],
)
def test_wrong_predicates_are_refused(make: Any, kind: type[Exception], message: str) -> None:  # noqa: ANN401
    with pytest.raises(kind, match=message):
        make()


def test_names_tell_what_is_meant() -> None:
    table = pa.table({"ip": ["a"]})
    assert tw.lookup(table, on="ip").name == "ip in lookup"
    assert tw.lookup("stored/blocked.parquet", on="ip").name == "ip in blocked.parquet"
    assert tw.not_(tw.any_of("a > 1", "b > 1")).name == "not (a > 1 or b > 1)"


def test_what_is_made_of_a_pinned_predicate_is_pinned() -> None:
    dice = tw.expr("rand() < 0.5", deterministic=False)
    assert dice.holds_place
    assert tw.any_of(dice, "a > 1").holds_place
    assert tw.not_(tw.any_of(dice, "a > 1")).holds_place
    assert not tw.not_("a > 1").holds_place


def test_parts_and_columns() -> None:
    both = tw.predicate(lambda x, y: x == y, on=["x", "y"])
    one = tw.not_(tw.any_of(both, tw.lookup(pa.table({"k": [1]}), on={"a": "k"}), "b > 1"))
    assert len(one.parts) == 5
    assert [column for part in one.parts for column in part.columns] == ["x", "y", "a"]


def test_a_lookup_is_read_again_when_it_is_refreshed() -> None:
    wanted = tw.lookup(pa.table({"k": [1]}), on="k")
    wanted.refresh(pa.table({"k": [2, 3]}))
    assert wanted.keys.contains([pa.array([1, 2])]).to_pylist() == [False, True]
