"""Programs of their own, and clusters, for the chaos tests."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from tests.chaos.programs import started
from tests.spark.conftest import cluster, environment

__all__ = ["cluster", "environment"]  # fixtures


@pytest.fixture(autouse=True)
def no_program_stays() -> Iterator[None]:
    """End the programs that a test which failed has left."""
    yield
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    started.clear()
