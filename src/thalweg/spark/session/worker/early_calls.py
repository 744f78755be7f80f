"""Python predicates that are asked before costly conditions which Spark evaluates, in a worker.

What they answer only tells for which rows a condition is evaluated. A row for which a predicate was not asked here, or
failed, is undecided: the predicate is asked for it when rows are taken in, if the row is still needed then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.ordering.types import Booleans, Integers
from thalweg.spark.filters.worker.judges import Judge, PredicateError
from thalweg.spark.filters.worker.view import View

OWN_WORD = -1  # the place of the whole number that is being made
PASSES, DECIDED = 0, 1  # bits of a call: the row may pass, and the predicate was asked and did not fail
BITS_OF_CALL = 2
MOST_CALLS = 31  # of a stream: two bits for each in a whole number

Mask = tuple[int, int]  # the place of a whole number, and the bits that have to be set


@dataclass(frozen=True)
class EarlyCall:
    """A predicate, asked for the rows in which all masks of one of `alternatives` are set."""

    judge: Judge
    alternatives: tuple[tuple[Mask, ...], ...]


@dataclass(frozen=True)
class EarlyCalls:
    """Asks the predicates of each stream; batches begin with the names of streams."""

    streams: tuple[tuple[str, tuple[EarlyCall, ...]], ...]

    def __call__(self, batches: Iterable[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        """For each row a whole number with the bits of the calls of its stream."""
        for batch in batches:
            yield pa.array(self._answers(batch))

    def _answers(self, batch: Sequence[pa.Array]) -> Integers:
        answers = np.zeros(len(batch[0]), np.int64)
        words = {OWN_WORD: answers}
        for stream, calls in self.streams:
            is_own = pc.equal(batch[0], stream).to_numpy(zero_copy_only=False)
            for number, call in enumerate(calls):
                rows = np.flatnonzero(is_own & _any_alternative(call, batch, words))
                if not rows.size:
                    continue
                answers[rows] |= _bits(call.judge, View(batch, rows)) << BITS_OF_CALL * number
        return answers


def _bits(judge: Judge, view: View) -> Integers:
    try:
        verdict = judge.judge(view)
    except PredicateError:  # it breaks its contract: that is told when it is asked again
        return np.full(len(view), 1 << PASSES, np.int64)
    failed = np.zeros(len(view), np.bool_) if verdict.failed is None else verdict.failed
    bits: Integers = (verdict.true | failed).astype(np.int64) << PASSES | (~failed).astype(np.int64) << DECIDED
    return bits


def _any_alternative(call: EarlyCall, batch: Sequence[pa.Array], words: dict[int, Integers]) -> Booleans:
    found = np.zeros(len(batch[0]), np.bool_)
    for masks in call.alternatives:
        holds = np.ones(len(found), np.bool_)
        for place, mask in masks:
            if place not in words:
                words[place] = batch[place].fill_null(0).to_numpy()
            holds &= (words[place] & mask) == mask
        found |= holds
    return found
