"""The workload of all scenarios: two services and three local predicates, written worst first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from thalweg_lab.benches.filters.work import Test, bytes_of, tests_of
from thalweg_lab.benches.waiting.client import ask
from thalweg_lab.benches.waiting.outcomes import share_of
from thalweg_lab.benches.waiting.service import Behaviour

if TYPE_CHECKING:
    from thalweg.spark.filters.predicates import Predicate

FAST = Behaviour(keeps=0.2, seconds=0.05, tokens=300)
SLOW = Behaviour(keeps=0.6, seconds=0.2, tokens=20)
SERVICES = {"slow": SLOW, "fast": FAST}  # as written: worst first
LOCAL_SECONDS = (200e-6, 50e-6, 5e-6)
LOCAL_KEEPS = (0.5, 0.6, 0.4)
CONCURRENCY = 32  # calls of a service under way in a worker
PARTITIONS = 2


def local_tests() -> list[Test]:
    """The local predicates, dearest first."""
    return tests_of([seconds * 1e6 for seconds in LOCAL_SECONDS], LOCAL_KEEPS, bytes_of(1e-6))


def predicates_of(port: int, tests: Sequence[Test], **options: Any) -> list[Predicate]:  # noqa: ANN401 - of tw.predicate
    """All predicates as users of Thalweg write them, worst first; options are of those that wait."""
    from thalweg_lab.benches.filters.work import predicates_of as local_predicates

    waiting = [_asking(port, name, {"concurrency": CONCURRENCY, **options}) for name in SERVICES]
    return [*waiting, *local_predicates(tests)]


def _asking(port: int, name: str, options: dict[str, Any]) -> Predicate:
    import thalweg as tw

    tells = options.pop("tells", False)

    async def is_kept(id: int) -> bool | tw.Judged:  # noqa: A002 - the column's name
        found = await ask(port, name, id)
        return tw.judged(found["keep"], cost=found["tokens"]) if tells else bool(found["keep"])

    return tw.predicate(is_kept, name=name, **options)


def kept_locally(rows: int, tests: Sequence[Test]) -> list[int]:
    """The rows that all local predicates keep."""
    numbers = np.arange(rows)
    free = [replace(test, load=0) for test in tests]
    return numbers[np.logical_and.reduce([test(numbers) for test in free])].tolist()  # type: ignore[no-any-return]


def kept_by(name: str, rows: Sequence[int]) -> list[int]:
    """The rows that a service keeps."""
    return [row for row in rows if share_of(name, row) < SERVICES[name].keeps]
