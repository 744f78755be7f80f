"""Computes the results of the rounds that end: all queries of a job at once, or each alone if the job fails."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from thalweg.spark.folder import make_private_folder
from thalweg.spark.interruptions import refuse_interruption
from thalweg.spark.session.branches import Ending, branches_of, written_files
from thalweg.spark.session.chosen_rows import THREADS, chosen_rows
from thalweg.spark.session.failures import reason
from thalweg.spark.session.lower import Catalog
from thalweg.spark.session.no_rows import ResultOfNoRows
from thalweg.spark.session.views import RowViews, TableViews


@dataclass
class QueryResults:
    """The results of a query in a micro-batch."""

    files: list[tuple[str, int]] = field(default_factory=list)  # with the rows of each
    seconds: float = 0.0  # of workers or threads, of its own
    by_round: Counter[int] = field(default_factory=Counter)  # rows; none of a query whose conditions choose rows

    @property
    def rows(self) -> int:
        """All result rows."""
        return sum(rows for _, rows in self.files)

    def add(self, other: QueryResults) -> None:
        """Add the results of another job."""
        self.files += other.files
        self.seconds += other.seconds
        self.by_round.update(other.by_round)


Results = dict[str, QueryResults]  # by token


class ResultJobs:
    """Writes the results of queries to files."""

    def __init__(self, catalog: Catalog, tables: TableViews) -> None:
        self._catalog = catalog
        self._tables = tables
        self._of_no_rows: dict[str, ResultOfNoRows] = {}  # by token

    def compute(self, jobs: Sequence[Sequence[Ending]], views: RowViews, folder: str) -> tuple[Results, dict[str, str]]:
        """Write the results of all queries whose rounds end, job by job; returns them, and why queries failed."""
        results: Results = {}
        failed: dict[str, str] = {}
        if jobs:
            shutil.rmtree(folder, ignore_errors=True)  # of a try that did not end
            make_private_folder(Path(folder))
        for job in jobs:
            endings = [ending for ending in job if ending.query.token not in failed]
            found, own_failed = self._compute_job(endings, views, folder)
            failed |= own_failed
            for token, own in found.items():
                results.setdefault(token, QueryResults()).add(own)
        return {token: own for token, own in results.items() if token not in failed}, failed

    def _compute_job(self, endings: Sequence[Ending], views: RowViews, folder: str) -> tuple[Results, dict[str, str]]:
        """If the job fails, each query runs alone, so that its error is its own and the others go on."""
        if not endings:
            return {}, {}
        try:
            return self._written(endings, views, folder), {}
        except Exception as error:  # noqa: BLE001 - whatever a user's query raises
            refuse_interruption(error)
            if len(endings) == 1:
                return {}, {endings[0].query.token: reason(error)}
        results: Results = {}
        failed: dict[str, str] = {}
        for ending in endings:
            found, own_failed = self._compute_job([ending], views, folder)
            failed |= own_failed
            results |= found
        return results, failed

    def _written(self, endings: Sequence[Ending], views: RowViews, folder: str) -> Results:
        """The results of each query: threads of the driver write some, while a job of Spark writes the others."""
        chosen: list[Ending] = []
        computed: list[Ending] = []
        for ending in endings:
            (chosen if views.are_few and ending.query.chosen_columns is not None else computed).append(ending)
        found: Results = {}
        with ThreadPoolExecutor(THREADS) as threads:
            written = [threads.submit(part.write, folder) for part in chosen_rows(chosen, views, self._catalog)]
            if computed:
                found = self._computed(computed, views, folder)
            for part in written:
                for token, file, rows, seconds in part.result():
                    found[token] = QueryResults([(file, rows)], seconds)
        return found

    def _computed(self, endings: Sequence[Ending], views: RowViews, folder: str) -> Results:
        """The results that a job of Spark computes."""
        frame = written_files(branches_of(endings), views, self._catalog, folder, in_one_task=views.in_one_task)
        found: Results = {}
        rounds: dict[str, set[int]] = {}
        for token, file, by_round, numbers, seconds in frame.collect():
            rounds.setdefault(token, set()).update(numbers)
            files = [(file, sum(by_round.values()))] if file is not None else []
            found.setdefault(token, QueryResults()).add(QueryResults(files, seconds, Counter(by_round)))
        for ending in endings:
            query = ending.query
            missing = set(ending.rounds) - rounds.get(query.token, set())
            if query.has_result_of_no_rows and missing:
                if query.token not in self._of_no_rows:
                    self._of_no_rows[query.token] = ResultOfNoRows(query, views.spark, self._tables, self._catalog)
                files = self._of_no_rows[query.token].write(missing, folder)
                by_round = Counter(missing if files else ())  # of each round one row, if HAVING keeps it
                found.setdefault(query.token, QueryResults()).add(QueryResults(files, by_round=by_round))
        return found
