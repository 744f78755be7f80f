"""`tw.join`: a window join of any number of streams and tables as one stateful operator, in probe orders that adapt.

Here what was asked for becomes a plan: each input is pruned, hashed and packed by cell, one shuffle brings the cells
together, and what they give is unpacked.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from thalweg.drift import DETECTORS
from thalweg.joinorder import PLANNERS
from thalweg.joinorder.text import classes
from thalweg.mjoin import CHANGE, Input, JoinQuery, Residual, TimeWindow
from thalweg.mjoin.pack import pack
from thalweg.mjoin.shares import choose_shares
from thalweg.ordering import POLICIES
from thalweg.registry import find, hint
from thalweg.spark.folder import StateFolder, scratch
from thalweg.spark.joins.batch import join_at_once
from thalweg.spark.joins.inputs import Side, arrow_type, casts_of, sides_of
from thalweg.spark.joins.packing import HASH, PACKED, PAYLOAD, Layout, packer, unpacker
from thalweg.spark.joins.residuals import CandidateTest
from thalweg.spark.joins.spec import JoinSpec
from thalweg.spark.joins.splitting import Splitting
from thalweg.spark.joins.text import Condition, microseconds, parse_on, parse_select

if TYPE_CHECKING:
    from datetime import timedelta

    from pyspark.sql import Column, DataFrame, SparkSession

Output = Literal["append", "changelog"]


DELAY = "1 minute"  # costs state, not speed: results do not wait for the watermark, unless windows are by count
MOST_TABLE_BYTES = 64 << 20  # of all tables together: they travel with the query to each task
MOST_COPIED_BYTES = 4 << 20  # of all tables together: where keys may be split, each cell has them whole
MOST_JOINS = 1000  # that the driver remembers for `tw.explain`
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
COUNT = "count"


@dataclass
class Join:
    """The driver's side of one `tw.join`: what was asked for, how it runs, and where to find what it learns."""

    key: str
    query: JoinQuery
    layout: Layout
    rates: Mapping[str, float]
    filters: tuple[tuple[str, str], ...]
    options: Mapping[str, Any]
    folder: StateFolder
    late: str | None
    streaming: bool
    tables: tuple[str, ...]  # inputs that travel with the query
    is_shared: bool  # whether workers see the folder
    notes: tuple[str, ...] = ()  # what could be better


