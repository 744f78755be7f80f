"""Digests of a user's function: of its code alone, and of all that its answers depend on as far as it holds that.

No digest depends on the process: a later run of the same program finds the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from thalweg.sealed import short_digest

PLAIN = (str, int, float, complex, bool, bytes, type(None))
ADDRESS = " at 0x"  # in the text of an object that has no text of its own


def code_digest(function: Callable[..., Any]) -> str:
    """A digest of a function's own code; empty for a callable without code.

    >>> code_digest(lambda x: x > 1) == code_digest(lambda x: x > 2)
    False
    """
    code = getattr(function, "__code__", None)
    return "" if code is None else hashlib.sha256(repr(_code_parts(code)).encode()).hexdigest()[:12]


def _code_parts(code: CodeType) -> tuple[object, ...]:
    return code.co_code, code.co_names, [_constant(each) for each in code.co_consts]


def _constant(value: object) -> object:
    """A constant of a function's code; a set of texts comes in another order in every process."""
    if isinstance(value, CodeType):
        return _code_parts(value)
    return sorted(map(repr, value)) if isinstance(value, frozenset) else repr(value)


def answers_digest(function: Callable[..., Any]) -> str:
    """A digest of all that a function's answers depend on: code, values around it, defaults, attributes.

    >>> def above(limit):
    ...     return lambda x: x > limit
    >>> answers_digest(above(3)) == answers_digest(above(3)), answers_digest(above(3)) == answers_digest(above(4))
    (True, False)
    >>> answers_digest(partial(pow, exp=2)) == answers_digest(partial(pow, exp=3))
    False
    """
    return short_digest(list(_texts(function, {})))


def _texts(value: Any, seen: dict[int, tuple[int, Any]]) -> Iterator[str]:  # noqa: ANN401 - any value, a case for each kind
    """Texts that tell a value; an object that was told before is told by its number."""
    if isinstance(value, PLAIN):
        yield repr(value)
        return
    if id(value) in seen:
        yield f"#{seen[id(value)][0]}"
        return
    seen[id(value)] = len(seen), value  # which lives as long as its number counts
    kind = type(value)
    yield f"{kind.__module__}.{kind.__qualname__}("
    parts: Any = ()
    if isinstance(value, FunctionType):
        yield code_digest(value)
        parts = value.__defaults__, value.__kwdefaults__, *_cells(value), *_globals(value)
    elif isinstance(value, MethodType):
        parts = value.__func__, value.__self__
    elif isinstance(value, partial):
        parts = value.func, value.args, value.keywords
    elif isinstance(value, Mapping):
        parts = [part for item in value.items() for part in item]
    elif isinstance(value, AbstractSet):
        yield from sorted("".join(_texts(each, dict(seen))) for each in value)
    elif isinstance(value, list | tuple):
        parts = value
    elif isinstance(value, np.ndarray) and value.dtype != object:
        yield hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    elif isinstance(value, ModuleType | BuiltinFunctionType | type):
        yield f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value.__name__)}"
    else:
        call = getattr(kind, "__call__", None)  # noqa: B004 - what it does is asked, not whether it is there
        attributes = _attributes(value)
        yield repr(value) if not attributes and ADDRESS not in repr(value) else ""
        parts = [call if isinstance(call, FunctionType) else None, attributes]
    for part in parts:
        yield from _texts(part, seen)
    yield ")"


def _cells(function: FunctionType) -> Iterator[Any]:
    """The values that a function has taken from around it."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # it is not filled yet
            yield None


def _globals(function: FunctionType) -> Iterator[Any]:
    """The plain values that a function reads from its module, and the functions there that it may call."""
    for name in sorted(_names(function.__code__)):
        value = function.__globals__.get(name)
        is_own = isinstance(value, FunctionType) and value.__module__ == function.__module__
        if is_own or (isinstance(value, PLAIN) and value is not None):
            yield from (name, value)


def _names(code: CodeType) -> set[str]:
    inner = [_names(each) for each in code.co_consts if isinstance(each, CodeType)]
    return set(code.co_names).union(*inner)


def _attributes(value: Any) -> dict[str, Any]:  # noqa: ANN401 - any object
    """The attributes of an object by name, those in slots too."""
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()) if hasattr(value, name)]
    return {name: getattr(value, name) for name in sorted(slots)} | dict(getattr(value, "__dict__", {}))
