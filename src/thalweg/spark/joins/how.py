"""The types of join that `how=` names: which inputs are preserved, and what their conditions mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from thalweg.joinorder.text import Attribute, Equality
from thalweg.mjoin import TimeWindow
from thalweg.mjoin.query import JoinKind
from thalweg.registry import hint
from thalweg.spark.identifiers import backticked
from thalweg.spark.joins.condition import Condition
from thalweg.spark.joins.inputs import JoinInput
from thalweg.spark.joins.spark_conditions import ResidualConditions

HOW = ("inner", "left", "right", "full", "semi", "anti")
SPARK_NAMES = {  # without underscores
    "leftouter": "left",
    "rightouter": "right",
    "outer": "full",
    "fullouter": "full",
    "leftsemi": "semi",
    "leftanti": "anti",
}


@dataclass(frozen=True)
class JoinType:
    """A type of join."""

    kind: JoinKind = "inner"
    preserved: tuple[str, ...] = ()  # the inputs whose rows count one by one

    @property
    def keeps_unmatched(self) -> bool:
        """Whether rows without a match are results."""
        return self.kind in {"outer", "anti"}


def choose_join_type(how: object, inputs: Sequence[JoinInput]) -> JoinType:
    """The type of a join, from the argument of `tw.join`."""
    name = str(how).lower().replace("_", "")
    name = SPARK_NAMES.get(name, name)
    if name not in HOW:
        raise ValueError(f"how is {how!r}{hint(name, HOW)} Write one of {', '.join(HOW)}")
    first, *_, last = (each.name for each in inputs)
    match name:
        case "inner":
            return JoinType()
        case "left" | "semi" | "anti":
            join_type = JoinType("outer" if name == "left" else name, (first,))
        case "right":
            join_type = JoinType("outer", (last,))
        case _:
            join_type = JoinType("outer", (first, last))
            _check_full(inputs)
    for each in inputs:
        if each.name in join_type.preserved:
            _check_preserved(each, name, is_streaming=any(source.frame.isStreaming for source in inputs))
        elif each.changing is not None:
            raise ValueError(
                f"how={name!r} decides whether a row has a match when it leaves its window, and {each.name} may have "
                f"changed since. Join it afterwards by Spark, which reads the table with every micro-batch: "
                f"joined.join(table, ..., {how!r}); or give it as a DataFrame, without tw.table"
            )
    return join_type


def _check_full(inputs: Sequence[JoinInput]) -> None:
    if len(inputs) > 2:  # noqa: PLR2004 - the two sides
        raise ValueError(
            "a full outer join of more than two inputs depends on their order; join two at a time: "
            "ab = tw.join({'A': a, 'B': b}, ..., how='full'), and then "
            "tw.join({'AB': ab, 'C': c}, event_time={'AB': 'event_time', 'C': 'ts'}, ...)"
        )


def _check_preserved(source: JoinInput, how: str, *, is_streaming: bool) -> None:
    if is_streaming and not isinstance(source.window, TimeWindow):
        kind = "a table" if source.is_table else f"a stream with the window {source.window}"
        raise ValueError(
            f"how={how!r} preserves the rows of {source.name}, which is {kind}: it is never known that a row has no "
            f"match. Preserve a stream with a window by time, such as windows={{'{source.name}': '1 hour', ...}}"
        )


def keep_preserved_rows(condition: Condition, join_type: JoinType) -> Condition:
    """The condition without filters of inputs whose unmatched rows are results: a row that fails matches nothing.

    A key of such an input becomes NULL where the filter does not hold.
    """
    if not join_type.keeps_unmatched:
        return condition
    for name in join_type.preserved:
        texts = [text for stream, text in condition.filters if stream == name]
        if texts:
            condition = _with_key(condition, name, " AND ".join(f"({text})" for text in texts))
    return condition


def _with_key(condition: Condition, name: str, test: str) -> Condition:
    """The condition with a test of an input as a part of one of its keys, instead of as filters."""
    key = next(side for equality in condition.equalities for side in equality if side.stream == name)
    computed = dict(condition.computed)
    sql = computed.pop(key, f"{backticked(key.stream)}.{backticked(key.name)}")
    new = Attribute(name, f"{key.name} if {test}")
    return replace(
        condition,
        equalities=tuple(
            Equality(*sorted(new if side == key else side for side in equality)) for equality in condition.equalities
        ),
        filters=tuple((stream, text) for stream, text in condition.filters if stream != name),
        computed=(*computed.items(), (new, f"CASE WHEN {test} THEN {sql} END")),
    )


def shown_inputs(join_type: JoinType, names: Iterable[str]) -> tuple[str, ...]:
    """The inputs whose columns the result may have."""
    return join_type.preserved if join_type.kind in {"semi", "anti"} else tuple(names)


def check_conditions(conditions: ResidualConditions, join_type: JoinType) -> None:
    """Refuse conditions that Spark would have to test after the join, where a failed test leaves a row unmatched."""
    if join_type.kind != "inner" and conditions.in_spark:
        text = conditions.in_spark[0].text
        raise ValueError(
            f"{text!r} decides which rows have a match, and cells cannot test it as Spark does; give its parts as "
            f"columns (frame.withColumn(...)) and compare these with =, <, >, +, - and *"
        )
