"""Remembers the answers of a service: equal rows are asked for once, by a process or by all workers with one file.

The key of a row is a digest of its values, so the size of a cache does not depend on the size of the rows. Only answers
are remembered, no failures.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

from thalweg.keywords import checks_keywords

ROW_DIGEST = 16  # bytes: two of a billion rows have the same digest with a chance of 1e-21
IN_A_WORKER = 100_000  # answers that a worker remembers if nothing else is said
IN_A_FILE = 10_000_000  # and a file
TRIM_SHARE = 0.01  # of a file's size by which it may grow beyond it until a worker forgets the oldest answers
LOCK_SECONDS = 30.0  # that a worker waits for another worker to finish writing
ANSWERS_AT_ONCE = 500  # that are looked up with one statement: SQLite takes a bounded number of parameters


@dataclass(frozen=True)
class CacheSpec:
    """Where answers are remembered, how many, and for how long."""

    file: str | None = None  # None: in the memory of each worker
    size: int = IN_A_WORKER
    age: float | None = None  # seconds; None: no limit


@checks_keywords("tw.cache")
def cache(
    *, file: str | os.PathLike[str] | None = None, size: int | None = None, age: float | None = None
) -> CacheSpec:
    """Remember the answers of a predicate that waits: pass this as ``cache=``.

    Parameters
    ----------
    file
        A file on a disk that all workers share; it is made if it is not there, and may be used by many queries and
        predicates. By default each worker remembers answers for itself.
    size
        How many answers are remembered; the oldest are forgotten. By default 100,000 a worker, 10,000,000 a file.
    age
        The seconds after which an answer is asked for again; by default never.

    Examples
    --------
    >>> cache(size=1000, age=3600)
    CacheSpec(file=None, size=1000, age=3600)
    """
    if file is not None and (
        not isinstance(file, str | os.PathLike)  # type: ignore[redundant-expr]  # users' programs have other types
        or not str(file)
        or "://" in str(file)
    ):
        raise ValueError(f"file= is the path of a file on a disk that all workers share, not {file!r}")
    if size is not None and (type(size) is not int or size < 1):
        raise ValueError(f"size= is a number of answers, 1 or more, not {size!r}")
    if age is not None and not (type(age) in {int, float} and age > 0):
        raise ValueError(f"age= is a number of seconds above 0, not {age!r}")
    usual = IN_A_WORKER if file is None else IN_A_FILE
    return CacheSpec(None if file is None else os.path.abspath(file), size or usual, age)  # noqa: PTH100 - a text


class Cache(Protocol):
    """Answers by the digests of rows."""

    def get(self, keys: Iterable[bytes]) -> dict[bytes, bool | None]:
        """The answers that are remembered."""
        ...

    def put(self, answers: Mapping[bytes, bool | None]) -> None:
        """Remember answers."""
        ...


class WorkerCache:
    """The answers that a process remembers.

    >>> answers = WorkerCache(CacheSpec(size=2), clock=lambda: 0.0)
    >>> answers.put({b"a": True, b"b": False, b"c": None})
    >>> answers.get([b"a", b"b", b"c"])
    {b'b': False, b'c': None}
    """

    def __init__(self, spec: CacheSpec, clock: Callable[[], float] = time.monotonic) -> None:
        self._spec = spec
        self._clock = clock
        self._answers: OrderedDict[bytes, tuple[bool | None, float]] = OrderedDict()  # the oldest first

    def get(self, keys: Iterable[bytes]) -> dict[bytes, bool | None]:
        """The answers that are remembered."""
        oldest = -float("inf") if self._spec.age is None else self._clock() - self._spec.age
        found = {key: self._answers[key] for key in keys if key in self._answers}
        return {key: answer for key, (answer, at) in found.items() if at >= oldest}

    def put(self, answers: Mapping[bytes, bool | None]) -> None:
        """Remember answers; the oldest make room."""
        now = self._clock()
        for key, answer in answers.items():
            self._answers.pop(key, None)
            self._answers[key] = answer, now
        while len(self._answers) > self._spec.size:
            self._answers.popitem(last=False)


class FileCache:
    """The answers that workers remember together, in an SQLite file."""

    def __init__(self, spec: CacheSpec, predicate: str, clock: Callable[[], float] = time.time) -> None:
        assert spec.file is not None  # noqa: S101 - by the caller
        self._file = spec.file
        self._spec = spec
        self._predicate = predicate  # its signature: a file may hold the answers of many predicates
        self._clock = clock
        self._untrimmed = 0  # answers that were put since the file was last trimmed
        try:
            self._create()
        except sqlite3.Error as error:
            raise ValueError(
                f"the cache {self._file} cannot be used ({error}): pass a file= that tw.cache has made, or a new file "
                f"in a folder in which workers may write"
            ) from None

    def _create(self) -> None:
        with closing(self._connect()) as file, file:
            file.execute("PRAGMA journal_mode = WAL")
            file.execute(
                "CREATE TABLE IF NOT EXISTS answers (predicate TEXT, row BLOB, keep INTEGER, at REAL, "
                "PRIMARY KEY (predicate, row)) WITHOUT ROWID"
            )
            file.execute("CREATE INDEX IF NOT EXISTS by_age ON answers (at)")

    def get(self, keys: Iterable[bytes]) -> dict[bytes, bool | None]:
        """The answers that are remembered."""
        oldest = -1e300 if self._spec.age is None else self._clock() - self._spec.age
        wanted, found = list(keys), dict[bytes, bool | None]()
        with closing(self._connect()) as file:
            for start in range(0, len(wanted), ANSWERS_AT_ONCE):
                some = wanted[start : start + ANSWERS_AT_ONCE]
                marks = ", ".join("?" * len(some))
                rows = file.execute(
                    f"SELECT row, keep FROM answers WHERE predicate = ? AND at >= ? AND row IN ({marks})",  # noqa: S608
                    [self._predicate, oldest, *some],
                )
                found |= {row: None if keep is None else bool(keep) for row, keep in rows}
        return found

    def put(self, answers: Mapping[bytes, bool | None]) -> None:
        """Remember answers; the oldest make room."""
        now = self._clock()
        rows: list[tuple[Any, ...]] = [(self._predicate, key, keep, now) for key, keep in answers.items()]
        with closing(self._connect()) as file, file:
            file.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)", rows)
            self._untrimmed += len(rows)
            if self._untrimmed > TRIM_SHARE * self._spec.size:
                self._trim(file)
                self._untrimmed = 0

    def _trim(self, file: sqlite3.Connection) -> None:
        """Forget the oldest answers; counting reads the whole file, so this is done seldom."""
        (count,) = file.execute("SELECT count(*) FROM answers").fetchone()
        if count > self._spec.size:
            oldest = "SELECT predicate, row FROM answers ORDER BY at LIMIT ?"
            file.execute(f"DELETE FROM answers WHERE (predicate, row) IN ({oldest})", [count - self._spec.size])  # noqa: S608

    def _connect(self) -> sqlite3.Connection:
        """A connection of its own for each use: a process that was forked must not use its parent's."""
        return sqlite3.connect(self._file, timeout=LOCK_SECONDS)


def cache_of(spec: CacheSpec, predicate: str) -> Cache:
    """The cache that a user asked for."""
    return WorkerCache(spec) if spec.file is None else FileCache(spec, predicate)
