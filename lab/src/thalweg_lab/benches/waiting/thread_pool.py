"""What users write without Thalweg: one pandas UDF that tests rows in a pool of threads, in the written order."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from thalweg_lab.benches.filters.work import Test
from thalweg_lab.benches.waiting.client import ask_in_thread
from thalweg_lab.benches.waiting.workload import SERVICES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def where(frame: DataFrame, port: int, tests: Sequence[Test], threads: int) -> DataFrame:
    """The rows that all predicates keep; a row stops at the first predicate that rejects it."""
    from pyspark.sql.pandas.functions import pandas_udf

    def is_kept(row: int) -> bool:
        if not all(ask_in_thread(port, name, row)["keep"] for name in SERVICES):
            return False
        return all(bool(test(np.array([row]))[0]) for test in tests)

    def are_kept(ids: pd.Series) -> pd.Series:
        with ThreadPoolExecutor(threads) as pool:
            return pd.Series(list(pool.map(is_kept, ids)), dtype=bool)

    return frame.where(pandas_udf(are_kept, "boolean")(frame["id"]))  # type: ignore[call-overload]
