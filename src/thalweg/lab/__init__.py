"""The lab: the papers' experiments, and what runs and reports them."""

import difflib
from collections.abc import Sequence

from thalweg.lab.a_greedy import examples
from thalweg.lab.experiment import Experiment

EXPERIMENTS: tuple[Experiment, ...] = (examples.EXPERIMENT,)


def find(ids: Sequence[str], among: Sequence[Experiment] = EXPERIMENTS) -> list[Experiment]:
    """The experiments with these ids, in the order of the list.

    >>> [experiment.id for experiment in find(["examples"])]
    ['examples']
    """
    known = [experiment.id for experiment in among]
    for wanted in ids:
        if wanted not in known:
            close = difflib.get_close_matches(wanted, known, n=1)
            hint = f" Did you mean {close[0]}?" if close else ""
            raise ValueError(f"there is no experiment {wanted}.{hint} The ids are: {', '.join(known)}.")
    return [experiment for experiment in among if experiment.id in ids]