def join(
    streams: Mapping[str, DataFrame],
    on: str,
    windows: str | timedelta | Mapping[str, str | timedelta | None],
    event_time: str | Mapping[str, str],
    *,
    delay: str | timedelta = DELAY,
    planner: str = "q-aware",
    policy: str = "a-greedy",
    drift: str = "bcs",
    output: Output = "append",
    select: Sequence[str] | None = None,
    cells: int | None = None,
    rates: Mapping[str, float] | None = None,
    late: str | os.PathLike[str] = COUNT,
    state: str | os.PathLike[str] | None = None,
) -> DataFrame:
    """Join windows of streams, and tables, all at once.

    A combination of rows is a result if the condition holds for it and, with T the latest event time in it, each row is
    younger than its stream's window at T. That depends on nothing else: not on batches, cells or the order of probing.

    Parameters
    ----------
    streams
        DataFrames by the names they have in `on`. In a streaming query a static one is a table, whose rows never
        expire; it is read now and travels with the query, so it may have 64 MB. If all are static, it is a batch job.
    on
        A conjunction: equalities of two columns, ``"R1.pid = R2.pid AND R2.ip = T.ip"``, must connect all inputs; other
        conditions on one input filter it, those on several are applied to candidates.
    windows
        How long rows stay: ``"10 minutes"`` for all streams, or for each by name; ``"100 rows"`` of the same key, where
        one key joins all; None for what never expires.
    event_time
        The column of event time, of all streams or of each by name.
    delay
        How late rows may come, for streams that have no ``withWatermark`` of their own.
    planner, policy, drift
        What chooses probe orders: a planner of `thalweg.joinorder`; a policy of `thalweg.ordering` and a detector of
        `thalweg.drift` for star joins.
    output
        ``"append"`` gives each result once, when it appears. ``"changelog"`` adds a column ``change``: 1 when a result
        appears and -1 when one of its rows leaves its window, so that its sum counts the current join.
    select
        The result's columns: ``["R1.size", "R2.size AS s2"]``. All by default; only what is needed is sent and kept.
        Without a name of its own ``R1.size`` is called ``R1_size``.
    cells
        Into how many parts the work is cut; by default as many as there are shuffle partitions, at most two a core. A
        restarted query keeps its number of cells.
    rates
        Rows a second of each stream, roughly; only their ratios matter, and only where no one key joins all.
    late
        ``"count"`` counts rows that come after the delay; a folder keeps them there as well, for each stream.
    state
        A folder, shared by driver and workers, where to keep what is learnt, so that the next run starts with it.

    Examples
    --------
    >>> joined = join({"a": clicks, "b": views}, "a.user = b.user", "10 minutes", "ts")  # doctest: +SKIP
    """
    sides = sides_of(streams, windows, event_time)
    columns = {one.name: one.frame.columns for one in sides}
    condition = parse_on(on, columns)
    selected = parse_select(select, columns)
    spark = sides[0].frame.sparkSession
    streaming = any(one.frame.isStreaming for one in sides)
    for chosen, registered, what in (
        (planner, PLANNERS, "planner"),
        (policy, POLICIES, "policy"),
        (drift, DETECTORS, "detector"),
    ):
        find(chosen, registered, what)
    if streaming:
        _check_spark(spark)
    casts = casts_of(sides, condition)
    query = _query(sides, condition, selected, casts, output)
    weights = _weights(query, rates, [one.name for one in sides if one.travels])
    number = _cells(spark) if cells is None else cells
    if number < 1:
        raise ValueError(f"cells is a number of 1 or more, not {cells}")
    placed_by = {name: frozenset(own) for name, own in query.key_columns.items()}
    layout = Layout(query, choose_shares(placed_by, weights, number))
    key = uuid.uuid4().hex[:12]
    made = Join(
        key=key,
        query=query,
        layout=layout,
        rates=weights,
        filters=condition.filters,
        options={"planner": planner, "policy": policy, "drift": drift},
        folder=StateFolder(os.path.join(scratch(), key) if state is None else state),  # noqa: PTH118 - may be a URL
        late=None if os.fspath(late) == COUNT else os.fspath(late),
        streaming=streaming,
        tables=tuple(one.name for one in sides if one.travels),
        is_shared=state is not None or _is_local(spark),
        notes=_notes(spark, number) if streaming else (),
    )
    _joins[key] = made
    while len(_joins) > MOST_JOINS:
        _joins.popitem(last=False)
    return _plan(made, sides, casts, delay)


def joins_by(keys: Sequence[str]) -> list[Join]:
    """Every `tw.join` that has one of these keys."""
    return [_joins[key] for key in keys if key in _joins]


_joins: OrderedDict[str, Join] = OrderedDict()


def _check_spark(spark: SparkSession) -> None:
    """What a stateful operator in Python needs."""
    provider = spark.conf.get(PROVIDER, "")
    if "RocksDB" not in (provider or ""):
        raise ValueError(
            f"tw.join keeps its state in RocksDB, and {PROVIDER} is {provider}: write "
            f"spark.conf.set('{PROVIDER}', '{ROCKS}') before the query starts"
        )
    if (
        find_spec("google") is None or find_spec("google.protobuf") is None
    ):  # Spark needs it, and says so only in a worker
        raise ValueError("stateful operators in Python need protobuf: pip install 'pyspark[connect]'")


def _notes(spark: SparkSession, cells: int) -> tuple[str, ...]:
    """What would make the query faster."""
    notes = []
    if spark.conf.get(CHANGELOG, "false") != "true":
        notes.append(f"{CHANGELOG} = true makes micro-batches shorter")
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or cells)
    if partitions > cells:
        notes.append(f"{partitions} shuffle partitions for {cells} cells: set spark.sql.shuffle.partitions to {cells}")
    return tuple(notes)


