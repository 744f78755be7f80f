"""Makes a `tw.Session` of a program file: Spark analyses streams, tables and queries, but nothing starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from thalweg.spark.error_log import errors_not_logged
from thalweg.spark.identifiers import backticked
from thalweg.spark.session.program_file.fields import Checker
from thalweg.spark.session.program_file.imports import named_object
from thalweg.spark.session.program_file.positions import FieldPath
from thalweg.spark.session.program_file.program_text import ProgramFileError, ProgramText
from thalweg.spark.session.program_file.query_texts import note_wrong_texts
from thalweg.spark.session.program_file.sections import (
    FILE_FORMATS,
    MEMORY,
    ProgramFile,
    SinkSection,
    SourceSection,
    StreamSection,
)
from thalweg.spark.session.session import Session
from thalweg.spark.session.sinks import MemorySink, Sink
from thalweg.sql.errors import QueryError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader


def session_of_file(spark: SparkSession, file: ProgramFile) -> Session:
    """The session, ready to start, or a `ProgramFileError` with the problems that were found.

    Queries are analysed only if all streams, tables and predicates are as they should be; else their windows, clauses
    and functions are checked, which need no streams.
    """
    session = Session(spark, checkpoint=file.checkpoint, late=file.late, memory=file.memory)
    checker = Checker(file.text)
    for name, stream in file.streams.items():
        with checker.collected():
            _add_stream(session, name, stream, file.text)
    for name, table in file.tables.items():
        with checker.collected():
            session.table(name, _loaded(spark, spark.read, ("tables", name), table, file.text))
    for name, predicate in file.predicates.items():
        with checker.collected(), _blamed(file.text, ("predicates", name)):
            session.predicate(name, named_object(predicate, file.text.folder))
    note_wrong_texts(checker, {name: query.text for name, query in file.queries.items()})
    checker.finish()
    for name, query in file.queries.items():
        sink = _sink(query.to)
        with checker.collected():
            with _blamed(file.text, ("queries", name, "to")):
                sink.check(spark)
            with _blamed(file.text, ("queries", name, "text")):
                session.query(query.text, name=name, to=sink, **query.options)
    checker.finish()
    return session


def reason(error: BaseException) -> str:
    """What went wrong, in one line: Spark's messages go on with the plan.

    >>> reason(TimeoutError())
    'TimeoutError'
    """
    thrown = getattr(error, "java_exception", None)  # of an error that PySpark has no class for
    text = str(error if thrown is None else thrown.getMessage())
    return text.strip().partition("\n")[0] or type(error).__name__


def _add_stream(session: Session, name: str, stream: StreamSection, text: ProgramText) -> None:
    field = ("streams", name)
    frame = _loaded(session.spark, session.spark.readStream, field, stream, text)
    if stream.select:
        with _blamed(text, (*field, "select")):
            frame = selected(frame, stream.select)
    with _blamed(text, (*field, "event_time")):
        session.stream(name, frame, event_time=stream.event_time, delay=stream.delay)


def selected(frame: DataFrame, expressions: Sequence[str]) -> DataFrame:
    """The expressions as columns; also all fields of a function's result, `from_json(...).*`, which Spark lacks."""
    from pyspark.sql import functions as f

    texts: list[str] = []
    structs = {}
    for number, text in enumerate(map(str.strip, expressions)):
        function = text.removesuffix(".*")
        if text == "*":
            texts += map(backticked, frame.columns)
        elif function != text and function.endswith(")"):
            structs[f"thalweg:fields {number}"] = f.expr(function)
            texts.append(f"{backticked(f'thalweg:fields {number}')}.*")
        else:
            texts.append(text)
    return frame.withColumns(structs).selectExpr(*texts)


def _loaded(
    spark: SparkSession,
    reader: DataFrameReader | DataStreamReader,
    field: FieldPath,
    source: SourceSection,
    text: ProgramText,
) -> DataFrame:
    """The DataFrame of a source."""
    with _blamed(text, (*field, "format")):
        reader = reader.format(_format(spark, source.format, text.folder))
    if source.schema is not None:
        with _blamed(text, (*field, "schema")):
            reader = reader.schema(source.schema)
    with _blamed(text, field):
        return reader.options(**source.options).load(source.path)


def _format(spark: SparkSession, name: str, folder: Path) -> str:
    """The name of a format; a Python data source, written as `package.module:object`, is registered with Spark."""
    if ":" not in name:
        return name
    data_source = named_object(name, folder)
    spark.dataSource.register(data_source)
    return str(data_source.name())


def _sink(to: SinkSection) -> Sink:
    if to.format == MEMORY:
        return MemorySink()
    options = {name: _option(value) for name, value in to.options.items()}
    if to.format in FILE_FORMATS and to.path is not None:
        return Session.files(to.path, to.format, **options)
    return Session.writer(to.format, **options, **({} if to.path is None else {"path": to.path}))


def _option(value: object) -> str:
    """A value as Spark's options have it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@contextmanager
def _blamed(text: ProgramText, field: FieldPath) -> Iterator[None]:
    """Turn any error into a problem with a field."""
    try:
        with errors_not_logged():
            yield
    except QueryError as error:
        raise ProgramFileError([text.query_problem(field, error)]) from None
    except Exception as error:
        raise ProgramFileError([text.problem(field, reason(error))]) from error
