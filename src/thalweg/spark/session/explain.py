"""What `tw.explain` says of a session: of every query its plan and why, what it has done, and what it shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from thalweg.charts.draw import HeatMap, heat_map
from thalweg.charts.plan import runs_alike
from thalweg.charts.scheduler import PlanScheduler
from thalweg.spark import runs
from thalweg.spark.session.common_joins import computed_together

if TYPE_CHECKING:
    from thalweg.spark.session.engine import SessionEngine
    from thalweg.spark.session.session import Session
    from thalweg.spark.session.standing import StandingQuery


TRAIL = 20  # points of a chart, and switches, that are told


class SessionRun:
    """A session in the registry of runs."""

    kind: ClassVar[str] = "session"

    def __init__(self, session: Session) -> None:
        self.key = runs.new_key()
        self._session = session

    def describe(self) -> dict[str, Any]:
        """All that is known of the session at this moment, as plain values."""
        return describe_session(self._session)

    def text(self, description: dict[str, Any]) -> str:
        """A description for people to read."""
        return session_text(description)


def describe_session(session: Session) -> dict[str, Any]:
    """All that is known of a session at this moment."""
    engine = session.engine
    batches = list(engine.history.batches) if engine is not None else []
    shared = engine.program.shared if engine is not None else ()
    together = _computed_together(session, engine)
    return {
        "key": session.thalweg_run.key,
        "checkpoint": session.checkpoint,
        "batches": 0 if engine is None else engine.position.batch + 1,
        "rows": 0 if engine is None else engine.position.rows,
        "rows_without_time": 0 if engine is None else engine.position.without_time,
        "seconds": _sums([record.seconds for record in batches]),
        "shared_conditions": len(shared),
        "written_conditions": sum(len(query.compiled.query.selections) for query in session.queries),
        "costly_conditions": [] if engine is None else _describe_orders(engine),
        "memory": None if engine is None else _describe_memory(engine, session),
        "lag_seconds": batches[-1].lag if batches else None,
        "waiting_files": 0 if engine is None else len(engine.position.files),
        "queries": [
            _describe_query(query, engine) | {"computed_with": together.get(query.name, [])}
            for query in session.queries
        ],
    }


def _computed_together(session: Session, engine: SessionEngine | None) -> dict[str, list[str]]:
    """For each query that runs, the others with which its join or its groups are computed once, by present plans."""
    if engine is None:
        return {}
    served = {query.token for query in engine.program.queries}
    running = [
        (query, engine.served[query.compiled.token]) for query in session.queries if query.compiled.token in served
    ]
    return computed_together(
        [
            (query.name, query.compiled, each.scheduler.plan or query.compiled.space.candidates[0])
            for query, each in running
        ]
    )


def _describe_orders(engine: SessionEngine) -> list[dict[str, Any]]:
    """For each stream whose costly conditions were tried: their order, what was measured, and what it saves."""
    return [
        {
            "stream": stream,
            "conditions": [
                {
                    "condition": condition.sql,
                    "seconds": measured.seconds_of[condition.column],
                    "passed": measured.passed[condition.column],
                }
                for condition in measured.order
            ],
            "tried_rows": measured.rows,
            "seconds": measured.seconds,
            "seconds_as_written": measured.seconds_as_written,
            "batch": measured.batch,
        }
        for stream, measured in engine.orders.measured.items()
    ]


def _text_of_orders(orders: list[dict[str, Any]]) -> list[str]:
    """The order of the costly conditions of each stream, and why."""
    lines = []
    for about in orders:
        listed = ", then ".join(
            f"{each['condition']} ({each['seconds'] * 1e6:.2f} µs, true for {each['passed']:.0%})"
            for each in about["conditions"]
        )
        lines.append(f"  costly conditions on {about['stream']} since micro-batch {about['batch']}: {listed}")
        lines.append(
            f"    {about['tried_rows']:,} rows were tried: {about['seconds'] * 1e6:.2f} µs a row; "
            f"{about['seconds_as_written'] * 1e6:.2f} in the order of the queries"
        )
    return lines


def _describe_memory(engine: SessionEngine, session: Session) -> dict[str, Any]:
    """The cap, what was wanted and held, at most and last, and the queries that had to wait for their turn."""
    names = {query.compiled.token: query.name for query in session.queries}
    batches = list(engine.history.batches)
    later = {token for record in batches for job in record.jobs[1:] for token in job}
    return {
        "cap": engine.memory,
        "wanted": max((record.wanted_memory for record in batches), default=0),
        "held": max((record.held_memory for record in batches), default=0),
        "held_now": next((record.held_memory for record in reversed(batches) if record.jobs), 0),
        "in_turns": [name for token, name in names.items() if token in later],
        "waiting": [name for token, name in names.items() if _waits(token, engine) is not None],
    }


def _waits(token: str, engine: SessionEngine) -> str | None:
    """Why a query waits for memory; None if it does not wait."""
    position = engine.position.queries.get(token)
    return None if position is None else position.waits


def _describe_query(query: StandingQuery, engine: SessionEngine | None) -> dict[str, Any]:
    token = query.compiled.token
    position = engine.position.queries.get(token) if engine is not None else None
    served = engine.served.get(token) if engine is not None else None
    plans = query.compiled.space.candidates
    counts = served.scheduler.counts if served is not None else None
    plan = (served.scheduler.plan if served is not None else None) or plans[0]
    own = sum(len(selections) for selections in query.compiled.own.values())
    return {
        "name": query.name,
        "text": query.text,
        "status": _status(
            position.failed if position else None,
            position.waits if position else None,
            is_paused=query.is_paused,
            is_known=position is not None,
        ),
        "plan": str(plan),
        "plans": len(plans),
        "plans_that_differ_in_spark": len({runs_alike(each) for each in plans}),
        "rounds": position.rounds if position else 0,
        "rows": position.rows if position else 0,
        "late_rows": position.late if position else 0,
        "seconds": _own_seconds(token, engine),
        "decisions": counts.decisions if counts else 0,
        "moves": counts.moves if counts else 0,
        "switches": counts.switches if counts else 0,
        "fidelity": counts.fidelity if counts else None,
        "conditions_of_its_own": own,
        "weights": {"rate": query.weights.rate, "memory": query.weights.memory},
        "partitions": query.partitions,
        "charts": _describe_charts(served.scheduler) if served is not None else [],
        "switched": _describe_switches(served.scheduler) if served is not None else [],
        "last_rounds": _describe_rounds(token, engine) if engine is not None else [],
    }


def _describe_rounds(token: str, engine: SessionEngine) -> list[dict[str, Any]]:
    """The last rounds of a query: how their plans were chosen, what they read and gave, and the time that they took."""
    return [
        {
            "round": service.record.number,
            "batch": service.batch,
            "end": service.end,
            "plan": service.record.plan,
            "is_move": service.record.is_move,
            "is_switch": service.record.is_switch,
            "is_hit": service.record.is_hit,
            "rows_read": service.rows_read,
            "rows": service.rows,
            "seconds": service.seconds,
            "shared_seconds": service.shared_seconds,
        }
        for service in engine.rounds_of(token)[-TRAIL:]
    ]


def _last_round(rounds: list[dict[str, Any]]) -> list[str]:
    """The last round in a line; nothing before the first one."""
    return [
        f"  last round: {each['rows_read']:,} rows read, {each['rows']:,} result rows, "
        f"{each['seconds']:.3f} seconds of its own, {each['shared_seconds']:.3f} shared"
        for each in rounds[-1:]
    ]


def _own_seconds(token: str, engine: SessionEngine | None) -> float:
    """The seconds of workers for the results of a query, in the micro-batches that are remembered."""
    return 0.0 if engine is None else sum(service.seconds for _, service in engine.services_of(token))


def _describe_charts(scheduler: PlanScheduler) -> list[dict[str, Any]]:
    """Each chart by which a query chooses its plan, with the point of the last round, and the points before it."""
    return [
        {
            "up": {"name": picture.up.label, "low": picture.up.low, "high": picture.up.high},
            "right": {"name": picture.right.label, "low": picture.right.low, "high": picture.right.high},
            "plans": picture.plans.tolist(),
            "here": list(picture.here),
            "trail": [list(place) for place in picture.trail],
        }
        for picture in heat_maps(scheduler)
    ]


def heat_maps(scheduler: PlanScheduler) -> list[HeatMap]:
    """A picture of each chart of a scheduler; none before the first round, and for schedulers without charts."""
    charts, expected = getattr(scheduler, "charts", None), scheduler.expected
    if charts is None or expected is None:
        return []
    before = [record.expected for record in list(scheduler.log)[-TRAIL:] if record.expected is not None]
    trails = [[point for _, point in charts.points(statistics)] for statistics in before]
    return [
        heat_map(chart, point, [points[place] for points in trails])
        for place, (chart, point) in enumerate(charts.points(expected))
    ]


def _describe_switches(scheduler: PlanScheduler) -> list[dict[str, Any]]:
    """The last rounds for which another plan was chosen than for the round before, with the reason in words."""
    records, plans = list(scheduler.log), {plan.digest: plan for plan in scheduler.costs.space.candidates}
    steps = {digest: list(plan.root.steps()) for digest, plan in plans.items()}
    switched = [place for place, record in enumerate(records) if record.is_switch]
    return [
        {
            "round": records[place].number,
            "before": records[place - 1].plan if place else None,
            "after": records[place].plan,
            "steps_before": steps.get(records[place - 1].plan) if place else None,
            "steps_after": steps.get(records[place].plan),
            "why": "rates or selectivities moved to another region of the chart"
            if records[place].is_move
            else "the charts were built anew, or weights changed",
        }
        for place in switched[-TRAIL:]
    ]


def session_text(about: dict[str, Any]) -> str:
    """A description for people to read."""
    lines = [
        f"session: {len(about['queries'])} queries, {about['batches']} micro-batches, {about['rows']:,} rows",
        f"  conditions: {about['written_conditions']} written, {about['shared_conditions']} shared and evaluated once",
    ]
    if about["rows_without_time"]:
        lines.append(f"  {about['rows_without_time']:,} rows have no event time, and belong to no round")
    lines += _text_of_orders(about["costly_conditions"])
    memory = about["memory"]
    if memory is not None:
        cap = "no cap" if memory["cap"] is None else f"cap {memory['cap']:,} bytes"
        told = f"{cap}, wanted {memory['wanted']:,}, held {memory['held']:,}"
        turns = f"; slowed down, in later jobs: {', '.join(memory['in_turns'])}" if memory["in_turns"] else ""
        waiting = f"; waiting, since a round does not fit: {', '.join(memory['waiting'])}" if memory["waiting"] else ""
        lines.append(f"  memory: {told}{turns}{waiting}")
    if about["seconds"]:
        spent = ", ".join(f"{step} {seconds:.2f}" for step, seconds in about["seconds"].items())
        lines.append(f"  seconds: {spent}")
    for query in about["queries"]:
        fidelity = "" if query["fidelity"] is None else f", fidelity {query['fidelity']:.0%}"
        lines += [
            "",
            f"{query['name']}: {query['status']}",
            f"  {query['text'].strip()}",
            f"  {query['rounds']:,} rounds, {query['rows']:,} result rows, {query['late_rows']:,} late rows",
            f"  {query['seconds']:.2f} seconds of its own",
            *_last_round(query["last_rounds"]),
            f"  {query['moves']} moves, {query['switches']} switches{fidelity}",
            f"  {_of_plans(query['plans_that_differ_in_spark'], query['plans'])}:",
            *(f"    {line}" for line in query["plan"].splitlines()),
        ]
        if query["computed_with"]:
            lines.append(f"  computed once for this query and {', '.join(query['computed_with'])}")
    return "\n".join(lines)


def _of_plans(plans: int, candidates: int) -> str:
    """How many plans a query has; candidates that Spark runs identically count as one plan."""
    if plans == candidates:
        return "the only plan" if plans == 1 else f"one of {plans} plans"
    if plans == 1:
        return f"the only plan: Spark runs all {candidates} candidates identically"
    return f"one of {plans} plans: Spark runs some of {candidates} candidates identically"


def _status(failed: str | None, waits: str | None, *, is_paused: bool, is_known: bool) -> str:
    if failed is not None:
        return f"failed: {failed}"
    if is_paused:
        return "paused"
    if waits is not None:
        return f"waits for memory: {waits}"
    return "served" if is_known else "not started"


def _sums(several: list[Any]) -> dict[str, float]:
    total: dict[str, float] = {}
    for seconds in several:
        for step, spent in seconds.items():
            total[step] = total.get(step, 0.0) + spent
    return total
