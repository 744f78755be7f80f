from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from thalweg_lab.benches.session.work import STREAMS
from thalweg_lab.demo import screening, standing, traffic
from thalweg_lab.demo.in_turns import Tables

FILTERS = (
    lambda row: screening.score(row["body"]) > 0,
    lambda row: screening.sign(row["body"]) != row["signature"],
    lambda row: "new" in row["link"],
    lambda row: screening.MONEY.search(row["body"]) is not None,
    lambda row: row["sender"] not in screening.KNOWN_SENDERS,
)


def test_messages_have_the_shares_that_are_said() -> None:
    messages = screening.Messages(seed=1)
    for phase, shares in enumerate(screening.PHASES):
        rows = messages.make(phase, phase)["messages"].slice(0, 2000).to_pylist()
        found = [np.mean([keeps(row) for row in rows]) for keeps in FILTERS]
        assert found == pytest.approx(shares, abs=0.05)


@pytest.mark.parametrize("make", [screening.Messages(3).make, partial(traffic.make_reports, 3)])
def test_a_seed_gives_the_same_rows(make: Callable[[int, int], Tables]) -> None:
    first, again, other = make(1, 0), make(1, 0), make(2, 0)
    assert first == again
    assert first != other


def test_routers_have_seen_the_shares_that_are_said() -> None:
    tables = traffic.make_reports(0, 5, 1)
    found = [tables[router].num_rows / traffic.PACKETS for router in traffic.ROUTERS]
    assert found == pytest.approx(traffic.SEEN_BY[1], abs=0.02)


def test_calls_are_counted_with_profiling() -> None:
    about = {"predicates": [{"rows_seen": 100}, {"rows_seen": 40}], "profiling_evaluations": 10, "rows": 100}
    assert screening.calls_of(about) == 1.5


def test_in_each_phase_another_stream_is_scarce() -> None:
    for phase in range(3):
        rows = [standing.make_packets(stream, 0, phase, 0).num_rows for stream in STREAMS]
        assert int(np.argmin(rows)) == phase
