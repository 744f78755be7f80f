"""The explanation of a `tw.where` for `tw.explain`: the order, counts of every predicate, when and why it changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from thalweg.ordering import Profile, optimal_order, order_cost
from thalweg.ordering.optimal import MOST_FILTERS
from thalweg.spark.filters.classes import classes_text, describe_classes
from thalweg.spark.filters.forms import Place
from thalweg.spark.filters.judges_text import judge_counts, judges_text

if TYPE_CHECKING:
    from thalweg.spark.filters.run import FilterRun
    from thalweg.spark.filters.worker.report import WorkerReport

NO_REPORT = (
    "no worker has reported yet: nothing has run, or driver and workers do not share the state's folder (pass state=)"
)
NAME_WIDTH = 40


def describe_where(run: FilterRun) -> dict[str, Any]:
    """All that is known of one `tw.where` at this moment."""
    query, plan, reports = run.query, run.plan, run.reports()
    lines: list[dict[str, Any]] = []
    costs: list[dict[str, Any]] = []
    order: list[int] = []
    for stage in plan.stages:
        numbers = sorted(stage.predicates)
        signature = query.signature_of(numbers)
        own = [report for report in reports if report.signature == signature]
        if stage.place is Place.PYTHON and own:
            newest = max(own, key=lambda report: report.at)
            order += [numbers[place] for place in newest.order]
            lines += _python_lines(run, numbers, own)
            costs += _costs([query.names[number] for number in numbers], own, newest)
        else:
            order += stage.predicates
            lines += _planned_lines(run, stage.predicates)
    ordered = sorted(lines, key=lambda line: order.index(line["number"]))
    changes = [_named(report.predicates, change) for report in reports for change in report.changes]
    changes += [_named(query.names, change) for change in run.changes]
    changes.sort(key=lambda change: change["at"])
    by_stage = _by_stage(reports)
    told = dict.fromkeys(note for report in reports for note in report.notes)
    return {
        "key": run.key,
        "policy": query.policy.kind.name,
        "order": [query.names[number] for number in order],
        "as_written": list(query.names),
        "plan": [
            {"runs_in": str(stage.place), "predicates": [query.names[number] for number in stage.predicates]}
            for stage in plan.stages
        ],
        "why": plan.why,
        "predicates": [{key: value for key, value in line.items() if key != "number"} for line in ordered],
        "rows": max((sum(report.rows for report in group) for group in by_stage), default=0),
        "kept": min((sum(report.kept for report in group) for group in by_stage), default=0),
        "costs": costs,
        "costs_are_seconds": "costs" not in query.policy.options and not any(report.tells_cost for report in reports),
        "profiling_seconds": sum(report.profile_seconds for report in reports),
        "profiling_evaluations": sum(report.profile_evaluations for report in reports),
        "workers": len(reports),
        "changes": changes,
        "judges": judge_counts(reports),
        "routing": describe_classes(run, reports),
        "drift": [_drift(report, drift) for report in reports for drift in report.drifts],
        "on_error": query.on_error,
        "quarantine": None if query.quarantine is None else query.quarantine.folder,
        "state": query.folder.url,
        "notes": [*run.notes, *told, *([] if reports or not query.runs_in_python else [NO_REPORT])],
    }


def _by_stage(reports: Sequence[WorkerReport]) -> list[list[WorkerReport]]:
    groups: dict[str, list[WorkerReport]] = {}
    for report in reports:
        groups.setdefault(report.run, []).append(report)
    return list(groups.values())


def _python_lines(run: FilterRun, numbers: Sequence[int], reports: Sequence[WorkerReport]) -> list[dict[str, Any]]:
    """The workers' counts for each predicate of a stage, and its drop share among profile tuples that reach it."""
    newest = max(reports, key=lambda report: report.at)
    profile = reduce(Profile.merge, (report.profile for report in reports))
    conditional = _conditional(profile, newest.order)
    lines = []
    for place, number in enumerate(numbers):
        evaluated = sum(report.evaluated[place] for report in reports)
        dropped = sum(report.dropped[place] for report in reports)
        lines.append(
            _line(run, number)
            | {
                "rows_seen": evaluated,
                "dropped": dropped,
                "failed": sum(report.failed[place] for report in reports),
                "seconds": sum(report.seconds[place] for report in reports),
                "repeated": sum(report.repeated[place] for report in reports if report.repeated),
                "cost": newest.costs[place],
                "drop_rate": dropped / evaluated if evaluated else None,
                "profile_drop_share": conditional[place],
            }
        )
    return lines


