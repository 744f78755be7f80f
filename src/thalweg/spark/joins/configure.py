"""`tw.configure`: sets what `tw.join` needs of a Spark session, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from thalweg.keywords import checks_keywords
from thalweg.spark.checkpoint_files import BY_FILE_SYSTEM, SETTING, may_rename_by_file_system
from thalweg.spark.joins.plan import CHANGELOG, PROVIDER, ROCKS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@checks_keywords("tw.configure")
def configure(spark: SparkSession) -> dict[str, str]:
    """Set what streaming queries with `tw.join` need: a state store in RocksDB, which writes its changes only.

    Where paths are local by default, files of checkpoints are also renamed by Hadoop's `FileSystem`, which starts no
    processes; Spark's default starts eight for each file. With Spark Connect this setting is left as it is.

    Settings that are as needed already stay, and so does what you have chosen. They hold for the queries that this
    session starts from now on; a query keeps the state store that is in its checkpoint.

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
    if hasattr(spark, "_jsparkSession") and may_rename_by_file_system(spark):
        changed[SETTING] = BY_FILE_SYSTEM
    for name, value in changed.items():
        spark.conf.set(name, value)
    return changed
