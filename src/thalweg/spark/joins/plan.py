"""The plan of a join: everything that is decided before the first row is read, as one frozen value."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from thalweg.mjoin import JoinQuery, TimeWindow
from thalweg.mjoin.layouts import PLAIN, ActiveLayouts
from thalweg.mjoin.shares import choose_shares
from thalweg.registry import hint
from thalweg.sealed import short_digest
from thalweg.spark.joins.idle import IdleRule
from thalweg.spark.joins.late import LateRows
from thalweg.spark.joins.layout import Layout
from thalweg.spark.joins.spark_conditions import ResultFilter
from thalweg.spark.joins.splitting import Splitting
from thalweg.spark.joins.table_versions import VersionFiles
from thalweg.spark.start import LOCAL_SOCKETS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_CELLS = 1 << 12  # each is a key of the stateful operator, with a state of its own
MOST_COPIED_BYTES = 4 << 20  # of all tables together: where keys may be split, each cell has them whole
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


@dataclass(frozen=True)
class JoinPlan:
    """How a `tw.join` runs."""

    key: str  # of this run of the join
    layout: Layout  # the query, and which rows go to which cells
    folder: str  # of the workers' reports and their knowledge
    options: Mapping[str, Any] = field(default_factory=dict)  # of cells: planner, policy, drift
    rates: Mapping[str, float] = field(default_factory=dict)  # rows of each input, relative to the others
    result_filters: tuple[ResultFilter, ...] = ()  # conditions that Spark tests on the results of cells
    tables: tuple[str, ...] = ()  # inputs without rows that come with each micro-batch
    versions: Mapping[str, VersionFiles] = field(default_factory=dict)  # of tables that may change
    late: LateRows | None = None  # where late rows are kept
    is_streaming: bool = True
    idle_rule: IdleRule | None = None  # None where a stream that sends nothing holds the watermark for ever
    splitting: Splitting | None = None  # None where frequent keys are not split while the query runs
    layouts: ActiveLayouts = PLAIN  # of a batch job, where frequent keys are split from the beginning
    notes: tuple[str, ...] = ()  # on settings that would make the query faster

    @property
    def query(self) -> JoinQuery:
        """The query that the plan runs."""
        return self.layout.query

    @property
    def workers(self) -> str:
        """The name of its worker processes: the same when the join is started again with the same folder (0179)."""
        return short_digest([self.layout.text(), self.folder])


def check_spark(spark: SparkSession) -> None:
    """Refuse a session in which a stateful operator in Python cannot run."""
    provider = spark.conf.get(PROVIDER, None)
    if "RocksDB" not in (provider or ""):
        given = f"{PROVIDER} is {provider}" if provider else "this session has Spark's default state store"
        raise ValueError(
            f"tw.join keeps its state in RocksDB, and {given}: write tw.configure(spark) before the query starts, or "
            f"spark.conf.set('{PROVIDER}', '{ROCKS}')"
        )
    if (
        find_spec("google") is None or find_spec("google.protobuf") is None
    ):  # Spark needs it, and says so only in a worker
        raise ValueError("stateful operators in Python need protobuf: pip install 'pyspark[connect]'")


def check_rates(query: JoinQuery, rates: Mapping[str, float] | None, tables: Sequence[str]) -> dict[str, float]:
    """How many rows of each input there are, relative to the others; none of tables, which are not sent."""
    rates = rates or {}
    for name, rate in rates.items():
        if name not in query.names:
            raise ValueError(f"rates names {name!r}, which is not in the join{hint(name, query.names)}")
        if not rate > 0:
            raise ValueError(f"the rate of {name} is a number above 0, not {rate}")
    return {name: 0.0 if name in tables else float(rates.get(name, 1.0)) for name in query.names}


def choose_layout(
    query: JoinQuery,
    conditions: Sequence[str],
    rates: Mapping[str, float],
    cells: int | None,
    spark: SparkSession,
    watermark_shift: int = 0,
) -> Layout:
    """The grid of cells that copies the fewest rows."""
    number = _default_cells(spark) if cells is None else cells
    if type(number) is not int or not 1 <= number <= MOST_CELLS:
        raise ValueError(
            f"cells is a whole number from 1 to {MOST_CELLS}, not {cells!r}; leave it out for two cells a core"
        )
    placed_by = {name: frozenset(classes) for name, classes in query.key_columns.items()}
    return Layout(query, choose_shares(placed_by, rates, number, query.preserved), tuple(conditions), watermark_shift)


def choose_splitting(
    layout: Layout,
    table_bytes: Sequence[int],
    *,
    key: str,
    folder: str,
    is_streaming: bool,
    is_shared: bool,
) -> tuple[Splitting | None, tuple[str, ...]]:
    """How tasks learn which keys are split; None where keys cannot be, with a note if the user can change that."""
    # Rows of an old layout must expire, and the rows that a window counts must be together.
    lasts = any(source.time and not isinstance(source.window, TimeWindow) for source in layout.query.inputs)
    if not is_streaming or layout.shares.cells == 1 or lasts:
        return None, ()
    if layout.query.kind != "inner":  # a preserved row is decided in one cell
        return None, (f"frequent keys are not split in an {layout.query.kind} join",)
    if not is_shared:
        return None, ("keys that are much more frequent than others are split if state= names a shared folder",)
    if sum(table_bytes) > MOST_COPIED_BYTES:
        return None, (f"frequent keys are not split, as tables are larger than {MOST_COPIED_BYTES >> 20} MB",)
    name = short_digest([layout.text(), *map(str, layout.query.select)])
    return Splitting(folder, name, key, layout.shares, has_tables=bool(table_bytes)), ()


def suggest_settings(spark: SparkSession, cells: int, *, is_streaming: bool) -> tuple[str, ...]:
    """Notes on settings of Spark that would make a streaming query faster."""
    if not is_streaming:
        return ()
    notes = []
    if spark.conf.get(CHANGELOG, "false") != "true":
        notes.append(f"{CHANGELOG} = true makes micro-batches shorter")
    if sys.platform == "linux" and (spark.conf.get(LOCAL_SOCKETS, None) or "false") != "true":
        notes.append(f"{LOCAL_SOCKETS} = true, given when Spark starts, makes small micro-batches shorter")
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or cells)
    if partitions > cells:
        notes.append(f"{partitions} shuffle partitions for {cells} cells: set spark.sql.shuffle.partitions to {cells}")
    return tuple(notes)


def is_local(spark: SparkSession) -> bool:
    """Whether workers are on the machine of the driver."""
    try:
        return str(spark.sparkContext.master).startswith("local")
    except Exception:  # noqa: BLE001 - Connect knows no contexts
        return False


def _default_cells(spark: SparkSession) -> int:
    """As many cells as there are shuffle partitions, at most two a core."""
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    try:
        return min(partitions, 2 * spark.sparkContext.defaultParallelism)
    except Exception:  # noqa: BLE001 - Connect knows no contexts
        return partitions
