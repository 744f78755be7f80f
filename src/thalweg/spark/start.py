"""Starts Spark, or joins the Spark that is already there.

Knows where a user may have said which Spark to use, and the settings that keep a local Spark small and quiet.
Must not know the programs that run on it. Imports pyspark only inside functions, so that the command line starts fast.
"""

import os
import re
import shlex
import shutil
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Conf = bool | float | int | str | None

LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")

# No setting prevents these lines: the JVM prints the first before any logging is configured, and a worker of Spark's
# stateful operators in Python tells its steps.
UNAVOIDABLE = (
    b"WARNING: Using incubator modules: jdk.incubator.vector",
    b"Streaming TransformWithStateInPandas Python worker",
    b"Starting Streaming TransformWithStateInPandas Python worker",
)

# What PySpark's daemon prints, the lines of several workers mixed, when a query that is stopped closes the socket of a
# worker before the worker does.
TRACEBACK = b"Traceback (most recent call last):\n"
OF_DAEMON = b'/pyspark/daemon.py", line '
BROKEN_PIPE = b"BrokenPipeError: "

# Over TCP, a task in Python waits about 40 ms more, whatever its rows (decision 0290).
LOCAL_SOCKETS = "spark.python.unix.domain.socket.enabled"

CONNECT_PORT = 15002
CONNECT_SECONDS = 5.0

QUIET: dict[str, Conf] = {
    "spark.driver.extraJavaOptions": f'"-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}"',
    "spark.sql.execution.arrow.pyspark.enabled": True,
    "spark.python.worker.reuse": True,
    "spark.ui.showConsoleProgress": False,
}
if sys.platform == "linux":  # elsewhere the paths of sockets may be too long
    QUIET[LOCAL_SOCKETS] = True
SMALL: dict[str, Conf] = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": 2,
    "spark.ui.enabled": False,
}


class NoSparkError(RuntimeError):
    """Spark could not be started; the message says what to install or write."""


