"""Public calls of the optimizer with compiled kernels: they work, or are refused clearly, and never end the process."""

from __future__ import annotations

import subprocess
import sys


def test_no_call_reaches_a_kernel_unchecked() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.optimizer_calls"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout.splitlines()[-1:]} ended with {done.returncode}: {done.stderr[-3000:]}"
