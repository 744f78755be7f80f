"""The question that a multi-way window join answers: inputs with windows, conditions, and the columns of the result.

This module knows nothing of how the join is run, nor where rows come from. Times are whole microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Literal

import pyarrow as pa

from thalweg.joinorder import JoinGraph, JoinPredicate, JoinStream
from thalweg.joinorder.graph import DEFAULT_SELECTIVITY
from thalweg.joinorder.text import Attribute, Equality
from thalweg.sealed import short_digest

LONGEST = 1 << 60  # microseconds of a window: some 36,000 years
TEXT_OF_TIME_WINDOW = re.compile(r"[0-9]{1,19} microseconds")  # LONGEST has 19 digits
CHANGE = "change"  # the column of a changelog that is 1 or -1
EVENT_TIME = "event_time"  # the column of a result's own time
Key = tuple[int, ...]  # the numbers of some classes of equal columns, ascending
Pair = tuple[str, str]  # two inputs, in the order of the query
JoinKind = Literal["inner", "outer", "semi", "anti"]


@dataclass(frozen=True)
class TimeWindow:
    """A window by time: a row is in it for so many microseconds."""

    microseconds: int

    def __post_init__(self) -> None:
        if not 1 <= self.microseconds <= LONGEST:
            raise ValueError(f"a window lasts for 1 to {LONGEST} microseconds, not {self.microseconds}")

    def __str__(self) -> str:
        return f"{self.microseconds} microseconds"

    def is_within(self, other: str) -> bool:
        """Whether another window, as text, has all rows that this window has.

        >>> TimeWindow(5).is_within("7 microseconds"), TimeWindow(5).is_within("5 rows")
        (True, False)
        """
        return self.is_text(other) and self.microseconds <= int(other.partition(" ")[0])

    @staticmethod
    def is_text(text: str) -> bool:
        """Whether a text is of a window by time, as `str` writes it.

        >>> TimeWindow.is_text(str(TimeWindow(5))), TimeWindow.is_text("5 rows"), TimeWindow.is_text("x microseconds")
        (True, False, False)
        """
        return TEXT_OF_TIME_WINDOW.fullmatch(text) is not None


@dataclass(frozen=True)
class CountWindow:
    """A window by count: a row is in it until so many later rows with its key have come."""

    rows: int

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise ValueError(f"a window holds 1 row or more, not {self.rows}")

    def __str__(self) -> str:
        return f"{self.rows} rows"


@dataclass(frozen=True)
class Input:
    """A stream, or a table: an input without time, whose rows never expire.

    The schema has just the columns that keys, residuals, time and the result need; `time` names a column of
    int64 microseconds.
    """

    name: str
    schema: pa.Schema
    time: str | None = None
    window: TimeWindow | CountWindow | None = None

    def __post_init__(self) -> None:
        if self.time is not None:
            self.column(self.time)
            if self.schema.field(self.time).type != pa.int64():
                raise ValueError(f"the time {self} is of int64 microseconds, not {self.schema.field(self.time).type}")
        elif self.window is not None:
            raise ValueError(f"{self.name} has a window but no time; name its column of event time")

    def column(self, name: str) -> str:
        """The name of a column that there is."""
        if name not in self.schema.names:
            raise ValueError(f"{self.name} has no column {name!r}; it has {', '.join(self.schema.names)}")
        return name

    def __str__(self) -> str:
        return f"{self.name}.{self.time}" if self.time else self.name


@dataclass(frozen=True)
class Residual:
    """A condition that is no equality: a function of columns, as Arrow arrays, to booleans. NULL is false."""

    inputs: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    test: Callable[..., pa.BooleanArray]

    def __post_init__(self) -> None:
        if {name for name, _ in self.columns} != set(self.inputs):
            raise ValueError(f"a residual's columns are of its inputs {self.inputs}, not {self.columns}")


@dataclass(frozen=True)
class JoinQuery:
    """A join of windows.

    >>> schema = pa.schema([("key", pa.int64()), ("at", pa.int64())])
    >>> query = JoinQuery(
    ...     inputs=tuple(Input(name, schema, "at", TimeWindow(10)) for name in "ABC"),
    ...     equalities=(frozenset([("A", "key"), ("B", "key"), ("C", "key")]),),
    ...     select=(("A", "key", "key"), ("A", "at", "a"), ("C", "at", "c")),
    ... )
    >>> query.result_schema.names
    ['key', 'a', 'c']
    >>> query.graph().shape
    <GraphShape.COMPLETE: 'complete'>
    """

    inputs: tuple[Input, ...]
    equalities: tuple[frozenset[tuple[str, str]], ...]  # classes of columns that are equal
    residuals: tuple[Residual, ...] = ()
    select: tuple[tuple[str, str, str], ...] = ()  # input, column, name in the result
    output: Literal["append", "changelog"] = "append"
    event_time_of: tuple[str, ...] = ()  # the inputs whose latest time is that of a result; none for no such column
    kind: JoinKind = "inner"
    preserved: tuple[str, ...] = ()  # inputs whose rows count one by one, matched or not, if the join is not inner

    def __post_init__(self) -> None:
        if len(self.inputs) < 2:  # noqa: PLR2004 - a join has two sides
            raise ValueError("a join needs at least two inputs")
        twice = sorted({name for name in self.names if self.names.count(name) > 1})
        if twice:
            raise ValueError(f"each input needs a name of its own; {', '.join(twice)} appears more than once")
        if self.output not in {"append", "changelog"}:
            raise ValueError(f"the output is 'append' or 'changelog', not {self.output!r}")
        if not self.select:
            raise ValueError("select at least one column: (input, column, name in the result)")
        self._check_preserved()
        for name in self.event_time_of:
            if self.input(name).time is None:
                raise ValueError(f"{name} has no time that could be the time of results; name a stream")
        keys = [column for equal in self.equalities for column in equal]
        selected = [(name, column) for name, column, _ in self.select]
        compared = [column for residual in self.residuals for column in residual.columns]
        for name, column in (*keys, *selected, *compared):
            self.input(name).column(column)
        for equal in self.equalities:
            types = {self.input(name).schema.field(column).type for name, column in equal}
            if len(types) > 1:
                listed = ", ".join(f"{name}.{column}" for name, column in sorted(equal))
                raise ValueError(f"{listed} are of types {', '.join(sorted(map(str, types)))}; cast them to one type")
        if len(set(keys)) < len(keys):
            raise ValueError("a column is in two classes of equal columns; make them one class")
        if not self.graph().connected:
            raise ValueError("the equalities do not connect all inputs; add the missing equalities")
        if self.has_count_windows and not (self.has_common_key and all(each.time for each in self.inputs)):
            raise ValueError(
                "a window by count holds rows of one key: all inputs must be streams with one common key; "
                "use windows by time"
            )

    def _check_preserved(self) -> None:
        if bool(self.preserved) == (self.kind == "inner"):
            raise ValueError(
                f"an {self.kind} join preserves {self.preserved or 'no input'}; only inner joins preserve none"
            )
        if self.kind == "inner":
            return
        for name in self.preserved:
            self.input(name)
        if self.has_count_windows:
            raise ValueError(f"an {self.kind} join needs windows by time: those by count never tell which rows match")
        if len(self.preserved) > 1 and len(self.inputs) > 2:  # noqa: PLR2004 - the two sides
            raise ValueError(
                "a full outer join has two inputs; join two at a time, the second join with the first's result"
            )
        others = {name for name, *_ in self.select} - set(self.preserved)
        if self.kind != "outer" and others:
            raise ValueError(
                f"{self.kind} joins have the columns of {', '.join(self.preserved)} only, not of "
                f"{', '.join(sorted(others))}"
            )

    @property
    def keeps_unmatched(self) -> bool:
        """Whether preserved rows without a match are results."""
        return self.kind in {"outer", "anti"}

    @cached_property
    def retention(self) -> dict[str, int]:
        """How much longer than their windows rows are kept, so that preserved rows that leave find their matches.

        A changelog tells which rows have a match now, for which the rows in the windows suffice.
        """
        if self.output == "changelog":
            return dict.fromkeys(self.names, 0)
        return {
            each.name: max((self._window_length(name) for name in self.preserved if name != each.name), default=0)
            for each in self.inputs
        }

    def _window_length(self, name: str) -> int:
        window = self.input(name).window
        return window.microseconds if isinstance(window, TimeWindow) else 0

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The inputs' names."""
        return tuple(each.name for each in self.inputs)

    def input(self, name: str) -> Input:
        """An input by its name."""
        for each in self.inputs:
            if each.name == name:
                return each
        raise ValueError(f"there is no input {name!r}; there are {', '.join(self.names)}")

    @cached_property
    def has_count_windows(self) -> bool:
        """Whether some window is by count."""
        return any(isinstance(each.window, CountWindow) for each in self.inputs)

    @cached_property
    def has_common_key(self) -> bool:
        """Whether all equalities are of a single key that all inputs have."""
        return len(self.equalities) == 1 and len({name for name, _ in self.equalities[0]}) == len(self.inputs)

    @cached_property
    def key_columns(self) -> dict[str, dict[int, tuple[str, ...]]]:
        """For each input, the classes of equal columns that it is in, by number, with its columns in them."""
        columns: dict[str, dict[int, tuple[str, ...]]] = {name: {} for name in self.names}
        for number, equal in enumerate(self.equalities):
            for name, column in sorted(equal):
                columns[name][number] = (*columns[name].get(number, ()), column)
        return columns

    @cached_property
    def pairs(self) -> dict[Pair, Key]:
        """The inputs that equalities connect, with the classes of equal columns that both are in."""
        shared = {
            (left, right): tuple(sorted(set(self.key_columns[left]) & set(self.key_columns[right])))
            for left, right in combinations(self.names, 2)
        }
        return {pair: key for pair, key in shared.items() if key}

    @cached_property
    def result_schema(self) -> pa.Schema:
        """The columns of the result."""
        fields = [self.input(name).schema.field(column).with_name(alias) for name, column, alias in self.select]
        fields += [pa.field(EVENT_TIME, pa.int64())] if self.event_time_of else []
        return pa.schema([*fields, pa.field(CHANGE, pa.int8())] if self.output == "changelog" else fields)

    def graph(
        self,
        rates: Mapping[str, float] | None = None,
        sizes: Mapping[str, float] | None = None,
        selectivities: Mapping[Pair, float] | None = None,
    ) -> JoinGraph:
        """The join graph, as far as it is known: rows of each input a step and in its window, and selectivities."""
        streams = []
        for name in self.names:
            rate = (rates or {}).get(name, 1.0)
            streams.append(JoinStream(name, rate, (sizes or {}).get(name, rate) / rate))
        predicates = []
        for (left, right), key in self.pairs.items():
            # The selectivity is that of all equalities between the two; each has its part in it.
            share = (selectivities or {}).get((left, right), DEFAULT_SELECTIVITY ** len(key)) ** (1.0 / len(key))
            for number in key:
                ends = sorted(Attribute(name, self.key_columns[name][number][0]) for name in (left, right))
                equality = Equality(*ends)
                predicates.append(
                    JoinPredicate(equality.left.stream, equality.right.stream, share, str(equality), equality)
                )
        return JoinGraph(tuple(streams), tuple(predicates))

    @property
    def may_change_windows(self) -> bool:
        """Whether a query that goes on with the state of other windows gives the results of its own windows.

        A changelog, or a row without a match, would have to tell what has left the windows of before.
        """
        return self.kind == "inner" and self.output == "append"

    @cached_property
    def digests(self) -> dict[str, str]:
        """For each input, a digest of what the meaning of its saved rows depends on, besides columns and window."""
        return {
            each.name: short_digest([each.name, str(each.time), str(self.key_columns[each.name])])
            for each in self.inputs
        }
