"""`tw.explain`: what runs, in which order and why, and when it last changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from thalweg.spark import runs
from thalweg.spark.filters.run import FilterRun
from thalweg.spark.plan_text import keys_in_plan


@dataclass(frozen=True)
class Explanation:
    """What `tw.explain` found; prints as text, and `to_dict` gives the same as plain values."""

    wheres: tuple[dict[str, Any], ...]
    joins: tuple[dict[str, Any], ...]
    _text: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, one entry for each `tw.where` and each `tw.join`."""
        return {
            "wheres": [dict(description) for description in self.wheres],
            "joins": [dict(description) for description in self.joins],
        }

    def __str__(self) -> str:
        return self._text


def explain(what: Any) -> Explanation:  # noqa: ANN401 - a DataFrame, a streaming query, or a driven stream
    """What runs in which order and why: of a DataFrame that came through `tw.where` or `tw.join`, or of a query on it.

    Workers report when a task ends, so a DataFrame that has not run yet shows only what is planned.
    """
    own = vars(what).get("thalweg_run") if hasattr(what, "__dict__") else None
    found = [own] if own is not None else runs.find(keys_in_plan(what))
    if not found:
        raise ValueError(
            "no tw.where or tw.join of this program is in the plan: pass what they returned, or a query on it"
        )
    return explanation_of(found)


def explanation_of(found: Sequence[runs.Run]) -> Explanation:
    """All that is known of some runs, filters before joins."""
    in_order = sorted(found, key=lambda run: not isinstance(run, FilterRun))
    described = [(run, run.describe()) for run in in_order]
    return Explanation(
        wheres=tuple(description for run, description in described if isinstance(run, FilterRun)),
        joins=tuple(description for run, description in described if not isinstance(run, FilterRun)),
        _text="\n\n".join(run.text(description) for run, description in described),
    )
