"""`tw.configure`: sets what `tw.join` needs of a Spark session, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thalweg.keywords import checks_keywords
from thalweg.spark.joins.plan import CHANGELOG, PROVIDER, ROCKS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@checks_keywords("tw.configure")
def configure(spark: SparkSession) -> dict[str, str]:
    """Set what streaming queries with `tw.join` need: a state store in RocksDB, which writes its changes only.

    Settings that are as needed already stay. They hold for the queries that this session starts from now on; a query
    keeps the state store that is in its checkpoint. Works with Spark Connect as well.

    Returns
    -------
    dict
        The settings that were changed, and their values.

    Examples
    --------
    >>> configure(spark)  # doctest: +SKIP
    {'spark.sql.streaming.stateStore.providerClass': '...RocksDBStateStoreProvider', ...}
    """
    changed = {}
    if "RocksDB" not in (spark.conf.get(PROVIDER, None) or ""):
        changed[PROVIDER] = ROCKS
    if spark.conf.get(CHANGELOG, "false") != "true":
        changed[CHANGELOG] = "true"
    for name, value in changed.items():
        spark.conf.set(name, value)
    return changed
