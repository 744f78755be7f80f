"""Reads a program file, and checks all of it that can be checked without Spark."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from thalweg.charts import SCHEDULERS, ByChart, Weights
from thalweg.charts.chart import PARTS
from thalweg.registry import find, hint
from thalweg.spark.joins.join import COUNT
from thalweg.spark.joins.text import microseconds
from thalweg.spark.session.memory import memory_cap
from thalweg.spark.session.program_file.fields import TABLE, TEXT, Checker
from thalweg.spark.session.program_file.positions import FieldPath, field_name
from thalweg.spark.session.program_file.program_text import read_program_text
from thalweg.spark.session.program_file.query_texts import note_wrong_texts
from thalweg.spark.session.program_file.sections import (
    CONSOLE,
    FILE_FIELDS,
    FILE_FORMATS,
    MEMORY,
    QUERY_FIELDS,
    RESULTS,
    SCHEMA,
    SINK_FIELDS,
    SOURCE_FIELDS,
    SPARK_FIELDS,
    STREAM_FIELDS,
    TRIGGER_FIELDS,
    ProgramFile,
    QuerySection,
    SinkSection,
    SourceSection,
    SparkSection,
    StreamSection,
)
from thalweg.spark.session.standing import checked_partitions


def read_program_file(path: Path) -> ProgramFile:
    """The program that a TOML or YAML file describes, or a `ProgramFileError` with all problems that were found."""
    text = read_program_text(path)
    reader = _Reader(Checker(text))
    file = reader.checker.table((), text.values, FILE_FIELDS)
    program = ProgramFile(
        text=text,
        checkpoint=reader.written_path(("checkpoint",), file.get("checkpoint", "")),
        late=reader.written_path(("late",), file["late"]) if "late" in file else COUNT,
        memory=reader.memory(file["memory"]) if "memory" in file else None,
        spark=reader.spark(file.get("spark", {})),
        streams=reader.streams(file.get("streams", {})),
        tables=reader.tables(file.get("tables", {})),
        predicates=file.get("predicates", {}),
        queries=reader.queries(file.get("queries", {})),
        trigger=reader.trigger(file.get("trigger", {})),
    )
    for name in ("streams", "queries"):
        if file.get(name) == {}:
            reader.checker.note((name,), "a session needs at least one: write its name with its fields")
    reader.check_names([("streams", name) for name in program.streams] + [("tables", name) for name in program.tables])
    reader.check_folders(program.queries)
    note_wrong_texts(reader.checker, _query_texts(file.get("queries", {})))
    reader.checker.finish()
    return program


def _query_texts(queries: Mapping[str, Any]) -> dict[str, str]:
    """The texts of all queries, also of queries with problems in other fields."""
    return {
        name: values["text"]
        for name, values in queries.items()
        if TABLE.holds(values) and TEXT.holds(values.get("text"))
    }


class _Reader:
    """Makes a value of each section, and notes what is wrong in it. With problems, no value is used."""

    def __init__(self, checker: Checker) -> None:
        self.checker = checker

    def spark(self, values: Mapping[str, Any]) -> SparkSection:
        section = SparkSection(**self.checker.table(("spark",), values, SPARK_FIELDS))
        if section.master is not None and section.master.startswith("sc://"):
            self.checker.note(
                ("spark", "master"),
                f"a session does not run on Spark Connect ({section.master}): write a master such as "
                f"{self.checker.text.example('master', 'local[2]')} or spark://host:7077",
            )
        return section

    def streams(self, tables: Mapping[str, Any]) -> dict[str, StreamSection]:
        streams = {}
        for name, values in self.checker.tables(("streams",), tables, STREAM_FIELDS).items():
            field = ("streams", name)
            stream = StreamSection(**values | {"select": tuple(values.get("select", ()))})
            try:
                microseconds(stream.delay, "the delay")
            except ValueError as error:
                self.checker.note((*field, "delay"), str(error))
            if stream.format in FILE_FORMATS and stream.format != "text" and stream.schema is None:
                example = self.checker.text.example("schema", SCHEMA)
                self.checker.note(field, f"schema is missing: Spark needs it for a stream of files; write {example}")
            streams[name] = replace(stream, path=self._read_path(field, stream))
        return streams

    def tables(self, tables: Mapping[str, Any]) -> dict[str, SourceSection]:
        found = {}
        for name, values in self.checker.tables(("tables",), tables, SOURCE_FIELDS).items():
            table = SourceSection(**values)
            found[name] = replace(table, path=self._read_path(("tables", name), table))
        return found

    def queries(self, tables: Mapping[str, Any]) -> dict[str, QuerySection]:
        queries = {}
        for name, values in self.checker.tables(("queries",), tables, QUERY_FIELDS).items():
            field = ("queries", name)
            options = {name: value for name, value in values.items() if name not in {"text", "to"}}
            self._check_options(field, options)
            queries[name] = QuerySection(values["text"], self._sink((*field, "to"), values["to"]), options)
        return queries

    def trigger(self, values: Mapping[str, Any]) -> dict[str, Any]:
        good = self.checker.table(("trigger",), values, TRIGGER_FIELDS)
        if len(good) > 1:
            self.checker.note(("trigger",), "write either processing_time or available_now, not both")
        if "processing_time" in good:
            try:
                microseconds(good["processing_time"], "the time between micro-batches")
            except ValueError as error:
                self.checker.note(("trigger", "processing_time"), str(error))
            return {"processingTime": good["processing_time"]}
        return {"availableNow": True} if good else {}

    def check_names(self, fields: Sequence[tuple[str, str]]) -> None:
        """Streams and tables have names that differ, and that a query can write; upper and lower case are the same."""
        first: dict[str, FieldPath] = {}
        for field in fields:
            name = field[-1]
            if not name.isidentifier():
                self.checker.note(field, "a name has letters, digits and _ only, so that queries can write it")
            if first.setdefault(name.lower(), field) != field:
                other = field_name(first[name.lower()])
                self.checker.note(field, f"{other} has this name already: streams and tables need names that differ")

    def check_folders(self, queries: Mapping[str, QuerySection]) -> None:
        """Each query writes files to a folder of its own."""
        first: dict[str, str] = {}
        for name, query in queries.items():
            path = query.to.path
            if path is not None and query.to.format in FILE_FORMATS and first.setdefault(path, name) != name:
                message = f"{field_name(('queries', first[path]))} writes to this folder already: write another folder"
                self.checker.note(("queries", name, "to", "path"), message)

    def memory(self, memory: str) -> int | None:
        """The bytes of a memory cap."""
        try:
            return memory_cap(memory)
        except ValueError as error:
            self.checker.note(("memory",), str(error))
            return None

    def written_path(self, field: FieldPath, path: str) -> str:
        """A folder that will be written to: checks that it can be made."""
        absolute = self._absolute(path)
        if "://" in absolute or not path:
            return absolute
        try:
            present = next(parent for parent in (Path(absolute), *Path(absolute).parents) if parent.exists())
        except OSError as error:
            self.checker.note(field, f"there can be no such folder ({error.strerror}): write the path of a folder")
            return absolute
        if not present.is_dir():
            self.checker.note(field, f"{present} is a file: write the path of a folder")
        elif not os.access(present, os.W_OK | os.X_OK):
            self.checker.note(field, f"the folder {present} cannot be written to: write the path of another folder")
        return absolute

    def _check_options(self, field: FieldPath, options: Mapping[str, Any]) -> None:
        weights = {name.removesuffix("_weight"): value for name, value in options.items() if name.endswith("_weight")}
        checks: tuple[tuple[str, Callable[[], object]], ...] = (
            ("rate_weight", lambda: Weights(**weights)),
            ("partitions", lambda: checked_partitions(options.get("partitions", PARTS))),
            ("scheduler", lambda: find(options.get("scheduler", ByChart.name), SCHEDULERS, "scheduler")),
        )
        for name, check in checks:
            try:
                check()
            except ValueError as error:
                self.checker.note((*field, name), str(error))

    def _sink(self, field: FieldPath, to: str | Mapping[str, Any]) -> SinkSection:
        if isinstance(to, str):
            if to not in (MEMORY, CONSOLE):
                example = self.checker.text.example("to", RESULTS)
                self.checker.note(
                    field, f"there is no {to!r}{hint(to, (MEMORY, CONSOLE))} Write memory, console, or {example}"
                )
            return SinkSection(to)
        before = len(self.checker.problems)
        values = self.checker.table(field, to, SINK_FIELDS)
        if len(self.checker.problems) > before:
            return SinkSection(MEMORY)
        sink = SinkSection(**values)
        if sink.path is not None:
            return replace(sink, path=self.written_path((*field, "path"), sink.path))
        if sink.format in FILE_FORMATS:
            example = self.checker.text.example("path", RESULTS["path"])
            self.checker.note(field, f"path is missing: write {example}")
        return sink

    def _read_path(self, field: FieldPath, source: SourceSection) -> str | None:
        """The path of files that will be read: checks that they are there."""
        if source.path is None:
            if source.format in FILE_FORMATS:
                self.checker.note(field, f"path is missing: write {self.checker.text.example('path', 'data/tcp')}")
            return None
        absolute = self._absolute(source.path)
        if source.format in FILE_FORMATS and "://" not in absolute:
            files = glob.glob(absolute)  # noqa: PTH207 - the path is absolute
            if not files:
                self.checker.note((*field, "path"), f"there is no {absolute}: write the path of files or of a folder")
            for file in files:
                if not os.access(file, os.R_OK):
                    self.checker.note((*field, "path"), f"{file} cannot be read: change its permissions")
        return absolute

    def _absolute(self, path: str) -> str:
        return path if "://" in path else os.path.normpath(self.checker.text.folder / Path(path).expanduser())
