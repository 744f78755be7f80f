"""The values that the driver sends to a worker about a query; no work is done here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from thalweg.drift import Detector, Watched
from thalweg.ordering import Policy
from thalweg.spark.filters.worker.quarantine import QuarantineSpec

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

    from thalweg.spark.filters.worker.judges import Judge


class Answer(Enum):
    """The kind of answer that a pass over the rows gives for each row."""

    KEEP = "boolean"  # whether the row is kept; a row that fails is settled at once
    KEEP_OR_REASON = "string"  # NULL if it is rejected, nothing if it is kept, or why it failed: settled later
    TRUTH = "three-valued"  # true, false or NULL, as SQL has it for a conjunction

    @property
    def spark_type(self) -> DataType:
        """The type of the answers in Spark."""
        from pyspark.sql.types import BooleanType, StringType

        return StringType() if self is Answer.KEEP_OR_REASON else BooleanType()


@dataclass(frozen=True)
class PolicySpec:
    """How a worker makes the policy of a query."""

    kind: type[Policy]
    filters: int
    options: Mapping[str, Any] = field(default_factory=dict)  # of the policy; costs are the hints, if there are any
    detector: Detector | None = None  # a detector that has seen nothing yet

    def make(self, order: Sequence[int] | None = None) -> Policy:
        """A policy that has learnt nothing yet; it begins with this order if an order is given."""
        policy = self.kind(self.filters, **{**self.options, **({"order": order} if order else {})})
        return policy if self.detector is None else Watched(policy, deepcopy(self.detector))


@dataclass(frozen=True)
class PassSpec:
    """All that a worker needs to know of the Python predicates of a query; the driver sends it with every task."""

    key: str  # of the run and of the stage in it
    signature: str  # of the predicates, by their content: reports with the same signature are taken over
    judges: Callable[[], Sequence[Judge]]  # makes them
    columns: tuple[str, ...]  # the names of the columns that come; codes of conditions may follow them
    policy: PolicySpec
    folder: str  # where workers share their reports
    names: tuple[str, ...]  # of the predicates, as written
    numbers: tuple[int, ...]  # and their numbers in the whole query
    on_error: str = "raise"
    quarantine: QuarantineSpec | None = None
    answer: Answer = Answer.KEEP
    attributes: Mapping[str, int] = field(default_factory=dict)  # columns that may tell classes apart, by their place
