"""Keeps the garbage collector of a worker process from walking through all modules after each task.

PySpark collects garbage after every task of a worker. With Arrow, pandas and Thalweg loaded, that walks through some
hundred thousand objects that live as long as the process, and the next task of the process waits for it: in a
micro-batch of few rows, that is longer than the join. (Decision 0142)
"""

from __future__ import annotations

import gc
from typing import Literal

Work = Literal["packs rows", "joins"]

_excluded: set[Work] = set()  # the work of this process whose modules are excluded


def exclude_modules(work: Work) -> None:
    """Exclude the objects that a worker process has when its first task of a kind begins from all collections.

    An excluded object is freed only when nothing refers to it. Cells refer to themselves, so they must not be among
    them: a process that joins already excludes nothing more.
    """
    from pyspark import TaskContext

    if TaskContext.get() is not None and not _excluded & {work, "joins"}:
        gc.collect()  # objects that are garbage now would never be collected
        gc.freeze()
        _excluded.add(work)
