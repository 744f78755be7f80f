"""`thalweg doctor`: checks what Thalweg needs of this machine and of its Spark, and says what to fix.

Each check is a function that returns a `Finding`. The checks of `CHECKS` need no Spark; if nothing is wrong by then, a
session is started, and those of `CHECKS_ON_SPARK` run in it.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thalweg.spark.start import SMALL, NoSparkError, spark_session
from thalweg.spark.worker_python import problem_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
OLDEST_SPARK, NEXT_SPARK = (4, 1), (5, 0)  # as in pyproject.toml
LEAST_MEMORY = 3 << 30  # the driver's 2 GB of a local session, and its workers
LEAST_DISK = 1 << 30  # for shuffles and state
GIB = 1 << 30
# Where Linux tells the bytes that a container may use, in the second and the first version of its control groups.
CONTAINER_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


@dataclass(frozen=True)
class Finding:
    """What a check has found; `fix` says what to do, and is empty if all is well."""

    part: str
    text: str
    fix: str = ""


def examine(master: str | None = None) -> Iterator[Finding]:
    """The findings of all checks, one after the other; those that need Spark only if Spark can start."""
    findings = [check() for check in CHECKS]
    yield from findings
    if any(finding.fix for finding in findings):
        return
    try:
        spark = spark_session("thalweg-doctor", master=master)
    except NoSparkError as error:
        yield Finding("Spark", "does not start", str(error))
        return
    try:
        for check_on_spark in CHECKS_ON_SPARK:
            yield check_on_spark(spark)
    finally:
        spark.stop()


def java() -> Finding:
    """Java is there, and recent enough."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if found is None:
        where = f"in JAVA_HOME ({home})" if home else "on the PATH"
        return Finding("Java", f"there is no java {where}", f"install a JDK {OLDEST_JAVA} or later, or set JAVA_HOME")
    said = subprocess.run([found, "-version"], capture_output=True, check=False, text=True).stderr  # noqa: S603
    version = java_version(said)
    if version is None or version < OLDEST_JAVA:
        told = "does not tell its version" if version is None else f"is version {version}"
        return Finding("Java", f"{found} {told}", f"install a JDK {OLDEST_JAVA} or later, or set JAVA_HOME to it")
    return Finding("Java", f"version {version}, {found}")


def java_version(said: str) -> int | None:
    """The major version in the output of ``java -version``.

    >>> java_version('openjdk version "17.0.9" 2023-10-17'), java_version("no such command")
    (17, None)
    """
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else None


def pyspark() -> Finding:
    """PySpark is there, in a version that Thalweg supports."""
    advice = "run `pip install 'thalweg[spark]'`"
    try:
        version = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return Finding("Spark", "PySpark is not installed", advice)
    if not OLDEST_SPARK <= tuple(map(int, re.findall(r"\d+", version)[:2])) < NEXT_SPARK:
        return Finding("Spark", f"PySpark {version} is not supported", advice)
    return Finding("Spark", f"PySpark {version}")


def arrow() -> Finding:
    """Arrow and pandas are there, as PySpark wants them."""
    advice = "run `pip install 'thalweg[spark]'`"
    try:
        versions = {name: metadata.version(name) for name in ("pyarrow", "pandas")}
    except metadata.PackageNotFoundError as missing:
        return Finding("Arrow", f"{missing.name} is not installed", advice)
    if not versions["pandas"].startswith("2."):
        return Finding("Arrow", f"pandas {versions['pandas']}: PySpark 4 wants pandas 2", advice)
    return Finding("Arrow", ", ".join(f"{name} {version}" for name, version in versions.items()))


def memory() -> Finding:
    """There is memory for a local session, on the machine, and in the container if it runs in a container."""
    try:
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return Finding("memory", "this system does not tell it")
    limits = [
        int(file.read_text()) for file in CONTAINER_LIMITS if file.is_file() and file.read_text().strip() != "max"
    ]
    total = min(machine, *limits) if limits else machine
    where = "" if total == machine else " in this container"
    told = f"{total / GIB:.1f} GiB{where}; a local session's driver takes {SMALL['spark.driver.memory']}"
    if total < LEAST_MEMORY:
        return Finding("memory", told, 'start smaller, with "spark.driver.memory" as 1g, or use a larger machine')
    return Finding("memory", told)


def disk() -> Finding:
    """There is room for the temporary files of Spark."""
    folder = Path(os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")[0])
    try:
        with tempfile.TemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free
    except OSError as error:
        return Finding("disk", f"{folder} cannot be written: {error.strerror}", "set SPARK_LOCAL_DIRS to a folder")
    told = f"{free / GIB:.1f} GiB free in {folder}"
    return Finding("disk", told, "set SPARK_LOCAL_DIRS to a folder with more room" if free < LEAST_DISK else "")


def ports() -> Finding:
    """Programs may listen on this machine, as driver and workers do."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname(), 5):
            pass
    except OSError as error:
        return Finding("ports", f"127.0.0.1: {error}", "allow programs to listen on 127.0.0.1")
    return Finding("ports", "programs can listen on 127.0.0.1 and connect to it")


def worker_python(spark: SparkSession) -> Finding:
    """Workers run, with the driver's version of Python and with all that they need."""
    context: Any = getattr(spark, "_sc", None)  # Connect has none
    if context is not None and str(context.master).startswith("local"):
        problem = problem_of(context.pythonExec)
        if problem is not None:
            wrong, _, fix = problem.rpartition(": ")
            return Finding("Python workers", wrong, fix)
    try:
        row = spark.range(1).mapInArrow(_describe_worker, "python string, pyarrow string").collect()[0]
    except Exception as error:  # noqa: BLE001 - whatever a worker raises is what the user wants to see
        last = str(error).strip().splitlines()[-1]
        fix = "install 'thalweg[spark]' for the workers' Python, and set PYSPARK_PYTHON to it"
        return Finding("Python workers", f"a job failed: {last[:200]}", fix)
    return Finding("Python workers", f"Python {row['python']}, pyarrow {row['pyarrow']}")


def state_store(spark: SparkSession) -> Finding:
    """The state store of `tw.join` loads: RocksDB, with its native library."""
    jvm: Any = getattr(spark, "_jvm", None)
    if jvm is None:
        return Finding("state store", "not checked: the server of Spark Connect has it")
    try:
        jvm.org.rocksdb.RocksDB.loadLibrary()
    except Exception as error:  # noqa: BLE001 - py4j wraps whatever Java raises
        first = str(error).strip().splitlines()[-1]
        return Finding(
            "state store",
            f"RocksDB does not load: {first[:200]}",
            "run Spark on a system for which RocksDB has a library, such as Linux with glibc",
        )
    return Finding("state store", "RocksDB loads; tw.configure(spark) turns it on")


CHECKS: tuple[Callable[[], Finding], ...] = (java, pyspark, arrow, memory, disk, ports)
CHECKS_ON_SPARK: tuple[Callable[[SparkSession], Finding], ...] = (worker_python, state_store)


def _describe_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker: the versions of what it runs; imports what filters and joins import."""
    import numba  # noqa: F401 - to see that it can be imported
    import pyarrow as pa

    import thalweg  # noqa: F401 - as above

    for batch in batches:
        if batch.num_rows:
            yield pa.record_batch([[sys.version.split()[0]], [pa.__version__]], ["python", "pyarrow"])
