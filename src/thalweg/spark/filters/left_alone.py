"""The filters that `tw.adapt` left as they were, and why, for `tw.explain`.

A DataFrame that `tw.adapt` returned holds a function that tells them. Nothing is asked of Spark before somebody asks
for the explanation: most calls of `tw.adapt` change nothing, and have to be cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ATTRIBUTE = "thalweg_left_filters"  # of a DataFrame that `tw.adapt` returned

SINGLE = "it has a single condition"
ALL_CHEAP = "all its conditions are cheap"
ONE_SLOW = "only one of its conditions takes time, and Spark evaluates all of them"
BEHIND_BLOCKING = (
    "its conditions run in Spark behind a join, an aggregation, a sort or a window, where no sample is taken"
)
SUBQUERY = "it has a subquery"
CACHED = "it is cached"
IN_TEXT = "with Spark Connect the text of spark.sql is analysed at the server alone"


@dataclass(frozen=True)
class LeftFilter:
    """A filter that stays as it is; texts are made when they are asked for."""

    condition: Callable[[], str]
    reason: Callable[[], str]


Left = Sequence[LeftFilter]


def note_left(frame: DataFrame, tell: Callable[[DataFrame], Left]) -> DataFrame:
    """Let a DataFrame tell which filters were left alone; returns the DataFrame."""
    setattr(frame, ATTRIBUTE, tell)
    return frame


def left_in(what: Any) -> list[dict[str, str]] | None:  # noqa: ANN401 - whatever is explained
    """The filters that `tw.adapt` left alone in the DataFrame that it returned; None for anything else."""
    tell = vars(what).get(ATTRIBUTE) if hasattr(what, "__dict__") else None
    if tell is None:
        return None
    return [{"filter": each.condition(), "reason": each.reason()} for each in tell(what)]


def left_text(left: Sequence[dict[str, str]], *, is_changed: bool) -> str:
    """Filters that were left alone, as text.

    >>> print(left_text([{"filter": "(a > 3)", "reason": SINGLE}], is_changed=False))
    tw.adapt changed nothing. Filters that are as they were:
        (a > 3): it has a single condition
    >>> print(left_text([], is_changed=False))
    tw.adapt changed nothing: it found no filter in the plan
    """
    if not left:
        return "" if is_changed else "tw.adapt changed nothing: it found no filter in the plan"
    first = "tw.adapt left some filters as they were:"
    lines = [first if is_changed else "tw.adapt changed nothing. Filters that are as they were:"]
    return "\n".join([*lines, *(f"    {each['filter']}: {each['reason']}" for each in left)])
