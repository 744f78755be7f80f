"""`tw.explain`: the orders that run, the reasons for them, and when they last changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from thalweg.keywords import checks_keywords
from thalweg.spark import runs
from thalweg.spark.plan_text import keys_in_plan

KINDS = ("where", "join", "session")


@dataclass(frozen=True)
class Explanation:
    """The answer of `tw.explain`; prints as text, is a picture in a notebook, and `to_dict` gives plain values."""

    wheres: tuple[dict[str, Any], ...]
    joins: tuple[dict[str, Any], ...]
    sessions: tuple[dict[str, Any], ...]
    _text: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, an entry for each `tw.where`, each `tw.join` and each `tw.Session`."""
        return {
            "wheres": [dict(description) for description in self.wheres],
            "joins": [dict(description) for description in self.joins],
            "sessions": [dict(description) for description in self.sessions],
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

    Workers report when a task ends, so a DataFrame that has not run yet shows only its plan.
    """
    return explanation_of(runs_in(what))


def runs_in(what: Any) -> list[runs.Run]:  # noqa: ANN401 - as above
    """The runs of a DataFrame, a streaming query, a driven stream or a session; there is at least one."""
    own = vars(what).get("thalweg_run") if hasattr(what, "__dict__") else None
    found = [own] if own is not None else runs.find(keys_in_plan(what))
    if not found:
        raise ValueError(
            "no tw.where or tw.join of this program is in the plan: pass what they returned, or a query on it"
        )
    return found


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
