"""The explanation of classes for `tw.explain`: the columns that were considered, the classes, and their saving."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thalweg.spark.filters.branching import Branching
    from thalweg.spark.filters.run import FilterRun
    from thalweg.spark.filters.worker.report import WorkerReport

MOST_SHOWN = 8  # classes, candidates and reasons that the text shows


def describe_classes(run: FilterRun, reports: Sequence[WorkerReport]) -> dict[str, Any] | None:
    """All that is known of the classes of a `tw.where`; None if the user asked for none."""
    routes = run.query.routes
    if routes is None:
        return None
    keys = dict.fromkeys(report.run for report in reports if report.routing is not None)
    stages = [_in_python([report for report in reports if report.run == key]) for key in keys]
    stages += [_in_spark(run, branching) for branching in run.plan.branchings]
    optional = {
        name: f"not for Python: no sample found it promising; write route_by={name!r} to have it considered"
        for name in routes.optional
        if name not in run.plan.attributes
    }
    return {
        "considered": list(run.plan.attributes),
        "left_out": dict(routes.left_out) | optional,
        "off": routes.off,
        "stages": stages,
        "memory_bytes": sum(stage["memory_bytes"] for stage in stages),
    }


def _in_python(reports: Sequence[WorkerReport]) -> dict[str, Any]:
    """The classes of a Python stage, by the newest report of a worker that has classes, or else by the newest."""
    told = [(report, report.routing) for report in reports if report.routing is not None]
    newest, routing = max(told, key=lambda each: (each[1]["classifier"] is not None, each[0].at))
    names = newest.predicates
    rows: Counter[tuple[str, ...]] = Counter()
    for _, own in told:
        for part in own["rows_by"]:
            rows[tuple(part["attributes"])] += part["rows"]
    return {
        "runs_in": "Python",
        "predicates": names,
        "classifier": routing["classifier"],
        "classes": [each | {"order": [names[place] for place in each["order"]]} for each in routing["classes"]],
        "candidates": routing["candidates"],
        "pruned": routing["pruned"],
        "benefit": routing["benefit"],
        "profile_tuples": routing["profile_tuples"],
        "rows_by": [{"attributes": list(attributes), "rows": count} for attributes, count in rows.items()],
        "workers": len(told),
        "workers_with_classes": sum(own["classifier"] is not None for _, own in told),
        "split_seconds": sum(own["split_seconds"] for _, own in told),
        "choose_seconds": sum(own["choose_seconds"] for _, own in told),
        "memory_bytes": sum(own["memory_bytes"] for _, own in told),
        "events": routing["events"],
    }


def _in_spark(run: FilterRun, branching: Branching) -> dict[str, Any]:
    """The branches of some conditions, and their evidence in the sample."""
    considered, branches = branching.considered, branching.branches
    names = [run.query.names[number] for number in branching.conditions]
    overall = [run.query.names[number] for number in run.plan.order if number in branching.conditions]
    classes = [{"class": 0, "order": overall, "values": [], "cells": None}]
    values_of_classes = considered.get("values", ()) if branches is not None else ()
    for number, values in enumerate(values_of_classes, 1):
        order = [names[place] for place in branches.branches[number - 1].order] if branches is not None else []
        classes.append({"class": number, "order": order, "values": list(values), "cells": len(values)})
    used = [candidate for candidate in considered["candidates"] if candidate["in_use"]]
    return {
        "runs_in": "Spark",
        "predicates": names,
        "classifier": {key: used[0][key] for key in ("attributes", "by")} if used else None,
        "classes": classes,
        "candidates": considered["candidates"],
        "pruned": considered["pruned"],
        "benefit": None if branches is None else {"saving": branches.saving, "error": branches.error, "overhead": 0.0},
        "profile_tuples": considered["rows"],
        "memory_bytes": 0,  # it is all in the plan
    }


def classes_text(routing: Mapping[str, Any]) -> list[str]:
    """The same as lines of text."""
    if routing["off"] is not None:
        return [f"classes: none; {routing['off']}"]
    lines = [] if routing["stages"] else [f"classes: none yet, by {', '.join(routing['considered']) or 'no column'}"]
    for stage in routing["stages"]:
        lines += _stage_text(stage)
    left_out = list(routing["left_out"].items())
    lines += [f"    not considered: {name}, {reason}" for name, reason in left_out[:MOST_SHOWN]]
    if len(left_out) > MOST_SHOWN:
        lines.append(f"    and {len(left_out) - MOST_SHOWN} more columns are not considered")
    return lines


def _stage_text(stage: Mapping[str, Any]) -> list[str]:
    used, benefit, classes = stage["classifier"], stage["benefit"], stage["classes"]
    where = f"in {stage['runs_in']}, {stage['memory_bytes'] / 1e6:.1f} MB"
    if used is None:
        lines = [f"classes: none, one order is best as far as {stage['profile_tuples']:,} rows tell ({where})"]
    else:
        by = " and ".join(f"{name} ({how})" for name, how in zip(used["attributes"], used["by"], strict=True))
        how = "expected" if stage["runs_in"] == "Spark" else "measured"
        saves = (
            "nothing measured yet"
            if benefit is None
            else f"{how} to save {benefit['saving']:.1%} ± {benefit['error']:.1%} of the cost of one order, "
            f"for {benefit['overhead']:.1%} of it"
        )
        lines = [f"classes: {len(classes) - 1} by {by}; {saves} ({where})"]
        for each in classes[: MOST_SHOWN + 1]:
            values = "all others" if not each["class"] else "; ".join(each["values"]) or f"{each['cells']} values"
            lines.append(f"    {each['class']}. {values}: {' > '.join(each['order'])}")
        if len(classes) > MOST_SHOWN + 1:
            lines.append(f"    and {len(classes) - MOST_SHOWN - 1} more")
    for candidate in stage["candidates"][:MOST_SHOWN]:
        lines.append(
            f"    {'*' if candidate['in_use'] else '-'} {' and '.join(candidate['attributes'])}: expected to save "
            f"{candidate['saving']:.1%} ± {candidate['error']:.1%}, gain ratio {candidate['gain_ratio']:.3f}"
        )
    lines += [f"    pruned: {name}, {reason}" for name, reason in list(stage["pruned"].items())[:MOST_SHOWN]]
    return lines
