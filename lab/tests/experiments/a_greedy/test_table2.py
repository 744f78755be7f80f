import pytest

from thalweg_lab.experiments.a_greedy.table2 import EXPERIMENT, PAPER, PARTS, judge
from thalweg_lab.experiments.experiment import Row


def papers_rows() -> list[Row]:
    return [
        {"filters": n, "p": p, "seed": 0, "rest": 0.0, "corrections": 0.0}
        | {part: percent / 100 for part, percent in zip(PARTS, percents, strict=True)}
        for (n, p), percents in PAPER.items()
    ]


def test_the_papers_own_table_holds() -> None:
    results = judge(papers_rows())
    assert len(results) == 8
    assert all(result.holds for result in results)


def test_dear_bookkeeping_is_reported() -> None:
    rows = papers_rows()
    rows[3]["violations"] += 0.01
    assert [result.holds for result in judge(rows)] == [True] * 7 + [False]


def test_creation_unlike_the_papers_is_reported() -> None:
    rows = papers_rows()
    rows[0]["creation"] *= 3
    assert [result.holds for result in judge(rows)] == [False] + [True] * 7


def test_a_tiny_measurement() -> None:
    setting = EXPERIMENT.settings(True)[1]  # noqa: FBT003
    rows = EXPERIMENT.measure(setting | {"p": 0.2, "policies": {"a-greedy": 2}, "turns": 4})
    assert len(rows) == 2
    for row in rows:
        assert sum(row[part] for part in (*PARTS, "rest")) == pytest.approx(1)
        assert row["processing"] > 0
        assert row["creation"] > 0
