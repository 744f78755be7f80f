"""An adaptive optimizer for continuous queries on Apache Spark.

``import thalweg as tw``, then ``tw.where(df, ...)`` instead of ``df.where(...)``.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from thalweg.spark.explain import Explanation, explain
    from thalweg.spark.join import join
    from thalweg.spark.judges import PredicateError
    from thalweg.spark.metrics import Metrics
    from thalweg.spark.predicates import Predicate, any_of, expr, lookup, not_, predicate, prefix_match, regex
    from thalweg.spark.stream import stream
    from thalweg.spark.where import condition, reset, where

_HOMES = {  # where each name lives; imported when it is first used, so that the optimizer alone needs no Spark
    "Explanation": "thalweg.spark.explain",
    "explain": "thalweg.spark.explain",
    "join": "thalweg.spark.join",
    "PredicateError": "thalweg.spark.judges",
    "Metrics": "thalweg.spark.metrics",
    "Predicate": "thalweg.spark.predicates",
    "any_of": "thalweg.spark.predicates",
    "expr": "thalweg.spark.predicates",
    "lookup": "thalweg.spark.predicates",
    "not_": "thalweg.spark.predicates",
    "predicate": "thalweg.spark.predicates",
    "prefix_match": "thalweg.spark.predicates",
    "regex": "thalweg.spark.predicates",
    "stream": "thalweg.spark.stream",
    "condition": "thalweg.spark.where",
    "reset": "thalweg.spark.where",
    "where": "thalweg.spark.where",
}

__all__ = [
    "Explanation",
    "Metrics",
    "Predicate",
    "PredicateError",
    "any_of",
    "condition",
    "explain",
    "expr",
    "join",
    "lookup",
    "not_",
    "predicate",
    "prefix_match",
    "regex",
    "reset",
    "stream",
    "where",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    if name not in _HOMES:
        raise AttributeError(f"module 'thalweg' has no attribute {name!r}; it has {', '.join(__all__)}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
