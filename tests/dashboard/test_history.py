from __future__ import annotations

from typing import Any

import pytest
from tests.dashboard import samples

from thalweg.dashboard.history import MOST_POINTS, STALE_SECONDS, RunHistory
from thalweg.dashboard.measures import SERIES


def event(sequence: int, at: float, changed: dict[str, Any], **other: object) -> dict[str, Any]:
    return {"sequence": sequence, "at": at, "changed": changed, **other}


@pytest.fixture
def history() -> RunHistory:
    history = RunHistory("f" * 32)
    history.fold(event(1, 100.0, {}, about={"kind": "where", "program": "screen.py"}))
    return history


def test_values_and_points_are_kept(history: RunHistory) -> None:
    history.fold(event(2, 101.0, samples.where(rows=1000)))
    history.fold(event(3, 102.0, {"rows": 2000}))
    assert history.title == "where: 3 predicates"
    assert [dict(zip(SERIES, point, strict=True))["rows"] for point in history.points] == [1000, 2000]
    assert dict(zip(SERIES, history.points[0], strict=True))["cost_as_written"] == 8e-5


def test_points_are_thinned_and_the_newest_are_whole(history: RunHistory) -> None:
    for number in range(3 * MOST_POINTS):
        history.fold(event(number + 2, 101.0 + number, {"rows": number}))
    times = [point[0] for point in history.points]
    assert len(times) <= MOST_POINTS
    assert times[0] == 101.0
    assert times[-100:] == [101.0 + 3 * MOST_POINTS - 100 + number for number in range(100)]


def test_many_events_in_a_moment_are_one_point(history: RunHistory) -> None:
    for number in range(1000):
        history.fold(event(number + 2, 101.0 + number / 1000, {"rows": number}))
    assert len(history.points) == 2
    assert history.values["rows"] == 999
    assert (history.events, history.lost) == (1001, 0)


def test_a_switch_is_told_once(history: RunHistory) -> None:
    first = samples.change(101.0, "abc", "bac")
    history.fold(event(2, 102.0, {"changes": [first]}))
    history.fold(event(3, 103.0, {"changes": [first, samples.change(102.5, "bac", "cab")]}))
    assert [switch["at"] for switch in history.switches] == [101.0, 102.5]
    assert history.switches[0]["why"] == "b drops more per cost than a"


def test_drift_has_its_time_and_orders(history: RunHistory) -> None:
    found = samples.drift(101.5, "is new", "abc", "cab")
    history.fold(event(2, 102.0, {"drift": [found, {"rows": 7, "kind": "movement", "dropped": 3}]}))
    assert [drift["at"] for drift in history.drifts] == [101.5, 102.0]
    assert history.drifts[0]["order_after"] == ["c", "a", "b"]


def test_joins_and_sessions_tell_their_switches() -> None:
    for kind, described in (("join", samples.join()), ("session", samples.session())):
        history = RunHistory("f" * 32)
        history.fold(event(1, 100.0, {}, about={"kind": kind}))
        history.fold(event(2, 101.0, described))
        history.fold(event(3, 102.0, described))
        assert len(history.switches) == 2
        assert all(switch["why"] and switch["at"] == 101.0 for switch in history.switches)


def test_a_switch_of_a_session_names_the_steps_of_its_plans(history: RunHistory) -> None:
    history.fold(event(2, 102.0, samples.session(), about={"kind": "session"}))
    assert history.switches[0]["before"] == ["Select `TCP`.`host` = 2", "Project TCP: host, size"]


def test_a_session_has_memory_and_lag(history: RunHistory) -> None:
    history.fold(event(2, 102.0, samples.session(), about={"kind": "session"}))
    numbers = dict(zip(SERIES, history.points[-1], strict=True))
    assert (numbers["memory"], numbers["lag"]) == (3_000_000, 1.5)


def test_the_state_says_whether_the_program_is_heard(history: RunHistory) -> None:
    assert history.state(100.0 + STALE_SECONDS) == "running"
    assert history.state(101.0 + STALE_SECONDS) == "stale"
    history.fold(event(2, 130.0, {}, ended=True, error=None))
    assert history.state(1e9) == "ended"


def test_a_query_that_failed_says_why(history: RunHistory) -> None:
    history.fold(event(2, 130.0, {}, ended=True, error="division by zero"))
    assert (history.state(131.0), history.error) == ("failed", "division by zero")


def test_events_that_are_missing_are_counted(history: RunHistory) -> None:
    history.fold(event(5, 101.0, {"rows": 1}))
    assert history.lost == 3
