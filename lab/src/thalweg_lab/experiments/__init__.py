"""The papers' experiments, and the modules that run and report them."""

import difflib
from collections.abc import Sequence

from thalweg_lab.experiments.a_greedy import (
    adaptive_p,
    examples,
    fig9,
    fig10,
    fig11,
    fig12,
    fig13,
    fig14,
    fig15,
    fig16,
    fig17,
    fig18,
    fig19,
    fig20,
    fig21,
    table2,
)
from thalweg_lab.experiments.bcs import exp1, exp2, kinds, overhead, tuning
from thalweg_lab.experiments.cbr import calls, delay, quality, random_selectivities
from thalweg_lab.experiments.cbr import overhead as cbr_overhead
from thalweg_lab.experiments.experiment import Experiment
from thalweg_lab.experiments.om import om_erratic, om_granularity, om_many, om_single
from thalweg_lab.experiments.q_aware import q_aware, q_fab, q_fgreedy, q_treeopt

EXPERIMENTS: tuple[Experiment, ...] = (
    examples.EXPERIMENT,
    fig9.EXPERIMENT,
    fig10.EXPERIMENT,
    fig11.EXPERIMENT,
    table2.EXPERIMENT,
    fig12.EXPERIMENT,
    fig13.EXPERIMENT,
    fig14.EXPERIMENT,
    fig15.EXPERIMENT,
    fig16.EXPERIMENT,
    fig17.EXPERIMENT,
    fig18.EXPERIMENT,
    fig19.EXPERIMENT,
    fig20.EXPERIMENT,
    fig21.EXPERIMENT,
    adaptive_p.EXPERIMENT,
    tuning.EXPERIMENT,
    exp1.EXPERIMENT,
    exp2.EXPERIMENT,
    overhead.EXPERIMENT,
    kinds.EXPERIMENT,
    delay.EXPERIMENT,
    calls.EXPERIMENT,
    quality.EXPERIMENT,
    cbr_overhead.EXPERIMENT,
    random_selectivities.EXPERIMENT,
    q_fgreedy.EXPERIMENT,
    q_treeopt.EXPERIMENT,
    q_fab.EXPERIMENT,
    q_aware.EXPERIMENT,
    om_single.EXPERIMENT,
    om_erratic.EXPERIMENT,
    om_granularity.EXPERIMENT,
    om_many.EXPERIMENT,
)


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
