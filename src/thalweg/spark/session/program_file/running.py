"""Runs a session to its end, tells what happens, and ends it cleanly when the user asks for that."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from thalweg.spark.session.explain import describe_session
from thalweg.spark.session.program_file.progress import batch_lines
from thalweg.spark.session.program_file.session_of_file import reason
from thalweg.spark.session.session import Session
from thalweg.spark.session.sinks import MemorySink

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

POLL_SECONDS = 0.5
SHOWN_ROWS = 20  # of results that are kept in memory
TRACEBACK = "Traceback (most recent call last):"


def run_session(session: Session, trigger: Mapping[str, Any], console: Console, end_asked: threading.Event) -> bool:
    """Run until the streams end or the user asks for the end; returns whether all queries went well."""
    from pyspark.errors import StreamingQueryException

    running = session.start(**trigger)
    printer = BatchPrinter(session, console)
    try:
        while not session.await_termination(POLL_SECONDS):
            printer.print_new()
            if end_asked.is_set():
                _say(console, "The session ends after the micro-batch that runs; Ctrl-C again ends it at once.")
                _finish_batch(session, running)
                break
        has_stopped = False
    except StreamingQueryException as error:
        _say(console, f"The session has stopped: {reason_of_stop(error)}", style="bold red")
        has_stopped = True
    finally:
        session.stop()
    printer.print_new()
    _print_summary(session, console)
    return not (has_stopped or printer.failed)


class BatchPrinter:
    """Prints each micro-batch once, and each query that fails."""

    def __init__(self, session: Session, console: Console) -> None:
        self.failed: set[str] = set()  # names of queries
        self._session = session
        self._console = console
        self._last = -1  # number of the last micro-batch that was printed

    def print_new(self) -> None:
        """Print what has happened since the last call."""
        engine = self._session.engine
        if engine is None:
            return
        names = {query.compiled.token: query.name for query in self._session.queries}
        for record in [record for record in list(engine.log) if record.number > self._last]:
            for line in batch_lines(record, names):
                _say(self._console, line)
            self._last = record.number
        for token, position in engine.position.queries.items():
            name = names.get(token, token)
            if position.failed is not None and name not in self.failed:
                _say(self._console, f"The query {name} has failed: {position.failed}", style="bold red")
                self.failed.add(name)


def reason_of_stop(error: BaseException) -> str:
    r"""Why a session has stopped, in one line: Spark tells the traceback of a micro-batch, at whose end is the error.

    >>> text = "failed: Traceback (most recent call last):\n  File a, line 1\nValueError: too large\n\n== plan"
    >>> reason_of_stop(OSError(text))
    'ValueError: too large'
    """
    lines = iter(str(error).splitlines())
    found = any(line.rstrip().endswith(TRACEBACK) for line in lines)  # leaves the lines behind it
    raised = next((line for line in lines if line.strip() and not line.startswith(" ")), "") if found else ""
    return raised.strip() or reason(error)


def _finish_batch(session: Session, running: StreamingQuery) -> None:
    """Wait until the micro-batch that runs is done; Spark's stop alone would break it off."""
    log = session.engine.log if session.engine is not None else []
    done = log[-1].number if log else -1
    while running.status["isTriggerActive"] and (log[-1].number if log else -1) == done:
        if session.await_termination(POLL_SECONDS):
            return


@contextmanager
def end_on_signal() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C, or signal TERM, sets: the session is to end. The second signal ends it at once.

    Spark's own handler would cancel the running jobs, and break off a call of the JVM.
    """
    asked = threading.Event()

    def note(_signal: int, _frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    if threading.current_thread() is not threading.main_thread():  # which alone gets signals
        yield asked
        return
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print_summary(session: Session, console: Console) -> None:
    """What each query has done, and the results that are in memory only."""
    table = Table("query", "status")
    headings = {"rounds": "rounds", "rows": "results", "late_rows": "late rows", "switches": "switches of plan"}
    for heading in headings.values():
        table.add_column(heading, justify="right")
    for query in describe_session(session)["queries"]:
        table.add_row(
            Text(query["name"]), query["status"].partition(":")[0], *(f"{query[name]:,}" for name in headings)
        )
    console.print(table)
    for standing in session.queries:
        if isinstance(standing.sink, MemorySink):
            _print_results(standing.name, standing.sink, console)


def _print_results(name: str, sink: MemorySink, console: Console) -> None:
    found = sink.table()
    if found is None:
        return
    shown = found.slice(0, SHOWN_ROWS)
    title = Text(f"{name}: {shown.num_rows:,} of {found.num_rows:,} results")
    table = Table(*map(escape, shown.column_names), title=title)
    for row in shown.to_pylist():
        table.add_row(*(Text(str(value)) for value in row.values()))
    console.print(table)


def _say(console: Console, line: str, style: str | None = None) -> None:
    console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)