def _query(
    sides: Sequence[Side],
    condition: Condition,
    selected: tuple[tuple[str, str, str], ...],
    casts: Mapping[tuple[str, str], str],
    output: Output,
) -> JoinQuery:
    """The query, with just the columns that it needs."""
    equal = classes(condition.equalities)
    keys = {each for one in equal for each in one}
    needed = {(name, column) for name, column, _ in selected} | keys
    needed |= {each for _, attributes in condition.residuals for each in attributes}
    needed |= {(one.name, one.time) for one in sides if one.time}
    inputs, numbers = [], set[tuple[str, str]]()
    for side in sides:
        fields = []
        for column, kind in side.arrow_types.items():
            if (side.name, column) not in needed:
                continue
            one = (side.name, column)
            stored = arrow_type(casts[one]) if one in casts else kind
            if pa.types.is_timestamp(kind) and (column == side.time or one in keys):
                stored = pa.int64()
                numbers.add(one)
            fields.append(pa.field(column, stored))
        inputs.append(Input(side.name, pa.schema(fields), side.time, side.window))
    return JoinQuery(
        inputs=tuple(inputs),
        equalities=tuple(frozenset((each.stream, each.name) for each in one) for one in equal),
        residuals=tuple(
            Residual(
                tuple(dict.fromkeys(each.stream for each in attributes)),
                tuple(map(tuple, attributes)),  # type: ignore[arg-type] # pairs
                CandidateTest(text, tuple(map(tuple, attributes)), frozenset(numbers)),  # type: ignore[arg-type] # pairs
            )
            for text, attributes in condition.residuals
        ),
        select=selected,
        output=output,
    )


def _weights(query: JoinQuery, rates: Mapping[str, float] | None, tables: Sequence[str]) -> dict[str, float]:
    """How many rows of each input there are, relative to the others; none of tables, which are not sent."""
    for name, rate in (rates or {}).items():
        if name not in query.names:
            raise ValueError(f"rates names {name!r}, which is not in the join{hint(name, query.names)}")
        if not rate > 0:
            raise ValueError(f"the rate of {name} is a number above 0, not {rate}")
    return {name: 0.0 if name in tables else float((rates or {}).get(name, 1.0)) for name in query.names}


def _cells(spark: SparkSession) -> int:
    """As many as there are shuffle partitions, at most two a core."""
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    try:
        return min(partitions, 2 * spark.sparkContext.defaultParallelism)
    except Exception:  # noqa: BLE001 - Connect knows no contexts
        return partitions


def _is_local(spark: SparkSession) -> bool:
    """Whether workers are on the machine of the driver."""
    try:
        return str(spark.sparkContext.master).startswith("local")
    except Exception:  # noqa: BLE001 - Connect knows no contexts
        return False


def _splitting(made: Join, tables: Mapping[str, bytes]) -> Splitting | None:
    """How tasks learn which keys are split; None where they cannot be, and a note if the user can change that."""
    lasting = any(one.time and not isinstance(one.window, TimeWindow) for one in made.query.inputs)
    if made.layout.shares.cells == 1 or lasting:  # rows of the old layout must expire, and those of a count be together
        return None
    if not made.is_shared:
        made.notes += ("keys that are much more frequent than others are split if state= names a shared folder",)
        return None
    if sum(map(len, tables.values())) > MOST_COPIED_BYTES:
        made.notes += (f"frequent keys are not split, as tables are larger than {MOST_COPIED_BYTES >> 20} MB",)
        return None
    about = [made.layout.text(), *map(str, made.filters), *map(str, made.query.select)]
    name = hashlib.sha256("\n".join(about).encode()).hexdigest()[:12]
    return Splitting(made.folder.url, name, made.key, made.layout.shares, whole_tables=bool(tables))


