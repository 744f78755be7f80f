"""What `thalweg run` prints of a micro-batch, in short lines: the rounds that ended, and their results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from thalweg.spark.session.logs import BatchRecord, ServedRounds

SHOWN_QUERIES = 10  # of those with rounds that ended; the others are summed up


def batch_lines(record: BatchRecord, names: Mapping[str, str]) -> Iterator[str]:
    r"""One micro-batch for people to read; `names` has the queries by their tokens.

    The queries with most results come first. All rounds of a query that ended are one line, with the end of the last.

    >>> record = BatchRecord(
    ...     3, 12_000, {"count": 0.2, "compute": 1.0}, {"t": ServedRounds(2, 40)}, ends={"t": 1_700_000_000_500_000}
    ... )
    >>> print(*batch_lines(record, {"t": "web"}), sep="\n")
    micro-batch 3: 12,000 rows in 1.2 s
      web: 2 rounds, 40 results, until 2023-11-14 22:13:20.5 UTC
    """
    yield f"micro-batch {record.number}: {record.rows:,} rows in {sum(record.seconds.values()):.1f} s" + (
        "" if record.served else "; no round has ended"
    )
    by_results = sorted(record.served, key=lambda token: -record.served[token].rows)
    shown = by_results[:SHOWN_QUERIES] if len(by_results) > SHOWN_QUERIES + 1 else by_results
    for token in shown:
        end = f", until {_time(record.ends[token])}" if token in record.ends else ""
        yield f"  {names.get(token, token)}: {_counts(record.served[token])}{end}"
    others = [record.served[token] for token in by_results[len(shown) :]]
    if others:
        counts = _counts(ServedRounds(sum(each.rounds for each in others), sum(each.rows for each in others)))
        yield f"  {len(others):,} more queries: {counts}"


def _counts(service: ServedRounds) -> str:
    return f"{_several(service.rounds, 'round')}, {_several(service.rows, 'result')}"


def _several(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _time(microseconds: int) -> str:
    """A time with as many digits as it needs; NumPy knows years that Python does not."""
    return str(np.datetime64(microseconds, "us")).replace("T", " ").rstrip("0").rstrip(".") + " UTC"
