"""The text of a plan, without printing it, and the keys of runs in it.

PySpark's `explain` prints, and redirecting the standard output to catch the text would take it from all other threads.
"""

from __future__ import annotations

import re
from typing import Any

from thalweg.spark.jvm import java_class

KEY_IN_PLAN = re.compile(r"thalweg[:_]([0-9a-f]{12})")


def keys_in_plan(explained: Any) -> list[str]:  # noqa: ANN401 - a DataFrame or a streaming query, classic or Connect
    """The keys of runs in the plan of a DataFrame or of a streaming query, the innermost last."""
    from pyspark.errors import PySparkException

    try:
        text = plan_text(explained)
    except PySparkException:  # Spark evaluates filters of small tables when it plans them, and such a filter fails
        text = _written_text(explained)
    return list(dict.fromkeys(KEY_IN_PLAN.findall(text)))


def plan_text(explained: Any, mode: str = "extended") -> str:  # noqa: ANN401 - as above
    """The plan of a DataFrame or of a streaming query; the mode is a mode of `DataFrame.explain`."""
    own = vars(explained) if hasattr(explained, "__dict__") else {}  # a Connect DataFrame takes any name for a column's
    if "_jdf" in own:  # a classic DataFrame
        execution = explained._jdf.queryExecution()  # noqa: SLF001 - Spark prints, or tells nothing
        utilities = java_class(explained.sparkSession._jvm, "org.apache.spark.sql.api.python.PythonSQLUtils")  # noqa: SLF001
        return str(utilities.explainString(execution, mode))
    if "_jsq" in own:  # a classic streaming query
        # Before the first micro-batch there is no physical plan; the analysed plan is there from the start.
        return f"{explained._jsq.streamingQuery().analyzedPlan()}\n{explained._jsq.explainInternal(True)}"  # noqa: SLF001, FBT003
    if hasattr(type(explained), "_explain_string"):  # a Connect DataFrame
        return str(explained._explain_string(mode=mode))  # noqa: SLF001 - as above
    if hasattr(type(explained), "_execute_streaming_query_cmd"):  # a Connect streaming query
        from pyspark.sql.connect.proto import StreamingQueryCommand

        command = StreamingQueryCommand()
        command.explain.extended = True
        return str(explained._execute_streaming_query_cmd(command).explain.result)  # noqa: SLF001 - as above
    raise TypeError(
        f"tw.explain takes a DataFrame, a streaming query, or what tw.stream gave, not {type(explained).__name__}"
    )


def _written_text(explained: Any) -> str:  # noqa: ANN401 - as above
    """The plan of a DataFrame as it was written, which Spark has not optimized; nothing of a streaming query."""
    own = vars(explained)
    if "_jdf" in own:  # a classic DataFrame
        return str(explained._jdf.queryExecution().analyzed())  # noqa: SLF001 - as above
    return str(explained._plan.to_proto(explained._session.client)) if "_plan" in own else ""  # noqa: SLF001 - as above
