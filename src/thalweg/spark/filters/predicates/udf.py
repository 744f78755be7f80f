"""Predicates that are Python UDFs of Spark, found in the conditions that a user writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from thalweg.spark.filters.forms import PythonForm
from thalweg.spark.filters.predicates.base import Analysis, Predicate
from thalweg.spark.filters.predicates.digests import code_digest
from thalweg.spark.filters.predicates.function import check_pickles
from thalweg.spark.filters.worker.distinct_judge import distinct_judge
from thalweg.spark.filters.worker.udfs import UdfCall, udf_judge

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True, kw_only=True, eq=False)
class UdfPredicate(Predicate):
    """A UDF of columns, or of expressions that Spark computes for it, which may be compared with a constant.

    Its columns are not checked, unlike those of other predicates: Spark has analysed the condition already.
    """

    call: UdfCall
    function_digest: str  # the same for the same function with the same values around it, in this program
    arguments: tuple[str, ...]  # names of columns, or the SQL text of expressions
    expressions: Mapping[str, Column] = field(default_factory=dict, repr=False)  # by their text
    came_pickled: bool = False  # whether the function was read from what PySpark had pickled

    @property
    def computed(self) -> Mapping[str, Column]:  # noqa: D102 - as the base has it
        return self.expressions

    @property
    def details(self) -> tuple[object, ...]:  # noqa: D102
        return self.arguments, self.call.convention, code_digest(self.call.function), self.call.comparison

    def check_can_be_sent(self) -> None:
        """Refuse a function that cannot be pickled."""
        if not self.came_pickled:  # to pickle each for a trial would take longer than all else of taking it over
            check_pickles(self.name, self.call.function)

    def in_python(self, analysis: Analysis) -> PythonForm:  # noqa: D102
        make = partial(udf_judge, self.name, self.call)
        return PythonForm(self.arguments, (), partial(distinct_judge, make) if self.deterministic else make)
