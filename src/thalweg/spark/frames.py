"""Facts about a DataFrame that never change, asked of Spark once for each DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

Fact = TypeVar("Fact")


def once_a_frame(ask: Callable[[DataFrame], Fact]) -> Callable[[DataFrame], Fact]:
    """Remember a function's answers as long as the DataFrame itself lives: its plan never changes."""
    known: WeakKeyDictionary[DataFrame, Fact] = WeakKeyDictionary()

    @wraps(ask)
    def asked(frame: DataFrame) -> Fact:
        if frame not in known:
            known[frame] = ask(frame)
        return known[frame]

    return asked


@once_a_frame
def schema_of(frame: DataFrame) -> StructType:
    """The columns of a DataFrame and their types."""
    return frame.schema


@once_a_frame
def plan_of(frame: Any) -> Any:  # noqa: ANN401 - a classic DataFrame, a logical plan of the JVM
    """The analysed plan of a DataFrame of a classic session."""
    return frame._jdf.logicalPlan()  # noqa: SLF001 - no public way


@once_a_frame
def is_streaming(frame: DataFrame) -> bool:
    """Whether a DataFrame reads a stream."""
    return frame.isStreaming


class Answers:
    """Answers to questions about a DataFrame, or about conditions on it, each of which is found once."""

    def __init__(self) -> None:
        self._answers: dict[Hashable, Any] = {}

    def once(self, question: Hashable, answer: Callable[[], Fact]) -> Fact:
        """The answer to a question, which is found the first time."""
        if question not in self._answers:
            self._answers[question] = answer()
        found: Fact = self._answers[question]
        return found


@once_a_frame
def answers_about(_frame: DataFrame) -> Answers:
    """The answers to questions about a DataFrame."""
    return Answers()
