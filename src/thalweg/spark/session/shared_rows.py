"""The text by which Spark evaluates the shared conditions of all streams, each once, for the rows of a micro-batch.

Conditions are the bits of whole numbers. Costly conditions are evaluated in later projections, which find the bits of
the conditions before them (`guards.py`). Between two projections, Python predicates may be asked early.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from thalweg.spark.filters.worker.judges import Judge, NotJudge
from thalweg.spark.identifiers import backticked
from thalweg.spark.session.guards import Conditions, Guard, answered_weaker, guards_of
from thalweg.spark.session.lower import Catalog
from thalweg.spark.session.program import Program, SharedCall, SharedCondition
from thalweg.spark.session.sources import STREAM, SharedStream
from thalweg.spark.session.worker.early_calls import BITS_OF_CALL, OWN_WORD, PASSES, EarlyCall, EarlyCalls
from thalweg.spark.session.worker.take_in import TIME

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BITS = 62  # conditions in a whole number
FIRST_SLOT = 2  # behind stream and time

Slot = dict[str, str]  # the name of a column of each stream, as it is among the rows of all streams
# From the text of rows, and a step, to the name of the same rows with the answers of the early calls of this step.
Ask: TypeAlias = Callable[[str, int], str]


def _no_calls(rows: str, step: int) -> str:
    raise ValueError(f"there are early calls in step {step}: {rows}")


def words_of(program: Program) -> int:
    """How many whole numbers have room for the conditions of any stream."""
    counts = Counter(condition.stream for condition in program.conditions)
    return -(-max(counts.values(), default=0) // BITS)


def column_slots(streams: Sequence[SharedStream], columns: Mapping[str, Sequence[str]]) -> list[Slot]:
    """Columns of the same type, at most one of each stream, together: rows of many streams need few columns."""
    found: dict[tuple[str, int], Slot] = {}
    for stream in streams:
        before: Counter[str] = Counter()
        for name in columns[stream.name]:
            kind = stream.frame.schema[name].dataType.json()
            found.setdefault((kind, before[kind]), {})[stream.name] = stream.stored_name(name)
            before[kind] += 1
    return list(found.values())


def shared_rows(view: str, program: Program, slots: Sequence[Slot], ask: Ask = _no_calls) -> str:
    """The text of a query for the rows of all streams: the slots, and then conditions as the bits of whole numbers.

    A row has values in the columns of its own stream only, so that `coalesce` finds them. A condition that implies
    another one is evaluated for the rows only for which the other one is true, and a costly condition for those that
    its guard leaves to it: it is evaluated in a later projection, which finds the bits of the conditions before it.
    Behind the conditions come the answers of early calls, a whole number for each step in which there are any.
    """
    by_stream: dict[str, list[SharedCondition]] = {}
    for condition in program.conditions:
        by_stream.setdefault(condition.stream, []).append(condition)
    answers = {stream: _Answers(conditions, program) for stream, conditions in by_stream.items()}
    asked = steps_of_calls(program)
    words = range(words_of(program))
    rows, columns = view, [_case({stream: each.unguarded(word) for stream, each in answers.items()}) for word in words]
    for step in range(1, max((each.steps for each in answers.values()), default=0) + 1):
        names = [_word(step, word) for word in words]
        named = ", ".join(f"{column} AS {name}" for column, name in zip(columns, names, strict=True))
        rows = f"(SELECT *, {named} FROM {rows})"
        if step in asked:
            rows = ask(rows, step)
        columns = []
        for word, name in enumerate(names):
            cases = {stream: each.guarded(word, step, names) for stream, each in answers.items()}
            columns.append(f"{name} + {_case(cases, otherwise='0L')}" if any(cases.values()) else name)
    slot_columns = [f"coalesce({', '.join(map(backticked, slot.values()))})" for slot in slots]
    all_columns = [*slot_columns, *columns, *(_asked(step) for step in asked)]
    named_columns = [f"{column} AS `{place}`" for place, column in enumerate(all_columns)]
    return f"SELECT {', '.join([STREAM, TIME, *named_columns])} FROM {rows}"


def _case(texts: Mapping[str, str | None], otherwise: str | None = None) -> str:
    """The value of the text of a row's stream."""
    cases = [f"WHEN '{stream}' THEN {text}" for stream, text in texts.items() if text is not None]
    return f"CASE {STREAM} {' '.join(cases)}{'' if otherwise is None else f' ELSE {otherwise}'} END"


