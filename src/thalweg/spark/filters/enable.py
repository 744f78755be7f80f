"""`tw.enable` and `tw.disable`: plain `df.where` and `spark.sql` of a session give adaptive filters.

Spark has no hook for this in Python, so the methods of PySpark's classes are replaced while a session is enabled, and
put back with the last. Calls that come from Thalweg itself are passed through.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any

from thalweg.keywords import checks_keywords
from thalweg.spark.filters.adapt import adapt
from thalweg.spark.filters.predicates.base import is_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FRAME_METHODS = ("where", "filter", "__getitem__")  # df[condition] is a filter, too
ORIGINAL = "_thalweg_original"  # the attribute of an adapted DataFrame with the DataFrame as it was written

_lock = threading.Lock()
_sessions: weakref.WeakSet[SparkSession] = weakref.WeakSet()
_replaced: list[tuple[type, str, Any]] = []  # classes, names of methods, and the methods as they were


@checks_keywords("tw.enable")
def enable(spark: SparkSession) -> None:
    """Make ``df.where``, ``df.filter``, ``df[condition]`` and ``spark.sql`` of a session adaptive, as `tw.adapt` does.

    No line of the program changes. `tw.disable` ends it; DataFrames that were made in between stay adaptive. With Spark
    Connect filters in the text of ``spark.sql`` stay as they are.

    Examples
    --------
    >>> enable(spark)  # doctest: +SKIP
    """
    from pyspark.sql.session import SparkSession as ClassicSession

    _check_session(spark, "tw.enable")
    is_classic = hasattr(spark, "_jsparkSession")
    frame = import_module(f"pyspark.sql.{'classic' if is_classic else 'connect'}.dataframe").DataFrame
    with _lock:
        _sessions.add(spark)
        if not any(kind is frame for kind, _, _ in _replaced):
            for name in FRAME_METHODS:
                _replace(frame, name, _filtering)
            if is_classic:
                _replace(ClassicSession, "sql", _querying)


@checks_keywords("tw.disable")
def disable(spark: SparkSession) -> None:
    """Let `df.where`, `df.filter` and `spark.sql` of a session be Spark's own again.

    Examples
    --------
    >>> disable(spark)  # doctest: +SKIP
    """
    _check_session(spark, "tw.disable")
    with _lock:
        _sessions.discard(spark)
        while not _sessions and _replaced:
            kind, name, method = _replaced.pop()
            setattr(kind, name, method)


def _check_session(spark: object, entry: str) -> None:
    if not hasattr(type(spark), "readStream"):
        raise TypeError(f"{entry} takes a Spark session, {entry}(spark), not {spark!r}")


def _replace(kind: type, name: str, wrap: Callable[[Any], Any]) -> None:
    method = getattr(kind, name)
    _replaced.append((kind, name, method))
    setattr(kind, name, wrap(method))


def _filtering(method: Any) -> Any:  # noqa: ANN401 - a method of a DataFrame
    @wraps(method)
    def filtered(frame: DataFrame, condition: Any) -> DataFrame:  # noqa: ANN401 - as PySpark has it
        is_filter = method.__name__ != "__getitem__" or is_column(condition)
        if not is_filter or not _is_meant(frame.sparkSession):
            return method(frame, condition)  # type: ignore[no-any-return]
        # A filter on a filter: both are adapted together, from the DataFrame as it was written.
        return _adapted(method(vars(frame).get(ORIGINAL, frame), condition))

    return filtered


def _querying(method: Any) -> Any:  # noqa: ANN401 - a method of a session
    @wraps(method)
    def queried(spark: SparkSession, *args: Any, **kwargs: Any) -> DataFrame:  # noqa: ANN401 - as PySpark has it
        found: DataFrame = method(spark, *args, **kwargs)
        return _adapted(found) if _is_meant(spark) else found

    return queried


def _is_meant(spark: SparkSession) -> bool:
    """Whether a call comes from the user's program, in a session that is enabled."""
    caller = sys._getframe(2).f_globals.get("__name__", "")  # noqa: SLF001 - the documented way to know a caller
    return spark in _sessions and not caller.startswith(("thalweg.", "pyspark."))


def _adapted(written: DataFrame) -> DataFrame:
    adapted = adapt(written)
    if adapted is not written:
        setattr(adapted, ORIGINAL, written)
    return adapted
