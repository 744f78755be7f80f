import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from thalweg_lab.demo.in_turns import PLAIN, THALWEG, Turn
from thalweg_lab.demo.ratios import Ratio, require_same
from thalweg_lab.demo.story import as_results, closing_table
from thalweg_lab.demo.tell import BAR, told_steps
from thalweg_lab.results import Report

MEASURED = {
    1: [Ratio("messages a second", 10_000.0, 50_000.0), Ratio("calls a message", 5.0, 2.0, is_better_if="less")]
}
DEMO = [sys.executable, "-c", "from thalweg.cli import main; main()", "demo", "--headless"]


def test_different_results_stop_the_demonstration() -> None:
    require_same("rows", {PLAIN: 1, THALWEG: 1})
    with pytest.raises(AssertionError, match="rows differ"):
        require_same("rows", {PLAIN: 1, THALWEG: 2})


def test_the_closing_table_fits_80_columns() -> None:
    text = io.StringIO()
    Console(file=text, width=80).print(closing_table(MEASURED))
    assert "5.0x" in text.getvalue()
    assert "2.5x" in text.getvalue()


def test_results_have_the_shape_of_all_commands() -> None:
    report = Report("demo", 1.0, {}, as_results(MEASURED))
    assert Report.from_json(report.to_json()) == report
    assert report.results[0].scenario == "act 1, screening"
    assert report.results[0].note == "plain Spark 10,000, Thalweg 50,000"


@pytest.mark.parametrize("is_terminal", [False, True])
def test_steps_are_shown(is_terminal: bool) -> None:  # noqa: FBT001 - a parameter of the test
    text = io.StringIO()
    with told_steps(Console(file=text, width=100, force_terminal=is_terminal)) as tell:
        tell(Turn(1, 0, 1000, {PLAIN: 2.0, THALWEG: 1.0}), "order: a, b")
    assert "2.0x" in text.getvalue()
    assert "order: a, b" in text.getvalue()


def test_a_micro_batch_is_one_line_of_a_narrow_terminal() -> None:
    text = io.StringIO()
    with told_steps(Console(file=text, width=80, force_terminal=True, no_color=True)) as tell:
        tell(Turn(0, 0, 1_000_000, {PLAIN: 1.0, THALWEG: 1.0}), "")
    (line,) = [line for line in text.getvalue().splitlines() if "warm-up" in line]
    assert line.count("█") == 2 * BAR


@pytest.mark.cluster
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing_running(number: signal.Signals, tmp_path: Path) -> None:
    run = subprocess.Popen(
        [*DEMO, "--seconds", "600", "--act", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    assert run.stdout is not None
    assert any("micro-batch" in line for line in run.stdout)  # stops reading at the first one
    run.send_signal(number)
    rest = run.stdout.read()
    assert run.wait(60) == 130
    run.stdout.close()
    assert "Traceback" not in rest
    assert rest.splitlines()[-1] == "Interrupted."
    assert not left_running(run.pid)
    assert not list(tmp_path.glob("thalweg-demo-*"))


def left_running(session: int) -> list[str]:
    """The processes of a session that are there after a while."""
    found: list[str] = []
    for _ in range(100):
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if os.getsid(int(entry.name)) == session:
                        found.append((entry / "cmdline").read_text())
                except OSError:
                    continue
        if not found:
            return []
        time.sleep(0.1)
    return found
