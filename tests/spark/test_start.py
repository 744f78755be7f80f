import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from thalweg.spark.start import (
    LOCAL_SOCKETS,
    TRACEBACK,
    UNAVOIDABLE,
    NoSparkError,
    forward,
    spark_session,
    user_defaults,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_an_active_session_is_joined_and_left_as_it_is(spark: "SparkSession") -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    assert spark_session("another", cores=1).sparkContext is spark.sparkContext
    assert spark.conf.get("spark.sql.shuffle.partitions") == before


def test_a_local_spark_session_is_small(spark: "SparkSession") -> None:
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.master") == "local[2]"
    assert conf.get("spark.ui.enabled") == "false"
    assert conf.get("spark.driver.host") == "127.0.0.1"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


@pytest.mark.skipif(sys.platform != "linux", reason="the paths of sockets may be too long elsewhere")
def test_spark_talks_to_python_by_local_sockets(spark: "SparkSession") -> None:
    assert spark.sparkContext.getConf().get(LOCAL_SOCKETS) == "true"
    assert spark.range(3).mapInArrow(lambda batches: batches, "id long").count() == 3


def test_the_users_defaults_are_read(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "# a comment\n\nspark.master   spark://host:7077\nspark.executor.cores=3\nspark.app.name: my app\n"
    )
    assert user_defaults({"SPARK_CONF_DIR": str(tmp_path)}) == {
        "spark.master": "spark://host:7077",
        "spark.executor.cores": "3",
        "spark.app.name": "my app",
    }
    assert user_defaults({"SPARK_REMOTE": "sc://host"}) == {"spark.remote": "sc://host"}
    assert user_defaults({"PYSPARK_SUBMIT_ARGS": "--master"}) == {}
    assert user_defaults({}) == {}


def inactive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)


def test_without_java_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    inactive(monkeypatch)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NoSparkError, match="make java"):
        spark_session()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoSparkError, match="openjdk-17"):
        spark_session()


def test_an_unreachable_connect_server_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    inactive(monkeypatch)
    with pytest.raises(NoSparkError, match="No Spark Connect server answers"):
        spark_session(master="sc://127.0.0.1:1")


class Kept(io.BytesIO):
    def close(self) -> None:
        """Stay readable."""


def forwarded(text: bytes) -> bytes:
    target = Kept()
    forward(io.BytesIO(text), target)
    return target.getvalue()


def test_lines_that_no_setting_prevents_are_dropped_with_their_empty_line() -> None:
    noise = b"".join(line + b" and more\n\n" for line in UNAVOIDABLE)
    assert forwarded(b"an error\n\n" + noise + b"another\n") == b"an error\n\nanother\n"


def test_broken_pipes_of_workers_are_dropped_and_other_tracebacks_are_not() -> None:
    """Lines of several workers come mixed."""
    frames = b'  File "/python/lib/pyspark.zip/pyspark/daemon.py", line 264, in manager\n' * 2
    broken = b"BrokenPipeError: [Errno 32] Broken pipe\n"
    assert forwarded(b"one\n" + 2 * TRACEBACK + 2 * (frames + broken) + b"two\n") == b"one\ntwo\n"
    of_user = TRACEBACK + b'  File "/checks.py", line 1, in check\n' + broken
    assert forwarded(TRACEBACK + frames + broken + of_user) == of_user
    assert forwarded(TRACEBACK) == TRACEBACK
