from thalweg_lab.experiments.a_greedy.examples import EXPERIMENT, SIZES


def test_all_claims_hold() -> None:
    rows = [row for setting in EXPERIMENT.settings(True) for row in EXPERIMENT.measure(setting)]  # noqa: FBT003
    results = EXPERIMENT.judge(rows)
    assert len(results) == 4 + 3 + 4 * len(SIZES)
    assert [result for result in results if not result.holds] == []
