from __future__ import annotations

import pytest

from thalweg.spark.session.program import Program, ProgramQuery, SharedCondition
from thalweg.spark.session.shared_rows import BITS, shared_rows
from thalweg.sql.parse import parse_query
from thalweg.sql.query import Source

SOURCES = [Source("A", ("ts", "x", "y"))]


def program(*texts: str) -> Program:
    queries = []
    for number, text in enumerate(texts):
        query = parse_query(f"SELECT x FROM A WHERE {text} WINDOW [1]", SOURCES)  # noqa: S608 - a query of ours
        kept = tuple(SharedCondition("A", each.shared_sql, each.shared_sql) for each in query.selections)
        queries.append(ProgramQuery(str(number), query, {"A": kept}, {"A": ()}))
    return Program(tuple(queries))


def weaker(found: Program) -> dict[str, str | None]:
    pairs = [(condition, found.weaker(condition)) for condition in found.conditions]
    return {condition.sql: other.sql if other else None for condition, other in pairs}


def test_a_condition_is_evaluated_after_the_strongest_of_those_that_contain_it() -> None:
    found = program("x > 5", "x > 20 AND y = 1", "x > 10", "x = 7")
    assert weaker(found) == {
        "`x` > 5": None,
        "`x` > 20": "`x` > 10",
        "`y` = 1": None,
        "`x` > 10": "`x` > 5",
        "`x` = 7": "`x` > 5",
    }
    text = shared_rows("rows", found, [{"A": "A:x", "B": "B:y"}, {"A": "A:y"}])
    tree = "if(`x` > 5, 1L + if(`x` > 10, 8L + if(`x` > 20, 2L, 0L), 0L) + if(`x` = 7, 16L, 0L), 0L)"
    assert text.startswith("SELECT stream, time, coalesce(`A:x`, `B:y`) AS `0`, coalesce(`A:y`) AS `1`, CASE stream")
    assert text.endswith(f"WHEN 'A' THEN {tree} + if(`y` = 1, 4L, 0L) END AS `2` FROM rows")


@pytest.mark.parametrize("texts", [("x > 5", "5 < x"), ("5 < x", "x > 5", "x > 5 AND y > 1")])
def test_of_conditions_that_imply_each_other_one_is_first(texts: tuple[str, ...]) -> None:
    found = program(*texts)
    assert sum(found.weaker(condition) is None for condition in found.conditions if "y" not in condition.sql) == 1


def test_without_conditions_rows_are_as_they_are() -> None:
    query = ProgramQuery("0", parse_query("SELECT x FROM A WINDOW [1]", SOURCES), {"A": ()}, {"A": ()})
    assert shared_rows("rows", Program((query,)), []) == "SELECT stream, time FROM rows"


def test_many_conditions_are_several_whole_numbers() -> None:
    found = program(*(f"x = {number}" for number in range(BITS + 2)))
    text = shared_rows("rows", found, [])
    assert text.endswith(
        f"CASE stream WHEN 'A' THEN if(`x` = {BITS}, 1L, 0L) + if(`x` = {BITS + 1}, 2L, 0L) END AS `1` FROM rows"
    )
