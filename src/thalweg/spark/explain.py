"""`tw.explain`: the order that runs, what every predicate does in it, and when and why it last changed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from thalweg.ordering import Profile, optimal_order, order_cost
from thalweg.ordering.optimal import MOST_FILTERS
from thalweg.spark import runs
from thalweg.spark.filters.classes import describe_classes, text_of
from thalweg.spark.filters.forms import JoinForm, NativeForm, PythonForm
from thalweg.spark.filters.learned import Learned
from thalweg.spark.filters.where import Where, keys_of, wheres_by
from thalweg.spark.joins.explain import JoinRun, describe_join, join_text

PLACES = {NativeForm: "Spark", JoinForm: "join", PythonForm: "Python"}


@dataclass(frozen=True)
class Explanation:
    """What `tw.explain` found; prints as text, and `to_dict` gives the same as plain values."""

    wheres: tuple[dict[str, Any], ...]
    joins: tuple[dict[str, Any], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, one entry for each `tw.where` and each `tw.join`."""
        return {"wheres": [dict(one) for one in self.wheres], "joins": [dict(one) for one in self.joins]}

    def __str__(self) -> str:
        return "\n\n".join([*map(_text, self.wheres), *map(join_text, self.joins)])


def explain(what: Any) -> Explanation:  # noqa: ANN401 - a DataFrame, a streaming query, or a driven stream
    """What runs in which order and why: of a DataFrame that came through `tw.where` or `tw.join`, or of a query on it.

    Workers report when a task ends, so a DataFrame that has not run yet shows only what is planned.
    """
    own = vars(what).get("thalweg_where")  # not getattr: a DataFrame of Connect takes any name for a column's
    if own is not None:
        return Explanation((describe(own),))
    keys = keys_of(what)
    wheres, joins = wheres_by(keys), [run for run in runs.find(keys) if isinstance(run, JoinRun)]
    if not wheres and not joins:
        raise ValueError(
            "no tw.where or tw.join of this program is in the plan: pass what they returned, or a query on it"
        )
    return Explanation(tuple(map(describe, wheres)), tuple(map(describe_join, joins)))


def describe(where: Where) -> dict[str, Any]:
    """All that is known of one `tw.where` at this moment."""
    reports = where.reports()
    stages = where.plan.stages
    lines: list[dict[str, Any]] = []
    costs: list[dict[str, Any]] = []
    order: list[int] = []
    for stage in stages:
        members = sorted(stage.predicates)
        names = [where.predicates[one].name for one in members]
        mine = [one for one in reports if one.predicates == names]
        if stage.kind is PythonForm and mine:
            newest = max(mine, key=lambda one: one.at)
            order += [members[place] for place in newest.order]
            lines += _python_lines(where, members, mine)
            costs += _costs(names, mine, newest)
        else:
            order += stage.predicates
            lines += _planned_lines(where, stage.predicates)
    ordered = sorted(lines, key=lambda line: order.index(line["number"]))
    changes = [_named(one.predicates, change) for one in reports for change in one.changes]
    changes += [_named(where.names, change) for change in where.changes]
    changes.sort(key=lambda change: change["at"])
    told = dict.fromkeys(note for one in reports for note in one.notes)
    return {
        "key": where.key,
        "policy": where.policy.kind.name,
        "order": [where.predicates[one].name for one in order],
        "as_written": list(where.names),
        "plan": [
            {"runs_in": PLACES[stage.kind], "predicates": [where.predicates[one].name for one in stage.predicates]}
            for stage in stages
        ],
        "why": where.why,
        "predicates": [{key: value for key, value in line.items() if key != "number"} for line in ordered],
        "rows": max((sum(one.rows for one in group) for group in _by_stage(reports)), default=0),
        "kept": min((sum(one.kept for one in group) for group in _by_stage(reports)), default=0),
        "costs": costs,
        "profiling_seconds": sum(one.profile_seconds for one in reports),
        "profiling_evaluations": sum(one.profile_evaluations for one in reports),
        "workers": len(reports),
        "changes": changes,
        "routing": describe_classes(where, reports),
        "drift": [_drift(one.predicates, drift) for one in reports for drift in one.drifts],
        "on_error": where.on_error,
        "quarantine": where.quarantine,
        "state": where.folder.url,
        "notes": [*where.notes, *told, *([] if reports or not where.python_runs() else [NO_REPORT])],
    }


