import numpy as np
import pytest

from thalweg_lab.experiments.cbr.contest import CONTESTANTS, ROUTERS, SELECTIVITY, contest, rows_of
from thalweg_lab.experiments.cbr.stream import SKEWS, A, B, Stream, diagonal


@pytest.mark.parametrize("operators", B)
def test_all_operators_of_table_6_pass_about_five_per_cent_together(operators: int) -> None:
    for a, b in zip(A, B[operators], strict=True):
        assert a / 100 * (b / 100) ** (operators - 1) == pytest.approx(0.05, abs=0.005)


def test_so_do_those_of_table_3() -> None:
    for a, b in SKEWS:
        assert a / 100 * (b / 100) ** 2 == pytest.approx(0.05, abs=0.002)


def test_a_stream_has_its_selectivities_and_tells_them_only_by_its_classifier() -> None:
    stream = Stream(diagonal(4, 0.15, 0.69), seed=3)
    tuples = stream.next(50_000)
    passes = (tuples.masks[:, None] >> np.arange(4)) & 1 == 0
    for number in range(4):
        assert passes[tuples.values[:, 0] == number].mean(axis=0) == pytest.approx(
            stream.selectivities[number], abs=0.02
        )
    assert len(stream.attributes) == tuples.values.shape[1] == 4 + 3
    assert stream.next(1).values[0, 2] == 50_000  # the sequence number goes on
    odd = tuples.values[:, 3] % 2 == 1
    assert passes[odd].mean(axis=0) == pytest.approx(passes[~odd].mean(axis=0), abs=0.02)


def test_all_contestants_route_the_same_tuples() -> None:
    counts = contest(Stream(diagonal(3, 0.05, 1.0)), 20_000, CONTESTANTS)
    rows = rows_of(counts, operators=3)
    assert [row["router"] for row in rows] == list(CONTESTANTS)
    assert all(counted.tuples == 20_000 and counted.late_tuples == 10_000 for counted in counts.values())
    assert all(1 <= row["calls"] <= 3.2 for row in rows)
    assert next(row["fewer"] for row in rows if row["router"] == SELECTIVITY) == 0
    assert all(counts[name].nbytes > 0 for name in ROUTERS)


def test_one_seed_one_count() -> None:
    first, second = (contest(Stream(diagonal(2, 0.1, 0.9), 5), 10_000, CONTESTANTS, seed=2) for _ in range(2))
    assert [counted.calls for counted in first.values()] == [counted.calls for counted in second.values()]
