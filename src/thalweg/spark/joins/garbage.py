"""Keeps the garbage collector of a worker process from walking through all modules after each task.

PySpark collects garbage after every task of a worker. With Arrow, pandas and Thalweg loaded, that walks through some
hundred thousand objects that live as long as the process, and the next task of the process waits for it: in a
micro-batch of few rows, that is longer than the join. (Decision 0142)
"""

from __future__ import annotations

import gc


def exclude_modules() -> None:
    """Exclude the objects that a worker process has when its first cell is to be made from all collections.

    An excluded object is freed only when nothing refers to it. Cells refer to themselves, so they must not be among
    them.
    """
    from pyspark import TaskContext

    if TaskContext.get() is not None and not gc.get_freeze_count():
        gc.collect()  # objects that are garbage now would never be collected
        gc.freeze()