class _Answers:
    """The texts of the conditions of one stream: a bit of a whole number for each, the first one the lowest."""

    def __init__(self, conditions: Sequence[SharedCondition], program: Program) -> None:
        self._places = {condition: divmod(place, BITS) for place, condition in enumerate(conditions)}
        self._guards = guards_of(program, conditions[0].stream)
        self._asked = bits_of_calls(program, conditions[0].stream)
        self._weaker = {condition: answered_weaker(condition, program, self._guards) for condition in conditions}

    @property
    def steps(self) -> int:
        return max((guard.step for guard in self._guards.values()), default=0)

    def unguarded(self, word: int) -> str | None:
        """The bits of the conditions that are evaluated for every row; None for a word behind the last condition."""
        conditions = [condition for condition, (own, _) in self._places.items() if own == word]
        if not conditions:
            return None
        evaluated = [condition for condition in conditions if condition not in self._guards]

        def text(condition: SharedCondition) -> str:
            stronger = [text(other) for other in evaluated if self._weaker[other] == condition]
            return f"if({condition.stored_sql}, {' + '.join([f'{self._bit(condition)}L', *stronger])}, 0L)"

        found = [text(condition) for condition in evaluated if self._weaker[condition] not in evaluated]
        return " + ".join(found) or "0L"

    def guarded(self, word: int, step: int, names: Sequence[str]) -> str | None:
        """The bits of the conditions of a step; the words with the bits of earlier steps have these names."""
        found = [
            f"if({self._guard(guard, names)}, if({condition.stored_sql}, {self._bit(condition)}L, 0L), 0L)"
            for condition, guard in self._guards.items()
            if isinstance(condition, SharedCondition)
            if guard.step == step and self._places[condition][0] == word
        ]
        return " + ".join(found) or None

    def _bit(self, condition: SharedCondition) -> int:
        return 1 << self._places[condition][1]

    def masks(self, alternative: Conditions, names: Sequence[str]) -> Counter[str]:
        """The bits of some conditions, by the columns that have them."""
        found: Counter[str] = Counter()
        for condition in alternative:
            if isinstance(condition, SharedCondition):
                found[names[self._places[condition][0]]] += self._bit(condition)
            else:
                step, bit = self._asked[condition]
                found[_asked(step)] += 1 << bit + PASSES
        return found

    def _guard(self, guard: Guard, names: Sequence[str]) -> str:
        """Whether all conditions of an alternative are true. Alternatives of one condition need one test a word."""
        single: Counter[str] = Counter()
        several = []
        for alternative in guard.alternatives:
            masks = self.masks(alternative, names)
            if len(alternative) == 1:
                single.update(masks)
            else:
                several.append(" AND ".join(f"({name} & {mask}L) = {mask}L" for name, mask in sorted(masks.items())))
        return " OR ".join([*(f"({name} & {mask}L) <> 0L" for name, mask in sorted(single.items())), *several])


def _word(step: int, word: int) -> str:
    """The column with the bits of the conditions before a step."""
    return f"answers_{step}_{word}"


def _asked(step: int) -> str:
    """The column with the answers of the early calls of a step."""
    return f"asked_{step}"


def bits_of_calls(program: Program, stream: str) -> dict[SharedCall, tuple[int, int]]:
    """The step in which each early call on a stream is made, and the first of its bits."""
    calls = early_calls(program, stream)
    return {call: (step, BITS_OF_CALL * number) for number, (call, step) in enumerate(calls.items())}


def early_calls(program: Program, stream: str) -> dict[SharedCall, int]:
    """The early calls on a stream in their order, and the step in which they are made."""
    guards = guards_of(program, stream) if stream in program.orders else {}
    return {condition: guard.step for condition, guard in guards.items() if isinstance(condition, SharedCall)}


def steps_of_calls(program: Program) -> list[int]:
    """The steps in which some early call is made."""
    return sorted({step for stream in program.orders for step in early_calls(program, stream).values()})


def with_early_calls(rows: DataFrame, program: Program, catalog: Catalog, step: int) -> DataFrame:
    """Rows with the answers of the early calls of a step in another column."""
    from pyspark.sql import functions as f
    from pyspark.sql.pandas.functions import arrow_udf

    words = [name for name in rows.columns if name.startswith(_word(step, 0)[:-1])]
    columns = [STREAM, *words]
    streams: list[tuple[str, tuple[EarlyCall, ...]]] = []
    for stream in program.orders:
        own = [call for call, its_step in early_calls(program, stream).items() if its_step == step]
        if not own:
            continue
        source, guards = catalog.streams[stream], guards_of(program, stream)
        stored = {source.stored_name(name): None for call in own for name in call.call.columns}
        columns += [name for name in stored if name not in columns]
        places = {name: place for place, name in enumerate(columns)}
        answers = _Answers([each for each in program.conditions if each.stream == stream], program)
        calls = []
        for call in own:
            masks = [answers.masks(alternative, words) for alternative in guards[call].alternatives]
            alternatives = tuple(
                tuple((places.get(name, OWN_WORD), mask) for name, mask in each.items()) for each in masks
            )
            calls.append(EarlyCall(judge_of(call, source, catalog, places), alternatives))
        streams.append((stream, tuple(calls)))
    asker = EarlyCalls(tuple(streams))

    def ask(batches: Iterator[Any]) -> Iterator[pa.Array]:
        return asker(batches)

    ask.__name__ = f"thalweg session: {sum(len(calls) for _, calls in streams)} predicates"
    ask.__annotations__ = {"batches": Iterator[tuple[pa.Array, ...]], "return": Iterator[pa.Array]}
    # Spark may evaluate a deterministic function once more for each of its uses.
    function = arrow_udf("bigint")(ask).asNondeterministic()  # type: ignore[call-overload]
    return rows.withColumn(_asked(step), function(*(f.col(backticked(name)) for name in columns)))


def judge_of(call: SharedCall, stream: SharedStream, catalog: Catalog, places: Mapping[str, int]) -> Judge:
    """A predicate as a worker runs it, on the columns at these places."""
    predicate = catalog.predicates[call.call.predicate]
    judge = predicate.judge_maker([places[stream.stored_name(name)] for name in call.call.columns], ())
    return NotJudge(predicate.name, judge) if call.call.negated else judge