NO_REPORT = (
    "no worker has reported yet: nothing has run, or driver and workers do not share the state's folder (pass state=)"
)


def _by_stage(reports: Sequence[Learned]) -> list[list[Learned]]:
    groups: dict[str, list[Learned]] = {}
    for one in reports:
        groups.setdefault(one.run, []).append(one)
    return list(groups.values())


def _python_lines(where: Where, members: Sequence[int], reports: Sequence[Learned]) -> list[dict[str, Any]]:
    """What workers have counted for each predicate of a stage, and what the profile says of it behind those before."""
    newest = max(reports, key=lambda one: one.at)
    profile = reduce(Profile.merge, (one.profile for one in reports))
    conditional = _conditional(profile, newest.order)
    lines = []
    for place, one in enumerate(members):
        evaluated, dropped = (sum(getattr(r, what)[place] for r in reports) for what in ("evaluated", "dropped"))
        cost = newest.costs[place]
        lines.append(
            _line(where, one)
            | {
                "rows_seen": evaluated,
                "dropped": dropped,
                "failed": sum(report.failed[place] for report in reports),
                "seconds": sum(report.seconds[place] for report in reports),
                "cost": cost,
                "drop_rate": dropped / evaluated if evaluated else None,
                "profile_drop_share": conditional[place],
            }
        )
    return lines


def _planned_lines(where: Where, members: Sequence[int]) -> list[dict[str, Any]]:
    """What the sample said of each predicate."""
    lines = [_line(where, one) for one in members]
    if where.learned is not None:
        profile = where.learned.profile
        conditional = _conditional(profile, where.order)
        for line in lines:
            one = line["number"]
            line |= {"cost": float(profile.mean_times[one]), "profile_drop_share": conditional[one]}
    return lines


def _line(where: Where, one: int) -> dict[str, Any]:
    empty = dict.fromkeys(("rows_seen", "dropped", "failed", "seconds", "cost", "drop_rate", "profile_drop_share"))
    place = PLACES[type(where.forms[one])]
    about = {"number": one, "name": where.predicates[one].name, "runs_in": place} | empty
    if one in where.inner:
        members = where.predicates[one].members  # type: ignore[attr-defined]  # of a disjunction
        about["members"] = [members[member].name for member in where.inner[one]]
    return about


def _conditional(profile: Profile, order: Sequence[int]) -> dict[int, float | None]:
    """For each predicate, the share of the profile tuples that those before it keep and it drops."""
    alive, shares = profile.masks, dict[int, float | None]()
    for one in order:
        gone = (alive >> one) & 1 == 1
        shares[one] = float(gone.mean()) if alive.size else None
        alive = alive[~gone]
    return shares


def _costs(names: Sequence[str], reports: Sequence[Learned], newest: Learned) -> list[dict[str, Any]]:
    """What a row costs on average: in this order, as written, and in the best order of the profile, if there is one."""
    profile = reduce(Profile.merge, (one.profile for one in reports))
    if not len(profile):
        return []
    rows, kept = sum(one.rows for one in reports), sum(one.kept for one in reports)
    each = profile.mean_times
    through = kept / rows if rows else 0.0

    def average(order: Sequence[int]) -> float:
        return float((1 - through) * order_cost(profile.masks, order, each) + through * each.sum())

    written = tuple(range(len(names)))
    best = optimal_order(profile.masks, each) if len(names) <= MOST_FILTERS else None
    return [
        {
            "predicates": list(names),
            "profile_tuples": len(profile),
            "now": average(newest.order),
            "as_written": average(written),
            "optimal": None if best is None else average(best),
            "optimal_order": None if best is None else [names[one] for one in best],
        }
    ]


