"""`tw.where`: keeps the rows that all predicates keep, in the cheapest order, which it finds out as it runs.

Its passes, in order, each a function from frozen values to frozen values:

1. `ask` splits and checks the predicates, and finds out how each can run      -> `FilterQuery`
2. `look` finds evidence: of an earlier run, or of a sample of the rows       -> `Evidence`, or None
3. `choose` decides on order, members, branches                               -> `FilterPlan`
4. `runs.record` remembers it, for explain and metrics                        -> `FilterRun`
5. `lower` makes Spark operations of the plan                                 -> a DataFrame
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from thalweg.drift import Detector
from thalweg.keywords import checks_keywords
from thalweg.ordering import Policy
from thalweg.spark import runs
from thalweg.spark.filters.choose import choose
from thalweg.spark.filters.evidence import Evidence, evidence_of
from thalweg.spark.filters.lower import lower, lower_to_column
from thalweg.spark.filters.predicates.base import as_predicate
from thalweg.spark.filters.predicates.expression import ExpressionPredicate
from thalweg.spark.filters.pruning import pruning_conditions
from thalweg.spark.filters.query import FilterOptions, FilterQuery, OnError, ask
from thalweg.spark.filters.routes import RouteBy
from thalweg.spark.filters.run import FilterRun, merge_reports, save_evidence, saved_evidence
from thalweg.spark.filters.sample import take_sample
from thalweg.spark.filters.sample_worth import has_choice, reason_against_sample
from thalweg.spark.filters.worker.report import SUFFIX
from thalweg.spark.filters.worker.waiting.shared_number import SUFFIX as SHARED_SUFFIX
from thalweg.spark.first_rows import NoSampleError, estimated_size
from thalweg.spark.folder import StateFolder
from thalweg.spark.frames import is_streaming
from thalweg.spark.plan_text import keys_in_plan
from thalweg.spark.worker_python import check_worker_python

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from thalweg.spark.filters.forms import SampledRows


@checks_keywords("tw.where")
def where(
    frame: DataFrame,
    *predicates: Any,  # noqa: ANN401 - predicates, Columns and texts
    policy: str | Policy | type[Policy] = "a-greedy",
    drift: str | Detector = "glr",
    route_by: RouteBy = None,
    on_error: OnError = "raise",
    quarantine: str | os.PathLike[str] | None = None,
    quarantine_columns: str | Sequence[str] = (),
    state: str | os.PathLike[str] | None = None,
    sample: bool | None = None,
) -> DataFrame:
    """Keep the rows that all predicates keep, evaluated in the cheapest order.

    In any order the kept rows are the rows of ``frame.where(a & b & c)``; a row for which a predicate is NULL is not
    kept. A row that one predicate rejects never raises another's error.

    Parameters
    ----------
    frame
        Any DataFrame, batch or streaming, classic or Connect.
    predicates
        Columns and conditions as text, which are split at AND, OR and NOT, with Python UDFs in them; and the predicates
        that `tw.predicate`, `tw.expr`, `tw.regex`, `tw.lookup`, `tw.prefix_match`, `tw.any_of` and `tw.not_` make.
    policy
        The policy that orders them: a name, a policy of `thalweg.ordering` or its class. ``"as-written"`` switches
        ordering off.
    drift
        The detector that watches for changes in the data besides the counts of ordinary processing, which always do: a
        detector of `thalweg.drift` or its name, ``"glr"``, ``"bcs"``, ``"martingale"``, ``"adwin"``, or ``"none"``. It
        sees changes that hide behind other predicates, and gradual changes.
    route_by
        Columns that may tell classes of rows apart, so that each class has its own order: a column, a list of columns,
        or ``"auto"`` for the columns that predicates take to Python and for some cheap columns that a sample finds
        promising. Classes are made where they surely save.
    on_error
        How to treat a row that no predicate rejects and on which a predicate fails: ``"raise"`` an error that names the
        predicate and the row, ``"drop"`` it, or ``"quarantine"`` it.
    quarantine
        The folder or the table for these rows, with the predicate and the reason; they have the columns that Python
        predicates use, and `quarantine_columns`.
    state
        A folder, shared by driver and workers, where to keep learnt statistics, so that the next run starts with them.
        By default they are kept as long as this program runs.
    sample
        Whether to run a small job first that tells in which order Spark shall evaluate conditions and lookups. By
        default, where it is likely to pay.

    Examples
    --------
    >>> kept = where(orders, "amount > 100", is_spam)  # doctest: +SKIP
    """
    check_frame(frame, "tw.where")
    check_sample(sample)
    options = FilterOptions(
        policy=policy,
        drift=drift,
        route_by=route_by,
        on_error=on_error,
        quarantine=quarantine,
        quarantine_columns=quarantine_columns,
        state=state,
    )
    query = ask(frame, predicates, options, may_join=not is_streaming(frame))
    evidence, notes = look(query, frame, sample=sample)
    run = record(query, evidence, notes)
    if is_streaming(frame):
        for predicate in query.brings.values():
            predicate.stored_table.fix_in(query.key)  # type: ignore[union-attr]  # a lookup, as it brings columns
    return lower(query, run.plan, frame)


@checks_keywords("tw.condition")
def condition(
    *predicates: Any,  # noqa: ANN401 - predicates
    policy: str | Policy | type[Policy] = "a-greedy",
    drift: str | Detector = "glr",
    on_error: Literal["raise", "drop"] = "raise",
    state: str | os.PathLike[str] | None = None,
) -> Column:
    """The conjunction of predicates that run in Python, as a Column for any place where a Column can stand.

    It is true, false or NULL as ``a AND b`` is in SQL. `tw.where` does more: it orders conditions in Spark and joins as
    well, and checks the DataFrame's columns.

    Examples
    --------
    >>> flagged = messages.withColumn("flagged", condition(is_spam, is_odd))  # doctest: +SKIP
    """
    checked = [as_predicate(each) for each in predicates]
    for predicate in checked:
        if any(isinstance(part, ExpressionPredicate) for part in predicate.parts):
            raise TypeError(
                f"{predicate.name!r} runs in Spark: write tw.condition(...) & F.expr({predicate.name!r}), or tw.where "
                f"for all"
            )
    query = ask(
        None, checked, FilterOptions(policy=policy, drift=drift, on_error=on_error, state=state), may_join=False
    )
    run = record(query, None, merge_reports(query))
    return lower_to_column(query, run.plan)


@checks_keywords("tw.reset")
def reset(what: DataFrame | str | os.PathLike[str]) -> None:
    """Forget learnt statistics: of a DataFrame that `tw.where` made, or in a folder given as ``state=``."""
    if isinstance(what, str | os.PathLike):
        folders = [StateFolder(what)]
    else:
        folders = [run.query.folder for run in runs.find(keys_in_plan(what)) if isinstance(run, FilterRun)]
        if not folders:
            raise ValueError("no tw.where of this program is in the plan: pass what tw.where returned, or its folder")
    for folder in folders:
        folder.delete([name for name in folder.versions() if name.endswith((SUFFIX, SHARED_SUFFIX))])


def record(query: FilterQuery, evidence: Evidence | None, notes: Sequence[str]) -> FilterRun:
    """Choose a plan, and record its run."""
    if query.runs_in_python:
        check_worker_python()
    run = FilterRun(query, choose(query, evidence))
    for note in notes:
        run.note(note)
    runs.record(run)
    return run


def look(query: FilterQuery, frame: DataFrame, *, sample: bool | None = None) -> tuple[Evidence | None, list[str]]:
    """The evidence of an earlier run, or of a sample if it is worth its price; and notes for the user."""
    from pyspark.errors import PySparkException

    notes = merge_reports(query)
    saved, unusable = saved_evidence(query)
    notes += unusable
    if saved is not None:
        return replace(saved, pruning=pruning_conditions(query, frame)), notes
    if sample is False or is_streaming(frame) or not (sample or has_choice(query)):
        return None, notes
    try:
        if not sample and (reason := reason_against_sample(query, frame)) is not None:
            return None, [*notes, f"no sample was taken: {reason}"]
        rows = sampled_rows(query, frame, estimated_size(frame))
        evidence = evidence_of(query, rows, pruning=pruning_conditions(query, frame))
    except NoSampleError as error:
        return None, [*notes, f"no sample was used: {error}"]
    except PySparkException as error:  # Spark evaluates filters of small tables when it plans them
        return None, [*notes, f"no sample was used: the DataFrame's plan fails with {type(error).__name__}"]
    failure = save_evidence(query, evidence)
    return evidence, [*notes, *([failure] if failure else [])]


def sampled_rows(query: FilterQuery, frame: DataFrame, size: int | None) -> SampledRows:
    """Run all conditions on a sample, and bring along the columns that the other predicates need."""
    columns = dict.fromkeys(column for form in query.forms for column in form.columns)
    columns |= dict.fromkeys(query.routes.types if query.routes is not None else ())
    conditions = [condition for form in query.forms for condition in form.sampled_conditions]
    return take_sample(frame, conditions, {name: query.column(name) for name in columns}, size)


def check_sample(sample: object) -> None:
    """Refuse a size of a sample."""
    if sample is not None and not isinstance(sample, bool):
        raise TypeError(
            f"sample is True, False or None, not {sample!r}: how many rows to look at is Thalweg's to choose"
        )


def check_frame(frame: object, entry: str) -> None:
    """Refuse an argument that is no Spark DataFrame."""
    if type(frame).__module__.startswith("pandas"):
        raise TypeError(
            f"{entry} takes a Spark DataFrame first, and this is a pandas DataFrame: write spark.createDataFrame(df)"
        )
    if not hasattr(type(frame), "isStreaming"):
        raise TypeError(f"{entry} takes a Spark DataFrame first, not {type(frame).__name__}")
