"""Finds the conditions by which Spark prunes partitions: those that read partition columns of the sources alone.

Spark evaluates them for partitions and for no row. A condition on other columns that is no simple test never reaches a
source, so that only evidence decides where it stands.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from thalweg.spark.filters.forms import Place
from thalweg.spark.frames import once_a_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from thalweg.spark.filters.query import FilterQuery

SEPARATOR = "\0"  # occurs in no name
NUMBER = re.compile(r"#(\d+)")  # as Spark writes Catalyst's numbers of columns
ALIAS = re.compile(r"(.*) AS .*#(\d+)L?(?:-T\d+ms)?", re.DOTALL)
ATTRIBUTE = re.compile(r"(.*)#(\d+)L?(?:-T\d+ms)?", re.DOTALL)


def pruning_conditions(query: FilterQuery, frame: DataFrame) -> frozenset[int]:
    """The conditions of a query by which Spark prunes partitions of the DataFrame's sources, besides simple tests.

    The question takes some calls of the JVM, and is not asked where all conditions stay within the source's reach.
    """
    asked = {
        number: form for number, form in enumerate(query.forms) if form.place is Place.SPARK and not form.reaches_source
    }
    stay = query.routes is None and all(form.place is Place.SPARK for form in query.forms)
    partitions = frozenset[int]() if stay or not asked else partition_columns(frame)
    if not partitions:
        return frozenset()
    return frozenset(number for number, form in asked.items() if form.prunes_by(partitions))


@once_a_frame
def partition_columns(frame: Any) -> frozenset[int]:  # noqa: ANN401 - a DataFrame of either kind of session
    """Catalyst's numbers of the columns, of a DataFrame and below it, that follow from partition columns alone.

    A version of Spark with other plans has none, and so has Connect, where plans stay at the server.
    """
    from py4j.protocol import Py4JError

    if not hasattr(frame, "_jdf"):
        return frozenset()
    try:
        return frozenset(_numbers_in(frame._jdf.queryExecution().analyzed()))  # noqa: SLF001 - no public way
    except (Py4JError, TypeError):
        return frozenset()


def _numbers_in(plan: Any) -> set[int]:  # noqa: ANN401 - a logical plan of the JVM
    children = plan.children()
    found = {number for place in range(children.size()) for number in _numbers_in(children.apply(place))}
    if not children.size():
        return _numbers_in_leaf(plan)
    if found and plan.nodeName() == "Project":
        for column in plan.projectList().mkString(SEPARATOR).split(SEPARATOR):
            alias = ALIAS.fullmatch(column)
            read = set(map(int, NUMBER.findall(alias[1]))) if alias is not None else set()
            if alias is not None and read and read <= found:
                found.add(int(alias[2]))
    return found


def _numbers_in_leaf(leaf: Any) -> set[int]:  # noqa: ANN401 - as above
    """The numbers of a source's partition columns."""
    names = {name.lower() for name in _names_in_leaf(leaf)}
    if not names:
        return set()
    columns = [ATTRIBUTE.fullmatch(column) for column in leaf.output().mkString(SEPARATOR).split(SEPARATOR)]
    return {int(column[2]) for column in columns if column is not None and column[1].lower() in names}


def _names_in_leaf(leaf: Any) -> list[str]:  # noqa: ANN401 - as above
    from py4j.protocol import Py4JError

    try:
        match leaf.getClass().getSimpleName():
            case "LogicalRelation":  # of files
                return list(leaf.relation().partitionSchema().fieldNames())
            case "HiveTableRelation":
                return [column.name() for column in _listed(leaf.partitionCols())]
            case "StreamingRelation":
                return _listed(leaf.dataSource().sourceInfo().partitionColumns())
            case "DataSourceV2Relation":  # a table of Iceberg may be partitioned by a function of a column
                transforms = [transform.references() for transform in leaf.table().partitioning()]
                return [reference.fieldNames()[0] for references in transforms for reference in references]
    except (Py4JError, TypeError):  # a source that knows no partitions
        pass
    return []


def _listed(sequence: Any) -> list[Any]:  # noqa: ANN401 - a sequence of Scala
    return [sequence.apply(place) for place in range(sequence.size())]
