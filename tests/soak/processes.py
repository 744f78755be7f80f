"""What the processes of a Spark program hold: memory, open files, threads. Linux only."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Held:
    """What some processes hold together."""

    processes: int = 0
    bytes: int = 0
    files: int = 0
    threads: int = 0

    def __add__(self, other: Held) -> Held:
        return Held(
            self.processes + other.processes,
            self.bytes + other.bytes,
            self.files + other.files,
            self.threads + other.threads,
        )


def held_now(driver: int) -> dict[str, Held]:
    """What a driver holds, its JVM, and its Python workers."""
    found = {"driver": Held(), "JVM": Held(), "workers": Held()}
    for number, depth, is_java in _family(driver):
        role = "driver" if depth == 0 else "JVM" if is_java else "workers"
        try:
            pages = int(Path(f"/proc/{number}/statm").read_text().split()[1])
            files = len(list(Path(f"/proc/{number}/fd").iterdir()))
            threads = len(list(Path(f"/proc/{number}/task").iterdir()))
        except OSError:  # it has just ended
            continue
        found[role] += Held(1, pages * PAGE, files, threads)
    return found


def _family(driver: int) -> list[tuple[int, int, bool]]:
    """A process and all that descend from it: number, depth, and whether it is a JVM."""
    children: dict[int, list[int]] = {}
    names: dict[int, str] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        number = int(path.parent.name)
        names[number] = name
        children.setdefault(int(rest.split()[1]), []).append(number)
    found, waiting = [], [(driver, 0)]
    while waiting:
        number, depth = waiting.pop()
        found.append((number, depth, names.get(number) == "java"))
        waiting += [(child, depth + 1) for child in children.get(number, ())]
    return found
