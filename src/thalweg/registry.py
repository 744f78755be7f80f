"""Finds the class that is registered under a name, or says which names there are."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar, Protocol, TypeVar


class Named(Protocol):
    """A class that a registry can hold."""

    name: ClassVar[str]


N = TypeVar("N", bound=Named)


def find(name: str, registered: Iterable[type[N]], role: str) -> type[N]:
    """The class with this name.

    >>> from thalweg.ordering import POLICIES
    >>> find("a-gredy", POLICIES, "policy")
    Traceback (most recent call last):
        ...
    ValueError: there is no policy 'a-gredy'; did you mean 'a-greedy'? There are: as-written, static-greedy, optimal, \
a-greedy, sweep, independent, local-swaps, adjacent-swap, marginal-rank
    """
    by_name = {kind.name: kind for kind in registered}
    if not isinstance(name, str):
        raise TypeError(f"a {role} has a name, one of {', '.join(by_name)}, not {name!r}")
    if name not in by_name:
        raise ValueError(f"there is no {role} {name!r}{hint(name, by_name)} There are: {', '.join(by_name)}")
    return by_name[name]


def hint(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the known name that may have been meant."""
    near = get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else "."
