"""drift-hub-first: drift with a smaller hub, which is taken in first and so meets only rows that came before it."""

from __future__ import annotations

from functools import partial

from thalweg_lab.benches.joins import drift

NAME = "drift-hub-first"
SETTING = drift.DriftSetting(NAME, 20_000, 1, 0.02, True, 1.4, 0.92, 5)  # noqa: FBT003 - a table of settings

measure = partial(drift.measure, setting=SETTING)
