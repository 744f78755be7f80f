"""The properties that every experiment has."""

import json
import subprocess
import sys

import pytest

from thalweg.output import finite
from thalweg_lab.experiments import EXPERIMENTS, find
from thalweg_lab.experiments.experiment import Experiment
from thalweg_lab.parameter_sweep import reference

each = pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.id)


def test_ids_are_unique_and_can_be_file_names() -> None:
    ids = [experiment.id for experiment in EXPERIMENTS]
    assert len(set(ids)) == len(ids)
    assert all(name.replace("-", "").isalnum() and name != "report" for name in ids)


@each
def test_it_travels_to_a_worker(experiment: Experiment) -> None:
    assert reference(experiment.measure)
    for quick in (True, False):
        settings = experiment.settings(quick)
        assert settings
        assert json.loads(json.dumps(settings)) == finite(settings)


@each
def test_it_says_what_it_claims_in_one_line(experiment: Experiment) -> None:
    for text in (experiment.title, experiment.source, experiment.claim):
        assert text
        assert "\n" not in text
        assert not text.endswith(".")


def test_listing_imports_nothing_heavy() -> None:
    script = "import sys, thalweg_lab.experiments; print({'pyspark', 'numba', 'matplotlib'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_find_keeps_the_order_of_the_list() -> None:
    first, second = (Experiment(name, "t", "s", "c", lambda _: [], lambda _: [], lambda _: []) for name in "ab")
    assert find(["b", "a"], [first, second]) == [first, second]
    with pytest.raises(ValueError, match=r"there is no experiment x. The ids are: a, b."):
        find(["x"], [first, second])
