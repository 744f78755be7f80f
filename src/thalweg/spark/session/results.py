"""Computes the results of the rounds that end: all queries of a job at once, or each alone if the job fails."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from thalweg.spark.folder import make_private_folder
from thalweg.spark.interruptions import refuse_interruption
from thalweg.spark.session.branches import Ending, branches_of, written_files
from thalweg.spark.session.failures import reason
from thalweg.spark.session.lower import Catalog
from thalweg.spark.session.no_rows import ResultOfNoRows
from thalweg.spark.session.views import RowViews, TableViews

Files = Mapping[str, Sequence[tuple[str, int]]]  # by token: a file and its rows


class ResultJobs:
    """Writes the results of queries to files."""

    def __init__(self, catalog: Catalog, tables: TableViews) -> None:
        self._catalog = catalog
        self._tables = tables
        self._of_no_rows: dict[str, ResultOfNoRows] = {}  # by token

    def compute(self, jobs: Sequence[Sequence[Ending]], views: RowViews, folder: str) -> tuple[Files, dict[str, str]]:
        """Write the results of all queries whose rounds end, job by job; returns files, and why queries failed."""
        files: dict[str, list[tuple[str, int]]] = {}
        failed: dict[str, str] = {}
        if jobs:
            shutil.rmtree(folder, ignore_errors=True)  # of a try that did not end
            make_private_folder(Path(folder))
        for job in jobs:
            endings = [ending for ending in job if ending.query.token not in failed]
            found, own_failed = self._compute_job(endings, views, folder)
            failed |= own_failed
            for token, listed in found.items():
                files.setdefault(token, []).extend(listed)
        return {token: listed for token, listed in files.items() if token not in failed}, failed

    def _compute_job(self, endings: Sequence[Ending], views: RowViews, folder: str) -> tuple[Files, dict[str, str]]:
        """If the job fails, each query runs alone, so that its error is its own and the others go on."""
        if not endings:
            return {}, {}
        try:
            return self._written(branches_of(endings), views, folder), {}
        except Exception as error:  # noqa: BLE001 - whatever a user's query raises
            refuse_interruption(error)
            if len(endings) == 1:
                return {}, {endings[0].query.token: reason(error)}
        files: dict[str, Sequence[tuple[str, int]]] = {}
        failed: dict[str, str] = {}
        for ending in endings:
            found, own_failed = self._compute_job([ending], views, folder)
            failed |= own_failed
            files |= found
        return files, failed

    def _written(self, branches: Sequence[Sequence[Ending]], views: RowViews, folder: str) -> Files:
        """The files of each query with their rows."""
        frame = written_files(branches, views, self._catalog, folder, in_one_task=views.in_one_task)
        found: dict[str, list[tuple[str, int]]] = {}
        rounds: dict[str, set[int]] = {}
        for token, file, rows, numbers in frame.collect():
            rounds.setdefault(token, set()).update(numbers)
            if file is not None:
                found.setdefault(token, []).append((f"{folder}/{file}", rows))
        for ending in (ending for branch in branches for ending in branch):
            query = ending.query
            missing = set(ending.rounds) - rounds.get(query.token, set())
            if query.has_result_of_no_rows and missing:
                if query.token not in self._of_no_rows:
                    self._of_no_rows[query.token] = ResultOfNoRows(query, views.spark, self._tables, self._catalog)
                found.setdefault(query.token, []).extend(self._of_no_rows[query.token].write(missing, folder))
        return found