def _planned_lines(run: FilterRun, numbers: Sequence[int]) -> list[dict[str, Any]]:
    """The cost and drop share of each predicate in the sample."""
    lines = [_line(run, number) for number in numbers]
    if run.plan.evidence is not None:
        profile = run.plan.evidence.profile
        conditional = _conditional(profile, run.plan.order)
        for line in lines:
            number = line["number"]
            line |= {"cost": float(profile.mean_times[number]), "profile_drop_share": conditional[number]}
    return lines


def _line(run: FilterRun, number: int) -> dict[str, Any]:
    query = run.query
    names = ("rows_seen", "dropped", "failed", "seconds", "repeated", "cost", "drop_rate", "profile_drop_share")
    empty = dict.fromkeys(names)
    line = {"number": number, "name": query.names[number], "runs_in": str(query.forms[number].place)} | empty
    order = run.plan.member_orders.get(number)
    if order is not None:
        members = query.predicates[number].members
        line["members"] = [members[member].name for member in order]
    return line


def _conditional(profile: Profile, order: Sequence[int]) -> dict[int, float | None]:
    """For each predicate, the share that it drops of the profile tuples that the predicates before it keep."""
    alive, shares = profile.masks, dict[int, float | None]()
    for number in order:
        gone = (alive >> number) & 1 == 1
        shares[number] = float(gone.mean()) if alive.size else None
        alive = alive[~gone]
    return shares


def _costs(names: Sequence[str], reports: Sequence[WorkerReport], newest: WorkerReport) -> list[dict[str, Any]]:
    """The mean cost of a row: in this order, as written, and in the best order of the profile, if it is known."""
    profile = reduce(Profile.merge, (report.profile for report in reports))
    if not len(profile):
        return []
    rows, kept = sum(report.rows for report in reports), sum(report.kept for report in reports)
    each = profile.mean_times
    through = kept / rows if rows else 0.0

    def average(order: Sequence[int]) -> float:
        return float((1 - through) * order_cost(profile.masks, order, each) + through * each.sum())

    best = optimal_order(profile.masks, each) if len(names) <= MOST_FILTERS else None
    return [
        {
            "predicates": list(names),
            "order": [names[number] for number in newest.order],
            "profile_tuples": len(profile),
            "now": average(newest.order),
            "as_written": average(range(len(names))),
            "optimal": None if best is None else average(best),
            "optimal_order": None if best is None else [names[number] for number in best],
            "matrix": _matrix(profile, newest.order),
        }
    ]


def _matrix(profile: Profile, order: Sequence[int]) -> list[list[int]]:
    """The matrix view of an order: row i counts what each predicate drops of the tuples that the first i keep."""
    alive, rows = profile.masks, list[list[int]]()
    for number in order:
        rows.append([int(((alive >> other) & 1).sum()) for other in order])
        alive = alive[(alive >> number) & 1 == 0]
    return [[count if place >= row else 0 for place, count in enumerate(counts)] for row, counts in enumerate(rows)]


def _named(names: Sequence[str], change: Mapping[str, Any]) -> dict[str, Any]:
    """A change of the order in words."""
    why = "of a new sample"
    if change.get("moved") is not None:
        why = f"{names[change['moved']]} drops more per cost than {names[change['instead_of']]}"
    return {
        "at": change["at"],
        "rows": change["rows"],
        "before": [names[number] for number in change["before"]],
        "after": [names[number] for number in change["after"]],
        "why": why,
    }


def _drift(report: WorkerReport, drift: Mapping[str, Any]) -> dict[str, Any]:
    """A change in the data, with names for numbers, and the worker's orders before it and after it."""
    names, named = report.predicates, dict(drift)
    if "predicate" in named:
        named["predicate"] = names[named["predicate"]]
    else:
        named |= _orders_around(report, named["rows"])
    for which in ("order_before", "order_after"):
        named[which] = [names[number] for number in named[which]]
    return named


