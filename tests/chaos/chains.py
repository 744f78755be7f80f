"""Chains of kills: a program is killed several times on the same folder, and left to finish; its results are exact.

How long a program takes to recover is the time from a kill to the end of the next micro-batch, with the new start of
Spark if the driver was killed; there is none if the program was killed again before.
"""

from __future__ import annotations

import json
import math
import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.programs import Process, Program
from tests.chaos.seeds import CHAINS, KILLS, REPORT, SECONDS, SEED

TESTS = 9  # of kills, which share the time
QUIET_SECONDS = 300.0  # without a micro-batch, after which a program is taken to hang
LOG_CHARACTERS = 20_000
POLL_SECONDS = 0.005
START_SHARE = 0.3  # of the kills at random come while the program starts
START_SECONDS = 8.0  # within which these kills come
RUNNING_SECONDS = 2.0  # after the first micro-batch, within which the other kills come
PAUSE_SECONDS = 1.0  # at most, between kills of the processes of a driver
LOCAL = "local[2]"
RETRIES = "local[2,8]"  # a local master that tries a task again, as clusters do
BUSY = "Python worker failed to connect back"  # Spark gives a worker ten seconds to start, on any machine

IsDue = Callable[[], bool]  # whether the moment of a kill has come


@dataclass
class Chain:
    """One folder of a program, and all kills so far: what was killed, and how many seconds the program took then."""

    program: Program
    folder: Path
    number: int
    random: random.Random
    environment: dict[str, str]
    master: str = LOCAL
    kills: list[tuple[str, float | None]] = field(default_factory=list)
    process: Process = field(init=False)  # the driver that runs

    def commits(self) -> int:
        """How many micro-batches are done."""
        return self.program.commits(self.folder)

    def start(self) -> None:
        self.process = self.program.start(self.folder, self.environment, self.master)

    def wait(self, is_due: IsDue) -> bool:
        """Wait for a moment; whether the program still runs. A program that Spark gave up is started again."""
        last, commits = time.monotonic(), self.commits()
        while not is_due():
            if self.process.poll() == 0:
                return False
            if self.process.poll() is not None:
                assert BUSY in self.log(), self.log()
                (self.folder / "program.log").rename(self.folder / f"gave-up-{time.monotonic()}.log")
                self.start()
            if self.commits() > commits:
                last, commits = time.monotonic(), self.commits()
            assert time.monotonic() - last < QUIET_SECONDS, f"nothing happens: {self.log()}"
            time.sleep(POLL_SECONDS)
        return True

    def finish(self) -> None:
        """Compare the results, and report the kills."""
        self.program.check(self.folder)
        if REPORT:
            with Path(REPORT).open("a") as file:
                for killed, seconds in self.kills:
                    about = {"killed": killed, "program": self.program.name, "seconds": seconds}
                    print(json.dumps(about | {"seed": SEED, "chain": self.number}), file=file)

    def log(self) -> str:
        """The last lines that the program has written."""
        return (self.folder / "program.log").read_text()[-LOG_CHARACTERS:]


def chains(
    program: Program, folder: Path, environment: dict[str, str], kind: str, master: str = LOCAL
) -> Iterator[Chain]:
    """Chains on folders of their own, until the time of a test is over."""
    deadline, number = time.monotonic() + SECONDS / TESTS, 0
    while number < CHAINS or time.monotonic() < deadline:
        own = folder / f"chain-{number}"
        own.mkdir()
        program.write_input(own)
        seed = f"{SEED} {program.name} {kind} {number}"
        yield Chain(program, own, number, random.Random(seed), environment, master)  # noqa: S311 - no secret
        number += 1


# ---------------------------------------------------------------------------------------------------- kills of drivers


def kill_the_driver(chain: Chain, killed: str, moment: Callable[[Chain], IsDue]) -> None:
    """Kill the program and start it again, several times."""
    recovered = Recovery(chain)
    for _ in range(KILLS):
        is_due = moment(chain)
        chain.start()
        if not chain.wait(recovered.noted(is_due)):
            break  # all files are read
        os.killpg(chain.process.pid, signal.SIGKILL)
        chain.process.wait()
        recovered.begin(killed if is_due() else "driver")  # it may have missed the moment
    chain.start()
    chain.wait(recovered.noted(lambda: False))
    chain.finish()
    assert chain.kills


