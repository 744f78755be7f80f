"""Which rounds of a query end, by the watermarks of its streams and the panes that have rows. Plain arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from thalweg.spark.session.panes import Pane, Panes
from thalweg.spark.session.position import QueryPosition
from thalweg.spark.session.program import Program, ProgramQuery
from thalweg.spark.session.worker.shared_predicates import Failed
from thalweg.sql.query import RoundWindow
from thalweg.sql.rounds import bounds, first_round, last_ended, last_round


def watermark(query: ProgramQuery, latest: Mapping[str, int], delays: Mapping[str, int]) -> int | None:
    """The time before which no more rows of any stream of a query come; None while one of them has no row."""
    sources = {each.source for each in query.streams}
    return min(latest[name] - delays[name] for name in sources) if sources <= latest.keys() else None


def last_to_deliver(query: ProgramQuery, latest: Mapping[str, int], delays: Mapping[str, int]) -> int | None:
    """The last round of a query that has ended; None if none can have."""
    time = watermark(query, latest, delays)
    return None if time is None else last_ended(time, query.query.window)


def rounds_with_rows(query: ProgramQuery, panes: Panes, delivered: int | None, last: int) -> tuple[int, ...]:
    """The rounds after `delivered` and up to `last` in which some stream of the query has rows."""
    window = query.query.window
    found: set[int] = set()
    for end in {end for each in query.streams for end, _ in _own_panes(panes.get(each.source, {}), window)}:
        first = first_round(end, window) if delivered is None else max(first_round(end, window), delivered + 1)
        found.update(range(first, min(last_round(end, window), last) + 1))
    return tuple(sorted(found))


def rows_in_rounds(panes: Mapping[int, Pane], window: RoundWindow, conjunction: str) -> dict[int, tuple[int, int]]:
    """How many rows of a stream are in each round, and how many of these a conjunction keeps; in one pass."""
    found: dict[int, tuple[int, int]] = {}
    for end, pane in _own_panes(panes, window):
        kept = pane.kept.get(conjunction, 0)
        for number in range(first_round(end, window), last_round(end, window) + 1):
            rows_before, kept_before = found.get(number, (0, 0))
            found[number] = (rows_before + pane.rows, kept_before + kept)
    return found


def late_rows(query: ProgramQuery, new: Panes, missed: int | None) -> int:
    """How many rows of a micro-batch came after a round of theirs had ended; `missed` is the last of these rounds."""
    if missed is None:
        return 0
    window = query.query.window
    return sum(
        pane.rows
        for source in {each.source for each in query.streams}
        for end, pane in new.get(source, {}).items()
        if first_round(end, window) <= missed
    )


def failed_predicates(
    program: Program, positions: Mapping[str, QueryPosition], failed: Mapping[str, Failed]
) -> dict[str, str]:
    """The queries for which a Python predicate raised on a row that they read, and why, by token."""
    found: dict[str, str] = {}
    for query in program.queries:
        delivered = positions[query.token].delivered
        begins = None if delivered is None else bounds(delivered + 1, query.query.window)[0]
        for conjunction in query.conjunctions.values():
            failure = failed.get(conjunction.name)
            if failure is not None and (begins is None or failure.time > begins):
                found[query.token] = failure.reason
    return found


def last_missed(
    query: ProgramQuery, delivered: int | None, latest: Mapping[str, int], delays: Mapping[str, int]
) -> int | None:
    """The last round for which a row that comes now is late; `latest` is of the rows that came before.

    A query that was added or resumed stands behind rounds that have not ended (decision 0257): rows that come in time
    for these rounds are not late, although the query does not take them.
    """
    ended = last_to_deliver(query, latest, delays)
    return None if delivered is None or ended is None else min(delivered, ended)


def late_until(
    program: Program, positions: Mapping[str, QueryPosition], latest: Mapping[str, int], delays: Mapping[str, int]
) -> dict[str, int]:
    """For each stream, the time up to which a row that comes now is late for some query."""
    found: dict[str, int] = {}
    for query in program.queries:
        missed = last_missed(query, positions[query.token].delivered, latest, delays)
        if missed is not None:
            for each in query.streams:
                found[each.source] = max(bounds(missed, query.query.window)[1], found.get(each.source, -(1 << 62)))
    return found


def _own_panes(panes: Mapping[int, Pane], window: RoundWindow) -> Iterator[tuple[int, Pane]]:
    """The panes that lie within rounds of a window: rows that came before the query may have wider panes."""
    for end, pane in panes.items():
        if window.slide % pane.width == 0 and window.length % pane.width == 0:
            yield end, pane
