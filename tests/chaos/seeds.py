"""What a run of the chaos tests is told by its environment."""

from __future__ import annotations

import os

SEED = int(os.environ.get("THALWEG_CHAOS_SEED", "0"))
SECONDS = float(os.environ.get("THALWEG_CHAOS_SECONDS", "60"))  # for all kinds of kills together
TRIES = int(os.environ.get("THALWEG_CHAOS_TRIES", "1"))  # of each kind of kill, at least
REPORT = os.environ.get("THALWEG_CHAOS_REPORT")  # a file of JSON lines