def spark_session(
    app_name: str = "thalweg", cores: int = 2, *, master: str | None = None, **conf: Conf
) -> "SparkSession":
    """The active Spark session; else a session where the user's settings say; else a small quiet local session.

    `master` is a Spark master, or `sc://...` for Connect. Without it, `SPARK_REMOTE`, `spark-submit`,
    `PYSPARK_SUBMIT_ARGS` and `spark-defaults.conf` are followed. `conf` comes before the user's defaults,
    and the user's defaults before ours.

    >>> spark_session(cores=2).range(3).count()  # doctest: +SKIP
    3
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise NoSparkError("PySpark is not installed: run `pip install 'thalweg[spark]'`.") from None

    if (active := SparkSession.getActiveSession()) is not None:
        return active
    # Workers run the same Python and see the same packages as the driver, unless the user says otherwise.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app_name)
    said = conf | {key: value for key, value in user_defaults(os.environ).items() if key not in conf}
    place = str(master or said.get("spark.remote") or said.get("spark.master") or f"local[{cores}]")
    if place.startswith("sc://"):
        _require_server(place)
        return builder.remote(place).config(map=conf).getOrCreate()
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # started by spark-submit, which has decided everything
        return builder.config(map=conf).getOrCreate()
    _require_java()
    builder = builder.config(map=QUIET | (SMALL if place.startswith("local") else {}) | said)
    try:
        with _interrupted_afterwards(), _filtered_standard_error(), warnings.catch_warnings():
            # A remote that is `local[2]` starts a Connect server on this machine. The server takes all
            # settings; PySpark then offers them to the session too, which may not change most and warns.
            warnings.filterwarnings("ignore", "Failed to set", UserWarning)
            remote = place == said.get("spark.remote")
            return (builder.remote(place) if remote else builder.master(place)).getOrCreate()
    except Exception as error:
        if "JAVA_GATEWAY_EXITED" not in str(error):
            raise
        raise NoSparkError(
            "Java did not start Spark; its own message is above. Spark needs a full JDK, 17 or later: "
            "set JAVA_HOME to a JDK, or run `make java`."
        ) from None


def user_defaults(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings in the user's environment and in `spark-defaults.conf`.

    Spark reads them too, but puts the settings of a program before them, so ours would hide the user's.

    >>> user_defaults({"PYSPARK_SUBMIT_ARGS": "--master spark://host:7077 pyspark-shell"})
    {'spark.master': 'spark://host:7077'}
    """
    defaults: dict[str, str] = {}
    home = environment.get("SPARK_HOME")
    folder = environment.get("SPARK_CONF_DIR") or (f"{home}/conf" if home else None)
    file = Path(folder, "spark-defaults.conf") if folder else None
    if file is not None and file.is_file():
        for line in map(str.strip, file.read_text().splitlines()):
            if line and not line.startswith("#"):
                key, *value = re.split(r"\s*[=:\s]\s*", line, maxsplit=1)
                defaults[key] = "".join(value)
    words = shlex.split(environment.get("PYSPARK_SUBMIT_ARGS", ""))
    if "--master" in words[:-1]:
        defaults["spark.master"] = words[words.index("--master") + 1]
    if "SPARK_REMOTE" in environment:
        defaults["spark.remote"] = environment["SPARK_REMOTE"]
    return defaults


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if not (shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")):
        where = f"JAVA_HOME ({home}) has no bin/java" if home else "no `java` was found on the PATH"
        raise NoSparkError(
            f"Spark runs on Java 17 or later, and {where}. Install it with "
            "`apt install openjdk-17-jdk-headless` or `brew install openjdk@17`, or run `make java`."
        )


def _require_server(place: str) -> None:
    """Fail at once where no server listens; PySpark itself would try again for ten minutes."""
    address = urlsplit(place)
    try:
        socket.create_connection((address.hostname, address.port or CONNECT_PORT), CONNECT_SECONDS).close()
    except OSError as error:
        raise NoSparkError(f"No Spark Connect server answers at {place} ({error}); is it started?") from None


@contextmanager
def _interrupted_afterwards() -> Iterator[None]:
    """Hold Ctrl-C back until Spark has started; pressed twice, it acts at once.

    PySpark interrupted while it starts removes the file that the JVM is about to write, and the JVM stays
    behind for ever. Once started, it ends with this process.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread is interrupted
        yield
        return
    pressed = threading.Event()

    def note(_signal: int, _frame: FrameType | None) -> None:
        if pressed.is_set():
            raise KeyboardInterrupt
        pressed.set()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is note:  # else Spark's own, which cancels its jobs, took over
            signal.signal(signal.SIGINT, before)
    if pressed.is_set():
        raise KeyboardInterrupt


@contextmanager
def _filtered_standard_error() -> Iterator[None]:
    """Let the JVM started here write its standard error through a filter; all but few lines pass."""
    terminal = os.dup(2)
    read_end, write_end = os.pipe()
    os.dup2(write_end, 2)
    os.close(write_end)
    threading.Thread(target=forward, args=(os.fdopen(read_end, "rb"), os.fdopen(terminal, "wb")), daemon=True).start()
    try:
        yield
    finally:
        # Only this process gets its standard error back; the JVM keeps the filter for as long as it lives.
        os.dup2(terminal, 2)


def forward(source: BinaryIO, target: BinaryIO) -> None:
    """Copy all lines but the unavoidable lines, with the empty line behind such a line, and broken pipes of workers."""
    with source, target:
        held, is_dropped = b"", False
        for line in source:
            if line == TRACEBACK:  # the next lines tell whose it is
                held += line
                continue
            is_of_daemon = OF_DAEMON in line
            if is_of_daemon:
                held = b""
            goes_on = is_dropped and (not line.strip() or line.startswith(BROKEN_PIPE))
            is_dropped = is_of_daemon or line.startswith(UNAVOIDABLE) or goes_on
            if not is_dropped:
                target.write(held + line)
                target.flush()
                held = b""
        target.write(held)
