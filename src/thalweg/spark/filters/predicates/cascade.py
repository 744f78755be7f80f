"""Predicates decided by a cheap score where it is confident, and otherwise by a costly predicate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from thalweg.keywords import checks_keywords
from thalweg.spark.filters.forms import PythonForm
from thalweg.spark.filters.predicates.base import (
    OPTIONS,
    Analysis,
    Predicate,
    as_predicate,
    checked_options,
    inherited,
    is_udf,
)
from thalweg.spark.filters.predicates.digests import code_digest
from thalweg.spark.filters.predicates.function import FunctionPredicate, check_pickles, predicate_of
from thalweg.spark.filters.worker.cascade.judge import CascadeJudge, Score, WaitingCascadeJudge
from thalweg.spark.filters.worker.cascade.proxy import Proxy
from thalweg.spark.filters.worker.cascade.thresholds import Promise, Thresholds
from thalweg.spark.filters.worker.judges import Judge, Takes
from thalweg.spark.filters.worker.waiting.judge import Waits

CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True, eq=False)
class CascadePredicate(Predicate):
    """A costly predicate that is asked only for rows that a cheap score does not decide."""

    score: FunctionPredicate
    costly: Predicate
    thresholds: Thresholds | None
    promise: Promise | None

    @property
    def columns(self) -> tuple[str, ...]:  # noqa: D102 - as the base has it
        return self.score.on

    @property
    def members(self) -> tuple[Predicate, ...]:  # noqa: D102
        return (self.costly,)

    def with_members(self, members: Sequence[Predicate]) -> Predicate:  # noqa: D102
        (costly,) = members
        return replace(self, costly=costly)

    @property
    def details(self) -> tuple[object, ...]:  # noqa: D102
        return self.score.on, code_digest(self.score.function), self.thresholds, self.promise

    def check_can_be_sent(self) -> None:
        """Refuse a score that cannot be pickled."""
        check_pickles(self.name, self.score.function)

    def in_python(self, analysis: Analysis) -> PythonForm:  # noqa: D102
        form = self.costly.form_in_worker(analysis)
        make = partial(
            _cascade_judge,
            self.name,
            (self.score.name, self.score.function, self.score.takes),
            form.make,
            len(self.score.on),
            (self.thresholds, self.promise),
        )
        return PythonForm((*self.score.on, *form.columns), form.codes, make, waits=form.waits)


@checks_keywords("tw.cascade", *OPTIONS)
def cascade(
    cheap_score: Callable[..., Any],
    costly: Any,  # noqa: ANN401 - a predicate, as in `where`
    *,
    accept: float | None = None,
    reject: float | None = None,
    precision: float | None = None,
    recall: float | None = None,
    confidence: float | None = None,
    name: str | None = None,
    **options: Any,  # noqa: ANN401 - those of every predicate
) -> CascadePredicate:
    """Ask a costly predicate only where a cheap score is not sure. The result is approximate: it is asked for by name.

    Parameters
    ----------
    cheap_score
        A function that returns a number for each row, higher for rows that the costly predicate is likelier to keep; or
        `tw.predicate` of such a function, to name its columns. A row without a score goes to the costly predicate.
    costly
        Any predicate.
    accept, reject
        Rows with a score of at least `accept` are kept, and rows with a score below `reject` are not.
    precision, recall, confidence
        Instead: learn both thresholds from rows that both judge, such that with this confidence at least the share
        `precision` of the kept rows is kept by the costly predicate as well, and at least the share `recall` of the
        rows that it keeps is kept. Until thresholds are found that surely hold this, the costly predicate judges all
        rows. Later some rows are judged by both, and thresholds that hold no more are learnt anew. Each worker learns
        for itself from its own rows.

    Examples
    --------
    >>> def score(text: str) -> float:
    ...     return text.count("!") / 10
    >>> cascade(score, "length(text) > 5", accept=0.9, reject=0.1).name
    'score, else length(text) > 5'
    """
    thresholds, promise = _decision(accept, reject, precision, recall, confidence)
    scored = _score(cheap_score)
    decided = as_predicate(costly)
    shown = name or f"{scored.name}, else {decided.name}"
    return CascadePredicate(
        name=shown,
        score=scored,
        costly=decided,
        thresholds=thresholds,
        promise=promise,
        **inherited((decided,), checked_options(options)),
    )


def _decision(
    accept: float | None, reject: float | None, precision: float | None, recall: float | None, confidence: float | None
) -> tuple[Thresholds | None, Promise | None]:
    if accept is not None and reject is not None and precision is None and recall is None:
        if confidence is not None:
            raise TypeError(
                "confidence= is for thresholds that are learnt: take it off, or write precision= and recall="
            )
        for threshold, option in ((accept, "accept"), (reject, "reject")):
            if not _is_number(threshold):
                raise ValueError(f"{option}= is a score, such as {option}=0.5, not {threshold!r}")
        if not reject <= accept:
            raise ValueError(f"reject= is at most accept=, not {reject!r} above {accept!r}")
        return Thresholds(accept, reject), None
    if precision is not None and recall is not None and accept is None and reject is None:
        confidence = CONFIDENCE if confidence is None else confidence
        for share, option in ((precision, "precision"), (recall, "recall"), (confidence, "confidence")):
            if not (_is_number(share) and 0 < share < 1):
                raise ValueError(f"{option}= is a share between 0 and 1, such as 0.95, not {share!r}")
        return None, Promise(precision, recall, confidence)
    raise TypeError("tw.cascade takes accept= and reject=, or precision= and recall= to learn them")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)


def _score(written: Callable[..., Any]) -> FunctionPredicate:
    """The score with its columns."""
    if isinstance(written, FunctionPredicate):
        scored = written
    elif is_udf(written):
        raise TypeError("the score of tw.cascade is a plain function: pass the function of the UDF, the_udf.func")
    elif callable(written):
        scored = predicate_of(written)
    else:
        raise TypeError(f"tw.cascade takes a function that scores rows first, not {written!r}")
    if scored.takes == "async":
        raise TypeError("the score of tw.cascade is a plain function: a score that waits is not cheap")
    return scored


def _cascade_judge(
    name: str,
    score: tuple[str, Callable[..., Any], Takes],
    make: Callable[[Sequence[int], Sequence[int]], Judge],
    width: int,
    decision: tuple[Thresholds | None, Promise | None],
    columns: Sequence[int],
    codes: Sequence[int],
) -> Judge:
    costly = make(columns[width:], codes)
    kind = WaitingCascadeJudge if isinstance(costly, Waits) else CascadeJudge
    return kind(name, Score(*score, columns[:width]), costly, Proxy(*decision))
