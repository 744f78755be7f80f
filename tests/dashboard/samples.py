"""Descriptions of runs, as `tw.explain(...).to_dict()` has them, for tests without Spark."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

NAMES = ("is suspicious", "amount > 100", "is new")
HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>'\"&\u202e"


def where(
    rows: int = 1000, order: Sequence[str] = NAMES, written: Sequence[str] = NAMES, **other: object
) -> dict[str, Any]:
    """A `tw.where` that has seen so many rows."""
    seen = [rows, rows // 2, rows // 4]
    predicates = [
        {
            "name": name,
            "runs_in": "Python",
            "rows_seen": count,
            "dropped": count // 2,
            "failed": 0,
            "seconds": 1e-5 * count,
            "cost": 1e-5 * (place + 1),
            "drop_rate": 0.5,
            "profile_drop_share": 0.5,
        }
        for place, (name, count) in enumerate(zip(order, seen, strict=False))
    ]
    return {
        "key": "0123456789ab",
        "policy": "a-greedy",
        "order": list(order),
        "as_written": list(written),
        "why": "the order of the sample",
        "predicates": predicates,
        "rows": rows,
        "kept": rows // 8,
        "costs": [
            {
                "predicates": list(written),
                "order": list(order),
                "profile_tuples": 100,
                "now": 2e-5,
                "as_written": 8e-5,
                "optimal": 2e-5,
                "optimal_order": list(order),
                "matrix": [[50, 30, 20], [0, 25, 10], [0, 0, 5]],
            }
        ],
        "changes": [],
        "routing": None,
        "drift": [],
        "notes": [],
        **other,
    }


def change(at: float, before: Sequence[str], after: Sequence[str]) -> dict[str, Any]:
    """A change of the order of predicates."""
    why = f"{after[0]} drops more per cost than {before[0]}"
    return {"at": at, "rows": 500, "before": list(before), "after": list(after), "why": why}


def drift(at: float, predicate: str, before: Sequence[str], after: Sequence[str]) -> dict[str, Any]:
    """A change in the data that a detector has found."""
    orders = {"order_before": list(before), "order_after": list(after)}
    return {"at": at, "kind": "drop rate", "predicate": predicate, "before": 0.9, "after": 0.1, "dropped": 400} | orders


def routing(names: Sequence[str] = NAMES) -> dict[str, Any]:
    """Classes of rows, by the column `country`."""
    classes = [
        {"class": 0, "values": [], "cells": None, "order": list(names)},
        {"class": 1, "values": ["NL", "DK"], "cells": 2, "order": list(reversed(names))},
    ]
    stage = {
        "runs_in": "Python",
        "classifier": {"attributes": ["country"], "by": ["value"]},
        "classes": classes,
        "benefit": {"saving": 0.31, "error": 0.04, "overhead": 0.01},
        "profile_tuples": 800,
        "candidates": [],
    }
    return {"considered": ["country"], "left_out": {}, "off": None, "stages": [stage], "memory_bytes": 20_000}


def join(rows: int = 1000, inputs: Sequence[str] = ("R1", "R2", "R3", "R4"), **other: object) -> dict[str, Any]:
    """A `tw.join` whose inputs have had so many rows each."""
    pairs = itertools.pairwise(inputs)
    return {
        "key": "ba9876543210",
        "shape": "linear",
        "edges": [{"left": left, "right": right, "selectivity": 0.004} for left, right in pairs],
        "rates": dict.fromkeys(inputs, 250.0),
        "inputs": {name: {"rows": rows, "late": 3, "rows_in_state": rows // 2, "window": "0:10:00"} for name in inputs},
        "progress": {"lag_seconds": 2.5, "batch_seconds": 0.4},
        "cells": 8,
        "replication": 1.5,
        "orders": {
            name: [{"order": [each for each in inputs if each != name], "drop_probing": False, "cells": 8}]
            for name in inputs
        },
        "results": rows // 10,
        "cell_rows": [rows // 8 + 40 * number for number in range(8)],
        "heaviest": 1.4,
        "split": {
            "generation": 1,
            "from_batch": 3,
            "old_rows": 0,
            "heavy": [{"columns": ["R1.pid", "R2.pid"], "share": 0.3, "spread": inputs[0]}],
        },
        "notes": [],
        "state_bytes": 3_000_000,
        "state_segments": 12,
        "memory_bytes": 5_000_000,
        "switches": [
            {
                "cell": 0,
                "step": 4,
                "input": inputs[0],
                "before": list(inputs[1:]),
                "after": list(reversed(inputs[1:])),
                "reason": f"{inputs[-1]} has fewer matches than {inputs[1]}",
            }
        ],
        **other,
    }


def session(rows: int = 1000, names: Sequence[str] = ("alarms", "traffic"), **other: object) -> dict[str, Any]:
    """A `tw.Session` that has had so many rows."""
    charts = [
        {
            "up": {"name": "selectivity of TCP", "low": 0.0, "high": 1.0},
            "right": {"name": "rate of TCP", "low": 10.0, "high": 90.0},
            "plans": [[0 if row + part < 9 else 1 for part in range(10)] for row in range(10)],
            "here": [0.1 + 0.8 * (rows % 7) / 7, 0.6],
            "trail": [[0.2, 0.3], [0.3, 0.5]],
        }
    ]
    queries = [
        {
            "name": name,
            "text": f"SELECT * FROM TCP WHERE host = {place} WINDOW [1]",  # noqa: S608 - shown alone
            "status": "served",
            "rounds": rows // 100,
            "rows": rows // 20,
            "late_rows": 0,
            "moves": 4,
            "switches": 1,
            "fidelity": 0.9,
            "charts": charts,
            "switched": [
                {
                    "round": 7,
                    "before": "a" * 16,
                    "after": "b" * 16,
                    "steps_before": ["Select `TCP`.`host` = 2", "Project TCP: host, size"],
                    "steps_after": ["Project TCP: host, size", "Select `TCP`.`host` = 2"],
                    "why": "rates or selectivities moved to another region",
                }
            ],
        }
        for place, name in enumerate(names)
    ]
    return {
        "key": "aaaabbbbcccc",
        "rows": rows,
        "batches": rows // 100,
        "lag_seconds": 1.5,
        "memory": {"cap": 10_000_000, "wanted": 4_000_000, "held": 3_000_000, "held_now": 3_000_000, "in_turns": []},
        "queries": queries,
        **other,
    }
