"""What the processes of a Spark program hold: memory, open files, sockets, threads. Linux only."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")


def held_now(driver: int) -> Counter[str]:
    """What a driver holds, its JVM, and its Python workers with the daemons that fork them, by role and kind."""
    found: Counter[str] = Counter()
    for number, depth, is_java in _family(driver):
        role = "driver" if depth == 0 else "JVM" if is_java else "workers"
        try:
            memory = int(Path(f"/proc/{number}/statm").read_text().split()[1]) * PAGE
            opened = [_target(path) for path in Path(f"/proc/{number}/fd").iterdir()]
            threads = len(list(Path(f"/proc/{number}/task").iterdir()))
        except OSError:  # it has just ended
            continue
        sockets = sum(target.startswith("socket:") for target in opened)
        found[f"{role}: processes"] += 1
        found[f"{role}: memory"] += memory
        found[f"{role}: files"] += len(opened) - sockets
        found[f"{role}: sockets"] += sockets
        found[f"{role}: threads"] += threads
    return found


def _target(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except OSError:  # it has just been closed
        return ""


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
