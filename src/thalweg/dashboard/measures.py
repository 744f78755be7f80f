"""What the page and Prometheus read from the description of a run: a title, numbers over time, and switches.

A description is what `tw.explain(...).to_dict()` has for the run. It comes from a file, written perhaps by another
version of Thalweg: a value that is missing is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

# The numbers that are kept over time, in the order in which a point has them.
SERIES = (
    "at",  # seconds since 1970
    "rows",  # that have come so far
    "results",  # rows that were kept, or results of a join or of queries, so far
    "evaluations",  # of predicates, so far
    "cost",  # seconds a row in the present order
    "cost_as_written",
    "memory",  # bytes
    "lag",  # seconds
    "fidelity",  # share of rounds with the plan that was best in hindsight
)

Description = Mapping[str, Any]


def title_of(kind: str, values: Description) -> str:
    """A short name of a run.

    >>> title_of("where", {"as_written": ["is spam", "is new"]})
    'where: 2 predicates'
    """
    name = (values.get("progress") or {}).get("query")
    if name:
        return f"{kind}: {name}"
    if kind == "where":
        count = len(values.get("as_written") or ())
        return f"where: {count} predicate{'' if count == 1 else 's'}"
    if kind == "join":
        return f"join: {', '.join(values.get('inputs') or ())}"
    count = len(values.get("queries") or ())
    return f"session: {count} quer{'y' if count == 1 else 'ies'}"


def point_of(kind: str, at: float, values: Description) -> list[float | None]:
    """The numbers of a run at a moment, as `SERIES` lists them."""
    progress = values.get("progress") or {}
    numbers: dict[str, Any] = {"at": at, "rows": values.get("rows"), "lag": progress.get("lag_seconds")}
    if kind == "where":
        costs = values.get("costs") or ()
        numbers["results"] = values.get("kept")
        numbers["evaluations"] = evaluations_of(values)
        numbers["cost"] = _sum(cost.get("now") for cost in costs)
        numbers["cost_as_written"] = _sum(cost.get("as_written") for cost in costs)
        numbers["memory"] = (values.get("routing") or {}).get("memory_bytes")
    elif kind == "join":
        numbers["rows"] = _sum(source.get("rows") for source in (values.get("inputs") or {}).values())
        numbers["results"] = values.get("results")
        numbers["memory"] = values.get("memory_bytes")
    else:
        queries = values.get("queries") or ()
        fidelities = [query["fidelity"] for query in queries if query.get("fidelity") is not None]
        numbers["results"] = _sum(query.get("rows") for query in queries)
        numbers["memory"] = (values.get("memory") or {}).get("held_now")
        numbers["lag"] = values.get("lag_seconds")
        numbers["fidelity"] = sum(fidelities) / len(fidelities) if fidelities else None
    return [numbers.get(name) for name in SERIES]


def evaluations_of(values: Description) -> int | None:
    """How often predicates were evaluated in Python, all together."""
    total = _sum(predicate.get("rows_seen") for predicate in values.get("predicates") or ())
    return None if total is None else int(total)


def switches_of(kind: str, values: Description) -> Iterator[dict[str, Any]]:
    """The switches that a description tells: the order or plan before and after, and the reason in words.

    `id` tells a switch from all others of the run. `at` is missing where only the step or round is known.
    """
    if kind == "where":
        for change in values.get("changes") or ():
            yield {"id": f"{change.get('at')} {change.get('after')}", "what": "order of predicates", **change}
    elif kind == "join":
        for switch in values.get("switches") or ():
            cell, step, source = switch.get("cell"), switch.get("step"), switch.get("input")
            what = f"probes of {source} in cell {cell}, step {step}"
            shown = {"before": switch.get("before"), "after": switch.get("after"), "why": switch.get("reason")}
            yield {"id": f"{cell} {step} {source}", "what": what, **shown}
        split = values.get("split") or {}
        if split.get("generation"):
            heavy = [f"{' = '.join(value['columns'])} ({value['share']:.0%} of rows)" for value in split["heavy"]]
            why = f"frequent values are split: {'; '.join(heavy)}" if heavy else "no value is frequent any longer"
            generation = split["generation"]
            yield {"id": f"layout {generation}", "what": f"layout {generation} of cells", "why": why}
    else:
        for query in values.get("queries") or ():
            for switch in query.get("switched") or ():
                shown = {
                    side: switch.get(f"steps_{side}") or _plan_name(switch.get(side)) for side in ("before", "after")
                }
                what = f"plan of {query.get('name')}, round {switch.get('round')}"
                yield {"id": what, "what": what, **shown, "why": switch.get("why")}


def drifts_of(values: Description) -> Iterator[dict[str, Any]]:
    """The changes in the data that a description of filters tells, each with what tells it from the others."""
    for drift in values.get("drift") or ():
        identity = " ".join(str(drift.get(name)) for name in ("at", "rows", "kind", "predicate", "dropped"))
        yield {"id": identity, **drift}


def _plan_name(digest: str | None) -> list[str] | None:
    return None if digest is None else [f"plan {digest[:8]}"]


def _sum(values: Any) -> float | None:  # noqa: ANN401 - an iterable of numbers and None
    known = [value for value in values if value is not None]
    return sum(known) if known else None
