"""PySpark's daemon with the libraries imported that every worker of the tests needs: a forked worker has them at once.

PySpark's own daemon imports nothing, and each of the many workers of the tests would spend a second on imports.
"""

import pandas as pd  # noqa: F401 - imported for the workers that are forked
import pyarrow.compute  # noqa: F401 - as above
import pyspark.worker  # noqa: F401 - as above
from pyspark.daemon import manager

import thalweg.spark.filters.worker.filter_pass
import thalweg.spark.joins.operator  # noqa: F401 - as above

if __name__ == "__main__":
    manager()
