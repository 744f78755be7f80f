"""Prints the table of kills in docs/faults.md: `python -m tests.chaos.report build/chaos.jsonl`."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path


def main(file: str) -> None:
    kills = [json.loads(line) for line in Path(file).read_text().splitlines()]
    print("| killed | of a | kills | chains | median seconds | most seconds |\n|---|---|---|---|---|---|")  # noqa: T201 - a program
    for killed, program in sorted({(kill["killed"], kill["program"]) for kill in kills}):
        own = [kill for kill in kills if (kill["killed"], kill["program"]) == (killed, program)]
        chains = {(kill["seed"], kill["chain"]) for kill in own}
        seconds = [kill["seconds"] for kill in own if kill["seconds"] is not None]
        times = f"{statistics.median(seconds):.0f} | {max(seconds):.0f}" if seconds else "|"
        print(f"| {killed} | {program} | {len(own)} | {len(chains)} | {times} |")  # noqa: T201 - a program


if __name__ == "__main__":
    main(*sys.argv[1:])