def _orders_around(report: WorkerReport, rows: int) -> dict[str, Sequence[int]]:
    """The order that a worker had after some rows, and its next order, which is the same if no change followed."""
    later = [change for change in report.changes if change["rows"] is not None and change["rows"] >= rows]
    if not later:
        return {"order_before": report.order, "order_after": report.order}
    return {"order_before": later[0]["before"], "order_after": later[0]["after"]}


# --------------------------------------------------------------------------------------------------- text


def where_text(description: Mapping[str, Any]) -> str:
    """A description as text."""
    rows, kept = f"{description['rows']:,}", f"{description['kept']:,}"
    show = seconds_text if description["costs_are_seconds"] else _plain_text
    lines = [
        f"where {description['key']}: policy {description['policy']}; {rows} rows through Python, {kept} kept",
        f"plan: {description['why']}",
        *_table_text(description["predicates"], show),
        *(
            f"{line['name']}: {' or '.join(line['members'])}"
            for line in description["predicates"]
            if line.get("members")
        ),
        *(
            f"{line['name']}: not asked for {line['repeated']:,} rows, as an equal row was asked for before"
            for line in description["predicates"]
            if line["repeated"]
        ),
        *(_cost_text(cost, show) for cost in description["costs"]),
        *_changes_text(description),
        *judges_text(description["judges"]),
        *([] if description["routing"] is None else classes_text(description["routing"])),
        *_drift_text(description["drift"]),
        *(f"note: {note}" for note in description["notes"]),
    ]
    return "\n".join(lines)


def _table_text(predicates: Sequence[Mapping[str, Any]], show: Callable[[float | None], str]) -> list[str]:
    header = ("", "predicate", "runs in", "seen", "dropped", "rate", "profile", "cost/row", "failed")
    rows = [header]
    for place, line in enumerate(predicates, 1):
        rows.append(
            (
                f"{place}.",
                line["name"] if len(line["name"]) <= NAME_WIDTH else line["name"][: NAME_WIDTH - 1] + "…",
                line["runs_in"],
                _number(line["rows_seen"]),
                _number(line["dropped"]),
                _share(line["drop_rate"]),
                _share(line["profile_drop_share"]),
                show(line["cost"]),
                _number(line["failed"]),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    lines = []
    for row in rows:
        left = [cell.ljust(width) for cell, width in zip(row[:3], widths[:3], strict=True)]
        right = [cell.rjust(width) for cell, width in zip(row[3:], widths[3:], strict=True)]
        lines.append("  ".join([*left, *right]).rstrip())
    return lines


def _cost_text(cost: Mapping[str, Any], show: Callable[[float | None], str]) -> str:
    order = " > ".join(cost["optimal_order"] or ())
    best = f", {show(cost['optimal'])} at best ({order})" if order else ""
    return (
        f"a row in Python: {show(cost['now'])}; {show(cost['as_written'])} as written{best}; "
        f"by {cost['profile_tuples']:,} profile tuples"
    )


def _changes_text(description: Mapping[str, Any]) -> list[str]:
    changes = description["changes"]
    if not changes:
        return ["the order has not changed"] if description["workers"] else []
    last = changes[-1]
    at = time.strftime("%H:%M:%S", time.localtime(last["at"]))
    when = "" if last["rows"] is None else f", after {last['rows']:,} rows of a worker"
    return [
        f"last of {len(changes)} changes: at {at}{when}, because {last['why']}:",
        f"    {' > '.join(last['before'])}",
        f"    became {' > '.join(last['after'])}",
    ]


def _drift_text(drifts: Sequence[Mapping[str, Any]]) -> list[str]:
    if not drifts:
        return []
    last = drifts[-1]
    change = (
        f"{last['kind']} of {last['predicate']} from {last['before']:.3g} to {last['after']:.3g}"
        if "predicate" in last
        else "in the drop rates or times of predicates"
    )
    return [f"{len(drifts)} changes in the data, the last {change}; {last['dropped']:,} profile tuples thrown away"]


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _plain_text(value: float | None) -> str:
    """A cost in the user's unit."""
    return "-" if value is None or np.isnan(value) else f"{value:.3g}"


def seconds_text(value: float | None) -> str:
    """Seconds as people read them.

    >>> seconds_text(0.00000042), seconds_text(0.0031), seconds_text(None)
    ('420 ns', '3.1 ms', '-')
    """
    if value is None or np.isnan(value):
        return "-"
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"
