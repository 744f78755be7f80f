"""Classes of the JVM and their static methods, each looked up once.

Every question to the JVM takes a tenth of a millisecond, and py4j asks one for every dot of a name.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALYST = "org.apache.spark.sql.catalyst"  # the package of Spark's plans and expressions

# Classes, and static methods of them, that PySpark looks up anew for every UDF.
OF_UDFS = {
    "PythonUtils": ("getBroadcastThreshold", "toSeq"),
    "PythonSQLUtils": ("ddlToJson",),
    "SimplePythonFunction": (),
    "functions": ("col",),
    "org.apache.spark.sql.classic.SparkSession": ("getActiveSession",),
    "org.apache.spark.sql.execution.python.UserDefinedPythonFunction": (),
}

_found: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()  # by py4j's view of a JVM: a program may start two


def java_class(jvm: Any, name: str) -> Any:  # noqa: ANN401 - py4j's view of the JVM, and a class of it
    """A class, or an object of py4j that cannot be called if there is no such class."""
    return _once(jvm, name, lambda: getattr(jvm, name))


def java_method(jvm: Any, class_name: str, name: str) -> Any:  # noqa: ANN401 - as above, and a static method
    """A static method of a class."""
    return _once(jvm, f"{class_name}.{name}", lambda: getattr(java_class(jvm, class_name), name))


def java_value(jvm: Any, class_name: str, name: str, *arguments: Any) -> Any:  # noqa: ANN401 - as above, and a constant
    """A constant that a static method of a class gives for some arguments, which are texts or always the same."""
    texts = ", ".join(argument for argument in arguments if isinstance(argument, str))
    return _once(jvm, f"{class_name}.{name}({texts})", lambda: java_method(jvm, class_name, name)(*arguments))


def _once(jvm: Any, name: str, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - as above
    known = _found.setdefault(jvm, {})
    if name not in known:
        known[name] = make()
    return known[name]


def keep_names_of_udfs(jvm: Any) -> None:  # noqa: ANN401 - as above
    """Let py4j's view of the JVM keep what PySpark looks up in it for every UDF."""
    from py4j.java_gateway import JavaClass
    from py4j.protocol import Py4JError

    for name, methods in OF_UDFS.items():
        if name in vars(jvm):
            continue
        found = getattr(jvm, name)
        if isinstance(found, JavaClass):  # else this version of Spark has it elsewhere
            with suppress(Py4JError):  # or has other methods
                vars(found).update({method: getattr(found, method) for method in methods})
            vars(jvm)[name] = found


def python_function(context: Any, function: Any, return_type: Any) -> Any:  # noqa: ANN401 - a Spark context, a callable, a type
    """A Python function as Spark's UDFs hold it. PySpark's own way asks the JVM six times, this way asks once."""
    from pyspark import cloudpickle
    from pyspark.sql.udf import _wrap_function  # PySpark's own, for its own UDFs

    jvm = context._jvm  # noqa: SLF001 - no public way
    command = cloudpickle.dumps((function, return_type))  # type: ignore[no-untyped-call]
    broadcasts = context._pickled_broadcast_vars  # noqa: SLF001 - the broadcast variables that PySpark met while it pickled
    threshold = java_value(jvm, "org.apache.spark.api.python.PythonUtils", "getBroadcastThreshold", context._jsc)  # noqa: SLF001 - no public way
    if list(broadcasts) or len(command) > threshold:
        broadcasts.clear()
        return _wrap_function(context, function, return_type)
    environment, includes = dict(context.environment), list(context._python_includes)  # noqa: SLF001 - no public way
    return java_class(jvm, "org.apache.spark.api.python.SimplePythonFunction")(
        bytearray(command),
        _once(jvm, f"environment {environment}", lambda: java_class(jvm, "java.util.HashMap")(environment)),
        _once(jvm, f"includes {includes}", lambda: java_class(jvm, "java.util.ArrayList")(includes)),
        context.pythonExec,
        context.pythonVer,
        _once(jvm, "no broadcasts", java_class(jvm, "java.util.ArrayList")),
        context._javaAccumulator,  # noqa: SLF001 - no public way
    )


def list_files_again(frame: Any) -> None:  # noqa: ANN401 - a DataFrame of either kind of session
    """Let a DataFrame that reads files see the files that are there now; its plan has those of when it was made."""
    if hasattr(frame, "_jdf"):  # with Connect, Spark lists files whenever the DataFrame is read
        frame._jdf.queryExecution().analyzed().refresh()  # noqa: SLF001 - Spark's interface in Python lacks it


def active_jvm() -> Any:  # noqa: ANN401 - as above
    """The JVM of this program's classic session."""
    from pyspark import SparkContext

    context: Any = SparkContext._active_spark_context  # noqa: SLF001 - PySpark has no public way to ask without starting Spark
    return context._jvm  # noqa: SLF001 - as above


def paths_are_local(spark: SparkSession) -> bool:
    """Whether a path without a scheme is a path of this machine for Spark, as it is for Python."""
    settings = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 - Hadoop has no other way from Python
    return str(settings.get("fs.defaultFS", "file:///")).startswith("file:")
