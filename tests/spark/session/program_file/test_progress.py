from __future__ import annotations

from thalweg.spark.session.logs import BatchRecord, ServedRounds
from thalweg.spark.session.program_file.progress import SHOWN_QUERIES, batch_lines

END = 1_700_000_000_000_000  # microseconds


def test_many_queries_are_summed_up_in_lines_that_fit_a_terminal() -> None:
    names = {str(number): f"a_query_of_a_host_{number}" for number in range(100)}
    served = {token: ServedRounds(12, 1_000 * int(token)) for token in names}
    ends = dict.fromkeys(names, END)
    lines = list(batch_lines(BatchRecord(1_000, 12_345_678, {"compute": 12.3}, served, ends=ends), names))
    assert len(lines) == 1 + SHOWN_QUERIES + 1
    assert max(map(len, lines)) <= 80
    assert lines[1] == "  a_query_of_a_host_99: 12 rounds, 99,000 results, until 2023-11-14 22:13:20 UTC"
    assert lines[-1] == "  90 more queries: 1,080 rounds, 4,005,000 results"


def test_a_single_query_is_not_summed_up() -> None:
    served = {str(number): ServedRounds(1, 1) for number in range(SHOWN_QUERIES + 1)}
    lines = list(batch_lines(BatchRecord(0, 1, {}, served), {}))
    assert lines[1:] == [f"  {token}: 1 round, 1 result" for token in served]


def test_a_micro_batch_in_which_no_round_ended() -> None:
    assert list(batch_lines(BatchRecord(7, 0, {"compute": 0.04}, {}), {})) == [
        "micro-batch 7: 0 rows in 0.0 s; no round has ended"
    ]
