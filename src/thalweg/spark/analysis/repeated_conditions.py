"""Conditions that Spark has analysed before on the same DataFrame are found again without another analysis.

An analysis depends on the condition as it is written, on the DataFrame, and on the session: which functions its names
mean, and its settings. The DataFrame never changes. A condition is the same if Catalyst says so before its analysis,
and has written the same text of both, which tells the order of operands. The session's functions and settings are
compared with a copy of them, in one question to the JVM. A condition that depends on more is analysed in every call: a
subquery, a variable of the session, a function that is kept in a catalog, a random number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from thalweg.spark.analysis.trees import nodes_in
from thalweg.spark.frames import once_a_frame, plan_of
from thalweg.spark.jvm import CATALYST, java_class, java_value
from thalweg.spark.operators import analysed_column, expression_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from thalweg.spark.analysis.catalyst import CatalystAnalysis

RESULT_ID = re.compile(r"(?<=\))#\d+L?")  # of a call of a Python UDF: another in every call
MOST_CONDITIONS = 50  # that are remembered of a DataFrame
# Kinds of names whose meaning follows from the DataFrame, and from the session's functions.
KNOWN_NAMES = {
    "UnresolvedAttribute", "UnresolvedExtractValue", "UnresolvedFunction", "UnresolvedNamedLambdaVariable"
}  # fmt: skip
# Before names of functions that are in no catalog; from Spark 4.2 on the last two.
NOT_OF_CATALOGS = ("", "system.builtin.", "system.session.")
# Settings by which functions in catalogs may come before functions of the session.
CATALOGS_FIRST = {"spark.sql.functionResolution.sessionOrder": "last", "spark.sql.path.enabled": "true"}


def analysed_once(
    frame: DataFrame, condition: Column, analyse: Callable[[Column, Hashable], CatalystAnalysis]
) -> CatalystAnalysis:
    """The analysis of a condition on a classic DataFrame: of an earlier call, if it would be the same now.

    `analyse` is given the condition, whose text Spark has read by then, and the session's settings, as something that
    is the same for the same settings.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    session: Any = frame.sparkSession

    def analysed_anew() -> CatalystAnalysis:
        return analyse(condition, session.conf._jconf.getAll().toString())  # noqa: SLF001 - in two calls

    if _joins(frame):  # Spark refuses columns of some DataFrames there, which Catalyst does not tell apart
        return analysed_anew()
    try:
        state = _state_of(session)
        written = expression_of(session, condition)
        key = RESULT_ID.sub("", written.toString()), state.number
        known = _conditions_on(frame)
        found = known.get(key)
        if found is not None and found.written.semanticEquals(written) and found.is_repeatable:
            return found.analysis
        read = analysed_column(session._jvm, written)  # noqa: SLF001 - no public way
    except (Py4JError, PySparkException, TypeError):  # a version of Spark with other objects
        return analysed_anew()
    analysis = analyse(read, state.number)
    known[key] = _RememberedAnalysis(written, state.functions, analysis)
    for outdated in _outdated(known, state.number):
        known.pop(outdated, None)
    return analysis


@dataclass(frozen=True, eq=False)
class _RememberedAnalysis:
    """A condition that was analysed."""

    written: Any  # before its analysis: an expression of the JVM
    functions: frozenset[str]  # of the session, at that time
    analysis: CatalystAnalysis

    @cached_property
    def is_repeatable(self) -> bool:
        """Whether the analysis would be the same as long as neither DataFrame nor session changes."""
        return _depends_on_session_alone(self.analysis) and _has_known_names(self.written.toJSON(), self.functions)


@once_a_frame
def _conditions_on(_frame: DataFrame) -> dict[tuple[str, int], _RememberedAnalysis]:
    """Conditions that were analysed on a DataFrame, by their text and the number of the session's state."""
    return {}


def _outdated(known: dict[tuple[str, int], _RememberedAnalysis], number: int) -> list[tuple[str, int]]:
    """The conditions of other states of the session, and the oldest of too many."""
    keys = list(known)
    return [key for place, key in enumerate(keys) if key[1] != number or place < len(keys) - MOST_CONDITIONS]


@once_a_frame
def _joins(frame: Any) -> bool:  # noqa: ANN401 - a classic DataFrame
    """Whether there is a join in a DataFrame's plan, as far as is known."""
    from py4j.protocol import Py4JError

    pattern = java_value(frame.sparkSession._jvm, f"{CATALYST}.trees.TreePattern", "JOIN")  # noqa: SLF001 - no public way
    try:
        return bool(plan_of(frame).containsPattern(pattern))
    except (Py4JError, TypeError):
        return True


@dataclass(frozen=True)
class _State:
    """The functions and settings of a session, as they were when they were copied."""

    number: int  # another for every state
    live: Any  # a list of the JVM: the session's own maps of functions and settings
    copy: Any  # a list of copies of these maps
    functions: frozenset[str]  # names of all functions


_states: WeakKeyDictionary[SparkSession, _State] = WeakKeyDictionary()  # the last of each session
_numbers = count()


def _state_of(spark: SparkSession) -> _State:
    """The state of a session: the last state if nothing has changed since."""
    state = _states.get(spark)
    if state is None or not state.live.equals(state.copy):
        state = _states[spark] = _copied(spark)
    return state


def _copied(spark: Any) -> _State:  # noqa: ANN401 - a classic session
    session, new_list = spark._jsparkSession.sessionState(), java_class(spark._jvm, "java.util.ArrayList")  # noqa: SLF001
    registry, settings = session.functionRegistry(), session.conf().settings()
    live, copy = new_list(), new_list()
    live.add(registry.functionBuilders())
    live.add(settings)
    copy.add(registry.clone().functionBuilders())
    copy.add(java_class(spark._jvm, "java.util.HashMap")(settings))  # noqa: SLF001 - no public way
    names = registry.listFunction().mkString("\0").split("\0")
    if any(settings.get(name) == value for name, value in CATALOGS_FIRST.items()):
        names = []
    return _State(next(_numbers), live, copy, frozenset(names))


def _depends_on_session_alone(analysis: CatalystAnalysis) -> bool:
    """Whether there is no subquery, variable or random number in an analysed condition."""
    has_variable = any(node.kind == "VariableReference" for node in nodes_in(analysis.tree))
    return analysis.is_deterministic and analysis.catalyst.counts_alike and not has_variable


def _has_known_names(text: str, functions: frozenset[str]) -> bool:
    """Whether the names in a condition, as Catalyst writes it in JSON, follow from DataFrame and session.

    >>> names = '[{"class": "a.UnresolvedFunction", "nameParts": "[%s]"}]'
    >>> [_has_known_names(names % name, frozenset({"system.builtin.abs"})) for name in ("abs", "db, abs")]
    [True, False]
    """
    nodes = json.loads(text)
    kinds = [node["class"].rpartition(".")[2] for node in nodes]
    if '"plan":' in text or any("Unresolved" in kind or "Identifier" in kind for kind in {*kinds} - KNOWN_NAMES):
        return False
    called = [node["nameParts"] for node, kind in zip(nodes, kinds, strict=True) if kind == "UnresolvedFunction"]
    return all(_is_known(name[1:-1].lower(), functions) for name in called)


def _is_known(name: str, functions: frozenset[str]) -> bool:
    """Whether a name means a function of Spark or of the session, and none of a catalog."""
    return any(f"{prefix}{name}" in functions for prefix in NOT_OF_CATALOGS)
