"""The predicates of a query, as a user writes them: one kind a file.

A kind knows its columns, checks its types, and knows how it runs in Spark and in Python.
"""

from thalweg.spark.filters.predicates.base import Analysis, Predicate, as_predicate
from thalweg.spark.filters.predicates.cascade import CascadePredicate, cascade
from thalweg.spark.filters.predicates.compound import AllOfPredicate, AnyOfPredicate, NotPredicate, any_of, not_
from thalweg.spark.filters.predicates.expression import ExpressionPredicate, expr, regex
from thalweg.spark.filters.predicates.function import FunctionPredicate, predicate
from thalweg.spark.filters.predicates.lookup import LookupPredicate, lookup
from thalweg.spark.filters.predicates.prefix_match import PrefixPredicate, prefix_match
from thalweg.spark.filters.predicates.udf import UdfPredicate

__all__ = [
    "AllOfPredicate",
    "Analysis",
    "AnyOfPredicate",
    "CascadePredicate",
    "ExpressionPredicate",
    "FunctionPredicate",
    "LookupPredicate",
    "NotPredicate",
    "Predicate",
    "PrefixPredicate",
    "UdfPredicate",
    "any_of",
    "as_predicate",
    "cascade",
    "expr",
    "lookup",
    "not_",
    "predicate",
    "prefix_match",
    "regex",
]
