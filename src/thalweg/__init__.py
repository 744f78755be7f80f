"""An adaptive optimizer for continuous queries on Apache Spark.

``import thalweg as tw``, then ``tw.where(df, ...)`` instead of ``df.where(...)``.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from thalweg.dashboard.start import dashboard
    from thalweg.spark.explain import Explanation, explain
    from thalweg.spark.filters.adapt import adapt
    from thalweg.spark.filters.enable import disable, enable
    from thalweg.spark.filters.predicates import (
        Predicate,
        any_of,
        cascade,
        expr,
        lookup,
        not_,
        predicate,
        prefix_match,
        regex,
    )
    from thalweg.spark.filters.stream import stream
    from thalweg.spark.filters.where import condition, reset, where
    from thalweg.spark.filters.worker.judges import PredicateError
    from thalweg.spark.filters.worker.waiting.cache import cache
    from thalweg.spark.filters.worker.waiting.judged import Judged, judged
    from thalweg.spark.joins.configure import configure
    from thalweg.spark.joins.join import join
    from thalweg.spark.joins.table import table
    from thalweg.spark.metrics import Metrics
    from thalweg.spark.session.session import Session

_HOMES = {  # where each name lives; imported when it is first used, so that the optimizer alone needs no Spark
    "dashboard": "thalweg.dashboard.start",
    "Explanation": "thalweg.spark.explain",
    "explain": "thalweg.spark.explain",
    "configure": "thalweg.spark.joins.configure",
    "join": "thalweg.spark.joins.join",
    "table": "thalweg.spark.joins.table",
    "PredicateError": "thalweg.spark.filters.worker.judges",
    "Metrics": "thalweg.spark.metrics",
    "Predicate": "thalweg.spark.filters.predicates",
    "Session": "thalweg.spark.session.session",
    "adapt": "thalweg.spark.filters.adapt",
    "any_of": "thalweg.spark.filters.predicates",
    "cascade": "thalweg.spark.filters.predicates",
    "disable": "thalweg.spark.filters.enable",
    "enable": "thalweg.spark.filters.enable",
    "expr": "thalweg.spark.filters.predicates",
    "lookup": "thalweg.spark.filters.predicates",
    "not_": "thalweg.spark.filters.predicates",
    "predicate": "thalweg.spark.filters.predicates",
    "prefix_match": "thalweg.spark.filters.predicates",
    "regex": "thalweg.spark.filters.predicates",
    "stream": "thalweg.spark.filters.stream",
    "cache": "thalweg.spark.filters.worker.waiting.cache",
    "Judged": "thalweg.spark.filters.worker.waiting.judged",
    "judged": "thalweg.spark.filters.worker.waiting.judged",
    "condition": "thalweg.spark.filters.where",
    "reset": "thalweg.spark.filters.where",
    "where": "thalweg.spark.filters.where",
}

__all__ = [
    "Explanation",
    "Judged",
    "Metrics",
    "Predicate",
    "PredicateError",
    "Session",
    "adapt",
    "any_of",
    "cache",
    "cascade",
    "condition",
    "configure",
    "dashboard",
    "disable",
    "enable",
    "explain",
    "expr",
    "join",
    "judged",
    "lookup",
    "not_",
    "predicate",
    "prefix_match",
    "regex",
    "reset",
    "stream",
    "table",
    "where",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any object of the public API
    if name not in _HOMES:
        raise AttributeError(f"module 'thalweg' has no attribute {name!r}; it has {', '.join(__all__)}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
