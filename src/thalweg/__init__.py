"""An adaptive optimizer for continuous queries on Apache Spark.

This module is the public API and nothing else. It stays cheap to import: pyspark, Numba and matplotlib are
loaded by the parts that use them.
"""

__version__ = "0.1.0"
