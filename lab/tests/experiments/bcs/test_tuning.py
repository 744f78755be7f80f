import numpy as np
import pytest

from thalweg_lab.experiments.bcs import tuning
from thalweg_lab.experiments.bcs.tuning import GRID, HS, LEAST_CHANGE, PERIOD, judge, judged, measure, settings, stream
from thalweg_lab.experiments.experiment import Row


def rows(tuned: dict[str, tuple[float, float]], falling: tuple[float, ...]) -> list[Row]:
    found: list[Row] = [
        {"detector": name, "precision": precision, "recall": recall} for name, (precision, recall) in tuned.items()
    ]
    return found + [
        {"detector": GRID, "h": h, "precision": 1 - recall, "recall": recall}
        for h, recall in zip(HS, falling, strict=True)
    ]


PAPER = {"bcs": (0.63, 0.92), "bcs, confirmed": (0.9, 0.95), "bcs, zeta .95": (0.8, 0.8)} | tuning.RIVALS


def test_figures_like_the_papers_hold() -> None:
    assert all(result.holds for result in judge(rows(PAPER, (0.95, 0.9, 0.8, 0.6, 0.3))))


def test_figures_unlike_the_papers_do_not() -> None:
    other = PAPER | {"bcs": (0.5, 0.8), "adwin": (0.9, 0.7), "martingale": (0.9, 0.5), "bcs, confirmed": (0.5, 0.5)}
    assert not any(result.holds for result in judge(rows(other, (0.5, 0.6, 0.7, 0.8, 0.9))))


def test_the_first_detection_after_a_change_is_right() -> None:
    assert judged([[1, 2, 3]], changes=3) == {"precision": 1.0, "recall": 1.0}
    assert judged([[0, 1, 1], []], changes=2) == {"precision": 1 / 3, "recall": 0.25}
    assert judged([[]], changes=2) == {"precision": 1.0, "recall": 0.0}


def test_a_stream_changes_every_period() -> None:
    counts = stream(0, changes=3, k=20).reshape(4, PERIOD // 20)
    rates = counts.mean(axis=1) / 20
    assert (np.abs(np.diff(rates)) > LEAST_CHANGE - 0.03).all()


@pytest.mark.parametrize("setting", settings(True), ids=lambda setting: setting["detector"])  # noqa: FBT003
def test_a_tiny_measurement(setting: dict[str, object]) -> None:
    tiny = setting | {"changes": 2, "streams": 1} | ({"hs": [25], "nus": [5]} if "hs" in setting else {})
    [row] = measure(tiny)
    assert row["detector"] == setting["detector"]
    assert 0 <= row["precision"] <= 1
    assert 0 <= row["recall"] <= 1


def test_the_full_grid_is_the_papers() -> None:
    full = [setting for setting in settings(False) if setting["detector"] == GRID]  # noqa: FBT003
    assert sum(len(setting["hs"]) * len(setting["nus"]) for setting in full) == 625
