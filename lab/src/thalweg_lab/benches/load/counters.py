"""What Spark counts of its tasks, and the time that a task takes the driver."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEW_TASKS, MANY_TASKS, JOBS = 2, 200, 3


@dataclass(frozen=True)
class Counters:
    """Tasks, and the bytes that they wrote for a shuffle."""

    tasks: int
    shuffled: int

    @classmethod
    def of(cls, spark: SparkSession) -> Counters:
        """Of all executors so far."""
        executors = spark.sparkContext._jsc.sc().statusStore().executorList(False)  # noqa: SLF001, FBT003 - of the JVM
        found = [executors.apply(place) for place in range(executors.size())]
        return cls(
            sum(executor.totalTasks() for executor in found), sum(executor.totalShuffleWrite() for executor in found)
        )

    def since(self, before: Counters) -> Counters:
        """What came after an earlier moment."""
        return Counters(self.tasks - before.tasks, self.shuffled - before.shuffled)


def task_seconds(spark: SparkSession) -> float:
    """The time that each further task of a job takes, of tasks that do nothing."""
    times: dict[int, float] = {}
    for tasks in (FEW_TASKS, MANY_TASKS):
        taken = []
        for _ in range(JOBS + 1):
            begin = time.perf_counter()
            spark.range(0, tasks, 1, tasks).write.format("noop").mode("overwrite").save()
            taken.append(time.perf_counter() - begin)
        times[tasks] = median(taken[1:])
    return max(times[MANY_TASKS] - times[FEW_TASKS], 0.0) / (MANY_TASKS - FEW_TASKS)
