"""Detection is the same whether kernels are compiled or not, and imports nothing heavy."""

import json
import subprocess
import sys

SCRIPT = """
import json, sys
import numpy as np
from thalweg.drift import Watched
from thalweg.kernels import compile_kernels
from thalweg.ordering import AGreedy

if sys.argv[1] == "compiled":
    compile_kernels()
random = np.random.default_rng(0)
bits = np.vstack([random.random((1500, 3)) < drops for drops in ([0.8, 0.3, 0.1], [0.1, 0.3, 0.7])])
watched = Watched(AGreedy(3, window=2000), "bcs")
watched.update(bits @ [1, 2, 4], random.gamma(4, 0.25, (3000, 3)))
changes = [(drift.seen, drift.at, drift.filter, round(drift.before, 6), drift.order_after) for drift in watched.changes]
heavy = sorted({"numba", "river", "scipy", "pyspark"} & set(sys.modules))
print(json.dumps([heavy, changes]))
"""


def test_plain_and_compiled_detection_agree() -> None:
    runs = {}
    for mode in ("plain", "compiled"):
        done = subprocess.run([sys.executable, "-c", SCRIPT, mode], capture_output=True, text=True, check=True)
        runs[mode] = json.loads(done.stdout)
    assert runs["plain"][0] == []  # a short-lived worker imports none of it
    assert "numba" in runs["compiled"][0]
    assert runs["plain"][1] == runs["compiled"][1]
    assert len(runs["plain"][1]) == 1
