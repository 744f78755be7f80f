from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from thalweg.ordering import AGreedy, AsWritten, Independent, Sweep
from thalweg.spark.filters.routes import MOST_BROUGHT, check_route_by, routes_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = (
    "id long, kind string, flag boolean, small smallint, day date, price decimal(9, 2), at timestamp, score double, "
    "tags array<string>, place struct<country: string, zip: int>, lasted interval day to second"
)


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], SCHEMA)


def routes(frame: DataFrame, route_by: Any, used: tuple[str, ...] = ()) -> Any:  # noqa: ANN401
    return routes_of(frame, route_by, used, AGreedy, 3)


def test_by_default_there_are_none(frame: DataFrame) -> None:
    assert routes(frame, None) is None


def test_auto_takes_what_python_has_and_what_is_cheap(frame: DataFrame) -> None:
    found = routes(frame, "auto", ("id", "place.zip", "tags", "id"))
    assert found.in_python == ("id", "place.zip")
    assert found.optional == ("kind", "flag", "small", "day", "place.country")
    assert "list<element: string>" in found.left_out["tags"]
    assert "struct<" in found.left_out["place"]
    assert "write route_by='price'" in found.left_out["price"]
    assert set(found.types) == {
        *found.in_python,
        *found.optional,
        "price",
        "at",
        "score",
        "lasted",
    }  # that a plan may branch by


def test_auto_takes_fields_of_structs_that_can_be_named(spark: SparkSession) -> None:
    schema = "user struct<country: string, `first name`: string, Kind: int, kind: int>, `place.zip` int, "
    frame = spark.createDataFrame([], schema + "place struct<zip: int, tags: array<int>, inner: struct<x: int>>")
    found = routes(frame, "auto")
    assert found.optional == ("user.country",)
    assert {"user.first name", "user.Kind", "place.zip", "place.tags", "place.inner"} <= set(found.left_out)


def test_auto_brings_few_columns(spark: SparkSession) -> None:
    wide = spark.createDataFrame([], ", ".join(f"c{number} int" for number in range(50)) + ", `a.b` int")
    found = routes(wide, "auto")
    assert len(found.optional) == MOST_BROUGHT
    assert len(found.types) == 32
    assert "8 columns are considered already" in found.left_out["c49"]
    assert "needs quotes" in found.left_out["a.b"]


def test_named_columns_are_exactly_those(frame: DataFrame) -> None:
    assert routes(frame, "score").in_python == ("score",)
    assert routes(frame, ["place.country", "price"]).in_python == ("place.country", "price")
    assert routes(frame, ("kind",)).left_out == {}


@pytest.mark.parametrize(
    ("route_by", "message"),
    [
        ("knid", "route_by needs a column 'knid'; the DataFrame has id, kind, .*; did you mean 'kind'"),
        ("tags", "'tags' cannot tell classes apart: it is a list<element: string>; route by a plain column"),
        ("place", "'place' cannot tell classes apart: it is a struct<.*; route by a plain column, such as one of its"),
        (["kind", "kind"], "up to 32 different columns, not kind, kind"),
    ],
)
def test_bad_columns_are_refused_by_name(frame: DataFrame, route_by: Any, message: str) -> None:  # noqa: ANN401
    with pytest.raises((ValueError, TypeError), match=message):
        routes(frame, route_by)


@pytest.mark.parametrize("route_by", [5, [], [5], ""])
def test_what_is_no_name_is_refused(route_by: Any) -> None:  # noqa: ANN401
    with pytest.raises(TypeError, match="route_by is 'auto', a column's name, a list of names, or None, not "):
        check_route_by(route_by)


def test_why_there_are_no_classes(frame: DataFrame) -> None:
    assert routes_of(frame, "auto", (), Independent, 2).off is None  # type: ignore[union-attr]
    for kind, predicates, message in (
        (Sweep, 2, "write policy='a-greedy' or policy='independent'"),
        (AsWritten, 2, "as-written does not evaluate profile tuples"),
        (AGreedy, 1, "one predicate, hence one order"),
    ):
        found = routes_of(frame, "kind", (), kind, predicates)
        assert found is not None
        assert found.in_python == ()
        assert message in str(found.off)
    assert "no column" in str(routes_of(frame.select("tags"), "auto", (), AGreedy, 2).off)  # type: ignore[union-attr]
