"""Kernels are plain Python until compiled, and give the same answers either way."""

import json
import subprocess
import sys

import pytest

SCRIPT = """
import json, sys
import numpy as np
from thalweg.kernels import compile_kernels, compiled
from thalweg.ordering import POLICIES

if sys.argv[1] == "compiled":
    compile_kernels()
answers = {}
for kind in POLICIES:
    random = np.random.default_rng(0)
    policy = kind(5, window=40, after={4: [0]}, seed=1)
    for _ in range(30):
        masks = random.integers(1, 32, 10)
        policy.update(masks, random.random((10, 5)))
        evaluated = np.array([2000, 900, 400, 200, 100])
        policy.observe(evaluated, random.binomial(evaluated, 0.5), evaluated * random.random(5))
    answers[kind.name] = [policy.order, policy.state.trace.tolist(), policy.state.counts.tolist(),
                          policy.profile.mean_times.tolist(), policy.sampler.probability]
print(json.dumps([compiled(), "numba" in sys.modules, answers]))
"""


def answers(mode: str) -> tuple[bool, bool, dict[str, list[object]]]:
    done = subprocess.run([sys.executable, "-c", SCRIPT, mode], capture_output=True, text=True, check=True)
    is_compiled, imported_numba, found = json.loads(done.stdout)
    return is_compiled, imported_numba, found


def test_plain_and_compiled_kernels_agree() -> None:
    plain, compiled = answers("plain"), answers("compiled")
    assert plain[:2] == (False, False)  # a short-lived worker never even imports Numba
    assert compiled[:2] == (True, True)
    for name, found in plain[2].items():
        *exact, times, probability = found
        assert compiled[2][name][:3] == exact
        assert compiled[2][name][3] == pytest.approx(times)
        assert compiled[2][name][4] == pytest.approx(probability)


def test_much_work_compiles_by_itself() -> None:
    script = (
        "from thalweg import kernels; from thalweg.ordering import AGreedy; policy = AGreedy(2, window=10)\n"
        "kernels.COMPILE_AFTER = 100\n"
        "policy.update([1] * 60); print(kernels.compiled()); policy.update([1] * 60); print(kernels.compiled())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_groups_are_compiled_by_themselves() -> None:
    script = (
        "from thalweg.kernels import ALONE, MJOIN, ORDERING, compile_kernels, compiled\n"
        "from thalweg.joinorder import sifting\n"
        "from thalweg.mjoin import index\n"
        "from thalweg.ordering import a_greedy\n"
        "compile_kernels(MJOIN)\n"
        "print([compiled(group) for group in (ORDERING, *ALONE)])\n"
        "print([type(one).__name__ for one in (a_greedy.adapt, sifting._sift, index._matches)])\n"
        "compile_kernels()\n"
        "print([compiled(group) for group in (ORDERING, *ALONE)])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    some, kinds, every = done.stdout.splitlines()
    assert some == "[False, False, True]"
    assert kinds == "['function', 'function', 'CPUDispatcher']"
    assert every == "[True, True, True]"
