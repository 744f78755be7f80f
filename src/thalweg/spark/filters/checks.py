"""Checks what a user asks of `tw.where` before any Spark job starts, and says what to write instead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from thalweg.drift import DETECTORS, Detector, NoDetector, detector
from thalweg.ordering import POLICIES, Policy
from thalweg.ordering import policy as policy_by_name
from thalweg.registry import hint
from thalweg.spark.filters.forms import Form, NativeForm
from thalweg.spark.filters.predicates import (
    FunctionPredicate,
    LookupPredicate,
    Predicate,
    PrefixPredicate,
    columns_of,
    parts_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

PRIOR = 1.0  # tuple that each predicate is thought to drop besides those seen, see decision 0029


def policy_of(choice: str | Policy | type[Policy]) -> tuple[type[Policy], dict[str, Any]]:
    """The class of a policy, and the options of one that was made already."""
    if isinstance(choice, Policy):
        profile, sampler = choice.profile, choice.sampler
        return type(choice), {
            "window": profile.window,
            "max_age": profile.max_age,
            "p": sampler.full_probability,
            "adaptive_p": sampler.adaptive,
            "alpha": choice.state.alpha,
            "prior": choice.state.prior,
        }
    if isinstance(choice, type) and issubclass(choice, Policy):
        return choice, {"prior": PRIOR}
    if isinstance(choice, str):
        return type(policy_by_name(choice, 1)), {"prior": PRIOR}
    raise TypeError(
        f"policy is a name, a policy or its class, not {choice!r}; names: {', '.join(p.name for p in POLICIES)}"
    )


def detector_of(choice: str | Detector) -> Detector | None:
    """A detector by name or as it is; None for none."""
    found = detector(choice) if isinstance(choice, str) else choice
    if not isinstance(found, Detector):
        names = ", ".join(one.name for one in DETECTORS)
        raise TypeError(f"drift is a detector or its name, not {choice!r}; names: {names}")
    return None if isinstance(found, NoDetector) else found


def constraints(predicates: Sequence[Predicate], forms: Sequence[Form]) -> dict[str, Any]:
    """Which predicates hold their place or run after others, and what they cost if that was said."""
    names = [one.name for one in predicates]
    after: dict[int, list[int]] = {}
    for number, one in enumerate(predicates):
        for other in one.after:
            name = other.name if isinstance(other, Predicate) else other
            if name not in names:
                missing = f"predicate {one.name!r} is to run after {name!r}, which is not in the query"
                raise ValueError(f"{missing}{hint(name, names)}")
            after.setdefault(number, []).append(names.index(name))
    pinned = [
        number
        for number, (one, form) in enumerate(zip(predicates, forms, strict=True))
        if one.holds_place or (isinstance(form, NativeForm) and not form.facts.deterministic)
    ]
    costs = [one.cost for one in predicates]
    if None not in costs:
        return {"after": after, "pinned": pinned, "costs": costs}
    if any(cost is not None for cost in costs):
        without = ", ".join(repr(one.name) for one in predicates if one.cost is None)
        raise ValueError(
            f"a cost is given for some predicates but not for {without}: give it for all, in one unit, or for none: "
            f"then time is measured"
        )
    return {"after": after, "pinned": pinned}


def distinct_names(predicates: list[Predicate]) -> list[Predicate]:
    """The predicates, those whose name is taken with a number behind it."""
    taken: Counter[str] = Counter()
    distinct = []
    for one in predicates:
        taken[one.name] += 1
        distinct.append(one if taken[one.name] == 1 else replace(one, name=f"{one.name} ({taken[one.name]})"))
    return distinct


def check_columns(frame: DataFrame, predicates: Sequence[Predicate], others: Sequence[str]) -> None:
    """Refuse predicates on columns that are not there or have no fitting type."""
    from pyspark.errors import AnalysisException

    wanted = [(one, column) for one in predicates for part in parts_of(one) for column in columns_of(part)]
    names = list(dict.fromkeys(column for _, column in wanted))
    if not names and not others:
        return
    try:
        types = types_of(frame, [*names, *others])
    except AnalysisException:
        for one, column in wanted:
            try:
                _ = frame.select(column).schema
            except AnalysisException:
                there = ", ".join(frame.columns)
                needs = f"predicate {one.name!r} needs a column {column!r}; the DataFrame has {there}"
                raise ValueError(f"{needs}{hint(column, frame.columns)}") from None
        raise
    for one in predicates:
        for part in parts_of(one):
            check_types(part, [types[column] for column in columns_of(part)])


def types_of(frame: DataFrame, columns: Sequence[str]) -> dict[str, DataType]:
    """The types of columns, nested fields too. Spark refuses those that are not there."""
    plain = {field.name: field.dataType for field in frame.schema.fields}
    if len({name.lower() for name in plain}) == len(frame.columns) and all(
        column in plain and column.isidentifier() for column in columns
    ):
        return plain  # no need to ask Spark
    return {column: field.dataType for column, field in zip(columns, frame.select(*columns).schema.fields, strict=True)}


def check_brought(frame: DataFrame | None, predicates: Sequence[Predicate]) -> None:
    """Refuse lookups that would bring columns where none can go, or under names that are taken."""
    taken = {name.lower(): "the DataFrame" for name in (frame.columns if frame is not None else ())}
    for one in predicates:
        for part in parts_of(one):
            if not isinstance(part, LookupPredicate) or not part.brings:
                continue
            if frame is None or part is not one:
                raise ValueError(
                    f"predicate {part.name!r} brings columns: give it to tw.where itself, outside of tw.condition, "
                    f"tw.any_of and tw.not_"
                )
            for column, name in part.brings.items():
                if name.lower() in taken:
                    raise ValueError(
                        f"predicate {one.name!r} brings a column {name!r}, which {taken[name.lower()]} has already: "
                        f"write columns={{{column!r}: 'another name'}}"
                    )
                taken[name.lower()] = f"predicate {one.name!r}"


def check_types(one: Predicate, types: Sequence[Any]) -> None:
    """Refuse a lookup by columns that cannot be compared with the table's."""
    from pyspark.sql.pandas.types import to_arrow_type

    try:
        if isinstance(one, LookupPredicate):
            one.keys.check([to_arrow_type(kind, timezone="UTC") for kind in types])
        elif isinstance(one, PrefixPredicate):
            one.prefixes.check(to_arrow_type(types[0]))
    except (TypeError, ValueError) as error:
        raise type(error)(f"predicate {one.name!r}: {error}") from None


def check_picklable(predicates: Sequence[Predicate]) -> None:
    """Refuse a function that cannot be sent to workers."""
    from pyspark.cloudpickle import dumps

    for one in predicates:
        for part in parts_of(one):
            if isinstance(part, FunctionPredicate):
                try:
                    dumps(part.function)  # type: ignore[no-untyped-call]
                except Exception as error:  # noqa: BLE001 - whatever pickling the user's objects raises
                    raise TypeError(
                        f"predicate {part.name!r} cannot be sent to workers ({error}): make what it holds inside the "
                        f"function, or keep it in a module's variable that the function fills on first use"
                    ) from None
