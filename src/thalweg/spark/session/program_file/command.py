"""What `thalweg run` does: reads the file, starts Spark, and checks, explains or runs the session."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from thalweg.spark.session.program_file.dry_run import dry_run_text
from thalweg.spark.session.program_file.program_text import Problem, ProgramFileError
from thalweg.spark.session.program_file.read import read_program_file
from thalweg.spark.session.program_file.running import end_on_signal, run_session
from thalweg.spark.session.program_file.session_of_file import session_of_file
from thalweg.spark.start import spark_session


def run_file(path: Path, console: Console, *, only_check: bool = False, is_dry_run: bool = False) -> bool:
    """Check, explain or run a program file; returns whether all queries went well, or raises a `ProgramFileError`."""
    file = read_program_file(path)
    spark = spark_session(file.spark.app_name, master=file.spark.master, **file.spark.conf)
    with end_on_signal() as end_asked:
        session = session_of_file(spark, file)
        if end_asked.is_set():
            answer = "The session ends before its first micro-batch."
        elif is_dry_run:
            answer = dry_run_text(session)
        elif only_check:
            counts = f"{len(file.streams)} streams, {len(file.tables)} tables, {len(file.queries)} queries"
            answer = f"{path}: no problems: {counts}."
        else:
            try:
                return run_session(session, file.trigger, console, end_asked)
            except (ValueError, OSError) as error:  # a checkpoint or folder of results that belongs to another session
                raise ProgramFileError([Problem(0, f"{path}: {error}")]) from error
    console.print(answer, markup=False, highlight=False, soft_wrap=True)
    return True
