"""Keywords that a function does not know, refused with the keyword that may have been meant."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from thalweg.registry import hint

P = ParamSpec("P")
R = TypeVar("R")


def checks_keywords(called: str, *options: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function that users call refuse unknown keywords, before Python does so without a suggestion.

    Parameters
    ----------
    called
        The function as users write it, for the message.
    options
        The keywords that the function takes as ``**options``, if it does.

    Examples
    --------
    >>> @checks_keywords("tw.keep")
    ... def keep(rows, *, policy="a-greedy"): ...
    >>> keep([], polcy="sweep")
    Traceback (most recent call last):
        ...
    TypeError: tw.keep has no parameter 'polcy'; did you mean 'policy'? It has: rows, policy
    """

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        code = function.__code__
        named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        known = dict.fromkeys([*(name for name in named if name != "self"), *options])

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            for keyword in kwargs:
                if keyword not in known:
                    there = f"It has: {', '.join(known)}" if known else "It has none"
                    raise TypeError(f"{called} has no parameter {keyword!r}{hint(keyword, known)} {there}")
            return function(*args, **kwargs)

        return checked

    return decorated
