"""Facts about a DataFrame that never change, asked of Spark once for each DataFrame."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, TypeVar
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
def is_streaming(frame: DataFrame) -> bool:
    """Whether a DataFrame reads a stream."""
    return frame.isStreaming
