from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.session.harness import Driver

from thalweg.sql.errors import QueryError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REFUSED = [
    ("SELECT k,\n nofun(x) FROM A WINDOW [1]", (2, 2), "nofun"),
    ("SELECT k FROM A\nWHERE x > 1 AND\n nofun(k) WINDOW [1]", (3, 2), "nofun"),
    ("SELECT k FROM A WHERE x WINDOW [1]", (1, 23), "not a boolean"),
    ("SELECT k FROM A WHERE lower(s, 3) = 'a' WINDOW [1]", (1, 23), "lower"),
    ("SELECT A.k FROM A JOIN B ON A.k = B.k AND A.x + B.y WINDOW [1]", (1, 43), "not a boolean"),
    ("SELECT A.k FROM A JOIN B ON nofun(A.k) = B.k WINDOW [1]", (1, 29), "nofun"),
    ("SELECT k, count(*) AS n FROM A GROUP BY k HAVING nofun(k) WINDOW [1]", (1, 50), "nofun"),
    ("SELECT k FROM A WHERE is_od(k) WINDOW [1]", (1, 23), "write one of the session's predicates is_odd, or"),
    ("SELECT k FROM A\nWHERE is_odd(k, x) WINDOW [1]", (2, 7), r"takes 1 column, not 2 .* write is_odd\(value\)"),
]


def test_what_spark_refuses_is_told_with_line_and_column(spark: SparkSession, tmp_path: Path) -> None:
    session = Driver(spark, tmp_path).session
    for text, position, message in REFUSED:
        with pytest.raises(QueryError, match=message) as refused:
            session.query(text)
        assert (refused.value.line, refused.value.column) == position, text
        assert "SQLSTATE" not in str(refused.value)
    assert session.queries == ()