def _plan(made: Join, sides: Sequence[Side], casts: Mapping[tuple[str, str], str], delay: str | timedelta) -> DataFrame:
    """The DataFrame of the result."""
    from thalweg.spark.joins.operator import JoinProcessor

    frames = {one.name: _prepared(made, one, casts, delay) for one in sides}
    tables = _packed_tables({name: frames[name] for name in made.tables})
    splitting = _splitting(made, tables) if made.streaming else None
    spec = JoinSpec(
        key=made.key,
        layout=made.layout,
        options=made.options,
        folder=made.folder.url,
        late=made.late,
        tables=tables,
        splitting=splitting,
    )
    packed = reduce(
        lambda one, other: one.union(other),
        [
            frame.mapInArrow(packer(made.layout, name, made.key, splitting), PACKED)
            for name, frame in frames.items()
            if name not in made.tables
        ],
    )
    if made.streaming:
        with _own_workers(packed.sparkSession, made.key):
            results = packed.groupBy("cell").transformWithStateInPandas(
                JoinProcessor(spec), PAYLOAD, "Append", "EventTime"
            )
    else:
        shuffled = packed.where("cell >= 0").repartition(made.layout.shares.cells, "cell")
        results = shuffled.groupBy("cell").applyInArrow(_at_once(spec), PAYLOAD)
    by_name = {one.name: one for one in sides}
    shown = pa.schema([(alias, by_name[name].arrow_types[column]) for name, column, alias in made.query.select])
    fields = ", ".join(
        f"`{alias}` {by_name[name].types[column].simpleString()}" for name, column, alias in made.query.select
    )
    if made.query.output == "changelog":
        shown, fields = shown.append(pa.field(CHANGE, pa.int8())), f"{fields}, {CHANGE} tinyint"
    return results.mapInArrow(unpacker(shown, made.key), fields)


@contextmanager
def _own_workers(spark: SparkSession, key: str) -> Iterator[None]:
    """Functions made within get worker processes of their own, so that the cells these keep are found again.

    Spark reuses a worker for any function with the same environment. Connect has no way to say this.
    """
    try:
        environment = spark.sparkContext.environment
    except Exception:  # noqa: BLE001 - Connect knows no contexts
        environment = {}
    environment[f"THALWEG_JOIN_{key}"] = "1"
    try:
        yield
    finally:
        del environment[f"THALWEG_JOIN_{key}"]


def _at_once(spec: JoinSpec) -> Any:  # noqa: ANN401 - a function
    def joined(key: tuple[pa.Scalar, ...], packed: pa.Table) -> pa.Table:
        return pa.table({"payload": pa.array(list(join_at_once(spec, key[0].as_py(), packed)), pa.binary())})

    return joined


def _prepared(made: Join, side: Side, casts: Mapping[tuple[str, str], str], delay: str | timedelta) -> DataFrame:
    """An input with its watermark, filters, needed columns, and hashes of the keys that it is placed by."""
    from pyspark.sql import functions as f

    frame = side.frame
    if frame.isStreaming and side.time and not side.has_watermark:
        late = f"{microseconds(delay, 'delay')} microseconds"
        frame = frame.withWatermark(side.time, late)
    frame = frame.alias(side.name)
    for _, text in (one for one in made.filters if one[0] == side.name):
        frame = frame.where(text)

    def column(name: str) -> Column:
        found = f.col(f"`{name}`")
        cast_to = casts.get((side.name, name))
        return found.cast(cast_to).alias(name) if cast_to else found

    hashes = [
        f.xxhash64(column(name)).alias(f"{HASH}{number}") for number, name in made.layout.hashed(side.name).items()
    ]
    return frame.select(*map(column, made.query.input(side.name).schema.names), *hashes)


def _packed_tables(tables: Mapping[str, DataFrame]) -> dict[str, bytes]:
    """Tables that travel with the query."""
    packed = {}
    for name, frame in tables.items():
        batches = frame.toArrow().combine_chunks().to_batches()
        if batches:
            packed[name] = pack(batches[0])
    total = sum(map(len, packed.values()))
    if total > MOST_TABLE_BYTES:
        sizes = ", ".join(f"{name} {len(data) >> 20} MB" for name, data in packed.items())
        raise ValueError(
            f"tables travel with the query and may have {MOST_TABLE_BYTES >> 20} MB together: {sizes}. Filter them, "
            f"select= fewer columns, or read the large one as a stream with windows={{name: None}}"
        )
    return packed