def _named(names: Sequence[str], change: Mapping[str, Any]) -> dict[str, Any]:
    """A change of the order in words."""
    why = "of a new sample"
    if change.get("moved") is not None:
        why = f"{names[change['moved']]} drops more per cost than {names[change['instead_of']]}"
    return {
        "at": change["at"],
        "rows": change["rows"],
        "before": [names[one] for one in change["before"]],
        "after": [names[one] for one in change["after"]],
        "why": why,
    }


def _drift(names: Sequence[str], drift: Mapping[str, Any]) -> dict[str, Any]:
    """A change in the data, with names for numbers."""
    named = dict(drift)
    if "predicate" in named:
        named["predicate"] = names[named["predicate"]]
        for which in ("order_before", "order_after"):
            named[which] = [names[one] for one in named[which]]
    return named


def _text(one: dict[str, Any]) -> str:
    """A description as text."""
    lines = [f"where {one['key']}: policy {one['policy']}; {one['rows']:,} rows through Python, {one['kept']:,} kept"]
    lines.append(f"plan: {one['why']}")
    header = ("", "predicate", "runs in", "seen", "dropped", "rate", "profile", "cost/row", "failed")
    rows = [header]
    for place, line in enumerate(one["predicates"], 1):
        rows.append(
            (
                f"{place}.",
                line["name"] if len(line["name"]) <= NAME_WIDTH else line["name"][: NAME_WIDTH - 1] + "…",
                line["runs_in"],
                _number(line["rows_seen"]),
                _number(line["dropped"]),
                _share(line["drop_rate"]),
                _share(line["profile_drop_share"]),
                _seconds(line["cost"]),
                _number(line["failed"]),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    for row in rows:
        left = [cell.ljust(width) for cell, width in zip(row[:3], widths[:3], strict=True)]
        right = [cell.rjust(width) for cell, width in zip(row[3:], widths[3:], strict=True)]
        lines.append("  ".join([*left, *right]).rstrip())
    lines += [f"{line['name']}: {' or '.join(line['members'])}" for line in one["predicates"] if line.get("members")]
    for cost in one["costs"]:
        order = " > ".join(cost["optimal_order"] or ())
        best = f", {_seconds(cost['optimal'])} at best ({order})" if order else ""
        lines.append(
            f"a row in Python: {_seconds(cost['now'])}; {_seconds(cost['as_written'])} as written{best}; "
            f"by {cost['profile_tuples']:,} profile tuples"
        )
    if one["changes"]:
        last = one["changes"][-1]
        at = time.strftime("%H:%M:%S", time.localtime(last["at"]))
        when = "" if last["rows"] is None else f", after {last['rows']:,} rows of a worker"
        lines.append(f"last of {len(one['changes'])} changes: at {at}{when}, because {last['why']}:")
        lines.append(f"    {' > '.join(last['before'])}\n    became {' > '.join(last['after'])}")
    elif one["workers"]:
        lines.append("the order has not changed")
    if one["routing"] is not None:
        lines += text_of(one["routing"])
    if one["drift"]:
        last = one["drift"][-1]
        what = (
            f"{last['kind']} of {last['predicate']} from {last['before']:.3g} to {last['after']:.3g}"
            if "predicate" in last
            else "in what predicates drop or take"
        )
        lines.append(
            f"{len(one['drift'])} changes in the data, the last {what}; {last['dropped']:,} profile tuples thrown away"
        )
    lines += [f"note: {note}" for note in one["notes"]]
    return "\n".join(lines)


NAME_WIDTH = 40


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _seconds(value: float | None) -> str:
    """Seconds as people read them.

    >>> _seconds(0.00000042), _seconds(0.0031), _seconds(None)
    ('420 ns', '3.1 ms', '-')
    """
    if value is None or np.isnan(value):
        return "-"
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"