@dataclass
class Recovery:
    """Notes when the program has done a micro-batch after a kill."""

    chain: Chain
    since: float | None = None  # the last kill, as long as it is not recovered from
    commits: int = 0  # at that time

    def begin(self, killed: str) -> None:
        self.since, self.commits = time.monotonic(), self.chain.commits()
        self.chain.kills.append((killed, None))

    def noted(self, is_due: IsDue) -> IsDue:
        """The same moment; to ask for it notes whether the program has recovered."""

        def noting() -> bool:
            if self.since is not None and self.chain.commits() > self.commits:
                killed, _ = self.chain.kills[-1]
                self.chain.kills[-1] = killed, time.monotonic() - self.since
                self.since = None
            return is_due()

        return noting


def at_random(chain: Chain) -> IsDue:
    """While the program starts and recovers, or within seconds after its first micro-batch."""
    numbers, commits = chain.random, chain.commits()
    is_early = numbers.random() < START_SHARE
    seconds = numbers.uniform(0, START_SECONDS if is_early else RUNNING_SECONDS)
    due = time.monotonic() + seconds if is_early else math.inf

    def is_due() -> bool:
        nonlocal due
        if due == math.inf and chain.commits() > commits:
            due = time.monotonic() + seconds
        return time.monotonic() > due

    return is_due


def between_commits(chain: Chain) -> IsDue:
    """After the state of a micro-batch was committed, and before its results are."""
    first, start = chain.commits() + chain.random.randrange(3), time.time()
    state = chain.folder / chain.program.checkpoint / "state" / "0"

    def is_due() -> bool:
        done = chain.commits()
        # Version n + 1 is the state after micro-batch n. A run before may have left the file.
        versions = state.glob(f"*/{done + 1}[._]*") if done >= first else ()
        return any(path.stat().st_mtime > start for path in versions)

    return is_due


# --------------------------------------------------------------------------------- kills of the processes of a driver


def kill_processes(chain: Chain, kinds: Mapping[str, Callable[[Chain], bool]]) -> None:
    """Kill processes of a program that goes on, each kind in turn; a function kills a process, if it finds any."""
    recovered = Recovery(chain)
    chain.start()
    chain.wait(lambda: chain.commits() > 0)
    for killed, kill in list(kinds.items()) * KILLS:
        pause = time.monotonic() + chain.random.uniform(0, PAUSE_SECONDS)
        if not chain.wait(lambda pause=pause: time.monotonic() > pause):  # type: ignore[misc]
            break
        if kill(chain):
            recovered.begin(killed)
            chain.wait(recovered.noted(lambda: recovered.since is None))
    chain.wait(lambda: False)
    chain.finish()
    assert {killed for killed, _ in chain.kills} == kinds.keys()


def kill_one(chain: Chain, processes: Sequence[int]) -> bool:
    """Kill one of some processes, at random."""
    if not processes:
        return False
    os.kill(chain.random.choice(processes), signal.SIGKILL)
    return True


def kill_worker(chain: Chain) -> bool:
    processes = python_processes(chain.process.pid)
    return kill_one(chain, [number for number, parent in processes.items() if parent in processes])


def kill_daemon(chain: Chain) -> bool:
    processes = python_processes(chain.process.pid)
    return kill_one(chain, [number for number, parent in processes.items() if parent not in processes])


def kill_owner(chain: Chain) -> bool:
    return kill_at(chain, chain.random.choice(["owner before its step", "owner after its step"]))


def kill_asking_worker(chain: Chain) -> bool:
    return kill_at(chain, "asking worker")


def kill_at(chain: Chain, moment: str) -> bool:
    """Have the next worker that comes to a moment kill itself: see `killable_daemon.py`."""
    told = Path(chain.environment["THALWEG_CHAOS_MOMENTS"], moment)
    told.touch()
    was_killed = chain.wait(lambda: not told.exists())
    told.unlink(missing_ok=True)
    return was_killed


def python_processes(driver: int) -> dict[int, int]:
    """The Python processes that Spark has started for a driver, with their parents: daemons fork workers."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            number = int(path.parent.name)
            if b"pyspark.worker" in path.read_bytes() and os.getsid(number) == driver:
                found[number] = int(path.with_name("stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    return dict(sorted(found.items()))
