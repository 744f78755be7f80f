"""What `tw.explain` says of classes: which columns were considered, which classes there are, and what they save."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from thalweg.spark.filters.learned import Learned

if TYPE_CHECKING:
    from thalweg.spark.filters.where import Where

MOST_SHOWN = 8  # classes, candidates and reasons that the text shows


def describe_classes(where: Where, reports: Sequence[Learned]) -> dict[str, Any] | None:
    """All that is known of the classes of a `tw.where`; None if nobody asked for any."""
    routes = where.routes
    if routes is None:
        return None
    runs = dict.fromkeys(one.run for one in reports if one.routing is not None)
    stages = [_in_python([one for one in reports if one.run == run]) for run in runs]
    stages += [_in_spark(where, one) for one in where.branching]
    return {
        "considered": list(routes.attributes),
        "left_out": dict(routes.left_out),
        "off": routes.off,
        "stages": stages,
        "memory_bytes": sum(stage["memory_bytes"] for stage in stages),
    }


def _in_python(reports: Sequence[Learned]) -> dict[str, Any]:
    """The classes of a Python stage, as the worker tells them that has reported last of those that have some."""
    told = [(one.routing["classifier"] is not None, one.at, one) for one in reports if one.routing is not None]
    newest = max(told, key=lambda each: each[:2])[2]
    names, routing = newest.predicates, newest.routing or {}
    rows: Counter[tuple[str, ...]] = Counter()
    for _, _, one in told:
        for part in (one.routing or {})["rows_by"]:
            rows[tuple(part["attributes"])] += part["rows"]
    return {
        "runs_in": "Python",
        "predicates": names,
        "classifier": routing["classifier"],
        "classes": [one | {"order": [names[at] for at in one["order"]]} for one in routing["classes"]],
        "candidates": routing["candidates"],
        "pruned": routing["pruned"],
        "benefit": routing["benefit"],
        "profile_tuples": routing["profile_tuples"],
        "rows_by": [{"attributes": list(by), "rows": count} for by, count in rows.items()],
        "workers": len(told),
        "workers_with_classes": sum(has for has, _, _ in told),
        "split_seconds": sum((one.routing or {})["split_seconds"] for _, _, one in told),
        "choose_seconds": sum((one.routing or {})["choose_seconds"] for _, _, one in told),
        "memory_bytes": sum((one.routing or {})["memory_bytes"] for _, _, one in told),
        "events": routing["events"],
    }


def _in_spark(where: Where, about: Mapping[str, Any]) -> dict[str, Any]:
    """The branches of some conditions, and what the sample said of them."""
    names = [where.names[one] for one in about["conditions"]]
    branches = about.get("branches", ())
    overall = [where.names[one] for one in where.order if one in about["conditions"]]
    classes = [{"class": 0, "order": overall, "values": [], "cells": None}]
    for number, (one, values) in enumerate(zip(branches, about.get("values", ()), strict=True), 1):
        order = [names[at] for at in one["order"]]
        classes.append({"class": number, "order": order, "values": list(values), "cells": len(values)})
    used = [one for one in about["candidates"] if one["in_use"]]
    return {
        "runs_in": "Spark",
        "predicates": names,
        "classifier": {key: used[0][key] for key in ("attributes", "by")} if used else None,
        "classes": classes,
        "candidates": about["candidates"],
        "pruned": about["pruned"],
        "benefit": {"saving": about["saving"], "error": about["error"], "overhead": 0.0} if branches else None,
        "profile_tuples": about["rows"],
        "memory_bytes": 0,  # it is all in the plan
    }


def text_of(routing: Mapping[str, Any]) -> list[str]:
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
        for one in classes[: MOST_SHOWN + 1]:
            values = "all others" if not one["class"] else "; ".join(one["values"]) or f"{one['cells']} values"
            lines.append(f"    {one['class']}. {values}: {' > '.join(one['order'])}")
        if len(classes) > MOST_SHOWN + 1:
            lines.append(f"    and {len(classes) - MOST_SHOWN - 1} more")
    for one in stage["candidates"][:MOST_SHOWN]:
        lines.append(
            f"    {'*' if one['in_use'] else '-'} {' and '.join(one['attributes'])}: expected to save "
            f"{one['saving']:.1%} ± {one['error']:.1%}, gain ratio {one['gain_ratio']:.3f}"
        )
    lines += [f"    pruned: {name}, {reason}" for name, reason in list(stage["pruned"].items())[:MOST_SHOWN]]
    return lines
