"""Multi-way window joins (MJoin), vectorised on Arrow and NumPy, with probe orders that adapt; knows nothing of Spark.

A `Cell` holds the windows of all inputs of a `JoinQuery` and takes in new rows step by step. (a-greedy-2004, section 8;
q-aware-join-ordering-2009, section 2)
"""

from __future__ import annotations

from thalweg.mjoin.cell import Cell
from thalweg.mjoin.query import CHANGE, EVENT_TIME, CountWindow, Input, JoinQuery, Residual, TimeWindow
from thalweg.mjoin.step import Statistics, Step
from thalweg.mjoin.window import BEGINNING

__all__ = [
    "BEGINNING",
    "CHANGE",
    "EVENT_TIME",
    "Cell",
    "CountWindow",
    "Input",
    "JoinQuery",
    "Residual",
    "Statistics",
    "Step",
    "TimeWindow",
]
