"""How a predicate that waits is asked, as the user says it."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from thalweg.spark.filters.worker.waiting.cache import CacheSpec, cache

OUTAGE = 30.0  # seconds that rows wait for a service that is down, if nothing else is said


@dataclass(frozen=True)
class Waiting:
    """How a predicate that waits is asked."""

    concurrency: int = 32  # calls of a worker that are under way at once
    batch: int | None = None  # most rows of a call, to a function that takes a list of each column; None: a row a call
    timeout: float | None = None  # seconds of an attempt
    retries: int = 0  # attempts after the first
    deadline: float | None = None  # seconds of a row, from the begin of its first attempt to the end of its last
    outage: float = OUTAGE  # seconds that rows wait for a service that is down
    rate: float | None = None  # calls a second, of all workers together
    cache: CacheSpec | None = None  # None: answers are remembered within a batch
    budget: float | None = None  # of all workers together, in the unit of the costs that are told, else in calls

    def __post_init__(self) -> None:
        if type(self.concurrency) is not int or self.concurrency < 1:
            raise ValueError(f"concurrency= is a number of calls, 1 or more, not {self.concurrency!r}")
        if self.batch is not None and (type(self.batch) is not int or self.batch < 1):
            raise ValueError(f"batch= is a number of rows, 1 or more, not {self.batch!r}")
        if type(self.retries) is not int or self.retries < 0:
            raise ValueError(f"retries= is how often to ask again, 0 or more, not {self.retries!r}")
        for option, unit in (("timeout", "seconds"), ("deadline", "seconds"), ("rate", "calls a second")):
            value = getattr(self, option)
            if value is not None and not (_is_number(value) and value > 0):
                raise ValueError(f"{option}= is a number of {unit} above 0, not {value!r}")
        if not (_is_number(self.outage) and self.outage >= 0):
            raise ValueError(f"outage= is a number of seconds, 0 or more, not {self.outage!r}")
        if self.budget is not None and not (_is_number(self.budget) and self.budget >= 0):
            raise ValueError(f"budget= is a number, 0 or more, such as budget=1_000_000, not {self.budget!r}")

    @property
    def rows_at_once(self) -> int:
        """For how many rows a worker asks at once."""
        return self.concurrency * (self.batch or 1)


def _is_number(value: object) -> bool:
    return type(value) in {int, float} and abs(value) <= sys.float_info.max  # type: ignore[arg-type]


def cache_spec(written: object) -> CacheSpec | None:
    """The cache that a user wrote, checked; None for a cache within a batch.

    >>> cache_spec("batch") is None, cache_spec("worker")
    (True, CacheSpec(file=None, size=100000, age=None))
    """
    if written == "batch":
        return None
    if written == "worker":
        return cache()
    if isinstance(written, CacheSpec):
        return written
    raise ValueError(f"cache= is 'batch', 'worker' or tw.cache(file=..., size=..., age=...), not {written!r}")
