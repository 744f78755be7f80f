"""`tw.explain`: the orders that run, the reasons for them, and when they last changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from thalweg.keywords import checks_keywords
from thalweg.spark import runs
from thalweg.spark.filters.left_alone import left_in, left_text
from thalweg.spark.plan_text import keys_in_plan

KINDS = ("where", "join", "session")


@dataclass(frozen=True)
class Explanation:
    """The answer of `tw.explain`; prints as text, is a picture in a notebook, and `to_dict` gives plain values."""

    wheres: tuple[dict[str, Any], ...]
    joins: tuple[dict[str, Any], ...]
    sessions: tuple[dict[str, Any], ...]
    _text: str
    left: tuple[dict[str, str], ...] = ()  # filters that `tw.adapt` left as they were, and why

    def to_dict(self) -> dict[str, Any]:
        """Plain values, an entry for each `tw.where`, each `tw.join` and each `tw.Session`."""
        return {
            "wheres": [dict(description) for description in self.wheres],
            "joins": [dict(description) for description in self.joins],
            "sessions": [dict(description) for description in self.sessions],
            "left": [dict(description) for description in self.left],
        }

    def __str__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        """The same for a notebook: orders and join graphs as pictures, and the text."""
        from thalweg.dashboard.svg import html_of

        return html_of(self.to_dict(), self._text)


@checks_keywords("tw.explain")
def explain(what: Any) -> Explanation:  # noqa: ANN401 - a DataFrame, a streaming query, a driven stream or a session
    """Explain a DataFrame that `tw.where` or `tw.join` returned, or a query on it: which order runs, and why.

    Workers report when a task ends, so a DataFrame that has not run yet shows only its plan. Of the DataFrame that
    `tw.adapt` returned it tells, too, which filters stay as they were, and why.
    """
    left = left_in(what)
    if left is None:
        return explanation_of(runs_in(what))
    found = explanation_of(_runs_of(what))
    text = left_text(left, is_changed=bool(found.wheres))
    return replace(found, left=tuple(left), _text="\n\n".join(part for part in (str(found), text) if part))


def runs_in(what: Any) -> list[runs.Run]:  # noqa: ANN401 - as above
    """The runs of a DataFrame, a streaming query, a driven stream or a session; there is at least one."""
    found = _runs_of(what)
    if not found:
        raise ValueError(
            "no tw.where or tw.join of this program is in the plan: pass what they returned, or a query on it. If "
            "tw.adapt left the plan as it was, pass the very DataFrame that it returned, to see why"
        )
    return found


def _runs_of(what: Any) -> list[runs.Run]:  # noqa: ANN401 - as above
    own = vars(what).get("thalweg_run") if hasattr(what, "__dict__") else None
    return [own] if own is not None else runs.find(keys_in_plan(what))


def explanation_of(found: Sequence[runs.Run]) -> Explanation:
    """All that is known of some runs: filters, then joins, then sessions."""
    described = [(run, run.describe()) for kind in KINDS for run in found if run.kind == kind]
    wheres, joins, sessions = (
        tuple(description for run, description in described if run.kind == kind) for kind in KINDS
    )
    return Explanation(
        wheres=wheres,
        joins=joins,
        sessions=sessions,
        _text="\n\n".join(run.text(description) for run, description in described),
    )
