import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from thalweg_lab.parameter_sweep import ParameterSweep, SweepError, reference, run_sweep, run_sweeps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTERRUPTED_SWEEP = """
import time
from thalweg.spark.start import spark_session
from thalweg_lab.parameter_sweep import run_sweep
spark = spark_session()
run_sweep(spark, time.sleep, [0])
try:
    run_sweep(spark, time.sleep, [600] * 4, on_progress=lambda done, total: print("progress", done, total, flush=True))
except KeyboardInterrupt:
    print("active jobs:", spark.sparkContext.statusTracker().getActiveJobsIds())
"""


def test_results_come_in_the_settings_order(spark: "SparkSession") -> None:
    assert run_sweep(spark, sorted, [[3, 1], [2], []]) == [[1, 3], [2], []]
    assert run_sweep(spark, math.sqrt, []) == []


def test_progress_reaches_the_total_without_falling(spark: "SparkSession", tmp_path: Path) -> None:
    """The last two tasks wait for a report of progress: the sweep ends only if tasks are counted while it runs."""
    seen: list[tuple[int, int]] = []
    go_on = tmp_path / "go-on"

    def note(done: int, total: int) -> None:
        seen.append((done, total))
        if done > 0:
            go_on.touch()

    wait = f"while ! test -e '{go_on}'; do sleep 0.05; done"
    assert run_sweep(spark, os.system, ["true"] * 6 + [wait] * 2, on_progress=note) == [0] * 8
    assert seen == sorted(seen)
    assert seen[-1] == (8, 8)
    assert any(0 < done < 8 for done, _ in seen)


def test_a_failing_setting_is_named_with_its_python_error(spark: "SparkSession") -> None:
    with pytest.raises(SweepError) as caught:
        run_sweep(spark, math.sqrt, [4, -1, -2])
    assert str(caught.value).startswith("2 of 3 settings failed; the first, -1, raised ValueError: math domain error")
    assert "\n" not in str(caught.value)


def test_a_result_json_cannot_say_is_a_failure(spark: "SparkSession") -> None:
    with pytest.raises(SweepError, match="turn complex into those"):
        run_sweep(spark, complex, [1])


def test_sweeps_are_handed_over_one_by_one_and_fail_alone(spark: "SparkSession") -> None:
    jobs = [
        ParameterSweep("good", math.sqrt, [4]),
        ParameterSweep("bad", math.sqrt, [-1]),
        ParameterSweep("long", time.sleep, [0.5]),
    ]
    outcomes = dict(run_sweeps(spark, jobs))
    assert outcomes["good"] == [2.0]
    assert isinstance(outcomes["bad"], SweepError)
    assert outcomes["long"] == [None]


def test_leaving_early_cancels_what_still_runs(spark: "SparkSession") -> None:
    for name, _ in run_sweeps(
        spark, [ParameterSweep("short", math.sqrt, [4]), ParameterSweep("endless", time.sleep, [600])]
    ):
        assert name == "short"
        break
    patience = time.monotonic() + 60  # Spark's tracker hears of the end a little later
    while (active := spark.sparkContext.statusTracker().getActiveJobsIds()) and time.monotonic() < patience:
        time.sleep(0.1)
    assert active == []


def test_sweeps_need_different_names(spark: "SparkSession") -> None:
    with pytest.raises(ValueError, match="different names"):
        list(run_sweeps(spark, [ParameterSweep("same", math.sqrt, [4]), ParameterSweep("same", math.sqrt, [9])]))


def test_only_importable_functions_travel() -> None:
    assert reference(math.sqrt) == "math:sqrt"
    with pytest.raises(ValueError, match="top level of a module"):
        reference(lambda setting: setting)


@pytest.mark.spark
def test_ctrl_c_cancels_the_job_and_spark_starts_quietly() -> None:
    command = [sys.executable, "-c", INTERRUPTED_SWEEP]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("progress")
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=120)
    assert process.returncode == 0
    assert output.endswith("active jobs: []\n")
    assert errors == ""
