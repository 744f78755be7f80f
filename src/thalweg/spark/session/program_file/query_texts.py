"""Tells what is wrong with the texts of queries beside problems that keep Spark from analysing them."""

from __future__ import annotations

from collections.abc import Mapping

from thalweg.spark.session.program_file.fields import Checker
from thalweg.sql.errors import QueryError
from thalweg.sql.parse import check_clauses


def note_wrong_texts(checker: Checker, texts: Mapping[str, str]) -> None:
    """Note problems of texts, by the names of queries, if there are others already.

    Without other problems the session parses the same texts, and knows the columns of streams as well.
    """
    if not checker.problems:
        return
    for name, text in texts.items():
        try:
            check_clauses(text)
        except QueryError as error:
            checker.problems.append(checker.text.query_problem(("queries", name, "text"), error))
