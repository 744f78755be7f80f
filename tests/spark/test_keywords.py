"""Every function that users call refuses a misspelt keyword, and says which keyword may have been meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import thalweg as tw

METHODS = ("stream", "table", "predicate", "query", "start")  # of sessions


def misspelt(function: Callable[..., Any]) -> tuple[str, str]:
    """The last keyword of a function, and the same with a letter too many."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    names = [each.name for each in inspect.signature(function).parameters.values() if each.kind in kinds]
    return names[-1], f"{names[-1]}e"


def test_every_entry_point_suggests_a_keyword() -> None:
    functions = {name: getattr(tw, name) for name in tw.__all__}
    functions = {name: function for name, function in functions.items() if inspect.isfunction(function)}
    assert len(functions) > 20
    for name, function in functions.items():
        meant, written = misspelt(function)
        with pytest.raises(TypeError, match=rf"^tw\.{name} has no parameter '{written}'; did you mean '{meant}'\? It"):
            function(**{written: 1})


def test_sessions_and_metrics_suggest_a_keyword() -> None:
    with pytest.raises(TypeError, match=r"^tw\.Session has no parameter 'chekpoint'; did you mean 'checkpoint'\?"):
        tw.Session(None, chekpoint="x")  # type: ignore[call-arg, arg-type]
    with pytest.raises(TypeError, match=r"^tw\.Metrics has no parameter 'functon'; did you mean 'function'\?"):
        tw.Metrics(None, functon=print)  # type: ignore[call-arg, arg-type]
    for name in METHODS:
        method = getattr(tw.Session, name)
        meant, written = ("processingTime", "procesingTime") if name == "start" else misspelt(method)
        with pytest.raises(
            TypeError, match=rf"^session\.{name} has no parameter '{written}'; did you mean '{meant}'\?"
        ):
            method(None, **{written: 1})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tw.where(None, "a > 1", polcy="sweep"), "tw.where has no parameter 'polcy'; did you mean 'policy'"),  # type: ignore[call-arg, arg-type]
        (lambda: tw.stream(None, chekpoint="x"), "did you mean 'checkpoint'"),  # type: ignore[call-arg, arg-type]
        (lambda: tw.condition("a", on_eror="drop"), "did you mean 'on_error'"),  # type: ignore[call-arg]
        (lambda: tw.predicate(onn="a"), "did you mean 'on'"),  # type: ignore[call-overload]
        (lambda: tw.join({}, "", "", "", dely="1 minute"), "did you mean 'delay'"),  # type: ignore[call-arg]
        (lambda: tw.lookup(None, onn="a"), "did you mean 'on'"),  # type: ignore[call-arg]
        (lambda: tw.lookup(None, on="a", colums="b"), "did you mean 'columns'"),
        (lambda: tw.expr("a > 1", pined=True), "did you mean 'pinned'"),
        (lambda: tw.any_of("a > 1", "b > 1", xyz=1), r"no parameter 'xyz'\. It has: name, cost, pinned, determ"),
    ],
)
def test_the_message_names_what_was_meant(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


def test_signatures_and_help_stay() -> None:
    assert list(inspect.signature(tw.where).parameters)[:3] == ["frame", "predicates", "policy"]
    assert tw.where.__name__ == "where"
    assert "Keep the rows" in (tw.where.__doc__ or "")
    assert list(inspect.signature(tw.Session).parameters)[:2] == ["spark", "checkpoint"]
