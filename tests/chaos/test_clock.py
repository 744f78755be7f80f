"""The clock of the machine jumps by an hour, forward and back, while a program runs: its results are the same.

All processes of the program get the time of day from a small library, which a C compiler makes first. (libfaketime will
not do: with it, waits in the JVM return at once after a jump.)
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from tests.chaos.chains import Chain, chains
from tests.chaos.programs import FILTER, JOIN, SESSION, Program

COMPILER = shutil.which("cc")
LIBRARY = Path(__file__).with_name("jumping_clock.c")
HOUR = 3600
JUMPS = {2: HOUR, 6: -HOUR, 10: 0}  # seconds from the true time, after so many micro-batches

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.timeout(900),
    pytest.mark.skipif(COMPILER is None, reason="there is no C compiler to make a clock that jumps"),
]


@pytest.fixture
def clock(environment: dict[str, str], tmp_path: Path) -> Path:
    """A file of the seconds by which the clock of programs in this environment is wrong."""
    file, library = tmp_path / "clock", tmp_path / "clock.so"
    set_clock(file, 0)
    subprocess.check_call([str(COMPILER), "-O2", "-shared", "-fPIC", "-o", library, LIBRARY])
    environment |= {"LD_PRELOAD": str(library), "JUMPING_CLOCK": str(file)}
    return file


def set_clock(file: Path, seconds: int) -> None:
    if not file.exists():
        file.touch()
    with file.open("r+b") as opened:  # processes have mapped the file
        opened.write(seconds.to_bytes(8, "little", signed=True))


@pytest.mark.parametrize("program", [JOIN, FILTER, SESSION], ids=lambda program: program.name)
def test_the_clock_jumps(program: Program, tmp_path: Path, environment: dict[str, str], clock: Path) -> None:
    chain = next(chains(program, tmp_path, environment, "clock"))
    chain.start()
    for commits, seconds in JUMPS.items():
        assert chain.wait(lambda commits=commits: chain.commits() >= commits)  # type: ignore[misc]
        set_clock(clock, seconds)
    chain.wait(lambda: False)
    chain.finish()
    hours = {round((moment - time.time()) / HOUR) for moment in times_of_batches(chain)}
    assert hours == {-1, 0, 1}


def times_of_batches(chain: Chain) -> list[float]:
    """When micro-batches began, by the clock of the program."""
    files = (chain.folder / chain.program.checkpoint / "offsets").glob("[0-9]*")
    return [json.loads(file.read_text().splitlines()[1])["batchTimestampMs"] / 1000 for file in files]
