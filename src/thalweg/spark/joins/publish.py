"""Writes the first versions of a join's tables that may change, and tells the tables how to write the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from thalweg.spark.joins.condition import Condition
from thalweg.spark.joins.inputs import JoinInput, apply_condition
from thalweg.spark.joins.layout import Layout
from thalweg.spark.joins.lower import prepare_frames
from thalweg.spark.joins.spec import oldest_version, read_reports
from thalweg.spark.joins.table import Follower
from thalweg.spark.joins.table_versions import VersionFiles, version_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check_changing(inputs: Sequence[JoinInput], state: object) -> None:
    """Refuse tables that may change where their versions could not be kept."""
    changing = [each.name for each in inputs if each.changing]
    if changing and state is None:
        raise ValueError(
            f"{changing[0]} is given by tw.table, whose versions are kept in a folder that the driver and all workers "
            f"share, also for a restart: write state='folder'"
        )


def publish_tables(
    inputs: Sequence[JoinInput],
    condition: Condition,
    layout: Layout,
    casts: Mapping[tuple[str, str], str],
    folder: str,
    key: str,
) -> tuple[dict[str, VersionFiles], list[int]]:
    """Write the first versions of tables that may change: where later versions will be, and how many bytes these have.

    The inputs are as they were given: later versions have to be filtered, too, and their keys to be computed.
    """
    versions, sizes = {}, []
    for source in inputs:
        if source.changing is not None:
            files = version_files(folder, layout, key, source.name)
            follower = Follower(
                files,
                partial(_prepared_version, source, condition, layout, casts),
                layout.received_columns(source.name),
                partial(_oldest_version, folder, key, source.name, layout.shares.cells),
            )
            sizes.append(source.changing.follow(follower))
            versions[source.name] = files
    return versions, sizes


def _prepared_version(
    source: JoinInput,
    condition: Condition,
    layout: Layout,
    casts: Mapping[tuple[str, str], str],
    frame: DataFrame,
) -> DataFrame:
    """The columns of a table's new version that the join needs."""
    return prepare_frames(apply_condition([replace(source, frame=frame)], condition, 0), layout, casts)[source.name]


def _oldest_version(folder: str, key: str, name: str, cells: int) -> str | None:
    """The oldest version of a table that some cell of a run has."""
    return oldest_version(read_reports(folder, key), name, cells)
