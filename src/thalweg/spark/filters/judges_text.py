"""The counts of predicates that wait for services, and of cascades, for `tw.explain`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from thalweg.spark.filters.worker.judges import sum_of

if TYPE_CHECKING:
    from thalweg.spark.filters.worker.report import WorkerReport


def judge_counts(reports: Sequence[WorkerReport]) -> dict[str, dict[str, Any]]:
    """The counts of all workers together, for each predicate that has any."""
    return sum_of(report.judges for report in reports)


def judges_text(judges: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A line for each predicate that waits and for each cascade.

    >>> counts = {"calls": 1200, "errors": 3, "remembered": 9, "outages": 0, "cost": 96.0, "budget": 1e3, "spent": 96}
    >>> print(*judges_text({"is_toxic": counts}))
    is_toxic: 1,200 calls, of which 3 failed; 9 rows from the cache; told cost 96; 96 of a budget of 1,000 spent
    >>> print(*judges_text({"cascade": {"accept": 0.9, "reject": None, "scored": 100, "spared": 25, "drifts": 1}}))
    cascade: the score decided 25 of 100 rows, and accepts from 0.9 on; thresholds were learnt anew 1 times
    """
    return [f"{name}: {'; '.join([*_calls(counts), *_cascade(counts)])}" for name, counts in judges.items()]


def _calls(counts: Mapping[str, Any]) -> list[str]:
    if "calls" not in counts:
        return []
    errors = f", of which {counts['errors']:,} failed" if counts["errors"] else ""
    parts = [f"{counts['calls']:,} calls{errors}"]
    if counts["remembered"]:
        parts.append(f"{counts['remembered']:,} rows from the cache")
    if counts["outages"]:
        parts.append(f"the service was down {counts['outages']:,} times, as workers saw it")
    if counts["cost"] is not None:
        parts.append(f"told cost {counts['cost']:,.6g}")
    if counts["budget"] is not None:
        parts.append(f"{counts['spent']:,.6g} of a budget of {counts['budget']:,.6g} spent")
    return parts


def _cascade(counts: Mapping[str, Any]) -> list[str]:
    if "scored" not in counts:
        return []
    accepts = "" if counts["accept"] is None else f", and accepts from {counts['accept']:.4g} on"
    rejects = "" if counts["reject"] is None else f", and rejects below {counts['reject']:.4g}"
    parts = [f"the score decided {counts['spared']:,} of {counts['scored']:,} rows{accepts}{rejects}"]
    if counts["drifts"]:
        parts.append(f"thresholds were learnt anew {counts['drifts']:,} times")
    return parts
