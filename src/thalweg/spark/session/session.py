"""`tw.Session`: shared streams and standing queries, written as text, run as one streaming query."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from thalweg.charts import plan_space
from thalweg.charts.candidates import PlanChoice
from thalweg.spark.filters.predicates.function import FunctionPredicate
from thalweg.spark.joins.inputs import micros
from thalweg.spark.session.engine import Engine
from thalweg.spark.session.lower import Catalog, QueryLowering, Rounds
from thalweg.spark.session.position import QueryPosition
from thalweg.spark.session.program import Program, ProgramQuery, program_query
from thalweg.spark.session.rows import shared_rows
from thalweg.spark.session.sinks import FolderSink, FunctionSink, MemorySink, Sink, WriterSink
from thalweg.spark.session.sources import SharedStream, StaticTable, all_streams
from thalweg.spark.session.worker.result_files import ROUND_COLUMNS
from thalweg.sql.parse import parse_query
from thalweg.sql.query import ContinuousQuery
from thalweg.sql.rounds import first_unseen

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

DELAY = "0 seconds"
