"""What a run of the chaos tests is told by its environment."""

from __future__ import annotations

import os

SEED = int(os.environ.get("THALWEG_CHAOS_SEED", "0"))
SECONDS = float(os.environ.get("THALWEG_CHAOS_SECONDS", "0"))  # for all tests of kills together
CHAINS = int(os.environ.get("THALWEG_CHAOS_CHAINS", "1"))  # of each test, at least
KILLS = int(os.environ.get("THALWEG_CHAOS_KILLS", "6"))  # in a chain
REPORT = os.environ.get("THALWEG_CHAOS_REPORT")  # a file of JSON lines
