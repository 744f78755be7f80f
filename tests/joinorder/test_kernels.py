"""Planners give the same orders with plain and with compiled kernels."""

import json
import subprocess
import sys

import pytest

SCRIPT = """
import json, sys
import numpy as np
from thalweg.joinorder import PLANNERS, Measure, GraphShape, random_graph
from thalweg.kernels import compile_kernels, compiled

if sys.argv[1] == "compiled":
    compile_kernels()
random = np.random.default_rng(0)
graphs = [random_graph(shape, 6, random) for shape in GraphShape]
orders = [kind().plan(graph, measure).sequences for kind in PLANNERS for graph in graphs for measure in Measure]
print(json.dumps([compiled("joinorder"), "numba" in sys.modules, "sqlglot" in sys.modules, orders]))
"""


def answers(mode: str) -> list[object]:
    done = subprocess.run([sys.executable, "-c", SCRIPT, mode], capture_output=True, text=True, check=True)
    found: list[object] = json.loads(done.stdout)
    return found


@pytest.mark.timeout(120)
def test_plain_and_compiled_kernels_agree() -> None:
    plain, compiled = answers("plain"), answers("compiled")
    assert plain[:3] == [False, False, False]  # nor does planning import the parser
    assert compiled[:3] == [True, True, False]
    assert plain[3] == compiled[3]
